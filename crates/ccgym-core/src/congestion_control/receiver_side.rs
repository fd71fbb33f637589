//! The optional view of a scheme with its own receiver, which decides when feedback leaves and may add a message.

use dyn_clone::DynClone;

use crate::feedback::{Arrived, Feedback, MAX_ARRIVALS, MAX_FEEDBACK_RANGES, MAX_MESSAGE};
use crate::packet::{Ecn, Packet, PacketNumber};
use crate::receiver::{Accepted, Receiver};
use crate::units::{TimeSpan, Timestamp};

/// A scheme whose receiver sends feedback of its own in place of acknowledgements.
pub trait ReceiverSide {
    /// Make its receiver. The same for equal parameters, since the receiver may run in another process that makes the
    /// scheme again for it.
    fn receiver(&self) -> Box<dyn FeedbackReceiver>;
    /// Return the header of the packet that was just sent, for the receiver. Read after
    /// [`crate::CongestionControl::on_packet_sent`], so only with [`super::Capabilities::packet_events`].
    fn header(&self) -> u32 {
        0
    }
    /// Process a message of the receiver. If its feedback has news, [`crate::CongestionControl::on_ack`] follows. Over
    /// a network it may be any bytes.
    fn on_message(&mut self, _now: Timestamp, _message: &[u8]) {}
}

/// A data packet at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedEvent {
    /// Arrival, on the receiver's clock.
    pub now: Timestamp,
    /// Number.
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
    /// Header from the scheme ([`ReceiverSide::header`]).
    pub header: u32,
    /// True if it arrived with congestion-experienced.
    pub ce: bool,
}

/// The receiver of a scheme. The host collects arrivals and their times; this decides when they leave as one
/// [`Feedback`]. It is deterministic, and derives `Clone`, as schemes do.
pub trait FeedbackReceiver: DynClone + Send + Sync {
    /// Start at the arrival of the first packet at `now`, on the receiver's clock. A full packet has `mss` wire bytes.
    fn start(&mut self, now: Timestamp, mss: u64);
    /// Process a packet that arrived for the first time.
    fn on_data(&mut self, event: &ReceivedEvent);
    /// Return the time of the next feedback, with or without further arrivals; at once if that is past. Read after each
    /// packet and each feedback.
    fn next_feedback(&self) -> Timestamp;
    /// Append a message to the feedback that leaves at `now`: at the requested time, or earlier since the max number of
    /// arrivals waits. It reaches [`ReceiverSide::on_message`]; at most [`MAX_MESSAGE`] bytes.
    fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>);
}

dyn_clone::clone_trait_object!(FeedbackReceiver);

/// Max silence: after it feedback ends, until the next packet, since it must not be sent forever to an address that
/// sends no more.
pub const MAX_SILENCE: TimeSpan = TimeSpan::from_millis(10_000);
/// Min time between two feedbacks that no arrival caused.
const MIN_INTERVAL: TimeSpan = TimeSpan::from_micros(100);

/// Runs a [`FeedbackReceiver`] in place of the acknowledgement policy.
#[derive(Clone)]
pub struct FeedbackHost {
    scheme: Box<dyn FeedbackReceiver>,
    mss: u64,
    flow: u32,
    arrivals: Vec<Arrived>,
    last_data: Option<Timestamp>,
    last_feedback: Timestamp,
}

impl FeedbackHost {
    /// Make a host of `scheme`, for packets of at most `mss` wire bytes.
    #[must_use]
    pub fn new(scheme: Box<dyn FeedbackReceiver>, mss: u64) -> Self {
        Self { scheme, mss, flow: 0, arrivals: Vec::new(), last_data: None, last_feedback: Timestamp::ZERO }
    }

    /// Process a data packet, not the handshake, that arrives at `now`; returns true if it is new, and the feedback
    /// that leaves. Call [`FeedbackHost::on_timeout`] first until its time is not before `now`.
    pub fn on_data(&mut self, receiver: &mut Receiver, now: Timestamp, packet: &Packet) -> (bool, Option<Feedback>) {
        let Accepted { new, copy, .. } = receiver.take(packet);
        if self.last_data.is_none() {
            self.flow = packet.flow;
            self.scheme.start(now, self.mss);
        }
        self.last_data = Some(now);
        if !copy {
            self.arrivals.push(Arrived { number: packet.number, at: now });
            self.scheme.on_data(&ReceivedEvent {
                now,
                number: packet.number,
                bytes: u64::from(packet.size),
                header: packet.header,
                ce: packet.ecn == Ecn::Ce,
            });
        }
        let leaves = self.arrivals.len() >= MAX_ARRIVALS || self.scheme.next_feedback() <= now;
        (new, leaves.then(|| self.feedback(receiver, now)))
    }

    /// Return when feedback is due without a further arrival.
    #[must_use]
    pub fn next_timeout(&self) -> Timestamp {
        let Some(last_data) = self.last_data else { return Timestamp::NEVER };
        let due = self.scheme.next_feedback().max(self.last_feedback + MIN_INTERVAL);
        if due <= last_data.saturating_add(MAX_SILENCE) {
            due
        } else {
            Timestamp::NEVER
        }
    }

    /// Send the feedback due at the time given by [`FeedbackHost::next_timeout`].
    pub fn on_timeout(&mut self, receiver: &Receiver, now: Timestamp) -> Option<Feedback> {
        (self.next_timeout() <= now).then(|| self.feedback(receiver, now))
    }

    fn feedback(&mut self, receiver: &Receiver, now: Timestamp) -> Feedback {
        self.last_feedback = now;
        let mut message = Vec::new();
        self.scheme.write_feedback(now, &mut message);
        message.truncate(MAX_MESSAGE);
        let mut feedback = Feedback {
            flow: self.flow,
            size: 0,
            sent: now,
            ce_total: receiver.ce_total(),
            ranges: receiver.ranges().take(MAX_FEEDBACK_RANGES).collect(),
            arrivals: std::mem::take(&mut self.arrivals),
            message,
        };
        feedback.size = receiver.ack_size() + feedback.content_bytes();
        feedback
    }

    /// Return the bytes of memory in use; the scheme's own are unknown.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.arrivals.capacity() * std::mem::size_of::<Arrived>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::packet::AckRange;
    use crate::receiver::ReceiverConfig;

    /// Feedback every 10 ms, with the number of packets so far.
    #[derive(Clone, Default)]
    struct Periodic {
        due: Timestamp,
        seen: u8,
    }

    const PERIOD: TimeSpan = TimeSpan::from_millis(10);

    impl FeedbackReceiver for Periodic {
        fn start(&mut self, now: Timestamp, _mss: u64) {
            self.due = now + PERIOD;
        }
        fn on_data(&mut self, event: &ReceivedEvent) {
            assert_eq!(event.header, 7);
            self.seen = self.seen.wrapping_add(1);
        }
        fn next_feedback(&self) -> Timestamp {
            self.due
        }
        fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>) {
            while self.due <= now {
                self.due += PERIOD;
            }
            message.push(self.seen);
        }
    }

    fn packet(number: u64) -> Packet {
        Packet { number, segment: number, size: 1500, flow: 3, header: 7, ..Packet::default() }
    }

    fn ms(time: u64) -> Timestamp {
        Timestamp::from_millis(time)
    }

    #[test]
    fn feedback_leaves_at_the_schemes_times_with_all_arrivals() {
        let mut receiver = Receiver::new(ReceiverConfig { reliable: false, ..ReceiverConfig::default() });
        let mut host = FeedbackHost::new(Box::new(Periodic::default()), 1500);
        assert_eq!(host.next_timeout(), Timestamp::NEVER);
        // A gap does not cause an early feedback.
        for (time, number) in [(100, 0), (101, 1), (103, 4), (104, 3)] {
            let (new, feedback) = host.on_data(&mut receiver, ms(time), &packet(number));
            assert!(new && feedback.is_none());
        }
        assert!(!host.on_data(&mut receiver, ms(105), &packet(4)).0, "a copy");
        assert_eq!(host.next_timeout(), ms(110));
        assert!(host.on_timeout(&receiver, ms(109)).is_none());
        let feedback = host.on_timeout(&receiver, ms(110)).unwrap();
        assert_eq!((feedback.flow, feedback.sent, &feedback.message[..]), (3, ms(110), &[4][..]));
        assert_eq!(feedback.ranges, [AckRange { first: 3, last: 4 }, AckRange { first: 0, last: 1 }]);
        let arrived: Vec<_> = feedback.arrivals.iter().map(|arrived| (arrived.number, arrived.at)).collect();
        assert_eq!(arrived, [(0, ms(100)), (1, ms(101)), (4, ms(103)), (3, ms(104))]);
        assert_eq!(feedback.size, 52 + feedback.content_bytes());
        // In silence it continues, without arrivals and smaller, but not forever.
        let mut last = ms(0);
        while host.next_timeout().is_set() {
            last = host.next_timeout();
            let silent = host.on_timeout(&receiver, last).unwrap();
            assert!(silent.arrivals.is_empty() && silent.size < feedback.size && silent.message == [4]);
        }
        assert_eq!(last, ms(10_100));
        // The next packet restarts it.
        let (_, feedback) = host.on_data(&mut receiver, ms(20_000), &packet(5));
        assert_eq!(feedback.unwrap().arrivals.len(), 1);
        assert_eq!(host.next_timeout(), ms(20_010));
    }

    #[test]
    fn batches_are_bounded() {
        let mut receiver = Receiver::new(ReceiverConfig { reliable: false, ..ReceiverConfig::default() });
        let mut host = FeedbackHost::new(Box::new(Periodic::default()), 1500);
        let mut reported = Vec::new();
        let mut take = |feedback: &Feedback| {
            assert!(feedback.arrivals.len() <= MAX_ARRIVALS && feedback.ranges.len() <= MAX_FEEDBACK_RANGES);
            // One datagram on any path of 1500 bytes.
            assert!(feedback.size < 1400, "{}", feedback.size);
            reported.extend(feedback.arrivals.iter().map(|arrived| arrived.number));
        };
        // Every second packet is missing: each arrival is a range of its own.
        for number in 0..1000 {
            let now = Timestamp(1_000_000_000 + 17_000 * number);
            while host.next_timeout() <= now {
                take(&host.on_timeout(&receiver, host.next_timeout()).unwrap());
            }
            if let (_, Some(feedback)) = host.on_data(&mut receiver, now, &packet(2 * number)) {
                assert_eq!(feedback.arrivals.len(), MAX_ARRIVALS);
                take(&feedback);
            }
        }
        take(&host.on_timeout(&receiver, host.next_timeout()).unwrap());
        assert!(reported.iter().copied().eq((0..1000).map(|number| 2 * number)), "each arrival once");
    }

    proptest! {
        /// Of up to 120 packets some are lost and some come later or twice, and any feedback but the last may be lost:
        /// the received feedback never acknowledges a missing packet, and in the end acknowledges all that arrived.
        #[test]
        fn lost_feedback_is_repeated_by_ranges(
            packets in prop::collection::vec((any::<bool>(), 0u64..40, any::<bool>()), 1..120),
            lost in prop::collection::vec(any::<bool>(), 64),
        ) {
            let mut arrivals: Vec<(u64, u64)> = Vec::new();
            for (number, (comes, late, twice)) in packets.into_iter().enumerate() {
                let (number, copies) = (number as u64, u64::from(comes) + u64::from(comes && twice));
                arrivals.extend((0..copies).map(|copy| (1 + number + late * (1 + copy), number)));
            }
            arrivals.sort_unstable();
            let mut receiver = Receiver::new(ReceiverConfig { reliable: false, ..ReceiverConfig::default() });
            let mut host = FeedbackHost::new(Box::new(Periodic::default()), 1500);
            let (mut arrived, mut sent) = (BTreeSet::new(), Vec::new());
            for (time, number) in &arrivals {
                while host.next_timeout() <= ms(*time) {
                    sent.extend(host.on_timeout(&receiver, host.next_timeout()).map(|f| (f, arrived.clone())));
                }
                arrived.insert(*number);
                let (_, feedback) = host.on_data(&mut receiver, ms(*time), &packet(*number));
                sent.extend(feedback.map(|feedback| (feedback, arrived.clone())));
            }
            if host.next_timeout().is_set() {
                sent.extend(host.on_timeout(&receiver, host.next_timeout()).map(|f| (f, arrived.clone())));
            }
            let (count, mut acknowledged) = (sent.len(), BTreeSet::new());
            for (place, (feedback, arrived)) in sent.into_iter().enumerate() {
                if place + 1 < count && lost[place % lost.len()] {
                    continue;
                }
                let named: BTreeSet<u64> = feedback
                    .ranges
                    .iter()
                    .flat_map(|range| range.first..=range.last)
                    .chain(feedback.arrivals.iter().map(|arrived| arrived.number))
                    .collect();
                prop_assert!(named.is_subset(&arrived), "{:?} of {:?}", named, arrived);
                acknowledged.extend(named);
            }
            prop_assert_eq!(acknowledged, arrived);
        }
    }
}
