//! Threads that must act on time.

use std::fs;
use std::io::Read;
use std::time::Duration;

use nix::sys::prctl;

use super::syscalls;
use crate::error::{Context, Error, Result};

/// The shortest slice that the kernel gives, in nanoseconds.
const SLICE_NS: u64 = 100_000;

/// Timers of this thread fire when they are due, not up to 50 µs later. Where that is refused they stay coarser.
pub fn precise_timers() {
    let _ = prctl::set_timerslack(1);
}

/// Let this thread wake up on time: precise timers, and before ordinary threads where that is permitted; else with a
/// larger share; else at least with short slices, which every thread may ask for.
///
/// A real-time thread cannot take the whole machine: the kernel keeps a share of each processor for ordinary threads
/// (`sched_rt_runtime_us`).
pub fn act_on_time() {
    precise_timers();
    let _ = syscalls::schedule_in_real_time()
        .or_else(|_| syscalls::schedule_in_slices(-20, SLICE_NS))
        .or_else(|_| syscalls::schedule_in_slices(0, SLICE_NS));
}

/// Do this once standard input is closed: the parent holds its other end, which closes when the parent wants an end or
/// meets its own, for whatever reason.
///
/// # Errors
/// No thread can be started.
pub fn when_parent_ends(act: impl FnOnce() + Send + 'static) -> Result<()> {
    let watch = || {
        // What the parent writes says nothing; an error is an end too.
        while std::io::stdin().read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        act();
    };
    let watchdog = std::thread::Builder::new().name("parent watchdog".into()).spawn(watch);
    watchdog.context(|| "starting the parent watchdog".into()).map(drop)
}

/// Make sure that this thread is the only one of its process, as `step` needs it.
pub(super) fn one_thread(step: &str) -> Result<()> {
    let count = || Ok(fs::read_dir("/proc/self/task").context(|| step.to_owned())?.count());
    // Threads that have just been joined may take a moment to vanish.
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
