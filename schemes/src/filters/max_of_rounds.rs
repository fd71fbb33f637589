//! Max over a sliding window of rounds, in constant space (K. Nichols' estimator, as in Linux `lib/win_minmax.c`;
//! restated, not translated).
//!
//! Three candidates are kept, best first and oldest first: the best of the window, the best since that one, and the
//! best since the second. When the best is too old the next one replaces it.

/// One remembered sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Candidate {
    at: u64,
    value: u64,
}

/// The filter. The caller chooses the unit of time (BBR: packet-timed rounds).
#[derive(Clone, Copy, Debug)]
pub struct MaxOfRounds {
    window: u64,
    candidates: [Candidate; 3],
}

impl MaxOfRounds {
    /// Make an empty filter in which a sample counts while its age is at most `window`.
    pub const fn new(window: u64) -> Self {
        Self { window, candidates: [Candidate { at: 0, value: 0 }; 3] }
    }

    /// Return the current max; zero before the first sample.
    #[inline]
    pub const fn get(&self) -> u64 {
        self.candidates[0].value
    }

    /// Add the sample `value` at time `now`, which never decreases.
    #[inline]
    pub fn update(&mut self, now: u64, value: u64) {
        let new = Candidate { at: now, value };
        let [best, second, third] = self.candidates;
        if value >= best.value || now - third.at > self.window {
            self.candidates = [new; 3];
            return;
        }
        if value >= second.value {
            self.candidates = [best, new, new];
        } else if value >= third.value {
            self.candidates[2] = new;
        }
        self.age(new);
    }

    /// Drop candidates that left the window, and spread their successors over it: a second candidate as old as the
    /// first would be of no use when that one expires.
    fn age(&mut self, new: Candidate) {
        let [best, second, third] = self.candidates;
        let age = new.at - best.at;
        if age > self.window {
            self.candidates = if new.at - second.at > self.window { [third, new, new] } else { [second, third, new] };
        } else if second.at == best.at && age > self.window / 4 {
            self.candidates = [best, new, new];
        } else if third.at == second.at && age > self.window / 2 {
            self.candidates[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(window: u64, samples: &[(u64, u64)]) -> u64 {
        let mut filter = MaxOfRounds::new(window);
        for &(now, value) in samples {
            filter.update(now, value);
        }
        filter.get()
    }

    #[test]
    fn window_rules() {
        for (name, samples, expected) in [
            ("first sample", &[(1, 50)][..], 50),
            ("larger replaces at once", &[(1, 50), (2, 60)], 60),
            ("smaller does not", &[(1, 50), (2, 40)], 50),
            ("still in force at age 10", &[(1, 50), (4, 40), (11, 30)], 50),
            ("expires at age 11, second best takes over", &[(1, 50), (4, 40), (12, 30)], 40),
            ("everything expired", &[(1, 50), (30, 30)], 30),
            ("a second too close to the first was not kept", &[(1, 50), (2, 40), (12, 30)], 30),
            ("second expired with the first", &[(1, 50), (4, 40), (7, 35), (16, 10)], 35),
        ] {
            assert_eq!(after(10, samples), expected, "{name}");
        }
    }

    #[test]
    fn a_drop_in_bandwidth_is_seen_one_window_later() {
        let mut filter = MaxOfRounds::new(10);
        for round in 0..5 {
            filter.update(round, 100);
        }
        let seen: Vec<u64> = (5..20)
            .map(|round| {
                filter.update(round, 10);
                filter.get()
            })
            .collect();
        // The last 100 came in round 4: it counts in rounds 5..=14.
        assert!(seen[..10].iter().all(|&v| v == 100), "{seen:?}");
        assert!(seen[10..].iter().all(|&v| v == 10), "{seen:?}");
    }

    #[test]
    fn never_below_the_newest_nor_above_the_true_maximum_so_far() {
        let mut filter = MaxOfRounds::new(10);
        let mut x = 12345u64;
        let mut all = 0;
        for now in 0..1000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = x >> 40;
            all = all.max(value);
            filter.update(now, value);
            assert!(filter.get() >= value && filter.get() <= all);
        }
    }
}
