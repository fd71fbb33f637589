//! Against torch (`tests/models/make.py`), and against files that are wrong.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{json, Value};

use super::super::card::sha256;
use super::super::runtime::{load_library, LIBRARY_VARIABLE};
use super::*;

macro_rules! model {
    ($name:literal, $ending:literal) => {
        include_bytes!(concat!("../../../tests/models/", $name, $ending))
    };
}

const MLP: (&[u8], &[u8], &[u8]) = (model!("mlp", ".onnx"), model!("mlp", ".json"), model!("mlp", ".cases.json"));
const SCORES: (&[u8], &[u8], &[u8]) =
    (model!("scores", ".onnx"), model!("scores", ".json"), model!("scores", ".cases.json"));
const LSTM: (&[u8], &[u8], &[u8]) = (model!("lstm", ".onnx"), model!("lstm", ".json"), model!("lstm", ".cases.json"));

#[derive(Deserialize)]
struct Case {
    observation: Vec<f32>,
    action: Vec<f32>,
    state: Vec<f32>,
}

/// Find ONNX Runtime where `make setup` puts it, unless the environment says where it is.
fn runtime() {
    let mut found = None;
    if std::env::var_os(LIBRARY_VARIABLE).is_none() {
        let environment = concat!(env!("CARGO_MANIFEST_DIR"), "/../.venv/lib");
        let pythons = std::fs::read_dir(environment).into_iter().flatten().flatten();
        let places = pythons.map(|python| python.path().join("site-packages/onnxruntime/capi"));
        found =
            places.filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten().map(|f| f.path()).find(
                |file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libonnxruntime.so")),
            );
    }
    if let Err(error) = load_library(found.as_ref().and_then(|path| path.to_str())) {
        panic!("{error}");
    }
}

fn text(card: &[u8]) -> &str {
    std::str::from_utf8(card).expect("cards are text")
}

fn load(model: (&[u8], &[u8], &[u8])) -> Arc<Policy> {
    runtime();
    Policy::load(model.0, text(model.1)).expect("the test's own policy is valid")
}

fn cases(recorded: &[u8]) -> Vec<Case> {
    serde_json::from_slice(recorded).expect("recorded cases are JSON")
}

/// The card of `model` with one field replaced.
fn altered(model: (&[u8], &[u8], &[u8]), pointer: &str, value: Value) -> String {
    let mut card: Value = serde_json::from_slice(model.1).expect("cards are JSON");
    *card.pointer_mut(pointer).expect("the field exists") = value;
    card.to_string()
}

fn refusal(onnx: &[u8], card: &str) -> String {
    runtime();
    coded(&Policy::load(onnx, card).expect_err("this must be refused"))
}

/// An error by its code and its place.
fn coded(error: &PolicyError) -> String {
    format!("{} at {}", error.code, error.place)
}

/// The error for a network stored with `model`'s card and a matching digest.
fn refusal_of(model: (&[u8], &[u8], &[u8]), onnx: &[u8]) -> String {
    refusal(onnx, &altered(model, "/onnx_sha256", json!(sha256(onnx))))
}

#[test]
fn decides_as_torch_does_in_float64() {
    let policy = load(MLP);
    let mut session = policy.session();
    let mut action = Vec::new();
    let cases = cases(MLP.2);
    for case in &cases {
        session.decide(&case.observation, &mut action).unwrap();
        assert_eq!(action, case.action);
    }
    assert!(session.state().is_empty());
    assert!(cases.iter().any(|case| case.action[0].abs() < 1.0), "not every case may be clipped");
}

#[test]
fn every_operation_does_float64() {
    runtime();
    let (onnx, recorded) = (model!("operations", ".onnx"), model!("operations", ".cases.json"));
    let cases = cases(recorded);
    let shape = super::super::card::NetworkShape {
        kind: super::super::card::NetworkKind::Mlp,
        observation_size: cases[0].observation.len(),
        state_size: 0,
        action_size: cases[0].action.len(),
    };
    graph::check(onnx, shape).unwrap();
    let mut engine = Engine::new(onnx, shape).unwrap();
    let (mut answer, mut after) = (Vec::new(), Vec::new());
    for case in &cases {
        engine.run(&case.observation, &[], &mut answer, &mut after).unwrap();
        assert_eq!(answer, case.action);
    }
    for operation in graph::OPERATIONS {
        assert!(String::from_utf8_lossy(onnx).contains(operation), "{operation} is not in the test");
    }
}

#[test]
fn recurrent_state_goes_from_decision_to_decision() {
    let policy = load(LSTM);
    let mut session = policy.session();
    let mut other = session.clone();
    let mut action = Vec::new();
    let cases = cases(LSTM.2);
    for case in &cases {
        session.decide(&case.observation, &mut action).unwrap();
        assert_eq!(session.state(), case.state);
        assert_eq!(action, [first_maximum(&case.action) as f32]);
    }
    // A copy has its own memory, which can be set.
    assert!(other.state().iter().all(|x| *x == 0.0));
    other.set_state(&cases[4].state).unwrap();
    other.decide(&cases[5].observation, &mut action).unwrap();
    assert_eq!(other.state(), cases[5].state);
    assert!(other.set_state(&[0.0]).is_err());
}

#[test]
fn discrete_answers_are_the_index_of_the_best_score() {
    let mut session = load(SCORES).session();
    let mut action = Vec::new();
    for case in cases(SCORES.2) {
        session.decide(&case.observation, &mut action).unwrap();
        assert_eq!(action, [first_maximum(&case.action) as f32]);
    }
    assert_eq!(first_maximum(&[0.5, 2.0, -1.0, 2.0]), 1);
    assert_eq!(first_maximum(&[f32::NEG_INFINITY, -1.0]), 1);
}

#[test]
fn threads_share_a_policy() {
    let policy = load(LSTM);
    let cases = cases(LSTM.2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = policy.session();
                let mut action = Vec::new();
                for case in &cases {
                    session.decide(&case.observation, &mut action).unwrap();
                    assert_eq!(session.state(), case.state);
                }
            });
        }
    });
    fn shareable<T: Send + Sync>() {}
    shareable::<Policy>();
    shareable::<Session>();
}

#[test]
fn a_bad_observation_leaves_the_state_alone() {
    let mut session = load(LSTM).session();
    let mut action = Vec::new();
    session.decide(&cases(LSTM.2)[0].observation, &mut action).unwrap();
    let before = session.state().to_vec();
    let error = session.decide(&[0.0; 3], &mut action).unwrap_err();
    assert_eq!((coded(&error), error.expected.as_str()), ("shape-mismatch at observation".to_owned(), "4"));
    let error = session.decide(&[f32::NAN; 4], &mut action).unwrap_err();
    assert_eq!(coded(&error), "learning-diverged at answer");
    assert_eq!(session.state(), before);
}

#[test]
fn cards_that_do_not_fit_are_refused() {
    let says = |pointer: &str, value: Value| refusal(MLP.0, &altered(MLP, pointer, value));
    assert_eq!(refusal(MLP.0, "{"), "policy-unreadable at card");
    assert_eq!(refusal(MLP.0, "[]"), "policy-version at card.format");
    assert_eq!(says("/format", json!(2)), "policy-version at card.format");
    assert_eq!(says("/policy/kind", json!("gru")), "policy-unreadable at card");
    assert_eq!(says("/agent", json!({})), "policy-unreadable at card");
    assert_eq!(says("/onnx_sha256", json!("00")), "policy-changed at SHA-256 of the ONNX file");
    assert_eq!(says("/policy/observation_size", json!(29)), "shape-mismatch at card.policy.observation_size");
    assert_eq!(says("/policy/action_size", json!(2)), "shape-mismatch at card.policy.action_size");
    assert_eq!(says("/policy/state_size", json!(2)), "shape-mismatch at card.policy.state_size");
    // The agent and the card agree, but the network is another one's.
    assert_eq!(refusal_of(MLP, SCORES.0), "shape-mismatch at graph inputs");
    assert_eq!(refusal_of(SCORES, LSTM.0), "shape-mismatch at graph inputs");
}

/// `message` inside a field of its own.
fn field(number: u8, message: &[u8]) -> Vec<u8> {
    assert!(message.len() < 128);
    [&[(number << 3) | 2, message.len() as u8], message].concat()
}

/// A model of one node and one initializer of float64.
fn tiny(opset: u8, ir: u8, operation: &str, weight: f64, extra: &[u8]) -> Vec<u8> {
    let node =
        [field(1, b"observation"), field(2, b"action"), field(3, b"n"), field(4, operation.as_bytes()), extra.to_vec()]
            .concat();
    let tensor = [vec![0x08, 1, 0x10, 11], field(8, b"w"), field(9, &weight.to_le_bytes())].concat();
    let graph = [field(1, &node), field(5, &tensor), field(11, &field(1, b"observation"))].concat();
    [vec![0x08, ir], field(8, &[0x10, opset]), field(7, &graph)].concat()
}

#[test]
fn networks_that_are_not_wanted_are_refused() {
    let says = |onnx: &[u8]| refusal_of(MLP, onnx);
    assert_eq!(says(b""), "policy-version at opset");
    assert_eq!(says(b"<html>not found</html>"), "policy-unreadable at ONNX file");
    assert_eq!(says(&MLP.0[..MLP.0.len() / 2]), "policy-unreadable at ONNX file");
    assert_eq!(says(&tiny(99, 7, "Cast", 1.0, b"")), "policy-version at opset");
    assert_eq!(says(&tiny(13, 99, "Cast", 1.0, b"")), "policy-version at file format");
    assert_eq!(says(&tiny(13, 7, "Loop", 1.0, b"")), "unsupported at graph");
    assert_eq!(says(&tiny(13, 7, "Tanh", 1.0, &field(7, b"com.example"))), "unsupported at graph");
    assert_eq!(says(&tiny(13, 7, "Tanh", 1.0, b"")), "unsupported at graph");
    assert_eq!(says(&tiny(13, 7, "Cast", f64::NAN, b"")), "learning-diverged at initializer \"w\"");
    // All is well until the runtime looks: a cast to float64 with no end.
    let cast = [field(1, b"to"), vec![0x18, 11]].concat();
    assert_eq!(says(&tiny(13, 7, "Cast", 1.0, &field(5, &cast))), "policy-unreadable at graph");
}

/// Wire format of a message of any length.
fn long(number: u8, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![(number << 3) | 2];
    let mut rest = message.len();
    while rest >= 128 {
        bytes.push(rest as u8 | 128);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    [bytes, message.to_vec()].concat()
}

/// A model that casts its observation, then applies `operation` again and again to the latest value and itself, from
/// `start` on.
fn chain(operation: &str, start: &str, count: usize, attribute: &[u8], constants: &[u8]) -> Vec<u8> {
    let to = field(5, &[field(1, b"to"), vec![0x18, 11]].concat());
    let cast = [field(1, b"observation"), field(2, b"v"), field(4, b"Cast"), to].concat();
    let mut nodes = long(1, &cast);
    let mut latest = start.to_owned();
    for i in 0..count {
        let name = format!("x{i}");
        let ports = [field(1, latest.as_bytes()), field(1, latest.as_bytes()), field(2, name.as_bytes())].concat();
        nodes.extend(long(1, &[ports, field(4, operation.as_bytes()), attribute.to_vec()].concat()));
        latest = name;
    }
    let graph = [nodes, constants.to_vec(), field(11, &field(1, b"observation"))].concat();
    [vec![0x08, 7], field(8, &[0x10, 13]), long(7, &graph)].concat()
}

#[test]
fn what_a_small_file_may_ask_for_is_bounded() {
    // Claims of the card, before anything is allocated for them.
    for size in [2_000_000_000u64, 9_000_000_000_000_000_000] {
        let state = refusal(LSTM.0, &altered(LSTM, "/policy/state_size", json!(size)));
        assert_eq!(state, "too-large at card.policy.state_size", "{size}");
    }
    // Kilobytes that would become gigabytes.
    let axis = field(5, &[field(1, b"axis"), vec![0x18, 1]].concat());
    let doubled = chain("Concat", "v", 40, &axis, b"");
    assert!(doubled.len() < 2000);
    let error = refusal_of(MLP, &doubled);
    assert!(error.starts_with("too-large at graph, node") && error.ends_with("(Concat)"), "{error}");
    // Constants count as well: the runtime computes their values when it loads the graph.
    let square = [vec![0x08, 60, 0x08, 60, 0x10, 11], field(8, b"c"), long(9, &[0; 60 * 60 * 8])].concat();
    let error = refusal_of(MLP, &chain("MatMul", "c", 1000, b"", &long(5, &square)));
    assert!(error.starts_with("too-large at graph, node") && error.ends_with("(MatMul)"), "{error}");
    assert_eq!(refusal_of(MLP, &chain("Tanh", "v", 20_000, b"", b"")), "too-large at graph");
    assert_eq!(refusal_of(MLP, &chain("Add", "nothing", 1, b"", b"")), "policy-unreadable at graph, node \"\" (Add)");
    assert_eq!(refusal_of(MLP, &vec![0; 64_000_001]), "too-large at file");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Below the digest: damaged files give an error or a policy, nothing else.
    #[test]
    fn damaged_networks_do_no_harm(
        place in 0usize..4_000_000_000, bit in 0u8..8, cut in prop::option::of(0usize..4_000_000_000), which in 0..3,
    ) {
        runtime();
        let model = [MLP, SCORES, LSTM][which as usize];
        let mut onnx = model.0.to_vec();
        let length = onnx.len();
        onnx[place % length] ^= 1 << bit;
        if let Some(cut) = cut {
            onnx.truncate(cut % length);
        }
        let card = Card::parse(text(model.1)).unwrap();
        match Policy::build(&onnx, card) {
            Ok(policy) => {
                let observation = vec![0.5; policy.card.policy.observation_size];
                let _ = policy.session().decide(&observation, &mut Vec::new());
            }
            Err(error) => prop_assert!(!error.found.is_empty() && !error.hint.is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = graph::check(&bytes, Card::parse(text(MLP.1)).unwrap().policy);
    }
}
