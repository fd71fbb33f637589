//! A thread that must act on time.

use nix::sys::prctl;

use super::syscalls;

/// The shortest slice that the kernel gives, in nanoseconds.
const SLICE_NS: u64 = 100_000;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Before all ordinary threads.
    RealTime,
    /// An ordinary thread with a larger share.
    Preferred,
    /// Like any other: the machine allows no more.
    Ordinary,
}

/// Let this thread wake up on time: exact timers, and before others where that is permitted.
///
/// A real-time thread cannot take the whole machine: the kernel keeps a share of each processor for ordinary threads
/// (`sched_rt_runtime_us`).
pub fn act_on_time() -> Urgency {
    // Default is 50 µs of slack. A kernel that refuses leaves the timers less exact, no more.
    let _ = prctl::set_timerslack(1);
    if syscalls::schedule_in_real_time().is_ok() {
        return Urgency::RealTime;
    }
    if syscalls::schedule_in_slices(-20, SLICE_NS).is_ok() {
        return Urgency::Preferred;
    }
    // Anybody may ask for short slices.
    let _ = syscalls::schedule_in_slices(0, SLICE_NS);
    Urgency::Ordinary
}
