//! Statistics of one decision interval: what features are computed from, in training and in deployment.

use crate::congestion_control::Control;
use crate::rtt::RttEstimator;
use crate::units::{Rate, TimeSpan, Timestamp};

/// What happened at a sender between two decisions. Sizes are wire bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorInterval {
    /// Begin.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes declared lost.
    pub lost_bytes: u64,
    /// Round-trip samples, in order of arrival.
    pub rtt_samples: Vec<TimeSpan>,
    /// Sum of the squares of sample times and their products with the RTTs, for the slope.
    slope: SlopeSums,
    /// sRTT at the end.
    pub srtt: TimeSpan,
    /// Smallest round trip of the flow's life so far; [`TimeSpan::MAX`] before the first sample.
    pub min_rtt: TimeSpan,
    /// Bytes in flight at the end.
    pub in_flight: u64,
    /// Window in force at the end.
    pub cwnd: u64,
    /// Pacing rate in force at the end; zero if unpaced.
    pub pacing_rate: Rate,
    /// Sum of one-way delays (receiver's clock minus sender's) over acknowledgements.
    one_way_sum: i128,
    one_way_count: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SlopeSums {
    n: f64,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
}

impl MonitorInterval {
    /// An empty interval that begins at `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            end: start,
            sent_packets: 0,
            sent_bytes: 0,
            acked_packets: 0,
            acked_bytes: 0,
            lost_packets: 0,
            lost_bytes: 0,
            rtt_samples: Vec::new(),
            slope: SlopeSums::default(),
            srtt: TimeSpan::ZERO,
            min_rtt: TimeSpan::MAX,
            in_flight: 0,
            cwnd: 0,
            pacing_rate: Rate::ZERO,
            one_way_sum: 0,
            one_way_count: 0,
        }
    }

    /// Length.
    #[must_use]
    pub const fn duration(&self) -> TimeSpan {
        self.end.since(self.start)
    }
    /// Bytes sent over the interval's length.
    #[must_use]
    pub fn send_rate(&self) -> Rate {
        Rate::from_bytes_over(self.sent_bytes, self.duration())
    }
    /// Bytes acknowledged over the interval's length.
    #[must_use]
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_over(self.acked_bytes, self.duration())
    }
    /// Lost over lost plus acknowledged packets; zero if neither.
    #[must_use]
    pub fn loss_fraction(&self) -> f64 {
        let settled = self.lost_packets + self.acked_packets;
        if settled == 0 {
            0.0
        } else {
            self.lost_packets as f64 / settled as f64
        }
    }
    /// Mean of the round-trip samples; `None` without a sample.
    #[must_use]
    pub fn mean_rtt(&self) -> Option<TimeSpan> {
        mean(&self.rtt_samples)
    }
    /// Smallest sample of this interval.
    #[must_use]
    pub fn interval_min_rtt(&self) -> Option<TimeSpan> {
        self.rtt_samples.iter().copied().min()
    }
    /// Largest sample of this interval.
    #[must_use]
    pub fn interval_max_rtt(&self) -> Option<TimeSpan> {
        self.rtt_samples.iter().copied().max()
    }
    /// Mean of the second half of the samples minus mean of the first half, in seconds; zero below two samples
    /// (Aurora's latency inflation before division by the interval's length).
    #[must_use]
    pub fn half_split_rtt_change(&self) -> f64 {
        let (first, second) = self.rtt_samples.split_at(self.rtt_samples.len() / 2);
        match (mean(first), mean(second)) {
            (Some(a), Some(b)) => b.as_secs_f64() - a.as_secs_f64(),
            _ => 0.0,
        }
    }
    /// Least-squares slope of the round trip over time, seconds per second; zero below two samples.
    #[must_use]
    pub fn rtt_slope(&self) -> f64 {
        let s = &self.slope;
        let den = s.n * s.tt - s.t * s.t;
        if s.n < 2.0 || den <= 0.0 {
            0.0
        } else {
            (s.n * s.ty - s.t * s.y) / den
        }
    }
    /// Mean one-way delay of acknowledged packets in seconds; only differences mean something unless the clocks are
    /// one (as in the simulator). `None` without an acknowledgement.
    #[must_use]
    pub fn mean_one_way_delay(&self) -> Option<f64> {
        (self.one_way_count > 0).then(|| self.one_way_sum as f64 / self.one_way_count as f64 / 1e9)
    }

    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent_packets += 1;
        self.sent_bytes += bytes;
    }

    /// `trip` is (send time, arrival time) of the packet that the round-trip sample belongs to.
    pub(crate) fn on_ack(
        &mut self,
        now: Timestamp,
        packets: u64,
        bytes: u64,
        rtt: Option<TimeSpan>,
        trip: (Timestamp, Timestamp),
    ) {
        self.acked_packets += packets;
        self.acked_bytes += bytes;
        if let Some(rtt) = rtt {
            self.rtt_samples.push(rtt);
            let t = now.since(self.start).as_secs_f64();
            let y = rtt.as_secs_f64();
            let s = &mut self.slope;
            s.n += 1.0;
            s.t += t;
            s.y += y;
            s.tt += t * t;
            s.ty += t * y;
            self.one_way_sum += i128::from(trip.1 .0) - i128::from(trip.0 .0);
            self.one_way_count += 1;
        }
    }

    pub(crate) fn on_lost(&mut self, packets: u64, bytes: u64) {
        self.lost_packets += packets;
        self.lost_bytes += bytes;
    }

    /// Close the interval at `now` and hand it out; a fresh one begins. The sample buffer of the old one is copied,
    /// not moved, so that stepping does not allocate anew for the running one.
    pub(crate) fn take(&mut self, now: Timestamp, rtt: &RttEstimator, in_flight: u64, control: &Control) -> Self {
        self.end = now;
        self.srtt = rtt.smoothed();
        self.min_rtt = rtt.min();
        self.in_flight = in_flight;
        self.cwnd = control.cwnd;
        self.pacing_rate = control.pacing_rate;
        let done = self.clone();
        let mut samples = std::mem::take(&mut self.rtt_samples);
        samples.clear();
        *self = Self { rtt_samples: samples, ..Self::new(now) };
        done
    }
}

fn mean(samples: &[TimeSpan]) -> Option<TimeSpan> {
    if samples.is_empty() {
        return None;
    }
    Some(TimeSpan(samples.iter().map(|s| s.0).sum::<u64>() / samples.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_a_rising_delay() {
        let mut m = MonitorInterval::new(Timestamp::from_millis(100));
        for i in 0..10u64 {
            m.on_sent(1500);
            // RTT rises 1 ms per 10 ms.
            let now = Timestamp::from_millis(100 + 10 * (i + 1));
            m.on_ack(now, 1, 1500, Some(TimeSpan::from_millis(50 + i)), (Timestamp::ZERO, Timestamp::from_millis(30)));
        }
        m.on_lost(2, 3000);
        let done = m.take(Timestamp::from_millis(200), &RttEstimator::default(), 3000, &Control::window(15_000));
        assert!((done.rtt_slope() - 0.1).abs() < 1e-9);
        assert!((done.half_split_rtt_change() - 0.005).abs() < 1e-9);
        assert_eq!(done.delivery_rate(), Rate(1_200_000));
        assert_eq!(done.mean_rtt(), Some(TimeSpan(54_500_000)));
        assert!((done.loss_fraction() - 2.0 / 12.0).abs() < 1e-12);
        assert!((done.mean_one_way_delay().unwrap() - 0.030).abs() < 1e-12);
        assert_eq!(m.start, Timestamp::from_millis(200));
        assert_eq!((m.sent_packets, m.rtt_samples.len()), (0, 0));
    }
}
