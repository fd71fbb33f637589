//! Agents and intervals for tests.

use serde_json::{json, Value};

use super::spec::AgentSpec;
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::rtt::RttEstimator;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::Control;

/// Wire bytes of a packet.
pub(crate) const MSS: u64 = 1500;

pub(crate) const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

pub(crate) const fn ms(ms: u64) -> TimeSpan {
    TimeSpan::from_millis(ms)
}

/// Return `value` with the fields of `change`; objects are merged, unless the change has a kind.
pub(crate) fn with(mut value: Value, change: Value) -> Value {
    let Value::Object(change) = change else { panic!("{change} is not a JSON object") };
    for (key, field) in change {
        let inside = field.is_object() && field.get("kind").is_none() && value[&key].is_object();
        value[&key] = if inside { with(value[&key].take(), field) } else { field };
    }
    value
}

/// Return a window agent that decides each 10 ms, with Indigo's actions.
pub(crate) fn plain() -> Value {
    json!({
        "name": "plain",
        "clock": {"kind": "fixed", "interval": 10_000_000},
        "observation": {"features": [{"signal": "cwnd", "clip": [0, 1000]}]},
        "action": {"map": {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}, "target": "cwnd"},
        "startup": {"kind": "window", "packets": 10}
    })
}

/// The same over a base scheme, whose window it overwrites.
pub(crate) fn over_cubic() -> Value {
    with(plain(), json!({"action": {"inner": {"scheme": "cubic"}}, "startup": {"kind": "inner"}}))
}

/// Return an agent that steers the gain of a base scheme.
pub(crate) fn gaining() -> Value {
    let action = json!({"map": {"kind": "exponential", "base": 2}, "target": "gain", "bounds": [-3, 2],
                        "inner": {"scheme": "kestrel"}});
    let features = json!([{"signal": "gain", "clip": [0, 100]}]);
    with(plain(), json!({"action": action, "observation": {"features": features}, "startup": {"kind": "none"}}))
}

/// Make an interval in which one packet is sent and acknowledged per RTT of `rtts` (milliseconds), all at its end.
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

/// Make an agent from JSON; panics if it is not valid.
pub(crate) fn agent(json: &Value) -> AgentSpec {
    let spec: AgentSpec = serde_json::from_value(json.clone()).expect("an agent");
    spec.validate().expect("a valid agent");
    spec
}

/// Return min and max of each number of an observation.
pub(crate) fn observation_bounds(spec: &AgentSpec) -> (Vec<f32>, Vec<f32>) {
    let plan = spec.plan();
    plan.layout.columns.iter().map(|column| plan.layout.bounds(column)).map(|[l, h]| (l as f32, h as f32)).unzip()
}
