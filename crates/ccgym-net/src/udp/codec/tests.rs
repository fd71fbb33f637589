use ccgym_core::Rng;
use proptest::prelude::*;

use super::super::datagram::{datagram::Kind, Datagram};
use super::super::fuzz;
use super::*;

const OVERHEAD: u32 = 28;
const TOKEN: Token = Token([7; 16]);

fn packet(number: u64, size: u32) -> Packet {
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

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    encode_packet(&mut out, TOKEN, packet, OVERHEAD);
    out
}

#[test]
fn a_packet_has_its_wire_bytes_exactly() {
    for number in [0, 1, 200, 1 << 40, HANDSHAKE] {
        let mut shortest = None;
        for size in 1..=2100 {
            let p = if number == HANDSHAKE {
                Packet { number, sent: Timestamp(5), size, ..Packet::default() }
            } else {
                packet(number, size)
            };
            let out = bytes_of(&p);
            let decoded = decode(&out, OVERHEAD).unwrap();
            let whole = out.len() as u32 + OVERHEAD;
            if whole == size {
                assert_eq!(decoded, Message::Data(TOKEN, p));
                shortest.get_or_insert(size);
            } else {
                assert!(shortest.is_none(), "{size} bytes became {whole} though {shortest:?} are possible");
                if number != HANDSHAKE {
                    assert_eq!(decoded, Message::Data(TOKEN, p), "the sender's count travels");
                }
            }
            // Generated code reads the same.
            let Some(Kind::Data(d)) = Datagram::decode(&out[..]).unwrap().kind else {
                assert_eq!(number, HANDSHAKE);
                continue;
            };
            assert_eq!((d.number, d.segment, d.sent_ns), (p.number, p.segment, p.sent.0));
        }
        assert!(shortest.unwrap() < 110, "{shortest:?}");
    }
    // TCP's SYN and ns-3's, to a byte.
    for size in [60, 57] {
        let out = bytes_of(&Packet { number: HANDSHAKE, sent: Timestamp(5), size, ..Packet::default() });
        assert_eq!(out.len() as u32 + OVERHEAD, size);
    }
}

#[test]
fn the_longest_packet_fits_into_a_datagram() {
    let out = bytes_of(&packet(1 << 50, 65_535));
    assert_eq!(out.len(), 65_535 - 28);
    assert_eq!(decode(&out, OVERHEAD), Ok(Message::Data(TOKEN, packet(1 << 50, 65_535))));
}

fn ack(largest: u64, ranges: &[(u64, u64)], size: u32) -> Ack {
    let trigger = Packet { number: largest - ranges[0].0.min(largest), ..Packet::default() };
    let mut ack = Ack::new(largest, &trigger, Timestamp(77), size);
    for &(first, last) in ranges {
        ack.push_range(AckRange { first: largest - first, last: largest - last });
    }
    ack.delay_ns = 12_345;
    ack.ce_total = 3;
    ack
}

#[test]
fn acknowledgements_come_back() {
    for ranges in [&[(100, 0)][..], &[(3, 3), (1, 0), (100, 7)], &[(1000, 900), (5, 0), (20, 10), (50, 40)]] {
        let mut out = Vec::new();
        let mut a = ack(5000, ranges, 52);
        encode_ack(&mut out, TOKEN, &a, OVERHEAD);
        a.size = out.len() as u32 + OVERHEAD;
        assert_eq!(decode(&out, OVERHEAD), Ok(Message::Ack(TOKEN, a)));
    }
    let mut out = Vec::new();
    encode_ack(&mut out, TOKEN, &ack(5000, &[(4, 0)], 200), OVERHEAD);
    assert_eq!(out.len(), 200 - OVERHEAD as usize, "padded to the size asked for");
}

/// As much as may be in one, and nothing at all; with and without padding.
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
            let expected = Feedback { size: whole, ..feedback.clone() };
            assert_eq!(decode(&out, OVERHEAD), Ok(Message::Feedback(TOKEN, Box::new(expected))));
        }
    }
}

#[test]
fn what_is_out_of_range_is_refused() {
    let encode = |kind: Kind| {
        let mut out = Vec::new();
        encode_rare(&mut out, kind);
        out
    };
    let token = TOKEN.0.to_vec();
    let data = datagram::Data { token: token.clone(), number: 5, ..Default::default() };
    let with = |change: &dyn Fn(&mut datagram::Data)| {
        let mut d = data.clone();
        change(&mut d);
        decode(&encode(Kind::Data(d)), OVERHEAD).map(drop)
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|d| d.token.truncate(15)), Err(Refusal::Token));
    assert_eq!(with(&|d| d.number = NUMBERS), Err(Refusal::Range));
    assert_eq!(with(&|d| d.segment = 6), Err(Refusal::Range));
    assert_eq!(with(&|d| d.unsettled_below = 6), Err(Refusal::Range));
    assert_eq!(with(&|d| d.size = 60_000), Err(Refusal::Range));

    let ack = datagram::Ack { token, largest: 5, ranges: vec![5, 0], ..Default::default() };
    let with = |change: &dyn Fn(&mut datagram::Ack)| {
        let mut a = ack.clone();
        change(&mut a);
        decode(&encode(Kind::Ack(a)), OVERHEAD).map(drop)
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|a| a.largest = NUMBERS), Err(Refusal::Range));
    assert_eq!(with(&|a| a.trigger_below = 6), Err(Refusal::Range));
    for ranges in [vec![], vec![5], vec![6, 0], vec![1, 2], vec![0; 10]] {
        assert_eq!(with(&|a| a.ranges.clone_from(&ranges)), Err(Refusal::Range), "{ranges:?}");
    }
    let feedback = datagram::Feedback {
        token: TOKEN.0.to_vec(),
        sent_ns: 50,
        ranges: vec![9, 2, 1, 3],
        arrivals: vec![1, 20, 2, 20],
        ..Default::default()
    };
    let with = |change: &dyn Fn(&mut datagram::Feedback)| {
        let mut f = feedback.clone();
        change(&mut f);
        decode(&encode(Kind::Feedback(f)), OVERHEAD).map(drop)
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|f| f.token.push(0)), Err(Refusal::Token));
    assert_eq!(with(&|f| f.message = vec![0; 65]), Err(Refusal::Range));
    assert_eq!(with(&|f| (f.ranges, f.arrivals) = (vec![], vec![])), Ok(()), "in silence");
    for ranges in [vec![1 << 62, 0], vec![5, 6], vec![9, 8, 0, 0], vec![9, 2, 1], vec![0; 130], vec![9; 2000]] {
        assert_eq!(with(&|f| f.ranges.clone_from(&ranges)), Err(Refusal::Range), "{ranges:?}");
    }
    // Below zero, before the clock's start, after its own departure, too large, too many.
    for arrivals in [vec![19, 0], vec![0, 51], vec![0, 20, 0, 31], vec![u64::MAX - 1, 0], vec![0; 258], vec![0]] {
        assert_eq!(with(&|f| f.arrivals.clone_from(&arrivals)), Err(Refusal::Range), "{arrivals:?}");
    }
    // A second kind, or none.
    let mut two = encode(Kind::Data(data.clone()));
    two.extend_from_slice(&encode(Kind::Ack(ack)));
    assert_eq!(decode(&two, OVERHEAD), Err(Refusal::Kinds));
    assert_eq!(decode(&[], OVERHEAD), Err(Refusal::Kinds));
    assert_eq!(decode(&[0x2b], OVERHEAD), Err(Refusal::Group));
}

proptest! {
    /// Minimal lengths apart, bytes written by hand are those of the generated code.
    #[test]
    fn written_as_generated_code_writes(
        number in 0..NUMBERS, segment in any::<u64>(), sent in any::<u64>(), below in any::<u64>(),
        again: bool, padding in 200..3000_usize,
    ) {
        let p = Packet {
            number, segment: segment % (number + 1), sent: Timestamp(sent), least_unsettled: number - below % (number + 1),
            retransmission: again, ..Packet::default()
        };
        let kind = Kind::Data(datagram::Data {
            token: TOKEN.0.to_vec(), number, segment: p.segment, sent_ns: sent,
            unsettled_below: number - p.least_unsettled, retransmission: again, size: 0, header: 0,
            payload: vec![0; padding],
        });
        let mut generated = Vec::new();
        encode_rare(&mut generated, kind);
        let p = Packet { size: generated.len() as u32 + OVERHEAD, ..p };
        prop_assert_eq!(bytes_of(&p), generated);
    }
}

/// As a fuzzer would: random bytes, and valid datagrams with bytes changed, cut, doubled or put elsewhere.
fn fuzz_many(count: u64) {
    let mut rng = Rng::stream(1, "fuzz", 0);
    let corpus = fuzz::corpus();
    let mut input = Vec::new();
    let mut accepted = 0;
    for _ in 0..count {
        fuzz::mutate(&corpus, &mut input, &mut || rng.next_u64());
        accepted += u64::from(fuzz::fuzz_datagram(&input));
    }
    assert!(accepted > count / 50 && accepted < count * 9 / 10, "{accepted} of {count} were accepted");
}

#[test]
fn ten_million_inputs_are_decoded_or_refused() {
    fuzz_many(10_000_000);
}

/// What one packet costs by hand and by generated code. Prints; asserts nothing about speed.
#[test]
#[ignore = "a measurement; run with --release --nocapture"]
fn measure_codec() {
    const ROUNDS: u32 = 1_000_000;
    let p = packet(123_456, 1500);
    let a = ack(123_456, &[(123_456, 0)], 52);
    let out = bytes_of(&p);
    let mut ack_out = Vec::new();
    encode_ack(&mut ack_out, TOKEN, &a, OVERHEAD);
    let generated = Datagram::decode(&out[..]).unwrap();
    let time = |what: &str, f: &mut dyn FnMut()| {
        let start = std::time::Instant::now();
        (0..ROUNDS).for_each(|_| f());
        let line = format!("{what}: {:.0} ns\n", start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
        let _ = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
    };
    let mut room = Vec::with_capacity(2000);
    let hide = std::hint::black_box::<&[u8]>;
    time("encode data by hand", &mut || {
        room.clear();
        encode_packet(&mut room, TOKEN, std::hint::black_box(&p), OVERHEAD);
    });
    time("encode data generated", &mut || {
        room.clear();
        generated.encode(&mut room).unwrap();
    });
    time("decode data by hand", &mut || drop(std::hint::black_box(decode(hide(&out), OVERHEAD))));
    time("decode data generated", &mut || drop(std::hint::black_box(Datagram::decode(hide(&out)))));
    time("encode ack by hand", &mut || {
        room.clear();
        encode_ack(&mut room, TOKEN, std::hint::black_box(&a), OVERHEAD);
    });
    time("decode ack by hand", &mut || drop(std::hint::black_box(decode(hide(&ack_out), OVERHEAD))));
    time("decode ack generated", &mut || drop(std::hint::black_box(Datagram::decode(hide(&ack_out)))));
    let garbage = [0xa5; 1400];
    time("refuse garbage", &mut || drop(std::hint::black_box(decode(hide(&garbage), OVERHEAD))));
}
