//! Contracts of all registered schemes.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::{CongestionControl, Rate, TimeSpan, Timestamp};
use ccgym_schemes::registry::ParameterKind;
use ccgym_schemes::testing::{scheme, MockTransport, TestEvent, MSS};
use ccgym_schemes::{create, create_with, registry, Resources, SchemeEntry};
use proptest::prelude::*;
use serde_json::{json, Map, Value};

/// Files and folders of `src/` that are not schemes.
const SUPPORT: &[&str] = &[
    "bbr_model",
    "filters",
    "lib",
    "loss_based",
    "monitor_interval",
    "ns3_delay",
    "pacing",
    "registry",
    "send_gate",
    "slow_start",
    "testing",
    "wire",
];

#[test]
fn every_file_is_registered() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let files: BTreeSet<String> =
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            // A folder without a module file is ignored: it may be in preparation.
            .filter(|path| {
                if path.is_dir() {
                    path.join("mod.rs").exists()
                } else {
                    path.extension().is_some_and(|e| e == "rs")
                }
            })
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| !SUPPORT.contains(&name.as_str()))
            .collect();
    let names: BTreeSet<String> = registry().iter().map(|entry| entry.info.name.to_owned()).collect();
    assert_eq!(names.len(), registry().len(), "two entries share a name");
    if let Some(name) = files.difference(&names).next() {
        panic!("src/{name} is not registered: declare it and add `{name}::ENTRY,` to SCHEMES in src/lib.rs");
    }
    if let Some(name) = names.difference(&files).next() {
        panic!("{name} is registered but src/{name}.rs is missing: a scheme's name is its file's");
    }
}

#[test]
fn entries_are_complete() {
    for SchemeEntry { info, .. } in registry() {
        for (field, text) in [("label", info.label), ("reference", info.reference), ("summary", info.summary)] {
            assert!(!text.trim().is_empty(), "{}: {field} is empty", info.name);
        }
        assert!(info.summary.ends_with('.'), "{}: the summary is a sentence", info.name);
        let names: BTreeSet<_> = info.parameters.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), info.parameters.len(), "{}: two parameters share a name", info.name);
        for p in info.parameters {
            assert!(p.help.ends_with('.'), "{}.{}: the help is a sentence", info.name, p.name);
            if let (Some(min), Some(max)) = (p.min(), p.max()) {
                assert!(min < max, "{}.{}: range", info.name, p.name);
            }
        }
    }
}

fn with(key: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), value)])
}

#[test]
fn parameters_are_checked() {
    for SchemeEntry { info, .. } in registry() {
        let name = info.name;
        let unknown = create(name, &with("no_such_parameter", json!(1))).err().unwrap();
        assert_eq!(unknown.code, "unknown-parameter", "{name}: {unknown}");
        for p in info.parameters {
            if let Err(error) = create(name, &with(p.name, p.default_value())) {
                panic!("{name}: its own default: {error}");
            }
            let mut wrong = vec![json!(null), json!([])];
            wrong.extend(p.min().filter(|_| p.min() > Some(0.0)).map(|min| json!(min / 2.0)));
            wrong.extend(p.max().map(|max| json!(max * 2.0)));
            if !matches!(p.kind, ParameterKind::Text) {
                wrong.push(json!("no such word"));
            }
            for value in wrong {
                let error = create(name, &with(p.name, value.clone())).err().map(|error| (error.code, error.place));
                let place = format!("scheme {name}, parameter {}", p.name);
                assert_eq!(error, Some(("parameter-invalid".into(), place)), "{value}");
            }
            // A scheme can be built and run with each word of a choice.
            for word in p.choices() {
                let mut host = MockTransport::new(create(name, &with(p.name, json!(word))).unwrap());
                host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
                check(name, &host, false);
            }
        }
    }
}

/// Check the contract of a decision.
fn check(name: &str, host: &MockTransport, had_timeout: bool) {
    let control = host.scheme.control();
    let capabilities = host.scheme.capabilities();
    // Recovery by PRR needs TCP's minimum (RFC 5681 §3.1, RFC 9002 §7.2).
    if capabilities.prr {
        let min = if had_timeout { MSS } else { 2 * MSS };
        assert!(control.cwnd >= min, "{name}: window {} below {min}", control.cwnd);
    }
    let wakes = host.packets_in_flight() > 0 || host.scheme.next_timer() < Timestamp::NEVER;
    assert!(
        control.cwnd >= MSS || wakes,
        "{name}: a closed window, and neither a timer nor an acknowledgement to come"
    );
    if capabilities.pacing_required {
        assert!(control.pacing_rate > Rate::ZERO, "{name}: needs pacing but sets no rate");
    }
    assert!(control.pacing_rate < Rate(1 << 60), "{name}: rate {:?} overflows", control.pacing_rate);
    if !capabilities.timers {
        assert_eq!(host.scheme.next_timer(), Timestamp::NEVER, "{name}: a timer without the capability `timers`");
    }
    assert!(host.scheme.ssthresh().is_none_or(|bytes| bytes >= MSS), "{name}: threshold below a packet");
    // A value may be NaN while unknown, but the list of keys never changes.
    let keys: BTreeSet<_> = host.scheme.observables().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), host.scheme.observables().len(), "{name}: two observables share a name");
    assert!(keys.iter().all(|key| !key.is_empty()), "{name}: an observable without a name");
}

#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Ack { acked: usize, ce: usize, delayed: bool },
    Lose { lost: usize, acked: usize },
    Rounds { count: usize, rtt_us: u64, spacing_us: u64 },
    TimeOut,
    Spurious,
    AppLimit(bool),
    Idle(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..200_000).prop_map(Step::Wait),
        8 => (1usize..40, 0usize..3, any::<bool>()).prop_map(|(acked, ce, delayed)| Step::Ack { acked, ce, delayed }),
        3 => (1usize..20, 0usize..20).prop_map(|(lost, acked)| Step::Lose { lost, acked }),
        2 => (1usize..4, 100u64..200_000, 0u64..2_000)
            .prop_map(|(count, rtt_us, spacing_us)| Step::Rounds { count, rtt_us, spacing_us }),
        1 => Just(Step::TimeOut),
        1 => Just(Step::Spurious),
        1 => any::<bool>().prop_map(Step::AppLimit),
        1 => (1u64..30_000_000).prop_map(Step::Idle),
    ]
}

fn play(host: &mut MockTransport, step: &Step) {
    match *step {
        Step::Wait(us) => host.advance(TimeSpan::from_micros(us)),
        Step::Ack { acked, ce, delayed } => host.play(TestEvent { acked, ce, delayed, lost: 0 }),
        Step::Lose { lost, acked } => host.play(TestEvent { lost, acked, ..TestEvent::default() }),
        Step::Rounds { count, rtt_us, spacing_us } => {
            for _ in 0..count {
                host.ack_round(TimeSpan::from_micros(rtt_us), TimeSpan::from_micros(spacing_us));
            }
        }
        Step::TimeOut => host.time_out(),
        Step::Spurious => host.spurious(),
        Step::AppLimit(limited) => {
            host.cwnd_limited = !limited;
            if limited {
                host.app_limit();
            }
        }
        Step::Idle(us) => host.idle(TimeSpan::from_micros(us)),
    }
}

/// Return the defaults, and each word of each choice.
fn variants(entry: &SchemeEntry) -> Vec<Map<String, Value>> {
    let words = entry.info.parameters.iter().flat_map(|p| p.choices().iter().map(|word| with(p.name, json!(word))));
    std::iter::once(Map::new()).chain(words).collect()
}

/// Make the scheme below a passive agent; `None` for one with a receiver side, or that is an agent itself.
fn under_a_passive_agent(name: &str, params: &Map<String, Value>) -> Option<Box<dyn CongestionControl>> {
    let agent = json!({
        "name": "over", "clock": {"kind": "fixed", "interval": 20_000_000},
        "observation": {"features": [{"signal": "loss_fraction", "clip": [0.0, 1.0]}]},
        "action": {"map": {"kind": "passive"}, "target": "cwnd", "inner": {"scheme": name, "params": params}},
        "startup": {"kind": "none"}
    });
    let agent = Some(FlowAgent::new(Arc::new(AgentSpec::from_json(&agent.to_string()).unwrap())));
    let made = create_with("learned", &Map::new(), &Resources { agent, ..Resources::default() });
    let mut alone = create(name, params).unwrap();
    let refused = alone.receiver_side().is_some() || alone.interval_driven().is_some();
    assert_eq!(made.is_err(), refused, "{name}: {:?}", made.err());
    made.ok()
}

/// Return all that a host reads of a scheme.
fn shown(host: &mut MockTransport) -> impl PartialEq + Debug {
    let scheme = &mut host.scheme;
    let media = scheme.media().map(|media| media.target_rate());
    (scheme.control(), scheme.next_timer(), scheme.send_quantum(), scheme.ssthresh(), scheme.state(), media)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// No event panics; equal events give equal decisions; a clone continues exactly as the original.
    #[test]
    fn random_events(steps in prop::collection::vec(step(), 1..60), copy_at in 0usize..60) {
        for entry in registry() {
            for params in variants(entry) {
                let mut host = MockTransport::new(create(entry.info.name, &params).unwrap());
                let mut twin = MockTransport::new(create(entry.info.name, &params).unwrap());
                let mut wrapped = under_a_passive_agent(entry.info.name, &params).map(MockTransport::new);
                let mut copy = None;
                let mut had_timeout = false;
                check(entry.info.name, &host, false);
                for (i, step) in steps.iter().enumerate() {
                    if i == copy_at {
                        copy = Some(host.clone());
                    }
                    had_timeout |= matches!(step, Step::TimeOut);
                    play(&mut host, step);
                    play(&mut twin, step);
                    check(entry.info.name, &host, had_timeout);
                    prop_assert_eq!(host.scheme.control(), twin.scheme.control(), "{} is not deterministic", entry.info.name);
                    if let Some(wrapped) = &mut wrapped {
                        play(wrapped, step);
                        prop_assert_eq!(shown(wrapped), shown(&mut host), "{}: its wrapper differs", entry.info.name);
                    }
                    if let Some(copy) = &mut copy {
                        play(copy, step);
                        prop_assert_eq!(host.scheme.control(), copy.scheme.control(), "{}: a copy differs", entry.info.name);
                        prop_assert_eq!(host.scheme.next_timer(), copy.scheme.next_timer());
                    }
                }
            }
        }
    }
}

/// No growth while the application limits sending (RFC 9002 §7.8).
#[test]
fn unused_windows_do_not_grow() {
    for entry in registry() {
        let mut host = MockTransport::new(scheme(entry.info.name, &json!({})));
        host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        host.cwnd_limited = false;
        host.app_limit();
        // Rate-based schemes may still learn from this round.
        host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        if host.scheme.capabilities().prr {
            let before = host.window();
            for _ in 0..20 {
                host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
            }
            assert!(host.window() <= before, "{}: {before} → {}", entry.info.name, host.window());
        }
    }
}

/// No growth in recovery.
#[test]
fn recovering_windows_do_not_grow() {
    for entry in registry() {
        let mut host = MockTransport::new(scheme(entry.info.name, &json!({})));
        for _ in 0..4 {
            host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        }
        host.lose();
        if host.scheme.capabilities().prr {
            let reduced = host.window();
            host.ack(1);
            while host.in_recovery() {
                assert!(host.window() <= reduced, "{}: {reduced} → {}", entry.info.name, host.window());
                host.ack(1);
            }
        }
    }
}
