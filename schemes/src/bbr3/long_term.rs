//! The long-term bound of the bytes in flight: set when a probe causes too much loss, raised by probes that do not
//! (draft, "Probing for Bandwidth In ProbeBW").

use super::congestion::UNBOUNDED;

/// Max number of times that the slope doubles, once per round.
const MAX_DOUBLINGS: u32 = 30;

/// The bound, and its growth in a probe. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct LongTerm {
    /// The bound; [`UNBOUNDED`] before the first probe with too much loss.
    pub bound: u64,
    /// Rounds in which the current probe has raised it.
    rounds: u32,
    /// Bytes to be acknowledged per packet of growth.
    acked_per_packet: u64,
    /// Acknowledged since the last packet of growth.
    acked: u64,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self { bound: UNBOUNDED, rounds: 0, acked_per_packet: UNBOUNDED, acked: 0 }
    }
}

impl LongTerm {
    /// Return the bound less `share` of it, at least one packet; not below `min`.
    pub fn with_headroom(&self, share: f64, mss: u64, min: u64) -> u64 {
        if self.bound == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = ((self.bound as f64 * share) as u64).max(mss);
        self.bound.saturating_sub(headroom).max(min)
    }

    /// Prepare a probe.
    pub const fn prepare(&mut self) {
        self.rounds = 0;
        self.acked = 0;
    }

    /// End the probe.
    pub const fn stop(&mut self) {
        self.acked_per_packet = UNBOUNDED;
    }

    /// Begin another round of the probe: 1, 2, 4, … packets of growth, spread over a window.
    pub fn steepen(&mut self, cwnd: u64, mss: u64) {
        let packets = 1u64 << self.rounds;
        self.rounds = (self.rounds + 1).min(MAX_DOUBLINGS);
        self.acked_per_packet = (cwnd / packets).max(mss);
    }

    /// Add `acked` bytes acknowledged while the bound limited the probe.
    pub fn grow(&mut self, acked: u64, mss: u64) {
        self.acked = self.acked.saturating_add(acked);
        if self.acked >= self.acked_per_packet {
            let packets = self.acked / self.acked_per_packet;
            self.acked -= packets * self.acked_per_packet;
            self.bound = self.bound.saturating_add(packets * mss);
        }
    }
}

/// True if `lost` bytes of `in_flight` exceed `threshold`.
#[inline]
pub fn too_high(lost: u64, in_flight: u64, threshold: f64) -> bool {
    lost as f64 > in_flight as f64 * threshold
}

/// Return the bytes in flight at which the losses exceeded `threshold`: a point within the packet of `bytes`, the last
/// sent of `in_flight`, with `lost` bytes lost by then. If they had exceeded it before, the bytes in flight before the
/// packet.
pub fn in_flight_at_loss(in_flight: u64, bytes: u64, lost: u64, threshold: f64) -> u64 {
    let before = in_flight.saturating_sub(bytes) as f64;
    let lost_before = lost.saturating_sub(bytes) as f64;
    let prefix = if threshold < 1.0 { (threshold * before - lost_before) / (1.0 - threshold) } else { 0.0 };
    (before + prefix.clamp(0.0, bytes as f64)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn headroom() {
        for (bound, expected) in [
            (UNBOUNDED, UNBOUNDED),
            (100_000, 85_000),
            (6_000, 5_000), // One packet rather than 900 bytes.
            (4_500, 4_000), // Not below four packets.
        ] {
            assert_eq!(LongTerm { bound, ..LongTerm::default() }.with_headroom(0.15, MSS, 4 * MSS), expected);
        }
    }

    #[test]
    fn growth_doubles_each_round() {
        let cwnd = 64 * MSS;
        let mut model = LongTerm { bound: cwnd, ..LongTerm::default() };
        model.prepare();
        let mut growth = Vec::new();
        for _ in 0..9 {
            model.steepen(cwnd, MSS);
            let before = model.bound;
            (0..64).for_each(|_| model.grow(MSS, MSS));
            growth.push((model.bound - before) / MSS);
        }
        assert_eq!(growth, [1, 2, 4, 8, 16, 32, 64, 64, 64], "at most one packet per packet");
        model.stop();
        let before = model.bound;
        (0..64).for_each(|_| model.grow(MSS, MSS));
        assert_eq!(model.bound, before);
    }

    #[test]
    fn two_percent_are_tolerated() {
        assert!(!too_high(2_000, 100_000, 0.02));
        assert!(too_high(2_001, 100_000, 0.02));
        assert!(too_high(1, 0, 0.02));
    }

    #[test]
    fn where_losses_passed_the_threshold() {
        // in flight, packet, lost with it → in flight at 2 % loss
        for (in_flight, bytes, lost, expected) in [
            (100_000, 1_000, 3_000, 99_000),  // Passed before: 2 000 of 99 000.
            (100_000, 1_000, 1_000, 100_000), // Not passed within it.
            // A burst of 64 packets, half of it lost before it: (0.02 · 36 000 − 0) / 0.98 = 734 into it.
            (100_000, 64_000, 64_000, 36_734),
            (500, 1_000, 1_000, 0),
        ] {
            assert_eq!(in_flight_at_loss(in_flight, bytes, lost, 0.02), expected);
        }
    }
}
