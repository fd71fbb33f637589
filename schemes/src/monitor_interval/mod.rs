//! Monitor intervals (PCC, NSDI 2015, §2.2): packets are divided into consecutive intervals, each sent at one rate, and
//! the results of an interval are those of its rate.
//!
//! An interval closes with a packet that leaves, so it is never empty and needs no timer. It is settled when each of
//! its packets is acknowledged or declared lost; some schemes take the result earlier.

pub mod sender;
pub mod step;

use std::collections::VecDeque;

use ccgym_core::congestion_control::{LostPacket, SentEvent};
use ccgym_core::packet::PacketNumber;
use ccgym_core::{AckEvent, TimeSpan, Timestamp};

/// Min length of an interval: it closes with the first packet that satisfies both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Length {
    /// Min packets.
    pub packets: u64,
    /// Min time from its start to that packet.
    pub span: TimeSpan,
}

/// An RTT and the departure of its packet, seconds since the interval began.
#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: f64,
    rtt: f64,
}

/// Packets of one interval, and its results.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Number of the interval, in the order of their starts.
    pub id: u64,
    /// Target rate, bits per second.
    pub rate: f64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes sent on the wire.
    pub bytes: u64,
    /// Packets acknowledged.
    pub acked: u64,
    /// True if the application had nothing to send at some time: the interval shows nothing of its rate.
    pub app_limited: bool,
    length: Length,
    /// Departure of the last packet before the interval.
    start: Timestamp,
    first: PacketNumber,
    first_sent: Timestamp,
    last_sent: Timestamp,
    closed: bool,
    /// Numbers of lost packets, sorted.
    lost: Vec<PacketNumber>,
    /// Departure of the last of them.
    lost_sent: Timestamp,
    samples: Vec<Sample>,
    /// Sum of the RTT samples, seconds.
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

    /// Add the RTT of a packet that left `sent` seconds after the start.
    fn add_sample(&mut self, sent: f64, rtt: f64) {
        self.samples.push(Sample { sent, rtt });
        self.rtt_sum += rtt;
    }

    /// Make an interval of `sent` packets of 1500 bytes, of which `acked` arrived, at `rate` bits per second and an RTT
    /// of 40 ms that grew by `slope`.
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

    /// True if its results are valid: the application had enough to send, and the packets did not all leave at once.
    #[must_use]
    pub fn usable(&self) -> bool {
        !self.app_limited && self.last_sent > self.first_sent
    }
    /// Return the number of packets that were not acknowledged.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.sent - self.acked
    }
    /// Return the share of packets that were not acknowledged.
    #[must_use]
    pub fn loss_rate(&self) -> f64 {
        self.missing() as f64 / self.sent.max(1) as f64
    }
    /// Return the seconds from the last packet before it to its own last: as many gaps as packets.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.last_sent.since(self.start).as_secs_f64()
    }
    /// Return the seconds from its first packet to its last: one gap less.
    #[must_use]
    pub fn first_to_last(&self) -> f64 {
        self.last_sent.since(self.first_sent).as_secs_f64()
    }
    /// Return the mean RTT of the packets acknowledged so far, seconds.
    #[must_use]
    pub fn mean_rtt(&self) -> Option<f64> {
        let n = self.samples.len();
        (n > 0).then(|| self.rtt_sum / n as f64)
    }
    /// Return the slope of the RTT over the time of sending, by least squares; zero if undefined.
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
    /// Return the sums of the RTTs of the first and second half of the acknowledgements, seconds.
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

/// The unsettled intervals of a flow; the last one is the current one.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    queue: VecDeque<Interval>,
    begun: u64,
}

impl Intervals {
    /// Begin an interval with the next packet. It replaces a current one without packets.
    pub fn begin(&mut self, now: Timestamp, rate: f64, length: Length) {
        match self.queue.back_mut() {
            Some(filling) if filling.sent > 0 => filling.closed = true,
            _ => drop(self.queue.pop_back()),
        }
        self.queue.push_back(Interval::new(self.begun, now, rate, length));
        self.begun += 1;
    }
    /// Return the number of the next interval.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.begun
    }
    #[must_use]
    pub fn filling(&self) -> Option<&Interval> {
        self.queue.back()
    }
    /// Remove all intervals.
    pub fn clear(&mut self) {
        self.queue.clear();
    }
    /// Mark the current interval as application-limited.
    pub fn mark_app_limited(&mut self) {
        if let Some(filling) = self.queue.back_mut() {
            filling.app_limited = true;
        }
    }

    /// Add a sent packet. Returns true if it completes its interval, so that the next one must begin.
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

    /// Add acknowledgements and losses. A packet that arrives after it was declared lost counts as acknowledged. The
    /// RTT counts if it was `sampled`.
    pub fn on_ack(&mut self, event: &AckEvent<'_>, sampled: bool) {
        self.on_lost(event.lost);
        for packet in event.acked {
            let Some(interval) = self.of_packet(packet.number) else { continue };
            interval.acked += 1;
            if let Ok(i) = interval.lost.binary_search(&packet.number) {
                interval.lost.remove(i);
            }
            // Only the packet that caused the acknowledgement has an RTT of its own.
            if sampled && packet.received.is_some() {
                let sent = packet.sent.since(interval.start).as_secs_f64();
                interval.add_sample(sent, event.now.since(packet.sent).as_secs_f64());
            }
        }
    }

    /// Add losses.
    pub fn on_lost(&mut self, lost: &[LostPacket]) {
        for packet in lost {
            if let Some(interval) = self.of_packet(packet.number) {
                // Once, also after a spurious timeout.
                if let Err(place) = interval.lost.binary_search(&packet.number) {
                    interval.lost.insert(place, packet.number);
                    interval.lost_sent = interval.lost_sent.max(packet.sent);
                }
            }
        }
    }

    /// Return the oldest interval, once it is settled; a loss counts `patience` after the packet left at the earliest.
    pub fn take_settled(&mut self, now: Timestamp, patience: TimeSpan) -> Option<Interval> {
        if self.queue.front()?.settled(now, patience) {
            self.queue.pop_front()
        } else {
            None
        }
    }

    /// Return the newest closed interval all of whose packets left before packet `number`, or, with `and_last`, whose
    /// last packet it is.
    pub fn take_before(&mut self, number: PacketNumber, and_last: bool) -> Option<Interval> {
        let end = number + u64::from(and_last);
        let behind = self.queue.partition_point(|i| i.closed && i.first + i.sent <= end);
        self.queue.remove(behind.checked_sub(1)?)
    }

    /// Return the mean RTT so far of the interval of packet `number`, seconds.
    pub fn mean_rtt_around(&mut self, number: PacketNumber) -> Option<f64> {
        self.of_packet(number)?.mean_rtt()
    }
}

#[cfg(test)]
mod tests;
