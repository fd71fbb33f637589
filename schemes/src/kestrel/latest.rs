//! The current round trip: when a queue has just grown, a round takes long.

use ccgym_core::{TimeSpan, Timestamp};

/// Min samples and time of a group, since acknowledgements may arrive in bursts, …
const SAMPLES: u32 = 16;
const SPAN: TimeSpan = TimeSpan::from_millis(2);
/// … or, with few packets, these samples and this part of the base RTT.
const FEW: u32 = 4;
const PART: f64 = 0.25;

#[derive(Clone, Copy, Debug)]
pub struct Latest {
    began: Timestamp,
    samples: u32,
    min: f64,
}

impl Default for Latest {
    fn default() -> Self {
        Self { began: Timestamp::ZERO, samples: 0, min: f64::INFINITY }
    }
}

impl Latest {
    /// Add an RTT sample; return the min of the group if it is complete. All in seconds. Without a base RTT the flow is
    /// in start-up, which a single burst may end.
    pub fn sample(&mut self, now: Timestamp, rtt: f64, base: Option<f64>) -> Option<f64> {
        if self.samples == 0 {
            self.began = now;
        }
        self.samples += 1;
        self.min = self.min.min(rtt);
        let span = now.since(self.began);
        let enough = match base {
            None => self.samples >= SAMPLES,
            Some(_) if self.samples >= SAMPLES => span >= SPAN,
            Some(base) => self.samples >= FEW && span >= SPAN.max(TimeSpan::from_secs_f64(PART * base)),
        };
        enough.then(|| std::mem::take(self).min)
    }
}
