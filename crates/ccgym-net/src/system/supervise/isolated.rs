//! A program in an environment of its own, of which nothing remains.
//!
//! Network namespace, mounts and processes are the program's own. Its processes live in a PID namespace whose first
//! process dies with the thread here that waits for it, thus also when this process is killed, and takes all others
//! along; devices and rules go with the network namespace, files with the mounts.

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

/// What to start, and in which environment.
pub struct Launch {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Standard input, output and error.
    pub streams: [Stdio; 3],
    /// Descriptors that the program finds under the numbers that they have here.
    pub kept: Vec<Arc<OwnedFd>>,
    /// Its network namespace.
    pub network: Arc<Namespace>,
    /// The user that the program runs as.
    pub user: User,
    /// With which processes it gets signals.
    pub group: Group,
    /// Signals that are blocked for it; `None`: as in this thread.
    pub mask: Option<SigSet>,
    /// Called before the program starts, in a thread that has the namespaces: mounts. `None`: `/proc` alone is its own and
    /// shows it the processes of its namespace, where that is allowed.
    pub prepare: Option<Box<dyn FnOnce() -> Result<()> + Send>>,
}

/// A program that was started.
#[derive(Debug)]
pub struct Isolated {
    shared: Arc<Shared>,
    pid: Pid,
    stops: OwnedFd,
    keeper: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Set before the process is reaped: its number means it as long as this is `None`.
    status: Mutex<Option<ExitStatus>>,
    ended: Condvar,
}

impl Shared {
    fn status(&self) -> MutexGuard<'_, Option<ExitStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Isolated {
    /// Start a program. This takes root, or a user namespace.
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
        // The thread lives as long as the program: a first process dies with the thread that started it.
        let keeper = thread::Builder::new().name("ccgym-isolation".into()).spawn(keep).context(step)?;
        match started.recv() {
            Ok(Ok(id)) => Ok(Self { shared, pid: Pid::from_raw(id as i32), stops, keeper: Some(keeper) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::of("run-failed", step(), "the thread that starts it panicked")),
        }
    }

    /// The first process of the PID namespace.
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended; `None` if it did not within `patience`.
    pub fn wait(&self, patience: Duration) -> Option<ExitStatus> {
        let status = self.shared.status();
        let waited = self.shared.ended.wait_timeout_while(status, patience, |status| status.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Becomes readable when the program stops or ends; [`Isolated::has_stopped`] then tells which.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.stops.as_fd()
    }

    /// Whether the program has stopped once more, as with Ctrl-Z; waits until it has or ends.
    pub fn has_stopped(&self) -> bool {
        read(&self.stops, &mut [0]) == Ok(1)
    }

    /// Send SIGTERM to the program's process group. The first process then ends when no process is left.
    pub fn terminate(&self) {
        self.tell(ASK);
    }

    /// Give the program the terminal, and let it go on.
    pub fn resume(&self) {
        self.tell(RESUME);
    }

    /// Pass a signal on to the program; SIGKILL ends all.
    pub fn signal(&self, signal: Signal) {
        self.tell(signal as i32);
    }

    fn tell(&self, signal: i32) {
        let status = self.shared.status();
        if let (None, Ok(signal)) = (*status, Signal::try_from(signal)) {
            // It has not been reaped, so the number is its own. A process that cannot be signaled has ended.
            let _ = kill(self.pid, signal);
        }
    }

    /// Kill everything in the PID namespace, and wait for it.
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
    // Last: the first process started after it is the first of the namespace, and nothing starts after its end.
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

/// A directory of the machine that an environment of its own may hide: `needed` does not lead through it.
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

/// Let the directory hold files that only this environment sees. To be called by [`Launch::prepare`].
pub fn mount_private(place: &Path) -> Result<()> {
    mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755,size=256m"))
        .context(|| format!("mounting private files at {}", place.display()))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Says what is skipped or found.
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
    fn a_program_is_alone_and_ordinary_and_its_status_comes_back() {
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
    fn mounts_are_its_own_also_in_a_chroot() {
        if !root() {
            return;
        }
        // In a thread whose root is a folder, and no mount: the machine's own files, bound beneath it.
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
                // What was mounted for the program is not here.
                assert!(fs::read_to_string("/proc/thread-self/mountinfo")
                    .unwrap()
                    .lines()
                    .all(|l| !l.contains("inner")));
                said
            };
            scope.spawn(run).join().unwrap()
        });
        // Folder by folder: whatever may still be mounted there stays.
        for folder in folders.iter().rev() {
            let _ = fs::remove_dir(root.join(folder));
        }
        assert_eq!(said, "/mnt\ninner\n2\n");
    }

    #[test]
    fn killing_reaches_what_ran_away() {
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
    fn a_program_that_does_not_exist_is_an_error_and_others_end_with_their_input() {
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
