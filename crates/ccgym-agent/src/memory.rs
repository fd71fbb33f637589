//! State of a flow beyond the current interval. Seconds, bit/s and packets; zero while unknown.

use super::expressions::{Function, Window};
use super::spec::Phase;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::TimeSpan;

/// The memory of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Wire bytes of a full packet.
    pub mss: f64,
    /// Length of the latest interval.
    pub seconds: f64,
    /// Bytes sent, acknowledged and lost over its length.
    pub send_rate: f64,
    pub delivery_rate: f64,
    pub lost_rate: f64,
    /// Bytes acknowledged beyond one packet over its length: PCC counts the time from one arrival to the next.
    pub receive_rate: f64,
    /// Mean RTT of the latest interval that had a sample.
    pub mean_rtt: f64,
    /// Its min and max.
    pub interval_min_rtt: f64,
    pub interval_max_rtt: f64,
    /// Min RTT: since the flow started, or of the latest intervals.
    pub min_rtt: f64,
    /// Min RTTs of the latest intervals with a sample, if only these count.
    minima: Option<Window>,
    /// Min of the mean RTTs of recorded intervals.
    pub min_mean_rtt: f64,
    /// Max rate of any interval.
    pub max_delivery_rate: f64,
    /// Mean delivery-rate sample of the latest interval that had one, and its max.
    pub sampled_delivery_rate: f64,
    pub max_sampled_delivery_rate: f64,
    /// Rate and window of the decision.
    pub rate: f64,
    pub window: f64,
    /// Gain of the base scheme.
    pub gain: f64,
    /// Window of the base scheme, packets.
    pub inner_window: f64,
    /// Phase of the flow.
    pub phase: Phase,
    /// The latest decision; `None` before the first.
    pub action: Option<[f64; 2]>,
    /// Reward of the latest interval, if a feature shows it.
    pub reward: f64,
}

impl Memory {
    pub(crate) fn new(mss: u64) -> Self {
        Self { mss: mss as f64, gain: 1.0, ..Self::default() }
    }

    /// Take the min RTT over this many intervals.
    pub(crate) fn with_min_rtt_of(self, intervals: Option<u32>) -> Self {
        Self { minima: intervals.map(|n| Window::new(n as usize)), ..self }
    }

    /// Update the flow's min RTT between intervals.
    pub(crate) fn on_min_rtt(&mut self, min_rtt: TimeSpan) {
        self.min_rtt = min_rtt.as_secs_f64();
    }

    /// Return the BDP in packets by the flow's own measurements.
    #[inline]
    pub(crate) fn bdp(&self) -> f64 {
        self.in_packets(self.max_delivery_rate)
    }

    /// Return the packets that `rate` moves in the min RTT.
    #[inline]
    pub(crate) fn in_packets(&self, rate: f64) -> f64 {
        rate * self.min_rtt / (8.0 * self.mss)
    }

    /// Return the rate of one packet per min RTT; zero before the first sample.
    #[inline]
    pub(crate) fn packet_per_min_rtt(&self) -> f64 {
        if self.min_rtt > 0.0 {
            8.0 * self.mss / self.min_rtt
        } else {
            0.0
        }
    }

    /// Add an interval. One that is not `recorded` does not count in the min of the means, as in the warm-up of PCC-RL.
    pub(crate) fn digest(&mut self, m: &MonitorInterval, recorded: bool) {
        self.seconds = m.duration().as_secs_f64();
        let per_second = if self.seconds > 0.0 { 8.0 / self.seconds } else { 0.0 };
        self.send_rate = m.sent_bytes as f64 * per_second;
        self.delivery_rate = m.acked_bytes as f64 * per_second;
        self.lost_rate = m.lost_bytes as f64 * per_second;
        self.receive_rate = (m.acked_bytes as f64 - self.mss).max(0.0) * per_second;
        self.max_delivery_rate = self.max_delivery_rate.max(self.delivery_rate);
        if let Some(rate) = m.sampled_delivery_rate() {
            self.sampled_delivery_rate = rate;
            self.max_sampled_delivery_rate = self.max_sampled_delivery_rate.max(rate);
        }
        if self.minima.is_none() && m.min_rtt != TimeSpan::MAX {
            self.min_rtt = m.min_rtt.as_secs_f64();
        }
        let (Some(mean), Some(min), Some(max)) = (m.mean_rtt(), m.interval_min_rtt(), m.interval_max_rtt()) else {
            return;
        };
        self.mean_rtt = mean.as_secs_f64();
        self.interval_min_rtt = min.as_secs_f64();
        self.interval_max_rtt = max.as_secs_f64();
        if let Some(minima) = &mut self.minima {
            self.min_rtt = minima.push(Function::Min, self.interval_min_rtt);
        }
        if recorded {
            let known = self.min_mean_rtt > 0.0;
            self.min_mean_rtt = if known { self.min_mean_rtt.min(self.mean_rtt) } else { self.mean_rtt };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::interval;
    use ccgym_core::units::Timestamp;

    #[test]
    fn the_smallest_round_trip_of_the_latest_intervals() {
        let mut whole = Memory::new(1500);
        let mut latest = Memory::new(1500).with_min_rtt_of(Some(2));
        latest.on_min_rtt(TimeSpan::from_millis(90));
        assert_eq!(latest.min_rtt, 0.09);
        let mut life = u64::MAX;
        for (rtts, wanted) in [
            (&[100, 80][..], 0.08),
            (&[120], 0.08),
            (&[150, 130], 0.12),
            // One without a sample does not count.
            (&[], 0.12),
            (&[200], 0.13),
        ] {
            let mut m = interval(Timestamp::ZERO, Timestamp::from_millis(300), rtts);
            life = rtts.iter().copied().fold(life, u64::min);
            m.min_rtt = TimeSpan::from_millis(life);
            whole.digest(&m, true);
            latest.digest(&m, true);
            assert_eq!((whole.min_rtt, latest.min_rtt), (0.08, wanted), "{rtts:?}");
        }
    }
}
