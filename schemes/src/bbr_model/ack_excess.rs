//! The bytes acknowledged at once beyond the modeled bandwidth (draft-ietf-ccwg-bbr, "BBR.extra_acked").

use ccgym_core::units::{float, whole};
use ccgym_core::{Rate, Timestamp};

/// The current epoch, in which more is acknowledged than the model expects. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct AckExcess {
    start: Timestamp,
    acked: u64,
}

impl AckExcess {
    /// Make the first epoch, which starts at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { start: now, acked: 0 }
    }

    /// Return the bytes acknowledged in this epoch.
    #[inline]
    pub const fn acked(&self) -> u64 {
        self.acked
    }

    /// Begin a new epoch after idle time, in which nothing could be acknowledged.
    pub const fn restart(&mut self, now: Timestamp) {
        *self = Self::new(now);
    }

    /// Add `acked` bytes acknowledged at `now`; returns the epoch's excess over the bytes at `bandwidth`.
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, acked: u64, bandwidth: Rate) -> u64 {
        let mut expected = whole(float(bandwidth.0) * float(now.since(self.start).0) / 8e9);
        // An epoch lasts while more is acknowledged than the model expects.
        if self.acked <= expected {
            self.restart(now);
            expected = 0;
        }
        self.acked += acked;
        self.acked - expected
    }
}
