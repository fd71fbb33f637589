//! Intervals for tests.

use super::spec::AgentSpec;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::rtt::RttEstimator;
use ccgym_core::units::Timestamp;
use ccgym_core::Control;

/// Wire bytes of a packet.
pub(crate) const MSS: u64 = 1500;

/// An interval in which one packet is sent and acknowledged per round trip of `rtts` (milliseconds), all at its end.
pub(crate) fn interval(from: Timestamp, to: Timestamp, rtts: &[u64]) -> MonitorInterval {
    let mut m = MonitorInterval::new(from);
    for rtt in rtts {
        m.on_sent(MSS, false);
        m.on_acked(1, MSS);
        m.on_sample(to, Timestamp(to.0.saturating_sub(rtt * 1_000_000)), to);
    }
    let mut done = MonitorInterval::new(from);
    m.close_into(&mut done, to, &RttEstimator::default(), 0, &Control::window(10 * MSS), None);
    if let Some(min) = done.interval_min_rtt() {
        done.min_rtt = min;
    }
    done
}

/// An agent from JSON; panics if it is not valid.
pub(crate) fn agent(json: &serde_json::Value) -> AgentSpec {
    let spec: AgentSpec = serde_json::from_value(json.clone()).expect("an agent");
    spec.validate().expect("a valid agent");
    spec
}

/// Min and max of each number of an observation.
pub(crate) fn observation_bounds(spec: &AgentSpec) -> (Vec<f32>, Vec<f32>) {
    let plan = spec.plan();
    plan.layout.columns.iter().map(|column| plan.layout.bounds(column)).map(|[l, h]| (l as f32, h as f32)).unzip()
}
