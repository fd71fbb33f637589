//! The results of an episode for one flow: throughput, delay, loss and utilization, as measured by its sender.

use ccgym_agent::GroundTruth;
use ccgym_core::MonitorInterval;

/// Bits of the mantissa that select a bin: a bin is 1.6 % wide.
const FINE: u32 = 6;
/// Values below 2^LOW nanoseconds (0.25 µs) share the first bin.
const LOW: u32 = 8;
/// Values from 2^HIGH nanoseconds (275 s) on share the last.
const HIGH: u32 = 38;
const BINS: usize = ((HIGH - LOW) as usize) << FINE;

/// Durations counted in bins of equal ratio: percentiles within 0.8 % without keeping samples.
#[derive(Clone, Debug)]
pub struct DurationHistogram {
    bins: Vec<u32>,
    count: u64,
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self { bins: vec![0; BINS], count: 0 }
    }
}

impl DurationHistogram {
    /// Count a duration.
    #[inline]
    pub fn add(&mut self, nanoseconds: u64) {
        let value = nanoseconds.clamp(1 << LOW, (1 << HIGH) - 1);
        // Exponent and first bits of the mantissa are octave and place in it: below 2⁵³ the number is exact.
        let place = (value as i64 as f64).to_bits() >> (52 - FINE);
        self.bins[place as usize - ((1023 + LOW as usize) << FINE)] += 1;
        self.count += 1;
    }

    /// Return the duration in nanoseconds at share `p`, 0–1, of the counted ones; `None` if none was counted.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Option<f64> {
        let mut rest = p * self.count as f64;
        for (i, &n) in self.bins.iter().enumerate() {
            let n = f64::from(n);
            if n > 0.0 && rest <= n {
                let base = 2f64.powi((i >> FINE) as i32 + LOW as i32);
                let step = base / f64::from(1 << FINE);
                return Some(base + step * ((i & ((1 << FINE) - 1)) as f64 + (rest / n).clamp(0.0, 1.0)));
            }
            rest -= n;
        }
        None
    }
}

/// Running sums of one flow's episode.
#[derive(Clone, Debug, Default)]
pub struct EpisodeStats {
    /// Decisions.
    pub steps: u64,
    seconds: f64,
    acked_bytes: u64,
    acked_packets: u64,
    lost_packets: u64,
    sent_packets: u64,
    capacity_bits: f64,
    fair_bits: f64,
    one_way_sum: f64,
    samples: u64,
    one_way: DurationHistogram,
    rtt: DurationHistogram,
}

/// Summary of an [`EpisodeStats`].
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Summary {
    /// Decisions.
    pub steps: u64,
    /// Seconds from the first decision on.
    pub duration_s: f64,
    /// Acknowledged wire bytes over the duration, Mbit/s.
    pub throughput_mbps: f64,
    /// Mean one-way delay, milliseconds.
    pub delay_mean_ms: Option<f64>,
    /// 95th percentile of the one-way delay, milliseconds.
    pub delay_p95_ms: Option<f64>,
    /// 95th percentile of the round trip, milliseconds.
    pub rtt_p95_ms: Option<f64>,
    /// Lost over lost plus acknowledged packets.
    pub loss: f64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Throughput over the link's mean capacity; `None` if the capacity is unknown.
    pub utilization: Option<f64>,
    /// Throughput over the mean of the flow's fair shares, in the same way: 1 is fair, with any number of flows.
    pub fair_share_ratio: Option<f64>,
}

impl EpisodeStats {
    /// Add an interval with its ground truth.
    pub fn add(&mut self, m: &MonitorInterval, truth: &GroundTruth) {
        let seconds = m.duration().as_secs_f64();
        self.steps += 1;
        self.seconds += seconds;
        self.acked_bytes += m.acked_bytes;
        self.acked_packets += m.acked_packets;
        self.lost_packets += m.lost_packets;
        self.sent_packets += m.sent_packets;
        self.capacity_bits += truth.link_rate * seconds;
        self.fair_bits += truth.fair_share * seconds;
        for s in m.samples() {
            self.one_way.add(s.one_way.max(0) as u64);
            self.rtt.add(s.rtt.0);
        }
        self.one_way_sum += m.mean_one_way_delay().unwrap_or(0.0) * m.rtt_count() as f64;
        self.samples += m.rtt_count() as u64;
    }

    /// Return the summary so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let bits = self.acked_bytes as f64 * 8.0;
        let settled = self.lost_packets + self.acked_packets;
        let part = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Summary {
            steps: self.steps,
            duration_s: self.seconds,
            throughput_mbps: part(bits, self.seconds) / 1e6,
            delay_mean_ms: (self.samples > 0).then(|| self.one_way_sum / self.samples as f64 * 1e3),
            delay_p95_ms: self.one_way.percentile(0.95).map(|ns| ns / 1e6),
            rtt_p95_ms: self.rtt.percentile(0.95).map(|ns| ns / 1e6),
            loss: part(self.lost_packets as f64, settled as f64),
            sent_packets: self.sent_packets,
            utilization: (self.capacity_bits > 0.0).then(|| bits / self.capacity_bits),
            fair_share_ratio: (self.fair_bits > 0.0).then(|| bits / self.fair_bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_a_bin() {
        let mut h = DurationHistogram::default();
        assert_eq!(h.percentile(0.5), None);
        for ms in 1..=1000u64 {
            h.add(ms * 1_000_000);
        }
        for (p, expected) in [(0.05, 50e6), (0.5, 500e6), (0.95, 950e6), (1.0, 1000e6)] {
            let found = h.percentile(p).unwrap();
            assert!((found / expected - 1.0).abs() < 0.016, "{p}: {found}");
        }
        h.add(0);
        h.add(u64::MAX);
        assert!(h.percentile(1.0).unwrap() <= 2f64.powi(38));
    }
}
