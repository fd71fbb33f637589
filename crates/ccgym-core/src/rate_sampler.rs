//! Delivery-rate sampling (draft-ietf-ccwg-bbr, section on delivery rate; Linux `net/ipv4/tcp_rate.c`).
//!
//! Each packet is stamped at send with the flow's delivery state; the acknowledgement of the most recently sent
//! packet yields a sample over the longer of the send and the acknowledgement interval, so that neither compressed
//! acknowledgements nor a burst at the sender can inflate it.

use crate::units::{Rate, TimeSpan, Timestamp};

/// Delivery state at the departure of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStamp {
    /// Wire bytes delivered at its departure.
    pub delivered: u64,
    /// Time at which that count was reached.
    pub delivered_time: Timestamp,
    /// Departure of the packet that began this flight's sampling window.
    pub first_sent_time: Timestamp,
    /// Wire bytes lost at its departure.
    pub lost: u64,
}

/// One delivery-rate sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Wire bytes delivered over the interval.
    pub delivered: u64,
    /// Delivered count stamped on the sampled packet: a round ends when this passes the count at the round's start.
    pub prior_delivered: u64,
    /// The max of send and acknowledgement interval.
    pub interval: TimeSpan,
    /// Send interval.
    pub send_elapsed: TimeSpan,
    /// Acknowledgement interval.
    pub ack_elapsed: TimeSpan,
    /// Wire bytes lost over the interval.
    pub lost: u64,
    /// Bytes in flight just after the sampled packet was sent.
    pub in_flight_at_send: u64,
    /// True if the sampled packet left while the sender was application-limited: a lower bound only.
    pub app_limited: bool,
}

impl RateSample {
    /// Return the sampled delivery rate.
    #[must_use]
    #[inline]
    pub fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered, self.interval)
    }
}

/// The flow's delivery state.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_time: Timestamp,
    first_sent_time: Timestamp,
    lost: u64,
    /// Delivered count at which the application-limited mark ends; zero when there is none.
    app_limited_until: u64,
}

impl RateSampler {
    /// Return the stamp for a packet that leaves at `now`. With nothing in flight the sampling window restarts.
    #[inline]
    pub fn on_send(&mut self, now: Timestamp, in_flight: u64) -> SendStamp {
        if in_flight == 0 {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        SendStamp {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            lost: self.lost,
        }
    }

    /// Count `bytes` as delivered at `now`.
    #[inline]
    pub fn on_delivered(&mut self, now: Timestamp, bytes: u64) {
        self.delivered += bytes;
        self.delivered_time = now;
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// Count `bytes` as lost.
    #[inline]
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Return the sample of the acknowledgement of the packet sent at `sent` with `stamp`. `None` when the interval is
    /// shorter than `min_rtt`: such a sample is an artifact of reordering or reneging (`tcp_rate_gen`).
    #[inline]
    pub fn sample(
        &mut self,
        stamp: &SendStamp,
        sent: Timestamp,
        in_flight_at_send: u64,
        app_limited: bool,
        min_rtt: TimeSpan,
    ) -> Option<RateSample> {
        self.first_sent_time = sent;
        let send_elapsed = sent.since(stamp.first_sent_time);
        let ack_elapsed = self.delivered_time.since(stamp.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        if interval < min_rtt || interval == TimeSpan::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - stamp.delivered,
            prior_delivered: stamp.delivered,
            interval,
            send_elapsed,
            ack_elapsed,
            lost: self.lost - stamp.lost,
            in_flight_at_send,
            app_limited,
        })
    }

    /// Mark the application-limited state with `in_flight` bytes out: their samples are lower bounds only.
    pub fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }
    /// True if packets sent now are application-limited.
    #[must_use]
    #[inline]
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }
    /// Return the wire bytes delivered so far.
    #[must_use]
    #[inline]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Return the time of the latest delivery.
    #[must_use]
    #[inline]
    pub const fn delivered_time(&self) -> Timestamp {
        self.delivered_time
    }
    /// Return the wire bytes lost so far.
    #[must_use]
    #[inline]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_flow_measures_its_rate() {
        // 1500 bytes every ms, RTT 10 ms: after warm-up each sample is 12 Mbit/s.
        let mut s = RateSampler::default();
        let min_rtt = TimeSpan::from_millis(10);
        let mut flight = std::collections::VecDeque::new();
        let mut last = None;
        for ms in 0..100u64 {
            let now = Timestamp::from_millis(ms);
            if ms >= 10 {
                let (sent, stamp): (Timestamp, SendStamp) = flight.pop_front().unwrap();
                s.on_delivered(now, 1500);
                last = s.sample(&stamp, sent, 15_000, false, min_rtt).or(last);
            }
            let in_flight = flight.len() as u64 * 1500;
            flight.push_back((now, s.on_send(now, in_flight)));
        }
        assert_eq!(last.unwrap().rate(), Rate(12_000_000));
    }

    #[test]
    fn compressed_acks_do_not_inflate() {
        // Ten packets sent over 10 ms whose acknowledgements arrive together: the send interval counts.
        let mut s = RateSampler::default();
        let flight: Vec<_> = (0..10u64)
            .map(|ms| (Timestamp::from_millis(ms), s.on_send(Timestamp::from_millis(ms), ms * 1500)))
            .collect();
        let now = Timestamp::from_millis(30);
        let mut sample = None;
        for (sent, stamp) in &flight {
            s.on_delivered(now, 1500);
            sample = s.sample(stamp, *sent, 0, false, TimeSpan::from_millis(9));
        }
        let sample = sample.unwrap();
        assert_eq!(sample.delivered, 15_000);
        assert_eq!(sample.interval, TimeSpan::from_millis(30));
    }

    /// draft-cheng-iccrg-delivery-rate-estimation, section 3: a rate is over the max of the times in which packets left
    /// and in which acknowledgements came.
    #[test]
    fn the_longer_of_send_and_acknowledgement_interval_governs() {
        let ms = Timestamp::from_millis;
        let intervals =
            |sample: RateSample| [sample.send_elapsed, sample.ack_elapsed, sample.interval].map(TimeSpan::as_millis);
        let mut s = RateSampler::default();
        let first = s.on_send(ms(0), 0);
        s.on_delivered(ms(100), 1500);
        s.sample(&first, ms(0), 1500, false, TimeSpan::ZERO).unwrap();
        // Two packets leave slowly, and their acknowledgements come quickly.
        let slow = s.on_send(ms(105), 1500);
        s.on_lost(700);
        s.on_delivered(ms(150), 3000);
        let sample = s.sample(&slow, ms(105), 4500, true, TimeSpan::from_millis(105)).unwrap();
        assert_eq!(intervals(sample), [105, 50, 105]);
        assert_eq!((sample.delivered, sample.prior_delivered, sample.lost), (3000, 1500, 700));
        assert_eq!(sample.rate(), Rate(228_571));
        assert!(sample.app_limited && sample.in_flight_at_send == 4500);
        // One leaves soon after, and its acknowledgement comes late.
        let burst = s.on_send(ms(150), 1500);
        s.on_delivered(ms(400), 1500);
        let sample = s.sample(&burst, ms(150), 1500, false, TimeSpan::ZERO).unwrap();
        assert_eq!(intervals(sample), [45, 250, 250]);
        assert_eq!((sample.rate(), sample.lost), (Rate(48_000), 0));
        // No interval is shorter than the min round trip, and none begins before an idle time.
        assert_eq!(s.sample(&burst, ms(150), 1500, false, TimeSpan::from_millis(251)), None);
        let idle = s.on_send(ms(1000), 0);
        s.on_delivered(ms(1040), 1500);
        assert_eq!(intervals(s.sample(&idle, ms(1000), 1500, false, TimeSpan::ZERO).unwrap()), [0, 40, 40]);
    }

    #[test]
    fn app_limited_mark_clears_after_the_flight() {
        let mut s = RateSampler::default();
        s.mark_app_limited(3000);
        assert!(s.is_app_limited());
        s.on_delivered(Timestamp(1), 3000);
        assert!(s.is_app_limited());
        s.on_delivered(Timestamp(2), 1);
        assert!(!s.is_app_limited());
    }
}
