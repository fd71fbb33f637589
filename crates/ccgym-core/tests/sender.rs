//! Tests of sender and receiver together, without a path: packets, times, and the algorithm's events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use ccgym_core::congestion_control::{Capabilities, SentEvent, TimeoutEvent};
use ccgym_core::congestion_control::{ReceivedEvent, ReceiverSide};
use ccgym_core::feedback::Arrived;
use ccgym_core::packet::AckRange;
use ccgym_core::{
    Ack, AckEvent, CongestionControl, Control, Ecn, Feedback, FeedbackHost, FeedbackReceiver, InitContext, Packet,
    Rate, Receiver, ReceiverConfig, Rng, Sender, SenderConfig, TimeSpan, Timestamp,
};

/// Events that the algorithm received, and its answers.
struct Script {
    control: Control,
    quantum: u64,
    log: Vec<String>,
}

#[derive(Clone)]
struct Scripted(Arc<Mutex<Script>>, Capabilities);

impl CongestionControl for Scripted {
    fn capabilities(&self) -> Capabilities {
        self.1
    }
    fn init(&mut self, _context: InitContext) {}
    fn on_ack(&mut self, e: &AckEvent<'_>) {
        self.0.lock().unwrap().log.push(format!(
            "ack {} lost {:?} in_flight {} entered {} in {} marked {}",
            e.acked_packets,
            e.lost.iter().map(|l| l.number).collect::<Vec<_>>(),
            e.in_flight / SIZE,
            e.entered_recovery,
            e.in_recovery,
            e.ce_packets,
        ));
    }
    fn on_timeout(&mut self, e: &TimeoutEvent<'_>) {
        self.0.lock().unwrap().log.push(format!("timeout {} lost {}", e.count, e.lost.len()));
    }
    fn on_spurious_loss(&mut self, _e: &ccgym_core::congestion_control::SpuriousLossEvent) {
        self.0.lock().unwrap().log.push("spurious".into());
    }
    fn control(&self) -> Control {
        self.0.lock().unwrap().control
    }
    fn send_quantum(&self) -> u64 {
        self.0.lock().unwrap().quantum
    }
}

const SIZE: u64 = 1500;

fn pair(config: SenderConfig, capabilities: Capabilities) -> (Sender, Receiver, Arc<Mutex<Script>>) {
    pair_under(config, capabilities, Control::window(10 * SIZE))
}

fn pair_under(
    config: SenderConfig,
    capabilities: Capabilities,
    control: Control,
) -> (Sender, Receiver, Arc<Mutex<Script>>) {
    let script = Arc::new(Mutex::new(Script { control, quantum: 0, log: Vec::new() }));
    let context = InitContext {
        now: Timestamp::ZERO,
        mss: SIZE,
        initial_window: 10 * SIZE,
        flow: 0,
        rng: Rng::stream(1, "test", 0),
        path: None,
    };
    let mut sender = Sender::new(config, Box::new(Scripted(script.clone(), capabilities)), context);
    sender.write(1_000_000);
    (sender, Receiver::new(ReceiverConfig::default()), script)
}

fn drain(sender: &mut Sender, now: Timestamp) -> Vec<Packet> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

fn deliver(receiver: &mut Receiver, now: Timestamp, packet: &Packet) -> Ack {
    receiver.on_data(now, packet).1.expect("each packet is acknowledged")
}

const fn ms(v: u64) -> Timestamp {
    Timestamp::from_millis(v)
}

fn last(script: &Arc<Mutex<Script>>) -> String {
    script.lock().unwrap().log.last().cloned().unwrap_or_default()
}

/// Make a TCP sender whose handshake is over.
const fn established() -> SenderConfig {
    let mut config = SenderConfig::tcp(0, 1500);
    config.handshake_size = 0;
    config
}

/// The handshake costs a round trip, gives the first sample, and is repeated after 1 s, then 2 s (RFC 6298 §2).
#[test]
fn handshake_before_data() {
    let (mut sender, mut receiver, _) = pair(SenderConfig::tcp(0, 1500), Capabilities::default());
    assert_eq!(drain(&mut sender, ms(0)).len(), 1, "the handshake, lost");
    assert_eq!(sender.next_timeout(), ms(1000));
    sender.on_timeout(ms(1000));
    assert_eq!(drain(&mut sender, ms(1000)).len(), 1);
    assert_eq!(sender.next_timeout(), ms(3000));
    sender.on_timeout(ms(3000));
    let again = drain(&mut sender, ms(3000));
    let ack = deliver(&mut receiver, ms(3050), &again[0]);
    sender.on_ack(ms(3100), &ack);
    assert_eq!(sender.rtt().samples(), 0, "ambiguous");
    assert_eq!(drain(&mut sender, ms(3100)).len(), 10);
    assert_eq!(receiver.segments_in_order(), 0);
    // Data wait as long as an RTT above 1 s may take: before 3 s (RFC 6298 §5.7) only the tail loss probe is sent (RFC
    // 8985 §7.2).
    sender.on_timeout(ms(6099));
    assert_eq!((sender.stats().rtos, drain(&mut sender, ms(6099)).len()), (0, 1));

    let (mut sender, mut receiver, _) = pair(SenderConfig::tcp(0, 1500), Capabilities::default());
    let first = drain(&mut sender, ms(0));
    assert_eq!((first.len(), first[0].size), (1, 60));
    let ack = deliver(&mut receiver, ms(50), &first[0]);
    sender.on_ack(ms(100), &ack);
    assert_eq!((sender.rtt().samples(), sender.rtt().min()), (1, TimeSpan::from_millis(100)));
    let flight = drain(&mut sender, ms(100));
    assert_eq!((flight.len(), flight[0].number, flight[0].segment), (10, 0, 0));
}

/// A gap is a loss once three later packets arrived (RFC 6675); one episode, ended when the hole is filled.
#[test]
fn fast_recovery_from_one_loss() {
    let (mut sender, mut receiver, script) = pair(established(), Capabilities::default());
    let flight = drain(&mut sender, ms(0));
    assert_eq!(flight.len(), 10);
    let mut again = Vec::new();
    for (i, packet) in flight.iter().enumerate().filter(|(i, _)| *i != 2) {
        let ack = deliver(&mut receiver, ms(50), packet);
        sender.on_ack(ms(100) + TimeSpan(i as u64), &ack);
        again.extend(drain(&mut sender, ms(100) + TimeSpan(i as u64)));
    }
    let lost: Vec<_> = again.iter().filter(|p| p.retransmission).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].segment, 2);
    assert!(lost[0].number >= 10, "a retransmission has a number of its own");
    let entered = script.lock().unwrap().log.iter().filter(|l| l.contains("entered true")).count();
    assert_eq!(entered, 1);
    assert!(sender.in_recovery());
    for packet in &again {
        let ack = deliver(&mut receiver, ms(150), packet);
        sender.on_ack(ms(200), &ack);
    }
    assert!(!sender.in_recovery());
    assert_eq!(sender.stats().recoveries, 1);
    assert_eq!(receiver.segments_in_order(), 10 + again.len() as u64 - 1);
}

/// A segment that is lost a second time is sent before those that wait for their first retransmission (RFC 6675 §4,
/// NextSeg rule 1): else the cumulative acknowledgement does not advance until all of those have left.
#[test]
fn the_lowest_segment_is_sent_again_first() {
    let capabilities = Capabilities { prr: true, ..Capabilities::default() };
    let (mut sender, mut receiver, _) = pair_under(established(), capabilities, Control::window(64 * SIZE));
    let flight = drain(&mut sender, ms(0));
    assert_eq!(flight.len(), 64);
    // Of 64 packets the last 8 arrive, and of the retransmissions the first is lost.
    let mut arriving: VecDeque<(Timestamp, Packet)> = flight[56..].iter().map(|packet| (ms(50), *packet)).collect();
    let (mut lost, mut order) = (false, Vec::new());
    while let Some((at, packet)) = arriving.pop_front() {
        let ack = deliver(&mut receiver, at, &packet);
        let back = at + TimeSpan::from_millis(50);
        sender.on_ack(back, &ack);
        for again in drain(&mut sender, back).into_iter().filter(|packet| packet.retransmission) {
            order.push(again.segment);
            if again.segment == 0 && !lost {
                lost = true;
            } else {
                arriving.push_back((back + TimeSpan::from_millis(50), again));
            }
        }
    }
    let second = order.iter().skip(1).position(|&segment| segment == 0).map(|place| place + 1);
    assert!(second.is_some_and(|place| place < 30), "{order:?}");
}

/// All packets lost: a probe after two RTTs, then a timeout that presumes all lost (RFC 8985 §7, RFC 6298). Datagrams:
/// the first packets sent since an episode began end it, and a loss among those sent before that is detected only after
/// it does not begin another (RFC 9002 §7.3.2).
#[test]
fn losses_from_before_an_episode_belong_to_it() {
    let (mut sender, mut receiver, script) = pair(SenderConfig::udp(0, 1500), Capabilities::default());
    let first = drain(&mut sender, ms(0));
    let mut arrive = |sender: &mut Sender, at: u64, packet: &Packet| {
        let ack = deliver(&mut receiver, ms(at), packet);
        sender.on_ack(ms(at + 20), &ack);
        u32::from(last(&script).contains("entered true"))
    };
    let mut entered = 0;
    let mut second = Vec::new();
    // The first and the last are lost.
    for packet in &first[1..9] {
        entered += arrive(&mut sender, 20, packet);
        second.extend(drain(&mut sender, ms(40)));
    }
    assert!(sender.in_recovery() && second.len() > 4);
    for packet in &second {
        entered += arrive(&mut sender, 60, packet);
    }
    assert!(!sender.in_recovery());
    assert_eq!((sender.stats().lost_packets, entered), (2, 1));
}

#[test]
fn blackout_probes_then_times_out_and_recovers() {
    let (mut sender, mut receiver, script) = pair(established(), Capabilities::default());
    for packet in drain(&mut sender, ms(0)) {
        let ack = deliver(&mut receiver, ms(50), &packet);
        sender.on_ack(ms(100), &ack);
    }
    assert_eq!(drain(&mut sender, ms(100)).len(), 10);
    let probe_at = sender.next_timeout();
    assert_eq!(probe_at, ms(100 + 2 * 100 + 2));
    sender.on_timeout(probe_at);
    assert_eq!(drain(&mut sender, probe_at).len(), 1, "the probe ignores the window");
    let expiry = sender.next_timeout();
    sender.on_timeout(expiry);
    assert_eq!(last(&script), "timeout 1 lost 11");
    assert_eq!(sender.in_flight(), 0);
    let second = {
        let packets = drain(&mut sender, expiry);
        assert_eq!(packets[0].segment, 10, "the oldest segment goes first");
        sender.next_timeout()
    };
    assert!(second.since(expiry) > expiry.since(probe_at), "the timeout backs off");
    for packet in drain(&mut sender, second) {
        let ack = deliver(&mut receiver, second, &packet);
        sender.on_ack(second, &ack);
    }
}

/// A flow limited only by pacing continues to send in a blackout: its packets do not delay the timers.
#[test]
fn timers_fire_while_packets_leave() {
    for config in [established(), SenderConfig::udp(0, 1500)] {
        let control = Control { cwnd: u64::MAX, pacing_rate: Rate::from_mbps(1.2) };
        let (mut sender, mut receiver, script) = pair_under(config, Capabilities::default(), control);
        let mut delivered = 0;
        for now in (0..3_000).map(ms) {
            sender.on_timeout(now);
            for packet in drain(&mut sender, now) {
                // The path is gone after half a second, with round trips of 100 ms.
                if now < ms(500) {
                    delivered = packet.number;
                    let ack = deliver(&mut receiver, now, &packet);
                    sender.on_ack(now, &ack);
                }
            }
        }
        let stats = sender.stats();
        assert!(stats.rtos >= 1 && stats.sent_packets > delivered + 150, "{stats:?}");
        assert!(sender.in_flight() < 250 * SIZE && last(&script).starts_with("timeout"), "{}", sender.in_flight());
    }
}

/// An acknowledgement of packets that were never sent (RFC 9293 §3.10.7.4) is dropped.
#[test]
fn acknowledgements_of_unsent_packets_are_dropped() {
    let (mut sender, mut receiver, script) = pair(SenderConfig::udp(0, 1500), Capabilities::default());
    let flight = drain(&mut sender, ms(0));
    for number in [10, 11, 1 << 40, u64::MAX - 1] {
        for first in [0, 5, number] {
            let mut forged = Ack::new(number, &Packet { number, ..Packet::default() }, ms(20), 52);
            forged.push_range(AckRange { first, last: number });
            sender.on_ack(ms(30), &forged);
        }
    }
    assert_eq!((sender.in_flight(), last(&script).as_str()), (10 * SIZE, ""));
    let ack = deliver(&mut receiver, ms(20), &flight[0]);
    sender.on_ack(ms(40), &ack);
    assert_eq!((sender.in_flight(), sender.stats().acked_packets), (9 * SIZE, 1));
}

/// Marks are counted by a running total; an overtaken acknowledgement has an older one.
#[test]
fn an_overtaken_acknowledgement_keeps_the_marks() {
    let (mut sender, mut receiver, script) = pair(SenderConfig::udp(0, 1500), Capabilities::default());
    let flight = drain(&mut sender, ms(0));
    let mut arrive = |i: usize, ecn| deliver(&mut receiver, ms(20), &Packet { ecn, ..flight[i] });
    // Packet 1 comes last, so that the acknowledgements before it leave a hole.
    let acks = [arrive(0, Ecn::Ce), arrive(2, Ecn::Ce), arrive(3, Ecn::Ce), arrive(1, Ecn::NotEct)];
    let marks: Vec<String> = [0, 2, 1, 3]
        .iter()
        .map(|&i| {
            sender.on_ack(ms(40), &acks[i]);
            last(&script).rsplit(' ').next().unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(marks, ["1", "2", "0", "0"]);
}

/// Packets that arrive after they were declared lost refute the episode (RFC 9438 §4.9), and raise the threshold.
#[test]
fn reordering_is_detected() {
    let (mut sender, mut receiver, script) = pair(SenderConfig::udp(0, 1500), Capabilities::default());
    let flight = drain(&mut sender, ms(0));
    for i in [0usize, 2, 3, 4] {
        let ack = deliver(&mut receiver, ms(50), &flight[i]);
        sender.on_ack(ms(100), &ack);
    }
    assert!(last(&script).contains("lost [1]"));
    let ack = deliver(&mut receiver, ms(51), &flight[1]);
    sender.on_ack(ms(101), &ack);
    assert!(script.lock().unwrap().log.contains(&"spurious".to_string()));
    assert!(!sender.in_recovery());
    assert_eq!(sender.stats().spurious_losses, 1);
}

/// The RTT jumps from 40 ms to 2 s: the timer fires several times, then the first packet of the flight arrives. All of
/// it is in flight again, nothing more is sent again, and a packet that is really missing is detected as lost.
#[test]
fn a_spurious_timeout_is_withdrawn() {
    for config in [established(), SenderConfig::udp(0, 1500)] {
        let (mut sender, mut receiver, script) = pair(config, Capabilities::default());
        let mut warm_up = drain(&mut sender, ms(0));
        for round in 1..=4 {
            let acks: Vec<_> = warm_up.iter().map(|p| deliver(&mut receiver, ms(40 * round - 20), p)).collect();
            acks.iter().for_each(|ack| sender.on_ack(ms(40 * round), ack));
            warm_up = drain(&mut sender, ms(40 * round));
        }
        let flight = warm_up;
        let mut copies = Vec::new();
        loop {
            let due = sender.next_timeout();
            if due >= ms(2_160) {
                break;
            }
            sender.on_timeout(due);
            copies.extend(drain(&mut sender, due));
        }
        let timeouts = sender.stats().rtos;
        assert!(timeouts >= 2, "{:?}", sender.stats());
        let counted = sender.in_flight() / SIZE;
        // The first of the flight is really lost.
        let acks: Vec<_> = flight[1..].iter().map(|p| deliver(&mut receiver, ms(1_160), p)).collect();
        sender.on_ack(ms(2_160), &acks[0]);
        let log = script.lock().unwrap().log.clone();
        assert_eq!(log[log.len() - 2], "spurious", "{log:?}");
        // Packets sent since the first timeout that have timed out, too, stay lost.
        let back = flight.len() as u64 + sender.stats().probes;
        let in_flight = format!("ack 1 lost [] in_flight {}", counted + back - 1);
        assert!(last(&script).starts_with(&in_flight), "{log:?}");
        assert!(!sender.in_recovery());
        let stats = *sender.stats();
        assert_eq!(stats.spurious_losses, back, "{stats:?}");
        assert!(drain(&mut sender, ms(2_160)).is_empty(), "the window is full of what is under way");
        acks[1..].iter().for_each(|ack| sender.on_ack(ms(2_161), ack));
        assert_eq!((sender.stats().rtos, sender.stats().lost_packets), (timeouts, stats.lost_packets + 1));
        assert!(sender.in_recovery());
        let found = script.lock().unwrap().log.iter().filter(|line| line.as_str() == "spurious").count();
        assert_eq!(found, 1);
    }
}

/// A correct timeout stays: the first arrival is the packet sent after it, and a late one changes nothing.
#[test]
fn a_timeout_that_was_right_stays() {
    let (mut sender, mut receiver, script) = pair(established(), Capabilities::default());
    let flight = drain(&mut sender, ms(0));
    let due = std::iter::from_fn(|| {
        let due = sender.next_timeout();
        sender.on_timeout(due);
        Some((due, sender.stats().rtos))
    });
    let (now, _) = due.take(10).find(|&(_, rtos)| rtos == 1).expect("the timer fires");
    let again = drain(&mut sender, now);
    for packet in [&again[0], &flight[3]] {
        let ack = deliver(&mut receiver, now + TimeSpan::from_millis(20), packet);
        sender.on_ack(now + TimeSpan::from_millis(40), &ack);
    }
    assert!(sender.in_recovery() && !script.lock().unwrap().log.contains(&"spurious".to_string()));
}

/// The pacing rate holds over a second, with and without a send quantum.
#[test]
fn pacing_holds_the_rate() {
    for quantum in [0, 6000] {
        let capabilities = Capabilities { prr: false, ..Capabilities::default() };
        let control = Control { pacing_rate: Rate(12_000_000), ..Control::window(u64::MAX) };
        let (mut sender, _, script) = pair_under(SenderConfig::udp(0, 1500), capabilities, control);
        script.lock().unwrap().quantum = quantum;
        let mut now = Timestamp::ZERO;
        let mut sent = 0;
        while now < ms(1000) {
            sent += drain(&mut sender, now).len();
            now = sender.next_timeout();
        }
        assert!((999..=1004).contains(&sent), "quantum {quantum}: {sent} packets in a second at 1000 packets/s");
    }
}

/// A flow whose packets were all lost in recovery still has a packet to send: it never waits with nothing in flight.
#[test]
fn recovery_never_waits_with_nothing_in_flight() {
    let (mut sender, mut receiver, _) = pair(established(), Capabilities::default());
    let mut now = ms(0);
    let mut arrivals = 0u64;
    let mut pending: Vec<(Timestamp, Ack)> = Vec::new();
    // Two of three packets are lost, for two minutes.
    while now < Timestamp::from_millis(120_000) {
        for packet in drain(&mut sender, now) {
            if packet.number % 3 == 0 {
                arrivals += 1;
                pending.push((now + TimeSpan::from_millis(40), deliver(&mut receiver, now, &packet)));
            }
        }
        let next = pending.first().map_or(Timestamp::NEVER, |p| p.0).min(sender.next_timeout());
        assert!(next.is_set(), "nothing in flight, nothing due: {:?}", sender.stats());
        now = next;
        if pending.first().is_some_and(|p| p.0 <= now) {
            let (_, ack) = pending.remove(0);
            sender.on_ack(now, &ack);
        } else {
            sender.on_timeout(now);
        }
    }
    assert!(arrivals > 100, "{arrivals}");
}

/// Feedback every 20 ms, with the number of packets that have arrived.
#[derive(Clone, Default)]
struct EveryTick {
    due: Timestamp,
    arrived: u8,
}

impl FeedbackReceiver for EveryTick {
    fn start(&mut self, now: Timestamp, mss: u64) {
        assert_eq!(mss, SIZE);
        self.due = now + TimeSpan::from_millis(20);
    }
    fn on_data(&mut self, event: &ReceivedEvent) {
        assert_eq!(u64::from(event.header), event.number + 100, "what the scheme wrote into the packet");
        self.arrived += 1;
    }
    fn next_feedback(&self) -> Timestamp {
        self.due
    }
    fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>) {
        self.due = now + TimeSpan::from_millis(20);
        message.push(self.arrived);
    }
}

/// A scheme with a receiver, and the events of both.
#[derive(Clone, Default)]
struct WithReceiver {
    sent: u64,
    log: Arc<Mutex<Vec<String>>>,
}

impl CongestionControl for WithReceiver {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, prr: false, ..Capabilities::default() }
    }
    fn init(&mut self, _context: InitContext) {}
    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        Some(self)
    }
    fn on_packet_sent(&mut self, e: &SentEvent) {
        assert_eq!(e.more, e.number < 9, "ten segments are written");
        self.sent = e.number + 1;
    }
    fn on_ack(&mut self, e: &AckEvent<'_>) {
        let acked: Vec<_> = e.acked.iter().map(|p| (p.number, p.received.map(|at| at.as_millis()))).collect();
        let lost: Vec<_> = e.lost.iter().map(|p| p.number).collect();
        let rtt = e.rtt_sample.map_or(0.0, TimeSpan::as_millis_f64);
        self.log.lock().unwrap().push(format!("{} acked {acked:?} lost {lost:?} rtt {rtt}", e.now.as_millis()));
    }
    fn on_timeout(&mut self, _e: &TimeoutEvent<'_>) {}
    fn control(&self) -> Control {
        Control::window(10 * SIZE)
    }
}

impl ReceiverSide for WithReceiver {
    fn receiver(&self) -> Box<dyn FeedbackReceiver> {
        Box::new(EveryTick::default())
    }
    fn header(&self) -> u32 {
        self.sent as u32 + 99
    }
    fn on_message(&mut self, now: Timestamp, message: &[u8]) {
        self.log.lock().unwrap().push(format!("{} message {message:?}", now.as_millis()));
    }
}

/// Of ten packets, sent at once, number 2 is lost, and 7 overtakes 6. The first feedback is lost: the second
/// acknowledges its packets, without the times of arrival. The third comes in silence.
#[test]
fn thinned_feedback_survives_loss() {
    let mut scheme = WithReceiver::default();
    let log = scheme.log.clone();
    let context = InitContext {
        now: Timestamp::ZERO,
        mss: SIZE,
        initial_window: 10 * SIZE,
        flow: 0,
        rng: Rng::stream(1, "test", 0),
        path: None,
    };
    let half = scheme.receiver_side().unwrap().receiver();
    let mut sender = Sender::new(SenderConfig::udp(0, 1500), Box::new(scheme), context);
    sender.write(10);
    let mut receiver = Receiver::new(ReceiverConfig { reliable: false, ..ReceiverConfig::default() });
    let mut host = FeedbackHost::new(half, SIZE);
    let flight = drain(&mut sender, ms(0));
    assert_eq!(flight.len(), 10);
    for (time, number) in [(10, 0), (11, 1), (13, 3), (14, 4), (15, 5)] {
        assert!(host.on_data(&mut receiver, ms(time), &flight[number]).1.is_none());
    }
    let lost = host.on_timeout(&receiver, ms(30)).unwrap();
    assert_eq!(lost.arrivals.len(), 5);
    for (time, number) in [(32, 7), (33, 6), (34, 8), (35, 9)] {
        assert!(host.on_data(&mut receiver, ms(time), &flight[number]).1.is_none());
    }
    for (leaves, arrives) in [(50, 60), (70, 80)] {
        assert_eq!(host.next_timeout(), ms(leaves));
        sender.on_feedback(ms(arrives), &host.on_timeout(&receiver, ms(leaves)).unwrap());
    }
    // A late one has no news.
    sender.on_feedback(ms(90), &lost);
    assert_eq!(
        *log.lock().unwrap(),
        [
            "60 message [9]",
            "60 acked [(0, None), (1, None), (3, None), (4, None), (5, None), (6, Some(33)), (7, Some(32)), (8, Some(34)), \
             (9, Some(35))] lost [2] rtt 60",
            "80 message [9]",
            "90 message [5]",
        ]
    );
    // The delay at the receiver is known: it does not count as delay of the path.
    assert_eq!(sender.rtt().min(), TimeSpan::from_millis(60));
    assert_eq!((sender.stats().acked_packets, sender.stats().lost_packets, sender.in_flight()), (9, 1, 0));
    // Packets that were never sent cannot have arrived.
    let before = log.lock().unwrap().len();
    for impossible in [
        Feedback { ranges: vec![AckRange { first: 10, last: 10 }], message: vec![1], ..Feedback::default() },
        Feedback { arrivals: vec![Arrived { number: 10, at: ms(1) }], message: vec![1], ..Feedback::default() },
    ] {
        sender.on_feedback(ms(95), &impossible);
    }
    assert_eq!(log.lock().unwrap().len(), before);
}

/// Make a sender of ns-3, its handshake over, with a window of ten packets.
fn ns3() -> (Sender, Receiver, Arc<Mutex<Script>>) {
    let mut config = SenderConfig::ns3(0, 1500);
    config.handshake_size = 0;
    pair(config, Capabilities { prr: true, ..Capabilities::default() })
}

/// Acknowledge all `packets` except the segments in `lost`, a millisecond apart from `at` on; returns the packets sent.
fn acknowledge(sender: &mut Sender, receiver: &mut Receiver, packets: &[Packet], lost: &[u64], at: u64) -> Vec<Packet> {
    let arriving: Vec<_> = packets.iter().filter(|packet| !lost.contains(&packet.segment)).collect();
    let mut left = Vec::new();
    for (place, packet) in arriving.into_iter().enumerate() {
        let now = ms(at + place as u64);
        let ack = deliver(receiver, now, packet);
        sender.on_ack(now, &ack);
        left.extend(drain(sender, now));
    }
    left
}

fn resent(packets: &[Packet]) -> Vec<u64> {
    packets.iter().filter(|packet| packet.retransmission).map(|packet| packet.segment).collect()
}

/// In ns-3 only a timeout, of at least a second, detects the loss of a retransmission, for any number of later
/// arrivals; the other profile detects it by those.
#[test]
fn ns3_finds_a_lost_retransmission_by_a_timeout() {
    let tcp = Capabilities { prr: true, ..Capabilities::default() };
    for (name, (mut sender, mut receiver, _)) in [("ns3", ns3()), ("tcp", pair(established(), tcp))] {
        let flight = drain(&mut sender, ms(0));
        let mut left = acknowledge(&mut sender, &mut receiver, &flight, &[2], 100);
        assert_eq!(resent(&left), [2], "{name}");
        let mut again = Vec::new();
        for round in 2..5 {
            left = acknowledge(&mut sender, &mut receiver, &left, &[2], 100 * round);
            assert!(!left.is_empty(), "{name}: new data leave all the while");
            again.extend(resent(&left));
        }
        assert_eq!(again.is_empty(), name == "ns3", "{again:?}");
        assert_eq!(sender.stats().rtos, 0);
        if name == "ns3" {
            // The cumulative acknowledgement advanced last at 101 ms.
            assert_eq!(sender.next_timeout(), ms(1101));
            sender.on_timeout(ms(1101));
            assert_eq!((sender.stats().rtos, sender.in_flight()), (1, 0));
            assert_eq!(resent(&drain(&mut sender, ms(1101)))[..1], [2]);
        }
    }
}

/// Losses are detected by segment, not by packet number: retransmissions do not make older packets look late.
#[test]
fn ns3_counts_later_segments() {
    let (mut sender, mut receiver, _) = ns3();
    let flight = drain(&mut sender, ms(0));
    let left = acknowledge(&mut sender, &mut receiver, &flight, &[0, 7], 100);
    // Two segments are above the seventh: not lost.
    assert_eq!(resent(&left), [0]);
    let left = acknowledge(&mut sender, &mut receiver, &left, &[], 200);
    assert_eq!(resent(&left), [7], "{left:?}");
}

/// Losses within a recovery begin another one, and a further reduction, after it.
#[test]
fn ns3_reduces_again_for_losses_within_a_recovery() {
    let (mut sender, mut receiver, script) = ns3();
    let mut left = drain(&mut sender, ms(0));
    for (round, lost) in [&[1][..], &[14, 15], &[], &[], &[]].into_iter().enumerate() {
        left = acknowledge(&mut sender, &mut receiver, &left, lost, 100 * (round as u64 + 1));
    }
    let log = script.lock().unwrap().log.clone();
    let entered = log.iter().filter(|line| line.contains("entered true")).count();
    assert_eq!((entered, sender.stats().recoveries, sender.stats().rtos), (2, 2, 0), "{log:?}");
}

/// A partial acknowledgement lets the segment that it uncovers leave at once, at any window.
#[test]
fn ns3_sends_what_a_partial_acknowledgement_uncovers() {
    let (mut sender, mut receiver, script) = ns3();
    let flight = drain(&mut sender, ms(0));
    // Six of ten are lost: the third duplicate begins recovery.
    let left = acknowledge(&mut sender, &mut receiver, &flight, &[1, 2, 3, 4, 5, 6], 100);
    script.lock().unwrap().control.cwnd = 2 * SIZE;
    let first = resent(&left);
    assert_eq!(first[0], 1);
    let now = ms(200);
    let again = left.iter().find(|packet| packet.segment == 1).expect("it left");
    let ack = deliver(&mut receiver, now, again);
    sender.on_ack(now, &ack);
    let next = drain(&mut sender, now);
    assert!(first.contains(&2) || resent(&next).contains(&2), "{first:?}, then {next:?}");
}

/// After a timeout all packets leave again; arrived ones, nothing missing before them, are no longer in flight.
#[test]
fn ns3_counts_what_is_sent_again_once() {
    let (mut sender, mut receiver, script) = ns3();
    drain(&mut sender, ms(0));
    let mut now = sender.next_timeout();
    sender.on_timeout(now);
    script.lock().unwrap().control.cwnd = 10 * SIZE;
    let mut left = drain(&mut sender, now);
    assert_eq!(resent(&left), (0..10).collect::<Vec<_>>());
    for _ in 0..3 {
        now += TimeSpan::from_millis(100);
        left = acknowledge(&mut sender, &mut receiver, &left, &[], now.as_millis());
        assert_eq!(sender.in_flight(), 10 * SIZE);
    }
}
