//! Every registered scheme with misbehaving receivers: acknowledgements many times over (Savage et al. 1999), of
//! packets in flight, of packets never sent, with impossible clocks, delays and marks. A sender counts no more as
//! delivered than it sent, no window grows out of proportion to the packets in flight, and after the misbehavior the
//! flow continues.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::common::{create, secs, spec, Seen, Watched, MSS};
use crate::hostile::{beyond_bounds, contenders, Contender};
use crate::violations::{judge, About, Finding, Violation};
use ccgym_core::feedback::Arrived;
use ccgym_core::packet::{Ack, AckRange, Packet};
use ccgym_core::{Feedback, FeedbackHost, Receiver, Sender, TimeSpan, Timestamp};
use ccgym_path::{Chain, ElementSpec, Exit, Pipeline};
use ccgym_run::{FlowSpec, RunSpec};
use serde_json::json;

/// Misbehavior of a receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lie {
    None,
    /// Each acknowledgement five times: ACK division, if acknowledgements count packets.
    Divide,
    /// Before each one, others of packets that were never sent.
    Unsent,
    /// Of all packets sent, half an RTT after they left: optimistic acknowledgements hide all losses.
    Optimistic,
    /// Each one again a second later.
    Replay,
    /// Only every hundredth.
    Stretch,
    /// A receiver's clock that jumps between zero, a day, and the end of time.
    Clock,
    /// A delay of four seconds at the receiver.
    Wait,
    /// A thousand new marks each.
    Marks,
}

const LIES: [Lie; 8] =
    [Lie::Divide, Lie::Unsent, Lie::Optimistic, Lie::Replay, Lie::Stretch, Lie::Clock, Lie::Wait, Lie::Marks];

const ONE_WAY: TimeSpan = TimeSpan::from_millis(20);
/// Packets that the path holds: 4 Mbit/s, 40 ms and 40 packets.
const HOLDS: f64 = 13.4 + 40.0;
/// End of the misbehavior, by time and by packet number: a receiver that hides all losses makes slow start continue.
const LIES_END: Timestamp = Timestamp::from_millis(8_000);
const LIED_TO: u64 = 20_000;

/// A sender, a bottleneck, and a receiver that misbehaves for a while.
struct Play {
    sender: Sender,
    receiver: Receiver,
    /// The scheme's receiver, if it has one: it misbehaves in the same way.
    half: Option<FeedbackHost>,
    seen: Arc<Mutex<Seen>>,
    path: Pipeline<Packet>,
    home: VecDeque<(Timestamp, Ack)>,
    replays: VecDeque<(Timestamp, Ack)>,
    feedback: VecDeque<(Timestamp, Feedback)>,
    lie: Lie,
    acks: u64,
    now: Timestamp,
}

impl Play {
    fn new(contender: &Contender, lie: Lie) -> Self {
        let transport = &contender.info.transport;
        let run: RunSpec = spec(json!({
            "duration": secs(60.0), "uplink": [], "downlink": [],
            "flows": [{"scheme": contender.info.name, "params": contender.params, "profile": transport.profile,
                       "mss": transport.mss, "header": transport.header, "initial_window": transport.initial_window,
                       "transport": {"handshake": false}}],
            "facts": {"capacity": [[0, 4_000_000]], "base_rtt": 40_000_000},
        }));
        let flow: &FlowSpec = &run.flows[0];
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut scheme = create(flow).unwrap();
        let context = run.init_context(0, &*scheme);
        let half = scheme.receiver_side().map(|scheme| FeedbackHost::new(scheme.receiver(), context.mss));
        let mut sender = Sender::new(flow.sender_config(0), Box::new(Watched::new(scheme, Arc::clone(&seen))), context);
        sender.write(u64::MAX / 2);
        let elements: Vec<ElementSpec> = serde_json::from_value(json!([
            {"kind": "link", "schedule": {"kind": "rate", "rate": 4_000_000},
             "queue": {"kind": "droptail", "limit": {"packets": 40}}},
            {"kind": "delay", "delay": ONE_WAY},
        ]))
        .unwrap();
        Self {
            sender,
            receiver: Receiver::new(flow.receiver_config()),
            half,
            seen,
            path: Pipeline::new(Chain::new(&elements, 1, 0, &|_| None).unwrap()),
            home: VecDeque::new(),
            replays: VecDeque::new(),
            feedback: VecDeque::new(),
            lie,
            acks: 0,
            now: Timestamp::ZERO,
        }
    }

    /// Return the current misbehavior.
    fn lie(&self) -> Lie {
        if self.now < LIES_END && self.sender.stats().sent_packets < LIED_TO {
            self.lie
        } else {
            Lie::None
        }
    }

    fn run_until(&mut self, until: Timestamp) {
        let mut exits = Vec::new();
        loop {
            while let Some(packet) = self.sender.poll_transmit(self.now) {
                if self.lie() == Lie::Optimistic {
                    let mut ack = Ack::new(packet.number, &packet, self.now, 52);
                    ack.push_range(AckRange { first: 0, last: packet.number });
                    self.home.push_back((self.now + ONE_WAY, ack));
                }
                self.path.enter(self.now, 0, packet.size, packet.ecn, packet);
            }
            let home = self.home.front().map_or(Timestamp::NEVER, |(at, _)| *at);
            let replay = self.replays.front().map_or(Timestamp::NEVER, |(at, _)| *at);
            let feedback = self.feedback.front().map_or(Timestamp::NEVER, |(at, _)| *at);
            let half = self.half.as_ref().map_or(Timestamp::NEVER, FeedbackHost::next_timeout);
            let next = self.path.next_event().min(home).min(replay).min(feedback).min(half);
            let next = next.min(self.sender.next_timeout());
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if self.path.next_event() <= next {
                self.path.advance(next, &mut exits);
                for exit in exits.drain(..) {
                    let Exit::Left { at, packet, ecn } = exit else { continue };
                    let packet = Packet { ecn, ..packet };
                    if let Some(half) = &mut self.half {
                        let (_, feedback) = half.on_data(&mut self.receiver, at, &packet);
                        feedback.into_iter().for_each(|feedback| self.answer_by_feedback(feedback));
                    } else {
                        let (_, ack) = self.receiver.on_data(at, &packet);
                        ack.into_iter().for_each(|ack| self.answer(&ack));
                    }
                }
            } else if half <= next {
                let feedback = self.half.as_mut().and_then(|half| half.on_timeout(&self.receiver, next));
                feedback.into_iter().for_each(|feedback| self.answer_by_feedback(feedback));
            } else if feedback <= next {
                let due = self.feedback.pop_front();
                due.into_iter().for_each(|(at, feedback)| self.sender.on_feedback(at, &feedback));
            } else if home.min(replay) <= next {
                let due = if home <= replay { self.home.pop_front() } else { self.replays.pop_front() };
                due.into_iter().for_each(|(at, ack)| self.sender.on_ack(at, &ack));
            } else {
                self.sender.on_timeout(next);
            }
        }
    }

    /// Send the false acknowledgements for an honest one.
    fn answer(&mut self, honest: &Ack) {
        self.acks += 1;
        let at = self.now + ONE_WAY;
        let mut falsified = *honest;
        match self.lie() {
            Lie::None => {}
            Lie::Divide => self.home.extend([(at, falsified); 4]),
            Lie::Unsent => {
                for number in [honest.largest + 10_000, u64::MAX - 1] {
                    for first in [0, honest.largest, number] {
                        let packet = Packet { number, ..Packet::default() };
                        let mut forged = Ack::new(number, &packet, honest.received, 52);
                        forged.push_range(AckRange { first, last: number });
                        self.home.push_back((at, forged));
                    }
                }
            }
            // The honest ones come too, but too late to have news.
            Lie::Optimistic => {}
            Lie::Replay => self.replays.push_back((at + TimeSpan::from_millis(1000), falsified)),
            Lie::Stretch if self.acks % 100 != 0 => return,
            Lie::Stretch => {}
            Lie::Clock => {
                falsified.received =
                    [Timestamp::ZERO, Timestamp(u64::MAX - 1), Timestamp(secs(86_400.0))][self.acks as usize % 3];
            }
            Lie::Wait => falsified.delay_ns = 4_000_000_000,
            Lie::Marks => falsified.ce_total = (self.acks as u32).wrapping_mul(1000),
        }
        self.home.push_back((at, falsified));
    }

    /// The same with the feedback of a scheme's receiver.
    fn answer_by_feedback(&mut self, mut falsified: Feedback) {
        self.acks += 1;
        let at = self.now + ONE_WAY;
        match self.lie() {
            Lie::None | Lie::Optimistic => {}
            Lie::Divide => self.feedback.extend(std::iter::repeat_n((at, falsified.clone()), 4)),
            Lie::Unsent => {
                for number in [falsified.arrivals.last().map_or(0, |arrived| arrived.number) + 10_000, (1 << 62) - 1] {
                    let mut forged = falsified.clone();
                    if number % 2 == 0 {
                        forged.arrivals.push(Arrived { number, at: falsified.sent });
                    } else {
                        forged.ranges = vec![AckRange { first: 0, last: number }];
                    }
                    // The message must not report more arrivals than packets sent either.
                    forged.message = vec![0xff; forged.message.len()];
                    self.feedback
                        .extend([(at, forged.clone()), (at, Feedback { ranges: vec![], arrivals: vec![], ..forged })]);
                }
            }
            // Late, among newer ones: the message is as old.
            Lie::Replay if self.acks % 50 != 0 => {}
            Lie::Replay => {
                let late = at + TimeSpan::from_millis(1000);
                let place = self.feedback.partition_point(|(at, _)| *at <= late);
                self.feedback.insert(place, (late, falsified.clone()));
            }
            Lie::Stretch if self.acks % 100 != 0 => return,
            Lie::Stretch => {}
            Lie::Clock => {
                falsified.sent =
                    [Timestamp::ZERO, Timestamp(u64::MAX - 1), Timestamp(secs(86_400.0))][self.acks as usize % 3];
                falsified.arrivals.iter_mut().for_each(|arrived| arrived.at = falsified.sent);
            }
            Lie::Wait => falsified.sent += TimeSpan::from_millis(4_000),
            Lie::Marks => falsified.ce_total = (self.acks as u32).wrapping_mul(1000),
        }
        let place = self.feedback.partition_point(|(due, _)| *due <= at);
        self.feedback.insert(place, (at, falsified));
    }
}

/// Return the violations of a flow to a misbehaving receiver.
fn violations(contender: &Contender, lie: Lie) -> Vec<Violation> {
    let mut play = Play::new(contender, lie);
    play.run_until(LIES_END);
    let mut findings = Vec::new();
    let stats = *play.sender.stats();
    if stats.acked_packets > stats.sent_packets || play.sender.in_flight() > stats.sent_bytes {
        findings.push(Finding::nonsense(&format!("more was acknowledged than sent: {stats:?}")));
    }
    // Copies of acknowledgements, and those of packets never sent, change nothing at all.
    if matches!(lie, Lie::Divide | Lie::Unsent) {
        let mut honest = Play::new(contender, Lie::None);
        honest.run_until(LIES_END);
        let [found, expected] = [&play, &honest].map(|p| {
            let s = p.sender.stats();
            (s.sent_packets, s.acked_packets, s.lost_packets, p.sender.control().cwnd)
        });
        if found != expected {
            let text = format!("(sent, acknowledged, lost, cwnd) {found:?}, to an honest receiver {expected:?}");
            findings.push(Finding::nonsense(&text));
        }
    }
    // With an optimistic receiver only the bytes sent bound the flight.
    let holds = if lie == Lie::Optimistic { stats.sent_bytes as f64 / MSS } else { HOLDS };
    let seen = play.seen.lock().unwrap().clone();
    findings.extend(beyond_bounds(&seen, contender, holds));
    // The timers have backed off to at most 26 s.
    play.run_until(Timestamp(secs(40.0)));
    let before = play.sender.stats().acked_packets;
    play.run_until(Timestamp(secs(50.0)));
    let progress = play.sender.stats().acked_packets - before;
    if progress < 300 && !contender.is_tool() {
        let text = format!("{progress} packets acknowledged in 10 s after the lies, expected 300 or more");
        findings.push(Finding { about: About::Progress, found: progress as f64, text });
    }
    let place = |finding| Violation { flow: contender.name(), trouble: format!("{lie:?}"), finding };
    findings.into_iter().map(place).collect()
}

#[test]
fn every_scheme_survives_every_lie() {
    let all: Vec<_> = contenders().iter().flat_map(|c| LIES.map(|lie| violations(c, lie))).flatten().collect();
    judge(&all, "lies");
}
