//! PROBE_BW: cycle the pacing gain to look for more bandwidth and then drain the queue of the probe.

use ccgym_core::{Rng, TimeSpan, Timestamp};

/// Pacing gains of the eight phases.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The phase that probes.
const PROBE_UP: u8 = 0;
/// The phase that drains; never the first, since no probe precedes it.
const PROBE_DOWN: u8 = 1;

/// Position in the gain cycle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycle {
    /// Phase, 0–7.
    pub phase: u8,
    since: Timestamp,
}

/// Inputs to the end of a phase. Sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct PhaseFacts {
    pub now: Timestamp,
    /// Propagation round trip.
    pub rtprop: TimeSpan,
    /// Bytes in the network before this acknowledgement.
    pub in_network: u64,
    /// In flight at which a probing or draining phase ends; no other phase reads it.
    pub target: u64,
    /// True if this acknowledgement revealed a loss.
    pub lost: bool,
}

impl Cycle {
    /// Begin at `fixed`, or at a random phase that does not drain, so that competing flows probe at different times.
    pub fn start(&mut self, now: Timestamp, fixed: Option<u8>, rng: &mut Rng) {
        let phase = fixed.unwrap_or_else(|| match rng.below(GAINS.len() as u64 - 1) {
            0 => PROBE_UP,
            n => n as u8 + 1,
        });
        *self = Self { phase: phase % GAINS.len() as u8, since: now };
    }

    /// True in the probing phase.
    #[inline]
    pub const fn probing_up(&self) -> bool {
        self.phase == PROBE_UP
    }

    /// True if the phase may end by the bytes in flight.
    #[inline]
    pub const fn has_target(&self) -> bool {
        self.phase <= PROBE_DOWN
    }

    /// Return the phase's pacing gain.
    #[inline]
    pub const fn gain(&self) -> f64 {
        GAINS[self.phase as usize]
    }

    /// Enter the next phase if this one is over.
    #[inline]
    pub fn advance(&mut self, facts: &PhaseFacts) {
        let lasted = facts.now.since(self.since) > facts.rtprop;
        let over = match self.phase {
            // A probe must take effect first: more in flight, or a loss if the buffer cannot hold it.
            PROBE_UP => lasted && (facts.lost || facts.in_network >= facts.target),
            // A drain is over as soon as the queue is gone.
            PROBE_DOWN => lasted || facts.in_network <= facts.target,
            _ => lasted,
        };
        if over {
            self.phase = (self.phase + 1) % GAINS.len() as u8;
            self.since = facts.now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(phase: u8, now_ms: u64, in_network: u64, lost: bool) -> PhaseFacts {
        let target = if phase == PROBE_UP { 58 } else { 46 };
        let (now, rtprop) = (Timestamp::from_millis(now_ms), TimeSpan::from_millis(40));
        PhaseFacts { now, rtprop, in_network, target, lost }
    }

    #[test]
    fn phase_rules() {
        // (phase, ms since it began, packets in the network, loss, whether it ends). RTprop is 40 ms.
        for (phase, ms, in_network, lost, ends) in [
            (0, 41, 57, false, false), // 1.25 waits for the in-flight …
            (0, 41, 58, false, true),
            (0, 41, 40, true, true),   // … or a loss …
            (0, 40, 58, true, false),  // … and for more than one RTprop.
            (1, 10, 47, false, false), // 0.75 waits for RTprop …
            (1, 41, 47, false, true),
            (1, 10, 46, false, true),  // … or an empty queue.
            (2, 40, 40, false, false), // 1.0 lasts RTprop.
            (2, 41, 40, false, true),
            (7, 41, 40, false, true),
        ] {
            let mut cycle = Cycle { phase, since: Timestamp::ZERO };
            cycle.advance(&facts(phase, ms, in_network, lost));
            let expected = if ends { (phase + 1) % 8 } else { phase };
            assert_eq!(cycle.phase, expected, "phase {phase} after {ms} ms, {in_network} packets, loss {lost}");
        }
    }

    #[test]
    fn gains_average_one() {
        assert!((GAINS.iter().sum::<f64>() - 8.0).abs() < f64::EPSILON);
    }

    #[test]
    fn first_phase_is_uniform_over_all_but_the_draining_one() {
        let mut rng = Rng::stream(1, "bbr-test", 0);
        let mut count = [0u32; 8];
        for _ in 0..7000 {
            let mut cycle = Cycle::default();
            cycle.start(Timestamp::ZERO, None, &mut rng);
            count[cycle.phase as usize] += 1;
        }
        assert_eq!(count[1], 0);
        assert!(count.iter().enumerate().all(|(i, &n)| i == 1 || (850..1150).contains(&n)), "{count:?}");
    }

    #[test]
    fn first_phase_can_be_fixed() {
        let mut cycle = Cycle::default();
        cycle.start(Timestamp::ZERO, Some(3), &mut Rng::stream(1, "bbr-test", 0));
        assert_eq!(cycle.phase, 3);
    }
}
