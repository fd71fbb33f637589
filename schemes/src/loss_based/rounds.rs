//! RTT samples per round, from one acknowledged window to the next.

use ccgym_core::{AckEvent, PacketNumber, TimeSpan};

/// Samples of the current round.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Packet number whose acknowledgement ends the round.
    end: PacketNumber,
    /// Min RTT.
    pub min: TimeSpan,
    sum_ns: u64,
    /// Number of samples.
    pub samples: u32,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { end: 0, min: TimeSpan::MAX, sum_ns: 0, samples: 0 }
    }
}

impl Rounds {
    /// Make a round that ends with the acknowledgement of packet `end`.
    pub fn up_to(end: PacketNumber) -> Self {
        Self { end, ..Self::default() }
    }

    /// Add the sample of an acknowledgement.
    #[inline]
    pub fn observe(&mut self, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.add(sample);
        }
    }

    #[inline]
    pub fn add(&mut self, sample: TimeSpan) {
        self.min = self.min.min(sample);
        self.sum_ns = self.sum_ns.saturating_add(sample.0);
        self.samples += 1;
    }

    /// Return the mean; zero without samples.
    pub fn mean(&self) -> TimeSpan {
        TimeSpan(self.sum_ns.checked_div(u64::from(self.samples)).unwrap_or(0))
    }

    /// Return the round if this acknowledgement ends it; the next one begins with the packet sent next.
    #[inline]
    pub fn ended_by(&mut self, event: &AckEvent<'_>) -> Option<Self> {
        if event.largest_acked < self.end {
            return None;
        }
        Some(std::mem::replace(self, Self::up_to(event.next_packet_number)))
    }
}
