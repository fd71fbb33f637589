//! UDP endpoints over loopback: real sockets, real time, short runs.
#![allow(clippy::print_stderr)]

mod processes;
mod unknown_senders;

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::steer::{self, Environment};
use ccgym_agent::FlowAgent;
use ccgym_core::{Packet, Rng, TimeSpan, Timestamp};
use ccgym_net::steer::{AgentConnection, LiveGroundTruth, Steering};
use ccgym_net::udp::codec::{decode, encode_packet, Message, Token};
use ccgym_net::udp::{serve, Connection, ReceiverResult, ReceiverTask, SenderResult, SenderTask, Service};
use ccgym_net::{Clock, Error};
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::registry::{create_with, Resources};
use serde_json::json;

fn spec(json: &str) -> FlowSpec {
    serde_json::from_str(json).unwrap()
}

/// Lock that runs one flow at a time: on a small machine, flows of other tests would be its cross traffic.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Running receiver, and the clock of its senders.
struct World {
    address: SocketAddr,
    clock: Clock,
    halt: Arc<AtomicBool>,
    thread: JoinHandle<Result<ReceiverResult, Error>>,
}

impl World {
    fn serving(flows: usize) -> Self {
        Self::at("127.0.0.1:0", Clock::start(), flows, Service::default())
    }

    fn at(address: &str, clock: Clock, flows: usize, service: Service) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        let address = socket.local_addr().unwrap();
        let halt = Arc::new(AtomicBool::new(false));
        let step = TimeSpan::from_millis(100);
        let task = ReceiverTask { clock, step, end: Timestamp::NEVER, halt: halt.clone(), flows };
        let thread = std::thread::spawn(move || serve(socket, task, service, &mut |_| ()));
        Self { address, clock, halt, thread }
    }

    fn stop(self) -> ReceiverResult {
        self.halt.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().unwrap()
    }

    fn open(&self, spec: &FlowSpec, wait: Duration) -> Result<Connection, Error> {
        open(self.address, spec, wait)
    }

    /// Send for `ms` milliseconds by a registered scheme.
    fn send(&self, json: &str, ms: u64) -> SenderResult {
        send(self.address, json, self.clock, ms)
    }
}

fn open(peer: SocketAddr, spec: &FlowSpec, wait: Duration) -> Result<Connection, Error> {
    Connection::open(UdpSocket::bind((peer.ip(), 0)).unwrap(), peer, spec, 0, wait)
}

fn send(peer: SocketAddr, json: &str, clock: Clock, ms: u64) -> SenderResult {
    let task = task(spec(json), &Resources::default(), clock, ms);
    open(peer, &task.spec, SECOND).unwrap().run(task).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

fn task(spec: FlowSpec, resources: &Resources, clock: Clock, ms: u64) -> SenderTask {
    let run = json!({"seed": 1, "duration": 1, "uplink": [], "downlink": [], "flows": [spec]});
    let run: RunSpec = serde_json::from_value(run).unwrap();
    let cca = create_with(&spec.scheme, &spec.params, resources).unwrap();
    let start = clock.now();
    SenderTask {
        flow: 0,
        context: run.init_context(0, &*cca),
        cca,
        clock,
        start,
        stop: start + TimeSpan::from_millis(ms),
        step: TimeSpan::from_millis(100),
        seed: 1,
        steering: None,
        halt: Arc::new(AtomicBool::new(false)),
        spec,
    }
}

#[test]
fn schemes_move_data_and_every_packet_is_accounted_for() {
    let _alone = alone();
    for flow in [
        r#"{"scheme": "cubic"}"#,
        r#"{"scheme": "bbr", "ack_every": 2}"#,
        r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 20}, "profile": "udp"}"#,
        r#"{"scheme": "copa", "mss": 100, "header": 28}"#,
        r#"{"scheme": "sprout", "profile": "udp"}"#,
    ] {
        let world = World::serving(1);
        let sent = world.send(flow, 500);
        std::thread::sleep(Duration::from_millis(30));
        let got = world.stop();
        let (s, r) = (&sent.stats, &got.received);
        assert!(r.packets > 100, "{flow}: {r:?}");
        // Acknowledged packets have arrived; packets that arrived were sent; the others are lost or were in flight.
        assert!((s.acked_packets..=s.sent_packets).contains(&r.packets), "{flow}: {s:?} {r:?}");
        assert!(s.acked_packets + s.lost_packets <= s.sent_packets + s.spurious_losses, "{flow}: {s:?}");
        if flow.contains("fixed_rate") {
            // Slow enough for every buffer: exact to the byte.
            assert_eq!((r.packets, r.bytes, got.overflowed), (s.sent_packets, s.sent_bytes, 0), "{flow}");
        }
        assert_eq!((got.rejected, sent.rejected), (0, 0), "{flow}");
        // Series: cumulative, of one length, with last values near the totals.
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
    let world = World::serving(1);
    let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 12}, "profile": "udp"}"#;
    let sent = world.send(flow, 1000);
    std::thread::sleep(Duration::from_millis(30)); // The last packet may still be on its way.
    let got = world.stop();
    // One packet per millisecond; a busy machine delays some of them, not more.
    assert!((500..=1010).contains(&sent.stats.sent_packets), "{:?}", sent.stats);
    assert_eq!(got.received.packets, sent.stats.sent_packets);
}

#[test]
fn applications_behave_as_in_the_simulator() {
    let _alone = alone();
    let world = World::serving(3);
    // 100,001 bytes in segments of 1448: the last one has 89, fewer than its datagram's own fields.
    let flow = r#"{"scheme": "cubic", "source": {"kind": "bytes", "bytes": 100001}}"#;
    let sent = world.send(flow, 300);
    assert!(sent.finished.is_set(), "{:?}", sent.stats);
    let flow = r#"{"scheme": "cubic", "source": {"kind": "bytes", "bytes": 1450}}"#;
    assert!(world.send(flow, 200).finished.is_set());
    // 100 segments a second.
    let flow = r#"{"scheme": "cubic", "source": {"kind": "rate", "rate": 1158400}}"#;
    let slow = world.send(flow, 500);
    assert!((20..=53).contains(&slow.stats.sent_packets), "{:?}", slow.stats);
    let got = world.stop();
    assert_eq!(got.flows.len(), 3);
    assert_eq!(got.flows[0].received.unique_bytes, 100_001);
    assert_eq!(got.flows[1].received.unique_bytes, 1450);
    assert_eq!(got.flows[0].sent_packets, Some(sent.stats.sent_packets));
    // The hash covers every ACK of the transfer.
    assert_ne!(sent.hash, slow.hash);
}

#[test]
fn endpoints_support_ipv6() {
    let _alone = alone();
    if UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED endpoints_support_ipv6: this machine has no ::1");
        return;
    }
    let clock = Clock::start();
    let world = World::at("[::1]:0", clock, 1, Service::default());
    let sent = world.send(r#"{"scheme": "cubic"}"#, 200);
    std::thread::sleep(Duration::from_millis(20));
    let got = world.stop();
    assert!((sent.stats.acked_packets..=sent.stats.sent_packets).contains(&got.received.packets));
}

#[test]
fn a_flood_of_foreign_datagrams_disturbs_no_flow() {
    let _alone = alone();
    // If the receiver has no time to read them, the kernel drops some datagrams of either kind: try again.
    assert!((0..3).any(|_| flooded()), "datagrams were dropped or miscounted three times");
}

/// Send under a flood; true if all data arrived, and all datagrams of the flood were rejected.
fn flooded() -> bool {
    let world = World::serving(1);
    let address = world.address;
    let (over, thrown) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let flood = std::thread::spawn({
        let (over, thrown) = (over.clone(), thrown.clone());
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(address).unwrap();
            let mut rng = Rng::stream(3, "flood", 0);
            while !over.load(Ordering::Relaxed) {
                // Datagrams of another flow, most of them damaged.
                let (mut input, size) = (Vec::new(), 60 + rng.below(200) as u32);
                let packet = Packet { number: rng.next_u64() >> 40, size, ..Packet::default() };
                encode_packet(&mut input, Token(rng.next_u64().into()), &packet, 28);
                let at = rng.below(input.len() as u64) as usize;
                input[at] = rng.next_u64() as u8;
                thrown.fetch_add(u64::from(socket.send(&input).is_ok()), Ordering::Relaxed);
            }
        }
    });
    let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 10}, "profile": "udp"}"#;
    let sent = world.send(flow, 1500);
    over.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    // A busy machine reads the rest of the flood late.
    std::thread::sleep(Duration::from_millis(500));
    let got = world.stop();
    let thrown = thrown.load(Ordering::Relaxed);
    assert!(thrown > 10_000, "a flood of {thrown}");
    let arrived = got.received.packets;
    assert_eq!(arrived + got.rejected + got.overflowed, sent.stats.sent_packets + thrown, "everything is counted");
    assert_eq!(sent.rejected, 0, "and none of it answered toward us");
    arrived == sent.stats.sent_packets && got.overflowed == 0 && got.rejected == thrown
}

#[test]
fn handshakes_have_deadlines_and_explain_failures() {
    let begun = Instant::now();
    let spec = spec(r#"{"scheme": "cubic"}"#);
    let wait = Duration::from_millis(350);
    // This socket never answers.
    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = mute.local_addr().unwrap();
    let error = open(peer, &spec, wait).unwrap_err();
    assert_eq!((&*error.code, error.place), ("no-answer", format!("handshake with {peer}")));
    // There is no socket.
    drop(mute);
    let error = open(peer, &spec, wait).unwrap_err();
    assert_eq!(error.code, "no-answer", "{error}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    // This receiver has served one flow, and serves no more.
    let world = World::serving(1);
    let _first = world.open(&spec, wait).unwrap();
    let sent = world.send(r#"{"scheme": "cubic"}"#, 20);
    assert!(sent.stats.acked_packets > 0, "a handshake alone holds no place: {:?}", sent.stats);
    let error = world.open(&spec, wait).unwrap_err();
    assert_eq!(error.code, "receiver-refuses", "{error}");
    assert_eq!(world.stop().rejected, 1);
}

#[test]
fn a_restarted_receiver_serves_only_new_flows() {
    let _alone = alone();
    let clock = Clock::start();
    let first = World::serving(1);
    let address = first.address;
    let (old, new) = std::thread::scope(|scope| {
        let old = scope.spawn(|| {
            let flow = r#"{"scheme": "fixed_rate", "params": {"rate_mbps": 5}, "profile": "udp"}"#;
            send(address, flow, clock, 900)
        });
        std::thread::sleep(Duration::from_millis(200));
        let before = first.stop();
        assert!(before.received.packets > 10);
        let second = World::at(&address.to_string(), clock, 1, Service::default());
        let new = send(address, r#"{"scheme": "cubic"}"#, clock, 300);
        let old = old.join().unwrap();
        let got = second.stop();
        assert!(got.rejected > 10, "the old flow's datagrams are foreign now: {got:?}");
        assert!((new.stats.acked_packets..=new.stats.sent_packets).contains(&got.received.packets));
        (old, new)
    });
    assert!(old.stats.acked_packets + 10 < old.stats.sent_packets, "{:?}", old.stats);
    assert!(new.stats.acked_packets > 100, "{:?}", new.stats);
}

/// Forward datagrams in both directions; drop every `nth` one of the uplink, except Hellos.
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
            let counts = !matches!(decode(&room[..length], 28), Ok((_, Message::Hello(_))));
            count += u64::from(counts);
            if counts && count % nth == 0 {
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
    let world = World::serving(1);
    let (address, halt, proxy) = lossy(world.address, 10);
    let flow = r#"{"scheme": "fixed_window", "params": {"cwnd": 20}, "source": {"kind": "bytes", "bytes": 1000000}}"#;
    let sent = send(address, flow, world.clock, 2000);
    halt.store(true, Ordering::Relaxed);
    let dropped = proxy.join().unwrap();
    let got = world.stop();
    assert!(sent.finished.is_set(), "{:?}", sent.stats);
    assert_eq!(got.received.unique_bytes, 1_000_000);
    assert!(dropped > 50 && sent.stats.retransmissions >= dropped - 1, "{dropped} dropped: {:?}", sent.stats);
}

#[test]
fn an_exported_policy_decides_natively() {
    let _alone = alone();
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/aurora");
    let onnx = std::fs::read(agent.join("policy.onnx")).unwrap();
    let card = std::fs::read_to_string(agent.join("card.json")).unwrap();
    let policy = ccgym_schemes::learned::Policy::load(&onnx, &card).unwrap();
    let mut resources = Resources::default();
    resources.policies.insert("aurora".into(), policy);
    let spec = spec(r#"{"scheme": "learned", "params": {"policy": "aurora"}, "profile": "udp"}"#);
    let world = World::serving(1);
    let sent = world.open(&spec, SECOND).unwrap().run(task(spec, &resources, world.clock, 2000)).unwrap();
    let got = world.stop();
    assert!(got.received.packets > 50, "{:?}", sent.stats);
    let rates = &sent.series.pacing_bps;
    assert!(rates.iter().any(|&r| r != rates[0]), "it decided: {rates:?}");
}

#[test]
fn halting_ends_both_at_once() {
    let world = World::serving(1);
    let spec = spec(r#"{"scheme": "cubic", "source": {"kind": "rate", "rate": 8000}}"#);
    let connection = world.open(&spec, SECOND).unwrap();
    let task = task(spec, &Resources::default(), world.clock, 60_000);
    let halt = task.halt.clone();
    let thread = std::thread::spawn(move || connection.run(task));
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    halt.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
    world.stop();
    assert!(begun.elapsed() < Duration::from_millis(500));
}

/// Answer each interval with the same action until the flow ends. Return the number of intervals that awaited one.
fn decide(stream: UnixStream) -> usize {
    let (mut environment, mut answered) = (Environment::on(stream), 0);
    while environment.ended.is_none() {
        environment.read();
        if environment.intervals.len() > answered {
            answered = environment.intervals.len();
            environment.act(1.0);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    answered
}

#[test]
fn an_environment_may_decide() {
    let _alone = alone();
    let world = World::serving(1);
    let (agent, run) = (steer::agent(), steer::scenario(1000));
    let resources = Resources { agent: Some(FlowAgent::new(Arc::new(agent.clone()))), ..Resources::default() };
    let mut task = task(run.flows[0].clone(), &resources, world.clock, 350);
    task.step = TimeSpan::from_millis(10);
    let (near, far) = UnixStream::pair().unwrap();
    let environment = std::thread::spawn(move || decide(near));
    let truth = LiveGroundTruth::of(&run, None);
    let connection = AgentConnection { flow: 0, agent: &agent, truth, halt: task.halt.clone() };
    task.steering = Some(Steering::over(far, connection).unwrap());
    let sent = world.open(&task.spec, SECOND).unwrap().run(task).unwrap();
    world.stop();
    let asked = environment.join().unwrap();
    assert!(asked >= 5, "{asked}");
    // Each answer multiplies the rate by 1.05.
    let rates = &sent.series.pacing_bps;
    assert!(rates.is_sorted() && rates.last() > rates.first(), "{rates:?}");
}
