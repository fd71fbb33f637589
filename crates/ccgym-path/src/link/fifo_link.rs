//! A link with an infinite or drop-tail queue: departures are known at arrival, so that it answers at once.

use ccgym_core::cold_path;
use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate, LinkEvent, PathElement};
use crate::link::recorder::Recorder;
use crate::link::waiting::{Limits, Waiting};

/// The times at which a link may transmit: a rate, or a delivery trace.
pub trait Schedule: Clone + Send + Sync + 'static {
    /// Process a packet that arrives at `now`. Removes packets from `waiting` whose transmission has begun.
    fn arrive(&mut self, now: Timestamp, waiting: &mut Waiting);

    /// True if it can ever carry a packet of this size.
    fn carries(&self, _wire: u32) -> bool {
        true
    }

    /// Transmit a packet behind all others; returns when that begins and ends. An end of [`Timestamp::NEVER`]: it is
    /// never delivered.
    fn transmit(&mut self, now: Timestamp, wire: u32) -> (Timestamp, Timestamp);

    /// Return the number of the opportunity in which the last packet ended; 0 for a rate.
    fn opportunity(&self) -> u64 {
        0
    }

    /// Make a recorder for its events, which has not started.
    fn recorder(&self) -> Recorder;
}

/// FIFO link under a schedule. The most frequent element: some nanoseconds per packet.
#[derive(Clone, Debug)]
pub struct FifoLink<S> {
    schedule: S,
    /// Packets whose transmission has not begun.
    waiting: Waiting,
    limits: Limits,
    overhead: u32,
    counters: Counters,
    device: Option<Box<Device>>,
    recorder: Option<Box<Recorder>>,
}

/// A device buffer below the queue discipline: it takes packets out of the queue before their transmission.
#[derive(Clone, Debug)]
struct Device {
    packets: usize,
    /// Packets in the queue discipline, that is, not yet in the device.
    queued: Waiting,
}

impl<S: Schedule> FifoLink<S> {
    /// Make a link which charges `overhead` bytes per packet and has room for `device_packets` below the queue.
    pub fn new(schedule: S, limits: Limits, overhead: u32, device_packets: u32) -> Self {
        let device = Device { packets: device_packets as usize, queued: Waiting::default() };
        Self {
            schedule,
            waiting: Waiting::default(),
            limits,
            overhead,
            counters: Counters::default(),
            device: (device_packets > 0).then(|| Box::new(device)),
            recorder: None,
        }
    }

    #[cold]
    fn drop(&mut self, now: Timestamp, wire: u32, datagram: &Datagram) -> Fate {
        self.counters.dropped += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.dropped_at_arrival(now, wire, datagram.flow);
        }
        Fate::Drop
    }

    /// As [`PathElement::offer`], inlined.
    #[inline(always)]
    pub(crate) fn carry(&mut self, now: Timestamp, datagram: &Datagram) -> Fate {
        let wire = datagram.size + self.overhead;
        if let Some(recorder) = &mut self.recorder {
            cold_path();
            recorder.arrived(now, wire, datagram.flow);
        }
        self.schedule.arrive(now, &mut self.waiting);
        let admitted = match &mut self.device {
            None => self.waiting.admits(&self.limits, wire),
            Some(device) => {
                cold_path();
                device.queued.pop_until(now);
                device.queued.admits(&self.limits, wire)
            }
        };
        if !self.schedule.carries(wire) || !admitted {
            return self.drop(now, wire, datagram);
        }
        let (starts, ends) = self.schedule.transmit(now, wire);
        if !ends.is_set() {
            return self.drop(now, wire, datagram);
        }
        if starts > now {
            // The packet leaves the queue discipline for transmission, or for the device buffer, which it enters when
            // the packet `packets` places ahead leaves that.
            let mut leaves = starts;
            if let Some(device) = &mut self.device {
                cold_path();
                leaves = self.waiting.leaves_from_back(device.packets).unwrap_or(now);
                if leaves > now {
                    device.queued.push(leaves, wire);
                }
            }
            self.waiting.push(starts, wire);
            self.counters.waited_ns += leaves.0 - now.0;
        }
        self.counters.forwarded += 1;
        self.counters.forwarded_bytes += u64::from(wire);
        self.counters.sojourn_ns += ends.0 - now.0;
        if let Some(recorder) = &mut self.recorder {
            cold_path();
            recorder.departs(ends, self.schedule.opportunity(), wire, datagram.flow, now);
        }
        Fate::Forward(ends)
    }
}

impl<S: Schedule> PathElement for FifoLink<S> {
    #[inline(never)]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        self.carry(now, datagram)
    }

    fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        let waiting = match &mut self.device {
            None => &mut self.waiting,
            Some(device) => &mut device.queued,
        };
        waiting.pop_until(now);
        waiting.backlog()
    }

    fn counters(&self) -> Counters {
        let arrived = self.counters.forwarded + self.counters.dropped;
        Counters { arrived, ..self.counters }
    }

    fn held_bytes(&self) -> (usize, usize) {
        let waiting = self.waiting.held_bytes() + self.device.as_ref().map_or(0, |device| device.queued.held_bytes());
        (waiting, self.recorder.as_ref().map_or(0, |recorder| recorder.held_bytes()))
    }

    fn record_events(&mut self) {
        if self.recorder.is_none() {
            self.recorder = Some(Box::new(self.schedule.recorder()));
        }
    }

    fn take_events(&mut self, until: Timestamp) -> Vec<LinkEvent> {
        self.recorder.as_mut().map_or_else(Vec::new, |r| r.take(until))
    }
}
