//! Forking, which Rust cannot promise to be safe in general: here only where the process has a single thread.
#![allow(unsafe_code)] // fork and clone are unsafe in a process with several threads; that is checked before.

use std::io;

use nix::sched::CloneFlags;
use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::unistd::Pid;

use crate::error::{NetError, Result};
use crate::system::thread::one_thread;

/// Who returns from [`fork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forked {
    /// The caller, with the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// A new process, a copy of this one, in namespaces as `flags` say (`CLONE_NEWPID`).
///
/// # Errors
/// If this process has more than one thread, since the copy would find their locks held forever; or as clone(2).
pub(super) fn fork(flags: CloneFlags) -> Result<Forked> {
    let step = "starting a process";
    one_thread(step)?;
    let answer = if flags.is_empty() {
        // SAFETY: there is no other thread whose locks or half-made changes the copy would inherit.
        unsafe { libc::fork() }.into()
    } else {
        let flags = flags.bits() | libc::SIGCHLD;
        // SAFETY: as above; without a stack and CLONE_VM this is fork(2) with namespaces. Zeros in all other places
        // make the order of arguments, which differs between machines, irrelevant.
        unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) }
    };
    match answer {
        0 => Ok(Forked::Child),
        pid if pid > 0 => Ok(Forked::Parent(Pid::from_raw(pid as libc::pid_t))),
        _ => {
            let hint = "a container must allow CLONE_NEWPID (CAP_SYS_ADMIN), and the limit of processes must have room";
            Err(NetError::new(step, io::Error::last_os_error()).coded("system-call-failed").hint(hint))
        }
    }
}

/// Let a signal do what it does by default.
pub(crate) fn reset(signal: Signal) -> nix::Result<()> {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed that could run at a bad moment.
    unsafe { sigaction(signal, &action) }.map(|_| ())
}

/// End this process at once, without what the copied program would do at its end.
pub(super) fn exit(status: i32) -> ! {
    // SAFETY: _exit has no conditions.
    unsafe { libc::_exit(status) }
}
