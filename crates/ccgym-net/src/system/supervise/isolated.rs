//! Program in an environment of its own, of which nothing remains.
//!
//! The program has its own network namespace, mounts and processes. Its processes run in a PID namespace. If the thread
//! that waits for the first of them ends, also because this process is killed, the kernel kills them all. Devices and
//! rules end with the network namespace, files with the mounts.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::wait::{waitid, Id, WaitPidFlag};
use nix::unistd::{pipe2, read, Pid};

use super::init::{start_under_init, Group, Start, User, ASK, RESUME};
use crate::error::{Context, Error, Result};
use crate::system::namespace::own_mounts;
use crate::system::Namespace;

/// Program to start, and its environment.
pub struct Launch {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard input, output and error.
    pub streams: [Stdio; 3],
    /// Descriptors that the program inherits under their numbers here.
    pub kept: Vec<Arc<OwnedFd>>,
    /// Network namespace.
    pub network: Arc<Namespace>,
    /// User that the program runs as.
    pub user: User,
    /// Processes with which it gets signals.
    pub group: Group,
    /// Signals that are blocked for it; `None`: as in this thread.
    pub mask: Option<SigSet>,
    /// Called before the program starts, in a thread that is in the namespaces, to mount files. `None`: only `/proc` is
    /// its own, and has the processes of its namespace, if the kernel permits this.
    pub prepare: Option<Box<dyn FnOnce() -> Result<()> + Send>>,
}

/// Program that was started.
#[derive(Debug)]
pub struct Isolated {
    shared: Arc<Shared>,
    pid: Pid,
    stops: OwnedFd,
    keeper: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Set before the process is reaped: while this is `None`, the process number belongs to it.
    status: Mutex<Option<ExitStatus>>,
    ended: Condvar,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Isolated {
    /// Start a program. This requires root, or a user namespace.
    ///
    /// # Errors
    /// The environment cannot be made, or the program cannot be executed.
    pub fn start(launch: Launch) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let (told, started) = mpsc::channel();
        let step = || "starting a program in isolation".to_owned();
        let (stops, theirs) = pipe2(OFlag::O_CLOEXEC).context(step)?;
        let keep = {
            let shared = Arc::clone(&shared);
            move || match spawn(launch, theirs) {
                Ok(child) => {
                    let _ = told.send(Ok(child.id()));
                    keep(child, &shared);
                }
                Err(error) => drop(told.send(Err(error))),
            }
        };
        // The thread lives as long as the program: the kernel kills a first process with the thread that started it.
        let keeper = thread::Builder::new().name("ccgym-isolation".into()).spawn(keep).context(step)?;
        match started.recv() {
            Ok(Ok(id)) => Ok(Self { shared, pid: Pid::from_raw(id as i32), stops, keeper: Some(keeper) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::of("run-failed", step(), "the thread that starts it panicked")),
        }
    }

    /// Return the first process of the PID namespace.
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Wait for the end; `None` if it does not come within `patience`.
    pub fn wait(&self, patience: Duration) -> Option<ExitStatus> {
        let status = self.shared.status();
        let waited = self.shared.ended.wait_timeout_while(status, patience, |status| status.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Return a descriptor that becomes readable when the program stops or ends; see [`Isolated::has_stopped`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stops.as_fd()
    }

    /// Wait until the program stops, as with Ctrl-Z, or ends; true if it stopped.
    pub fn has_stopped(&self) -> bool {
        read(&self.stops, &mut [0]) == Ok(1)
    }

    /// Send SIGTERM to the program's process group. The first process then ends when no process is left.
    pub fn terminate(&self) {
        self.tell(ASK);
    }

    /// Give the program the terminal, and let it continue.
    pub fn resume(&self) {
        self.tell(RESUME);
    }

    /// Forward a signal to the program; SIGKILL ends all processes.
    pub fn signal(&self, signal: Signal) {
        self.tell(signal as i32);
    }

    fn tell(&self, signal: i32) {
        let status = self.shared.status();
        if let (None, Ok(signal)) = (*status, Signal::try_from(signal)) {
            // It has not been reaped, so the number belongs to it. A process that cannot be signaled has ended.
            let _ = kill(self.pid, signal);
        }
    }

    /// Kill all processes in the PID namespace, and wait for their end.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Make the environment around this thread and start the program in it.
fn spawn(launch: Launch, stops: OwnedFd) -> Result<Child> {
    let (program, arguments) = launch
        .words
        .split_first()
        .ok_or_else(|| Error::of("argument-missing", "starting a program in isolation", "no words"))?;
    let mut command = Command::new(program);
    let [stdin, stdout, stderr] = launch.streams;
    command.args(arguments).env_clear().envs(launch.environment).stdin(stdin).stdout(stdout).stderr(stderr);
    let kept = launch.kept.iter().map(|fd| fd.as_raw_fd()).collect();
    launch.network.enter()?;
    let own_proc = match launch.prepare {
        None => own_mounts(MsFlags::MS_SLAVE).is_ok(),
        Some(prepare) => {
            own_mounts(MsFlags::MS_PRIVATE).context(|| "making a namespace for mounts".into()).map_err(needs_root)?;
            prepare()?;
            false
        }
    };
    // Last: the next process started is the first of the namespace, and no process can start after its end.
    unshare(CloneFlags::CLONE_NEWPID).context(|| "making a namespace for processes".into()).map_err(needs_root)?;
    let Launch { user, group, mask, .. } = launch;
    start_under_init(&mut command, Start { user, group, own_proc, kept, mask, stops });
    command.spawn().map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let code = if missing { "program-missing" } else { "program-unstartable" };
        Error::of(code, format!("executing {program}"), error)
    })
}

fn needs_root(error: Error) -> Error {
    error.hint("this needs root with CAP_SYS_ADMIN (in a container: --privileged)")
}

/// Wait for the end of the child.
fn keep(mut child: Child, shared: &Shared) {
    let id = Pid::from_raw(child.id() as i32);
    while waitid(Id::Pid(id), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    let mut status = shared.status();
    *status = Some(child.wait().unwrap_or_default());
    drop(status);
    shared.ended.notify_all();
}

/// Choose a directory of the machine that the environment may hide: `needed` is not below it.
pub fn private_place(needed: &Path) -> Result<&'static Path> {
    // Every Linux system has them, and no program needs them to run.
    let places = ["/boot", "/media", "/srv", "/mnt", "/opt"].map(Path::new);
    let free = |place: &&Path| {
        let real = fs::symlink_metadata(place).is_ok_and(|found| found.is_dir());
        real && !needed.starts_with(place)
    };
    places.into_iter().find(free).ok_or_else(|| {
        let found = "none of /boot, /media, /srv, /mnt, /opt will do";
        Error::of("folder-missing", "finding a place for private files", found)
            .hint("make one of these directories; nothing is ever written into it")
    })
}

/// Mount a private file system on the directory, for this environment only. Call it from [`Launch::prepare`].
pub fn mount_private(place: &Path) -> Result<()> {
    mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755,size=256m"))
        .context(|| format!("mounting private files at {}", place.display()))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks and findings.
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    use nix::unistd::geteuid;

    use super::*;

    fn launch(script: &str) -> (Launch, UnixStream, UnixStream) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let (text, stderr) = UnixStream::pair().unwrap();
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let launch = Launch {
            words,
            environment: std::env::vars_os().collect(),
            streams: [OwnedFd::from(theirs).into(), Stdio::null(), OwnedFd::from(stderr).into()],
            kept: Vec::new(),
            network: Namespace::new().unwrap().shared(),
            user: User::Other { uid: 65534, gid: 65534, groups: Vec::new() },
            group: Group::Session,
            mask: None,
            prepare: Some(Box::new(|| Ok(()))),
        };
        (launch, text, ours)
    }

    fn root() -> bool {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: not root");
        }
        geteuid().is_root()
    }

    fn gone(pid: i32) -> bool {
        !Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_program_is_isolated_and_unprivileged_and_returns_its_status() {
        if !root() {
            return;
        }
        let (launch, mut text, _ours) = launch("(id -u; ls /sys/class/net >/dev/null; echo $$) >&2; exit 7");
        let isolated = Isolated::start(launch).unwrap();
        assert_eq!(isolated.wait(Duration::from_secs(5)).unwrap().code(), Some(7));
        let mut said = String::new();
        text.read_to_string(&mut said).unwrap();
        // The first process is number 1.
        assert_eq!(said, "65534\n2\n");
    }

    #[test]
    fn mounts_are_private_even_in_a_chroot() {
        if !root() {
            return;
        }
        // In a thread whose root is a folder and not a mount: the machine's files are bound below it.
        let folders = ["", "mnt", "mnt/inner", "bin", "usr", "lib", "lib64", "etc", "proc", "sys", "dev"];
        let root = std::env::temp_dir().join(format!("ccgym-test-chroot-{}", std::process::id()));
        let began = || -> Result<(Isolated, UnixStream, UnixStream)> {
            let step = || "making a chroot".to_owned();
            crate::system::namespace::own_mounts(MsFlags::MS_PRIVATE).context(step)?;
            for folder in folders {
                let (real, bound) = (Path::new("/").join(folder), root.join(folder));
                fs::create_dir_all(&bound).context(step)?;
                if !folder.is_empty() && !folder.starts_with("mnt") && real.is_dir() {
                    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
                    mount(Some(&real), &bound, None::<&Path>, flags, None::<&Path>).context(step)?;
                }
            }
            nix::unistd::chroot(&root).context(step)?;
            nix::unistd::chdir("/mnt").context(step)?;
            let (mut launch, text, ours) = launch("(pwd; ls /mnt; echo $$) >&2");
            launch.prepare = Some(Box::new(|| mount_private(Path::new("/mnt/inner"))));
            Ok((Isolated::start(launch)?, text, ours))
        };
        let said = thread::scope(|scope| {
            let run = || {
                let (isolated, mut text, _ours) = began().unwrap();
                let mut said = String::new();
                text.read_to_string(&mut said).unwrap();
                drop(isolated);
                // Mounts of the program are not visible here.
                assert!(fs::read_to_string("/proc/thread-self/mountinfo")
                    .unwrap()
                    .lines()
                    .all(|l| !l.contains("inner")));
                said
            };
            scope.spawn(run).join().unwrap()
        });
        // Remove folder by folder: files of a mount that may be left stay.
        for folder in folders.iter().rev() {
            let _ = fs::remove_dir(root.join(folder));
        }
        assert_eq!(said, "/mnt\ninner\n2\n");
    }

    #[test]
    fn killing_reaches_detached_processes() {
        if !root() {
            return;
        }
        let script = "setsid sh -c 'read a b < /proc/self/stat; echo $a >&2; exec sleep 1000' & wait";
        let (launch, text, _ours) = launch(script);
        let mut isolated = Isolated::start(launch).unwrap();
        let mut line = String::new();
        BufReader::new(text).read_line(&mut line).unwrap();
        let runaway: i32 = line.trim().parse().unwrap();
        let first = isolated.pid().as_raw();
        assert!(!gone(runaway) && !gone(first));
        isolated.kill();
        assert!(gone(runaway) && gone(first));
    }

    #[test]
    fn a_missing_program_is_an_error_and_others_end_with_their_input() {
        if !root() {
            return;
        }
        let (mut launch, _text, _ours) = launch("");
        launch.words = vec!["/nowhere/program".into()];
        let error = Isolated::start(launch).unwrap_err();
        assert_eq!((&*error.code, error.place.as_str()), ("program-missing", "executing /nowhere/program"));
        let (launch, _text, ours) = self::launch("cat; exit 3");
        let isolated = Isolated::start(launch).unwrap();
        assert_eq!(isolated.wait(Duration::from_millis(50)), None);
        drop(ours);
        assert_eq!(isolated.wait(Duration::from_secs(5)).unwrap().code(), Some(3));
    }
}
