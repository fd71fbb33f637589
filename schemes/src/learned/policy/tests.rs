//! Compares with torch (`tests/models/make.py`), and reads invalid files.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{json, Value};

use super::super::card::{sha256, NetworkShape};
use super::super::compile;
use super::*;
use crate::wire::{field, varint};

macro_rules! model {
    ($name:literal, $ending:literal) => {
        include_bytes!(concat!("../../../tests/models/", $name, $ending))
    };
}

const MLP: (&[u8], &[u8], &[u8]) = (model!("mlp", ".onnx"), model!("mlp", ".json"), model!("mlp", ".cases.json"));
const SCORES: (&[u8], &[u8], &[u8]) =
    (model!("scores", ".onnx"), model!("scores", ".json"), model!("scores", ".cases.json"));
const LSTM_64: (&[u8], &[u8], &[u8]) =
    (model!("lstm_64", ".onnx"), model!("lstm_64", ".json"), model!("lstm_64", ".cases.json"));
const LSTM: (&[u8], &[u8], &[u8]) = (model!("lstm", ".onnx"), model!("lstm", ".json"), model!("lstm", ".cases.json"));

#[derive(Deserialize)]
struct Case {
    observation: Vec<f32>,
    action: Vec<f32>,
    state: Vec<f32>,
}

fn text(card: &[u8]) -> &str {
    std::str::from_utf8(card).expect("cards are text")
}

fn load(model: (&[u8], &[u8], &[u8])) -> Arc<Policy> {
    Policy::load(model.0, text(model.1)).expect("the test's own policy is valid")
}

fn cases(recorded: &[u8]) -> Vec<Case> {
    serde_json::from_slice(recorded).expect("recorded cases are JSON")
}

/// Return the card of `model` with one field replaced.
fn altered(model: (&[u8], &[u8], &[u8]), pointer: &str, value: Value) -> String {
    let mut card: Value = serde_json::from_slice(model.1).expect("cards are JSON");
    *card.pointer_mut(pointer).expect("the field exists") = value;
    card.to_string()
}

fn refusal(onnx: &[u8], card: &str) -> String {
    coded(&Policy::load(onnx, card).expect_err("this must be refused"))
}

/// Format an error as code and place.
fn coded(error: &Error) -> String {
    format!("{} at {}", error.code, error.place)
}

/// Return the error for a network stored with `model`'s card and a matching digest.
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
    let (onnx, recorded) = (model!("operations", ".onnx"), model!("operations", ".cases.json"));
    let cases = cases(recorded);
    let shape = NetworkShape {
        kind: NetworkKind::Mlp,
        observation_size: cases[0].observation.len(),
        state_size: 0,
        action_size: cases[0].action.len(),
    };
    let network = PolicyNetwork::read(onnx, shape).unwrap();
    let (mut answer, mut values) = (Vec::new(), Vec::new());
    for case in &cases {
        network.run(&case.observation, &[], &mut [], &mut answer, &mut values);
        assert_eq!(answer, case.action);
    }
    for operation in compile::operations() {
        assert!(String::from_utf8_lossy(onnx).contains(operation), "{operation} is not in the test");
    }
}

#[test]
fn recurrent_state_goes_from_decision_to_decision() {
    let mut action = Vec::new();
    for model in [LSTM_64, LSTM] {
        let mut session = load(model).session();
        for case in cases(model.2) {
            session.decide(&case.observation, &mut action).unwrap();
            assert_eq!(session.state(), case.state);
            assert_eq!(action, [first_maximum(&case.action) as f32]);
        }
    }
    let (mut other, cases) = (load(LSTM).session(), cases(LSTM.2));
    // A clone has its own memory, which can be set.
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
fn a_bad_observation_keeps_the_state() {
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
    // The agent and the card agree, but the network is a different one.
    assert_eq!(refusal_of(MLP, SCORES.0), "shape-mismatch at graph inputs");
    assert_eq!(refusal_of(SCORES, LSTM.0), "shape-mismatch at graph inputs");
}

/// Make a model of one node and one initializer of float64.
fn tiny(opset: u8, ir: u8, operation: &str, weight: f64, extra: &[u8]) -> Vec<u8> {
    let node =
        [field(1, b"observation"), field(2, b"action"), field(3, b"n"), field(4, operation.as_bytes()), extra.to_vec()]
            .concat();
    let tensor = [vec![0x08, 1, 0x10, 11], field(8, b"w"), field(9, &weight.to_le_bytes())].concat();
    let graph = [field(1, &node), field(5, &tensor), field(11, &field(1, b"observation"))].concat();
    [vec![0x08, ir], field(8, &[0x10, opset]), field(7, &graph)].concat()
}

#[test]
fn invalid_networks_are_refused() {
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
    // A cast to float64 whose last field is cut off.
    let cast = [field(1, b"to"), vec![0x18, 11]].concat();
    assert_eq!(says(&tiny(13, 7, "Cast", 1.0, &field(5, &cast))), "shape-mismatch at graph outputs");
}

/// Make a node of a graph.
fn node(operation: &str, inputs: &[&str], outputs: &[&str], attributes: &[u8]) -> Vec<u8> {
    let inputs = inputs.iter().flat_map(|name| field(1, name.as_bytes()));
    let outputs = outputs.iter().flat_map(|name| field(2, name.as_bytes()));
    let ports: Vec<u8> = inputs.chain(outputs).collect();
    field(1, &[ports, field(4, operation.as_bytes()), attributes.to_vec()].concat())
}

/// Make an attribute that is a whole number, and one that is a float.
fn whole(name: &str, value: u8) -> Vec<u8> {
    field(5, &[field(1, name.as_bytes()), vec![0x18, value]].concat())
}
fn float(name: &str, value: f32) -> Vec<u8> {
    field(5, &[&field(1, name.as_bytes())[..], &[0x15], &value.to_le_bytes()].concat())
}

/// Make an initializer of float64, and one of int64.
fn numbers(name: &str, dims: &[u64], value: impl Fn(usize) -> f64) -> Vec<u8> {
    let cells = (0..dims.iter().product::<u64>() as usize).flat_map(|i| value(i).to_le_bytes()).collect::<Vec<_>>();
    let dims = dims.iter().map(|dim| field(1, &varint(*dim))).collect::<Vec<_>>().concat();
    field(5, &[dims, vec![0x10, 11], field(8, name.as_bytes()), field(9, &cells)].concat())
}
fn sizes(name: &str, list: &[i64]) -> Vec<u8> {
    let cells = list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
    field(5, &[vec![0x08, list.len() as u8, 0x10, 7], field(8, name.as_bytes()), field(9, &cells)].concat())
}

/// Make a model that casts its observation to `v`, then has these nodes and constants.
fn model(nodes: &[u8], constants: &[u8]) -> Vec<u8> {
    let cast = node("Cast", &["observation"], &["v"], &whole("to", 11));
    let ports = [field(11, &field(1, b"observation")), field(12, &field(1, b"action"))].concat();
    let graph = [&cast, nodes, constants, &ports].concat();
    [vec![0x08, 7], field(8, &[0x10, 13]), field(7, &graph)].concat()
}

/// Make a chain of nodes with these inputs; "" is the output of the one before, at first `v`.
fn chain(operation: &str, inputs: [&str; 2], count: usize, attribute: &[u8], constants: &[u8]) -> Vec<u8> {
    let names: Vec<String> = (0..count).map(|i| format!("x{i}")).collect();
    let named = |i: usize, input| match (input, i) {
        ("", 0) => "v",
        ("", _) => names[i - 1].as_str(),
        (input, _) => input,
    };
    let nodes = (0..count).flat_map(|i| node(operation, &inputs.map(|input| named(i, input)), &[&names[i]], attribute));
    model(&nodes.collect::<Vec<_>>(), constants)
}

/// Return the answer of a network of one operation to [1, −2, 3, −4]; `None` if its inputs or attributes are invalid.
fn answer(operation: &str, inputs: &[&str], outputs: &[&str], attributes: &[u8]) -> Option<Vec<f32>> {
    let constants = [
        numbers("one", &[], |_| 2.0),
        numbers("row", &[4], |i| i as f64),
        numbers("row12", &[1, 2], |i| i as f64),
        numbers("w42", &[4, 2], |i| i as f64),
        numbers("w24", &[2, 4], |i| i as f64),
        numbers("high", &[2, 1, 4], |_| 1.0),
        sizes("1,3", &[1, 3]),
        sizes("2,3", &[2, 3]),
        sizes("0", &[0]),
        sizes("1", &[1]),
        sizes("-1", &[-1]),
        sizes("min", &[i64::MIN]),
    ]
    .concat();
    let last = node("Cast", &outputs[..1], &["action"], &whole("to", 1));
    let onnx = model(&[node(operation, inputs, outputs, attributes), last].concat(), &constants);
    (1..10).find_map(|action_size| {
        let shape = NetworkShape { kind: NetworkKind::Mlp, observation_size: 4, state_size: 0, action_size };
        let network = match PolicyNetwork::read(&onnx, shape) {
            Ok(network) => network,
            Err(error) => {
                let refused = coded(&error);
                let place = format!("policy-unreadable at graph, node \"\" ({operation})");
                assert!(refused == place || refused == "shape-mismatch at graph outputs", "{error}");
                return None;
            }
        };
        let (mut action, mut values) = (Vec::new(), Vec::new());
        network.run(&[1.0, -2.0, 3.0, -4.0], &[], &mut [], &mut action, &mut values);
        Some(action)
    })
}

#[test]
fn nodes_follow_the_rules_of_onnx() {
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Vec<u8>, Option<&'a [f32]>);
    let none = Vec::new;
    let (last, turned) = (whole("axis", 1), whole("transB", 1));
    let factors = [float("alpha", 2.0), float("beta", 0.5)].concat();
    let cases: Vec<Case<'_>> = vec![
        ("Add", &["v", "row"], &["y"], none(), Some(&[1.0, -1.0, 5.0, -1.0])),
        ("Sub", &["one", "v"], &["y"], none(), Some(&[1.0, 4.0, -1.0, 6.0])),
        ("Max", &["v", "one", "row"], &["y"], none(), Some(&[2.0, 2.0, 3.0, 3.0])),
        ("Add", &["v", "row12"], &["y"], none(), None),
        ("Add", &["v", "high"], &["y"], none(), None),
        ("Add", &["v", "w24"], &["y"], none(), None),
        ("MatMul", &["v", "w42"], &["y"], none(), Some(&[-16.0, -18.0])),
        ("MatMul", &["v", "w24"], &["y"], none(), None),
        ("MatMul", &["w24", "w42"], &["y"], none(), None),
        ("MatMul", &["v", "1,3"], &["y"], none(), None),
        ("Gemm", &["v", "w24"], &["y"], turned.clone(), Some(&[-8.0, -16.0])),
        ("Gemm", &["v", "w42", "row12"], &["y"], factors, Some(&[-32.0, -35.5])),
        ("Gemm", &["v", "w24", "row"], &["y"], turned, None),
        ("Gemm", &["v", "w42"], &["y"], whole("transA", 1), None),
        ("Concat", &["v", "row12"], &["y"], last.clone(), Some(&[1.0, -2.0, 3.0, -4.0, 0.0, 1.0])),
        ("Concat", &["v", "row12"], &["y"], whole("axis", 0), None),
        ("Split", &["v", "1,3"], &["y", "z"], last.clone(), Some(&[1.0])),
        ("Split", &["v"], &["z", "y", "x"], last.clone(), Some(&[1.0, -2.0])),
        ("Split", &["v", "2,3"], &["y", "z"], last.clone(), None),
        ("Split", &["v", "1,3"], &["y"], last.clone(), None),
        ("Split", &["v", "1,3"], &["y", "z"], none(), None),
        ("Slice", &["v", "1", "-1", "1"], &["y"], none(), Some(&[-2.0, 3.0])),
        ("Slice", &["v", "min", "1", "-1", "1"], &["y"], none(), Some(&[1.0])),
        ("Slice", &["v", "1", "-1", "1", "-1"], &["y"], none(), None),
        ("Slice", &["v", "0", "1"], &["y"], none(), Some(&[1.0, -2.0, 3.0, -4.0])),
        ("Slice", &["v", "1", "1"], &["y"], none(), None),
        ("Clip", &["v", "", "one"], &["y"], none(), Some(&[1.0, -2.0, 2.0, -4.0])),
        ("LeakyRelu", &["v"], &["y"], none(), Some(&[1.0, -0.02, 3.0, -0.04])),
        ("Flatten", &["v"], &["y"], whole("axis", 0), None),
        ("Softmax", &["v"], &["y"], whole("axis", 0), None),
        ("Cast", &["v"], &["y"], whole("to", 7), None),
        ("Tanh", &["v", "v"], &["y"], none(), None),
        ("Add", &["v"], &["y"], none(), None),
    ];
    for (operation, inputs, outputs, attributes, expected) in cases {
        let found = answer(operation, inputs, outputs, &attributes);
        assert_eq!(found.as_deref(), expected, "{operation} of {inputs:?}");
    }
}

#[test]
fn memory_and_work_of_a_small_file_are_bounded() {
    // Sizes on the card are checked before anything is allocated for them.
    for size in [2_000_000_000u64, 9_000_000_000_000_000_000] {
        let state = refusal(LSTM.0, &altered(LSTM, "/policy/state_size", json!(size)));
        assert_eq!(state, "too-large at card.policy.state_size", "{size}");
    }
    // Kilobytes that would become gigabytes.
    let doubled = chain("Concat", ["", ""], 40, &whole("axis", 1), b"");
    assert!(doubled.len() < 2000);
    let error = refusal_of(MLP, &doubled);
    assert!(error.starts_with("too-large at graph, node") && error.ends_with("(Concat)"), "{error}");
    // A matrix that is used many times.
    let matrix = numbers("c", &[30, 3000], |_| 0.0);
    let error = refusal_of(MLP, &chain("MatMul", ["v", "c"], 1300, b"", &matrix));
    assert!(error.starts_with("too-large at graph, node") && error.ends_with("(MatMul)"), "{error}");
    assert_eq!(refusal_of(MLP, &chain("Add", ["", ""], 20_000, b"", b"")), "too-large at graph");
    assert_eq!(refusal_of(MLP, &model(&node("Max", &["v"; 10_001], &["y"], b""), b"")), "too-large at graph");
    let attributes = |list: &[u8]| refusal_of(MLP, &model(&node("Max", &["v"], &["y"], list), b""));
    assert_eq!(attributes(&whole("a", 1).repeat(10_001)), "too-large at graph");
    assert_eq!(attributes(&field(5, &field(6, b""))), "policy-unreadable at graph", "a graph within");
    let unknown = refusal_of(MLP, &chain("Add", ["nothing", ""], 1, b"", b""));
    assert_eq!(unknown, "policy-unreadable at graph, node \"\" (Add)");
    assert_eq!(refusal_of(MLP, &vec![0; 64_000_001]), "too-large at file");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a matching digest, damaged files give an error or a policy.
    #[test]
    fn damaged_networks_give_an_error_or_a_policy(
        place in 0usize..4_000_000_000, bit in 0u8..8, cut in prop::option::of(0usize..4_000_000_000), which in 0..3,
    ) {
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
        let _ = PolicyNetwork::read(&bytes, Card::parse(text(MLP.1)).unwrap().policy);
    }
}
