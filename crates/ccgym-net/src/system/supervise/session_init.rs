//! Process 1 of the PID namespace of a path: starts the programs, reaps, passes signals on, and takes all with it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::mount::{mount, MsFlags};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sched::{unshare, CloneFlags};
use nix::sys::prctl;
use nix::sys::signal::{kill, killpg, pthread_sigmask, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{
    dup2_stderr, dup2_stdin, dup2_stdout, execvpe, getpid, initgroups, pipe2, setgid, setpgid, setuid, tcsetpgrp, Pid,
};

use super::fork::{exit, fork, reset, Forked};
use super::orders::{readable, receive, transmit, Identity, Order, Output, ProcessSpec, Program, Report};
use crate::error::{Context, NetError, Result};
use crate::system::namespace::own_mounts;

/// How long programs have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// The life of init. When this returns, the caller exits and the kernel kills what is left.
pub(super) fn run(spec: ProcessSpec, socket: OwnedFd, mask: &SigSet) {
    let _ = prctl::set_name(c"ccgym-init");
    // Where it is ignored, as some parents leave it, waiting for children fails.
    let _ = reset(Signal::SIGCHLD);
    if prctl::set_pdeathsig(Signal::SIGKILL).is_err() || parent_is_gone(&socket) {
        return;
    }
    if let Err(error) = serve(spec, &socket, mask) {
        let _ = transmit(&socket, &Report::Failed(error));
    }
}

/// The parent may have died before the kernel was asked to tell; the socket then is closed.
fn parent_is_gone(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    matches!(poll(&mut polled, PollTimeout::ZERO), Ok(n) if n > 0)
}

/// What is running.
struct Running {
    command: Option<Pid>,
    peer: Option<Pid>,
    terminal: bool,
    /// When everything is killed, once it is ending.
    deadline: Option<Instant>,
}

fn serve(spec: ProcessSpec, socket: &OwnedFd, mask: &SigSet) -> Result<()> {
    let ProcessSpec { command, peer, identity, terminal } = spec;
    let mut deaths = SigSet::empty();
    deaths.add(Signal::SIGCHLD);
    deaths.thread_block().context(|| "blocking SIGCHLD".into())?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let deaths = SignalFd::with_flags(&deaths, flags).context(|| "making a signal descriptor".into())?;
    private_proc();
    let start = |program: &Program, terminal| start(program, &identity, terminal, mask);
    let mut running = Running { command: None, peer: None, terminal, deadline: None };
    if let Some(peer) = &peer {
        running.peer = Some(start(peer, false)?);
    }
    let tell = |report: &Report| transmit(socket, report).context(|| "reporting".into());
    tell(&Report::Ready)?;
    loop {
        let [order, _] = readable([socket.as_fd(), deaths.as_fd()], running.timeout());
        while let Ok(Some(_)) = deaths.read_signal() {}
        while let Some(status) = changed() {
            if let Some(report) = running.note(status) {
                tell(&report)?;
            }
        }
        if order {
            match receive(socket).context(|| "listening".into())? {
                Some(Order::Begin) => running.command = Some(start(&command, terminal)?),
                Some(Order::Signal(number)) => running.signal(number),
                Some(Order::Resume) => running.resume(),
                Some(Order::End) => running.end(),
                None => return Ok(()),
            }
        }
        if running.over() {
            return Ok(());
        }
    }
}

impl Running {
    fn timeout(&self) -> PollTimeout {
        self.deadline.map_or(PollTimeout::NONE, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        })
    }

    fn over(&self) -> bool {
        let idle = self.command.is_none() && self.peer.is_none();
        self.deadline.is_some_and(|deadline| idle || Instant::now() >= deadline)
    }

    /// Something happened to a process; the end of an orphan does not matter.
    fn note(&mut self, status: WaitStatus) -> Option<Report> {
        let pid = status.pid();
        if let (WaitStatus::Stopped(..), true) = (status, pid == self.command && self.terminal) {
            return Some(Report::Stopped);
        }
        let code = shell_status(status)?;
        if pid.is_some() && pid == self.command {
            self.command = None;
            self.end();
            return Some(Report::Ended(code));
        }
        if pid.is_some() && pid == self.peer {
            self.peer = None;
            return self.deadline.is_none().then_some(Report::PeerEnded(code));
        }
        None
    }

    fn signal(&self, number: i32) {
        if let (Some(pid), Ok(signal)) = (self.command, Signal::try_from(number)) {
            // A job of the terminal gets signals as a whole.
            let _ = if self.terminal { killpg(pid, signal) } else { kill(pid, signal) };
        }
    }

    fn resume(&self) {
        if let (Some(pid), true) = (self.command, self.terminal) {
            let _ = tcsetpgrp(io::stdin(), pid);
            let _ = killpg(pid, Signal::SIGCONT);
        }
    }

    /// Ask politely; those that stay are killed when init exits.
    fn end(&mut self) {
        if self.deadline.is_none() {
            self.deadline = Some(Instant::now() + GRACE);
            for pid in [self.command, self.peer].into_iter().flatten() {
                for signal in [Signal::SIGTERM, Signal::SIGCONT] {
                    // A program that has no group of its own is told alone.
                    let _ = killpg(pid, signal).or_else(|_| kill(pid, signal));
                }
            }
        }
    }
}

/// Let `/proc` show the processes of this namespace. Where that is not allowed (in some containers) it shows all, which
/// confuses `ps` but nothing else.
fn private_proc() {
    if own_mounts(MsFlags::MS_SLAVE).is_ok() {
        let none = None::<&str>;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), flags, none);
    }
}

/// Start a program; the answer comes when it runs or cannot.
fn start(program: &Program, identity: &Identity, terminal: bool, mask: &SigSet) -> Result<Pid> {
    let name = program.words.first().map_or("", String::as_str);
    let step = || format!("starting {name:?}");
    let text = |what: &str| {
        CString::new(what).map_err(|_| NetError::new(step(), "a zero byte in its words").coded("text-malformed"))
    };
    let words = program.words.iter().map(|word| text(word)).collect::<Result<Vec<_>>>()?;
    let (failure, telling) = pipe2(OFlag::O_CLOEXEC).context(step)?;
    let (mut failure, telling) = (File::from(failure), File::from(telling));
    match fork(CloneFlags::empty())? {
        Forked::Parent(pid) => {
            drop(telling);
            let mut error = Vec::new();
            failure.read_to_end(&mut error).context(step)?;
            if error.is_empty() {
                return Ok(pid);
            }
            Err(serde_json::from_slice(&error)
                .unwrap_or_else(|error| NetError::new(step(), error).coded("program-unstartable")))
        }
        Forked::Child => {
            let error = become_program(program, &words, identity, terminal, mask).err();
            let error = error.map(|error| NetError { place: format!("{}: {}", step(), error.place), ..error });
            let _ = (&telling).write_all(&serde_json::to_vec(&error).unwrap_or_default());
            exit(127)
        }
    }
}

/// Become the program; only returns if that fails.
fn become_program(
    program: &Program,
    words: &[CString],
    identity: &Identity,
    terminal: bool,
    mask: &SigSet,
) -> Result<std::convert::Infallible> {
    let step = |what: &'static str| move || what.to_owned();
    program.namespace.enter()?;
    if matches!(program.output, Output::Ours) {
        // It is alone in its namespace; let it ping without being root there.
        let setting = "/proc/sys/net/ipv4/ping_group_range";
        let _ = fs::write(setting, "0 2147483647").or_else(|_| fs::write(setting, "0 0"));
    }
    // The peer gets a group of its own, so that its children end with it.
    if terminal || !matches!(program.output, Output::Ours) {
        setpgid(Pid::from_raw(0), Pid::from_raw(0)).context(step("making a process group"))?;
    }
    if terminal {
        // SIGTTOU is still blocked. If the terminal is gone, the program will notice.
        let _ = tcsetpgrp(io::stdin(), getpid());
    }
    redirect(&program.output).context(step("redirecting its output"))?;
    assume(identity)?;
    // Rust and Python ignore these; programs that they start expect them to be as they were.
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        reset(signal).context(step("resetting signals"))?;
    }
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(mask), None).context(step("unblocking signals"))?;
    let name = words.first().ok_or_else(|| NetError::new("reading its words", "no words").coded("argument-missing"))?;
    execvpe(name, words, &program.environment).map_err(|errno| {
        let error = NetError::new("looking for it", errno.desc()).coded("program-unstartable");
        match errno {
            nix::errno::Errno::ENOENT => {
                error.coded("program-missing").hint("give the name of a program in PATH, or its full path")
            }
            _ => error,
        }
    })
}

fn redirect(output: &Output) -> io::Result<()> {
    let (out, err) = match output {
        Output::Ours => return Ok(()),
        Output::Stderr => (io::stderr().as_fd().try_clone_to_owned()?, None),
        Output::File(file) => (file.try_clone()?.into(), Some(file)),
    };
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(&out)?;
    err.map_or(Ok(()), |file| dup2_stderr(file).map_err(io::Error::from))
}

/// Give up power that the program must not have.
fn assume(identity: &Identity) -> Result<()> {
    match identity {
        Identity::Ours => {}
        Identity::User { name, uid, gid } => {
            let step = || format!("becoming user {name}");
            let name = CString::new(name.as_str())
                .map_err(|error| NetError::new(step(), error).coded("program-unstartable"))?;
            initgroups(&name, *gid).context(step)?;
            setgid(*gid).context(step)?;
            setuid(*uid).context(step)?;
        }
        Identity::Before(uid, gid) => {
            let step = || format!("becoming user {uid} again");
            unshare(CloneFlags::CLONE_NEWUSER).context(step)?;
            // Where the outer user namespace denies it already, it stays denied.
            let _ = fs::write("/proc/self/setgroups", "deny");
            fs::write("/proc/self/uid_map", format!("{uid} 0 1")).context(step)?;
            fs::write("/proc/self/gid_map", format!("{gid} 0 1")).context(step)?;
        }
    }
    Ok(())
}

/// A status as shells show it, if the process has ended.
fn shell_status(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, code) => Some(code),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
        _ => None,
    }
}

/// Collect one process whose state has changed, if there is one.
fn changed() -> Option<WaitStatus> {
    match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
        Ok(WaitStatus::StillAlive) | Err(_) => None,
        Ok(status) => Some(status),
    }
}
