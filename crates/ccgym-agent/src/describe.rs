//! Describes an agent: each number of its observation, action and reward.

use serde_json::{json, Map as Object, Value};

use super::action::{ActionKind, Map};
use super::expressions::FUNCTIONS;
use super::observation::Content;
use super::plan::Plan;
use super::reward::KINDS;
use super::signals::SIGNALS;
use super::spec::{GuardSpec, Pace, PreviousAction, RecoverySpec, Target};

/// Return `{"observation": […], "action": […], "reward": […], "clock": …, "startup": …, "guard": …, "expert": …}`; one
/// row per number, with name, unit, range and formula. A discrete action has one row per choice, with the limits of the
/// steered quantity. An agent without expert has null there.
pub(crate) fn describe(plan: &Plan) -> Value {
    json!({
        "name": plan.spec.name,
        "observation": observation(plan),
        "action": action(plan),
        "reward": plan.reward.terms.iter().map(|term| json!({
            "name": term.name, "unit": term.unit, "weight": term.weight, "formula": term.formula,
            "phases": term.phases, "needs_truth": term.needs_truth,
        })).collect::<Vec<_>>(),
        "clock": clock(plan),
        "startup": plan.spec.startup.describe(),
        "guard": plan.spec.guard.describe(),
        "expert": plan.spec.expert.as_ref().map(|expert| expert.describe(plan.actions.target)),
    })
}

fn clock(plan: &Plan) -> String {
    let latency = plan.spec.decision_latency;
    let text = plan.spec.clock.describe();
    if latency.0 == 0 {
        text
    } else {
        format!("{text}; a decision takes effect {} ms later", latency.as_millis_f64())
    }
}

fn observation(plan: &Plan) -> Vec<Value> {
    let layout = &plan.layout;
    let one_hot = layout.previous == PreviousAction::OneHot;
    let choices = choices(plan);
    let rows = layout.columns.iter().enumerate().map(|(index, column)| {
        let (name, unit, formula) = match column.content {
            Content::Feature(i) => {
                let feature = &layout.features[i];
                (feature.name.clone(), feature.unit.clone(), feature.formula.clone())
            }
            Content::Action(i) if one_hot => {
                let choice = &choices[i].0;
                (format!("previous action {choice}"), "1".to_owned(), format!("1 if the action was {choice}, else 0"))
            }
            Content::Action(i) => {
                (format!("previous action [{i}]"), "1".to_owned(), "action in force in the interval".to_owned())
            }
        };
        let name = if column.age == 0 { name } else { format!("{name} [t−{}]", column.age) };
        let [low, high] = layout.bounds(column);
        json!({"index": index, "name": name, "unit": unit, "low": low, "high": high, "formula": formula,
               "age": column.age})
    });
    rows.collect()
}

/// Return name and formula of each choice of a discrete action.
fn choices(plan: &Plan) -> Vec<(String, String)> {
    let x = steered(plan);
    let from = before(plan, x);
    match &plan.actions.map {
        Map::Discrete(operations) => {
            let unit = match plan.actions.target {
                Target::Cwnd => "packets",
                Target::Rate => "packets per min_rtt",
                Target::Both => "packets (per min_rtt)",
                Target::Gain => "",
            };
            operations.iter().map(|o| (o.text.clone(), format!("{x} ← {}", o.apply_text(from, unit)))).collect()
        }
        Map::GainOnEstimate { gains, text, .. } => {
            gains.iter().map(|gain| (format!("{gain}×"), format!("{x} ← {gain} · {text}"))).collect()
        }
        Map::Passive => vec![("keep".to_owned(), "the base scheme decides".to_owned())],
        _ => Vec::new(),
    }
}

fn steered(plan: &Plan) -> &'static str {
    match plan.actions.target {
        Target::Cwnd if plan.actions.overwrites => "cwnd of the base scheme",
        Target::Cwnd => "cwnd",
        Target::Rate => "rate",
        Target::Both => "rate and cwnd",
        Target::Gain => "gain of the base scheme",
    }
}

/// Return the input of the map: the current value of `x`, or a gain of 1.
fn before<'a>(plan: &Plan, x: &'a str) -> &'a str {
    if plan.actions.sets_gain {
        "1"
    } else {
        x
    }
}

fn action(plan: &Plan) -> Vec<Value> {
    let actions = &plan.actions;
    let (unit, [low, high]) = match actions.target {
        Target::Rate => ("bit/s", actions.limits.rate),
        Target::Gain => ("1", actions.limits.gain()),
        _ => ("packets", actions.limits.window),
    };
    let suffix = consequences(plan);
    match actions.kind() {
        ActionKind::Discrete(_) => choices(plan)
            .into_iter()
            .enumerate()
            .map(|(index, (name, formula))| {
                let formula = format!("{formula}{suffix}");
                json!({"index": index, "name": name, "unit": unit, "low": low, "high": high, "formula": formula})
            })
            .collect(),
        ActionKind::Box { size, low: min, high: max } => (0..size)
            .map(|index| {
                let x = match (size, index) {
                    (2, 0) => "rate",
                    (2, _) => "cwnd",
                    _ => steered(plan),
                };
                let within = match (size, index) {
                    (2, 1) => format!(", within {:?} packets", actions.limits.window),
                    (2, _) => format!(", within {:?} bit/s", actions.limits.rate),
                    _ if actions.sets_gain => format!(", within [{low}, {high}]"),
                    _ => format!(", within [{low}, {high}] {unit}"),
                };
                let formula = format!("{}{within}{suffix}", continuous(plan, x));
                let name = if actions.sets_gain { x.to_owned() } else { format!("change of {x}") };
                json!({"index": index, "name": name, "unit": "1", "low": min, "high": max,
                       "formula": formula})
            })
            .collect(),
    }
}

fn continuous(plan: &Plan, x: &str) -> String {
    let from = before(plan, x);
    match &plan.actions.map {
        Map::SignedMultiply(delta) | Map::Pair(delta) => {
            format!("{x} ← {from} · (1 + {delta}·a) if a ≥ 0, else {from} / (1 − {delta}·a)")
        }
        Map::Exponential(base) => format!("{x} ← {from} · {base}^a"),
        _ => String::new(),
    }
}

/// Describe what else affects a decision.
fn consequences(plan: &Plan) -> String {
    let mut text = String::new();
    if plan.actions.sets_gain {
        text.push_str("; so many times what it lets wait in the queue, 1 being its own; cwnd and pacing stay its own");
    }
    let packets = plan.actions.limits.packets_per_min_rtt;
    if packets > 0.0 && plan.actions.target.has_rate() {
        text.push_str(&format!("; rate at least {packets} packets per min_rtt"));
    }
    for step in &plan.spec.action.smoothing {
        let (keep, from) = (step.keep, step.min_rtt.as_millis_f64());
        text.push_str(&format!("; {keep} of the old value is kept from a min_rtt of {from} ms on"));
    }
    match plan.actions.pace {
        Pace::None => {}
        Pace::CwndOverMinRtt => text.push_str("; paced at cwnd / min_rtt"),
        Pace::CwndOverSrtt => text.push_str("; paced at cwnd / srtt"),
    }
    if let Some(cap) = &plan.spec.action.cwnd_cap {
        text.push_str(&format!("; cwnd at most {} · {} · min_rtt + {} packets", cap.bdp, cap.estimate, cap.packets));
        if let Some(startup) = cap.startup {
            text.push_str(&format!(", in start-up {startup} times instead"));
        }
    }
    text
}

/// Return all signals, functions, action maps and reward terms, for documentation.
#[must_use]
pub fn vocabulary() -> Value {
    let signals = SIGNALS.iter().map(|s| {
        let bound = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        json!({"name": s.name, "unit": s.unit, "low": bound(s.low), "high": bound(s.high), "formula": s.formula,
               "needs_rate_samples": s.needs_rate_samples()})
    });
    let terms = KINDS.iter().map(|kind| {
        json!({"name": kind.name, "help": kind.help, "formula": kind.formula, "source": kind.source, "needs_truth": kind.needs_truth,
               "parameters": kind.parameters.iter().map(|p| (p.name.to_owned(), p.schema())).collect::<Object<_, _>>()})
    });
    let row = |(name, formula): &(&str, &str)| json!({"name": name, "formula": formula});
    json!({
        "signals": signals.collect::<Vec<_>>(),
        "functions": FUNCTIONS.iter().map(|f| row(&(f.0, f.2))).collect::<Vec<_>>(),
        "transforms": TRANSFORMS.iter().map(row).collect::<Vec<_>>(),
        "maps": MAPS.iter().map(|(name, formula, source)| {
            json!({"name": name, "formula": formula, "source": source})
        }).collect::<Vec<_>>(),
        "terms": terms.collect::<Vec<_>>(),
        "guards": [{"name": "none", "formula": GuardSpec::None {}.describe()},
                   {"name": "recovery", "formula": GuardSpec::Recovery(RecoverySpec::default()).describe()}],
    })
}

/// Transforms in the order of their application.
const TRANSFORMS: &[(&str, &str)] = &[
    ("minus", "x − another expression of the same unit, or a number"),
    ("over", "x / an expression or number; when_undefined where that is 0"),
    ("log", "ln(plus + max(0, x)), plus 1e-9 unless given"),
    ("scale", "scale · x"),
    ("clip", "x within [low, high]: the bounds of the observation"),
];

/// Name, formula, source.
const MAPS: &[(&str, &str, &str)] = &[
    (
        "discrete",
        "x ← x·f, x/f, x + n or x − n by index; n in packets, or packets per min RTT for a rate",
        "Indigo: /2, −10, +0, +10, ×2",
    ),
    ("signed_multiply", "x ← x·(1 + delta·a) if a ≥ 0, else x / (1 − delta·a)", "Aurora: delta 0.025; Genet: 1"),
    ("exponential", "x ← x·base^a", "Orca: 4; Sage: 2"),
    ("gain_on_estimate", "x ← gain · estimate, unchanged while that is unknown", "BBR's way of using its gains"),
    ("pair", "signed_multiply of the rate by the first number, of the window by the second", "Park; Aurora's option"),
    ("passive", "the base scheme decides; for measuring it on the agent's clock and reward", "none"),
];
