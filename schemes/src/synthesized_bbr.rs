//! Eagle's teacher as a scheme: BBR's gains in Eagle's steps and actions.
//!
//! Eagle learns from an expert that has the same actions as Eagle: once per round trip it multiplies the sending rate
//! by one of seven factors. The expert's target is BBR's, a gain on the max recent delivery rate; its label is the
//! nearest factor. With these labels as actions, it is the `Synthesized-BBR` of the iQua group's Pantheon fork
//! (`src/wrappers/goldirl_sendingrate.py --expert`), of which neither code nor numbers are public: gains are BBR's, the
//! rest is ours, explained in `ccgym_agent`'s `expert::gain_schedule` and `phases`.

use ccgym_core::Error;
use std::sync::Arc;

use ccgym_agent::{AgentSpec, FlowAgent, StartOverrides};
use serde_json::{json, Value};

use crate::learned::{Decider, Learned};
use crate::registry::{parameters, Resources, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "synthesized_bbr",
        label: "Synthesized-BBR",
        reference: "Emara, Li, Chen, INFOCOM 2020 (the expert of Eagle); Cardwell et al., ACM Queue 2016 (its gains)",
        summary: "Follows BBR's gains with Eagle's actions: one of seven factors on its rate per round trip.",
        parameters: parameters! {
            /// Set the rate to gain times bandwidth exactly, instead of by the nearest of Eagle's factors.
            gain_on_estimate: flag(false);
            /// Max window, in bandwidth-delay products, plus four packets.
            cap: number(2.0, (1.0, 16.0), "BDP");
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, resources| Ok(Box::new(scheme(p.flag("gain_on_estimate"), p.number("cap"), resources)?)),
};

/// Packets per round trip at the start: RFC 6928's initial window.
const START: f64 = 10.0;
/// Intervals of the filter for the max delivery rate.
const WINDOW: u32 = 10;

/// Intervals of the filter for the min RTT. With the min since the start, an RTT that grows to four times its length
/// would leave the window's cap below the delivered bytes, and the flow would starve. In fewer, such as 20, the queue
/// of a slow Poisson link never drains, and counts as propagation delay (pantheon-2: 617 instead of 423 ms).
const MIN_RTT_WINDOW: u32 = 100;

fn scheme(exact: bool, cap: f64, resources: &Resources) -> Result<Learned, Error> {
    let agent = FlowAgent::new(Arc::new(agent(exact, cap)));
    Learned::new(ENTRY.info.name, agent, Decider::Expert, StartOverrides::default(), resources)
}

/// Return Eagle's clock, actions and expert. Its observation is unused: the expert keeps its own state.
fn agent(exact: bool, cap: f64) -> AgentSpec {
    let map: Value = if exact {
        // Powers reach any rate.
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

#[cfg(test)]
mod tests {
    use ccgym_agent::Phase;
    use ccgym_core::congestion_control::IntervalDriven;
    use ccgym_core::{CongestionControl, MonitorInterval, Rate, TimeSpan};

    use super::*;
    use crate::testing::{at, context, MSS};

    fn fresh(exact: bool) -> Learned {
        let mut scheme = scheme(exact, 2.0, &Resources::default()).expect("the built-in agent is valid");
        scheme.init(context());
        scheme
    }

    /// A flow with an RTT of 100 ms, and its intervals of that length.
    struct Flow {
        scheme: Learned,
        now: u64,
    }

    impl Flow {
        fn new(exact: bool) -> Self {
            let mut scheme = fresh(exact);
            scheme.on_handshake(at(100), TimeSpan::from_millis(100));
            Self { scheme, now: 100 }
        }

        fn agent(&self) -> &FlowAgent {
            self.scheme.agent().downcast_ref().expect("a flow agent")
        }

        /// Run an interval; returns the rate, packets per 100 ms.
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
        // Ten packets per round trip at the start; then 2.89 times the arrivals is 28.9, and 57.8, for which twice the
        // rate is about as near to one factor as to the next (√(2.89 · 1.25) = 1.9).
        near(flow.interval(10, 10), 28.9);
        near(flow.interval(20, 20), 28.9 * 2.89);
        assert_eq!(flow.scheme.control().cwnd, 44 * MSS);
        near(flow.interval(40, 40), 83.521 * 1.25);
        for _ in 0..2 {
            flow.interval(40, 80);
        }
        assert_eq!(flow.agent().phase(), Phase::Startup);
        let before = flow.agent().rate();
        flow.interval(40, 80);
        assert_eq!(flow.agent().phase(), Phase::Drain);
        assert!((flow.agent().rate() / before - 1.0 / 2.89).abs() < 1e-6);
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
    fn an_interval_without_acknowledgements_keeps_the_rate() {
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
    fn it_is_paced_before_the_first_sample() {
        let mut scheme = fresh(false);
        let control = scheme.control();
        assert_eq!((control.cwnd, control.pacing_rate), (10 * MSS, Rate::from_mbps(120.0)));
        scheme.on_handshake(at(100), TimeSpan::from_millis(100));
        assert_eq!(scheme.control().pacing_rate, Rate::from_mbps(1.2));
    }
}
