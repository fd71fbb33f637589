//! Network namespaces.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use nix::errno::Errno;
use nix::mount::{mount, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use nix::unistd::{chdir, chroot, getcwd, Pid};

use super::interface::Interfaces;
use crate::error::{Context, Error, Result};

/// Network namespace, held by a descriptor. It vanishes when no descriptor and no thread holds it.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

/// TCP settings: (path below `/proc/sys/net`, value). Windows may grow with the largest paths that can be emulated.
/// A flow must not start with the metrics of an earlier one.
const TCP_SETTINGS: [(&str, &str); 3] = [
    ("ipv4/tcp_rmem", "4096 131072 67108864"),
    ("ipv4/tcp_wmem", "4096 65536 67108864"),
    ("ipv4/tcp_no_metrics_save", "1"),
];
/// Further settings of a namespace made here: IPv6 would send packets of its own over the path.
const OWN_SETTINGS: [(&str, &str); 4] = [
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
];

/// Change settings of this thread's namespace. If the kernel lacks a setting or `/proc/sys` is read-only, the default
/// stays, which works too.
fn apply(settings: &[(&str, &str)]) {
    for (setting, value) in settings {
        let _ = fs::write(format!("/proc/sys/net/{setting}"), value);
    }
}

impl Namespace {
    /// Return the namespace of this thread.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        Self::open("/proc/thread-self/ns/net")
    }

    /// Return the namespace of a process, with our TCP settings.
    pub fn of_process(pid: Pid) -> Result<Self> {
        let namespace = Self::open(&format!("/proc/{pid}/ns/net"))?;
        namespace.run(|| apply(&TCP_SETTINGS))?;
        Ok(namespace)
    }

    fn open(path: &str) -> Result<Self> {
        let file = File::open(path).context(|| format!("opening {path}"))?;
        Ok(Self { fd: file.into() })
    }

    /// Make a namespace: loopback up, no IPv6, room for large windows. This thread stays in its own.
    ///
    /// # Errors
    /// This process may not make namespaces: see [`super::become_capable`].
    pub fn new() -> Result<Self> {
        in_helper(|| {
            let step = || "making a network namespace".to_owned();
            unshare(CloneFlags::CLONE_NEWNET).context(step).map_err(|error| {
                error
                    .hint("run as root, or enter a user namespace first (`ccgym doctor` says what this machine allows)")
            })?;
            apply(&TCP_SETTINGS);
            apply(&OWN_SETTINGS);
            Interfaces::open()?.bring_up("lo")?;
            Self::current()
        })?
    }

    /// Move this thread into the namespace permanently.
    ///
    /// # Errors
    /// This process has no privileges over the namespace.
    pub fn enter(&self) -> Result<()> {
        let entered =
            setns(self.fd.as_fd(), CloneFlags::CLONE_NEWNET).context(|| "entering a network namespace".into());
        entered.map_err(|error| error.hint("an ordinary user may enter only the namespaces that it made: run as root"))
    }

    /// Run `f` in the namespace, in a new thread, and wait for it.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        in_helper(|| self.enter().map(|()| f()))?
    }

    /// Return the descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Return it as a shared pointer.
    #[must_use]
    pub fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }
}

/// Give this thread and its children mounts that no other process sees. With `MS_SLAVE` in `flag` they also get later
/// mounts of the machine, with `MS_PRIVATE` they do not.
pub(super) fn own_mounts(flag: MsFlags) -> nix::Result<()> {
    let none = None::<&str>;
    let set = |place: &str, flags| mount(none, place, none, flags, none);
    unshare(CloneFlags::CLONE_NEWNS)?;
    match set("/", MsFlags::MS_REC | flag) {
        // The root of a chroot is often not a mount, and the mount around it cannot be named: mount a copy of it on
        // /proc, which is a mount and can be made private.
        Err(Errno::EINVAL) => {
            let here = getcwd();
            set("/proc", MsFlags::MS_PRIVATE)?;
            mount(Some("/"), "/proc", none, MsFlags::MS_BIND | MsFlags::MS_REC, none)?;
            set("/proc", MsFlags::MS_REC | flag)?;
            chdir("/proc")?;
            chroot(".")?;
            let _ = here.and_then(|here| chdir(&here));
            Ok(())
        }
        outcome => outcome,
    }
}

/// Run `f` in a new thread: threads cannot leave a namespace that they have entered.
fn in_helper<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R> {
    let step = || "starting a helper thread".to_owned();
    thread::scope(|scope| {
        let helper = thread::Builder::new().name("ccgym-namespace".into()).spawn_scoped(scope, f).context(step)?;
        helper
            .join()
            .map_err(|_| Error::of("run-failed", "working in a network namespace", "the helper thread panicked"))
    })
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks.
mod tests {
    use super::*;
    use crate::system::capability::present;

    #[test]
    fn a_new_namespace_has_only_loopback() {
        if present().is_none() {
            eprintln!("SKIPPED: may not make namespaces");
            return;
        }
        let namespace = Namespace::new().unwrap();
        let devices = namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        let names: Vec<_> = devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
        assert!(names.contains(&"lo"), "{devices}");
        assert!(!names.iter().any(|name| name.starts_with("eth") || name.starts_with("ccgym")), "{devices}");
        let bound = namespace.run(|| std::net::UdpSocket::bind("127.0.0.1:0").is_ok()).unwrap();
        assert!(bound, "loopback is down");
        // This thread has not moved.
        let here = fs::read_link("/proc/thread-self/ns/net").unwrap();
        let there = namespace.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
        assert_ne!(here, there);
    }
}
