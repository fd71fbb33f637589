//! TACK (Li et al., SIGCOMM 2020): the receiver acknowledges a few times per RTT instead of every second packet, and
//! measures what these few acknowledgements cannot show: delivery rate and their delay at the receiver.

use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{AckEvent, FeedbackReceiver, PacketNumber, Rate, TimeSpan, Timestamp};

/// Bytes of a message.
const MESSAGE: usize = 12;
/// A rate above this is invalid.
const MAX_RATE: Rate = Rate(1_000_000_000_000);
/// Packets beyond a gap that make it a loss, as they do at the sender (RFC 9002 §6.1.1).
const LOSS_THRESHOLD: u64 = 3;
/// Max reports per RTT of the handshake (the paper's β), and min time between two (the program's).
const PER_RTT: u64 = 4;
const MIN_INTERVAL: TimeSpan = TimeSpan::from_millis(20);

/// A measurement of the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Wire bytes that arrived in the interval that ends; zero if the report ends none.
    pub delivered: u32,
    /// Length of the interval, µs.
    pub interval_us: u32,
    /// Delay from the latest arrival to this report, µs.
    pub hold_us: u32,
}

impl Report {
    pub fn write(&self, message: &mut Vec<u8>) {
        for value in [self.delivered, self.interval_us, self.hold_us] {
            message.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub fn read(message: &[u8]) -> Option<Self> {
        let message: &[u8; MESSAGE] = message.try_into().ok()?;
        let value = |at: usize| u32::from_le_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        let report = Self { delivered: value(0), interval_us: value(4), hold_us: value(8) };
        (Rate::from_bytes_over(u64::from(report.delivered), report.interval()) <= MAX_RATE).then_some(report)
    }

    /// Return the rate, bits per second.
    pub fn rate(&self) -> f64 {
        f64::from(self.delivered) * 8e6 / f64::from(self.interval_us.max(1))
    }

    fn interval(&self) -> TimeSpan {
        TimeSpan::from_micros(u64::from(self.interval_us.max(1)))
    }

    /// Return the min RTT of the acknowledged packets, without their delay at the receiver. It is that of the packet
    /// with the smallest one-way delay, at any offset of the clocks.
    pub fn round_trip(&self, event: &AckEvent<'_>) -> Option<TimeSpan> {
        let latest = event.acked.iter().filter_map(|packet| packet.received).max()?;
        let left = latest.saturating_add(TimeSpan::from_micros(u64::from(self.hold_us)));
        let received = event.acked.iter().filter_map(|packet| Some((packet.sent, packet.received?)));
        let round_trip = |(sent, received)| event.now.since(sent).0.saturating_sub(left.since(received).0);
        received.map(round_trip).min().map(|round_trip| TimeSpan(round_trip.max(1)))
    }
}

/// Encode the RTT of the handshake, seconds, for the header of a packet: µs, zero while unknown.
pub fn header(round_trip: f64) -> u32 {
    (round_trip * 1e6) as u32
}

/// Return the time between two reports.
pub fn interval(round_trip: TimeSpan) -> TimeSpan {
    TimeSpan(round_trip.0 / PER_RTT).max(MIN_INTERVAL)
}

/// A range of missing packets.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: PacketNumber,
    end: PacketNumber,
    missing: u64,
    /// Packets that arrived from beyond the gap.
    passed: u64,
}

/// The receiver.
#[derive(Clone, Debug, Default)]
pub struct TackReceiver {
    /// RTT of the handshake; zero until the sender knows it.
    round_trip: TimeSpan,
    /// Start of the interval, and bytes that arrived in it.
    since: Timestamp,
    bytes: u64,
    /// Packets not reported yet, and the arrival of the latest.
    waiting: u64,
    latest: Timestamp,
    next_number: PacketNumber,
    gap: Option<Gap>,
    /// True if a loss must be reported at once.
    lost: bool,
}

impl TackReceiver {
    /// Update the gap with the arrival of packet `number`.
    fn watch_gaps(&mut self, number: PacketNumber) {
        if number > self.next_number {
            let skipped = number - self.next_number;
            let gap = self.gap.get_or_insert(Gap { first: self.next_number, end: 0, missing: 0, passed: 0 });
            gap.end = if gap.end == 0 { number } else { gap.end };
            gap.missing += skipped;
        }
        if let Some(gap) = &mut self.gap {
            gap.missing = gap.missing.saturating_sub(u64::from((gap.first..gap.end).contains(&number)));
            gap.passed += u64::from(number >= gap.end);
            self.lost |= gap.missing > 0 && gap.passed >= LOSS_THRESHOLD;
            if self.lost || gap.missing == 0 {
                self.gap = None;
            }
        }
        self.next_number = self.next_number.max(number.saturating_add(1));
    }

    fn due(&self) -> Timestamp {
        self.since + interval(self.round_trip)
    }
}

impl FeedbackReceiver for TackReceiver {
    fn start(&mut self, now: Timestamp, _mss: u64) {
        self.since = now;
    }

    fn on_data(&mut self, event: &ReceivedEvent) {
        self.round_trip = TimeSpan::from_micros(u64::from(event.header));
        self.watch_gaps(event.number);
        if self.bytes == 0 {
            // Intervals in which nothing arrived are not reported.
            let length = interval(self.round_trip).0;
            self.since += TimeSpan(event.now.since(self.since).0 / length * length);
        }
        self.waiting += 1;
        self.latest = event.now;
        self.bytes += event.bytes;
    }

    fn next_feedback(&self) -> Timestamp {
        match (self.waiting, self.lost) {
            (0, _) => Timestamp::NEVER,
            (_, true) => self.latest,
            _ => self.due(),
        }
    }

    fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>) {
        let mut report = Report {
            hold_us: u32::try_from(now.since(self.latest).0 / 1_000).unwrap_or(u32::MAX),
            ..Report::default()
        };
        // A report caused by a loss ends no interval: a few packets do not show the rate.
        if now >= self.due() {
            let interval = u32::try_from(now.since(self.since).0 / 1_000);
            if let (Ok(delivered), Ok(interval_us)) = (u32::try_from(self.bytes), interval) {
                (report.delivered, report.interval_us) = (delivered, interval_us);
            }
            self.since = now;
            self.bytes = 0;
        }
        report.write(message);
        self.waiting = 0;
        self.lost = false;
    }
}
