//! Delays of packets' releases.

use ccgym_run::episode::DurationHistogram;

/// Max delay of a release that is not late, nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// Delays of releases after their due times, nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ReleaseErrors {
    errors: DurationHistogram,
    /// Number of releases.
    pub count: u64,
    /// Releases more than a millisecond late.
    pub late: u64,
    /// Max delay, nanoseconds.
    pub max: u64,
}

impl ReleaseErrors {
    /// Record a release this many nanoseconds after its due time.
    pub fn record(&mut self, error_ns: u64) {
        self.errors.add(error_ns);
        self.count += 1;
        self.late += u64::from(error_ns > LATE_NS);
        self.max = self.max.max(error_ns);
    }

    /// Return quantile `p` of the delays, nanoseconds; zero if there were no releases.
    pub fn quantile(&self, p: f64) -> u64 {
        self.errors.percentile(p).map_or(0, |error| (error as u64).min(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut errors = ReleaseErrors::default();
        assert_eq!((errors.quantile(0.99), errors.max), (0, 0));
        for i in 1..=1000u64 {
            errors.record(i * 1000);
        }
        let p99 = errors.quantile(0.99);
        assert!((990_000..=1_052_000).contains(&p99), "{p99}");
        assert_eq!((errors.quantile(1.0), errors.count, errors.late), (1_000_000, 1000, 0));
        errors.record(5_000_000);
        assert_eq!((errors.count, errors.late, errors.max), (1001, 1, 5_000_000));
    }
}
