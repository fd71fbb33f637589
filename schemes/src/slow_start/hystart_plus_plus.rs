//! HyStart++ (RFC 9406): leaves slow start when the round's min delay rises, but through a conservative phase that can
//! detect that the rise was noise.

use ccgym_core::{PacketNumber, TimeSpan};

use super::{Input, Step};

/// `MIN_RTT_THRESH` (RFC 9406 §4.2).
const THRESHOLD_MIN: TimeSpan = TimeSpan::from_millis(4);
/// `MAX_RTT_THRESH`.
const THRESHOLD_MAX: TimeSpan = TimeSpan::from_millis(16);
/// `MIN_RTT_DIVISOR`.
const THRESHOLD_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`: samples of a round before its min counts.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`: divisor of the growth in the conservative phase.
const CONSERVATIVE_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`: rounds of the conservative phase.
const CONSERVATIVE_ROUNDS: u32 = 5;
/// `L`: max growth of an unpaced flow per acknowledgement, packets.
const UNPACED_LIMIT: u64 = 8;

/// State of the search.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    paced: bool,
    /// Packet number whose acknowledgement ends the round.
    round_end: PacketNumber,
    last_round_min: TimeSpan,
    round_min: TimeSpan,
    samples: u32,
    /// The conservative phase, CSS.
    conservative: Option<Conservative>,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Delay that caused it. A smaller one later means that the cause was noise.
    baseline: TimeSpan,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Start a search; an unpaced flow grows by at most 8 packets per acknowledgement (RFC 9406 §4.2, `L`).
    pub fn new(paced: bool) -> Self {
        Self {
            paced,
            round_end: 0,
            last_round_min: TimeSpan::MAX,
            round_min: TimeSpan::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// True in the conservative phase.
    pub fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    #[inline]
    pub(super) fn on_ack(&mut self, input: &Input<'_>) -> Step {
        let event = input.event;
        let mut exit = false;
        if event.largest_acked >= self.round_end {
            self.round_end = event.next_packet_number;
            self.last_round_min = self.round_min;
            self.round_min = TimeSpan::MAX;
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                exit = conservative.rounds >= CONSERVATIVE_ROUNDS;
            }
        }
        if let Some(delay) = input.delay {
            self.round_min = self.round_min.min(delay);
            self.samples += 1;
            if self.samples >= SAMPLES {
                self.judge();
            }
        }
        let counted = if self.paced { event.acked_bytes } else { event.acked_bytes.min(UNPACED_LIMIT * input.mss) };
        let growth = if self.conservative.is_some() { counted / CONSERVATIVE_DIVISOR } else { counted };
        Step { growth, exit }
    }

    /// Judge a round by RFC 9406 §4.2: enter the conservative phase when the round's min exceeds the last round's by
    /// the threshold; resume when it falls below the one that caused it.
    #[inline]
    fn judge(&mut self) {
        match self.conservative {
            None => {
                if self.last_round_min == TimeSpan::MAX {
                    return;
                }
                let threshold = TimeSpan(self.last_round_min.0 / THRESHOLD_DIVISOR).clamp(THRESHOLD_MIN, THRESHOLD_MAX);
                if self.round_min >= self.last_round_min + threshold {
                    self.conservative = Some(Conservative { baseline: self.round_min, rounds: 0 });
                }
            }
            Some(conservative) if self.round_min < conservative.baseline => self.conservative = None,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::json;

    const SEARCHING: f64 = 1.0;
    const CAREFUL: f64 = 2.0;

    fn ms(value: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(value / 1e3)
    }
    /// Run two rounds at `base`: there is a min to compare with.
    fn searching(base: f64) -> MockTransport {
        let mut host = MockTransport::of("reno", &json!({"start_up": "hystart++"}));
        host.ack_round(ms(base), TimeSpan::ZERO);
        host.ack_round(ms(base), TimeSpan::ZERO);
        assert_eq!((host.window(), host.observable("slow_start_phase")), (40.0, SEARCHING));
        host
    }

    /// RFC 9406 §4.2: the threshold is clamp(last round's minimum / 8, 4 ms, 16 ms).
    #[test]
    fn threshold() {
        for (base, threshold) in [(8.0, 4.0), (100.0, 12.5), (400.0, 16.0)] {
            for (rise, expected) in [(threshold - 0.1, SEARCHING), (threshold, CAREFUL)] {
                let mut host = searching(base);
                host.ack_round(ms(base + rise), TimeSpan::ZERO);
                assert_eq!(host.observable("slow_start_phase"), expected, "{base} ms + {rise} ms");
            }
        }
    }

    /// Eight samples of a round are needed, and one small sample among them prevents the exit.
    #[test]
    fn samples() {
        let mut host = searching(100.0);
        for sample in 1..=8 {
            assert_eq!(host.observable("slow_start_phase"), SEARCHING, "before sample {sample}");
            host.ack_after(ms(120.0));
        }
        assert_eq!(host.observable("slow_start_phase"), CAREFUL);

        let mut host = searching(100.0);
        host.ack_after(ms(100.0));
        for _ in 0..20 {
            host.ack_after(ms(120.0));
        }
        assert_eq!(host.observable("slow_start_phase"), SEARCHING);
    }

    /// The conservative phase, CSS.rows a quarter as fast and ends slow start after five rounds, the first of them partial.
    #[test]
    fn conservative_phase_ends_slow_start() {
        let mut host = searching(100.0);
        let mut windows = vec![host.window()];
        for _ in 0..6 {
            assert_eq!(host.scheme.ssthresh(), Some(u64::MAX));
            host.ack_round(ms(120.0), TimeSpan::ZERO);
            windows.push(host.window());
        }
        assert!(host.scheme.ssthresh() < Some(u64::MAX));
        // The round of the entry: 7 packets at the full rate, the rest at a quarter.
        assert_eq!(windows[1], 40.0 + 7.0 + 33.0 / 4.0);
        for pair in windows[1..5].windows(2) {
            assert!((pair[1] / pair[0] - 1.25).abs() < 0.02, "{windows:?}");
        }
        // Then congestion avoidance.
        let before = host.window();
        host.ack_round(ms(120.0), TimeSpan::ZERO);
        assert!(host.window() <= before + 1.0);
    }

    /// A delay below the one that caused the conservative phase resumes slow start.
    #[test]
    fn resume() {
        let mut host = searching(100.0);
        host.ack_round(ms(120.0), TimeSpan::ZERO);
        assert_eq!(host.observable("slow_start_phase"), CAREFUL);
        host.ack_round(ms(100.0), TimeSpan::ZERO);
        assert_eq!(host.observable("slow_start_phase"), SEARCHING);
        let before = host.window();
        host.ack_round(ms(100.0), TimeSpan::ZERO);
        assert_eq!(host.window(), (2.0 * before).floor());
    }

    /// RFC 9406 §4.3: only the initial slow start.
    #[test]
    fn not_after_a_loss() {
        let mut host = searching(100.0);
        host.time_out();
        assert_eq!(host.observable("slow_start_phase"), 0.0);
    }
}
