//! Signals that are read from a descriptor, and commands that end in an orderly way after a signal.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{poll, ppoll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{pthread_sigmask, raise, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;

use super::syscalls::reset;
use crate::error::{Context, Result};

/// Signals of this process, read here as long as this lives. Threads that start meanwhile do not get them.
pub(crate) struct Signals {
    /// Descriptor that they are read from.
    pub fd: SignalFd,
    /// Signals that were blocked before.
    pub mask: SigSet,
}

impl Signals {
    /// Take over these signals.
    pub fn take(taken: impl IntoIterator<Item = Signal>) -> Result<Self> {
        let step = || "taking over the signals".to_owned();
        let taken = SigSet::from_iter(taken);
        let mut mask = SigSet::empty();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut mask)).context(step)?;
        let fd = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).context(step)?;
        Ok(Self { fd, mask })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals that came too late to be forwarded must not end this process before the logs are written.
        while let Ok(Some(_)) = self.fd.read_signal() {}
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&self.mask), None);
    }
}

/// Signals that end a command.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// Max time for a command to end in an orderly way; then the signal ends it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Request to a command to end.
#[derive(Default)]
pub(crate) struct Interruption {
    halt: Arc<AtomicBool>,
    orderly: AtomicBool,
    by: AtomicI32,
}

impl Interruption {
    /// Return the flag that asks the command to end, from now on. Before this call, a signal ends it at once.
    pub fn orderly(&self) -> Arc<AtomicBool> {
        self.orderly.store(true, Ordering::Relaxed);
        self.halt.clone()
    }

    /// Return the exit status for the signal that came: 128 plus its number. None without a signal.
    pub fn status(&self) -> Option<i32> {
        let by = self.by.load(Ordering::Relaxed);
        (by != 0).then_some(128 + by)
    }

    fn came(&self, signal: i32) -> bool {
        self.by.store(signal, Ordering::Relaxed);
        self.halt.store(true, Ordering::Relaxed);
        self.orderly.load(Ordering::Relaxed)
    }
}

/// Run a command that SIGINT, SIGTERM and SIGHUP end, instead of earlier handlers: under Python its handler would run
/// only after the command.
///
/// # Errors
/// The signals are not available, or the command fails.
pub(crate) fn interruptible<T>(command: impl FnOnce(&Interruption) -> Result<T>) -> Result<T> {
    let signals = Signals::take(ENDING)?;
    let (running, over) = UnixStream::pair().context(|| "watching for signals".into())?;
    let interruption = Interruption::default();
    std::thread::scope(|scope| {
        // Closed when the command ends, also if it panics.
        let running = running;
        scope.spawn(|| watch(&signals, &over, &interruption));
        let result = command(&interruption);
        drop(running);
        result
    })
}

fn watch(signals: &Signals, over: &UnixStream, interruption: &Interruption) {
    loop {
        if let [_, true] = readable([signals.fd.as_fd(), over.as_fd()], PollTimeout::NONE) {
            return;
        }
        let Ok(Some(info)) = signals.fd.read_signal() else { continue };
        let patience = PollTimeout::try_from(PATIENCE).unwrap_or(PollTimeout::MAX);
        if !interruption.came(info.ssi_signo as i32) || readable([over.as_fd()], patience) == [false] {
            die_of(info.ssi_signo as i32);
        }
    }
}

/// Wait for events of `fds`, max `timeout`; a signal also ends the wait.
pub fn wait_for(fds: &mut [PollFd<'_>], timeout: Option<TimeSpec>, what: &str) -> Result<()> {
    match ppoll(fds, timeout, None) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno).context(|| format!("waiting for {what}")),
    }
}

/// Wait until a descriptor is readable or closed, max `timeout`; return true for each that is.
pub(crate) fn readable<const N: usize>(fds: [BorrowedFd<'_>; N], timeout: PollTimeout) -> [bool; N] {
    let mut polled = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut polled, timeout) {
        Ok(_) => polled.map(|fd| fd.any().unwrap_or(true)),
        Err(_) => [false; N],
    }
}

/// End this process by the default action of the signal.
fn die_of(number: i32) {
    let Ok(signal) = Signal::try_from(number) else { return };
    let _ = reset(signal);
    let _ = SigSet::from_iter([signal]).thread_unblock();
    let _ = raise(signal);
}
