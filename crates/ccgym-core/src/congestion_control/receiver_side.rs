//! The optional view of a scheme with a part at the receiver, which decides when feedback leaves and may add a message.

use dyn_clone::DynClone;

use crate::feedback::{Arrived, Feedback, MAX_ARRIVALS, MAX_FEEDBACK_RANGES, MAX_MESSAGE};
use crate::packet::{Ecn, Packet, PacketNumber};
use crate::receiver::{Accepted, Receiver};
use crate::units::{TimeSpan, Timestamp};

/// A scheme whose receiver sends feedback of its own in place of acknowledgements.
pub trait ReceiverSide {
    /// Its part at the receiver. The same for equal parameters, since the receiver may be another process that makes the
    /// scheme anew to ask for it.
    fn receiver(&self) -> Box<dyn FeedbackReceiver>;
    /// What the packet that just left tells the receiver. Asked after [`crate::CongestionControl::on_packet_sent`], so
    /// only with [`super::Capabilities::packet_events`].
    fn header(&self) -> u32 {
        0
    }
    /// A message of the receiver arrived. What it came with is told right after, through
    /// [`crate::CongestionControl::on_ack`], if it is new. Over a network it may be anything.
    fn on_message(&mut self, _now: Timestamp, _message: &[u8]) {}
}

/// A data packet as the receiver sees it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedEvent {
    /// Arrival, on the receiver's clock.
    pub now: Timestamp,
    /// Number.
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
    /// What the scheme wrote into it ([`ReceiverSide::header`]).
    pub header: u32,
    /// Whether it arrived with congestion-experienced.
    pub ce: bool,
}

/// A scheme's part at the receiver. The host collects arrivals and their times; this says when they leave as one
/// [`Feedback`]. It is deterministic, and derives `Clone`, as schemes do.
pub trait FeedbackReceiver: DynClone + Send + Sync {
    /// The first packet arrives at `now`, on the receiver's clock. A full packet has `mss` bytes on the wire.
    fn start(&mut self, now: Timestamp, mss: u64);
    /// A packet arrived, for the first time.
    fn on_data(&mut self, event: &ReceivedEvent);
    /// When the next feedback is to leave, whether or not something arrives until then; at once if that is past. Read
    /// after each packet and each feedback.
    fn next_feedback(&self) -> Timestamp;
    /// Feedback leaves at `now`: at the time asked for, or before since as many arrivals wait as it can report. What is
    /// appended to `message` reaches [`ReceiverSide::on_message`]; at most [`MAX_MESSAGE`] bytes.
    fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>);
}

dyn_clone::clone_trait_object!(FeedbackReceiver);

/// Feedback ends when nothing came for this long, and begins again with the next packet: an address that sends no more is
/// not sent to for ever.
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
    /// A host of `scheme`, for packets of at most `mss` wire bytes.
    #[must_use]
    pub fn new(scheme: Box<dyn FeedbackReceiver>, mss: u64) -> Self {
        Self { scheme, mss, flow: 0, arrivals: Vec::new(), last_data: None, last_feedback: Timestamp::ZERO }
    }

    /// A data packet, not the handshake, arrives at `now`: whether it is new, and the feedback that leaves. Call
    /// [`FeedbackHost::on_timeout`] first until its time is not before `now`.
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

    /// When feedback is due without a further arrival.
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

    /// The time given by [`FeedbackHost::next_timeout`] has come.
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

    /// Bytes that what it remembers takes; the scheme's own are not known.
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
    fn feedback_leaves_when_the_scheme_says_so_with_all_that_arrived() {
        let mut receiver = Receiver::new(ReceiverConfig { reliable: false, ..ReceiverConfig::default() });
        let mut host = FeedbackHost::new(Box::new(Periodic::default()), 1500);
        assert_eq!(host.next_timeout(), Timestamp::NEVER);
        // A gap does not hasten it.
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
        // In silence it goes on, without arrivals and smaller, but not for ever.
        let mut last = ms(0);
        while host.next_timeout().is_set() {
            last = host.next_timeout();
            let silent = host.on_timeout(&receiver, last).unwrap();
            assert!(silent.arrivals.is_empty() && silent.size < feedback.size && silent.message == [4]);
        }
        assert_eq!(last, ms(10_100));
        // The next packet begins it again.
        let (_, feedback) = host.on_data(&mut receiver, ms(20_000), &packet(5));
        assert_eq!(feedback.unwrap().arrivals.len(), 1);
        assert_eq!(host.next_timeout(), ms(20_010));
    }

    #[test]
    fn no_batch_is_larger_than_it_may_be() {
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
        /// Of up to 120 packets some are lost and some come later or twice, and so is any feedback but the last lost: what
        /// comes home never acknowledges what did not arrive, and acknowledges all that did in the end.
        #[test]
        fn lost_feedback_hides_nothing_for_good(
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
