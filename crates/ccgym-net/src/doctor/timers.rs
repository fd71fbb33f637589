//! How late this machine wakes up.

use std::time::Duration;

use ccgym_core::Timestamp;

use super::Finding;
use crate::clock::Clock;

const SAMPLES: u64 = 500;
const SPACING: Duration = Duration::from_millis(2);
/// Later than this at the 99th percentile, and packets leave visibly late.
const GOOD_NS: u64 = 200_000;

pub(super) fn examine() -> Finding {
    // Not an error if the kernel refuses: the measurement then shows it.
    let _ = nix::sys::prctl::set_timerslack(1);
    let clock = Clock::start();
    let mut late: Vec<u64> = (1..=SAMPLES)
        .map(|k| {
            let due = Timestamp(k * SPACING.as_nanos() as u64);
            clock.sleep_until(due);
            clock.now().since(due).0
        })
        .collect();
    late.sort_unstable();
    let at = |p: f64| late[((late.len() - 1) as f64 * p) as usize];
    let [p50, p99, max] = [at(0.5), at(0.99), at(1.0)].map(|ns| ns as f64 / 1e3);
    let found =
        format!("wakes {p50:.0} µs late in the median, {p99:.0} µs at the 99th percentile, {max:.0} µs at most");
    if at(0.99) <= GOOD_NS {
        Finding::ok("timers", found)
    } else {
        Finding::warn("timers", found, "let nothing else run; on a virtual machine, give it cores of its own")
    }
}
