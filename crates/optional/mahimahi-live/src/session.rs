//! A path made by mahimahi's programs, while it stands.
//!
//! The program inside all shells holds one end of a socket as its standard input. Through it it says that it runs, and
//! when our end closes it ends; with it end the shells, the innermost first. All of it lives in an environment of its own
//! ([`ccgym_net::system::supervise`]), which takes root, so that several run side by side and nothing remains.

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

/// How long the shells may take to end after the program inside did.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// A shell whose trace or queue is wrong comes up and dies within this time.
const EARLY_DEATH: Duration = Duration::from_millis(30);
/// A link writes the head of its log within this time.
const HEAD_TIME: Duration = Duration::from_secs(1);
/// What ended processes wrote is read within this time.
const PIPE_TIME: Duration = Duration::from_millis(20);
/// What mahimahi says where dnsmasq took longer than the 0.3 s that it grants: a sign of a busy machine.
const DNSMASQ_TIMEOUT: &str = "dnsmasq: did not start after";
/// Then the shells are started again, after pauses that double.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The last pause; where there is no dnsmasq, the error comes after all of them.
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// What is kept of standard error.
const KEPT_TEXT: usize = 16 << 10;
/// The user and group that own no files.
const NOBODY: (u32, u32) = (65534, 65534);

/// What runs inside all shells: it reports and then keeps them open. Senders enter its namespace.
const INNER: [&str; 3] = ["/bin/sh", "-c", "echo \"inside $MAHIMAHI_BASE\" >&0; exec cat >/dev/null"];

/// The words of one of mahimahi's programs. `ccgym/config/mahimahi.py` writes them: a link's traces come first.
pub type Shell = Vec<String>;

fn is_link(shell: &Shell) -> bool {
    shell.first().is_some_and(|program| program == "mm-link")
}

/// The command line that runs [`INNER`] inside all shells.
fn assemble(shells: &[Shell]) -> Vec<String> {
    let mut words = Vec::new();
    for shell in shells {
        words.extend_from_slice(shell);
        if is_link(shell) {
            // Without this it would look for its options among the words that follow.
            words.push("--".to_owned());
        }
    }
    words.extend(INNER.map(str::to_owned));
    words
}

/// What to start.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// The shells, the outermost first, each as its words.
    pub shells: Vec<Shell>,
    /// Keep the logs of every mm-link.
    pub logs: bool,
    /// How long before the flows the traces begin to play, and how long the flows last, ms: they then find every trace at
    /// its beginning, if they start so long after [`Session::trace_starts`]. None: traces are played as they are.
    pub lead: Option<(u64, u64)>,
    /// How long all shells together may take to start.
    pub patience: Duration,
}

impl SessionSpec {
    /// The shells without logs and with their traces as they are, and twenty seconds to start.
    pub const fn new(shells: Vec<Shell>) -> Self {
        Self { shells, logs: false, lead: None, patience: Duration::from_secs(20) }
    }
}

/// A path that stands.
#[derive(Debug)]
pub struct Session {
    isolated: Isolated,
    control: UnixStream,
    said: KeptOutput,
    logs: Vec<LogFiles>,
    /// The receivers' network namespace, outside the outermost shell.
    pub outside: Arc<Namespace>,
    /// The senders' network namespace, inside the innermost shell.
    pub inside: Arc<Namespace>,
    /// The address of the outside (`MAHIMAHI_BASE`).
    pub base: Ipv4Addr,
    /// The outermost device, which has that address.
    pub outside_device: String,
    /// The program inside, as this process knows it.
    pub inner_pid: Pid,
}

/// The files that a mm-link writes, known to it by their descriptors: those of the uplink and of the downlink.
type LogFiles = [Arc<OwnedFd>; 2];

/// What one mm-link logged.
#[derive(Clone, Debug, PartialEq)]
pub struct ShellLogs {
    /// Toward the receivers.
    pub up: Vec<LinkEvent>,
    /// Toward the senders.
    pub down: Vec<LinkEvent>,
}

impl Session {
    /// Start the shells, and wait until the program inside them runs. On a busy machine several starts may be needed.
    ///
    /// # Errors
    /// What keeps them from it, with mahimahi's own words and the remedy where it is known.
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
        // Around ours, another mahimahi may stand: its addresses are not those of this path.
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
                // The program inside sees the end of its input.
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
        // The processes that carry packets begin at the same time as the program inside, and may yet fail.
        session.check_after(EARLY_DEATH)?;
        Ok(session)
    }

    /// The process under which all others are.
    pub const fn first_pid(&self) -> Pid {
        self.isolated.pid()
    }

    /// Whether all shells still stand.
    ///
    /// # Errors
    /// If they do not: what mahimahi said.
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

    /// When the traces of every mm-link began to play by its logs, uplink and downlink, in milliseconds since the Unix
    /// epoch. Without logs there is nothing to tell.
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

    /// End everything, and read the logs of every mm-link of the command, in its order, up to `end`.
    ///
    /// # Errors
    /// If a log is not one. Whether the shells end by themselves does not matter: they are ended.
    pub fn stop(self, clock: &Clock, end: Timestamp) -> Result<Vec<ShellLogs>> {
        let Self { isolated, control, logs, .. } = self;
        // The program inside sees the end of its input.
        drop(control);
        let _ = isolated.wait(END_TIMEOUT);
        drop(isolated);
        let read = |fd: &OwnedFd| read_link_log(&contents(fd)?, clock, end);
        logs.iter().map(|files| Ok(ShellLogs { up: read(&files[0])?, down: read(&files[1])? })).collect()
    }
}

/// Files in memory for the logs of every mm-link.
fn add_logs(shells: &mut [Shell]) -> Result<Vec<LogFiles>> {
    let mut all = Vec::new();
    for shell in shells.iter_mut().filter(|shell| is_link(shell)) {
        let mut add = |option: &str| -> Result<Arc<OwnedFd>> {
            let fd =
                memfd_create(c"mm-link.log", MFdFlags::MFD_CLOEXEC).context(|| "making a file in memory".into())?;
            // The number stays the same through all shells.
            shell.push(format!("{option}=/proc/self/fd/{}", fd.as_raw_fd()));
            Ok(Arc::new(fd))
        };
        all.push([add("--uplink-log")?, add("--downlink-log")?]);
    }
    Ok(all)
}

/// What makes an environment as mahimahi wants it. The shells then name copies of their traces that it contains.
fn prepare(shells: &mut [Shell], lead: Option<(u64, u64)>) -> Result<Box<dyn FnOnce() -> Result<()> + Send>> {
    let place = private_place(&std::env::current_dir().unwrap_or_default())?;
    // The user may not be able to read the traces where they lie.
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

/// The user that mahimahi runs as: the one that called `sudo`, or `nobody`.
fn ordinary_user() -> User {
    // mahimahi wants neither to be 0.
    let caller = sudo_caller().filter(|(_, gid)| gid.as_raw() != 0);
    let (uid, gid) = caller.map_or(NOBODY, |(uid, gid)| (uid.as_raw(), gid.as_raw()));
    User::Other { uid, gid, groups: Vec::new() }
}

/// What mahimahi said, and what it means.
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

/// The device of this thread's namespace that has an address.
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

/// How the program inside all shells says that it runs: its process number, and the outside's address. `patience`: the time that
/// the deadline granted. The error is why no report came; `None` if the socket closed: the shells ended.
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
        // One byte at a time: what follows the line is for others.
        let mut byte = [0];
        let mut room = cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(control.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::MSG_CMSG_CLOEXEC)
            .map_err(failed)?;
        if message.bytes == 0 {
            return Err(None);
        }
        // The kernel says who wrote it, by the number that we know it by.
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
