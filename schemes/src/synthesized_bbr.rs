//! Eagle's teacher as a scheme of its own: BBR's gains expressed in Eagle's steps and actions.
//!
//! Eagle learns from an expert that may do no more than Eagle itself: once per round trip it multiplies the sending rate
//! by one of seven factors. The expert's target is BBR's, a gain on the maximum recent delivery rate; its label is the
//! factor that comes nearest. Run with these labels for actions, it is the `Synthesized-BBR` of the iQua group's Pantheon
//! fork (`src/wrappers/goldirl_sendingrate.py --expert`), of which neither code nor numbers are public: gains are BBR's,
//! the rest is ours, and stands with its reasons in `ccgym_agent`'s `expert::gain_schedule` and `phases`.

use std::any::Any;
use std::sync::Arc;

use ccgym_agent::{AgentSpec, FlowAgent, Phase, StartOverrides};
use ccgym_core::congestion_control::{Capabilities, IntervalDriven, IntervalEnd, Observables};
use ccgym_core::{
    AckEvent, CongestionControl, Control, InitContext, MonitorInterval, Rate, TimeSpan, TimeoutEvent, Timestamp,
};
use serde_json::{json, Value};

use crate::registry::{Parameter, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "synthesized_bbr",
        label: "Synthesized-BBR",
        reference: "Emara, Li, Chen, INFOCOM 2020 (the expert of Eagle); Cardwell et al., ACM Queue 2016 (its gains)",
        summary: "BBR's gains in Eagle's steps: once per round trip the nearest of seven factors on the sending rate.",
        style: Some(("olive", "p")),
        parameters: &[
            Parameter::flag(
                "gain_on_estimate",
                false,
                "Set the rate to gain times estimate exactly, instead of by the nearest of Eagle's factors.",
            ),
            Parameter::number(
                "cap",
                2.0,
                (1.0, 16.0),
                "BDP",
                "Window at most, in bandwidth-delay products; four packets more are allowed.",
            ),
        ],
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let spec = agent(p.flag("gain_on_estimate"), p.number("cap"));
        Ok(Box::new(SynthesizedBbr { agent: FlowAgent::new(Arc::new(spec)) }))
    },
};

/// Packets per round trip to start with: RFC 6928's first window.
const START: f64 = 10.0;
/// The round trip that is taken for granted before there is any (Linux `tcp_bbr.c`, `bbr_init`).
const BEFORE_RTT: TimeSpan = TimeSpan::from_millis(1);
/// Intervals over which the maximum delivery rate is taken.
const WINDOW: u32 = 10;

/// Intervals over which the minimum RTT is taken. With the minimum over the flow's life, a round trip that grows to
/// four times its length leaves the window's cap below what the flow delivers, and it starves. In fewer, such
/// as 20, the queue of a slow Poisson link never drains, and is taken for the path (pantheon-2: 617 instead of 423 ms).
const MIN_RTT_WINDOW: u32 = 100;

/// Eagle's clock, actions and expert. Its observation is unused: the expert keeps its own state.
fn agent(exact: bool, cap: f64) -> AgentSpec {
    let map: Value = if exact {
        // Any rate is a power away.
        json!({"kind": "exponential", "base": 2.0})
    } else {
        json!({"kind": "discrete", "operations": ["*2.89", "*1.25", "*1.05", "*1", "*0.95", "*0.75", "/2.89"]})
    };
    let spec = json!({
        "name": "synthesized-bbr",
        "clock": {"kind": "rtt", "multiple": 1.0, "of": "mean", "floor": 10_000_000, "no_ack": 100_000_000},
        "observation": {"features": [{"signal": "send_ratio", "clip": [0.0, 1000.0]}]},
        "action": {
            "map": map, "bounds": [-40.0, 40.0], "target": "rate", "limits": {"packets_per_min_rtt": 2.0},
            "cwnd_cap": {"bdp": cap, "packets": 4.0, "estimate": format!("max(delivery_rate, {WINDOW})")},
        },
        "startup": {"kind": "packets_per_rtt", "packets": START},
        "min_rtt_window": MIN_RTT_WINDOW,
        "expert": {"kind": "gain_schedule", "window": WINDOW},
    });
    serde_json::from_value(spec).expect("the built-in agent is valid")
}

#[derive(Clone)]
pub struct SynthesizedBbr {
    agent: FlowAgent,
}

impl CongestionControl for SynthesizedBbr {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, bounded: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.agent.start(context.now, context.mss, StartOverrides::default());
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.agent.on_rtt(now, rtt_sample, rtt_sample);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if let Some(sample) = event.rtt_sample {
            self.agent.on_rtt(event.now, sample, event.rtt.min());
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.agent.on_loss();
    }

    fn control(&self) -> Control {
        let control = self.agent.control(None);
        if control.pacing_rate == Rate::ZERO {
            return Control { pacing_rate: Rate::from_bytes_over(control.cwnd, BEFORE_RTT), ..control };
        }
        control
    }

    fn observables(&self) -> Observables {
        let target = self.agent.label(&[]).map_or(f64::NAN, |label| label.target / 1e6);
        let phase = match self.agent.phase() {
            Phase::Startup => 0.0,
            Phase::Drain => 1.0,
            Phase::Probe => 2.0,
        };
        vec![("rate_mbps", self.agent.rate() / 1e6), ("target_mbps", target), ("phase", phase)]
    }

    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        Some(self)
    }

    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        Some(self)
    }
}

impl IntervalDriven for SynthesizedBbr {
    fn on_interval(&mut self, interval: &MonitorInterval) {
        if self.agent.observe(interval, None) {
            if let Some(label) = self.agent.label(&[]) {
                self.agent.act(interval.end, label.action());
            }
        }
    }

    fn interval_end(&self) -> IntervalEnd {
        IntervalEnd { at: self.agent.next_decision(), acks: 0 }
    }

    fn agent(&self) -> &dyn Any {
        &self.agent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, MSS};

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A flow that has seen a round trip of 100 ms, and how to show it intervals of that length.
    struct Flow {
        scheme: SynthesizedBbr,
        now: u64,
    }

    impl Flow {
        fn new(exact: bool) -> Self {
            let mut scheme = SynthesizedBbr { agent: FlowAgent::new(Arc::new(agent(exact, 2.0))) };
            scheme.init(context());
            scheme.on_handshake(at(100), TimeSpan::from_millis(100));
            Self { scheme, now: 100 }
        }

        /// Packets acknowledged, and packets in flight at the end; the rate then, packets per 100 ms.
        fn interval(&mut self, acked: u64, in_flight: u64) -> f64 {
            let mut m = MonitorInterval::new(at(self.now));
            self.now += 100;
            (m.end, m.acked_packets, m.acked_bytes) = (at(self.now), acked, acked * MSS);
            m.in_flight = in_flight * MSS;
            self.scheme.on_interval(&m);
            self.scheme.control().pacing_rate.0 as f64 / (8.0 * MSS as f64 * 10.0)
        }
    }

    #[test]
    fn factors_on_the_rate_come_near_the_gains() {
        let mut flow = Flow::new(false);
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-3, "{found}, not {wanted}");
        // Ten packets per round trip to start with; then 2.89 times what arrives is 28.9, and 57.8, of which twice the
        // rate is as near to one factor as to the next (√(2.89 · 1.25) = 1.9).
        near(flow.interval(10, 10), 28.9);
        near(flow.interval(20, 20), 28.9 * 2.89);
        assert_eq!(flow.scheme.control().cwnd, 44 * MSS);
        near(flow.interval(40, 40), 83.521 * 1.25);
        for _ in 0..2 {
            flow.interval(40, 80);
        }
        assert_eq!(flow.scheme.agent.phase(), Phase::Startup);
        let before = flow.scheme.agent.rate();
        flow.interval(40, 80);
        assert_eq!(flow.scheme.agent.phase(), Phase::Drain);
        assert!((flow.scheme.agent.rate() / before - 1.0 / 2.89).abs() < 1e-6);
    }

    #[test]
    fn exact_gains_are_exact() {
        let mut flow = Flow::new(true);
        let mut rates = vec![flow.interval(10, 10)];
        rates.extend([10, 10, 10].map(|acked| flow.interval(acked, 15)));
        // Three flat intervals, a drain, and once around the cycle.
        rates.extend([10; 10].map(|acked| flow.interval(acked, 10)));
        let cycle = [12.5, 7.5, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 12.5, 7.5];
        let wanted = [[28.9; 3].as_slice(), &[10.0 / 2.89], &cycle].concat();
        let near = rates.iter().zip(&wanted).all(|(rate, wanted)| (rate - wanted).abs() < 1e-3);
        assert!(near, "{rates:?}");
    }

    #[test]
    fn silence_changes_nothing() {
        let mut flow = Flow::new(true);
        for acked in [10, 10, 10, 10, 10, 10] {
            flow.interval(acked, 10);
        }
        let before = flow.interval(10, 10);
        for _ in 0..30 {
            assert_eq!(flow.interval(0, 10), before);
        }
    }

    #[test]
    fn it_is_paced_before_anything_is_known() {
        let mut scheme = SynthesizedBbr { agent: FlowAgent::new(Arc::new(agent(false, 2.0))) };
        scheme.init(context());
        let control = scheme.control();
        assert_eq!((control.cwnd, control.pacing_rate), (10 * MSS, Rate::from_mbps(120.0)));
        scheme.on_handshake(at(100), TimeSpan::from_millis(100));
        assert_eq!(scheme.control().pacing_rate, Rate::from_mbps(1.2));
    }
}
