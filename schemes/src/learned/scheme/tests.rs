use ccgym_core::congestion_control::{FrameEvent, Media, SentEvent, SpuriousLossEvent, Steerable, Steered};
use ccgym_core::Error;
use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{json, Map, Value};

use super::*;
use crate::registry::Guest;
use crate::testing::{ms, MockTransport, MSS};

/// Make a flow over a base scheme, whose decisions come from outside.
fn over(base: &str) -> Result<Box<dyn CongestionControl>, Error> {
    steering("cwnd", base)
}

fn steering(target: &str, base: &str) -> Result<Box<dyn CongestionControl>, Error> {
    made(target, base, Resources::default())
}

fn made(target: &str, base: &str, resources: Resources) -> Result<Box<dyn CongestionControl>, Error> {
    let agent = json!({
        "name": "over", "clock": {"kind": "fixed", "interval": 20_000_000},
        "observation": {"features": [{"signal": "loss_fraction", "clip": [0.0, 1.0]}]},
        "action": {"map": {"kind": "exponential", "base": 4}, "target": target, "inner": {"scheme": base}},
        "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
        "startup": {"kind": "none"}
    });
    let spec = AgentSpec::from_json(&agent.to_string()).expect("an agent");
    let agent = Some(FlowAgent::new(Arc::new(spec)));
    create_with("learned", &Map::new(), &Resources { agent, ..resources })
}

fn decide(host: &mut MockTransport, action: f32) {
    let now = host.now;
    let side = host.scheme.interval_driven_mut().expect("decides at intervals");
    side.on_interval(&MonitorInterval::new(now));
    side.decide(now, &[action]);
}

/// A base scheme that records its calls.
#[derive(Clone, Default)]
struct Probe {
    called: Arc<Mutex<BTreeSet<&'static str>>>,
    timer: Timestamp,
}

impl Probe {
    fn note(&self, hook: &'static str) {
        self.called.lock().unwrap().insert(hook);
    }
}

impl Guest for Probe {
    fn create(&self, _params: &Map<String, Value>) -> Result<Box<dyn CongestionControl>, String> {
        Ok(Box::new(self.clone()))
    }
    fn fell_behind(&self) -> Option<String> {
        None
    }
}

impl CongestionControl for Probe {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, timers: true, ..Capabilities::default() }
    }
    fn init(&mut self, _context: InitContext) {
        self.note("init");
    }
    fn on_handshake(&mut self, _now: Timestamp, _rtt_sample: TimeSpan) {
        self.note("on_handshake");
    }
    fn on_packet_sent(&mut self, _event: &SentEvent) {
        self.note("on_packet_sent");
    }
    fn on_ack(&mut self, _event: &AckEvent<'_>) {
        self.note("on_ack");
    }
    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        self.note("on_timeout");
    }
    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        self.note("on_spurious_loss");
    }
    fn next_timer(&self) -> Timestamp {
        self.timer
    }
    fn on_timer(&mut self, _now: Timestamp) {
        self.timer = Timestamp::NEVER;
        self.note("on_timer");
    }
    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {
        self.note("on_app_limited");
    }
    fn on_idle_restart(&mut self, _now: Timestamp) {
        self.note("on_idle_restart");
    }
    fn control(&self) -> Control {
        Control::window(10 * MSS)
    }
    fn media(&mut self) -> Option<&mut dyn Media> {
        Some(self)
    }
    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        Some(self)
    }
    fn ssthresh(&self) -> Option<u64> {
        Some(8)
    }
    fn state(&self) -> &'static str {
        "probing"
    }
}

impl Media for Probe {
    fn on_frame(&mut self, event: &FrameEvent) {
        assert_eq!((event.bytes, event.waiting), (3000, 1200));
        self.note("on_frame");
    }
    fn target_rate(&self) -> Rate {
        Rate(7)
    }
}

impl Steerable for Probe {
    fn steered(&self) -> Steered {
        Steered::Cwnd
    }
    fn steer(&mut self, _value: f64) {
        self.note("steer");
    }
}

#[test]
fn all_hooks_of_the_base_scheme_are_called() {
    let probe = Probe::default();
    let guests = [("probe".to_owned(), Arc::new(probe.clone()) as Arc<dyn Guest>)].into();
    let scheme = made("cwnd", "probe", Resources { guests, ..Resources::default() }).expect("a scheme");
    let mut host = MockTransport::new(scheme);
    let now = host.now;
    host.scheme.on_handshake(now, ms(20));
    host.scheme.media().unwrap().on_frame(&FrameEvent { now, bytes: 3000, waiting: 1200 });
    host.send();
    host.ack_round(ms(20), TimeSpan::ZERO);
    host.send();
    host.time_out();
    host.spurious();
    host.app_limit();
    host.idle(ms(1000));
    decide(&mut host, 1.0);
    let called = probe.called.lock().unwrap();
    assert_eq!(
        *called,
        BTreeSet::from([
            "init",
            "on_handshake",
            "on_packet_sent",
            "on_frame",
            "on_ack",
            "on_timeout",
            "on_spurious_loss",
            "on_timer",
            "on_app_limited",
            "on_idle_restart",
            "steer",
        ])
    );
    let asked = &mut host.scheme;
    let target = asked.media().map(|media| media.target_rate());
    assert_eq!((target, asked.ssthresh(), asked.state()), (Some(Rate(7)), Some(8), "probing"));
}

#[test]
fn the_base_scheme_continues_from_the_written_window() {
    let mut host = MockTransport::new(over("reno").expect("Reno's window can be written"));
    decide(&mut host, 1.0);
    assert_eq!(host.window(), 40.0);
    host.send();
    host.ack_round(ms(20), TimeSpan::ZERO);
    assert_eq!(host.window(), 80.0, "slow start from there");
    host.send();
    host.lose();
    // Linux limits sending in recovery and ends it at ssthresh, for any written window.
    assert!(host.scheme.capabilities().prr);
    decide(&mut host, 1.0);
    assert_eq!(host.window(), 40.0);
    while host.in_recovery() {
        host.ack_after(ms(20));
    }
    decide(&mut host, -0.5);
    assert_eq!((host.window(), host.scheme.ssthresh()), (20.0, Some(40 * MSS)));
    host.ack_round(ms(20), TimeSpan::ZERO);
    assert!(host.window() > 30.0, "slow start up to the threshold: {}", host.window());
}

/// Return capabilities, and the windows and rates while one packet waits for every four of a window in 40 rounds of 40
/// ms. Each round ends in a decision, if there is one.
fn rounds(scheme: Box<dyn CongestionControl>, action: Option<f32>) -> (Capabilities, Vec<Control>) {
    let mut host = MockTransport::new(scheme);
    let mut seen = Vec::new();
    for round in 0..40 {
        host.send();
        if round == 20 {
            host.lose();
        }
        let queue = TimeSpan((host.window() * 1e5) as u64);
        host.ack_round(ms(40) + queue, TimeSpan::ZERO);
        if let Some(action) = action {
            decide(&mut host, action);
        }
        seen.push(host.scheme.control());
    }
    (host.scheme.capabilities(), seen)
}

#[test]
fn only_the_gain_is_written_to_the_base_scheme() {
    let kestrel = || crate::create("kestrel", &Map::new()).expect("a scheme");
    let made = || steering("gain", "kestrel").expect("Kestrel's gain can be set");
    let (alone, own) = rounds(kestrel(), None);
    for action in [None, Some(0.0)] {
        let (over, same) = rounds(made(), action);
        assert_eq!(same, own, "a gain of 1, and none");
        assert_eq!(over, alone);
    }
    // More packets wait; Kestrel's detection of other flows stays as it is.
    let (_, more) = rounds(made(), Some(1.0));
    assert_ne!(more, own);
}

#[test]
fn packets_are_ecn_capable_if_the_agent_or_its_base_scheme_says_so() {
    let codepoint = |ecn: Option<bool>, inner: Option<serde_json::Value>| {
        let mut agent = json!({
            "name": "marked", "clock": {"kind": "fixed", "interval": 20_000_000},
            "observation": {"features": [{"signal": "ce_fraction", "clip": [0.0, 1.0]}]},
            "action": {"map": {"kind": "exponential", "base": 4}, "target": "cwnd"},
            "startup": {"kind": "window", "packets": 10}
        });
        if let Some(ecn) = ecn {
            agent["ecn"] = json!(ecn);
        }
        if let Some(inner) = inner {
            agent["action"]["inner"] = inner;
            agent["startup"] = json!({"kind": "none"});
        }
        let spec = AgentSpec::from_json(&agent.to_string()).expect("an agent");
        assert_eq!(serde_json::to_value(&spec).unwrap().get("ecn").is_some(), ecn == Some(true), "digests stay");
        let agent = Some(FlowAgent::new(Arc::new(spec)));
        let scheme = create_with("learned", &Map::new(), &Resources { agent, ..Resources::default() });
        scheme.map(|scheme| scheme.capabilities().ecn).ok()
    };
    let cubic = |ecn: bool| Some(json!({"scheme": "cubic", "params": {"ecn": ecn}}));
    assert_eq!(codepoint(None, None), Some(Ecn::NotEct));
    assert_eq!(codepoint(Some(false), None), Some(Ecn::NotEct));
    assert_eq!(codepoint(Some(true), None), Some(Ecn::Ect0));
    assert_eq!(codepoint(None, cubic(true)), Some(Ecn::Ect0));
    assert_eq!(codepoint(Some(true), cubic(true)), Some(Ecn::Ect0));
    assert_eq!(codepoint(Some(true), cubic(false)), None, "Cubic would not slow down");
}

#[test]
fn a_gain_is_written_in_recovery_too() {
    let mut host = MockTransport::new(steering("gain", "kestrel").expect("Kestrel's gain can be set"));
    let gain = |host: &MockTransport| host.scheme.observables().into_iter().find(|(name, _)| *name == "gain");
    host.send();
    host.ack_round(ms(20), TimeSpan::ZERO);
    host.send();
    host.lose();
    assert!(host.in_recovery());
    let before = host.scheme.control();
    decide(&mut host, 0.5);
    assert_eq!((gain(&host), host.scheme.control()), (Some(("gain", 2.0)), before));
}

#[test]
fn a_base_scheme_without_a_window_of_its_own_is_refused() {
    let refused = |made: Result<_, Error>| match made {
        Err(error) if error.place == "scheme learned" && error.code == "parameter-invalid" => error.found,
        other => panic!("{:?}", other.err()),
    };
    assert!(refused(steering("gain", "reno")).starts_with("the base scheme \"reno\""));
    assert!(refused(over("bbr")).starts_with("the base scheme \"bbr\""));
}
