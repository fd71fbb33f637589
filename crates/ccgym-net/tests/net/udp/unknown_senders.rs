//! Behavior of a receiver toward unknown senders.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use ccgym_core::sender::HANDSHAKE;
use ccgym_core::Packet;
use ccgym_net::udp::codec::{decode, encode, encode_packet, Message, Token, VERSION};
use ccgym_net::udp::datagram::{self, datagram::Kind};
use ccgym_net::udp::receiver::MOST_GAPS;
use ccgym_net::udp::Service;
use ccgym_net::Clock;
use ccgym_schemes::Resources;

use super::{spec, task, World, SECOND};

/// Sender of arbitrary messages.
struct Raw {
    socket: UdpSocket,
    token: Token,
    /// Bytes sent so far.
    sent: usize,
}

impl Raw {
    fn new(peer: SocketAddr, token: u128) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(peer).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self { socket, token: Token(token), sent: 0 }
    }

    fn hello(&self) -> datagram::Hello {
        datagram::Hello {
            version: VERSION,
            ack_every: 1,
            packet_bytes: 1500,
            header_bytes: 52,
            ack_bytes: 1500,
            reliable: true,
            ..Default::default()
        }
    }

    fn throw(&mut self, bytes: &[u8]) {
        self.sent += self.socket.send(bytes).unwrap();
    }

    /// Send a message in a datagram of min `length` bytes.
    fn say(&mut self, kind: Kind, length: usize) {
        let mut bytes = Vec::new();
        encode(&mut bytes, self.token, kind, length);
        self.throw(&bytes);
    }

    /// Send packet `number`; `HANDSHAKE` connects.
    fn packet(&mut self, number: u64) {
        let segment = if number == HANDSHAKE { 0 } else { number };
        let packet = Packet { number, segment, size: 60, ..Packet::default() };
        let mut bytes = Vec::new();
        encode_packet(&mut bytes, self.token, &packet, 28);
        self.throw(&bytes);
    }

    fn close(&mut self) {
        self.say(Kind::Close(datagram::Close::default()), 0);
    }

    /// Receive the next datagram.
    fn hear(&self) -> (usize, Message) {
        let mut room = [0; 2048];
        let length = self.socket.recv(&mut room).unwrap();
        let (token, message) = decode(&room[..length], 28).unwrap();
        assert_eq!(token, self.token);
        (length, message)
    }

    fn hears_ack(&self, number: u64) -> bool {
        matches!(self.hear().1, Message::Ack(ack) if ack.trigger == number)
    }

    fn answer(&self) -> (usize, datagram::HelloAck) {
        match self.hear() {
            (length, Message::HelloAck(answer)) => (length, *answer),
            (_, other) => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, hello: datagram::Hello) -> datagram::HelloAck {
        let before = self.sent;
        self.say(Kind::Hello(hello.into()), 240);
        let (length, answer) = self.answer();
        assert!(length <= self.sent - before, "{length} bytes in answer to {}", self.sent - before);
        answer
    }

    /// Ask, and again with the cookie. Return the refusal.
    fn ask_twice(&mut self, hello: datagram::Hello) -> String {
        let first = self.ask(hello.clone());
        assert!(first.refusal.is_empty() && !first.cookie.is_empty(), "{first:?}");
        let second = self.ask(datagram::Hello { cookie: first.cookie, ..hello });
        assert!(second.cookie.is_empty(), "{second:?}");
        second.refusal
    }

    fn shake_hands(&mut self) {
        assert_eq!(self.ask_twice(self.hello()), "");
    }

    /// Return the number of bytes that wait to be read.
    fn got(&self) -> usize {
        self.socket.set_nonblocking(true).unwrap();
        let mut room = [0; 2048];
        std::iter::from_fn(|| self.socket.recv(&mut room).ok()).sum()
    }
}

#[test]
fn invalid_hellos_get_no_larger_answers() {
    let world = World::serving(1);
    let mut raw = Raw::new(world.address, 1);
    let good = raw.hello();
    raw.say(Kind::Hello(datagram::Hello { ack_every: 0, ..good.clone() }.into()), 240);
    raw.say(Kind::Hello(datagram::Hello { version: VERSION + 1, ..good.clone() }.into()), 0);
    for _ in 0..4 {
        raw.throw(&[]);
    }
    // The first Hellos get no answer: the first answer belongs to the next one.
    let old = raw.ask(datagram::Hello { version: VERSION - 1, ..good.clone() });
    assert!(!old.refusal.is_empty(), "{old:?}");
    assert_eq!(raw.ask_twice(good.clone()), "");
    assert!(raw.ask(good).cookie.is_empty(), "answered again, served once");
    raw.packet(0);
    assert!(raw.hears_ack(0));
    let got = world.stop();
    // Two Hellos, four empty datagrams, one refusal.
    assert_eq!((got.flows.len(), got.rejected), (1, 7));
}

/// Send every kind of message from an address that never receives the answers.
#[test]
fn an_unverified_address_gets_no_more_than_it_sent() {
    let world = World::serving(1);
    let (mut attacker, mut victim) = (Raw::new(world.address, 1), Raw::new(world.address, 1));
    // This cookie is for the same token, but from the attacker's own address.
    let stolen = attacker.ask(attacker.hello()).cookie;
    for cookie in [Vec::new(), stolen.clone(), vec![0; 8], vec![0; 1000]] {
        for padding in [0, 30, 200, 1000] {
            let hello = datagram::Hello { cookie: cookie.clone(), ..victim.hello() };
            victim.say(Kind::Hello(hello.into()), padding);
            for number in [HANDSHAKE, HANDSHAKE, 0, 1, 2, 7] {
                victim.packet(number);
            }
        }
    }
    victim.close();
    // Datagrams are handled in order: when this one is answered, all answers to the victim have been sent.
    attacker.ask(attacker.hello());
    let got = victim.got();
    assert!(0 < got && got <= victim.sent, "{got} bytes in answer to {}", victim.sent);
    // A sender with a valid cookie gets the full answer.
    assert_eq!(attacker.ask(datagram::Hello { cookie: stolen, ..attacker.hello() }).refusal, "");
    attacker.packet(HANDSHAKE);
    assert_eq!(attacker.hear().0, 1472);
    assert_eq!(world.stop().flows.len(), 0);
}

#[test]
fn only_data_takes_a_place() {
    let service = Service { again: true, ..Service::default() };
    let world = World::at("127.0.0.1:0", Clock::start(), 1, service);
    let full = "it serves 1 flow, and has as many";
    // Many shake hands, some connect: more than are kept.
    let mut idle: Vec<Raw> = (10..110).map(|token| Raw::new(world.address, token)).collect();
    for raw in &mut idle {
        raw.shake_hands();
        raw.packet(HANDSHAKE);
        assert!(raw.hears_ack(HANDSHAKE));
    }
    let [mut a, mut b, mut c] = [1, 2, 3].map(|token| Raw::new(world.address, token));
    a.shake_hands();
    b.shake_hands();
    a.packet(0);
    assert!(a.hears_ack(0));
    // The other sender comes too late, and gets a refusal.
    b.packet(0);
    assert_eq!(b.answer().1.refusal, full);
    assert_eq!(c.ask_twice(c.hello()), full);
    // Wait until there is room.
    a.close();
    loop {
        b.packet(0);
        match b.hear().1 {
            Message::Ack(_) => break,
            Message::HelloAck(answer) => assert_eq!(answer.refusal, full),
            other => panic!("{other:?}"),
        }
    }
    world.stop();
}

#[test]
fn a_sender_without_a_place_is_refused() {
    let world = World::serving(1);
    let spec = spec(r#"{"scheme": "cubic"}"#);
    let late = world.open(&spec, SECOND).unwrap();
    let mut first = Raw::new(world.address, 1);
    first.shake_hands();
    first.packet(0);
    assert!(first.hears_ack(0));
    let error = late.run(task(spec, &Resources::default(), world.clock, 60_000)).unwrap_err();
    assert_eq!(error.code, "receiver-refuses", "{error}");
    world.stop();
}

#[test]
fn only_a_flow_that_sent_data_ends_a_receiver_that_serves_once() {
    let world = World::at("127.0.0.1:0", Clock::start(), 1, Service { once: true, ..Service::default() });
    let mut raw = Raw::new(world.address, 1);
    raw.shake_hands();
    raw.packet(HANDSHAKE);
    raw.close();
    let sent = world.send(r#"{"scheme": "cubic"}"#, 50);
    let got = world.thread.join().unwrap().unwrap();
    assert_eq!((got.flows.len(), got.flows[0].sent_packets), (1, Some(sent.stats.sent_packets)));
}

#[test]
fn a_flow_with_too_many_gaps_is_refused() {
    let service = Service { again: true, ..Service::default() };
    let world = World::at("127.0.0.1:0", Clock::start(), 1, service);
    let mut raw = Raw::new(world.address, 1);
    raw.shake_hands();
    let mut accepted = 0;
    let refusal = loop {
        assert!(accepted <= MOST_GAPS as u64 + 1, "{accepted} packets with gaps between them, and no refusal");
        if accepted % 32 == 0 {
            (accepted..accepted + 32).for_each(|k| raw.packet(2 * k));
        }
        match raw.hear().1 {
            Message::Ack(_) => accepted += 1,
            Message::HelloAck(answer) => break answer.refusal,
            other => panic!("{other:?}"),
        }
    };
    // Segment 0 is contiguous; each further one leaves a gap before it.
    assert_eq!(accepted, MOST_GAPS as u64 + 1);
    assert!(!refusal.is_empty());
    // The place of the flow is free again.
    let mut next = Raw::new(world.address, 2);
    next.shake_hands();
    next.packet(0);
    assert!(next.hears_ack(0));
    world.stop();
}
