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

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sched::CloneFlags;
use nix::sys::signal::{kill, Signal};
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::fork::{exit, fork, Forked};
use super::orders::{receive, transmit, Order, ProcessSpec, Report};
use super::session_init;
use crate::error::{Context, Result};

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
