//! Link events in the order of mahimahi's log.
//!
//! Opportunities at or before an arrival come before it, each followed by the departures that it completed; a drop
//! follows its arrival. A link that knows departures at arrival records them early, so the streams are kept apart and
//! merged when taken. Drops at dequeue, which mahimahi does not log, are recorded at their time.

use std::collections::VecDeque;

use ccgym_core::units::Timestamp;

use crate::element::LinkEvent;
use crate::link::rate_clock::RateClock;
use crate::opportunities::Opportunities;
use crate::trace::{OPPORTUNITY_BYTES, PACKET_BYTES};

/// Source of the `#` lines.
#[derive(Clone, Debug)]
enum Source {
    Trace(Opportunities),
    /// A rate has no opportunities: one is recorded each time it could have sent a full packet since the last. The
    /// first has no bytes and marks the start of the rate, so that the capacity that readers of the log compute, sum /
    /// (last − first), is the rate.
    Rate {
        clock: RateClock,
        next: Timestamp,
        number: u64,
    },
}

impl Source {
    fn peek(&self) -> (Timestamp, u64) {
        match self {
            Self::Trace(cursor) => (cursor.peek(), cursor.number()),
            Self::Rate { next, number, .. } => (*next, *number),
        }
    }

    /// Return the bytes of the next opportunity, and remove it.
    fn take(&mut self) -> u32 {
        match self {
            Self::Trace(cursor) => {
                cursor.take();
                OPPORTUNITY_BYTES
            }
            Self::Rate { clock, next, number } => {
                let bytes = if *number == 0 { 0 } else { PACKET_BYTES };
                *next = clock.send_next(PACKET_BYTES);
                *number += 1;
                bytes
            }
        }
    }
}

/// Events of one link.
#[derive(Clone, Debug)]
pub struct Recorder {
    source: Source,
    /// Arrivals and drops at arrival, in time order.
    arrivals: VecDeque<LinkEvent>,
    /// Departures and drops at dequeue, in time order, with the number of their opportunity.
    exits: VecDeque<(u64, LinkEvent)>,
}

impl Recorder {
    /// Make it for a link over a trace, from the cursor's position.
    pub fn for_trace(opportunities: Opportunities) -> Self {
        Self::new(Source::Trace(opportunities))
    }

    /// Make it for a link at a rate; `clock` has sent nothing yet.
    pub fn for_rate(clock: RateClock) -> Self {
        Self::new(Source::Rate { clock, next: Timestamp::ZERO, number: 0 })
    }

    fn new(source: Source) -> Self {
        Self { source, arrivals: VecDeque::new(), exits: VecDeque::new() }
    }

    /// Return the bytes of the recorded events.
    pub fn held_bytes(&self) -> usize {
        self.arrivals.capacity() * std::mem::size_of::<LinkEvent>()
            + self.exits.capacity() * std::mem::size_of::<(u64, LinkEvent)>()
    }

    /// Record the arrival of a unit.
    pub fn arrived(&mut self, now: Timestamp, wire: u32, flow: u32) {
        self.arrivals.push_back(LinkEvent::Arrival(now, wire, flow));
    }

    /// Record the drop of a unit because of an arrival at `now`: that unit, or an older one.
    pub fn dropped_at_arrival(&mut self, now: Timestamp, wire: u32, flow: u32) {
        self.arrivals.push_back(LinkEvent::Drop(now, wire, flow));
    }

    /// Record the departure of a unit that arrived at `arrived`, in opportunity `number` (0 for a rate).
    pub fn departs(&mut self, at: Timestamp, number: u64, wire: u32, flow: u32, arrived: Timestamp) {
        self.exits.push_back((number, LinkEvent::Departure(at, wire, flow, arrived)));
    }

    /// Record the drop of a unit when the queue is read in opportunity `number` (0 for a rate).
    pub fn dropped_at_dequeue(&mut self, at: Timestamp, number: u64, wire: u32, flow: u32) {
        self.exits.push_back((number, LinkEvent::Drop(at, wire, flow)));
    }

    /// Take the events up to and including `until`; the rest stays for the next call. With [`Timestamp::NEVER`], up to
    /// the last recorded event, since opportunities have no end.
    pub fn take(&mut self, until: Timestamp) -> Vec<LinkEvent> {
        let until = if until.is_set() {
            until
        } else {
            let last = |event: Option<&LinkEvent>| event.map_or(Timestamp::ZERO, time);
            last(self.arrivals.back()).max(last(self.exits.back().map(|(_, e)| e)))
        };
        let mut out = Vec::with_capacity(self.arrivals.len() + self.exits.len());
        loop {
            let arrival = self.arrivals.front().map_or(Timestamp::NEVER, time);
            let (opportunity, number) = self.source.peek();
            let (exit, belongs) = self.exits.front().map_or((Timestamp::NEVER, 0), |(n, e)| (time(e), *n));
            if !exit.min(arrival).min(opportunity).is_set() || exit.min(arrival).min(opportunity) > until {
                return out;
            }
            if arrival < opportunity && arrival < exit {
                out.extend(self.arrivals.pop_front());
            } else if (exit, belongs) < (opportunity, number) {
                out.extend(self.exits.pop_front().map(|(_, e)| e));
            } else {
                out.push(LinkEvent::Opportunity(opportunity, self.source.take()));
            }
        }
    }
}

fn time(event: &LinkEvent) -> Timestamp {
    match *event {
        LinkEvent::Opportunity(t, _)
        | LinkEvent::Arrival(t, ..)
        | LinkEvent::Departure(t, ..)
        | LinkEvent::Drop(t, ..) => t,
    }
}
