//! What a run leaves behind: packet logs and series. Costs nothing when off.

use std::collections::BTreeMap;

use ccgym_core::{Packet, Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

/// Every packet of one direction, as columns in order of entry.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PacketLog {
    /// When it entered the path.
    pub entered: Vec<u64>,
    /// When it left the path, of copies the first; `u64::MAX` if it never did.
    pub left: Vec<u64>,
    /// Wire bytes.
    pub size: Vec<u32>,
    /// Flow.
    pub flow: Vec<u32>,
}

/// Handle of a packet that is not logged.
pub const UNLOGGED: u32 = u32::MAX;

impl PacketLog {
    /// A packet enters; the handle reports its departure.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, size: u32, flow: u32) -> u32 {
        self.entered.push(now.0);
        self.left.push(u64::MAX);
        self.size.push(size);
        self.flow.push(flow);
        (self.entered.len() - 1) as u32
    }

    /// Bytes that it takes once there is room for `more` entries, and while that is made.
    #[must_use]
    pub fn held_bytes(&self, more: usize) -> usize {
        const ENTRY: usize = 2 * std::mem::size_of::<u64>() + 2 * std::mem::size_of::<u32>();
        let (len, capacity) = (self.entered.len(), self.entered.capacity());
        if len + more <= capacity {
            return capacity * ENTRY;
        }
        // One column at a time moves into twice its place, and leaves the old one.
        let grown = (2 * capacity).max(len + more);
        grown * ENTRY + capacity * std::mem::size_of::<u64>()
    }

    /// Make room for `more` entries; false if the memory for it cannot be had, or handles would run out.
    pub fn make_room(&mut self, more: usize) -> bool {
        self.entered.len() + more < UNLOGGED as usize
            && self.entered.try_reserve(more).is_ok()
            && self.left.try_reserve(more).is_ok()
            && self.size.try_reserve(more).is_ok()
            && self.flow.try_reserve(more).is_ok()
    }

    /// The packet left, or a copy of it.
    #[inline]
    pub fn leave(&mut self, handle: u32, at: Timestamp) {
        let left = &mut self.left[handle as usize];
        *left = at.0.min(*left);
    }

    /// Entries and departures after `end` did not happen in this run; the rest comes in order of entry.
    pub fn cut(&mut self, end: Timestamp) {
        let sorted = self.entered.windows(2).all(|pair| pair[0] <= pair[1]);
        if sorted {
            let len = self.entered.partition_point(|&t| t <= end.0);
            self.entered.truncate(len);
            self.left.truncate(len);
            self.size.truncate(len);
            self.flow.truncate(len);
            self.left.iter_mut().filter(|t| **t > end.0).for_each(|t| *t = u64::MAX);
            return;
        }
        // An acknowledgement carried eagerly is written down when its data packet is sent: before others that enter
        // sooner, and though it may enter after the end.
        let mut order: Vec<usize> = (0..self.entered.len()).filter(|&i| self.entered[i] <= end.0).collect();
        order.sort_by_key(|&i| self.entered[i]);
        self.left = order.iter().map(|&i| self.left[i]).map(|t| if t > end.0 { u64::MAX } else { t }).collect();
        self.size = order.iter().map(|&i| self.size[i]).collect();
        self.flow = order.iter().map(|&i| self.flow[i]).collect();
        self.entered = order.iter().map(|&i| self.entered[i]).collect();
    }
}

/// Samples of one flow. Sizes are wire bytes unless stated; counters are cumulative since the flow's start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Window in force (PRR's during fast recovery).
    pub cwnd_bytes: Vec<u64>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Smoothed round trip; zero before the first sample.
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
    /// Packets received, copies included (from the receiver's bins).
    pub received_bytes: Vec<u64>,
    /// Payload received for the first time.
    pub received_unique_bytes: Vec<u64>,
    /// Of this, what the application could read: of reliable flows what came in order. Of simulated flows alone.
    pub read_bytes: Vec<u64>,
    /// State of the scheme: an index into `states`; zeros for a scheme without any.
    pub state: Vec<u64>,
    /// Names of the states that it was in, in the order in which they were first met.
    pub states: Vec<String>,
}

/// Samples of a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Which direction it is in: an index into [`crate::Outcome::links`].
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
    /// Per flow and bin.
    bins: Vec<Vec<Bin>>,
    /// Per flow.
    reassembly: Vec<Reassembly>,
}

/// What came in one step, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Bin {
    wire: u64,
    /// Payload that is new.
    payload: u64,
    /// Payload that became readable.
    readable: u64,
}

/// What a receiver holds until the segments before it have come.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Reassembly {
    /// The segment that is read next.
    next: u64,
    /// Payload of later ones.
    waiting: BTreeMap<u64, u64>,
}

impl Reassembly {
    /// A segment arrives for the first time: payload that can be read now.
    fn take(&mut self, segment: u64, payload: u64) -> u64 {
        if segment != self.next {
            self.waiting.insert(segment, payload);
            return 0;
        }
        self.next += 1;
        let mut readable = payload;
        while let Some(more) = self.waiting.remove(&self.next) {
            self.next += 1;
            readable += more;
        }
        readable
    }
}

impl Series {
    /// Series of `flows` flows, and of the links in `directions`.
    #[must_use]
    pub fn new(step: TimeSpan, flows: usize, directions: &[usize]) -> Self {
        let link = |&direction| LinkSeries { direction, ..LinkSeries::default() };
        Self {
            step,
            flows: vec![FlowSeries::default(); flows],
            links: directions.iter().map(link).collect(),
            bins: vec![Vec::new(); flows],
            reassembly: vec![Reassembly::default(); flows],
            ..Self::default()
        }
    }

    /// Series whose samples were taken elsewhere; every column is as long as `t`.
    #[must_use]
    pub fn assembled(step: TimeSpan, t: Vec<u64>, flows: Vec<FlowSeries>, link: LinkSeries) -> Self {
        Self { step, t, flows, links: vec![link], ..Self::default() }
    }

    /// Bytes of a series of `samples` samples of `flows` flows and `links` links.
    #[must_use]
    pub const fn bytes_of(samples: usize, flows: usize, links: usize) -> usize {
        const FLOW: usize = 15 * std::mem::size_of::<u64>();
        const LINK: usize = 3 * std::mem::size_of::<u64>();
        const TIME: usize = std::mem::size_of::<u64>();
        samples.saturating_mul(flows.saturating_mul(FLOW) + links.saturating_mul(LINK) + TIME)
    }

    /// A packet reached the receiver of `flow` at `at`, perhaps ahead of the simulation's clock. `reliable`: it is read in
    /// order.
    #[inline]
    pub fn received(&mut self, flow: usize, at: Timestamp, packet: &Packet, new: bool, header: u32, reliable: bool) {
        // A sample at time t counts arrivals up to and including t.
        let bin = (at.0.saturating_sub(1) / self.step.0) as usize;
        let bins = &mut self.bins[flow];
        if bins.len() <= bin {
            bins.resize(bin + 1, Bin::default());
        }
        bins[bin].wire += u64::from(packet.size);
        if new {
            let payload = u64::from(packet.size - header);
            bins[bin].payload += payload;
            bins[bin].readable += if reliable { self.reassembly[flow].take(packet.segment, payload) } else { payload };
        }
    }

    /// Make room for one more sample; false if the memory for it cannot be had.
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
        let known = s.states.iter().position(|name| name == state);
        s.state.push(known.unwrap_or(s.states.len()) as u64);
        if known.is_none() {
            s.states.push(state.to_owned());
        }
    }

    /// Turn the receivers' bins into cumulative series of the length of the others.
    pub fn finish(&mut self) {
        for (s, bins) in self.flows.iter_mut().zip(&self.bins) {
            let mut total = Bin::default();
            s.received_bytes.clear();
            s.received_unique_bytes.clear();
            s.read_bytes.clear();
            for i in 0..self.t.len() {
                let bin = bins.get(i).copied().unwrap_or_default();
                total.wire += bin.wire;
                total.payload += bin.payload;
                total.readable += bin.readable;
                s.received_bytes.push(total.wire);
                s.received_unique_bytes.push(total.payload);
                s.read_bytes.push(total.readable);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments 0, 2, 3, 1 and a short 4 in steps of their own: 2 and 3 are readable with 1.
    #[test]
    fn what_comes_out_of_order_is_read_later() {
        let step = TimeSpan::from_millis(10);
        let mut series = Series::new(step, 2, &[]);
        for (number, (segment, size)) in [(0, 1500), (2, 1500), (3, 1500), (1, 1500), (4, 552)].into_iter().enumerate()
        {
            let at = Timestamp::from_millis(10 * (number as u64 + 1));
            let packet = Packet { segment, size, ..Packet::default() };
            series.received(0, at, &packet, true, 52, true);
            series.received(1, at, &packet, true, 52, false);
            series.t.push(at.0);
        }
        series.received(
            0,
            Timestamp::from_millis(50),
            &Packet { segment: 2, size: 1500, ..Packet::default() },
            false,
            52,
            true,
        );
        series.finish();
        assert_eq!(series.flows[0].read_bytes, [1448, 1448, 1448, 4 * 1448, 4 * 1448 + 500]);
        let unique = [1448, 2 * 1448, 3 * 1448, 4 * 1448, 4 * 1448 + 500];
        assert_eq!(series.flows[0].received_unique_bytes, unique);
        assert_eq!(series.flows[1].read_bytes, unique, "datagrams are read as they come");
        assert_eq!(series.flows[0].received_bytes[4], 4 * 1500 + 552 + 1500);
    }
}
