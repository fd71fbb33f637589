//! The scheme `learned`: a flow agent whose decisions come from an exported policy, from outside, or from its expert.

use std::any::Any;
use std::sync::Arc;

use ccgym_agent::{AgentSpec, ExpertSpec, FlowAgent, StartOverrides};
use ccgym_core::congestion_control::{Capabilities, IntervalDriven, IntervalEnd, Observables, Steered};
use ccgym_core::{
    forward_hooks, AckEvent, CongestionControl, Control, Ecn, Error, InitContext, MonitorInterval, Rate, TimeSpan,
    TimeoutEvent, Timestamp,
};

use super::policy::{Policy, Session};
use crate::registry::{create_with, impossible, Parameter, Resources, Role, SchemeEntry, SchemeInfo};

/// Registry entry.
pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "learned",
        label: "Learned",
        reference: "the card of its policy",
        summary: "Decides by a learned policy, with the interval, features and actions of the policy's card.",
        parameters: &[
            Parameter::text(
                "policy",
                "The policy, by the name under which the host loaded it; empty: an environment decides.",
            ),
            Parameter::number(
                "start_rate_mbps",
                0.0,
                (0.0, 1e6),
                "Mbit/s",
                "The sending rate to start with; 0: the agent's value.",
            ),
            Parameter::integer(
                "start_cwnd",
                0,
                (0, 10_000_000),
                "packets",
                "The window to start with; 0: the agent's value.",
            ),
            Parameter::number(
                "decision_latency_ms",
                0.0,
                (0.0, 60_000.0),
                "ms",
                "Time from a decision to its effect; 0: the agent's value.",
            ),
            Parameter::integer(
                "expert_window",
                0,
                (0, 10_000_000),
                "packets",
                "The window that an expert of kind best_window aims at, in training; 0: by the path's ground truth.",
            ),
        ],
        role: Role::Tool,
        ..SchemeInfo::DEFAULT
    },
    build: |p, resources| {
        let name = p.word("policy");
        let decider = if name.is_empty() {
            Decider::Outside
        } else {
            let policy = resources.policies.get(name).ok_or_else(|| {
                let known = resources.policies.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                p.refuse(
                    format!("policy \"{name}\" (loaded: {})", if known.is_empty() { "none" } else { &known }),
                    "the name of a policy that the host loaded",
                )
            })?;
            Decider::Policy(policy.session())
        };
        let latency = TimeSpan::from_secs_f64(p.number("decision_latency_ms") / 1e3);
        let agent = match &decider {
            Decider::Policy(session) => FlowAgent::new(delayed(session.policy().agent(), latency)),
            _ => resources.agent.clone().unwrap_or_else(|| FlowAgent::new(holding_agent())),
        };
        let some = |packets: u64| (packets > 0).then_some(packets);
        let rate = p.number("start_rate_mbps");
        let overrides = StartOverrides {
            rate: (rate > 0.0).then(|| Rate::from_mbps(rate)),
            window: some(p.integer("start_cwnd")),
            expert_window: some(p.integer("expert_window")),
        };
        Ok(Box::new(Learned::new(ENTRY.info.name, agent, decider, overrides, resources)?))
    },
};

/// Return the agent with this decision latency; zero keeps the agent's own.
fn delayed(agent: &Arc<AgentSpec>, latency: TimeSpan) -> Arc<AgentSpec> {
    if latency == TimeSpan::ZERO {
        return agent.clone();
    }
    Arc::new(AgentSpec { decision_latency: latency, ..(**agent).clone() })
}

/// Return the agent of an environment without one: it keeps its initial window.
fn holding_agent() -> Arc<AgentSpec> {
    const SPEC: &str = r#"{
        "name": "hold",
        "clock": {"kind": "fixed", "interval": 10000000},
        "observation": {"features": [{"signal": "loss_fraction", "clip": [0.0, 1.0]}]},
        "action": {"map": {"kind": "signed_multiply", "delta": 0.1}, "target": "cwnd"},
        "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
        "startup": {"kind": "window", "packets": 10}
    }"#;
    Arc::new(serde_json::from_str(SPEC).expect("the built-in agent is valid"))
}

/// Assumed RTT before the first sample (Linux `tcp_bbr.c`, `bbr_init`).
const BEFORE_RTT: TimeSpan = TimeSpan::from_millis(1);

/// Source of the decision at the end of an interval.
#[derive(Clone)]
pub(crate) enum Decider {
    Policy(Session),
    /// The agent's own expert; the flow is paced from the first packet on.
    Expert,
    Outside,
}

/// A policy whose decisions are labels for another one: it observes the same intervals through its own agent.
#[derive(Clone)]
struct Teacher {
    agent: FlowAgent,
    session: Session,
    action: Vec<f32>,
}

impl Teacher {
    /// Make the teacher that an agent's expert names, if it is a policy.
    fn of(name: &'static str, agent: &AgentSpec, resources: &Resources) -> Result<Option<Self>, Error> {
        let Some(ExpertSpec::Policy { policy, .. }) = &agent.expert else { return Ok(None) };
        let refuse = |found, expected| impossible(name, found, expected);
        let known = resources
            .policies
            .get(policy)
            .ok_or_else(|| refuse(format!("the expert \"{policy}\""), "the name of a policy that the host loaded"))?;
        Self::from_policy(known).map(Some).ok_or_else(|| {
            refuse(format!("the expert \"{policy}\", which adjusts a base scheme"), "a policy that decides alone")
        })
    }

    fn from_policy(policy: &Arc<Policy>) -> Option<Self> {
        let spec = policy.agent().as_teacher();
        spec.validate().ok()?;
        Some(Self { agent: FlowAgent::new(Arc::new(spec)), session: policy.session(), action: Vec::new() })
    }

    /// Observe an interval, before `learner` does; the action in it was the learner's.
    fn observe(&mut self, interval: &MonitorInterval, learner: &FlowAgent) {
        self.agent.repeat(learner);
        self.agent.observe(interval, None);
    }

    /// Decide at the learner's decision, and pass the result to it.
    fn advise(&mut self, now: Timestamp, learner: &mut FlowAgent) {
        self.agent.follow(learner);
        if self.session.decide(self.agent.observation(), &mut self.action).is_ok() {
            self.agent.act(now, &self.action);
        }
        learner.advise(&self.agent);
        self.agent.follow(learner);
    }
}

/// The state of one flow.
#[derive(Clone)]
pub struct Learned {
    agent: FlowAgent,
    decider: Decider,
    teacher: Option<Box<Teacher>>,
    /// The scheme that the agent steers.
    base: Option<Box<dyn CongestionControl>>,
    capabilities: Capabilities,
    overrides: StartOverrides,
    action: Vec<f32>,
    awaits_decision: bool,
    /// True while the base scheme is in recovery, in which the transport limits sending.
    recovers: bool,
}

impl Learned {
    pub(crate) fn new(
        name: &'static str,
        agent: FlowAgent,
        decider: Decider,
        overrides: StartOverrides,
        resources: &Resources,
    ) -> Result<Self, Error> {
        let spec = agent.spec();
        let mut base = match &spec.action.inner {
            // An agent cannot be its own base scheme.
            Some(base) => {
                Some(create_with(&base.scheme, &base.params, &Resources { agent: None, ..resources.clone() })?)
            }
            None => None,
        };
        let teacher = Teacher::of(name, spec, resources)?.map(Box::new);
        let taught = teacher.as_ref().is_some_and(|teacher| teacher.agent.needs_rate_samples());
        let of_base = base.as_ref().map(|scheme| scheme.capabilities());
        let (overwrites, sets_gain) = (agent.overwrites(), agent.sets_gain());
        let asked = overwrites.then_some(Steered::Cwnd).or(sets_gain.then_some(Steered::Gain));
        if let (Some(base), Some(action)) = (&mut base, &spec.action.inner) {
            let steered = base.steerable().map(|scheme| scheme.steered());
            let mismatch = if base.receiver_side().is_some() {
                Some(("which has a part at the receiver", "one that needs acknowledgements alone"))
            } else if base.interval_driven().is_some() {
                Some(("which decides at intervals itself", "one that decides at acknowledgements"))
            } else if asked == Some(Steered::Cwnd) && steered != asked {
                Some((
                    "whose window cannot be overwritten",
                    "one that keeps a window and no more, such as cubic or reno",
                ))
            } else if asked == Some(Steered::Gain) && steered != asked {
                Some(("whose gain cannot be set", "one that decides how much waits in the queue, such as kestrel"))
            } else if spec.ecn && !base.capabilities().ecn.is_capable() {
                Some(("which does not react to marks", "one that does, such as cubic with its parameter ecn"))
            } else {
                None
            };
            if let Some((found, expected)) = mismatch {
                let found = format!("the base scheme {:?}, {found}", action.scheme);
                return Err(impossible(name, found, expected));
            }
        }
        let ecn = of_base.map_or(if spec.ecn { Ecn::Ect0 } else { Ecn::NotEct }, |c| c.ecn);
        let of_base_scheme = |what: fn(&Capabilities) -> bool| of_base.as_ref().is_some_and(what);
        let capabilities = Capabilities {
            // A passive agent only measures.
            prr: (overwrites || sets_gain) && of_base_scheme(|c| c.prr),
            // An agent's action has limits, but those of a gain bound neither window nor rate.
            bounded: !sets_gain || of_base_scheme(|c| c.bounded),
            timers: (spec.decision_latency > TimeSpan::ZERO) || of_base_scheme(|c| c.timers),
            rate_samples: agent.needs_rate_samples() || taught || of_base_scheme(|c| c.rate_samples),
            knows_path: of_base_scheme(|c| c.knows_path),
            pacing_required: spec.action.target.has_rate() || of_base.is_some_and(|c| c.pacing_required),
            ecn,
            ..of_base.unwrap_or_default()
        };
        Ok(Self {
            agent,
            decider,
            teacher,
            base,
            capabilities,
            overrides,
            action: Vec::new(),
            awaits_decision: false,
            recovers: false,
        })
    }

    #[inline]
    fn on_rtt(&mut self, now: Timestamp, sample: TimeSpan, min_rtt: TimeSpan) {
        self.agent.on_rtt(now, sample, min_rtt);
        if let Some(teacher) = &mut self.teacher {
            teacher.agent.on_rtt(now, sample, min_rtt);
        }
    }

    /// Set the agent's window or gain in the base scheme. A window is not set in recovery: there Linux sets it with
    /// each acknowledgement, and to ssthresh at the end, so that a written value has no effect.
    fn write(&mut self) {
        let Some(base) = &mut self.base else { return };
        if let Some(gain) = self.agent.take_gain() {
            steer(base, gain);
        }
        if let Some(cwnd) = self.agent.take_window().filter(|_| !self.recovers) {
            steer(base, cwnd as f64);
        }
    }

    /// Call the base scheme, if there is one.
    #[inline]
    fn tell(&mut self, f: impl Fn(&mut dyn CongestionControl)) {
        if let Some(scheme) = &mut self.base {
            f(&mut **scheme);
        }
    }
}

fn steer(base: &mut Box<dyn CongestionControl>, value: f64) {
    if let Some(scheme) = base.steerable() {
        scheme.steer(value);
    }
}

impl CongestionControl for Learned {
    forward_hooks!(self, self.base.as_deref(), self.base.as_deref_mut();
        on_packet_sent on_spurious_loss on_app_limited on_idle_restart send_quantum ssthresh state media);

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn init(&mut self, context: InitContext) {
        self.agent.start(context.now, context.mss, self.overrides);
        if let Some(teacher) = &mut self.teacher {
            teacher.agent.start(context.now, context.mss, StartOverrides::default());
        }
        self.tell(|scheme| scheme.init(context.clone()));
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.on_rtt(now, rtt_sample, rtt_sample);
        self.tell(|scheme| scheme.on_handshake(now, rtt_sample));
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.on_rtt(event.now, sample, event.rtt.min());
        }
        if event.acked_packets > 0 {
            self.agent.on_acked();
        }
        if !event.lost.is_empty() {
            self.agent.on_loss();
        }
        self.recovers = event.in_recovery && (self.recovers || event.entered_recovery);
        self.tell(|scheme| scheme.on_ack(event));
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.agent.on_timeout();
        self.recovers = false;
        self.tell(|scheme| scheme.on_timeout(event));
    }

    fn next_timer(&self) -> Timestamp {
        let base = self.base.as_ref().filter(|scheme| scheme.capabilities().timers);
        base.map_or(Timestamp::NEVER, |scheme| scheme.next_timer()).min(self.agent.next_timer())
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.agent.next_timer() <= now {
            self.agent.on_timer(now);
            self.write();
        }
        self.tell(|scheme| {
            if scheme.next_timer() <= now {
                scheme.on_timer(now);
            }
        });
    }

    #[inline]
    fn control(&self) -> Control {
        let control = match &self.base {
            None => self.agent.control(None),
            Some(base) => self.agent.control(Some(&base.control())),
        };
        if control.pacing_rate == Rate::ZERO && matches!(self.decider, Decider::Expert) {
            return Control { pacing_rate: Rate::from_bytes_over(control.cwnd, BEFORE_RTT), ..control };
        }
        control
    }

    fn observables(&self) -> Observables {
        let mut values = vec![
            ("rate_mbps", self.control().pacing_rate.as_mbps()),
            ("refused_actions", self.agent.rejected_actions() as f64),
            ("interventions", self.agent.interventions() as f64),
        ];
        if self.agent.sets_gain() {
            values.push(("gain", self.agent.gain()));
        }
        if let Some(base) = &self.base {
            values.extend(base.observables());
        }
        values
    }

    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        Some(self)
    }

    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        Some(self)
    }
}

impl IntervalDriven for Learned {
    fn on_interval(&mut self, interval: &MonitorInterval) {
        let base = self.base.as_ref().map(|scheme| scheme.control());
        if let Some(teacher) = &mut self.teacher {
            teacher.observe(interval, &self.agent);
        }
        let due = self.agent.observe(interval, base.as_ref());
        // Not during a start-up without decisions, whose intervals the policy did not observe either.
        if let Some(teacher) = self.teacher.as_mut().filter(|_| due) {
            teacher.advise(interval.end, &mut self.agent);
        }
        self.awaits_decision = due && self.decided_outside();
        match &mut self.decider {
            Decider::Policy(session) if due => {
                // If the policy cannot answer, the last decision stays; the agent counts it as refused.
                if session.decide(self.agent.observation(), &mut self.action).is_err() {
                    self.action.clear();
                    self.action.push(f32::NAN);
                }
                self.agent.act(interval.end, &self.action);
            }
            Decider::Expert if due => {
                if let Some(label) = self.agent.label(&[]) {
                    self.agent.act(interval.end, label.action());
                }
            }
            _ => {}
        }
        self.write();
    }

    fn interval_end(&self) -> IntervalEnd {
        let acks = u64::from(self.agent.on_ack_only());
        IntervalEnd { at: self.agent.next_decision(), acks }
    }

    fn ignores_acks(&self) -> bool {
        self.base.is_none() && self.teacher.is_none() && self.agent.ignores_acks()
    }

    fn decided_outside(&self) -> bool {
        matches!(self.decider, Decider::Outside)
    }

    fn awaits_decision(&self) -> bool {
        self.awaits_decision
    }

    fn decide(&mut self, now: Timestamp, action: &[f32]) {
        self.awaits_decision = false;
        self.agent.act(now, action);
        self.write();
    }

    fn agent(&self) -> &dyn Any {
        &self.agent
    }
}

#[cfg(test)]
mod tests;
