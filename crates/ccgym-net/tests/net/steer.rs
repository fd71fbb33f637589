//! Decisions from outside: over its socket an environment gets the same data as in the simulator, and a sender never
//! waits for it.

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::{Ack, Receiver, Sender, TimeSpan, Timestamp};
use ccgym_net::steer::messages::{
    frame, from_sender, to_sender, Action, Ended, FromSender, Interval, Stop, ToSender, Unframer,
};
use ccgym_net::steer::{AgentConnection, LiveGroundTruth, Steering};
use ccgym_net::Error;
use ccgym_run::columns::{COLUMNS, TRUTH_COLUMNS};
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::{create_with, Resources};
use ccgym_sim::agent_batch::{AgentBatch, Arrays};
use ccgym_sim::Simulator;
use serde_json::json;

const OBSERVATION: usize = 6;

pub fn agent() -> AgentSpec {
    let spec: AgentSpec = serde_json::from_value(json!({
        "name": "test",
        "clock": {"kind": "fixed", "interval": 20_000_000},
        "observation": {"history": 2, "features": [
            {"signal": "rtt_slope", "clip": [-10.0, 10.0]},
            {"signal": "latency_ratio", "clip": [1.0, 100.0]},
            {"signal": "send_ratio", "clip": [0.0, 100.0]},
        ]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.05}, "target": "rate"},
        "reward": {"terms": [
            {"term": "throughput", "weight": 10.0},
            {"term": "loss", "weight": -11.0},
            {"term": "utilization", "weight": 1.0},
        ]},
        "startup": {"kind": "rate", "rate": 2_000_000},
    }))
    .unwrap();
    spec.validate().unwrap();
    spec
}

pub fn scenario(duration_ms: u64) -> RunSpec {
    serde_json::from_value(json!({
        "seed": 3,
        "duration": duration_ms * 1_000_000,
        "uplink": [
            {"kind": "link", "schedule": {"kind": "rate", "rate": 12_000_000},
             "queue": {"kind": "droptail", "limit": {"packets": 40}}},
            {"kind": "delay", "delay": 20_000_000},
        ],
        "downlink": [{"kind": "delay", "delay": 20_000_000}],
        "flows": [{"scheme": "learned", "profile": "udp"}],
        "facts": {"capacity": [[0, 12_000_000]], "base_rtt": 40_000_000},
    }))
    .unwrap()
}

fn scheme(flow: &FlowSpec) -> Result<Box<dyn CongestionControl>, Error> {
    let resources = Resources { agent: Some(FlowAgent::new(Arc::new(agent()))), ..Resources::default() };
    create_with(&flow.scheme, &flow.params, &resources)
}

/// Return the action for a sequence number: up and down, so that the flow neither stops nor floods the path.
fn action_for(sequence: u64) -> f32 {
    [1.5, -0.7, 0.9, -1.2, 0.3][(sequence % 5) as usize]
}

/// Environment's end of the socket.
pub struct Environment {
    stream: UnixStream,
    incoming: Unframer,
    pub intervals: Vec<Interval>,
    pub ended: Option<Ended>,
    hellos: usize,
}

impl Environment {
    /// Make an environment, the flow that it steers, and the flag that halts the flow.
    fn pair() -> (Self, Wire, Arc<AtomicBool>) {
        let (near, far) = UnixStream::pair().unwrap();
        let halt = Arc::new(AtomicBool::new(false));
        let truth = LiveGroundTruth::of(&scenario(1000), Some(Arc::new(AtomicU64::new(7))));
        let connection = AgentConnection { flow: 0, agent: &agent(), truth, halt: Arc::clone(&halt) };
        let steering = Steering::over(far, connection).unwrap();
        (Self::on(near), Wire::new(steering), halt)
    }

    pub fn on(stream: UnixStream) -> Self {
        stream.set_nonblocking(true).unwrap();
        Self { stream, incoming: Unframer::default(), intervals: Vec::new(), ended: None, hellos: 0 }
    }

    /// Read the messages that have arrived.
    pub fn read(&mut self) {
        let mut bytes = [0; 65536];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.incoming.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(message) = self.incoming.message::<FromSender>().unwrap() {
            match message.body.unwrap() {
                from_sender::Body::Hello(hello) => {
                    assert_eq!((hello.version, hello.flow, hello.agent.as_str()), (1, 0, "test"));
                    assert_eq!((hello.observation_size, hello.action_size, hello.reward_terms), (6, 1, 3));
                    self.hellos += 1;
                }
                from_sender::Body::Interval(interval) => self.intervals.push(interval),
                from_sender::Body::Ended(ended) => self.ended = Some(ended),
            }
        }
    }

    fn newest(&mut self) -> &Interval {
        self.read();
        self.intervals.last().expect("an interval has closed")
    }

    fn say(&mut self, body: to_sender::Body) {
        let mut bytes = Vec::new();
        frame(&ToSender { body: Some(body) }, &mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Answer the newest interval.
    pub fn act(&mut self, value: f32) {
        let newest = self.newest();
        let (sequence, time_ns) = (newest.sequence, newest.time_ns);
        self.say(to_sender::Body::Action(Action { sequence, time_ns, values: vec![value] }));
    }
}

/// Sender of a flow over a fixed RTT, driven like the UDP endpoint, in virtual time.
struct Wire {
    steering: Steering,
    sender: Sender,
    receiver: Receiver,
    now: Timestamp,
    home: VecDeque<(Timestamp, Ack)>,
}

impl Wire {
    const RTT: TimeSpan = TimeSpan::from_millis(40);

    fn new(steering: Steering) -> Self {
        let spec = scenario(1000);
        let flow = &spec.flows[0];
        let cca = scheme(flow).unwrap();
        let context = spec.init_context(0, &*cca);
        let mut sender = Sender::new(flow.sender_config(0), cca, context);
        sender.write(u64::MAX / 2);
        let receiver = Receiver::new(flow.receiver_config());
        Self { steering, sender, receiver, now: Timestamp::ZERO, home: VecDeque::new() }
    }

    /// Run until `until`, or until an interval has closed; true if one has.
    fn run_until(&mut self, until: Timestamp) -> bool {
        loop {
            while let Some(packet) = self.sender.poll_transmit(self.now) {
                if let (_, Some(ack)) = self.receiver.on_data(self.now, &packet) {
                    self.home.push_back((self.now + Self::RTT, ack));
                }
            }
            let timer = self.sender.next_timeout();
            let next = self.home.front().map_or(timer, |(at, _)| timer.min(*at));
            if next > until {
                self.now = until;
                return false;
            }
            self.now = next;
            match self.home.front() {
                Some((at, _)) if *at <= next => {
                    if let Some((at, ack)) = self.home.pop_front() {
                        self.sender.on_ack(at, &ack);
                    }
                }
                _ => self.sender.on_timeout(next),
            }
            if self.sender.awaits_decision() {
                self.steering.interval_closed(next, &self.sender).unwrap();
                self.sender.hold_decision();
                return true;
            }
        }
    }

    /// Run until the next interval has closed.
    fn close(&mut self) {
        assert!(self.run_until(Timestamp::from_millis(1_000_000)));
    }

    /// End the flow now.
    fn ended(&mut self) {
        self.steering.flow_ended(self.now, &mut self.sender).unwrap();
    }

    /// Apply the latest action; true if there was one.
    fn take(&mut self) -> bool {
        let (now, mut action) = (self.now, Vec::new());
        let taken = self.steering.take_action(now, &mut action).unwrap();
        if taken {
            self.sender.decide(now, &action);
        }
        taken
    }
}

#[test]
fn an_environment_gets_the_same_data_as_in_the_simulator() {
    let (spec, agent) = (scenario(2000), agent());
    // Run the flow in the simulator's own batch.
    let simulator = || Simulator::new(&spec, &|_| None, &scheme).unwrap();
    let mut batch = AgentBatch::new(&agent, 1, 1, 1).unwrap();
    let (mut observations, mut stats) = (vec![0.0; OBSERVATION], vec![0.0; COLUMNS.len()]);
    let (mut rewards, mut terms, mut truth) = (vec![0.0], vec![0.0; 3], vec![0.0; TRUTH_COLUMNS.len()]);
    let (mut due, mut ended) = (vec![0], vec![0]);
    batch.reset(0, simulator(), 0, &mut observations).unwrap();
    // Run the same flow in another simulator, with the environment on a socket.
    let (near, far) = UnixStream::pair().unwrap();
    let mut environment = Environment::on(near);
    let backlog = Arc::new(AtomicU64::new(0));
    let live = LiveGroundTruth::of(&spec, Some(Arc::clone(&backlog)));
    let connection = AgentConnection { flow: 0, agent: &agent, truth: live, halt: Arc::default() };
    let mut steering = Steering::over(far, connection).unwrap();
    let mut real = simulator();
    let mut count = 0;
    while let Some(flow) = real.run_to_decision(real.end()).unwrap() {
        let now = real.now();
        backlog.store(real.ground_truth(flow).backlog as u64, Ordering::Relaxed);
        steering.interval_closed(now, real.sender(flow)).unwrap();
        let told = environment.newest().clone();
        assert_eq!((told.sequence, told.time_ns, told.awaiting, told.held), (count, now.0, true, false));
        assert_eq!(told.observation, observations);
        assert_eq!((told.reward, &told.reward_terms), (rewards[0], &terms), "0 before the first decision");
        if count > 0 {
            assert_eq!(told.statistics, stats);
            batch.truth(&mut truth).unwrap();
            assert_eq!(told.truth, truth);
            assert_eq!((told.applied_sequence, told.decision_latency_ns), (Some(count - 1), 0));
        }
        environment.act(action_for(count));
        let mut action = Vec::new();
        assert!(steering.take_action(now, &mut action).unwrap());
        real.decide(flow, &action);
        let actions = [action_for(count)];
        batch
            .step(Arrays {
                actions: &actions,
                observations: &mut observations,
                rewards: &mut rewards,
                terms: &mut terms,
                stats: &mut stats,
                due: &mut due,
                ended: &mut ended,
            })
            .unwrap();
        count += 1;
    }
    assert_eq!((ended[0], environment.hellos), (2, 1));
    assert!(count > 90, "{count} decisions in 2 s");
    environment.say(to_sender::Body::Stop(Stop {}));
    assert!(!steering.take_action(real.now(), &mut Vec::new()).unwrap());
    environment.read();
    let summary = environment.ended.unwrap().summary.unwrap();
    // The batch also counts the interval that the end cut off.
    let expected = batch.summary(0)[0];
    assert_eq!(summary.steps + 1, expected.steps);
    assert!((summary.throughput_mbps / expected.throughput_mbps - 1.0).abs() < 0.02);
}

#[test]
fn a_late_decision_is_a_missed_deadline_and_the_last_one_holds() {
    let (mut environment, mut wire, _) = Environment::pair();
    wire.close();
    environment.act(1.0);
    assert!(wire.take());
    let rate = wire.sender.control().pacing_rate;
    assert!(!wire.take(), "an action is taken once");
    wire.close();
    assert_eq!(environment.newest().applied_sequence, Some(0));
    // The learner needs three intervals, and answers the one that it saw in the middle of the fourth.
    let (seen, closed) = (environment.newest().sequence, environment.newest().time_ns);
    for missed in 1..=3 {
        wire.close();
        let interval = environment.newest();
        assert_eq!((interval.held, interval.missed_deadlines), (true, missed));
        assert_eq!(interval.applied_sequence, Some(0));
        assert_eq!(wire.sender.control().pacing_rate, rate, "the decision holds");
    }
    assert!(!wire.run_until(wire.now + TimeSpan::from_millis(7)));
    environment.say(to_sender::Body::Action(Action { sequence: seen, time_ns: closed, values: vec![-1.0] }));
    assert!(wire.take());
    assert!(wire.sender.control().pacing_rate < rate);
    wire.close();
    let interval = environment.newest();
    assert_eq!((interval.sequence, interval.applied_sequence), (seen + 4, Some(seen)));
    assert_eq!((interval.held, interval.missed_deadlines), (false, 3));
    assert_eq!(interval.decision_latency_ns, 67_000_000);
}

#[test]
fn the_newest_of_several_actions_counts() {
    let (mut environment, mut wire, _) = Environment::pair();
    wire.close();
    let before = wire.sender.control().pacing_rate;
    for value in [1.0, 1.0, -1.0] {
        environment.act(value);
    }
    assert!(wire.take());
    assert!(wire.sender.control().pacing_rate < before);
    // Invalid actions are counted and change nothing.
    let held = wire.sender.control().pacing_rate;
    environment.act(f32::NAN);
    assert!(wire.take());
    environment.say(to_sender::Body::Action(Action { sequence: 0, time_ns: 0, values: vec![] }));
    assert!(wire.take());
    assert_eq!(wire.sender.control().pacing_rate, held);
    wire.close();
    assert_eq!(environment.newest().statistics[COLUMNS.len() - 1], 2.0);
}

#[test]
fn stop_ends_the_flow_and_returns_a_summary() {
    let (mut environment, mut wire, halt) = Environment::pair();
    for _ in 0..50 {
        wire.close();
        environment.act(0.0);
        wire.take();
    }
    assert!(wire.steering.fd().is_some() && !halt.load(Ordering::Relaxed));
    environment.say(to_sender::Body::Stop(Stop {}));
    assert!(!wire.take());
    assert!(halt.load(Ordering::Relaxed));
    assert!(wire.steering.fd().is_none(), "nothing to wait for any more");
    wire.ended();
    environment.read();
    let ended = environment.ended.unwrap();
    let summary = ended.summary.unwrap();
    assert_eq!((ended.interval, summary.steps), (None, 49));
    assert!((summary.throughput_mbps - 2.0).abs() < 0.1, "{summary:?}");
    assert!((summary.rtt_p95_ms.unwrap() - 40.0).abs() < 1.0, "{summary:?}");
    assert!((summary.utilization.unwrap() - summary.throughput_mbps / 12.0).abs() < 1e-6);
}

#[test]
fn the_end_of_a_flow_cuts_its_last_interval_off() {
    let (mut environment, mut wire, _) = Environment::pair();
    wire.close();
    environment.act(0.0);
    wire.take();
    wire.close();
    assert!(!wire.run_until(wire.now + TimeSpan::from_millis(5)));
    wire.ended();
    environment.read();
    let ended = environment.ended.unwrap();
    let last = ended.interval.unwrap();
    assert_eq!((last.sequence, last.awaiting, last.missed_deadlines), (2, false, 0));
    assert!((last.statistics[1] - 0.005).abs() < 1e-9, "its duration: {:?}", last.statistics);
    assert_eq!(ended.summary.unwrap().steps, 2);
}

#[test]
fn a_flow_that_ended_before_its_first_decision_has_no_interval() {
    let (mut environment, mut wire, _) = Environment::pair();
    assert!(!wire.run_until(Timestamp::from_millis(3)));
    wire.ended();
    environment.read();
    let ended = environment.ended.unwrap();
    assert_eq!((ended.interval, ended.summary.unwrap().steps), (None, 0));
}

#[test]
fn a_slow_environment_gets_the_newest_interval() {
    let (mut environment, mut wire, _) = Environment::pair();
    let count = 3000; // far more than the socket's buffer holds
    for _ in 0..count {
        wire.close();
    }
    environment.read();
    assert!(environment.intervals.len() < 2900, "nothing was left out: the socket held it all");
    wire.close(); // makes room for the interval that waited
    let newest = environment.newest();
    assert_eq!((newest.sequence, newest.missed_deadlines), (count, count));
    let numbers: Vec<u64> = environment.intervals.iter().map(|one| one.sequence).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order");
    environment.act(0.0);
    assert!(wire.take());
}

#[test]
fn a_closed_environment_ends_the_flow() {
    let (environment, mut wire, halt) = Environment::pair();
    wire.close();
    drop(environment);
    wire.close();
    assert!(!wire.take());
    assert!(halt.load(Ordering::Relaxed));
    wire.ended();
}

#[test]
fn an_invalid_message_is_an_error() {
    let (mut environment, mut wire, _) = Environment::pair();
    environment.stream.write_all(&[0xff; 64]).unwrap();
    let error = wire.steering.take_action(Timestamp::ZERO, &mut Vec::new()).unwrap_err();
    assert_eq!(error.code, "protocol-error", "{error}");
}

#[test]
fn a_flow_finds_its_environment_by_path() {
    let folder = std::env::temp_dir().join(format!("ccgym-steer-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("control");
    let listener = UnixListener::bind(&path).unwrap();
    let agent = agent();
    let connection = || AgentConnection {
        flow: 0,
        agent: &agent,
        truth: LiveGroundTruth::of(&scenario(1), None),
        halt: Arc::default(),
    };
    let mut wire = Wire::new(Steering::connect(&path, connection()).unwrap());
    let mut environment = Environment::on(listener.accept().unwrap().0);
    assert!(wire.steering.fd().unwrap().as_fd().try_clone_to_owned().is_ok());
    wire.close();
    let truth = environment.newest().truth.clone();
    assert!(truth[2].is_nan(), "no thread of this process counts the backlog: {truth:?}");
    assert_eq!((truth[0], truth[3]), (12e6, 40.0));
    drop(listener);
    fs::remove_dir_all(&folder).unwrap();
    let error = Steering::connect(&path, connection()).err().unwrap();
    assert!(error.code == "socket-failed" && error.place.contains("flow 0"), "{error}");
}
