//! Records of a run: packet logs and series. Costs nothing when off.

use std::ops::Index;

use ccgym_core::{Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use crate::receiver_series::ReceiverSeries;

/// A column of a log, which takes no memory while all its numbers are equal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Column {
    len: usize,
    /// The number that all are equal to while `each` is empty.
    same: u32,
    each: Vec<u32>,
}

impl Column {
    #[inline]
    fn push(&mut self, value: u32) {
        if value != self.same || !self.each.is_empty() {
            self.push_apart(value);
        }
        self.len += 1;
    }

    #[inline(never)]
    fn push_apart(&mut self, value: u32) {
        if self.len == 0 {
            self.same = value;
            return;
        }
        if self.each.is_empty() {
            self.each = vec![self.same; self.len];
        }
        self.each.push(value);
    }

    /// Return the length.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Return all numbers in turn.
    pub fn iter(&self) -> impl Iterator<Item = &u32> {
        (0..self.len).map(|i| &self[i])
    }

    fn entry_bytes(&self) -> usize {
        if self.each.is_empty() {
            0
        } else {
            std::mem::size_of::<u32>()
        }
    }

    fn make_room(&mut self, more: usize) -> bool {
        self.each.is_empty() || self.each.try_reserve(more).is_ok()
    }

    fn truncate(&mut self, len: usize) {
        self.len = len.min(self.len);
        self.each.truncate(len);
    }
}

impl FromIterator<u32> for Column {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut column = Self::default();
        numbers.into_iter().for_each(|number| column.push(number));
        column
    }
}

impl Index<usize> for Column {
    type Output = u32;

    #[inline]
    fn index(&self, i: usize) -> &u32 {
        if self.each.is_empty() {
            &self.same
        } else {
            &self.each[i]
        }
    }
}

/// Every packet of one direction, as columns in order of entry: mostly 16 bytes each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PacketLog {
    /// Times of entering the path.
    pub entered: Vec<u64>,
    /// Times of leaving the path, of copies the first; `u64::MAX` if never.
    pub left: Vec<u64>,
    /// Wire bytes.
    pub size: Column,
    /// Flow.
    pub flow: Column,
}

/// Handle of a packet that is not logged.
pub const UNLOGGED: u32 = u32::MAX;

impl PacketLog {
    /// Log a packet that enters; the handle is for its departure.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, size: u32, flow: u32) -> u32 {
        self.entered.push(now.0);
        self.left.push(u64::MAX);
        self.size.push(size);
        self.flow.push(flow);
        (self.entered.len() - 1) as u32
    }

    /// Return the bytes in use with room for `more` entries, and during the growth.
    #[must_use]
    pub fn held_bytes(&self, more: usize) -> usize {
        const TIME: usize = std::mem::size_of::<u64>();
        let entry = 2 * TIME + self.size.entry_bytes() + self.flow.entry_bytes();
        let (len, capacity) = (self.entered.len(), self.entered.capacity());
        if len + more <= capacity {
            return capacity * entry;
        }
        // One column at a time is copied to twice its size, and then freed.
        (2 * capacity).max(len + more) * entry + capacity * TIME
    }

    /// Make room for `more` entries; false if memory cannot be allocated, or handles would run out.
    pub fn make_room(&mut self, more: usize) -> bool {
        self.entered.len() + more < UNLOGGED as usize
            && self.entered.try_reserve(more).is_ok()
            && self.left.try_reserve(more).is_ok()
            && self.size.make_room(more)
            && self.flow.make_room(more)
    }

    /// Log the departure of a packet, or a copy of it.
    #[inline]
    pub fn leave(&mut self, handle: u32, at: Timestamp) {
        let left = &mut self.left[handle as usize];
        *left = at.0.min(*left);
    }

    /// Drop entries and departures after `end`; sort the rest in order of entry.
    pub fn cut(&mut self, end: Timestamp) {
        let (mut sorted, mut before) = (true, 0);
        for (&entered, left) in self.entered.iter().zip(&mut self.left) {
            sorted &= before <= entered;
            before = entered;
            if *left > end.0 {
                *left = u64::MAX;
            }
        }
        if sorted {
            let len = self.entered.partition_point(|&t| t <= end.0);
            self.entered.truncate(len);
            self.left.truncate(len);
            self.size.truncate(len);
            self.flow.truncate(len);
            return;
        }
        // An acknowledgement carried eagerly is logged when its data packet is sent: before others that enter sooner,
        // and possibly with an entry after the end.
        let mut order: Vec<usize> = (0..self.entered.len()).filter(|&i| self.entered[i] <= end.0).collect();
        order.sort_by_key(|&i| self.entered[i]);
        self.left = order.iter().map(|&i| self.left[i]).collect();
        self.size = order.iter().map(|&i| self.size[i]).collect();
        self.flow = order.iter().map(|&i| self.flow[i]).collect();
        self.entered = order.iter().map(|&i| self.entered[i]).collect();
    }
}

/// Samples of one flow. Sizes are wire bytes unless stated; counters are cumulative since the flow's start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Window (PRR's during fast recovery).
    pub cwnd_bytes: Vec<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// sRTT; zero before the first sample.
    pub srtt_ns: Vec<u64>,
    /// Pacing rate; zero if unpaced.
    pub pacing_bps: Vec<u64>,
    /// Bytes sent.
    pub sent_bytes: Vec<u64>,
    /// Packets sent.
    pub sent_packets: Vec<u64>,
    /// Bytes acknowledged.
    pub acked_bytes: Vec<u64>,
    /// Packets declared lost.
    pub lost_packets: Vec<u64>,
    /// Packets received, including copies (from the receiver's bins).
    pub received_bytes: Vec<u64>,
    /// Payload received for the first time.
    pub received_unique_bytes: Vec<u64>,
    /// Payload that the receiver's application can read: without a gap before it.
    pub read_bytes: Vec<u64>,
    /// State of the scheme: an index into `states`; zeros for a scheme without states.
    pub state: Vec<u64>,
    /// Names of its states, in the order of their first occurrence.
    pub states: Vec<String>,
}

/// Samples of a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Direction: an index into [`crate::Outcome::links`].
    pub direction: usize,
    /// Packets waiting.
    pub queue_packets: Vec<u64>,
    /// Wire bytes waiting.
    pub queue_bytes: Vec<u64>,
    /// Packets dropped so far.
    pub drops: Vec<u64>,
}

/// Series of a run, sampled every `step`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Spacing; zero when off.
    pub step: TimeSpan,
    /// Sample times.
    pub t: Vec<u64>,
    /// One per flow.
    pub flows: Vec<FlowSeries>,
    /// One per direction that carries data over a link.
    pub links: Vec<LinkSeries>,
    /// Per flow.
    receivers: Vec<ReceiverSeries>,
}

impl Series {
    /// Make series of `flows` flows, and of the links in `directions`.
    #[must_use]
    pub fn new(step: TimeSpan, flows: usize, directions: &[usize]) -> Self {
        let link = |&direction| LinkSeries { direction, ..LinkSeries::default() };
        Self {
            step,
            flows: vec![FlowSeries::default(); flows],
            links: directions.iter().map(link).collect(),
            receivers: vec![ReceiverSeries::new(step); flows],
            ..Self::default()
        }
    }

    /// Make series from samples taken elsewhere; every column is as long as `t`.
    #[must_use]
    pub fn assembled(step: TimeSpan, t: Vec<u64>, flows: Vec<FlowSeries>, link: LinkSeries) -> Self {
        Self { step, t, flows, links: vec![link], receivers: Vec::new() }
    }

    /// Return the bytes of a series of `samples` samples of `flows` flows and `links` links.
    #[must_use]
    pub const fn bytes_of(samples: usize, flows: usize, links: usize) -> usize {
        const FLOW: usize = 15 * std::mem::size_of::<u64>();
        const LINK: usize = 3 * std::mem::size_of::<u64>();
        const TIME: usize = std::mem::size_of::<u64>();
        samples.saturating_mul(flows.saturating_mul(FLOW) + links.saturating_mul(LINK) + TIME)
    }

    /// Return the receiver series of `flow`; packets reach it perhaps ahead of the simulation's clock.
    #[inline]
    pub fn receiver(&mut self, flow: usize) -> &mut ReceiverSeries {
        &mut self.receivers[flow]
    }

    /// Make room for one more sample; false if memory cannot be allocated.
    pub fn make_room(&mut self) -> bool {
        if self.t.len() < self.t.capacity() {
            return true;
        }
        let more = self.t.len().max(64);
        let columns = self.flows.iter_mut().flat_map(|f| {
            [
                &mut f.cwnd_bytes,
                &mut f.in_flight_bytes,
                &mut f.srtt_ns,
                &mut f.pacing_bps,
                &mut f.sent_bytes,
                &mut f.sent_packets,
                &mut f.acked_bytes,
                &mut f.lost_packets,
                &mut f.state,
            ]
        });
        let links = self.links.iter_mut().flat_map(|l| [&mut l.queue_packets, &mut l.queue_bytes, &mut l.drops]);
        [&mut self.t].into_iter().chain(columns).chain(links).all(|column| column.try_reserve(more).is_ok())
    }

    /// Sample one flow.
    pub fn sample_flow(&mut self, flow: usize, sender: &Sender) {
        let s = &mut self.flows[flow];
        let stats = sender.stats();
        s.cwnd_bytes.push(sender.window());
        s.in_flight_bytes.push(sender.in_flight());
        s.srtt_ns.push(if sender.rtt().samples() > 0 { sender.rtt().smoothed().0 } else { 0 });
        s.pacing_bps.push(sender.control().pacing_rate.0);
        s.sent_bytes.push(stats.sent_bytes);
        s.sent_packets.push(stats.sent_packets);
        s.acked_bytes.push(stats.acked_bytes);
        s.lost_packets.push(stats.lost_packets);
        let state = sender.cca().state();
        // Lengths first: comparing the bytes of empty strings takes 80 ns.
        let same = |name: &String| name.len() == state.len() && (state.is_empty() || name == state);
        let known = s.states.iter().position(same);
        s.state.push(known.unwrap_or(s.states.len()) as u64);
        if known.is_none() {
            s.states.push(state.to_owned());
        }
    }

    /// Turn the receivers' bins into cumulative series of the length of the others.
    pub fn finish(&mut self) {
        for (s, receiver) in self.flows.iter_mut().zip(&self.receivers) {
            let mut columns = [&mut s.received_bytes, &mut s.received_unique_bytes, &mut s.read_bytes];
            columns.iter_mut().for_each(|column| column.clear());
            receiver.add_to(Timestamp(self.t.len() as u64 * self.step.0), columns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_equal_numbers_takes_no_memory() {
        let mut column: Column = [1500, 1500, 1500].into_iter().collect();
        assert_eq!((column.len(), column.each.len(), column[2]), (3, 0, 1500));
        column.push(40);
        assert_eq!(column.iter().copied().collect::<Vec<_>>(), [1500, 1500, 1500, 40]);
        column.truncate(2);
        assert_eq!((column.len(), column[1]), (2, 1500));
        assert_eq!([0, 1].into_iter().collect::<Column>()[1], 1);
    }
}
