//! Statistics of one decision interval, the input to features in training and in deployment.

use crate::congestion_control::Control;
use crate::rtt::RttEstimator;
use crate::units::{Rate, TimeSpan, Timestamp};

/// One round-trip sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// Arrival of the acknowledgement, on the sender's clock.
    pub at: Timestamp,
    /// RTT.
    pub rtt: TimeSpan,
    /// Receiver's clock at arrival minus sender's at departure, nanoseconds.
    pub one_way: i64,
}

/// Averages over the acknowledgements of one interval in which each new one weighs an eighth, as in Indigo
/// (`env/sender.py`). All zero unless the host takes rate samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckEwma {
    /// RTT, seconds.
    pub rtt: f64,
    /// RTT less the flow's min RTT, seconds.
    pub queue_delay: f64,
    /// Delivery rate, bits per second.
    pub delivery_rate: f64,
    /// Bytes sent since the acknowledged packet left, over its RTT, bits per second.
    pub send_rate: f64,
}

impl AckEwma {
    /// Weight of a new sample.
    pub const WEIGHT: f64 = 0.125;

    fn add(&mut self, weight: f64, rtt: f64, queue_delay: f64, delivery_rate: f64, send_rate: f64) {
        self.rtt += weight * (rtt - self.rtt);
        self.queue_delay += weight * (queue_delay - self.queue_delay);
        self.delivery_rate += weight * (delivery_rate - self.delivery_rate);
        self.send_rate += weight * (send_rate - self.send_rate);
    }
}

/// Sums over the samples, computed once when the interval closes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Digest {
    first_half: u64,
    second_half: u64,
    min: u64,
    max: u64,
    one_way: i64,
    slope: f64,
}

/// Statistics of a sender between two decisions. Sizes are wire bytes. Updated while the interval is open; the RTT
/// statistics are valid once it is closed.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorInterval {
    /// Start.
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
    /// Packets that carried a segment sent before.
    pub retransmissions: u64,
    /// Acknowledgements that acknowledged something.
    pub acks: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Packets reported with congestion-experienced.
    pub ce_packets: u64,
    /// True if the application, not window or pacing, limited sending at some time.
    pub app_limited: bool,
    /// sRTT at the end.
    pub srtt: TimeSpan,
    /// RTTVAR at the end (RFC 6298).
    pub rtt_variation: TimeSpan,
    /// Min RTT since the flow started; [`TimeSpan::MAX`] before the first sample.
    pub min_rtt: TimeSpan,
    /// Bytes in flight at the end.
    pub in_flight: u64,
    /// Window at the end.
    pub cwnd: u64,
    /// Pacing rate at the end; zero if unpaced.
    pub pacing_rate: Rate,
    /// ssthresh at the end, if the scheme has one.
    pub ssthresh: Option<u64>,
    /// Averages over the acknowledgements.
    pub ewma: AckEwma,
    /// Number of delivery-rate samples, and their sum in bits per second. Zero unless the host takes rate samples.
    rate_samples: u64,
    rate_sum: u64,
    samples: Vec<RttSample>,
    digest: Digest,
}

impl MonitorInterval {
    /// Make an empty interval that begins at `start`.
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
            retransmissions: 0,
            acks: 0,
            timeouts: 0,
            ce_packets: 0,
            app_limited: false,
            srtt: TimeSpan::ZERO,
            rtt_variation: TimeSpan::ZERO,
            min_rtt: TimeSpan::MAX,
            in_flight: 0,
            cwnd: 0,
            pacing_rate: Rate::ZERO,
            ssthresh: None,
            ewma: AckEwma::default(),
            rate_samples: 0,
            rate_sum: 0,
            samples: Vec::new(),
            digest: Digest::default(),
        }
    }

    /// Return the length.
    #[must_use]
    pub const fn duration(&self) -> TimeSpan {
        self.end.since(self.start)
    }
    /// Return the bytes sent over the interval's length.
    #[must_use]
    pub fn send_rate(&self) -> Rate {
        Rate::from_bytes_over(self.sent_bytes, self.duration())
    }
    /// Return the bytes acknowledged over the interval's length.
    #[must_use]
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_over(self.acked_bytes, self.duration())
    }
    /// Return the mean of the delivery-rate samples; `None` without one. Each covers at least an RTT, so that it shows
    /// the path's rate even if acknowledgements come in bursts, as after a pause of the host.
    #[must_use]
    pub fn sampled_delivery_rate(&self) -> Option<f64> {
        (self.rate_samples > 0).then(|| self.rate_sum as f64 / self.rate_samples as f64)
    }
    /// Return lost over lost plus acknowledged packets; zero if neither.
    #[must_use]
    pub fn loss_fraction(&self) -> f64 {
        let settled = self.lost_packets + self.acked_packets;
        if settled == 0 {
            0.0
        } else {
            self.lost_packets as f64 / settled as f64
        }
    }
    /// Return the RTT samples, in order of arrival.
    #[must_use]
    pub fn samples(&self) -> &[RttSample] {
        &self.samples
    }
    /// Return the bytes of the samples.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.samples.capacity() * std::mem::size_of::<RttSample>()
    }
    /// Return the number of RTT samples.
    #[must_use]
    pub fn rtt_count(&self) -> usize {
        self.samples.len()
    }
    /// Return the mean of the RTT samples; `None` without a sample.
    #[must_use]
    pub fn mean_rtt(&self) -> Option<TimeSpan> {
        mean(self.digest.first_half + self.digest.second_half, self.samples.len())
    }
    /// Return the mean of the first half of the samples (the smaller half of an odd number); `None` below two.
    #[must_use]
    pub fn first_half_rtt(&self) -> Option<TimeSpan> {
        mean(self.digest.first_half, self.samples.len() / 2)
    }
    /// Return the mean of the second half of the samples; `None` without a sample.
    #[must_use]
    pub fn second_half_rtt(&self) -> Option<TimeSpan> {
        mean(self.digest.second_half, self.samples.len().div_ceil(2))
    }
    /// Return the min RTT of this interval.
    #[must_use]
    pub fn interval_min_rtt(&self) -> Option<TimeSpan> {
        (!self.samples.is_empty()).then_some(TimeSpan(self.digest.min))
    }
    /// Return the max RTT of this interval.
    #[must_use]
    pub fn interval_max_rtt(&self) -> Option<TimeSpan> {
        (!self.samples.is_empty()).then_some(TimeSpan(self.digest.max))
    }
    /// Return the mean of the second half of the samples minus mean of the first half, in seconds; zero below two
    /// samples (Aurora's latency inflation before division by the interval's length).
    #[must_use]
    pub fn half_split_rtt_change(&self) -> f64 {
        match (self.first_half_rtt(), self.second_half_rtt()) {
            (Some(a), Some(b)) => b.as_secs_f64() - a.as_secs_f64(),
            _ => 0.0,
        }
    }
    /// Return the least-squares slope of the RTT over time, seconds per second; zero below two samples.
    #[must_use]
    pub const fn rtt_slope(&self) -> f64 {
        self.digest.slope
    }
    /// Return the mean one-way delay of acknowledged packets in seconds; only differences are meaningful unless both
    /// clocks are the same (as in the simulator). `None` without an acknowledgement.
    #[must_use]
    pub fn mean_one_way_delay(&self) -> Option<f64> {
        (!self.samples.is_empty()).then(|| self.digest.one_way as f64 / self.samples.len() as f64 / 1e9)
    }

    /// Add a sent packet of `bytes`; `again`: it is a retransmission.
    #[inline]
    pub fn on_sent(&mut self, bytes: u64, again: bool) {
        self.sent_packets += 1;
        self.sent_bytes += bytes;
        self.retransmissions += u64::from(again);
    }

    /// Add an acknowledgement of `packets` with `bytes` altogether.
    #[inline]
    pub fn on_acked(&mut self, packets: u64, bytes: u64) {
        self.acks += u64::from(packets > 0);
        self.acked_packets += packets;
        self.acked_bytes += bytes;
    }

    /// Add the sample of an acknowledgement at `now`, for a packet that left at `sent` and arrived at `received`.
    #[inline]
    pub fn on_sample(&mut self, now: Timestamp, sent: Timestamp, received: Timestamp) {
        let one_way = received.0.wrapping_sub(sent.0) as i64;
        self.samples.push(RttSample { at: now, rtt: now.since(sent), one_way });
    }

    /// Add the rates of an acknowledgement: a delivery-rate sample, and the other values of [`AckEwma`].
    pub fn on_rates(&mut self, rtt: TimeSpan, min_rtt: TimeSpan, delivery_rate: Rate, send_rate: Rate) {
        let queue_delay = TimeSpan(rtt.0.saturating_sub(min_rtt.0));
        let (rtt, queue_delay) = (rtt.as_secs_f64(), queue_delay.as_secs_f64());
        let weight = if self.rate_samples == 0 { 1.0 } else { AckEwma::WEIGHT };
        self.ewma.add(weight, rtt, queue_delay, delivery_rate.0 as f64, send_rate.0 as f64);
        self.rate_samples += 1;
        self.rate_sum = self.rate_sum.saturating_add(delivery_rate.0);
    }

    /// Add `packets` with `bytes` altogether declared lost.
    pub fn on_lost(&mut self, packets: u64, bytes: u64) {
        self.lost_packets += packets;
        self.lost_bytes += bytes;
    }

    /// Close the interval at `now` and store it in `done`; a new one begins, in `done`'s old buffer.
    pub fn close_into(
        &mut self,
        done: &mut Self,
        now: Timestamp,
        rtt: &RttEstimator,
        in_flight: u64,
        control: &Control,
        ssthresh: Option<u64>,
    ) {
        self.end = now;
        self.srtt = rtt.smoothed();
        self.rtt_variation = rtt.variation();
        self.min_rtt = rtt.min();
        self.in_flight = in_flight;
        self.cwnd = control.cwnd;
        self.pacing_rate = control.pacing_rate;
        self.ssthresh = ssthresh;
        self.digest = digest(self.start, &self.samples);
        std::mem::swap(self, done);
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        *self = Self { samples, ..Self::new(now) };
    }
}

fn mean(sum: u64, count: usize) -> Option<TimeSpan> {
    (count > 0).then(|| TimeSpan(sum / count as u64))
}

fn digest(start: Timestamp, samples: &[RttSample]) -> Digest {
    if samples.is_empty() {
        return Digest::default();
    }
    let (first, second) = samples.split_at(samples.len() / 2);
    let sum = |part: &[RttSample]| part.iter().map(|s| s.rtt.0).sum::<u64>();
    let mut d =
        Digest { first_half: sum(first), second_half: sum(second), min: u64::MAX, max: 0, one_way: 0, slope: 0.0 };
    // Relative to the first sample: differences of large squares would cancel. Signed numbers become floats sooner.
    let coordinates = |s: &RttSample| (s.at.since(start).0 as i64 as f64, s.rtt.0 as i64 as f64);
    let (t0, y0) = coordinates(&samples[0]);
    let (mut t, mut y, mut tt, mut ty) = (0.0, 0.0, 0.0, 0.0);
    for s in samples {
        d.min = d.min.min(s.rtt.0);
        d.max = d.max.max(s.rtt.0);
        d.one_way = d.one_way.saturating_add(s.one_way);
        let (at, rtt) = coordinates(s);
        let (dt, dy) = (at - t0, rtt - y0);
        t += dt;
        y += dy;
        tt += dt * dt;
        ty += dt * dy;
    }
    let n = samples.len() as f64;
    let den = n * tt - t * t;
    if samples.len() > 1 && den > 0.0 {
        d.slope = (n * ty - t * y) / den;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_a_rising_delay() {
        let mut m = MonitorInterval::new(Timestamp::from_millis(100));
        for i in 0..10u64 {
            m.on_sent(1500, i == 3);
            // RTT rises 1 ms per 10 ms.
            let now = Timestamp::from_millis(100 + 10 * (i + 1));
            let sent = now - TimeSpan::from_millis(50 + i);
            m.on_acked(1, 1500);
            m.on_sample(now, sent, sent + TimeSpan::from_millis(30));
        }
        m.on_lost(2, 3000);
        let mut done = MonitorInterval::new(Timestamp::ZERO);
        let end = Timestamp::from_millis(200);
        m.close_into(&mut done, end, &RttEstimator::default(), 3000, &Control::window(15_000), Some(9000));
        assert!((done.rtt_slope() - 0.1).abs() < 1e-9);
        assert!((done.half_split_rtt_change() - 0.005).abs() < 1e-9);
        assert_eq!(done.delivery_rate(), Rate(1_200_000));
        assert_eq!(done.mean_rtt(), Some(TimeSpan(54_500_000)));
        assert_eq!(done.interval_min_rtt(), Some(TimeSpan::from_millis(50)));
        assert_eq!(done.interval_max_rtt(), Some(TimeSpan::from_millis(59)));
        assert!((done.loss_fraction() - 2.0 / 12.0).abs() < 1e-12);
        assert!((done.mean_one_way_delay().unwrap() - 0.030).abs() < 1e-12);
        assert_eq!((done.acks, done.retransmissions, done.ssthresh), (10, 1, Some(9000)));
        assert_eq!(m.start, Timestamp::from_millis(200));
        assert_eq!((m.sent_packets, m.rtt_count()), (0, 0));
    }

    #[test]
    fn an_interval_without_acknowledgements_has_no_round_trip() {
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        let mut done = MonitorInterval::new(Timestamp::ZERO);
        let end = Timestamp::from_millis(5);
        m.close_into(&mut done, end, &RttEstimator::default(), 0, &Control::window(1), None);
        assert_eq!((done.mean_rtt(), done.interval_min_rtt(), done.mean_one_way_delay()), (None, None, None));
        assert_eq!((done.rtt_slope(), done.half_split_rtt_change(), done.loss_fraction()), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_single_sample_has_a_mean_and_no_change() {
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        m.on_sample(Timestamp::from_millis(40), Timestamp::ZERO, Timestamp::from_millis(20));
        let mut done = MonitorInterval::new(Timestamp::ZERO);
        let end = Timestamp::from_millis(50);
        m.close_into(&mut done, end, &RttEstimator::default(), 0, &Control::window(1), None);
        assert_eq!(done.mean_rtt(), Some(TimeSpan::from_millis(40)));
        assert_eq!(done.second_half_rtt(), Some(TimeSpan::from_millis(40)));
        assert_eq!((done.first_half_rtt(), done.half_split_rtt_change(), done.rtt_slope()), (None, 0.0, 0.0));
    }

    #[test]
    fn the_average_over_acknowledgements_forgets() {
        let mut m = MonitorInterval::new(Timestamp::ZERO);
        assert_eq!(m.sampled_delivery_rate(), None);
        let ms = TimeSpan::from_millis;
        m.on_rates(ms(100), ms(80), Rate(8_000_000), Rate(9_000_000));
        assert_eq!((m.ewma.rtt, m.ewma.delivery_rate), (0.1, 8e6));
        m.on_rates(ms(200), ms(80), Rate(0), Rate(9_000_000));
        assert!((m.ewma.rtt - 0.1125).abs() < 1e-12);
        assert!((m.ewma.delivery_rate - 7e6).abs() < 1e-6);
        assert_eq!(m.sampled_delivery_rate(), Some(4e6), "the mean does not");
    }
}
