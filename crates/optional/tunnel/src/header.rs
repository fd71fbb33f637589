//! Header before a packet in a datagram of the tunnel: its number, 8 bytes, as in Pantheon's tunnel. With the IP and
//! UDP headers, each packet grows by 36 bytes.

/// Bytes of the header.
pub const HEADER: usize = 8;
/// Max IP packet that crosses the tunnel unfragmented if the machines' packets may have 1500 bytes.
pub const TUNNEL_MTU: u32 = 1500 - 28 - HEADER as u32;
/// Bit that is set in the number of datagrams with a message instead of a packet.
const MESSAGE: u64 = 1 << 63;

/// Content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Packet, with its number in its direction, from 1.
    Packet(u64, &'a [u8]),
    /// Message of one end to the other, see [`super::message`].
    Message(&'a [u8]),
}

/// Read a datagram; `None` if it does not belong to the tunnel.
#[must_use]
pub fn read(datagram: &[u8]) -> Option<Content<'_>> {
    let (number, rest) = datagram.split_first_chunk::<HEADER>()?;
    match u64::from_be_bytes(*number) {
        MESSAGE => Some(Content::Message(rest)),
        number if number > 0 && number < MESSAGE && !rest.is_empty() => Some(Content::Packet(number, rest)),
        _ => None,
    }
}

/// Append the datagram of a packet.
pub fn write_packet(out: &mut Vec<u8>, number: u64, packet: &[u8]) {
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(packet);
}

/// Make the datagram of a message.
#[must_use]
pub fn message(bytes: &[u8]) -> Vec<u8> {
    [&MESSAGE.to_be_bytes(), bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_datagrams_are_read() {
        let mut out = Vec::new();
        write_packet(&mut out, 7, &[0x45; 1464]);
        assert_eq!(out.len() + 28, 1500);
        assert_eq!(read(&out), Some(Content::Packet(7, &[0x45; 1464])));
        assert_eq!(read(&message(b"hello")), Some(Content::Message(b"hello")));
        for other in [&[][..], &[0; 7], &[0; 8], &[0; 9], &[0xff; 40], &7u64.to_be_bytes()] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }
}
