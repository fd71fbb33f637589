//! One flow: its two endpoints, its application, and the acknowledgements on their way back.

use std::collections::VecDeque;
use std::sync::Arc;

use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{
    cold_path, Ack, Ecn, Feedback, FeedbackHost, MisbehavingReceiver, Packet, Receiver, Sender, TimeSpan, Timestamp,
};
use ccgym_run::send_buffer::SendBuffer;
use ccgym_run::source::Source;
use ccgym_run::{Received, Route};

use crate::bounds::MemoryUse;
use crate::host::Host;
use crate::inbox::Inbox;
use crate::tournament::{Key, IDLE};

/// A reply from a receiver to its sender. Copies of a feedback share it, since a path may duplicate.
#[derive(Clone)]
pub enum Reply {
    /// A plain acknowledgement.
    Ack(Ack),
    /// Feedback of the scheme's receiver.
    Feedback(Arc<Feedback>),
}

impl Reply {
    pub(crate) fn flow(&self) -> u32 {
        match self {
            Self::Ack(ack) => ack.flow,
            Self::Feedback(feedback) => feedback.flow,
        }
    }

    /// Return the wire bytes.
    pub(crate) fn size(&self) -> u32 {
        match self {
            Self::Ack(ack) => ack.size,
            Self::Feedback(feedback) => feedback.size,
        }
    }
}

/// A packet or reply on a link.
#[derive(Clone)]
pub enum Parcel {
    /// Data, toward a receiver.
    Data(Packet),
    /// A reply, toward a sender. Boxed, since it is larger than the more frequent data.
    Reply(Box<Reply>),
}

impl Parcel {
    /// Return the fields that links read: flow, wire bytes and ECN bits.
    #[inline]
    pub(crate) fn header(&self) -> (u32, u32, Ecn) {
        match self {
            Self::Data(packet) => (packet.flow, packet.size, packet.ecn),
            Self::Reply(reply) => (reply.flow(), reply.size(), Ecn::NotEct),
        }
    }

    /// Set the ECN bits after a link.
    #[inline]
    pub(crate) fn mark(&mut self, ecn: Ecn) {
        if let Self::Data(packet) = self {
            packet.ecn = ecn;
        }
    }
}

/// Order of timers among events at one time: behind acknowledgements.
const TIMER: u64 = 1 << 42;
/// Order of starts: behind timers.
const START: u64 = 1 << 43;
/// Position behind the last link of a route.
pub const ARRIVED: usize = usize::MAX;
/// Position behind a link that is not on the route.
const OFF_ROUTE: usize = usize::MAX - 1;

/// The route of a flow's packets over the directions of links.
#[derive(Clone)]
pub struct FlowRoute {
    /// First direction for data.
    pub(crate) there: usize,
    /// First direction for acknowledgements.
    pub(crate) back: usize,
    /// Next direction by direction; [`ARRIVED`] behind the last.
    pub(crate) next: Box<[usize]>,
    /// Direction of the slowest link that data crosses; the first without any link.
    pub(crate) bottleneck: usize,
}

impl FlowRoute {
    /// Make it from `route`; `capacities` has a number for each direction.
    pub(crate) fn new(route: &Route, capacities: &[f64]) -> Self {
        let mut next = vec![OFF_ROUTE; capacities.len()].into_boxed_slice();
        for way in [&route.there, &route.back] {
            let after = way.iter().skip(1).copied().chain([ARRIVED]);
            way.iter().zip(after).for_each(|(&direction, after)| next[direction] = after);
        }
        let slower = |a: &&usize, b: &&usize| capacities[**a].total_cmp(&capacities[**b]);
        let bottleneck = route.there.iter().min_by(slower).copied().unwrap_or(0);
        Self { there: route.there[0], back: route.back[0], next, bottleneck }
    }
}

/// State of one flow.
#[derive(Clone)]
pub struct Flow {
    /// Registry name of its scheme.
    pub(crate) scheme: String,
    pub(crate) route: FlowRoute,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// Host of the scheme's receiver, if it has one.
    pub(crate) feedback_host: Option<Box<FeedbackHost>>,
    /// The misbehavior of the receiver.
    pub(crate) misbehaving: Option<Box<MisbehavingReceiver>>,
    /// The sender's host, if it has latency.
    pub(crate) host: Option<Box<Host>>,
    pub(crate) source: Source,
    pub(crate) start: Timestamp,
    pub(crate) stop: Timestamp,
    pub(crate) started: bool,
    pub(crate) mss: u32,
    pub(crate) header: u32,
    /// Half of the flow's own propagation delay, added before the receiver.
    pub(crate) forward_extra: TimeSpan,
    /// The whole, added before the acknowledgement is back (see the crate text).
    pub(crate) extra_rtt: TimeSpan,
    /// True if the receiver may act on its own (delayed acknowledgements, a scheme's receiver).
    pub(crate) receiver_timers: bool,
    /// True if packets and acknowledgements are carried in one call: nothing on the path, unless it is one link that
    /// holds packets, or at the receiver needs an event of its own.
    pub(crate) eager: bool,
    /// True if it is `eager`, and uses no feature that few flows have: see [`Sender::is_plain`].
    pub(crate) plain: bool,
    /// True if its packets may leave in trains.
    pub(crate) trains: bool,
    /// True if the application reacts to acknowledged data, or ends.
    pub(crate) watched: bool,
    /// Limit on the data that a greedy application may write ahead of acknowledgements, if there is one.
    pub(crate) buffer: Option<SendBuffer>,
    pub(crate) inbox: Inbox,
    /// Feedback on its way back, in order of arrival.
    pub(crate) feedback: VecDeque<(Timestamp, Arc<Feedback>)>,
    pub(crate) received: Received,
    pub(crate) finished: Timestamp,
    /// Wire bytes that each flow of the run had delivered at this one's latest decision; empty for a flow alone.
    pub(crate) acked_at_decision: Vec<u64>,
}

impl Flow {
    /// Return the next event of this flow: acknowledgements in order of scheduling, timers after them.
    #[inline]
    pub(crate) fn next_event(&self, index: u64) -> Key {
        if !self.started {
            return (self.start, START + index);
        }
        if let Some(host) = &self.host {
            cold_path();
            return (self.turn(host).min(self.receiver_due()), TIMER + index);
        }
        let mut timer = self.sender.next_timeout().min(self.source.next_event()).min(self.stop);
        if self.receiver_timers {
            timer = timer.min(self.receiver_due()).min(self.feedback_due());
        }
        self.next_of(timer, index)
    }

    /// Return the next event: the first acknowledgement, or this timer.
    #[inline(always)]
    pub(crate) fn next_of(&self, timer: Timestamp, index: u64) -> Key {
        let timer = (timer, TIMER + index);
        match self.inbox.front() {
            Some((key, _)) if *key < timer => *key,
            _ if timer.0.is_set() => timer,
            _ => IDLE,
        }
    }

    /// Return the time at which the host handles the next event. Its kernel, without latency, makes connections.
    fn turn(&self, host: &Host) -> Timestamp {
        let (packet, first) = self.inbox.front().map_or((Timestamp::NEVER, 0), |(key, ack)| (key.0, ack.trigger));
        if first == HANDSHAKE {
            return packet;
        }
        let packet = packet.min(self.feedback_due());
        host.turn(packet, self.sender.next_timeout().min(self.source.next_event()).min(self.stop))
    }

    /// True if the host handles events at `now`.
    pub(crate) fn wake(&mut self, now: Timestamp) -> bool {
        let awake = !self.started || self.host.as_ref().is_none_or(|host| self.turn(host) <= now);
        if let Some(host) = self.host.as_mut().filter(|_| awake) {
            host.wake(now);
        }
        awake
    }

    /// True if it is active, and its packets cross this direction of a link.
    pub(crate) fn shares(&self, direction: usize) -> bool {
        self.started && !self.sender.is_stopped() && self.route.next[direction] != OFF_ROUTE
    }

    /// Return the bytes in use, and needed for `more` further packets.
    pub(crate) fn held_bytes(&self, more: usize) -> usize {
        let host = self.feedback_host.as_ref().map_or(0, |host| host.held_bytes());
        let feedback: usize = self.feedback.iter().map(|(_, feedback)| feedback.held_bytes()).sum();
        self.inbox.held_bytes(more) + self.sender.held_bytes(more) + self.receiver.held_bytes() + host + feedback
    }

    /// Return the memory of `count` flows like this one before its start.
    pub(crate) fn memory_use_of(&self, count: usize) -> MemoryUse {
        MemoryUse {
            flows: count.saturating_mul(self.held_bytes(0) + std::mem::size_of::<Self>()),
            ..MemoryUse::default()
        }
    }

    /// True if only the pacer's next release is due now.
    #[inline]
    pub(crate) fn is_release_due(&self, now: Timestamp) -> bool {
        self.sender.is_release_due(now)
            && self.started
            && self.stop > now
            && self.source.next_event() > now
            && !self.receiver_timers
    }

    /// Return the receiver's next timer on the simulation's clock.
    pub(crate) fn receiver_due(&self) -> Timestamp {
        let due = match &self.feedback_host {
            Some(host) => host.next_timeout(),
            None => self.receiver.next_timeout(),
        };
        if due.is_set() {
            due - self.forward_extra
        } else {
            due
        }
    }

    /// Run the receiver's timer; returns what it sends. Times are on the simulation's clock.
    pub(crate) fn fire_receiver(&mut self, due: Timestamp) -> Option<Reply> {
        let now = due + self.forward_extra;
        match &mut self.feedback_host {
            Some(host) => host.on_timeout(&self.receiver, now).map(|feedback| Reply::Feedback(Arc::new(feedback))),
            None => self.receiver.on_timeout(now).map(|ack| Reply::Ack(self.falsified(now, ack))),
        }
    }

    /// Return the acknowledgement that leaves at `now`, falsified by a misbehaving receiver.
    #[inline]
    fn falsified(&mut self, now: Timestamp, honest: Ack) -> Ack {
        match &mut self.misbehaving {
            None => honest,
            Some(misbehaving) => misbehaving.falsified(now, honest),
        }
    }

    /// Return the time at which the next feedback reaches the sender.
    pub(crate) fn feedback_due(&self) -> Timestamp {
        self.feedback.front().map_or(Timestamp::NEVER, |(at, _)| *at)
    }
}
