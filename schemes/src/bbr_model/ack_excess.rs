//! How much more than the modeled bandwidth arrives acknowledged at once (draft-ietf-ccwg-bbr, "BBR.extra_acked").

use ccgym_core::{Rate, Timestamp};

/// The epoch in which acknowledgements run ahead of the model. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckExcess {
    start: Timestamp,
    acked: u64,
}

impl AckExcess {
    /// The first epoch starts at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { start: now, acked: 0 }
    }

    /// Acknowledged in this epoch.
    #[inline]
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// A new epoch: after idle time, for nothing could be acknowledged meanwhile.
    pub const fn restart(&mut self, now: Timestamp) {
        *self = Self::new(now);
    }

    /// `acked` bytes were acknowledged at `now`; the excess of the epoch over what `bandwidth` would have delivered.
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, acked: u64, bandwidth: Rate) -> u64 {
        let mut expected = (bandwidth.0 as f64 * now.since(self.start).0 as f64 / 8e9) as u64;
        // An epoch lasts while acknowledgements run ahead of the model.
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        self.acked - expected
    }
}
