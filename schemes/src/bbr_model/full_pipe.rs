//! Detects a full pipe: sending faster no longer delivers more.
//!
//! The pipe is full when the bandwidth grew by less than a quarter over three rounds: three, because a receiver's
//! window or a burst of cross traffic can flatten one (draft-cardwell-iccrg-bbr, §4.3.2).

use ccgym_core::Rate;

/// Growth per round below which the estimate counts as flat.
const GROWTH: f64 = 1.25;
/// Flat rounds that fill the pipe.
const FLAT_ROUNDS: u32 = 3;

/// The full-pipe estimator.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    baseline: Rate,
    flat_rounds: u32,
    reached: bool,
}

impl FullPipe {
    /// True if the pipe is full, until [`FullPipe::restart`].
    #[inline]
    pub const fn reached(&self) -> bool {
        self.reached
    }

    /// Update at the end of a round. Application-limited rounds do not count.
    #[inline]
    pub fn on_round(&mut self, bandwidth: Rate, app_limited: bool) {
        if self.reached || app_limited {
            return;
        }
        if bandwidth.0 as f64 >= self.baseline.0 as f64 * GROWTH {
            self.baseline = bandwidth;
            self.flat_rounds = 0;
        } else {
            self.flat_rounds += 1;
            self.reached = self.flat_rounds >= FLAT_ROUNDS;
        }
    }

    pub fn restart(&mut self, baseline: Rate) {
        *self = Self { baseline, ..Self::default() };
    }

    /// Restart after a timeout: earlier measurements may not describe the path any more.
    pub const fn on_timeout(&mut self) {
        self.baseline = Rate::ZERO;
    }

    /// Restart after a spurious loss: measure growth again over three new rounds.
    pub const fn on_spurious_loss(&mut self) {
        self.baseline = Rate::ZERO;
        self.flat_rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_after_three_flat_rounds() {
        // (bandwidth of each round in Mbit/s, application-limited, number of the round that fills; 0: never)
        for (name, rounds, expected) in [
            ("doubling never fills", &[(1, false), (2, false), (4, false), (8, false), (16, false)][..], 0),
            ("three flat rounds", &[(1, false), (2, false), (2, false), (2, false), (2, false)], 5),
            ("exactly a quarter more is growth", &[(4, false), (5, false), (5, false), (5, false), (5, false)], 5),
            ("growth starts the count again", &[(4, false), (4, false), (4, false), (8, false), (8, false)], 0),
            ("slow growth is compared with the baseline", &[(10, false), (11, false), (12, false), (13, false)], 0),
            ("application-limited rounds do not count", &[(4, false), (4, true), (4, true), (4, true), (4, false)], 0),
        ] {
            let mut pipe = FullPipe::default();
            let mut filled = 0;
            for (i, &(mbps, app_limited)) in rounds.iter().enumerate() {
                pipe.on_round(Rate(mbps * 1_000_000), app_limited);
                if pipe.reached() && filled == 0 {
                    filled = i + 1;
                }
            }
            assert_eq!(filled, expected, "{name}");
        }
    }

    #[test]
    fn stays_full() {
        let mut pipe = FullPipe::default();
        for _ in 0..4 {
            pipe.on_round(Rate(1), false);
        }
        assert!(pipe.reached());
        pipe.on_timeout();
        pipe.on_spurious_loss();
        pipe.on_round(Rate(1_000_000), false);
        assert!(pipe.reached());
    }

    #[test]
    fn restarts_from_a_baseline() {
        let mut pipe = FullPipe::default();
        for _ in 0..4 {
            pipe.on_round(Rate(1), false);
        }
        pipe.restart(Rate(100));
        assert!(!pipe.reached());
        for _ in 0..3 {
            pipe.on_round(Rate(120), false);
        }
        assert!(pipe.reached(), "a fifth more than the baseline is flat");
    }
}
