//! Beside flows that keep the queue filled: Cubic, until it shows that there are none.

use ccgym_core::{TimeSpan, Timestamp};

use super::look::{Look, Reason};
use super::round::{Next, Seen};
use crate::cubic::Cubic;

/// Rounds without a loss from one look to the next, at first and at most; each one in vain doubles them.
const BETWEEN: u32 = 16;
const MAX_BETWEEN: u32 = 64;
/// It looks where the queue is at least this part of the longest at a loss: a short one may be that of others, too.
const LONG: f64 = 0.5;
/// What a look leaves of the window without the flow's own queue.
const SHALLOW: f64 = 0.95;
/// Below this part of the longest queue at a loss there is none; nobody else fills it after this time, or so many round
/// trips.
const SHORT: f64 = 0.1;
const NO_QUEUE: TimeSpan = TimeSpan::from_millis(2000);
const NO_QUEUE_ROUNDS: f64 = 16.0;
/// A window that grew so far while round trips stayed the same, up to this part: nothing waits.
const GREW: f64 = 1.25;
const SAME: f64 = 0.01;

#[derive(Clone)]
pub struct Company {
    pub cubic: Cubic,
    /// The longest queue at a loss, seconds; an older one counts half.
    peak: f64,
    /// When there was a queue.
    queue_seen: Timestamp,
    /// Rounds since the latest loss or look.
    quiet_rounds: u32,
    between: u32,
    /// The round trip that the latest look left, seconds.
    pub floor: f64,
    /// A round trip, seconds, and the window when it first was so, packets.
    mark: (f64, f64),
}

impl Company {
    pub fn new(cubic: Cubic) -> Self {
        Self {
            cubic,
            peak: 0.0,
            queue_seen: Timestamp::ZERO,
            quiet_rounds: 0,
            between: BETWEEN,
            floor: 0.0,
            mark: (0.0, 0.0),
        }
    }

    /// It begins with this window and slow-start threshold in packets, and seconds of queue.
    pub fn enter(&mut self, now: Timestamp, window: f64, ssthresh: f64, queue: f64) {
        self.cubic.resume(window, ssthresh);
        self.peak = queue;
        self.queue_seen = now;
        self.quiet_rounds = 0;
        self.between = BETWEEN;
    }

    /// A look was in vain, and left this round trip in seconds.
    pub fn stay(&mut self, rtt: f64) {
        self.floor = rtt;
        self.between = (2 * self.between).min(MAX_BETWEEN);
        self.quiet_rounds = 0;
    }

    /// The decision after a round; `window` is Cubic's, packets.
    pub fn next(&mut self, seen: &Seen, window: f64) -> Next {
        self.quiet_rounds += 1;
        if seen.lost > 0 {
            self.peak = seen.queue.max(0.5 * self.peak);
            self.quiet_rounds = 0;
        }
        if (seen.rtt - self.mark.0).abs() > SAME * seen.rtt {
            self.mark = (seen.rtt, window);
        } else if !self.cubic.is_in_slow_start() && window > GREW * self.mark.1 && seen.queue > 0.0 {
            return Next::Leave { longer: true };
        }
        if seen.queue > (0.01 * seen.base).max(0.000_25).max(SHORT * self.peak) {
            self.queue_seen = seen.now;
        } else {
            let patience = NO_QUEUE.max(TimeSpan::from_secs_f64(NO_QUEUE_ROUNDS * seen.base));
            // A loss without a queue is nobody's.
            if seen.lost > 0 || seen.now.since(self.queue_seen) > patience {
                return Next::Leave { longer: false };
            }
        }
        if self.quiet_rounds >= self.between && seen.queue > LONG * self.peak {
            let reduced = SHALLOW * window * seen.base / seen.rtt;
            return Next::Look(Look::new(Reason::Competing, reduced, window, seen.queue, seen.rtt));
        }
        Next::Hold
    }
}
