//! UDP endpoints over loopback: real sockets, real time, kept short.
#![allow(clippy::print_stderr)]

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{CongestionControl, InitContext, Packet, Rng, TimeSpan, Timestamp};
use ccgym_net::udp::codec::{encode_packet, Token, VERSION};
use ccgym_net::udp::datagram::{self, datagram::Kind};
use ccgym_net::udp::receiver::MOST_GAPS;
use ccgym_net::udp::{
    corpus, mutate, serve, Connection, Hello, ReceiverResult, ReceiverTask, SenderResult, SenderTask, Service,
};
use ccgym_net::{Clock, NetError};
use ccgym_schemes::registry::{create_with, Resources};
use ccgym_sim::FlowSpec;
use prost::Message as _;

/// One flow at a time: flows of other tests on a small machine would be its cross traffic.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spec(json: &str) -> FlowSpec {
    serde_json::from_str(json).unwrap()
}

struct Listening {
    address: SocketAddr,
    halt: Arc<AtomicBool>,
    thread: JoinHandle<Result<ReceiverResult, NetError>>,
}

impl Listening {
    fn at(address: &str, clock: Clock, flows: usize) -> Self {
        Self::serving(address, clock, flows, Service::default())
    }

    fn serving(address: &str, clock: Clock, flows: usize, service: Service) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        let address = socket.local_addr().unwrap();
        let halt = Arc::new(AtomicBool::new(false));
        let step = TimeSpan::from_millis(100);
        let task = ReceiverTask { clock, step, end: Timestamp::NEVER, halt: halt.clone(), flows };
        Self { address, halt, thread: std::thread::spawn(move || serve(socket, task, service, &mut |_| ())) }
    }

    fn stop(self) -> ReceiverResult {
        self.halt.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }
}

fn task(spec: FlowSpec, cca: Box<dyn CongestionControl>, clock: Clock, length: Duration) -> SenderTask {
    let size = u64::from(spec.mss + spec.header);
    let start = clock.now();
    SenderTask {
        flow: 0,
        cca,
        context: InitContext {
            now: Timestamp::ZERO,
            mss: size,
            initial_window: size * u64::from(spec.initial_window),
            flow: 0,
            rng: Rng::stream(1, "scheme", 0),
            path: None,
        },
        clock,
        start,
        stop: start + TimeSpan(length.as_nanos() as u64),
        step: TimeSpan::from_millis(100),
        monitor: false,
        seed: 1,
        steering: None,
        halt: Arc::new(AtomicBool::new(false)),
        spec,
    }
}

fn open(peer: SocketAddr, spec: &FlowSpec) -> Connection {
    let socket = UdpSocket::bind((peer.ip(), 0)).unwrap();
    Connection::open(socket, peer, &Hello::of(spec).unwrap(), Duration::from_secs(2)).unwrap()
}

/// Send to `peer` for a while by a scheme of the registry.
fn send(peer: SocketAddr, json: &str, clock: Clock, length: Duration) -> SenderResult {
    let spec = spec(json);
    let cca = create_with(&spec.scheme, &spec.params, &Resources::default()).unwrap();
    open(peer, &spec).run(task(spec, cca, clock, length)).unwrap()
}

#[test]
fn schemes_move_data_and_every_packet_is_accounted_for() {
    let _alone = alone();
    for flow in [
        r#"{"scheme": "cubic"}"#,
        r#"{"scheme": "bbr", "ack_every": 2}"#,
        r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 20}, "profile": "udp"}"#,
        r#"{"scheme": "copa", "mss": 100, "header": 28}"#,
    ] {
        let clock = Clock::start();
        let listening = Listening::at("127.0.0.1:0", clock, 1);
        let sent = send(listening.address, flow, clock, Duration::from_millis(500));
        std::thread::sleep(Duration::from_millis(30));
        let got = listening.stop();
        let (s, r) = (&sent.stats, &got.received);
        assert!(r.packets > 100, "{flow}: {r:?}");
        // What was acknowledged has arrived; what arrived was sent; the rest is lost or was under way.
        assert!((s.acked_packets..=s.sent_packets).contains(&r.packets), "{flow}: {s:?} {r:?}");
        assert!(s.acked_packets + s.lost_packets <= s.sent_packets + s.spurious_losses, "{flow}: {s:?}");
        if flow.contains("fixed_rate") {
            // Slow enough for every buffer: to the byte.
            assert_eq!((r.packets, r.bytes, got.overflowed), (s.sent_packets, s.sent_bytes, 0), "{flow}");
        }
        assert_eq!((got.rejected, sent.rejected), (0, 0), "{flow}");
        // Series: cumulative, of one length, ending near the totals.
        let columns = &sent.series;
        assert!(columns.sent_bytes.len() >= 5 && columns.sent_bytes.is_sorted(), "{flow}");
        assert_eq!(columns.sent_bytes.len(), columns.cwnd_bytes.len());
        assert!(got.received_bytes.is_sorted() && got.received_bytes.last() <= Some(&r.bytes), "{flow}");
        assert!(sent.min_rtt.0 > 0 && sent.min_rtt < TimeSpan::from_millis(100), "{flow}: {:?}", sent.min_rtt);
    }
}

#[test]
fn a_paced_flow_keeps_its_rate() {
    let _alone = alone();
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 12}, "profile": "udp"}"#;
    let sent = send(listening.address, flow, clock, Duration::from_secs(1));
    let got = listening.stop();
    // One packet a millisecond; a busy machine makes some of them late, not more.
    assert!((500..=1010).contains(&sent.stats.sent_packets), "{:?}", sent.stats);
    assert_eq!(got.received.packets, sent.stats.sent_packets);
}

#[test]
fn applications_behave_as_in_the_simulator() {
    let _alone = alone();
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 3);
    // 100,001 bytes in segments of 1448: the last one has 89, fewer than its datagram's own fields.
    let flow = r#"{"scheme": "cubic", "source": {"kind": "bytes", "bytes": 100001}}"#;
    let sent = send(listening.address, flow, clock, Duration::from_millis(300));
    assert!(sent.finished.is_set(), "{:?}", sent.stats);
    let flow = r#"{"scheme": "cubic", "source": {"kind": "bytes", "bytes": 1450}}"#;
    assert!(send(listening.address, flow, clock, Duration::from_millis(200)).finished.is_set());
    // 100 segments a second.
    let flow = r#"{"scheme": "cubic", "source": {"kind": "rate", "rate": 1158400}}"#;
    let slow = send(listening.address, flow, clock, Duration::from_millis(500));
    assert!((20..=53).contains(&slow.stats.sent_packets), "{:?}", slow.stats);
    let got = listening.stop();
    assert_eq!(got.flows.len(), 3);
    assert_eq!(got.flows[0].received.unique_bytes, 100_001);
    assert_eq!(got.flows[1].received.unique_bytes, 1450);
    assert_eq!(got.flows[0].sent_packets, Some(sent.stats.sent_packets));
    // Every acknowledgement of the transfer counts in the hash.
    assert_ne!(sent.hash, slow.hash);
}

#[test]
fn endpoints_speak_ipv6() {
    let _alone = alone();
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED endpoints_speak_ipv6: this machine has no ::1");
        return;
    }
    let clock = Clock::start();
    let listening = Listening::at("[::1]:0", clock, 1);
    let sent = send(listening.address, r#"{"scheme": "cubic"}"#, clock, Duration::from_millis(200));
    std::thread::sleep(Duration::from_millis(20));
    let got = listening.stop();
    assert!((sent.stats.acked_packets..=sent.stats.sent_packets).contains(&got.received.packets));
}

#[test]
fn a_flood_of_foreign_datagrams_disturbs_nobody() {
    let _alone = alone();
    // Where the receiver is not given time to fetch them, the kernel drops a few datagrams, of either kind: tried again.
    assert!((0..3).any(|_| flooded()), "datagrams were dropped or miscounted three times");
}

/// Send under a flood. Whether all data arrived, and the flood was rejected to the last datagram.
fn flooded() -> bool {
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let address = listening.address;
    let (over, thrown) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flood = std::thread::spawn({
        let (over, thrown) = (over.clone(), thrown.clone());
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(address).unwrap();
            let (corpus, mut input) = (corpus(), Vec::new());
            let mut rng = Rng::stream(3, "flood", 0);
            while !over.load(Ordering::Relaxed) {
                // Noise, and datagrams of another flow. Hellos would be answered: that is not what is tested here.
                mutate(&corpus, &mut input, &mut || rng.next_u64());
                if input.first() != Some(&0x0a) && socket.send(&input).is_ok() {
                    thrown.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 10}, "profile": "udp"}"#;
    let sent = send(address, flow, clock, Duration::from_millis(1500));
    over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    // A busy machine reads the rest of the flood late.
    std::thread::sleep(Duration::from_millis(500));
    let got = listening.stop();
    let thrown = thrown.load(Ordering::Relaxed);
    assert!(thrown > 10_000, "a flood of {thrown}");
    let arrived = got.received.packets;
    assert_eq!(arrived + got.rejected + got.overflowed, sent.stats.sent_packets + thrown, "everything is counted");
    assert_eq!(sent.rejected, 0, "and none of it answered towards us");
    arrived == sent.stats.sent_packets && got.overflowed == 0 && got.rejected == thrown
}

#[test]
fn handshakes_have_deadlines_and_explain_themselves() {
    let begun = Instant::now();
    let hello = Hello::of(&spec(r#"{"scheme": "cubic"}"#)).unwrap();
    let wait = Duration::from_millis(350);
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    // Somebody who listens, and never answers.
    let mute = bind();
    let peer = mute.local_addr().unwrap();
    let error = Connection::open(bind(), peer, &hello, wait).unwrap_err();
    assert!(error.found.contains(&format!("no answer to 3 hellos from {peer} within 0.350 s")), "{error}");
    assert!(error.step.contains("handshake") && !error.found.contains("nobody listens"), "{error}");
    // Nobody.
    drop(mute);
    let error = Connection::open(bind(), peer, &hello, wait).unwrap_err();
    assert!(error.found.contains("nobody listens on that port"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    // Somebody who has served one flow, and serves no more.
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let first = Connection::open(bind(), listening.address, &hello, wait).unwrap();
    assert!(first.seen_from().starts_with("127.0.0.1:"));
    let sent = send(listening.address, r#"{"scheme": "cubic"}"#, clock, Duration::from_millis(20));
    assert!(sent.stats.acked_packets > 0, "a handshake alone holds no place: {:?}", sent.stats);
    let error = Connection::open(bind(), listening.address, &hello, wait).unwrap_err();
    assert!(error.found.contains("it serves 1 flow, and has as many"), "{error}");
    assert_eq!(listening.stop().rejected, 1);
}

/// A sender that says what it likes.
struct Raw {
    socket: UdpSocket,
    token: Token,
    /// Bytes that it sent.
    sent: usize,
}

impl Raw {
    fn new(peer: SocketAddr, token: u8) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(peer).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self { socket, token: Token([token; 16]), sent: 0 }
    }

    fn hello(&self) -> datagram::Hello {
        datagram::Hello {
            token: self.token.0.to_vec(),
            version: VERSION,
            ack_every: 1,
            packet_bytes: 1500,
            header_bytes: 52,
            ack_bytes: 1500,
            reliable: true,
            padding: vec![0; 200],
            ..Default::default()
        }
    }

    fn throw(&mut self, bytes: &[u8]) {
        self.sent += self.socket.send(bytes).unwrap();
    }

    fn say(&mut self, kind: Kind) {
        self.throw(&datagram::Datagram { kind: Some(kind) }.encode_to_vec());
    }

    /// A packet whose number is `number`; `HANDSHAKE` connects.
    fn packet(&mut self, number: u64) {
        let segment = if number == HANDSHAKE { 0 } else { number };
        let packet = Packet { number, segment, size: 60, ..Packet::default() };
        let mut bytes = Vec::new();
        encode_packet(&mut bytes, self.token, &packet, 28);
        self.throw(&bytes);
    }

    fn close(&mut self) {
        self.say(Kind::Close(datagram::Close { token: self.token.0.to_vec(), ..Default::default() }));
    }

    /// The next datagram.
    fn hear(&self) -> (usize, Kind) {
        let mut room = [0; 2048];
        let length = self.socket.recv(&mut room).unwrap();
        (length, datagram::Datagram::decode(&room[..length]).unwrap().kind.unwrap())
    }

    fn answer(&self) -> (usize, datagram::HelloAck) {
        match self.hear() {
            (length, Kind::HelloAck(answer)) => (length, answer),
            (_, other) => panic!("{other:?}"),
        }
    }

    fn ask(&mut self, hello: datagram::Hello) -> datagram::HelloAck {
        let before = self.sent;
        self.say(Kind::Hello(hello));
        let (length, answer) = self.answer();
        assert!(length <= self.sent - before, "{length} bytes in answer to {}", self.sent - before);
        answer
    }

    /// Ask, and again with the cookie. The refusal.
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

    /// Bytes that are there to be read.
    fn got(&self) -> usize {
        self.socket.set_nonblocking(true).unwrap();
        let mut room = [0; 2048];
        std::iter::from_fn(|| self.socket.recv(&mut room).ok()).sum()
    }
}

#[test]
fn hellos_that_say_nothing_sensible_get_no_more_than_they_brought() {
    let listening = Listening::at("127.0.0.1:0", Clock::start(), 1);
    let mut raw = Raw::new(listening.address, 1);
    let good = raw.hello();
    for mute in [
        datagram::Hello { token: vec![1; 8], ..good.clone() },
        datagram::Hello { ack_every: 0, ..good.clone() },
        datagram::Hello { padding: vec![], version: VERSION + 1, ..good.clone() },
    ] {
        raw.say(Kind::Hello(mute));
    }
    for _ in 0..3 {
        raw.throw(&[]);
    }
    // The first answer is that of the next one.
    let old = raw.ask(datagram::Hello { version: VERSION - 1, ..good.clone() });
    assert!(old.refusal.contains(&format!("speaks version {VERSION}")), "{old:?}");
    let scheme = datagram::Hello { scheme: "no such scheme".repeat(9), padding: vec![0; 400], ..good.clone() };
    assert!(raw.ask_twice(scheme).contains("found \"no such scheme"));
    assert!(!raw.ask_twice(datagram::Hello { params_json: "{".into(), scheme: "x".into(), ..good.clone() }).is_empty());
    assert_eq!(raw.ask_twice(good.clone()), "");
    assert!(raw.ask(good).cookie.is_empty(), "answered again, served once");
    raw.packet(0);
    assert!(matches!(raw.hear().1, Kind::Ack(_)));
    let got = listening.stop();
    // Three Hellos, three empty datagrams, three refusals.
    assert_eq!((got.flows.len(), got.rejected), (1, 9));
}

/// Everything that a sender can say from the address of somebody who never hears the answers.
#[test]
fn an_address_gets_no_more_than_it_sent_until_it_has_proved_itself() {
    let listening = Listening::at("127.0.0.1:0", Clock::start(), 1);
    let (mut attacker, mut victim) = (Raw::new(listening.address, 1), Raw::new(listening.address, 1));
    // A cookie for the same token, but from the attacker's own address.
    let stolen = attacker.ask(attacker.hello()).cookie;
    for cookie in [Vec::new(), stolen.clone(), vec![0; 8], vec![0; 1000]] {
        for padding in [0, 30, 200, 1000] {
            let hello = datagram::Hello { cookie: cookie.clone(), padding: vec![0; padding], ..victim.hello() };
            victim.say(Kind::Hello(hello));
            for number in [HANDSHAKE, HANDSHAKE, 0, 1, 2, 7] {
                victim.packet(number);
            }
        }
    }
    victim.close();
    // Datagrams are handled in order: what answers the victim gets are there when this one is answered.
    attacker.ask(attacker.hello());
    let got = victim.got();
    assert!(0 < got && got <= victim.sent, "{got} bytes in answer to {}", victim.sent);
    // Who has proved itself gets what it asks for.
    assert_eq!(attacker.ask(datagram::Hello { cookie: stolen, ..attacker.hello() }).refusal, "");
    attacker.packet(HANDSHAKE);
    assert_eq!(attacker.hear().0, 1472);
    assert_eq!(listening.stop().flows.len(), 0);
}

#[test]
fn a_place_is_taken_by_data_and_nothing_else() {
    let service = Service { again: true, ..Service::default() };
    let listening = Listening::serving("127.0.0.1:0", Clock::start(), 1, service);
    let full = "it serves 1 flow, and has as many";
    // Many shake hands, some connect: no more than is kept of those.
    let mut idle: Vec<Raw> = (10..110).map(|token| Raw::new(listening.address, token)).collect();
    for raw in &mut idle {
        raw.shake_hands();
        raw.packet(HANDSHAKE);
        assert!(matches!(raw.hear().1, Kind::ConnectAck(_)));
    }
    let [mut a, mut b, mut c] = [1, 2, 3].map(|token| Raw::new(listening.address, token));
    a.shake_hands();
    b.shake_hands();
    a.packet(0);
    assert!(matches!(a.hear().1, Kind::Ack(_)));
    // The other one came too late, and is told.
    b.packet(0);
    assert_eq!(b.answer().1.refusal, full);
    assert_eq!(c.ask_twice(c.hello()), full);
    // Until there is room.
    a.close();
    loop {
        b.packet(0);
        match b.hear().1 {
            Kind::Ack(_) => break,
            Kind::HelloAck(answer) => assert_eq!(answer.refusal, full),
            other => panic!("{other:?}"),
        }
    }
    listening.stop();
}

#[test]
fn a_sender_whose_place_was_taken_is_told() {
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let spec = spec(r#"{"scheme": "cubic"}"#);
    let late = open(listening.address, &spec);
    let mut first = Raw::new(listening.address, 1);
    first.shake_hands();
    first.packet(0);
    assert!(matches!(first.hear().1, Kind::Ack(_)));
    let cca = create_with(&spec.scheme, &spec.params, &Resources::default()).unwrap();
    let error = late.run(task(spec, cca, clock, Duration::from_secs(60))).unwrap_err();
    assert!(error.found.contains("the receiver refuses: it serves 1 flow, and has as many"), "{error}");
    listening.stop();
}

#[test]
fn only_a_flow_that_sent_data_ends_a_receiver_that_serves_once() {
    let clock = Clock::start();
    let listening = Listening::serving("127.0.0.1:0", clock, 1, Service { once: true, ..Service::default() });
    let mut raw = Raw::new(listening.address, 1);
    raw.shake_hands();
    raw.packet(HANDSHAKE);
    raw.close();
    let sent = send(listening.address, r#"{"scheme": "cubic"}"#, clock, Duration::from_millis(50));
    let got = listening.thread.join().unwrap().unwrap();
    assert_eq!((got.flows.len(), got.flows[0].sent_packets), (1, Some(sent.stats.sent_packets)));
}

#[test]
fn a_flow_with_too_many_gaps_is_refused() {
    let service = Service { again: true, ..Service::default() };
    let listening = Listening::serving("127.0.0.1:0", Clock::start(), 1, service);
    let mut raw = Raw::new(listening.address, 1);
    raw.shake_hands();
    let mut accepted = 0;
    let refusal = loop {
        assert!(accepted <= MOST_GAPS as u64 + 1, "{accepted} packets with gaps between them, and no refusal");
        if accepted % 32 == 0 {
            (accepted..accepted + 32).for_each(|k| raw.packet(2 * k));
        }
        match raw.hear().1 {
            Kind::Ack(_) => accepted += 1,
            Kind::HelloAck(answer) => break answer.refusal,
            other => panic!("{other:?}"),
        }
    };
    // Segment 0 is no island; each further one leaves a gap behind it.
    assert_eq!(accepted, MOST_GAPS as u64 + 1);
    assert!(refusal.contains(&format!("{MOST_GAPS} gaps")), "{refusal}");
    // Its place is free.
    let mut next = Raw::new(listening.address, 2);
    next.shake_hands();
    next.packet(0);
    assert!(matches!(next.hear().1, Kind::Ack(_)));
    listening.stop();
}

#[test]
fn a_receiver_that_comes_back_serves_new_flows_only() {
    let _alone = alone();
    let clock = Clock::start();
    let first = Listening::at("127.0.0.1:0", clock, 1);
    let address = first.address;
    let (old, new) = std::thread::scope(|scope| {
        let old = scope.spawn(|| {
            let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 5}, "profile": "udp"}"#;
            send(address, flow, clock, Duration::from_millis(900))
        });
        std::thread::sleep(Duration::from_millis(200));
        let before = first.stop();
        assert!(before.received.packets > 10);
        let second = Listening::at(&address.to_string(), clock, 1);
        let new = send(address, r#"{"scheme": "cubic"}"#, clock, Duration::from_millis(300));
        let old = old.join().unwrap();
        let got = second.stop();
        assert!(got.rejected > 10, "the old flow's datagrams are foreign now: {got:?}");
        assert!((new.stats.acked_packets..=new.stats.sent_packets).contains(&got.received.packets));
        (old, new)
    });
    assert!(old.stats.acked_packets + 10 < old.stats.sent_packets, "{:?}", old.stats);
    assert!(new.stats.acked_packets > 100, "{:?}", new.stats);
}

/// Carries datagrams both ways and drops every `nth` of those that go up, Hellos apart.
fn lossy(peer: SocketAddr, nth: u64) -> (SocketAddr, Arc<AtomicBool>, JoinHandle<u64>) {
    let (front, back) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = front.local_addr().unwrap();
    back.connect(peer).unwrap();
    let halt = Arc::new(AtomicBool::new(false));
    let over = halt.clone();
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    }
    let home = Arc::new(Mutex::new(None));
    let down = std::thread::spawn({
        let (front, back, over, home) =
            (front.try_clone().unwrap(), back.try_clone().unwrap(), over.clone(), home.clone());
        move || {
            let mut room = [0; 65_536];
            while !over.load(Ordering::Relaxed) {
                let to = *home.lock().unwrap();
                if let (Ok(length), Some(to)) = (back.recv(&mut room), to) {
                    let _ = front.send_to(&room[..length], to);
                }
            }
        }
    });
    let up = std::thread::spawn(move || {
        let (mut room, mut count, mut dropped) = ([0; 65_536], 0, 0);
        while !over.load(Ordering::Relaxed) {
            let Ok((length, from)) = front.recv_from(&mut room) else { continue };
            *home.lock().unwrap() = Some(from);
            count += u64::from(room[0] != 0x0a);
            if room[0] != 0x0a && count % nth == 0 {
                dropped += 1;
            } else {
                let _ = back.send(&room[..length]);
            }
        }
        down.join().unwrap();
        dropped
    });
    (address, halt, up)
}

#[test]
fn a_reliable_flow_delivers_every_segment_over_a_lossy_path() {
    let _alone = alone();
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let (address, halt, proxy) = lossy(listening.address, 10);
    let flow = r#"{"scheme": "fixed_window", "params": {"cwnd": 20}, "source": {"kind": "bytes", "bytes": 1000000}}"#;
    let spec = spec(flow);
    let cca = create_with(&spec.scheme, &spec.params, &Resources::default()).unwrap();
    let sent = open(address, &spec).run(task(spec, cca, clock, Duration::from_secs(2))).unwrap();
    halt.store(true, Ordering::Relaxed);
    let dropped = proxy.join().unwrap();
    let got = listening.stop();
    assert!(sent.finished.is_set(), "{:?}", sent.stats);
    assert_eq!(got.received.unique_bytes, 1_000_000);
    assert!(dropped > 50 && sent.stats.retransmissions >= dropped - 1, "{dropped} dropped: {:?}", sent.stats);
}

fn onnx_runtime() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH") {
        return Some(path.into());
    }
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let mut libraries = std::fs::read_dir(packages).ok()?.filter_map(|python| {
        let capi = python.ok()?.path().join("site-packages/onnxruntime/capi");
        let mut files = std::fs::read_dir(capi).ok()?.filter_map(|file| Some(file.ok()?.path()));
        files.find(|file| file.to_string_lossy().contains("libonnxruntime.so"))
    });
    libraries.next()
}

#[test]
fn an_exported_policy_decides_natively() {
    let _alone = alone();
    let Some(library) = onnx_runtime() else {
        eprintln!("SKIPPED an_exported_policy_decides_natively: no ONNX Runtime (set ORT_DYLIB_PATH)");
        return;
    };
    ccgym_schemes::learned::load_library(library.to_str()).unwrap();
    let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/pretrained");
    let onnx = std::fs::read(agents.join("aurora.onnx")).unwrap();
    let card = std::fs::read_to_string(agents.join("aurora.json")).unwrap();
    let policy = ccgym_schemes::learned::Policy::load(&onnx, &card).unwrap();
    let mut resources = Resources::default();
    resources.policies.insert("aurora".into(), policy);
    let spec = spec(r#"{"scheme": "learned", "params": {"policy": "aurora"}, "profile": "udp"}"#);
    let cca = create_with(&spec.scheme, &spec.params, &resources).unwrap();
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let sent = open(listening.address, &spec).run(task(spec, cca, clock, Duration::from_secs(2))).unwrap();
    let got = listening.stop();
    assert!(got.received.packets > 50, "{:?}", sent.stats);
    let rates = &sent.series.pacing_bps;
    assert!(rates.iter().any(|&r| r != rates[0]), "it decided: {rates:?}");
}

#[test]
fn halting_ends_both_at_once() {
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let spec = spec(r#"{"scheme": "cubic", "source": {"kind": "rate", "rate": 8000}}"#);
    let cca = create_with(&spec.scheme, &spec.params, &Resources::default()).unwrap();
    let connection = open(listening.address, &spec);
    let task = task(spec, cca, clock, Duration::from_secs(60));
    let halt = task.halt.clone();
    let thread = std::thread::spawn(move || connection.run(task));
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    halt.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
    listening.stop();
    assert!(begun.elapsed() < Duration::from_millis(500));
}

/// Decides the same each time, over a socket to itself.
struct Always {
    ask: std::os::unix::net::UnixStream,
    answer: std::os::unix::net::UnixStream,
    counts: Arc<[AtomicU64; 3]>,
}

impl ccgym_net::steer::Steering for Always {
    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.answer))
    }

    fn interval_closed(&mut self, _now: Timestamp, sender: &ccgym_core::Sender) -> Result<(), NetError> {
        assert!(sender.awaits_decision());
        self.counts[0].fetch_add(1, Ordering::Relaxed);
        std::io::Write::write_all(&mut self.ask, &[1]).unwrap();
        Ok(())
    }

    fn take_action(&mut self, _now: Timestamp, action: &mut Vec<f32>) -> Result<bool, NetError> {
        self.counts[1].fetch_add(1, Ordering::Relaxed);
        std::io::Read::read_exact(&mut self.answer, &mut [0]).unwrap();
        action.clear();
        action.push(1.0);
        Ok(true)
    }

    fn flow_ended(&mut self, _now: Timestamp, _sender: &mut ccgym_core::Sender) -> Result<(), NetError> {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn somebody_outside_may_decide() {
    let _alone = alone();
    let clock = Clock::start();
    let listening = Listening::at("127.0.0.1:0", clock, 1);
    let (ask, answer) = std::os::unix::net::UnixStream::pair().unwrap();
    let counts: Arc<[AtomicU64; 3]> = Arc::default();
    let spec = spec(r#"{"scheme": "learned", "profile": "udp"}"#);
    let cca = create_with(&spec.scheme, &spec.params, &Resources::default()).unwrap();
    let mut task = task(spec, cca, clock, Duration::from_millis(350));
    task.step = TimeSpan::from_millis(10);
    task.steering = Some(Box::new(Always { ask, answer, counts: counts.clone() }));
    let sent = open(listening.address, &task.spec).run(task).unwrap();
    listening.stop();
    let [asked, answered, ended] = [0, 1, 2].map(|i| counts[i].load(Ordering::Relaxed));
    assert!(asked >= 5 && answered + 1 >= asked && ended == 1, "{asked} {answered} {ended}");
    // Each answer multiplies the window by 1.1.
    let windows = &sent.series.cwnd_bytes;
    assert!(windows.is_sorted() && windows.last() > windows.first(), "{windows:?}");
}

/// Sender and receiver as programs, as a user starts them.
#[test]
fn commands_carry_a_transfer() {
    use std::io::BufRead as _;
    use std::process::{Command, Stdio};
    let _alone = alone();
    let program = env!("CARGO_BIN_EXE_ccgym-net");
    let mut receiver = Command::new(program)
        .args(["receiver", "--listen", "127.0.0.1:0", "--once", "--json", "--duration", "20", "--report-every=0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(receiver.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.strip_prefix("listening on ").unwrap();
    let sender = Command::new(program)
        .args(["sender", "--to", address, "--scheme", "cubic:beta=0.6", "--bytes", "300000", "--json"])
        .output()
        .unwrap();
    assert!(sender.status.success(), "{}", String::from_utf8_lossy(&sender.stderr));
    let sent: serde_json::Value = serde_json::from_slice(&sender.stdout).unwrap();
    assert_eq!((&sent["scheme"], &sent["finished"]), (&"cubic".into(), &true.into()), "{sent}");
    let output = receiver.wait_with_output().unwrap();
    assert!(output.status.success());
    let got: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(got["received"]["unique_bytes"], 300_000, "{got}");
    // What goes wrong ends with 2 and says why.
    let lost = Command::new(program)
        .args(["sender", "--to", address, "--scheme", "cubic", "--deadline", "0.05"])
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lost.stderr).contains("no answer to 1 hello from"));
    let help = Command::new(program).args(["receiver", "--help"]).output().unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--listen"));
}

/// A program, started as from a terminal: whoever started these tests in the background of a shell may have had SIGINT
/// ignored.
#[allow(unsafe_code)] // `pre_exec` and `signal` are unsafe: only a system call may follow, and here only such follows.
fn started(words: &[&str]) -> std::process::Child {
    use nix::sys::signal::{signal, SigHandler, Signal};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccgym-net"));
    let heed = || unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.map(drop).map_err(Into::into);
    unsafe { command.pre_exec(heed) };
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: std::process::Child, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn signals_end_the_commands_with_their_summaries() {
    use nix::sys::signal::Signal::{SIGINT, SIGTERM};
    use std::io::BufRead as _;
    let _alone = alone();
    for signal in [SIGINT, SIGTERM] {
        let mut receiver = started(&["receiver", "--listen", "127.0.0.1:0", "--report-every=0"]);
        let mut lines = std::io::BufReader::new(receiver.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.strip_prefix("listening on ").unwrap();
        // Two flows of one receiver, one after the other: the first is interrupted, and the second with the receiver.
        for end in [Some(signal), None] {
            let sender = started(&["sender", "--to", address, "--scheme", "cubic", "--bytes", "1000000000000"]);
            assert!(lines.next().unwrap().unwrap().ends_with(": begins"));
            if let Some(signal) = end {
                let (status, summary) = interrupt(sender, signal);
                assert_eq!(status, Some(128 + signal as i32), "{summary}");
                assert!(summary.contains("Mbit/s acknowledged in"), "{summary}");
                continue;
            }
            let (status, summaries) = interrupt(receiver, signal);
            assert_eq!(status, Some(128 + signal as i32), "{summaries}");
            assert_eq!(summaries.matches(" packets").count(), 2, "{summaries}");
            assert_eq!(lines.next().unwrap().unwrap(), "received 2 flows");
            interrupt(sender, signal);
            break;
        }
    }
}

/// A receiver that answers every Hello with `answer`, and nothing else.
fn answering(answer: datagram::HelloAck) -> (String, Arc<AtomicBool>, JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (address, over) = (socket.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
    let halt = over.clone();
    let thread = std::thread::spawn(move || {
        let mut room = [0; 2048];
        while !halt.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut room) else { continue };
            if let Ok(datagram::Datagram { kind: Some(Kind::Hello(hello)) }) =
                datagram::Datagram::decode(&room[..length])
            {
                let answer = datagram::HelloAck { token: hello.token, version: VERSION, ..answer.clone() };
                socket
                    .send_to(&datagram::Datagram { kind: Some(Kind::HelloAck(answer)) }.encode_to_vec(), from)
                    .unwrap();
            }
        }
    });
    (address, over, thread)
}

#[test]
fn a_sender_survives_what_a_receiver_says_and_what_it_does_not() {
    let run = |address: &str, more: &[&str]| {
        let words =
            ["sender", "--to", address, "--scheme", "fixed_rate:rate_mbps=1", "--duration=0.3", "--deadline=0.3"];
        let output = started(&[&words[..], more].concat()).wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // Nothing is acknowledged.
    let (address, over, thread) = answering(datagram::HelloAck::default());
    let (status, out, err) = run(&address, &["--report-every=100ms"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.starts_with("fixed_rate: 0.00 Mbit/s") && out.contains("smallest round trip none yet"), "{out}");
    assert!(err.contains("no window limit") && !err.contains(&u64::MAX.to_string()), "{err}");
    let (_, out, _) = run(&address, &["--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["min_rtt_ms"].is_null(), "{out}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // A refusal that would clear the screen.
    let (address, over, thread) =
        answering(datagram::HelloAck { refusal: "\u{1b}[2Jfull".into(), ..Default::default() });
    let (status, _, err) = run(&address, &[]);
    assert_eq!(status, Some(2));
    assert!(err.contains(r"the receiver refuses: \u{1b}[2Jfull"), "{err:?}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // Cookies for ever.
    let (address, over, thread) = answering(datagram::HelloAck { cookie: vec![1; 8], ..Default::default() });
    let (status, _, err) = run(&address, &[]);
    assert_eq!(status, Some(2));
    assert!(err.contains("no answer to"), "{err}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
