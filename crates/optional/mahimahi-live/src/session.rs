//! Running path of mahimahi's programs.
//!
//! The program inside all shells has one end of a socket as its standard input, and reports through it that it runs. If
//! our end closes, the program ends, and then the shells, the innermost first. All processes run in an environment of
//! their own ([`ccgym_net::system::supervise`], root only): several paths can run side by side, and no process remains.

use std::fs::{self, File};
use std::io::{IoSliceMut, Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use ccgym_path::trace::DeliveryTrace;
use ccgym_path::LinkEvent;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::socket::{recvmsg, setsockopt, sockopt, ControlMessageOwned, MsgFlags, UnixCredentials};
use nix::unistd::{pipe2, Pid};

use super::diagnosis::understand;
use super::links::{begun_before, read_link_log, trace_start};
use super::remedy::{forward_in_every_shell, stand_in_for_iptables};
use ccgym_net::error::{Context, Error, Result};
use ccgym_net::system::endpoints::BASE_VARIABLE;
pub use ccgym_net::system::endpoints::INGRESS;
use ccgym_net::system::supervise::{mount_private, private_place, Group, Isolated, KeptOutput, Launch, User};
use ccgym_net::system::{sudo_caller, Namespace};
use ccgym_net::Clock;

/// Max time for the shells to end after the program inside.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Max time in which a shell with a wrong trace or queue starts and fails.
const EARLY_DEATH: Duration = Duration::from_millis(30);
/// Max time for a link to write the head of its log.
const HEAD_TIME: Duration = Duration::from_secs(1);
/// Time to read the last output of processes that have ended.
const PIPE_TIME: Duration = Duration::from_millis(20);
/// Output of mahimahi if dnsmasq took longer than its limit of 0.3 s: a sign of a busy machine.
const DNSMASQ_TIMEOUT: &str = "dnsmasq: did not start after";
/// First pause before the shells are started again; each later pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Max pause; if dnsmasq is missing, the error is returned after all pauses.
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// Max bytes of standard error that are kept.
const KEPT_TEXT: usize = 16 << 10;
/// User and group that own no files.
const NOBODY: (u32, u32) = (65534, 65534);

/// Program inside all shells: it reports, and then keeps them open. Senders enter its namespace.
const INNER: [&str; 3] = ["/bin/sh", "-c", "echo \"inside $MAHIMAHI_BASE\" >&0; exec cat >/dev/null"];

/// Words of one mahimahi command. `ccgym/config/mahimahi.py` writes them: the traces of a link come first.
pub type Shell = Vec<String>;

fn is_link(shell: &Shell) -> bool {
    shell.first().is_some_and(|program| program == "mm-link")
}

/// Return the command line that runs [`INNER`] inside all shells.
fn assemble(shells: &[Shell]) -> Vec<String> {
    let mut words = Vec::new();
    for shell in shells {
        words.extend_from_slice(shell);
        if is_link(shell) {
            // Without it, mm-link would search for its options among the words that follow.
            words.push("--".to_owned());
        }
    }
    words.extend(INNER.map(str::to_owned));
    words
}

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// Shells, the outermost first, each as its words.
    pub shells: Vec<Shell>,
    /// True to keep the logs of every mm-link.
    pub logs: bool,
    /// Time from the start of the traces to that of the flows, and duration of the flows, ms. Flows that start so long
    /// after [`Session::trace_starts`] find every trace at its beginning. None: traces are played unchanged.
    pub lead: Option<(u64, u64)>,
    /// Max time for all shells together to start.
    pub patience: Duration,
}

impl SessionSpec {
    /// Make settings without logs, with unchanged traces and 20 s to start.
    pub const fn new(shells: Vec<Shell>) -> Self {
        Self { shells, logs: false, lead: None, patience: Duration::from_secs(20) }
    }
}

/// Running path.
#[derive(Debug)]
pub struct Session {
    isolated: Isolated,
    control: UnixStream,
    said: KeptOutput,
    logs: Vec<LogFiles>,
    /// Network namespace of the receivers, outside the outermost shell.
    pub outside: Arc<Namespace>,
    /// Network namespace of the senders, inside the innermost shell.
    pub inside: Arc<Namespace>,
    /// Address of the outside (`MAHIMAHI_BASE`).
    pub base: Ipv4Addr,
    /// Outermost device, which has this address.
    pub outside_device: String,
    /// Process number of the program inside, in the namespace of this process.
    pub inner_pid: Pid,
}

/// Log files of one mm-link, which opens them by descriptor: uplink and downlink.
type LogFiles = [Arc<OwnedFd>; 2];

/// Logs of one mm-link.
#[derive(Clone, Debug, PartialEq)]
pub struct ShellLogs {
    /// Toward the receivers.
    pub up: Vec<LinkEvent>,
    /// Toward the senders.
    pub down: Vec<LinkEvent>,
}

impl Session {
    /// Start the shells and wait until the program inside them runs. On a busy machine this may need several starts.
    ///
    /// # Errors
    /// The shells do not start; the error has mahimahi's output and, if known, the remedy.
    pub fn start(spec: &SessionSpec) -> Result<Self> {
        let deadline = Instant::now() + spec.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            match Self::try_start(spec, deadline) {
                Err(error)
                    if error.found.contains(DNSMASQ_TIMEOUT)
                        && Instant::now() + pause < deadline
                        && pause <= LAST_PAUSE =>
                {
                    thread::sleep(pause);
                    pause *= 2;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_start(spec: &SessionSpec, deadline: Instant) -> Result<Self> {
        let mut shells = spec.shells.clone();
        let logs = if spec.logs { add_logs(&mut shells)? } else { Vec::new() };
        let outside = Namespace::new()?.shared();
        outside
            .run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?
            .context(|| "letting the new namespace forward packets".into())?;
        let prepare = prepare(&mut shells, spec.lead)?;
        let step = || "starting mahimahi".to_owned();
        let (control, theirs) = UnixStream::pair().context(step)?;
        setsockopt(&control, sockopt::PassCred, &true).context(step)?;
        let (reading, stderr) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).context(step)?;
        let said = KeptOutput::listen(reading, 0, KEPT_TEXT)?;
        let kept = logs.iter().flatten().cloned().collect();
        // This process may run inside another mahimahi, whose addresses are not those of this path.
        let environment =
            std::env::vars_os().filter(|(name, _)| name != BASE_VARIABLE && name != "MAHIMAHI_SHELL_PREFIX");
        let launch = Launch {
            words: assemble(&shells),
            environment: environment.collect(),
            streams: [OwnedFd::from(theirs).into(), Stdio::null(), stderr.into()],
            kept,
            network: Arc::clone(&outside),
            user: ordinary_user(),
            group: Group::Session,
            mask: None,
            prepare: Some(prepare),
        };
        let isolated = Isolated::start(launch).map_err(|error| {
            if error.place.starts_with("executing") {
                error.coded("program-unstartable").hint("install mahimahi (Debian, Ubuntu: the package mahimahi)")
            } else {
                error
            }
        })?;
        let (inner_pid, base) = match await_report(&control, deadline, spec.patience) {
            Ok(report) => report,
            Err(why) => {
                // The program inside then reads the end of its input.
                drop(control);
                let status = isolated.wait(Duration::from_millis(500));
                drop(isolated);
                thread::sleep(PIPE_TIME);
                let (code, found) = match (why, status) {
                    (Some(found), _) => ("no-answer", found),
                    (None, Some(status)) => ("program-failed", format!("it ended with {status}")),
                    (None, None) => ("program-failed", "it closed its input".to_owned()),
                };
                return Err(explain("starting mahimahi", &found, said.text().trim()).coded(code));
            }
        };
        let inside = Namespace::of_process(inner_pid)?.shared();
        let outside_device = outside.run(|| device_of(base))??;
        let session = Self { isolated, control, said, logs, outside, inside, base, outside_device, inner_pid };
        // The processes that carry packets start at the same time as the program inside, and can still fail.
        session.check_after(EARLY_DEATH)?;
        Ok(session)
    }

    /// Return the process that all others descend from.
    pub const fn first_pid(&self) -> Pid {
        self.isolated.pid()
    }

    /// Check that all shells still run.
    ///
    /// # Errors
    /// The shells ended; the error has mahimahi's output.
    pub fn check(&self) -> Result<()> {
        self.check_after(Duration::ZERO)
    }

    fn check_after(&self, patience: Duration) -> Result<()> {
        match self.isolated.wait(patience) {
            None => Ok(()),
            Some(status) => {
                thread::sleep(PIPE_TIME);
                let found = format!("it ended with {status}");
                Err(explain("the path of mahimahi's shells", &found, self.said.text().trim()))
            }
        }
    }

    /// Return the start of the traces of every mm-link by its logs, uplink and downlink, in milliseconds since the Unix
    /// epoch. The list is empty without logs.
    ///
    /// # Errors
    /// A link did not write the head of its log within a second.
    pub fn trace_starts(&self) -> Result<Vec<[u64; 2]>> {
        let deadline = Instant::now() + HEAD_TIME;
        let start = |fd: &OwnedFd| loop {
            match trace_start(&contents(fd)?) {
                Some(start) => return Ok(start),
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
                None => {
                    return Err(Error::of("log-malformed", "reading the log of mm-link", "no head within a second")
                        .expected("its base timestamp")
                        .hint("this machine is too busy for a run in real time"));
                }
            }
        };
        self.logs.iter().map(|files| Ok([start(&files[0])?, start(&files[1])?])).collect()
    }

    /// End all processes, and read the logs of every mm-link up to `end`, in the order of the command.
    ///
    /// # Errors
    /// A log is malformed. Shells that do not end by themselves are killed, without an error.
    pub fn stop(self, clock: &Clock, end: Timestamp) -> Result<Vec<ShellLogs>> {
        let Self { isolated, control, logs, .. } = self;
        // The program inside then reads the end of its input.
        drop(control);
        let _ = isolated.wait(END_TIMEOUT);
        drop(isolated);
        let read = |fd: &OwnedFd| read_link_log(&contents(fd)?, clock, end);
        logs.iter().map(|files| Ok(ShellLogs { up: read(&files[0])?, down: read(&files[1])? })).collect()
    }
}

/// Add log options to every mm-link; return the log files, which are in memory.
fn add_logs(shells: &mut [Shell]) -> Result<Vec<LogFiles>> {
    let mut all = Vec::new();
    for shell in shells.iter_mut().filter(|shell| is_link(shell)) {
        let mut add = |option: &str| -> Result<Arc<OwnedFd>> {
            let fd =
                memfd_create(c"mm-link.log", MFdFlags::MFD_CLOEXEC).context(|| "making a file in memory".into())?;
            // The descriptor has the same number in all shells.
            shell.push(format!("{option}=/proc/self/fd/{}", fd.as_raw_fd()));
            Ok(Arc::new(fd))
        };
        all.push([add("--uplink-log")?, add("--downlink-log")?]);
    }
    Ok(all)
}

/// Return a function that prepares the environment for mahimahi; `shells` then name copies of their traces in it.
fn prepare(shells: &mut [Shell], lead: Option<(u64, u64)>) -> Result<Box<dyn FnOnce() -> Result<()> + Send>> {
    let place = private_place(&std::env::current_dir().unwrap_or_default())?;
    // The user may have no permission to read the original traces.
    let mut copies = Vec::new();
    for shell in shells.iter_mut().filter(|shell| is_link(shell)) {
        let once = shell.iter().any(|word| word == "--once");
        for argument in shell.iter_mut().skip(1).take(2) {
            let mut contents = fs::read(&*argument).context(|| format!("reading trace {argument}"))?;
            let trace = DeliveryTrace::parse(&contents, argument)
                .map_err(|error| error.code_or("trace-malformed").within(format_args!("reading trace {argument}")))?;
            let at_beginning = |lead: u64| !once && lead % trace.period().as_millis() == 0;
            if let Some((lead, length)) = lead.filter(|&(lead, _)| !at_beginning(lead)) {
                contents = begun_before(&trace, once, lead, length);
            }
            let name = Path::new(argument).file_name().unwrap_or_default();
            let copy = place.join("traces").join(copies.len().to_string()).join(name);
            *argument = copy.display().to_string();
            copies.push((copy, contents));
        }
    }
    Ok(Box::new(move || {
        mount_private(place)?;
        stand_in_for_iptables(place)?;
        forward_in_every_shell(place)?;
        for (copy, contents) in copies {
            let step = || format!("copying a trace to {}", copy.display());
            copy.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&copy, contents)).context(step)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).context(step)?;
        }
        Ok(())
    }))
}

/// Return the user that mahimahi runs as: the one that called `sudo`, or `nobody`.
fn ordinary_user() -> User {
    // mahimahi accepts neither user 0 nor group 0.
    let caller = sudo_caller().filter(|(_, gid)| gid.as_raw() != 0);
    let (uid, gid) = caller.map_or(NOBODY, |(uid, gid)| (uid.as_raw(), gid.as_raw()));
    User::Other { uid, gid, groups: Vec::new() }
}

/// Make the error with mahimahi's output and, if known, its meaning.
fn explain(step: &str, found: &str, said: &str) -> Error {
    let found = if said.is_empty() { found.to_owned() } else { format!("{found}, and said:\n{said}") };
    let error = Error::of("program-failed", step, found);
    match understand(said) {
        Some(known) => error.expected(format!("otherwise than that {}", known.problem)).hint(known.remedy),
        None => error
            .expected("shells that carry packets to a program inside")
            .hint("`ccgym doctor` checks what mahimahi needs"),
    }
}

/// Return the device that has an address in this thread's namespace.
fn device_of(address: Ipv4Addr) -> Result<String> {
    let step = || format!("finding the device with address {address}");
    let mut all = getifaddrs().context(step)?;
    let found = all.find(|found| {
        found.address.as_ref().and_then(|a| a.as_sockaddr_in().map(nix::sys::socket::SockaddrIn::ip)) == Some(address)
    });
    found.map(|found| found.interface_name).ok_or_else(|| {
        Error::of("unknown-device", step(), "no device has it")
            .hint("is the outermost shell mahimahi's? Only it may set MAHIMAHI_BASE")
    })
}

fn contents(fd: &OwnedFd) -> Result<Vec<u8>> {
    let step = || "reading a log in memory".to_owned();
    let mut file = File::from(fd.try_clone().context(step)?);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).context(step)?;
    Ok(bytes)
}

/// Wait for the report of the program inside all shells; return its process number and the outside's address.
/// `patience`: time until the deadline, for errors. Error: the reason; `None` if the socket closed: the shells ended.
fn await_report(
    control: &UnixStream,
    deadline: Instant,
    patience: Duration,
) -> Result<(Pid, Ipv4Addr), Option<String>> {
    let failed = |errno: Errno| Some(errno.desc().to_owned());
    let mut line = Vec::new();
    let mut sender = None;
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(control.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => {
                return Err(Some(format!("it did not come up within {} s", patience.as_secs_f64())));
            }
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(failed(errno)),
        }
        // One byte at a time, to read this line only.
        let mut byte = [0];
        let mut room = cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(control.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::MSG_CMSG_CLOEXEC)
            .map_err(failed)?;
        if message.bytes == 0 {
            return Err(None);
        }
        // The kernel adds the sender's process number, translated to our namespace.
        for control in message.cmsgs().map_err(failed)? {
            if let ControlMessageOwned::ScmCredentials(credentials) = control {
                sender = Some(Pid::from_raw(credentials.pid()));
            }
        }
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    let base = line.strip_prefix("inside").and_then(|base| base.trim().parse().ok());
    match (sender, base) {
        (Some(pid), Some(base)) if pid.as_raw() > 0 => Ok((pid, base)),
        _ => Err(Some(format!("the program inside reported {line:?}"))),
    }
}
