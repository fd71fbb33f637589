//! Report of a path, including whether the machine was fast enough.

use ccgym_path::{Counters, LinkEvent};
use ccgym_run::recorder::{LinkSeries, PacketLog};

use super::release::ReleaseErrors;

/// Max share of late releases in a run.
const MAX_LATE_SHARE: f64 = 0.01;
/// Max delay of a single release: a flow without acknowledgements stops sending, so few packets are late in the longest
/// stalls, and 20 ms overflow the short queues of fast paths.
const MAX_STALL_NS: u64 = 20_000_000;

/// Report of one direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// Arrival and actual departure of each packet of a flow.
    pub log: Option<PacketLog>,
    /// Events of each element, at its scheduled times; only links have some.
    pub events: Vec<Vec<LinkEvent>>,
    /// Counters of the elements by kind.
    pub counters: Vec<(String, Counters)>,
    /// Index of the first link among the elements.
    pub bottleneck: Option<usize>,
    /// Samples of the first link; sample k was taken at (k + 1) × step.
    pub queue: LinkSeries,
    /// Delays of releases.
    pub release: ReleaseErrors,
    /// Packets lost in the devices; those lost in the path are in the counters.
    pub device_drops: u64,
    /// Packets dropped because packets under way filled the emulator's `packet_memory`; not in the counters either.
    pub refused: u64,
}

impl DirectionReport {
    /// Return the events of element number `index`.
    #[must_use]
    pub fn events(&self, index: Option<usize>) -> &[LinkEvent] {
        index.and_then(|index| self.events.get(index)).map_or(&[], Vec::as_slice)
    }
}

/// Report of both directions.
#[derive(Clone, Debug, Default)]
pub struct EmulatorReport {
    /// From inside to outside.
    pub up: DirectionReport,
    /// From outside to inside.
    pub down: DirectionReport,
}

impl EmulatorReport {
    /// Return the reason if the machine could not keep the schedule: packets lost in devices or because memory was full, more
    /// than 1 % of the packets of a direction released more than a millisecond late, or one more than 20 ms.
    #[must_use]
    pub fn limited(&self) -> Option<String> {
        let mut reasons = Vec::new();
        for (name, direction) in [("uplink", &self.up), ("downlink", &self.down)] {
            if direction.device_drops > 0 {
                reasons.push(format!("{name}: {} packets were lost in a device", direction.device_drops));
            }
            if direction.refused > 0 {
                reasons.push(format!(
                    "{name}: {} packets were dropped because the packet memory was full",
                    direction.refused
                ));
            }
            let share = direction.release.late as f64 / direction.release.count.max(1) as f64;
            if share > MAX_LATE_SHARE {
                reasons.push(format!("{name}: {:.1} % of packets left more than 1 ms late", share * 100.0));
            }
            if direction.release.max > MAX_STALL_NS {
                let still = direction.release.max as f64 / 1e6;
                reasons.push(format!("{name}: the path stood still for {still:.0} ms"));
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
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
        assert_eq!(report.limited(), None);
        report.up.release.record(301_000_000);
        assert_eq!(report.limited().as_deref(), Some("uplink: the path stood still for 301 ms"));
        (0..200).for_each(|_| report.down.release.record(1_000_001));
        let said = report.limited().unwrap_or_default();
        assert!(said.ends_with("; downlink: 100.0 % of packets left more than 1 ms late"), "{said}");
    }
}
