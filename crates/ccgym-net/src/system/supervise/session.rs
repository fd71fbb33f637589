//! What runs at the ends of a path: processes in a PID namespace of their own, which none of them survives.
//!
//! ```text
//! this process ── init (process 1 of the namespace) ─┬─ the command (inside)
//!                                                    └─ its peer (outside)
//! ```
//!
//! When init ends the kernel kills everything in the namespace, also daemons that have left their session. Init ends
//! when the command has ended, when it is told to, and when this process is gone: the kernel then sends it SIGKILL,
//! and the socket between the two closes. Init is forked while this process has a single thread; threads come later.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sched::CloneFlags;
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{recv, send, socketpair, AddressFamily, MsgFlags, SockFlag, SockType};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{Gid, Pid, Uid};
use serde::{Deserialize, Serialize};

use super::fork::{exit, fork, Forked};
use super::session_init;
use crate::error::{Context, NetError, Result};
use crate::system::Namespace;

/// Where the output of a program goes.
#[derive(Debug)]
pub enum Output {
    /// Where ours goes; its input is ours too.
    Ours,
    /// Both to our standard error; no input.
    Stderr,
    /// Both into a file; no input.
    File(File),
}

/// A program to start.
#[derive(Debug)]
pub struct Program {
    /// Its words; the first is looked up in `PATH`.
    pub words: Vec<String>,
    /// Its environment, `NAME=value`.
    pub environment: Vec<std::ffi::CString>,
    /// Where its sockets live.
    pub namespace: Arc<Namespace>,
    /// Where its output goes.
    pub output: Output,
}

/// The user that programs run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// As this process.
    Ours,
    /// As another user of the machine, with that user's groups.
    User {
        /// Login name.
        name: String,
        /// User.
        uid: Uid,
        /// Main group.
        gid: Gid,
    },
    /// As the user that this process had before it entered a user namespace, in which it appears as root.
    Before(Uid, Gid),
}

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec {
    /// Its end is the end of all.
    pub command: Program,
    /// What runs at the other end, if anything.
    pub peer: Option<Program>,
    /// The user that both run as.
    pub identity: Identity,
    /// Whether the command gets the terminal: it then has a process group of its own, in the foreground.
    pub terminal: bool,
}

/// What init is told. Sent as JSON, one per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start the command.
    Begin,
    /// Pass a signal on to the command.
    Signal(i32),
    /// The command may go on after a stop; give it the terminal again.
    Resume,
    /// Everything shall end: SIGTERM first, SIGKILL a second later.
    End,
}

/// What init tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// Everything is ready for the command; the peer runs.
    Ready,
    /// Something could not be started. Init ends.
    Failed(NetError),
    /// The command was stopped by a signal, as with Ctrl-Z.
    Stopped,
    /// The command ended: its status as a shell shows it, 128 + n after signal n. Init ends soon.
    Ended(i32),
    /// The peer ended by itself, with this status.
    PeerEnded(i32),
    /// Init is gone, and everything with it.
    Gone,
}

/// The processes at the ends of a path. Dropped, they are killed.
#[derive(Debug)]
pub struct Children {
    init: Pid,
    socket: OwnedFd,
    gone: bool,
}

impl Children {
    /// Fork init and start the peer. The command starts with [`Order::Begin`].
    ///
    /// Call this while the process has a single thread, with the signals blocked that it will read itself; `mask` is
    /// what was blocked before, and will be for the programs.
    ///
    /// # Errors
    /// If the process has several threads, or the kernel gives no PID namespace. What init cannot start it reports.
    pub fn prepare(spec: ProcessSpec, mask: &nix::sys::signal::SigSet) -> Result<Self> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
            .context(|| "making a socket to init".into())?;
        match fork(CloneFlags::CLONE_NEWPID)? {
            Forked::Parent(init) => Ok(Self { init, socket: ours, gone: false }),
            Forked::Child => {
                drop(ours);
                let run = std::panic::AssertUnwindSafe(|| session_init::run(spec, theirs, mask));
                exit(i32::from(std::panic::catch_unwind(run).is_err()))
            }
        }
    }

    /// Becomes readable when there is a report.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next report, waited for.
    pub fn report(&mut self) -> Result<Report> {
        if self.gone {
            return Ok(Report::Gone);
        }
        match receive(&self.socket).context(|| "listening to init".into())? {
            Some(report) => Ok(report),
            None => {
                self.gone = true;
                Ok(Report::Gone)
            }
        }
    }

    /// Wait until all processes are gone.
    pub fn wait(mut self) {
        while !matches!(self.report(), Ok(Report::Gone) | Err(_)) {}
        self.reap();
    }

    /// Tell init what to do.
    pub fn order(&self, order: Order) {
        // Init may have ended; the next report says so.
        let _ = transmit(&self.socket, &order);
    }

    fn reap(&mut self) {
        while waitpid(self.init, None) == Err(Errno::EINTR) {}
        self.gone = true;
        self.init = Pid::from_raw(0);
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        if self.init.as_raw() > 0 {
            // Not yet waited for, so the number is still its own.
            let _ = kill(self.init, Signal::SIGKILL);
            self.reap();
        }
    }
}

/// Send one message.
pub(super) fn transmit(socket: &OwnedFd, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    loop {
        match send(socket.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL) {
            Err(Errno::EINTR) => {}
            sent => return sent.map(|_| ()).map_err(io::Error::from),
        }
    }
}

/// Wait for one message; none when the other side is gone.
pub(super) fn receive<T: for<'a> Deserialize<'a>>(socket: &OwnedFd) -> io::Result<Option<T>> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) | Err(Errno::ECONNRESET) => return Ok(None),
            Ok(length) => return Ok(Some(serde_json::from_slice(&buffer[..length])?)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Whether one of the descriptors is readable (or closed) within `timeout`.
pub(crate) fn readable<const N: usize>(fds: [BorrowedFd<'_>; N], timeout: PollTimeout) -> [bool; N] {
    let mut polled = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut polled, timeout) {
        Ok(_) => polled.map(|fd| fd.any().unwrap_or(true)),
        Err(_) => [false; N],
    }
}

/// A status as shells show it, if the process has ended.
pub(super) fn shell_status(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, code) => Some(code),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
        _ => None,
    }
}

/// Collect one process whose state has changed, if there is one.
pub(super) fn changed() -> Option<WaitStatus> {
    match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
        Ok(WaitStatus::StillAlive) | Err(_) => None,
        Ok(status) => Some(status),
    }
}
