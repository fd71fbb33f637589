//! Parts of a held link: a server that takes packets from the queue, and the common state.

use std::collections::VecDeque;

use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, Release};
use crate::link::recorder::Recorder;
use crate::queue::{QueueDiscipline, Queued};

/// A transmitter that decides when the queue is read.
pub trait Server: Clone + Send + Sync + 'static {
    /// Process all events at or before `now`.
    fn advance(&mut self, now: Timestamp, link_state: &mut LinkState);

    /// Process events at or before `now`, at least until the next release, which is returned. None waits.
    fn release(&mut self, now: Timestamp, link_state: &mut LinkState) -> Option<Release> {
        self.advance(now, link_state);
        link_state.next_release()
    }

    /// Process a packet that has entered the queue at `now`; all earlier events are processed.
    fn packet_queued(&mut self, _now: Timestamp, _link_state: &mut LinkState) {}

    /// Return the time of the next event.
    fn next_event(&self, link_state: &LinkState) -> Timestamp;

    /// True if a unit of this size can ever be delivered.
    fn carries(&self, wire: u32) -> bool;

    /// Make a recorder for the events of this server, which has not started.
    fn recorder(&self) -> Recorder;
}

/// Queue, pending releases, counters and log.
#[derive(Clone)]
pub struct LinkState {
    queue: Box<dyn QueueDiscipline>,
    /// Releases that were not yet taken, in time order.
    pending: VecDeque<Release>,
    /// Buffer for the queue discipline.
    dropped: Vec<Queued>,
    counters: Counters,
    recorder: Option<Box<Recorder>>,
}

impl LinkState {
    pub(crate) fn new(queue: Box<dyn QueueDiscipline>) -> Self {
        Self { queue, pending: VecDeque::new(), dropped: Vec::new(), counters: Counters::default(), recorder: None }
    }

    /// Return the bytes of waiting packets, and of recorded events.
    pub fn held_bytes(&self) -> (usize, usize) {
        // A queue grows by doubling.
        let queued = 2 * self.queue.backlog().0 as usize * std::mem::size_of::<Queued>();
        let pending = self.pending.capacity() * std::mem::size_of::<Release>();
        (queued + pending, self.recorder.as_ref().map_or(0, |recorder| recorder.held_bytes()))
    }

    /// True if no packet waits in the queue.
    pub fn is_empty(&self) -> bool {
        self.queue.backlog().0 == 0
    }

    /// Read the queue at `now`, in opportunity `number` (0 for a rate).
    pub fn dequeue(&mut self, now: Timestamp, number: u64) -> Option<Queued> {
        let packet = self.queue.dequeue(now, &mut self.dropped);
        if !self.dropped.is_empty() {
            self.settle_dropped(now, Some(number));
        }
        packet
    }

    /// Count the packets that the queue dropped: at dequeue in opportunity `number`, or because of an arrival.
    #[cold]
    fn settle_dropped(&mut self, now: Timestamp, number: Option<u64>) {
        for lost in self.dropped.drain(..) {
            self.counters.dropped += 1;
            self.pending.push_back(Release::Drop(lost.datagram, now));
            if let Some(recorder) = &mut self.recorder {
                match number {
                    Some(number) => recorder.dropped_at_dequeue(now, number, lost.wire, lost.datagram.flow),
                    None => recorder.dropped_at_arrival(now, lost.wire, lost.datagram.flow),
                }
            }
        }
    }

    /// Count a packet that left the queue at `left_queue` and leaves the link at `at`, in opportunity `number`.
    #[inline]
    pub fn depart(&mut self, packet: &Queued, left_queue: Timestamp, at: Timestamp, number: u64) -> Release {
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += u64::from(packet.wire);
        self.counters.waited_ns += left_queue.since(packet.arrived).0;
        self.counters.sojourn_ns += at.since(packet.arrived).0;
        if let Some(recorder) = &mut self.recorder {
            recorder.departs(at, number, packet.wire, packet.datagram.flow, packet.arrived);
        }
        Release::Forward(packet.datagram, at)
    }

    /// Keep a release until it is taken.
    pub fn keep(&mut self, release: Release) {
        self.pending.push_back(release);
    }

    /// Drop a packet that was fetched and can never be delivered.
    pub fn lose(&mut self, packet: &Queued, at: Timestamp) {
        self.counters.dropped += 1;
        self.pending.push_back(Release::Drop(packet.datagram, at));
    }

    /// Enqueue an arrival. `deliverable` is false for a unit that the server cannot carry.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Timestamp, packet: Queued, deliverable: bool) -> Fate {
        self.counters.arrived += 1;
        let (wire, flow) = (packet.wire, packet.datagram.flow);
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(now, wire, flow);
        }
        let accepted = deliverable && self.queue.enqueue(now, packet, &mut self.dropped);
        if !self.dropped.is_empty() {
            self.settle_dropped(now, None);
        }
        if accepted {
            return Fate::Hold;
        }
        self.counters.dropped += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.dropped_at_arrival(now, wire, flow);
        }
        Fate::Drop
    }

    #[inline]
    pub(crate) fn first_pending(&self) -> Option<Timestamp> {
        self.pending.front().map(|release| match *release {
            Release::Forward(_, at) | Release::Drop(_, at) => at,
        })
    }

    #[inline]
    pub(crate) fn next_release(&mut self) -> Option<Release> {
        self.pending.pop_front()
    }

    pub(crate) fn backlog(&self) -> (u64, u64) {
        self.queue.backlog()
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters { marked: self.queue.marked(), ..self.counters }
    }

    pub(crate) fn record(&mut self, recorder: impl FnOnce() -> Recorder) {
        if self.recorder.is_none() {
            self.recorder = Some(Box::new(recorder()));
        }
    }

    pub(crate) fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }
}
