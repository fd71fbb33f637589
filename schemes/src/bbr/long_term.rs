//! The long-term (policer) model: a token-bucket policer passes bursts above its rate and then drops packets for long.
//! Probing then only causes loss, so if two loss-bounded intervals show the same rate, that rate is pinned.

use ccgym_core::{Rate, Timestamp};

/// Min rounds of an interval …
const MIN_ROUNDS: u64 = 4;
/// … and max rounds.
const MAX_ROUNDS: u64 = 4 * MIN_ROUNDS;
/// Min loss of a policed interval, in 256ths of the delivered bytes.
const LOSS_256THS: u64 = 50;
/// Two intervals agree within an eighth …
const AGREE_RATIO: f64 = 0.125;
/// … or within this rate.
const AGREE_RATE: Rate = Rate(4_000);
/// Rounds for which a rate stays pinned.
const PINNED_ROUNDS: u64 = 48;
/// Min length of an interval, ns.
const MIN_NANOS: u64 = 1_000_000;

/// The fields of one acknowledgement that this model uses.
#[derive(Clone, Copy, Debug)]
pub struct PolicerSample {
    pub now: Timestamp,
    /// Bytes delivered since the flow started.
    pub delivered: u64,
    /// Bytes lost since the flow started.
    pub lost: u64,
    /// True if this acknowledgement revealed a loss.
    pub new_loss: bool,
    /// True if a round began.
    pub round_start: bool,
    /// True if the sample was application-limited.
    pub app_limited: bool,
}

/// The policer detector.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongTerm {
    sampling: bool,
    pinned: bool,
    rate: Rate,
    rounds: u64,
    start: Timestamp,
    start_delivered: u64,
    start_lost: u64,
}

impl LongTerm {
    /// Return the pinned rate, if there is one.
    #[inline]
    pub const fn pinned(&self) -> Option<Rate> {
        if self.pinned {
            Some(self.rate)
        } else {
            None
        }
    }

    /// True if a rate is pinned, or an interval between losses is being sampled.
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.sampling || self.pinned
    }

    /// Reset all state.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Count a round in PROBE_BW with a pinned rate. Returns true when it is time to probe the path again.
    #[inline]
    pub fn on_pinned_round(&mut self) -> bool {
        self.rounds += 1;
        if self.rounds < PINNED_ROUNDS {
            return false;
        }
        self.reset();
        true
    }

    /// Update with an acknowledgement while no rate is pinned.
    #[inline]
    pub fn update(&mut self, sample: &PolicerSample) {
        if !self.sampling {
            // Losses bound an interval: the bucket is empty at both ends.
            if !sample.new_loss {
                return;
            }
            self.begin(sample);
            self.sampling = true;
        }
        if sample.app_limited {
            self.reset();
            return;
        }
        if sample.round_start {
            self.rounds += 1;
        }
        if self.rounds < MIN_ROUNDS {
            return;
        }
        if self.rounds > MAX_ROUNDS {
            self.reset();
            return;
        }
        if sample.new_loss {
            self.end(sample);
        }
    }

    fn begin(&mut self, sample: &PolicerSample) {
        self.rounds = 0;
        self.start = sample.now;
        self.start_delivered = sample.delivered;
        self.start_lost = sample.lost;
    }

    fn end(&mut self, sample: &PolicerSample) {
        let lost = sample.lost - self.start_lost;
        let delivered = sample.delivered - self.start_delivered;
        let span = sample.now.since(self.start);
        if delivered == 0 || lost * 256 < LOSS_256THS * delivered || span.0 < MIN_NANOS {
            return;
        }
        let rate = Rate::from_bytes_over(delivered, span);
        let difference = rate.0.abs_diff(self.rate.0);
        let agree = difference as f64 <= AGREE_RATIO * self.rate.0 as f64 || difference <= AGREE_RATE.0;
        if self.rate != Rate::ZERO && agree {
            self.rate = Rate((rate.0 + self.rate.0) / 2);
            self.pinned = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_MS: u64 = 100;

    /// Run rounds of 100 ms with `bytes` delivered each, and a loss of `lost` bytes at the end of every `every`-th.
    fn drive(model: &mut LongTerm, state: &mut PolicerSample, rounds: u64, every: u64, bytes: u64, lost: u64) {
        for i in 1..=rounds {
            state.now = Timestamp(state.now.0 + ROUND_MS * 1_000_000);
            state.delivered += bytes;
            state.new_loss = i % every == 0;
            if state.new_loss {
                state.lost += lost;
            }
            state.round_start = true;
            if model.pinned().is_some() {
                return;
            }
            model.update(state);
        }
    }

    fn fresh() -> PolicerSample {
        PolicerSample {
            now: Timestamp::ZERO,
            delivered: 0,
            lost: 0,
            new_loss: false,
            round_start: false,
            app_limited: false,
        }
    }

    #[test]
    fn two_agreeing_intervals_pin_the_rate() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        // 10 kB per 100 ms = 0.8 Mbit/s with 40 % loss every fifth round.
        drive(&mut model, &mut state, 5, 5, 10_000, 20_000);
        assert!(model.sampling && model.pinned().is_none(), "the first loss only starts an interval");
        drive(&mut model, &mut state, 5, 5, 10_000, 20_000);
        assert!(model.pinned().is_none(), "one interval proves nothing");
        drive(&mut model, &mut state, 5, 5, 10_000, 20_000);
        assert_eq!(model.pinned(), Some(Rate(800_000)));
    }

    #[test]
    fn light_loss_is_no_policer() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        // 9 kB of 50 kB: 46/256.
        drive(&mut model, &mut state, 60, 5, 10_000, 9_000);
        assert_eq!(model.pinned(), None);
    }

    #[test]
    fn different_rates_do_not_pin_until_two_agree() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        drive(&mut model, &mut state, 5, 5, 10_000, 20_000);
        drive(&mut model, &mut state, 5, 5, 10_000, 20_000);
        drive(&mut model, &mut state, 5, 5, 13_000, 20_000);
        assert_eq!(model.pinned(), None, "30 % apart");
        drive(&mut model, &mut state, 5, 5, 14_000, 20_000);
        assert_eq!(model.pinned(), Some(Rate(1_080_000)), "within an eighth: the mean");
    }

    #[test]
    fn slow_rates_agree_within_4_kbit() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        // 100 and 140 bytes per 100 ms: 8 and 11.2 kbit/s, more than an eighth apart.
        drive(&mut model, &mut state, 5, 5, 100, 1_000);
        drive(&mut model, &mut state, 5, 5, 100, 1_000);
        drive(&mut model, &mut state, 5, 5, 140, 1_000);
        assert_eq!(model.pinned(), Some(Rate(9_600)));
    }

    #[test]
    fn intervals_without_an_end_are_dropped() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        drive(&mut model, &mut state, 1, 1, 10_000, 1_000);
        assert!(model.sampling);
        drive(&mut model, &mut state, 16, 99, 10_000, 0);
        assert!(!model.sampling, "more than 16 rounds");
    }

    #[test]
    fn application_limit_drops_the_interval() {
        let (mut model, mut state) = (LongTerm::default(), fresh());
        drive(&mut model, &mut state, 1, 1, 10_000, 1_000);
        state.app_limited = true;
        state.new_loss = false;
        model.update(&state);
        assert!(!model.sampling);
    }

    #[test]
    fn pinned_for_48_rounds() {
        let mut model = LongTerm { pinned: true, rate: Rate(1), ..LongTerm::default() };
        for _ in 0..47 {
            assert!(!model.on_pinned_round());
        }
        assert!(model.on_pinned_round());
        assert_eq!(model.pinned(), None);
    }
}
