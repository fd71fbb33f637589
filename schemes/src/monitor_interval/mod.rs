//! Monitor intervals (PCC, NSDI 2015, §2.2): packets are cut into consecutive stretches, each sent at one rate, and what
//! became of a stretch tells how good its rate was.
//!
//! An interval closes with a packet that leaves, so it is never empty and needs no timer. It is settled when each of its
//! packets is acknowledged or declared lost; schemes that do not wait so long take it earlier.

pub mod sender;
pub mod step;

use std::collections::VecDeque;

use ccgym_core::congestion_control::{LostPacket, SentEvent};
use ccgym_core::packet::PacketNumber;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

/// When an interval closes: with the first packet that satisfies both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length {
    /// Packets in it, at least.
    pub packets: u64,
    /// Time from its start to that packet, at least.
    pub span: TimeSpan,
}

/// A round trip and when its packet left, seconds since the interval began.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: f64,
    rtt: f64,
}

/// What was sent in one interval, and what became of it.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Intervals are numbered as they begin.
    pub id: u64,
    /// The rate at which it was to be sent, bits per second.
    pub rate: f64,
    /// Packets sent.
    pub sent: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets acknowledged.
    pub acked: u64,
    /// The application had nothing to send at some time: the interval says nothing about its rate.
    pub app_limited: bool,
    length: Length,
    /// When the last packet of the interval before it left.
    start: Timestamp,
    first: PacketNumber,
    first_sent: Timestamp,
    last_sent: Timestamp,
    closed: bool,
    /// Sorted.
    lost: Vec<PacketNumber>,
    /// When the last of them left.
    lost_sent: Timestamp,
    samples: Vec<Sample>,
    /// Sum of the samples' round trips, seconds.
    rtt_sum: f64,
}

impl Interval {
    fn new(id: u64, now: Timestamp, rate: f64, length: Length) -> Self {
        Self {
            id,
            rate,
            sent: 0,
            bytes: 0,
            acked: 0,
            app_limited: false,
            length,
            start: now,
            first: 0,
            first_sent: now,
            last_sent: now,
            closed: false,
            lost: Vec::new(),
            lost_sent: now,
            samples: Vec::new(),
            rtt_sum: 0.0,
        }
    }

    /// A packet that left `sent` seconds after the start had this round trip.
    fn add_sample(&mut self, sent: f64, rtt: f64) {
        self.samples.push(Sample { sent, rtt });
        self.rtt_sum += rtt;
    }

    /// One of `sent` packets of 1500 bytes, of which `acked` arrived, that left at `rate` bits per second and had a
    /// round trip of 40 ms that grew by `slope`.
    #[cfg(test)]
    pub fn of(id: u64, rate: f64, sent: u64, acked: u64, slope: f64) -> Self {
        let gap = 12_000.0 / rate;
        let at = |packets: u64| Timestamp::ZERO + TimeSpan::from_secs_f64(gap * packets as f64);
        let length = Length { packets: sent, span: TimeSpan::ZERO };
        let mut interval = Self {
            sent,
            bytes: sent * 1500,
            acked,
            first_sent: at(1),
            last_sent: at(sent),
            ..Self::new(id, Timestamp::ZERO, rate, length)
        };
        for sent in (1..=acked).map(|i| i as f64 * gap) {
            interval.add_sample(sent, 0.04 + slope * sent);
        }
        interval
    }

    /// Whether it can be judged: the application had enough to send, and the packets did not all leave at once.
    #[must_use]
    pub fn usable(&self) -> bool {
        !self.app_limited && self.last_sent > self.first_sent
    }
    /// Packets that were not acknowledged.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.sent - self.acked
    }
    /// Share of packets that were not acknowledged.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        self.missing() as f64 / self.sent.max(1) as f64
    }
    /// Seconds from the last packet before it to its own last: as many gaps as packets.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.last_sent.since(self.start).as_secs_f64()
    }
    /// Seconds from its first packet to its last: one gap less.
    #[must_use]
    pub fn first_to_last(&self) -> f64 {
        self.last_sent.since(self.first_sent).as_secs_f64()
    }
    /// Mean round trip in seconds, of the packets acknowledged so far.
    #[must_use]
    pub fn mean_rtt(&self) -> Option<f64> {
        let n = self.samples.len();
        (n > 0).then(|| self.rtt_sum / n as f64)
    }
    /// Slope of the round trip over the time of sending, by least squares; zero where there is none.
    #[must_use]
    pub fn rtt_slope(&self) -> f64 {
        let n = self.samples.len() as f64;
        let (mut sent, mut rtt) = (0.0, 0.0);
        for s in &self.samples {
            sent += s.sent;
            rtt += s.rtt;
        }
        let (sent, rtt) = (sent / n, rtt / n);
        let (mut above, mut below) = (0.0, 0.0);
        for s in &self.samples {
            above += (s.sent - sent) * (s.rtt - rtt);
            below += (s.sent - sent) * (s.sent - sent);
        }
        if below > 0.0 {
            above / below
        } else {
            0.0
        }
    }
    /// Sums of the round trips of the first and of the second half of the acknowledgements, in seconds.
    #[must_use]
    pub fn rtt_halves(&self) -> (f64, f64) {
        let half = self.samples.len() / 2;
        let sum = |part: &[Sample]| part.iter().map(|s| s.rtt).sum::<f64>();
        (sum(&self.samples[..half]), sum(&self.samples[half..2 * half]))
    }

    fn is_full(&self, now: Timestamp) -> bool {
        self.sent >= self.length.packets.max(1) && now.since(self.start) >= self.length.span
    }
    fn settled(&self, now: Timestamp, patience: TimeSpan) -> bool {
        let known = self.closed && self.acked + self.lost.len() as u64 == self.sent;
        known && (self.lost.is_empty() || now.since(self.lost_sent) >= patience)
    }
}

/// The intervals of a flow whose fate is not known yet; the last one is being filled.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    queue: VecDeque<Interval>,
    begun: u64,
}

impl Intervals {
    /// Begin an interval with the next packet. One without packets that was being filled is replaced.
    pub fn begin(&mut self, now: Timestamp, rate: f64, length: Length) {
        match self.queue.back_mut() {
            Some(filling) if filling.sent > 0 => filling.closed = true,
            _ => drop(self.queue.pop_back()),
        }
        self.queue.push_back(Interval::new(self.begun, now, rate, length));
        self.begun += 1;
    }
    /// The number that the next interval gets.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.begun
    }
    /// The one being filled.
    #[must_use]
    pub fn filling(&self) -> Option<&Interval> {
        self.queue.back()
    }
    /// Forget all of them.
    pub fn clear(&mut self) {
        self.queue.clear();
    }
    /// The application has nothing to send.
    pub fn mark_app_limited(&mut self) {
        if let Some(filling) = self.queue.back_mut() {
            filling.app_limited = true;
        }
    }

    /// A packet left. Returns whether it fills its interval, so that the next one must begin.
    pub fn on_sent(&mut self, event: &SentEvent) -> bool {
        let Some(filling) = self.queue.back_mut() else { return true };
        if filling.sent == 0 {
            (filling.first, filling.first_sent) = (event.number, event.now);
        }
        filling.last_sent = event.now;
        filling.sent += 1;
        filling.bytes += event.bytes;
        filling.is_full(event.now)
    }

    fn of_packet(&mut self, number: PacketNumber) -> Option<&mut Interval> {
        let behind = self.queue.partition_point(|i| i.sent > 0 && i.first <= number);
        let interval = self.queue.get_mut(behind.checked_sub(1)?)?;
        (number < interval.first + interval.sent).then_some(interval)
    }

    /// Note acknowledgements and losses. A packet that arrives after it was declared lost counts as acknowledged. The
    /// round trip counts where it was `sampled`.
    pub fn on_ack(&mut self, event: &AckEvent<'_>, sampled: bool) {
        self.on_lost(event.lost);
        for packet in event.acked {
            let Some(interval) = self.of_packet(packet.number) else { continue };
            interval.acked += 1;
            if let Ok(i) = interval.lost.binary_search(&packet.number) {
                interval.lost.remove(i);
            }
            // Only the packet that caused the acknowledgement has a round trip of its own.
            if sampled && packet.received.is_some() {
                let sent = packet.sent.since(interval.start).as_secs_f64();
                interval.add_sample(sent, event.now.since(packet.sent).as_secs_f64());
            }
        }
    }

    /// Note losses.
    pub fn on_lost(&mut self, lost: &[LostPacket]) {
        for packet in lost {
            if let Some(interval) = self.of_packet(packet.number) {
                // Once, also after a timeout that was withdrawn.
                if let Err(place) = interval.lost.binary_search(&packet.number) {
                    interval.lost.insert(place, packet.number);
                    interval.lost_sent = interval.lost_sent.max(packet.sent);
                }
            }
        }
    }

    /// The oldest interval, once it is settled; what is lost counts `patience` after it left at the earliest.
    pub fn take_settled(&mut self, now: Timestamp, patience: TimeSpan) -> Option<Interval> {
        if self.queue.front()?.settled(now, patience) {
            self.queue.pop_front()
        } else {
            None
        }
    }

    /// The newest closed interval all of whose packets left before packet `number` did, or, with `and_last`, whose last
    /// packet it is.
    pub fn take_before(&mut self, number: PacketNumber, and_last: bool) -> Option<Interval> {
        let end = number + u64::from(and_last);
        let behind = self.queue.partition_point(|i| i.closed && i.first + i.sent <= end);
        self.queue.remove(behind.checked_sub(1)?)
    }

    /// Mean round trip so far of the interval that packet `number` belongs to, seconds.
    pub fn mean_rtt_around(&mut self, number: PacketNumber) -> Option<f64> {
        self.of_packet(number)?.mean_rtt()
    }
}

#[cfg(test)]
mod tests;
