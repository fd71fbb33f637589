//! The interface of a path element.

use ccgym_core::packet::Datagram;
use ccgym_core::units::{TimeSpan, Timestamp};
use dyn_clone::DynClone;
use serde::{Deserialize, Serialize};

/// Answer of an element to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It will leave the element at this time (not before its arrival). The element is done with it.
    Forward(Timestamp),
    /// It and a copy right behind it will leave the element at this time. The element is done with both.
    Duplicate(Timestamp),
    /// It is dropped.
    Drop,
    /// The element keeps it; it leaves by [`PathElement::release`].
    Hold,
}

/// A result of [`PathElement::release`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// The packet leaves at this time, which is not later than the call.
    Forward(Datagram, Timestamp),
    /// The element dropped a packet that it had held.
    Drop(Datagram, Timestamp),
}

/// A state machine that delays, drops, marks or copies packets.
///
/// Packets arrive in non-decreasing time order. `offer` answers *at arrival* if the element knows the departure then (a
/// fixed delay, a random draw, a FIFO with known service): the driver may carry the packet to the next element at once,
/// with the departure time as its arrival there. That makes the simulator fast; an element that does not know (an
/// active queue manager that decides at dequeue) answers [`Fate::Hold`].
pub trait PathElement: DynClone + Send + Sync {
    /// Process a packet that arrives at `now`. The element may change its ECN bits.
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate;

    /// Return the next time for `release`; [`Timestamp::NEVER`] when nothing is held.
    fn next_event(&self) -> Timestamp {
        Timestamp::NEVER
    }

    /// Advance to `now`, and return the next packet that leaves or is dropped by then, in time order.
    fn release(&mut self, _now: Timestamp) -> Option<Release> {
        None
    }

    /// True if packets leave in the order of their arrival. If not, the driver sorts before the next element.
    fn preserves_order(&self) -> bool {
        true
    }

    /// True if `offer` may answer [`Fate::Hold`].
    fn may_hold(&self) -> bool {
        false
    }

    /// True if `offer` may answer [`Fate::Duplicate`].
    fn may_duplicate(&self) -> bool {
        false
    }

    /// Return packets and wire bytes waiting at `now`, for elements that queue; a device buffer below the queue
    /// discipline is not counted, as it does not count in the queue's limits.
    fn backlog(&mut self, _now: Timestamp) -> (u64, u64) {
        (0, 0)
    }

    /// Return the counters.
    fn counters(&self) -> Counters;

    /// Return the bytes of waiting packets, and of recorded events.
    fn held_bytes(&self) -> (usize, usize) {
        (0, 0)
    }

    /// Start recording [`LinkEvent`]s; only links do.
    fn record_events(&mut self) {}

    /// Return recorded events in mahimahi's order, including the delivery opportunities up to `until`.
    fn take_events(&mut self, _until: Timestamp) -> Vec<LinkEvent> {
        Vec::new()
    }
}

dyn_clone::clone_trait_object!(PathElement);

/// Counters of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Packets offered.
    pub arrived: u64,
    /// Packets passed on (or known to leave), including copies: `arrived` + `duplicated` − `dropped` − those waiting.
    pub forwarded: u64,
    /// Wire bytes (IP length + per-packet overhead of the link) passed on.
    pub forwarded_bytes: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Copies made.
    #[serde(default)]
    pub duplicated: u64,
    /// Packets marked with congestion-experienced.
    pub marked: u64,
    /// Links only: sum over forwarded packets of arrival → end of the wait in the queue, in nanoseconds. Divided by the
    /// duration it is the time-mean number of waiting packets (Little's law); by `forwarded`, the mean wait. A link
    /// that knows departures at arrival counts them at arrival, also those after the end of the run.
    pub waited_ns: u64,
    /// Links only: as `waited_ns`, arrival → departure, including transmission.
    pub sojourn_ns: u64,
}

impl Counters {
    /// Return the time-mean number of waiting packets over `duration` (Little's law); zero for no duration.
    pub fn mean_queue_packets(&self, duration: TimeSpan) -> f64 {
        if duration.0 == 0 {
            0.0
        } else {
            self.waited_ns as f64 / duration.0 as f64
        }
    }

    /// Return the mean time from arrival to departure of forwarded packets; zero if there were none.
    pub fn mean_sojourn(&self) -> TimeSpan {
        TimeSpan(self.sojourn_ns.checked_div(self.forwarded).unwrap_or(0))
    }
}

/// One event of a mahimahi link log (mahimahi 0.98 `link_queue.cc`; drops of its master).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LinkEvent {
    /// `T # 1504`: a delivery opportunity of that many bytes; 1500 of a link at a rate.
    Opportunity(Timestamp, u32),
    /// `T + N`: arrival of an N-byte unit (IP length + overhead) of a flow.
    Arrival(Timestamp, u32, u32),
    /// `T - N D`: departure of an N-byte unit of a flow which arrived at the last timestamp.
    Departure(Timestamp, u32, u32, Timestamp),
    /// `T d 1 N`: drop of an N-byte unit of a flow.
    Drop(Timestamp, u32, u32),
}
