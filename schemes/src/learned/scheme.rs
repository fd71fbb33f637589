//! The scheme `learned`: a flow agent whose decisions come from an exported policy, or from outside.

use std::sync::Arc;

use ccgym_core::agent::{AgentSpec, FlowAgent, StartOverrides, Target};
use ccgym_core::congestion_control::{Capabilities, IntervalEnd, Observables, SentEvent, SpuriousLossEvent};
use ccgym_core::{
    AckEvent, CongestionControl, Control, InitContext, MonitorInterval, Rate, TimeSpan, TimeoutEvent, Timestamp,
};

use super::policy::Session;
use crate::registry::{create_with, Parameter, ParameterKind, Resources, SchemeEntry, SchemeError, SchemeInfo};

/// Registry entry.
pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "learned",
        label: "Learned",
        reference: "the card of its policy",
        summary: "Decides by a learned policy, on the clock and through the features and actions of the policy's card.",
        color: "darkorange",
        marker: "*",
        parameters: &[
            Parameter {
                name: "policy",
                kind: ParameterKind::Text,
                default: "\"\"",
                unit: "",
                help: "The policy, by the name under which the host loaded it; empty: an environment decides.",
            },
            Parameter {
                name: "start_rate_mbps",
                kind: ParameterKind::Number { min: 0.0, max: 1e6 },
                default: "0",
                unit: "Mbit/s",
                help: "The sending rate to start with; 0: the agent's own.",
            },
            Parameter {
                name: "start_cwnd",
                kind: ParameterKind::Integer { min: 0, max: 10_000_000 },
                default: "0",
                unit: "packets",
                help: "The window to start with; 0: the agent's own.",
            },
        ],
    },
    build: |p, resources| {
        let name = p.word("policy");
        let session = if name.is_empty() {
            None
        } else {
            let policy = resources.policies.get(name).ok_or_else(|| {
                let known = resources.policies.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                p.refuse(
                    format!("policy \"{name}\" (loaded: {})", if known.is_empty() { "none" } else { &known }),
                    "the name of a policy that the host loaded",
                )
            })?;
            Some(policy.session())
        };
        let agent = match &session {
            Some(session) => FlowAgent::new(session.policy().agent().clone(), 1),
            None => resources.agent.clone().unwrap_or_else(|| FlowAgent::new(holding_agent(), 1)),
        };
        Ok(Box::new(Learned::new(agent, session, p.number("start_rate_mbps"), p.integer("start_cwnd"), resources)?))
    },
};

/// An agent that nobody steers: it keeps the window it starts with.
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

/// The state of one flow.
#[derive(Clone)]
pub struct Learned {
    agent: FlowAgent,
    session: Option<Session>,
    inner: Option<Inner>,
    capabilities: Capabilities,
    overrides: StartOverrides,
    action: Vec<f32>,
    awaits_decision: bool,
}

/// A scheme below the agent.
struct Inner(Box<dyn CongestionControl>);

impl Clone for Inner {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl Learned {
    fn new(
        agent: FlowAgent,
        session: Option<Session>,
        rate_mbps: f64,
        window: u64,
        resources: &Resources,
    ) -> Result<Self, SchemeError> {
        let spec = agent.spec();
        let inner = match spec.inner() {
            Some(inner) => Some(Inner(create_with(&inner.scheme, &inner.params, resources)?)),
            None => None,
        };
        let below = inner.as_ref().map(|i| i.0.capabilities());
        let capabilities = Capabilities {
            prr: false,
            window_only: false,
            intervals: true,
            decided_outside: session.is_none(),
            timers: (spec.decision_latency > TimeSpan::ZERO) || below.is_some_and(|c| c.timers),
            rate_samples: agent.needs_rate_samples() || below.is_some_and(|c| c.rate_samples),
            pacing_required: spec.action.target != Target::Cwnd || below.is_some_and(|c| c.pacing_required),
            ..below.unwrap_or_default()
        };
        let overrides = StartOverrides {
            rate: (rate_mbps > 0.0).then(|| Rate::from_mbps(rate_mbps)),
            window: (window > 0).then_some(window),
        };
        Ok(Self { agent, session, inner, capabilities, overrides, action: Vec::new(), awaits_decision: false })
    }

    #[inline]
    fn below(&mut self, f: impl FnOnce(&mut dyn CongestionControl)) {
        if let Some(inner) = &mut self.inner {
            f(&mut *inner.0);
        }
    }
}

impl CongestionControl for Learned {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn init(&mut self, context: InitContext) {
        self.agent.on_mtu_change(context.mss);
        self.agent.start(context.now, self.overrides);
        if let Some(inner) = &mut self.inner {
            inner.0.init(context);
        }
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.agent.on_rtt(now, rtt_sample, rtt_sample);
        if let Some(inner) = &mut self.inner {
            inner.0.on_handshake(now, rtt_sample);
        }
    }

    fn on_packet_sent(&mut self, event: &SentEvent) -> u64 {
        let mut tag = 0;
        self.below(|inner| tag = inner.on_packet_sent(event));
        tag
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.agent.on_rtt(event.now, sample, event.rtt.min());
        }
        if !event.lost.is_empty() {
            self.agent.on_loss(event.now);
        }
        self.below(|inner| inner.on_ack(event));
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.agent.on_timeout(event.now);
        if let Some(inner) = &mut self.inner {
            inner.0.on_timeout(event);
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousLossEvent) {
        self.below(|inner| inner.on_spurious_loss(event));
    }

    fn next_timer(&self) -> Timestamp {
        let below = match &self.inner {
            Some(inner) if inner.0.capabilities().timers => inner.0.next_timer(),
            _ => Timestamp::NEVER,
        };
        self.agent.next_timer().min(below)
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.agent.next_timer() <= now {
            self.agent.on_timer(now);
        }
        if let Some(inner) = &mut self.inner {
            if inner.0.next_timer() <= now {
                inner.0.on_timer(now);
            }
        }
    }

    fn on_feedback(&mut self, now: Timestamp, message: &[u8]) {
        self.below(|inner| inner.on_feedback(now, message));
    }

    fn on_app_limited(&mut self, now: Timestamp, in_flight: u64) {
        self.below(|inner| inner.on_app_limited(now, in_flight));
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        self.below(|inner| inner.on_idle_restart(now));
    }

    fn on_mtu_change(&mut self, mss: u64) {
        self.agent.on_mtu_change(mss);
        if let Some(inner) = &mut self.inner {
            inner.0.on_mtu_change(mss);
        }
    }

    fn on_interval(&mut self, interval: &MonitorInterval) {
        let below = self.inner.as_ref().map(|i| i.0.control());
        let due = self.agent.observe(interval, below.as_ref());
        self.awaits_decision = due && self.session.is_none();
        if let (true, Some(session)) = (due, &mut self.session) {
            // What a policy cannot answer holds the last decision; the agent counts it as refused.
            if session.decide(self.agent.observation(), &mut self.action).is_err() {
                self.action.clear();
                self.action.push(f32::NAN);
            }
            self.agent.act(interval.end, &self.action);
        }
    }

    fn interval_end(&self) -> IntervalEnd {
        let acks = if self.agent.on_ack_only() { self.agent.acks_per_decision() } else { 0 };
        IntervalEnd { at: self.agent.next_decision(), acks }
    }

    fn awaits_decision(&self) -> bool {
        self.awaits_decision
    }

    fn agent(&self) -> Option<&FlowAgent> {
        Some(&self.agent)
    }

    fn decide(&mut self, now: Timestamp, action: &[f32]) {
        self.awaits_decision = false;
        self.agent.act(now, action);
    }

    #[inline]
    fn control(&self) -> Control {
        match &self.inner {
            None => self.agent.control(None),
            Some(inner) => self.agent.control(Some(&inner.0.control())),
        }
    }

    fn ssthresh(&self) -> Option<u64> {
        self.inner.as_ref().and_then(|i| i.0.ssthresh())
    }

    fn observables(&self) -> Observables {
        let mut values = vec![
            ("rate_mbps", self.control().pacing_rate.as_mbps()),
            ("refused_actions", self.agent.rejected_actions() as f64),
            ("interventions", self.agent.interventions() as f64),
        ];
        if let Some(inner) = &self.inner {
            values.extend(inner.0.observables());
        }
        values
    }

    fn clone_box(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
