//! Packets of several segments: their layout, and how to forward a part of them.
//!
//! The kernel delivers TCP data in packets of up to 64 KB with one header, which a network card would segment. The path
//! sees each segment as a packet of its own; segments that are due together can be sent together again, with a new
//! header.

use ccgym_core::Ecn;

use crate::system::port::{Offload, Segmentation};

/// Max bytes of IPv4 and TCP headers.
const MAX_HEADERS: usize = 120;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// TCP flags in the second byte of the flags field that only the last segment has.
const FIN_PSH: u8 = 0x09;
/// TCP flag that only the first segment has: cwnd reduced.
const CWR: u8 = 0x80;

/// Offsets of headers in a packet, and its division into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// IP protocol; `None` if this is not a whole IPv4 packet of TCP or UDP.
    transport: Option<u8>,
    /// Bytes of the IP header.
    ip: u16,
    /// Bytes of all headers.
    headers: u16,
    /// Payload bytes of each segment but the last.
    segment: u32,
    /// Payload bytes in total.
    payload: u32,
    count: u16,
}

/// Part of a packet, ready to write.
pub struct Part<'a> {
    headers: [u8; MAX_HEADERS],
    length: usize,
    /// Payload.
    pub payload: &'a [u8],
    /// Segmentation and checksum that are still to do.
    pub offload: Offload,
}

impl Part<'_> {
    /// Return the IP and transport headers.
    #[must_use]
    pub fn headers(&self) -> &[u8] {
        &self.headers[..self.length]
    }
}

impl Layout {
    /// Parse a packet's headers. Unknown packets count as one segment without ports.
    #[must_use]
    pub fn of(packet: &[u8], offload: &Offload) -> Self {
        let opaque = |headers: usize| Self {
            transport: None,
            ip: 0,
            headers: headers as u16,
            segment: packet.len() as u32,
            payload: (packet.len() - headers) as u32,
            count: 1,
        };
        let Some((ip, headers)) = header_lengths(packet) else { return opaque(packet.len().min(MAX_HEADERS)) };
        let transport = packet[9];
        let payload = (packet.len() - headers) as u32;
        let cut = matches!((offload.segmentation, transport), (Segmentation::Tcp4, TCP) | (Segmentation::Udp4, UDP));
        let segment = if cut && offload.segment_size > 0 { u32::from(offload.segment_size) } else { payload.max(1) };
        Self {
            transport: Some(transport),
            ip: ip as u16,
            headers: headers as u16,
            segment,
            payload,
            count: payload.div_ceil(segment).max(1) as u16,
        }
    }

    /// Return the number of segments: packets on the wire.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// Return the wire bytes of segment `i`, including the IP header.
    #[must_use]
    pub fn size(&self, i: u16) -> u32 {
        let before = u32::from(i) * self.segment;
        u32::from(self.headers) + self.segment.min(self.payload.saturating_sub(before))
    }

    /// Return source and destination port.
    #[must_use]
    pub fn ports(&self, packet: &[u8]) -> Option<(u16, u16)> {
        self.transport?;
        let at = usize::from(self.ip);
        let bytes = packet.get(at..at + 4)?;
        Some((u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]])))
    }

    /// Make one packet of segments `first..first + count` of `packet`, with these ECN bits.
    #[must_use]
    pub fn part<'a>(&self, packet: &'a [u8], offload: &Offload, first: u16, count: u16, ecn: Ecn) -> Part<'a> {
        let headers = usize::from(self.headers).min(packet.len());
        let (before, payload) = packet.split_at(headers);
        let mut part = Part { headers: [0; MAX_HEADERS], length: headers, payload, offload: *offload };
        part.headers[..headers].copy_from_slice(before);
        let changed = self.transport.is_some() && ecn != ecn_of(packet);
        if changed {
            part.headers[1] = part.headers[1] & !0b11 | ecn.bits();
        }
        if count == self.count || self.transport.is_none() {
            if changed {
                write_ip_checksum(&mut part.headers[..usize::from(self.ip)]);
            }
            return part;
        }
        let from = u32::from(first) * self.segment;
        let to = (from + u32::from(count) * self.segment).min(self.payload);
        part.payload = payload.get(from as usize..to as usize).unwrap_or_default();
        self.rewrite(&mut part, first, from, to == self.payload);
        if count == 1 {
            part.offload = Offload { segmentation: Segmentation::None, segment_size: 0, ..part.offload };
        }
        part
    }

    /// Rewrite the headers of a part whose payload starts `from` bytes into the packet's.
    fn rewrite(&self, part: &mut Part<'_>, first: u16, from: u32, last: bool) {
        let (ip_length, total) = (usize::from(self.ip), part.length + part.payload.len());
        let (ip, transport) = part.headers[..part.length].split_at_mut(ip_length);
        ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(first);
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        write_ip_checksum(ip);
        let length = (total - ip_length) as u16;
        let checksum_at = if self.transport == Some(TCP) {
            let sequence = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            transport[4..8].copy_from_slice(&sequence.wrapping_add(from).to_be_bytes());
            if !last {
                transport[13] &= !FIN_PSH;
            }
            if first > 0 {
                transport[13] &= !CWR;
            }
            16
        } else {
            transport[4..6].copy_from_slice(&length.to_be_bytes());
            6
        };
        // Sum of the pseudo-header only; checksum offload adds the rest.
        let sum = sum_words(&ip[12..20]) + u32::from(ip[9]) + u32::from(length);
        transport[checksum_at..checksum_at + 2].copy_from_slice(&fold(sum).to_be_bytes());
        part.offload.checksum = Some((self.ip, checksum_at as u16));
    }
}

/// Return the bytes of the IP header and of all headers of a whole IPv4 packet of TCP or UDP.
fn header_lengths(packet: &[u8]) -> Option<(usize, usize)> {
    let (&version, &protocol) = (packet.first()?, packet.get(9)?);
    // Check for version 4 and no fragments.
    let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff;
    if version >> 4 != 4 || fragment != 0 {
        return None;
    }
    let ip = usize::from(version & 0xf) * 4;
    let transport = match protocol {
        TCP => usize::from(packet.get(ip + 12)? >> 4) * 4,
        UDP => 8,
        _ => return None,
    };
    let fixed = if protocol == TCP { 20 } else { 8 };
    (ip >= 20 && transport >= fixed && ip + transport <= packet.len()).then_some((ip, ip + transport))
}

/// Return the ECN bits of an IPv4 packet.
#[must_use]
pub fn ecn_of(packet: &[u8]) -> Ecn {
    match packet {
        [version, tos, ..] if version >> 4 == 4 => Ecn::of_traffic_class(*tos),
        _ => Ecn::NotEct,
    }
}

fn write_ip_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = !fold(sum_words(header));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

const fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Make a packet with `payload` bytes, TCP flags CWR, ACK, PSH and FIN.
    fn packet(protocol: u8, payload: usize) -> Vec<u8> {
        let transport = if protocol == TCP { 32 } else { 8 };
        let mut bytes = vec![0; 20 + transport + payload];
        let length = bytes.len() as u16;
        bytes[..2].copy_from_slice(&[0x45, 0x02]);
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[4..6].copy_from_slice(&0xfffeu16.to_be_bytes());
        bytes[8..10].copy_from_slice(&[64, protocol]);
        bytes[12..20].copy_from_slice(&[100, 64, 0, 2, 100, 64, 0, 1]);
        write_ip_checksum(&mut bytes[..20]);
        bytes[20..24].copy_from_slice(&[0x80, 1, 0x13, 0x8a]);
        if protocol == TCP {
            bytes[24..28].copy_from_slice(&0xffff_ff00u32.to_be_bytes());
            bytes[32] = 0x80;
            bytes[33] = CWR | 0x10 | FIN_PSH;
        } else {
            bytes[24..26].copy_from_slice(&(8 + payload as u16).to_be_bytes());
        }
        for (i, byte) in bytes[20 + transport..].iter_mut().enumerate() {
            *byte = ((i * 7) >> 3) as u8;
        }
        bytes
    }

    fn tcp() -> Offload {
        Offload { segmentation: Segmentation::Tcp4, segment_size: 1448, checksum: Some((20, 16)) }
    }

    #[test]
    fn a_large_packet_is_cut_as_a_network_card_would() {
        let bytes = packet(TCP, 4000);
        let layout = Layout::of(&bytes, &tcp());
        assert_eq!((layout.count(), layout.size(0), layout.size(1), layout.size(2)), (3, 1500, 1500, 52 + 1104));
        assert_eq!(layout.ports(&bytes), Some((0x8001, 5002)));
        let mut payload = Vec::new();
        for i in 0..3 {
            let part = layout.part(&bytes, &tcp(), i, 1, Ecn::Ect0);
            let headers = part.headers();
            assert_eq!(fold(sum_words(&headers[..20])), 0xffff, "IP checksum");
            assert_eq!(u32::from(u16::from_be_bytes([headers[2], headers[3]])), layout.size(i));
            assert_eq!(u16::from_be_bytes([headers[4], headers[5]]), 0xfffeu16.wrapping_add(i));
            let sequence = u32::from_be_bytes([headers[24], headers[25], headers[26], headers[27]]);
            assert_eq!(sequence, 0xffff_ff00u32.wrapping_add(u32::from(i) * 1448));
            let flags = [CWR | 0x10, 0x10, 0x10 | FIN_PSH][usize::from(i)];
            assert_eq!(headers[33], flags);
            assert_eq!(part.offload, Offload { checksum: Some((20, 16)), ..Offload::default() });
            let sum = sum_words(&[100, 64, 0, 2, 100, 64, 0, 1, 0, TCP]) + layout.size(i) - 20;
            assert_eq!(u16::from_be_bytes([headers[36], headers[37]]), fold(sum));
            payload.extend_from_slice(part.payload);
        }
        assert_eq!(payload, bytes[52..]);
    }

    #[test]
    fn neighbors_leave_as_one() {
        let bytes = packet(TCP, 4000);
        let layout = Layout::of(&bytes, &tcp());
        let part = layout.part(&bytes, &tcp(), 1, 2, Ecn::Ect0);
        assert_eq!((part.payload, part.offload), (&bytes[52 + 1448..], tcp()));
        assert_eq!(part.headers()[33], 0x10 | FIN_PSH);
        // The whole is equal to the packet received.
        let whole = layout.part(&bytes, &tcp(), 0, 3, Ecn::Ect0);
        assert_eq!((whole.headers(), whole.payload, whole.offload), (&bytes[..52], &bytes[52..], tcp()));
    }

    #[test]
    fn a_mark_is_written_and_cleared() {
        for (first, count) in [(0, 3), (1, 1)] {
            for ecn in [Ecn::Ce, Ecn::NotEct, Ecn::Ect1] {
                let bytes = packet(TCP, 4000);
                let part = Layout::of(&bytes, &tcp()).part(&bytes, &tcp(), first, count, ecn);
                assert_eq!(ecn_of(part.headers()), ecn);
                assert_eq!(fold(sum_words(&part.headers()[..20])), 0xffff);
            }
        }
        assert_eq!(ecn_of(&packet(UDP, 1)), Ecn::Ect0);
    }

    #[test]
    fn datagrams_are_cut_one_by_one() {
        let bytes = packet(UDP, 3000);
        let offload = Offload { segmentation: Segmentation::Udp4, segment_size: 1200, checksum: Some((20, 6)) };
        let layout = Layout::of(&bytes, &offload);
        assert_eq!((layout.count(), layout.size(2)), (3, 28 + 600));
        let part = layout.part(&bytes, &offload, 2, 1, Ecn::Ect0);
        assert_eq!(u16::from_be_bytes([part.headers()[24], part.headers()[25]]), 608);
        assert_eq!((part.payload, part.offload.checksum), (&bytes[28 + 2400..], Some((20, 6))));
    }

    #[test]
    fn whatever_is_not_understood_passes_as_it_is() {
        let mut fragment = packet(UDP, 100);
        fragment[6] = 0x20;
        let mut short = packet(TCP, 0);
        short[32] = 0xf0;
        for bytes in [fragment, short, vec![0x60; 48], vec![0x45; 12], vec![0x45; 3]] {
            let layout = Layout::of(&bytes, &tcp());
            assert_eq!((layout.count(), layout.size(0), layout.ports(&bytes)), (1, bytes.len() as u32, None));
            let part = layout.part(&bytes, &Offload::default(), 0, 1, Ecn::Ce);
            assert_eq!([part.headers(), part.payload].concat(), bytes);
        }
    }
}
