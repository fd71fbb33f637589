//! Under a flood the kernel refuses datagrams before they take room in the socket's buffer: a socket filter lets pass
//! what says Hello, and what carries the token of a flow that is served.

use std::net::UdpSocket;

use socket2::{SockFilter, SockRef};

use super::codec::{kind, Token};
use crate::error::{Context, Result};

// Classic BPF: operations on an accumulator and an index register.
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_INDEXED: u16 = 0x40;
const LOAD_INDEX: u16 = 0x01;
const JUMP: u16 = 0x05;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALL: u32 = u32::MAX;

/// A filter sees a datagram from its UDP header on.
const UDP_HEADER: u32 = 8;
/// Key of a kind that is a message.
const fn key(kind: u32) -> u32 {
    (kind << 3) | 2
}

/// Most flows that a filter knows: its length is limited. Beyond, everything passes.
const FLOWS: usize = 256;

/// Let pass what concerns these flows, or may open another.
pub(super) fn attach(socket: &UdpSocket, tokens: &[Token]) -> Result<()> {
    let program = program(&tokens[..tokens.len().min(FLOWS)], tokens.len() > FLOWS);
    SockRef::from(socket).attach_filter(&program).context(|| "filtering a flood of foreign datagrams".into())
}

fn program(tokens: &[Token], all: bool) -> Vec<SockFilter> {
    let op = SockFilter::new;
    if all {
        return vec![op(RETURN, 0, 0, ALL)];
    }
    // Kind, length in one to four bytes, key and length of the token, token.
    let token_at = UDP_HEADER + 1 + 2;
    let mut program = vec![
        op(LOAD_BYTE, 0, 0, UDP_HEADER),
        op(JUMP_EQUAL, 0, 1, key(kind::HELLO)),
        op(RETURN, 0, 0, ALL),
        // The index register becomes the number of bytes that the length takes.
        op(LOAD_INDEX, 0, 0, 1),
        op(LOAD_BYTE, 0, 0, UDP_HEADER + 1),
        op(JUMP_SET, 1, 0, 0x80),
        op(JUMP, 0, 0, 8),
        op(LOAD_INDEX, 0, 0, 2),
        op(LOAD_BYTE, 0, 0, UDP_HEADER + 2),
        op(JUMP_SET, 1, 0, 0x80),
        op(JUMP, 0, 0, 4),
        op(LOAD_INDEX, 0, 0, 3),
        op(LOAD_BYTE, 0, 0, UDP_HEADER + 3),
        op(JUMP_SET, 0, 1, 0x80),
        op(LOAD_INDEX, 0, 0, 4),
    ];
    for token in tokens {
        for (i, word) in token.0.chunks_exact(4).enumerate() {
            let value = word.iter().fold(0, |value, byte| (value << 8) | u32::from(*byte));
            program.push(op(LOAD_WORD_INDEXED, 0, 0, token_at + 4 * i as u32));
            // On to the next word, or past the rest of this token.
            let rest = 2 * (3 - i as u8) + 1;
            program.push(op(JUMP_EQUAL, 0, rest, value));
        }
        program.push(op(RETURN, 0, 0, ALL));
    }
    program.push(op(RETURN, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use ccgym_core::sender::HANDSHAKE;
    use ccgym_core::Packet;

    use super::*;
    use crate::udp::codec::encode_packet;

    #[test]
    fn only_known_flows_and_hellos_pass() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        let ours = [Token([1; 16]), Token([2; 16])];
        attach(&receiver, &ours).unwrap();
        let passes = |bytes: &[u8]| {
            sender.send(bytes).unwrap();
            // What is refused never comes, so a mark behind it comes first.
            sender.send(&[key(kind::HELLO) as u8, 0]).unwrap();
            let mut room = [0; 65_536];
            let length = receiver.recv(&mut room).unwrap();
            let passed = room[..length] == *bytes;
            if passed {
                receiver.recv(&mut room).unwrap();
            }
            passed
        };
        for size in [60, 155, 170, 1500, 20_000] {
            for number in [0, 77, HANDSHAKE] {
                let p = Packet { number, size, ..Packet::default() };
                for (token, expected) in [(ours[0], true), (ours[1], true), (Token([3; 16]), false)] {
                    let mut bytes = Vec::new();
                    encode_packet(&mut bytes, token, &p, 28);
                    assert_eq!(passes(&bytes), expected, "{size} {number} {token:?}");
                }
            }
        }
        let mut near = ours[1].0;
        near[15] = 3;
        let mut bytes = Vec::new();
        encode_packet(&mut bytes, Token(near), &Packet { size: 500, ..Packet::default() }, 28);
        assert!(!passes(&bytes) && !passes(&[0xa5; 1000]) && !passes(b"x"));
    }
}
