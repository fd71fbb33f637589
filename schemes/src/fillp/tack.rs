//! TACK (Li et al., SIGCOMM 2020): the receiver acknowledges a few times per round trip instead of every second packet, and
//! measures what the thin acknowledgements cannot show: delivery rate and how long they waited.

use std::collections::VecDeque;

use ccgym_core::receiver_half::ReceivedEvent;
use ccgym_core::{AckEvent, PacketNumber, Rate, ReceiverHalf, TimeSpan, Timestamp};

/// Bytes of a message.
const MESSAGE: usize = 12;
/// A rate above this is no measurement: only a message that was made up says so.
const MAX_RATE: Rate = Rate(1_000_000_000_000);
/// Packets beyond a gap that make it a loss, as they do at the sender (RFC 9002 §6.1.1).
const LOSS_THRESHOLD: u64 = 3;
/// A packet waits for company no longer than this, or a TACK interval if that is longer (RFC 9002: `max_ack_delay`).
const MAX_DELAY: TimeSpan = TimeSpan::from_millis(25);

/// What the receiver measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Wire bytes that arrived in the latest round trip; zero if the report ends no interval.
    pub delivered: u32,
    /// Its length, µs: from arrival to arrival, at least the minimum round trip.
    pub interval_us: u32,
    /// How long the latest arrival waited for this report, µs.
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

    pub fn interval(&self) -> TimeSpan {
        TimeSpan::from_micros(u64::from(self.interval_us.max(1)))
    }

    /// The shortest round trip of the packets that came with it, without their wait at the receiver. It is that of the packet
    /// with the smallest one-way delay, whatever the offset of the clocks.
    pub fn round_trip(&self, event: &AckEvent<'_>) -> Option<TimeSpan> {
        let latest = event.acked.iter().filter_map(|packet| packet.received).max()?;
        let left = latest.saturating_add(TimeSpan::from_micros(u64::from(self.hold_us)));
        let received = event.acked.iter().filter_map(|packet| Some((packet.sent, packet.received?)));
        let round_trip = |(sent, received)| event.now.since(sent).0.saturating_sub(left.since(received).0);
        received.map(round_trip).min().map(|round_trip| TimeSpan(round_trip.max(1)))
    }
}

/// The sender's minimum round trip, as each packet tells it: µs, zero while unknown.
pub fn header(min_rtt: Option<TimeSpan>) -> u32 {
    min_rtt.map_or(0, |rtt| u32::try_from(rtt.0 / 1_000).unwrap_or(u32::MAX))
}

/// How often to acknowledge.
#[derive(Clone, Copy, Debug)]
pub struct Frequency {
    /// Packets that one acknowledgement stands for at least (the paper's L).
    pub packets: u64,
    /// Acknowledgements per minimum round trip at most (the paper's β).
    pub per_rtt: f64,
}

/// Packets that have not come although later ones have.
#[derive(Clone, Copy, Debug)]
struct Gap {
    first: PacketNumber,
    end: PacketNumber,
    missing: u64,
    /// Packets that arrived from beyond it.
    passed: u64,
}

/// What arrived after one arrival, up to another.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    from: Timestamp,
    bytes: u64,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub struct TackHalf {
    frequency: Frequency,
    /// The sender's minimum round trip; zero until it knows it.
    round_trip: TimeSpan,
    tack_at: Timestamp,
    /// Arrivals that no report has told, the first and the latest of them.
    waiting: u64,
    oldest: Timestamp,
    latest: Timestamp,
    /// The interval that is measured: since this arrival, so many bytes.
    current: Interval,
    /// The complete intervals of the latest round trip, oldest first.
    measured: VecDeque<Interval>,
    next_number: PacketNumber,
    gap: Option<Gap>,
    /// A loss to be told at once.
    lost: bool,
}

impl TackHalf {
    pub fn new(frequency: Frequency) -> Self {
        Self {
            frequency,
            round_trip: TimeSpan::ZERO,
            tack_at: Timestamp::ZERO,
            waiting: 0,
            oldest: Timestamp::ZERO,
            latest: Timestamp::ZERO,
            current: Interval::default(),
            measured: VecDeque::new(),
            next_number: 0,
            gap: None,
            lost: false,
        }
    }

    /// Look for what is missing now that packet `number` is here.
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

    /// The time between two TACKs at least.
    fn interval(&self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.round_trip.as_secs_f64() / self.frequency.per_rtt)
    }

    /// What arrived in the round trip that ends with a TACK at `now`, and its length in µs, if it can be measured.
    fn measure(&mut self, now: Timestamp) -> (u32, u32) {
        self.tack_at = now;
        self.measured.push_back(self.current);
        self.current = Interval { from: self.latest, bytes: 0 };
        while self.measured.get(1).is_some_and(|next| self.latest.since(next.from) >= self.round_trip) {
            self.measured.pop_front();
        }
        // Less than a round trip has passed at the start, and after a pause the latest two packets may be next to each other.
        let span = self.latest.since(self.measured[0].from).max(self.round_trip).0 / 1_000;
        let delivered: u64 = self.measured.iter().map(|interval| interval.bytes).sum();
        match (u32::try_from(delivered), u32::try_from(span)) {
            // Before the round trip is known, an interval is as short as a burst.
            (Ok(delivered), Ok(span)) if self.round_trip > TimeSpan::ZERO => (delivered, span),
            _ => (0, 0),
        }
    }
}

impl ReceiverHalf for TackHalf {
    fn start(&mut self, now: Timestamp, _mss: u64) {
        self.tack_at = now;
        self.current.from = now;
    }

    fn on_data(&mut self, event: &ReceivedEvent) {
        self.round_trip = TimeSpan::from_micros(u64::from(event.header));
        self.watch_gaps(event.number);
        if self.waiting == 0 {
            self.oldest = event.now;
        }
        self.waiting += 1;
        self.latest = event.now;
        self.current.bytes += event.bytes;
    }

    fn next_feedback(&self) -> Timestamp {
        if self.waiting == 0 {
            return Timestamp::NEVER;
        }
        if self.lost {
            return self.latest;
        }
        let due = self.tack_at + self.interval();
        if self.waiting >= self.frequency.packets {
            due
        } else {
            due.max(self.oldest + MAX_DELAY)
        }
    }

    fn on_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>) {
        // A report that a loss hastened ends no interval: a few packets say little of the rate.
        let full = now >= self.tack_at + self.interval();
        let (delivered, interval_us) = if full { self.measure(now) } else { (0, 0) };
        let hold_us = u32::try_from(now.since(self.latest).0 / 1_000).unwrap_or(u32::MAX);
        Report { delivered, interval_us, hold_us }.write(message);
        self.waiting = 0;
        self.lost = false;
    }
}
