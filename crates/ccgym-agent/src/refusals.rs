//! Errors of the whole vocabulary: a change of an agent, and the place in the error.

use std::borrow::Cow;

use serde_json::{json, Value};

use crate::testing::{gaining, over_cubic, plain, with};
use crate::AgentSpec;

/// Return code and place of the error of `base` after `change`.
fn refused(base: &Value, change: Value) -> Option<(Cow<'static, str>, String)> {
    let text = with(base.clone(), change).to_string();
    AgentSpec::from_json(&text).err().map(|error| (error.code, error.place))
}

fn action(change: Value) -> Value {
    json!({"action": change})
}

fn map(map: Value) -> Value {
    action(json!({"map": map}))
}

fn cap(change: Value) -> Value {
    action(json!({"cwnd_cap": with(json!({"bdp": 2, "packets": 4}), change)}))
}

fn feature(change: Value) -> Value {
    json!({"observation": {"features": [with(json!({"signal": "cwnd", "clip": [0, 1]}), change)]}})
}

fn term(term: Value) -> Value {
    json!({"reward": {"terms": [with(json!({"weight": 1.0}), term)]}})
}

fn guard(change: Value) -> Value {
    json!({"guard": with(json!({"kind": "recovery"}), change)})
}

fn rtt_clock(change: Value) -> Value {
    json!({"clock": with(json!({"kind": "rtt", "multiple": 1}), change)})
}

fn expert(kind: &str, change: Value) -> Value {
    json!({"expert": with(json!({"kind": kind}), change)})
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let discrete = |operations: Value| map(json!({"kind": "discrete", "operations": operations}));
    let gains = |gains: Value, of: &str| map(json!({"kind": "gain_on_estimate", "gains": gains, "estimate": of}));
    let smoothing = |keep: f64| json!({"smoothing": [{"min_rtt": 0, "keep": keep}]});
    let of_plain = [
        (json!({"color": 1}), "agent"),
        (json!({"guard": {"kind": "none", "steps": 1}}), "agent"),
        (guard(json!({"steps": 3})), "agent"),
        (expert("best_window", json!({"queue": 1})), "agent"),
        (json!({"name": ""}), "name"),
        (json!({"decision_latency": 60_000_000_001_u64}), "decision_latency"),
        (json!({"min_rtt_window": 0}), "min_rtt_window"),
        (json!({"min_rtt_window": 100_001}), "min_rtt_window"),
        (json!({"clock": {"interval": 999}}), "clock.interval"),
        (json!({"clock": {"tick": 10}}), "clock.tick"),
        (json!({"clock": {"interval": 1000, "on_ack": true, "tick": 1001}}), "clock.tick"),
        (rtt_clock(json!({"multiple": 0})), "clock.multiple"),
        (rtt_clock(json!({"first_rtts": 0})), "clock.first_rtts"),
        (rtt_clock(json!({"warm_up_rtts": -1})), "clock.warm_up_rtts"),
        (rtt_clock(json!({"floor": 999})), "clock.floor"),
        (rtt_clock(json!({"ceiling": 1_000_000})), "clock.ceiling"),
        (rtt_clock(json!({"no_ack": 999})), "clock.no_ack"),
        (json!({"startup": {"kind": "rate", "rate": 1e6}}), "startup.kind"),
        (json!({"startup": {"kind": "inner"}}), "startup.kind"),
        (json!({"startup": {"kind": "none"}}), "startup.kind"),
        (json!({"startup": {"kind": "slow_start", "exit": []}}), "startup.exit"),
        (json!({"startup": {"kind": "slow_start", "packets": 0.5}}), "startup.packets"),
        (json!({"startup": {"kind": "packets_per_rtt", "packets": 0}}), "startup.packets"),
        (json!({"startup": {"packets": 0.5}}), "startup.packets"),
        (json!({"startup": {"kind": "rate", "rate": 0.5}, "action": {"target": "rate"}}), "startup.rate"),
        (json!({"phases": {"window": 0}}), "phases.window"),
        (json!({"phases": {"window": 1001}}), "phases.window"),
        (json!({"phases": {"growth": 0}}), "phases.growth"),
        (json!({"phases": {"reenter_growth": -1}}), "phases.reenter_growth"),
        (json!({"phases": {"plateau_steps": 0}}), "phases.plateau_steps"),
        (json!({"phases": {"reenter_steps": 0}}), "phases.reenter_steps"),
        (json!({"phases": {"exit_queue": -0.1}}), "phases.exit_queue"),
        (json!({"observation": {"features": []}}), "observation.features"),
        (json!({"observation": {"history": 0}}), "observation.history"),
        (feature(json!({"clip": [1, 1]})), "observation.features[0].clip"),
        (feature(json!({"clip": [0, 1e39]})), "observation.features[0].clip"),
        (feature(json!({"minus": "mean_rtt"})), "observation.features[0].minus"),
        (feature(json!({"over": 0})), "observation.features[0].over"),
        (feature(json!({"scale": 0})), "observation.features[0].scale"),
        (feature(json!({"log": {"plus": 0}})), "observation.features[0].log.plus"),
        (feature(json!({"empty": 2})), "observation.features[0].empty"),
        (feature(json!({"history": 2})), "observation.features[0].history"),
        (feature(json!({"history": 0})), "observation.features[0].history"),
        (action(json!({"bounds": [1, -1]})), "action.bounds"),
        (action(json!({"limits": {"window": [0, 5]}})), "action.limits.window"),
        (action(json!({"limits": {"rate": [5, 1]}})), "action.limits.rate"),
        (action(json!({"limits": {"packets_per_min_rtt": -1}})), "action.limits.packets_per_min_rtt"),
        (map(json!({"kind": "passive"})), "action.inner"),
        (map(json!({"kind": "pair", "delta": 1})), "action.target"),
        (map(json!({"kind": "pair", "delta": 0})), "action.map.delta"),
        (map(json!({"kind": "signed_multiply", "delta": 0})), "action.map.delta"),
        (map(json!({"kind": "signed_multiply", "delta": 1.1e6})), "action.map.delta"),
        (map(json!({"kind": "exponential", "base": 1})), "action.map.base"),
        (discrete(json!([])), "action.map.operations"),
        (discrete(json!(["2"])), "action.map.operations[0]"),
        (gains(json!([]), "bdp"), "action.map.gains"),
        (gains(json!([1, 0]), "bdp"), "action.map.gains[1]"),
        (gains(json!([1]), "srtt"), "action.map.estimate"),
        (cap(json!({"estimate": "bdp"})), "action.cwnd_cap.estimate"),
        (cap(json!({"bdp": -1})), "action.cwnd_cap.bdp"),
        (cap(json!({"packets": -1})), "action.cwnd_cap.packets"),
        (cap(json!({"startup": -1})), "action.cwnd_cap.startup"),
        (action(smoothing(1.0)), "action.smoothing[0].keep"),
        (action(smoothing(-0.5)), "action.smoothing[0].keep"),
        (action(json!({"target": "rate", "pace": "cwnd_over_srtt"})), "action.pace"),
        (term(json!({"term": "latency", "of": "cwnd"})), "reward.terms[0].of"),
        (term(json!({"term": "orca_power", "margin": 0.5})), "reward.terms[0].margin"),
        (term(json!({"term": "loss", "phase": []})), "reward.terms[0].phase"),
        (guard(json!({"fraction": 0})), "guard.fraction"),
        (guard(json!({"fraction": 1.1})), "guard.fraction"),
        (guard(json!({"lift": 0})), "guard.lift"),
        (guard(json!({"lift": 1.5})), "guard.lift"),
        (guard(json!({"near": 0.5})), "guard.near"),
        (guard(json!({"loss": -1})), "guard.loss"),
        (guard(json!({"memory": 0})), "guard.memory"),
        (guard(json!({"patience": 0})), "guard.patience"),
        (guard(json!({"hold": 0})), "guard.hold"),
        (guard(json!({"max_hold": 0})), "guard.max_hold"),
        (guard(json!({"max_hold": 1})), "guard.max_hold"),
        (expert("fluid_bdp", json!({"queue_fraction": 1.5})), "expert.queue_fraction"),
        (expert("fluid_bdp", json!({"samples": 0})), "expert.samples"),
        (expert("gain_schedule", json!({"startup": 0.0})), "expert.startup"),
        (expert("gain_schedule", json!({"drain": 0.0})), "expert.drain"),
        (expert("gain_schedule", json!({"cycle": []})), "expert.cycle"),
        (expert("gain_schedule", json!({"cycle": [1.0, -1.0]})), "expert.cycle[1]"),
        (expert("gain_schedule", json!({"window": 0})), "expert.window"),
        (expert("gain_schedule", json!({"window": 1001})), "expert.window"),
        (expert("policy", json!({"policy": ""})), "expert.policy"),
    ];
    let of_over_cubic = [
        (action(json!({"target": "rate"})), "action.target"),
        (cap(json!({})), "action.cwnd_cap"),
        (json!({"startup": {"gain": 0.5}}), "startup.gain"),
        (json!({"startup": {"gain": 10.5}}), "startup.gain"),
        (json!({"startup": {"kind": "window", "packets": 4}}), "startup.kind"),
        (guard(json!({})), "guard.kind"),
    ];
    let of_gaining = [
        (action(json!({"inner": null})), "action.inner"),
        (map(json!({"kind": "pair", "delta": 1})), "action.target"),
        (gains(json!([1]), "bdp"), "action.target"),
        (discrete(json!(["*2", "+0"])), "action.map.operations[1]"),
        (action(json!({"pace": "cwnd_over_srtt"})), "action.pace"),
        (action(smoothing(0.5)), "action.smoothing"),
        (cap(json!({})), "action.cwnd_cap"),
        (action(json!({"limits": {"gain": [0, 5]}})), "action.limits.gain"),
        (action(json!({"limits": {"gain": [5, 1]}})), "action.limits.gain"),
        (json!({"startup": {"kind": "inner", "gain": 1.1}}), "startup.gain"),
        (json!({"startup": {"kind": "window", "packets": 4}}), "startup.kind"),
        (guard(json!({})), "guard.kind"),
        (expert("best_window", json!({})), "expert"),
    ];
    let rows = [(plain(), &of_plain[..]), (over_cubic(), &of_over_cubic[..]), (gaining(), &of_gaining[..])];
    for (base, rows) in rows {
        for (change, place) in rows {
            assert_eq!(refused(&base, change.clone()), Some(("invalid-value".into(), (*place).to_owned())), "{change}");
        }
    }
    for (change, place) in [
        (feature(json!({"signal": "cwn"})), "observation.features[0].signal"),
        (term(json!({"term": "throughputs"})), "reward.terms[0].term"),
        (term(json!({"term": "loss", "off": 1})), "reward.terms[0]"),
        (term(json!({"term": "loss", "of": "send"})), "reward.terms[0].of"),
    ] {
        assert_eq!(refused(&plain(), change.clone()), Some(("unknown-name".into(), place.to_owned())), "{change}");
    }
}

#[test]
fn bounds_themselves_are_accepted() {
    for change in [
        json!({"decision_latency": 60_000_000_000_u64, "min_rtt_window": 100_000, "clock": {"interval": 1000}}),
        json!({"startup": {"packets": 1}, "phases": {"window": 1000, "exit_queue": 0}}),
        rtt_clock(json!({"floor": 1000, "ceiling": 1000, "no_ack": 1000, "warm_up_rtts": 0})),
        cap(json!({"bdp": 0, "packets": 0, "startup": 0})),
        guard(json!({"fraction": 1, "lift": 1, "near": 1, "loss": 0, "patience": 1, "hold": 1, "max_hold": 1})),
        expert("fluid_bdp", json!({"queue_fraction": 1, "samples": 1000})),
        expert("gain_schedule", json!({"window": 1000, "startup": 100})),
    ] {
        assert_eq!(refused(&plain(), change.clone()), None, "{change}");
    }
}
