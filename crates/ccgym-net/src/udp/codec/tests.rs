use ccgym_core::Rng;

use super::*;

const OVERHEAD: u32 = 28;
const TOKEN: Token = Token((7 << 64) | 9);

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    encode_packet(&mut out, TOKEN, packet, OVERHEAD);
    out
}

fn packet(number: u64, size: u32) -> Packet {
    if number == HANDSHAKE {
        return Packet { number, sent: Timestamp(5_000_000_000), size, ..Packet::default() };
    }
    Packet {
        number,
        segment: number / 2,
        sent: Timestamp(123_456_789),
        least_unsettled: number.saturating_sub(40),
        size,
        retransmission: number % 5 == 0,
        header: (number % 3) as u32 * 70_000,
        ..Packet::default()
    }
}

#[test]
fn a_packet_has_its_wire_bytes_exactly() {
    for number in [0, 1, 200, 1 << 40, HANDSHAKE] {
        let mut shortest = None;
        for size in (1..=2100).chain([65_535]) {
            let p = packet(number, size);
            let out = bytes_of(&p);
            let whole = out.len() as u32 + OVERHEAD;
            if whole == size {
                shortest.get_or_insert(size);
            } else {
                assert!(shortest.is_none(), "{size} bytes became {whole} though {shortest:?} are possible");
            }
            // A longer datagram includes the size that the sender counts; a handshake does not.
            let size = if number == HANDSHAKE { whole } else { size };
            assert_eq!(decode(&out, OVERHEAD), Ok((TOKEN, Message::Data(Packet { size, ..p }))));
        }
        assert!(shortest.unwrap() < 110, "{shortest:?}");
    }
    // SYN of TCP and of ns-3, with exact sizes.
    for size in [60, 57] {
        assert_eq!(bytes_of(&packet(HANDSHAKE, size)).len() as u32 + OVERHEAD, size);
    }
}

fn ack(largest: u64, ranges: &[(u64, u64)], size: u32) -> Ack {
    let trigger = Packet { number: largest - ranges[0].0.min(largest), ..Packet::default() };
    let mut ack = Ack::new(largest, &trigger, Timestamp(77), size);
    for &(first, last) in ranges {
        ack.push_range(AckRange { first: largest - first, last: largest - last });
    }
    (ack.delay_ns, ack.ce_total) = (12_345, 3);
    ack
}

#[test]
fn acknowledgements_come_back() {
    for ranges in [&[(100, 0)][..], &[(3, 3), (1, 0), (100, 7)], &[(1000, 900), (5, 0), (20, 10), (50, 40)]] {
        for size in [52, 200] {
            let mut out = Vec::new();
            let mut a = ack(5000, ranges, size);
            encode_ack(&mut out, TOKEN, &a, OVERHEAD);
            a.size = out.len() as u32 + OVERHEAD;
            assert!(a.size == size || size == 52, "{} instead of {size}", a.size);
            assert_eq!(decode(&out, OVERHEAD), Ok((TOKEN, Message::Ack(a))));
        }
    }
}

/// Feedback with max content and without any; with and without padding.
#[test]
fn feedback_comes_back() {
    let mut full = Feedback { sent: Timestamp(1 << 50), ce_total: u32::MAX, size: 0, ..Feedback::default() };
    for range in 0..70 {
        full.push_range(if range == 0 { 1 << 40 } else { range }, 2 * range);
    }
    for arrival in 0..140 {
        full.push_arrival(arrival * 3, if arrival == 0 { 1 << 40 } else { 1 << 20 });
    }
    full.message = vec![9; 64];
    assert_eq!((full.ranges.len(), full.arrivals.len()), (64, 128));
    for size in (20..200).chain([900, 1200]) {
        for feedback in [&full, &Feedback { sent: Timestamp(7), ..Feedback::default() }] {
            let mut out = Vec::new();
            encode_feedback(&mut out, TOKEN, &Feedback { size, ..feedback.clone() }, OVERHEAD);
            let whole = out.len() as u32 + OVERHEAD;
            assert!(whole == size || whole >= feedback.content_bytes() + 50, "{size} asked for, {whole} sent");
            assert!(whole < 1400, "one datagram on every path");
            let expected = Message::Feedback(Box::new(Feedback { size: whole, ..feedback.clone() }));
            assert_eq!(decode(&out, OVERHEAD), Ok((TOKEN, expected)));
        }
    }
}

fn bytes(kind: Kind) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, TOKEN, kind, 0);
    out
}

#[test]
fn what_is_out_of_range_is_refused() {
    let data = datagram::Data { number: 5, ..Default::default() };
    let ack = datagram::Ack { largest: 5, ranges: vec![5, 0], ..Default::default() };
    let acks = |ranges: &[u32]| Kind::Ack(datagram::Ack { ranges: ranges.to_vec(), ..ack.clone() });
    let feedback = |ranges: &[u64], arrivals: &[u64], message| {
        let (ranges, arrivals) = (ranges.to_vec(), arrivals.to_vec());
        let message = vec![0; message];
        Kind::Feedback(Box::new(datagram::Feedback { sent_ns: 50, ranges, arrivals, message, ce_total: 0 }))
    };
    let hello = datagram::Hello { ack_every: 1, packet_bytes: 1500, ..Default::default() };
    let hellos = |change: fn(&mut datagram::Hello)| {
        let mut hello = hello.clone();
        change(&mut hello);
        Kind::Hello(Box::new(hello))
    };
    let good = [
        Kind::Data(data),
        acks(&[5, 0]),
        feedback(&[9, 2, 1, 3], &[1, 20, 2, 20], 64),
        feedback(&[], &[], 0),
        hellos(|_| ()),
    ];
    for kind in good {
        assert!(decode(&bytes(kind.clone()), OVERHEAD).is_ok(), "{kind:?}");
    }
    let some = [9, 2, 1, 3];
    let bad = [
        Kind::Data(datagram::Data { number: NUMBERS, ..data }),
        Kind::Data(datagram::Data { segment: 6, ..data }),
        Kind::Data(datagram::Data { unsettled_below: 6, ..data }),
        Kind::Data(datagram::Data { size: 60_000, ..data }),
        Kind::Ack(datagram::Ack { largest: NUMBERS, ..ack.clone() }),
        Kind::Ack(datagram::Ack { trigger_below: 6, ..ack.clone() }),
        acks(&[]),
        acks(&[5]),
        acks(&[6, 0]),
        acks(&[1, 2]),
        acks(&[0; 10]),
        feedback(&some, &[], 65),
        feedback(&[1 << 62, 0], &[], 0),
        feedback(&[5, 6], &[], 0),
        feedback(&[9, 8, 0, 0], &[], 0),
        feedback(&[9, 2, 1], &[], 0),
        feedback(&[0; 130], &[], 0),
        feedback(&[9; 2000], &[], 0),
        // Below zero, before the clock's start, after its own departure, too large, too many, an odd number.
        feedback(&some, &[19, 0], 0),
        feedback(&some, &[0, 51], 0),
        feedback(&some, &[0, 20, 0, 31], 0),
        feedback(&some, &[u64::MAX - 1, 0], 0),
        feedback(&some, &[0; 258], 0),
        feedback(&some, &[0], 0),
        hellos(|hello| hello.ack_every = 0),
        hellos(|hello| hello.packet_bytes = 0),
        hellos(|hello| hello.packet_bytes = 65_536),
        hellos(|hello| hello.header_bytes = 1501),
        hellos(|hello| hello.ack_bytes = 1501),
        hellos(|hello| hello.scheme = "x".repeat(65)),
        hellos(|hello| hello.parameters = "x".repeat(1025)),
    ];
    for kind in bad {
        assert_eq!(decode(&bytes(kind.clone()), OVERHEAD), Err(Refusal::Range), "{kind:?}");
    }
    for none in [&[][..], &[0; 100], &[0x2b], &[3, 0x2b], &[0xff; 1400], &[60, 1]] {
        assert_eq!(decode(none, OVERHEAD), Err(Refusal::Malformed), "{none:?}");
    }
}

/// Fuzzing: random bytes, and valid datagrams with bytes changed, cut, doubled or moved. Accepted ones
/// must encode to the same again.
#[test]
fn a_million_inputs_are_decoded_or_refused() {
    const COUNT: u32 = 1_000_000;
    let mut corpus: Vec<_> =
        [(0, 1500), (300, 130), (1 << 40, 158), (HANDSHAKE, 60)].map(|(n, size)| bytes_of(&packet(n, size))).into();
    let mut feedback = datagram::Feedback { sent_ns: 900, ce_total: 1, message: vec![3; 20], ..Default::default() };
    (feedback.ranges, feedback.arrivals) = (vec![1000, 5, 3, 300], vec![9, 400, 2, 0, 2, 130, 17, 70]);
    let hello = datagram::Hello { ack_every: 2, packet_bytes: 1500, scheme: "sprout".into(), ..Default::default() };
    let answer = datagram::HelloAck { refusal: "full".into(), cookie: vec![9; 8], ..Default::default() };
    corpus.extend([
        bytes(Kind::ConnectAck(datagram::ConnectAck { received_ns: 2 })),
        bytes(Kind::Ack(datagram::Ack { largest: 1000, ranges: vec![15, 10, 5, 0, 900, 600], ..Default::default() })),
        bytes(Kind::Feedback(feedback.into())),
        bytes(Kind::Hello(hello.into())),
        bytes(Kind::HelloAck(answer.into())),
        bytes(Kind::Close(datagram::Close { sent_packets: 5, sent_bytes: 7500 })),
    ]);
    let mut rng = Rng::stream(1, "fuzz", 0);
    let mut below = |n: usize| (rng.next_u64() % n.max(1) as u64) as usize;
    let (mut accepted, mut out) = (0, Vec::new());
    for _ in 0..COUNT {
        let mut input = corpus[below(corpus.len())].clone();
        if below(8) == 0 {
            input = (0..below(80)).map(|_| below(256) as u8).collect();
        }
        for _ in 0..below(4) {
            let (at, other) = (below(input.len().min(80)), &corpus[below(corpus.len())]);
            match below(5) {
                _ if input.is_empty() => {}
                0 | 1 => input[at] ^= 1 << below(8),
                2 => input.insert(at, below(256) as u8),
                3 => input.truncate(at.max(1)),
                _ => input.extend_from_slice(&other[..below(other.len()).min(60)]),
            }
        }
        let found = decode(&input, OVERHEAD);
        assert_eq!(found, decode_generated(&input, input.len() as u32 + OVERHEAD), "by hand otherwise: {input:02x?}");
        let Ok((token, message)) = found else { continue };
        accepted += 1;
        out.clear();
        match &message {
            Message::Data(packet) => encode_packet(&mut out, token, packet, OVERHEAD),
            Message::Ack(ack) => encode_ack(&mut out, token, ack, OVERHEAD),
            _ => continue,
        }
        let again = decode(&out, OVERHEAD).unwrap();
        // Generated code writes the same bytes, except for halves of tokens that are zero.
        if (token.0 >> 64) as u64 != 0 && token.0 as u64 != 0 {
            let read = Datagram::decode_length_delimited(&out[..]).unwrap();
            assert_eq!(read.encode_length_delimited_to_vec(), out[..=out[0].into()]);
        }
        assert_eq!(again.0, token);
        match (again.1, message) {
            (Message::Data(p), Message::Data(packet)) if packet.number != HANDSHAKE => assert_eq!(p, packet),
            (Message::Ack(a), Message::Ack(mut ack)) => {
                ack.size = a.size;
                assert_eq!(a, ack);
            }
            (again, message) => assert_eq!(std::mem::discriminant(&again), std::mem::discriminant(&message)),
        }
    }
    assert!(accepted > COUNT / 50 && accepted < COUNT * 9 / 10, "{accepted} of {COUNT} were accepted");
}
