//! The decoder against arbitrary input, held against generated code.

use ccgym_core::packet::AckRange;
use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{Ack, Feedback, Packet, Timestamp};
use prost::Message as _;

use super::codec::{decode, encode_ack, encode_feedback, encode_packet, encode_rare, Message, Refusal, Token};
use super::datagram::{datagram::Kind, Close, Data, Datagram, Hello, HelloAck};

const OVERHEAD: u32 = 28;

/// Decode `data`; whether it was accepted. The entry of a fuzzer.
///
/// # Panics
/// If the decoder and generated code disagree: what is accepted must be accepted there with the same values, and what
/// is called malformed must be so there.
pub fn fuzz_datagram(data: &[u8]) -> bool {
    let generated = Datagram::decode(data);
    let message = match decode(data, OVERHEAD) {
        Err(Refusal::Malformed) => {
            assert!(generated.is_err(), "malformed to us: {data:02x?}");
            return false;
        }
        // Stricter than the format asks.
        Err(Refusal::Kinds | Refusal::Group | Refusal::Token | Refusal::Range) => return false,
        Ok(message) => message,
    };
    let kind = generated.ok().and_then(|d| d.kind);
    let whole = data.len() as u32 + OVERHEAD;
    let same = match (message, kind) {
        (Message::Hello(token, ours), Some(Kind::Hello(theirs))) => token.0[..] == theirs.token && *ours == theirs,
        (Message::HelloAck(token, ours), Some(Kind::HelloAck(theirs))) => {
            token.0[..] == theirs.token && *ours == theirs
        }
        (Message::Close(token, ours), Some(Kind::Close(theirs))) => token.0[..] == theirs.token && ours == theirs,
        (Message::Data(token, p), Some(Kind::Connect(c))) => {
            token.0[..] == c.token && p.number == HANDSHAKE && p.sent.0 == c.sent_ns && p.size == whole
        }
        (Message::Data(token, p), Some(Kind::Data(d))) => {
            token.0[..] == d.token
                && (p.number, p.segment, p.sent.0) == (d.number, d.segment, d.sent_ns)
                && p.least_unsettled == d.number - d.unsettled_below
                && (p.retransmission, p.header) == (d.retransmission, d.header)
                && p.size == if d.size == 0 { whole } else { d.size }
        }
        (Message::Ack(token, a), Some(Kind::ConnectAck(c))) => {
            token.0[..] == c.token && a.trigger == HANDSHAKE && a.received.0 == c.received_ns
        }
        (Message::Ack(token, a), Some(Kind::Ack(d))) => {
            let ranges =
                (0..a.range_count()).map(|i| a.range(i)).flat_map(|r| [a.largest - r.first, a.largest - r.last]);
            token.0[..] == d.token
                && (a.largest, a.largest - a.trigger, a.received.0) == (d.largest, d.trigger_below, d.received_ns)
                && (a.delay_ns, a.ce_total) == (d.delay_ns, d.ce_total)
                && ranges.eq(d.ranges.iter().map(|&x| u64::from(x)))
        }
        (Message::Feedback(token, f), Some(Kind::Feedback(d))) => {
            token.0[..] == d.token
                && (f.sent.0, f.ce_total, &f.message, f.size) == (d.sent_ns, d.ce_total, &d.message, whole)
                && f.range_values().eq(d.ranges.iter().copied())
                && f.arrival_values().eq(d.arrivals.iter().copied())
        }
        _ => false,
    };
    assert!(same, "decoded differently: {data:02x?}");
    true
}

/// One valid datagram of each kind and more of the frequent ones.
#[must_use]
pub fn corpus() -> Vec<Vec<u8>> {
    let token = Token([0x5a; 16]);
    let bytes = token.0.to_vec();
    let mut all = Vec::new();
    let mut add = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        f(&mut out);
        all.push(out);
    };
    for (number, size) in [(0, 1500), (300, 130), (1 << 40, 158), (70, 60)] {
        let header = number as u32;
        let p = Packet { number, segment: number / 3, sent: Timestamp(99), size, header, ..Packet::default() };
        add(&|out| encode_packet(out, token, &p, OVERHEAD));
    }
    let connect = Packet { number: HANDSHAKE, sent: Timestamp(1), size: 60, ..Packet::default() };
    add(&|out| encode_packet(out, token, &connect, OVERHEAD));
    add(&|out| encode_ack(out, token, &Ack::new(HANDSHAKE, &connect, Timestamp(2), 60), OVERHEAD));
    let mut ack = Ack::new(1000, &Packet { number: 990, ..Packet::default() }, Timestamp(5), 120);
    for (first, last) in [(985, 990), (995, 1000), (100, 400)] {
        ack.push_range(AckRange { first, last });
    }
    ack.delay_ns = 70_000;
    add(&|out| encode_ack(out, token, &ack, OVERHEAD));
    let mut feedback = Feedback { sent: Timestamp(900), size: 90, ..Feedback::default() };
    add(&|out| encode_feedback(out, token, &feedback, OVERHEAD));
    for (last, length) in [(1000, 5), (3, 300)] {
        feedback.push_range(last, length);
    }
    for (difference, since) in [(9, 400), (2, 0), (2, 130), (17, 70)] {
        feedback.push_arrival(difference, since);
    }
    feedback.message = vec![3; 20];
    feedback.ce_total = 1;
    add(&|out| encode_feedback(out, token, &feedback, OVERHEAD));
    let hello = Hello {
        token: bytes.clone(),
        version: 3,
        scheme: "sprout".into(),
        parameters: "{}".into(),
        ack_every: 2,
        packet_bytes: 1500,
        header_bytes: 52,
        ack_bytes: 52,
        cookie: vec![9; 8],
        padding: vec![0; 40],
        ..Hello::default()
    };
    add(&|out| encode_rare(out, Kind::Hello(hello.clone())));
    let answer =
        HelloAck { token: bytes.clone(), refusal: "full".into(), seen_from: "x".into(), ..HelloAck::default() };
    add(&|out| encode_rare(out, Kind::HelloAck(answer.clone())));
    let answer = HelloAck { token: bytes.clone(), cookie: vec![9; 8], ..HelloAck::default() };
    add(&|out| encode_rare(out, Kind::HelloAck(answer.clone())));
    let close = Close { token: bytes.clone(), sent_packets: 5, sent_bytes: 7500 };
    add(&|out| encode_rare(out, Kind::Close(close.clone())));
    add(&|out| encode_rare(out, Kind::Data(Data { token: bytes.clone(), payload: vec![1; 20], ..Data::default() })));
    all
}

/// The next input: random bytes now and then, else one of `corpus` with a few bytes changed, cut, doubled or moved.
pub fn mutate(corpus: &[Vec<u8>], input: &mut Vec<u8>, draw: &mut dyn FnMut() -> u64) {
    input.clear();
    let mut below = |n: usize| (draw() % n.max(1) as u64) as usize;
    if below(8) == 0 {
        for _ in 0..below(80) {
            input.push(below(256) as u8);
        }
        return;
    }
    // Padding only makes inputs long: keep the part with the fields most of the time.
    input.extend_from_slice(&corpus[below(corpus.len())]);
    if input.len() > 200 && below(10) > 0 {
        input.truncate(200);
        let length = input.len() - 3;
        input[1] = length as u8 | 0x80;
        input[2] = (length >> 7) as u8;
    }
    for _ in 0..below(4) {
        let (at, other) = (below(input.len()), below(corpus.len()));
        match below(6) {
            0 | 1 => input[at] = below(256) as u8,
            2 => input[at] ^= 1 << below(8),
            3 => input.insert(at, below(256) as u8),
            4 => input.truncate(at.max(1)),
            _ => input.extend_from_slice(&corpus[other][..below(corpus[other].len()).min(60)]),
        }
    }
}
