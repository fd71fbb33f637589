//! Packets of a run at both ends of a path that does not report them: which entered, which left, at what time.
//!
//! Every shell of mahimahi translates addresses. Packets are therefore identified by fields that stay unchanged: the IP
//! identification, and the TCP header or the first bytes of a datagram.

use std::sync::Arc;

use ccgym_core::Timestamp;
use ccgym_run::recorder::PacketLog;

use ccgym_net::error::Result;
use ccgym_net::system::capture::{Capture, CapturedPacket};
use ccgym_net::system::{Namespace, Side};
use ccgym_net::Clock;

/// Bytes of a datagram's payload that identify it: the token and the number of our datagrams.
const PAYLOAD: usize = 64;
/// Max size of a packet on the wire. Larger ones were captured before the device segmented them.
const MTU: u32 = 1500;
/// Max difference of the timestamps of two devices, ns: each capture compares the wall clock with our clock by itself.
const TOLERANCE: u64 = 100_000;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Packet at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CapturedEnd {
    at: u64,
    key: u64,
    size: u32,
    flow: u32,
    data: bool,
}

/// Capture of the flows' packets at one end of the path.
#[derive(Debug)]
pub struct Watch {
    capture: Capture<Watched>,
}

/// Packets of the flows at one end of the path.
#[derive(Debug, Default)]
pub struct Watched {
    packets: Vec<CapturedEnd>,
    /// Packets that the capture missed because they arrived too fast.
    pub dropped: u64,
    /// Packets larger than those on the wire, which the device segments later: they match nothing.
    pub oversized: u64,
}

/// Packets matched at both ends.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    /// Data packets.
    pub data: PacketLog,
    /// ACK packets.
    pub acks: PacketLog,
    /// Reasons why the logs may be incomplete; empty if they are complete.
    pub notes: Vec<String>,
}

impl Watch {
    /// Watch the device at one end. The receiver of flow i has port `first_port` + i.
    pub fn start(namespace: &Arc<Namespace>, device: &str, end: Side, first_port: u16, flows: u32) -> Result<Self> {
        let see = move |watched: &mut Watched, packet: CapturedPacket<'_>| {
            if let Some(packet) = read(&packet, end, first_port, flows) {
                watched.oversized += u64::from(packet.size > MTU);
                watched.packets.push(packet);
            }
        };
        Ok(Self { capture: Capture::start(namespace, device, Watched::default(), see)? })
    }

    /// End the capture; return all packets.
    pub fn stop(self) -> Result<Watched> {
        let (mut watched, dropped) = self.capture.stop()?;
        watched.dropped = dropped;
        Ok(watched)
    }
}

/// Read the headers of a packet; `None` if it belongs to no flow.
fn read(captured: &CapturedPacket<'_>, end: Side, first_port: u16, flows: u32) -> Option<CapturedEnd> {
    let bytes = captured.bytes;
    let be16 = |offset: usize| bytes.get(offset..offset + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let first = *bytes.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let transport = usize::from(first & 15) * 4;
    let flow_of = |port: u16| port.checked_sub(first_port).map(u32::from).filter(|&flow| flow < flows);
    let (source, destination) = (flow_of(be16(transport)?), flow_of(be16(transport + 2)?));
    // Data leaves the inside and arrives outside; ACKs go the other way.
    let forth = captured.outgoing == (end == Side::Inside);
    let (flow, data) = if forth { (destination?, true) } else { (source?, false) };
    let protocol = *bytes.get(9)?;
    // FNV-1a: the inputs are short, and no attacker chooses them.
    let mut key = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        key = bytes.iter().fold(key, |key, &byte| (key ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    };
    add(&[protocol]);
    add(bytes.get(4..6)?);
    add(bytes.get(2..4)?);
    match protocol {
        TCP => {
            // Numbers, flags, window, and options with their timestamps; not ports and checksum.
            let length = usize::from(*bytes.get(transport + 12)? >> 4) * 4;
            add(bytes.get(transport + 4..transport + 16)?);
            add(bytes.get(transport + 20..bytes.len().min(transport + length)).unwrap_or_default());
        }
        UDP => add(bytes.get(transport + 8..bytes.len().min(transport + 8 + PAYLOAD)).unwrap_or_default()),
        _ => return None,
    }
    Some(CapturedEnd { at: captured.at, key, size: u32::from(be16(2)?), flow, data })
}

/// Match the packets of one end with those of the other. Packets that entered before the clock's zero or after `end`
/// are left out; packets that left after `end` count as not left.
pub fn match_ends(inside: &Watched, outside: &Watched, clock: &Clock, end: Timestamp) -> Matched {
    let mut matched = Matched::default();
    let way = |entry: &Watched, exit: &Watched, data: bool| {
        let of = |watched: &Watched| watched.packets.iter().copied().filter(|p| p.data == data).collect::<Vec<_>>();
        pair(&of(entry), &of(exit), clock, end)
    };
    let (data, unmatched) = way(inside, outside, true);
    let (acks, unmatched_acks) = way(outside, inside, false);
    (matched.data, matched.acks) = (data, acks);
    for (watched, place) in [(inside, "inside"), (outside, "outside")] {
        if watched.dropped > 0 {
            matched.notes.push(format!("{} packets {place} came too fast to be written down", watched.dropped));
        }
        if watched.oversized > 0 {
            matched.notes.push(format!(
                "{} packets {place} were larger than {MTU} bytes: turn off the segmentation offload of the device",
                watched.oversized
            ));
        }
    }
    let unmatched = unmatched + unmatched_acks;
    if unmatched > 0 {
        matched.notes.push(format!("{unmatched} packets left the path that were not seen to enter it"));
    }
    matched
}

/// Return the log of one direction, and the number of packets that left but never entered. Both are sorted by time.
fn pair(entries: &[CapturedEnd], exits: &[CapturedEnd], clock: &Clock, end: Timestamp) -> (PacketLog, u64) {
    let by_key = |packets: &[CapturedEnd]| {
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|&i| (packets[i].key, packets[i].at));
        order
    };
    let exit_order = by_key(exits);
    let mut next = exit_order.iter().map(|&i| &exits[i]).peekable();
    let mut left = vec![None; entries.len()];
    let mut unmatched = 0;
    for i in by_key(entries) {
        let entry = &entries[i];
        // Identical packets leave in the order in which they entered. An exit before its entry is another packet's.
        while next.next_if(|e| (e.key, e.at.saturating_add(TOLERANCE)) < (entry.key, entry.at)).is_some() {
            unmatched += 1;
        }
        left[i] = next.next_if(|e| e.key == entry.key).map(|exit| exit.at.max(entry.at));
    }
    unmatched += next.count() as u64;
    let zero = clock.monotonic(Timestamp::ZERO);
    let mut log = PacketLog::default();
    for (entry, left) in entries.iter().zip(left) {
        let Some(entered) = entry.at.checked_sub(zero) else { continue };
        let handle = log.enter(Timestamp(entered), entry.size, entry.flow);
        if let Some(left) = left {
            log.leave(handle, Timestamp(left.saturating_sub(zero)));
        }
    }
    log.cut(end);
    (log, unmatched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: u64, key: u64) -> CapturedEnd {
        CapturedEnd { at, key, size: 1500, flow: 0, data: true }
    }

    fn udp(id: u8, source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
        let length = (28 + payload.len()) as u16;
        let mut bytes = vec![0x45, 0, 0, 0, 0, id, 0x40, 0, 64, UDP, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2];
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes.extend(source.to_be_bytes().into_iter().chain(destination.to_be_bytes()));
        bytes.extend([0, 0, 7, 7]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn packets_match_after_address_translation() {
        let read = |bytes: &[u8], outgoing, end| super::read(&CapturedPacket { at: 5, outgoing, bytes }, end, 5001, 2);
        let inner = udp(3, 40_000, 5002, b"hello");
        let mut outer = udp(3, 51_111, 5002, b"hello");
        outer[8] = 62;
        outer[12] = 77;
        outer[27] = 1;
        let (a, b) = (read(&inner, true, Side::Inside).unwrap(), read(&outer, false, Side::Outside).unwrap());
        assert_eq!(a, b);
        assert_eq!((a.size, a.flow, a.data), (33, 1, true));
        assert_ne!(read(&udp(3, 40_000, 5002, b"hullo"), true, Side::Inside).unwrap().key, a.key);
        assert_ne!(read(&udp(4, 40_000, 5002, b"hello"), true, Side::Inside).unwrap().key, a.key);
        // ACKs come from the receiver's port.
        assert!(!read(&udp(3, 5001, 40_000, b"x"), false, Side::Inside).unwrap().data);
        // Other directions, ports and protocols, truncated packets.
        assert_eq!(read(&inner, false, Side::Inside), None);
        assert_eq!(read(&udp(3, 40_000, 5003, b"x"), true, Side::Inside), None);
        let mut icmp = inner.clone();
        icmp[9] = 1;
        assert_eq!(read(&icmp, true, Side::Inside), None);
        for cut in 0..inner.len() {
            let _ = read(&inner[..cut], true, Side::Inside);
        }
        let mut six = inner;
        six[0] = 0x60;
        assert_eq!(read(&six, true, Side::Inside), None);
    }

    #[test]
    fn identical_packets_leave_in_order_and_losses_stay() {
        let clock = Clock::start();
        let zero = clock.monotonic(Timestamp::ZERO);
        let at = |ms: u64, key| seen(zero + ms * 1_000_000, key);
        let entries = [seen(zero - 5, 9), at(1, 7), at(2, 8), at(3, 7), at(4, 7), at(100, 6)];
        let exits = [at(1, 9), at(11, 7), at(13, 7), at(14, 5), at(105, 6)];
        let (log, unmatched) = pair(&entries, &exits, &clock, Timestamp::from_millis(102));
        let ms = |t: u64| if t == u64::MAX { u64::MAX } else { t / 1_000_000 };
        assert_eq!(log.entered.iter().map(|&t| ms(t)).collect::<Vec<_>>(), [1, 2, 3, 4, 100]);
        let never = u64::MAX;
        assert_eq!(log.left.iter().map(|&t| ms(t)).collect::<Vec<_>>(), [11, never, 13, never, never]);
        assert_eq!(unmatched, 1);
    }

    #[test]
    fn an_exit_before_the_entry_is_of_another_packet() {
        let clock = Clock::start();
        let zero = clock.monotonic(Timestamp::ZERO) + 1_000_000_000;
        let (log, unmatched) =
            pair(&[seen(zero + 50_000_000, 1)], &[seen(zero, 1), seen(zero + 60_000_000, 1)], &clock, Timestamp::NEVER);
        assert_eq!((log.left, unmatched), (vec![1_060_000_000], 1));
    }
}
