//! Scheduling of threads that must act on time.

use std::fs;
use std::io::Read;
use std::time::Duration;

use nix::sys::prctl;

use super::syscalls;
use crate::error::{Context, Error, Result};

/// Min slice that the kernel gives, ns.
const SLICE_NS: u64 = 100_000;

/// Fire timers of this thread when they are due, not up to 50 µs later. If this is refused, timers stay coarser.
pub fn precise_timers() {
    let _ = prctl::set_timerslack(1);
}

/// Let this thread wake up on time: precise timers, and real-time priority if permitted; otherwise a larger share;
/// otherwise short slices, which every thread may ask for.
///
/// A real-time thread cannot block the machine: the kernel keeps a share of each processor for ordinary threads
/// (`sched_rt_runtime_us`).
pub fn act_on_time() {
    precise_timers();
    let _ = syscalls::schedule_in_real_time()
        .or_else(|_| syscalls::schedule_in_slices(-20, SLICE_NS))
        .or_else(|_| syscalls::schedule_in_slices(0, SLICE_NS));
}

/// Call `act` once standard input is closed: the parent holds the other end, which closes when the parent asks for the
/// end or ends for any reason.
///
/// # Errors
/// No thread can be started.
pub fn when_parent_ends(act: impl FnOnce() + Send + 'static) -> Result<()> {
    let watch = || {
        // The bytes of the parent have no meaning; an error also counts as the end.
        while std::io::stdin().read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        act();
    };
    let watchdog = std::thread::Builder::new().name("parent watchdog".into()).spawn(watch);
    watchdog.context(|| "starting the parent watchdog".into()).map(drop)
}

/// Check that this thread is the only one of its process, as `step` requires.
pub(super) fn one_thread(step: &str) -> Result<()> {
    let count = || Ok(fs::read_dir("/proc/self/task").context(|| step.to_owned())?.count());
    // Threads that have just been joined may need a moment to vanish.
    for _ in 0..200 {
        match count()? {
            1 => return Ok(()),
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Err(Error::of("call-order", step, format!("{} threads", count()?))
        .expected("a process with one thread")
        .hint("do this in a process of its own, before anything that makes threads is loaded"))
}
