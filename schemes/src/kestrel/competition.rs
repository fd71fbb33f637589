//! Competition with flows that keep the queue filled: Cubic, until a probe shows that there are none.

use ccgym_core::{TimeSpan, Timestamp};

use super::probe::{Probe, Reason};
use super::round::{Next, Seen};
use crate::cubic::Cubic;

/// Rounds without a loss between two probes, first and max; each probe without success doubles them.
const ROUNDS_BETWEEN_PROBES: u32 = 16;
const MAX_ROUNDS_BETWEEN_PROBES: u32 = 64;
/// It probes if the queue is at least this part of the longest at a loss: a shorter one may belong to other flows, too.
const LONG_QUEUE_SHARE: f64 = 0.5;
/// Factor of a probe on the window without the flow's own queue.
const SHALLOW_PROBE_FACTOR: f64 = 0.95;
/// A queue below this part of the longest one at a loss counts as empty; if it stays so for this time, or this many
/// round trips, no other flow fills it.
const NO_QUEUE_SHARE: f64 = 0.1;
const NO_QUEUE: TimeSpan = TimeSpan::from_millis(2000);
const NO_QUEUE_ROUNDS: f64 = 16.0;
/// If the window grew by this factor while the RTT changed by no more than this part, the queue is empty.
const GREW: f64 = 1.25;
const SAME_RTT_TOLERANCE: f64 = 0.01;

#[derive(Clone)]
pub struct Competition {
    pub cubic: Cubic,
    /// The longest queue at a loss, seconds; an older one counts half.
    peak: f64,
    /// Time of the latest queue.
    queue_seen: Timestamp,
    /// Rounds since the latest loss or probe.
    quiet_rounds: u32,
    between: u32,
    /// The RTT during the latest probe, seconds.
    pub floor: f64,
    /// An RTT, seconds, and the window when it first was that long, packets.
    mark: (f64, f64),
}

impl Competition {
    pub fn new(cubic: Cubic) -> Self {
        Self {
            cubic,
            peak: 0.0,
            queue_seen: Timestamp::ZERO,
            quiet_rounds: 0,
            between: ROUNDS_BETWEEN_PROBES,
            floor: 0.0,
            mark: (0.0, 0.0),
        }
    }

    /// Enter this mode with this window and ssthresh, packets, and this queue, seconds.
    pub fn enter(&mut self, now: Timestamp, window: f64, ssthresh: f64, queue: f64) {
        self.cubic.resume(window, ssthresh);
        self.peak = queue;
        self.queue_seen = now;
        self.quiet_rounds = 0;
        self.between = ROUNDS_BETWEEN_PROBES;
    }

    /// Stay in this mode after a probe without success, which showed this RTT, seconds.
    pub fn stay(&mut self, rtt: f64) {
        self.floor = rtt;
        self.between = (2 * self.between).min(MAX_ROUNDS_BETWEEN_PROBES);
        self.quiet_rounds = 0;
    }

    /// Decide after a round; `window` is Cubic's, packets.
    pub fn next(&mut self, seen: &Seen, window: f64) -> Next {
        self.quiet_rounds += 1;
        if seen.lost > 0 {
            self.peak = seen.queue.max(0.5 * self.peak);
            self.quiet_rounds = 0;
        }
        if (seen.rtt - self.mark.0).abs() > SAME_RTT_TOLERANCE * seen.rtt {
            self.mark = (seen.rtt, window);
        } else if !self.cubic.is_in_slow_start() && window > GREW * self.mark.1 && seen.queue > 0.0 {
            return Next::Leave { longer: true };
        }
        if seen.queue > (0.01 * seen.base).max(0.000_25).max(NO_QUEUE_SHARE * self.peak) {
            self.queue_seen = seen.now;
        } else {
            let patience = NO_QUEUE.max(TimeSpan::from_secs_f64(NO_QUEUE_ROUNDS * seen.base));
            // Loss without a queue is not caused by a competitor.
            if seen.lost > 0 || seen.now.since(self.queue_seen) > patience {
                return Next::Leave { longer: false };
            }
        }
        if self.quiet_rounds >= self.between && seen.queue > LONG_QUEUE_SHARE * self.peak {
            let reduced = SHALLOW_PROBE_FACTOR * window * seen.base / seen.rtt;
            return Next::Probe(Probe::new(Reason::Competing, reduced, window, seen.queue, seen.rtt));
        }
        Next::Hold
    }
}
