//! How late packets were released, and whether a run was held up by the machine.

use ccgym_run::episode::DurationHistogram;

use super::path_emulator::EmulatorReport;

/// Releases later than this count against the machine.
const LATE_NS: u64 = 1_000_000;
/// Share of late releases that a run may have.
const TOLERATED: f64 = 0.01;
/// A release later than this counts by itself: a flow that gets no acknowledgement stops sending, so few packets are
/// late in the longest stalls, and 20 ms overflow the short queues of fast paths.
const STILL_NS: u64 = 20_000_000;

/// Errors of release times: how long after its due time each packet left, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ReleaseErrors {
    errors: DurationHistogram,
    /// Releases so far.
    pub count: u64,
    /// Releases that were more than a millisecond late.
    pub late: u64,
    /// Largest error in nanoseconds.
    pub max: u64,
}

impl ReleaseErrors {
    /// A packet left this many nanoseconds after it was due.
    pub fn record(&mut self, error_ns: u64) {
        self.errors.add(error_ns);
        self.count += 1;
        self.late += u64::from(error_ns > LATE_NS);
        self.max = self.max.max(error_ns);
    }

    /// The error in nanoseconds that a share `p` of the releases does not exceed; zero if there were none.
    pub fn quantile(&self, p: f64) -> u64 {
        self.errors.percentile(p).map_or(0, |error| (error as u64).min(self.max))
    }
}

/// Why the machine could not hold the schedule, if it could not: packets lost in devices or for want of memory, more
/// than 1 % of the packets of a direction released more than a millisecond late, or one more than 20 ms.
pub fn emulator_limited(report: &EmulatorReport) -> Option<String> {
    let mut reasons = Vec::new();
    for (name, direction) in [("uplink", &report.up), ("downlink", &report.down)] {
        if direction.device_drops > 0 {
            reasons.push(format!("{name}: {} packets were lost in a device", direction.device_drops));
        }
        if direction.refused > 0 {
            reasons
                .push(format!("{name}: {} packets were dropped because the packet memory was full", direction.refused));
        }
        let share = direction.release.late as f64 / direction.release.count.max(1) as f64;
        if share > TOLERATED {
            reasons.push(format!("{name}: {:.1} % of packets left more than 1 ms late", share * 100.0));
        }
        if direction.release.max > STILL_NS {
            let still = direction.release.max as f64 / 1e6;
            reasons.push(format!("{name}: the path stood still for {still:.0} ms"));
        }
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_counts_though_few_packets_saw_it() {
        let mut report = EmulatorReport::default();
        for _ in 0..9_999 {
            report.up.release.record(100_000);
        }
        report.up.release.record(20_000_000);
        assert_eq!(emulator_limited(&report), None);
        report.up.release.record(301_000_000);
        assert_eq!(emulator_limited(&report).as_deref(), Some("uplink: the path stood still for 301 ms"));
        (0..200).for_each(|_| report.down.release.record(1_000_001));
        let said = emulator_limited(&report).unwrap_or_default();
        assert!(said.ends_with("; downlink: 100.0 % of packets left more than 1 ms late"), "{said}");
    }

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
