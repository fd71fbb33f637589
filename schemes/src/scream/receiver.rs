//! The receiver: decides when feedback leaves.

use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{FeedbackReceiver, TimeSpan, Timestamp};

/// Length of the interval for the rate of arrival.
const RATE_INTERVAL: TimeSpan = TimeSpan::from_millis(200);
/// Rate before the first interval ends, bit/s (`ScreamRx.cpp`).
const FIRST_RATE: f64 = 1e5;
/// Bits per feedback, and min and max feedbacks per second. RFC 8298 §4.2.1 allows 2.5 per second at low rates; 10
/// prevent a retransmission timeout.
const BITS: f64 = 10_000.0;
const PER_SECOND: (f64, f64) = (10.0, 50.0);

#[derive(Clone, Debug)]
pub struct ScreamReceiver {
    /// Time between two feedbacks; `None`: depends on the rate.
    fixed: Option<TimeSpan>,
    rate: f64,
    /// Bytes since then.
    bytes: u64,
    counted: Timestamp,
    last: Option<Timestamp>,
    /// True if a packet arrived that was not reported.
    waiting: bool,
}

impl ScreamReceiver {
    pub const fn new(fixed: Option<TimeSpan>) -> Self {
        Self { fixed, rate: FIRST_RATE, bytes: 0, counted: Timestamp::ZERO, last: None, waiting: false }
    }

    fn interval(&self) -> TimeSpan {
        let by_rate = || TimeSpan::from_secs_f64(1.0 / (self.rate / BITS).clamp(PER_SECOND.0, PER_SECOND.1));
        self.fixed.unwrap_or_else(by_rate)
    }
}

impl FeedbackReceiver for ScreamReceiver {
    fn start(&mut self, now: Timestamp, _mss: u64) {
        self.counted = now;
    }

    fn on_data(&mut self, event: &ReceivedEvent) {
        self.waiting = true;
        self.bytes += event.bytes;
        let since = event.now.since(self.counted);
        if since >= RATE_INTERVAL {
            self.rate = self.bytes as f64 * 8.0 / since.as_secs_f64();
            (self.bytes, self.counted) = (0, event.now);
        }
    }

    fn next_feedback(&self) -> Timestamp {
        match self.last {
            _ if !self.waiting => Timestamp::NEVER,
            Some(last) => last.saturating_add(self.interval()),
            None => Timestamp::ZERO,
        }
    }

    fn write_feedback(&mut self, now: Timestamp, _message: &mut Vec<u8>) {
        self.last = Some(now);
        self.waiting = false;
    }
}
