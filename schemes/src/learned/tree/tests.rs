//! Compares with scikit-learn (`tests/models/make.py`), and reads invalid files.

use proptest::prelude::*;
use serde_json::{json, Value};

use super::super::card::{sha256, NetworkKind};
use super::super::policy::Policy;
use super::*;
use crate::wire::{field, varint};

const ONNX: &[u8] = include_bytes!("../../../tests/models/tree.onnx");
const CARD: &str = include_str!("../../../tests/models/tree.json");
const CASES: &str = include_str!("../../../tests/models/tree.cases.json");

const SIZES: NetworkShape =
    NetworkShape { kind: NetworkKind::Tree, observation_size: 2, state_size: 0, action_size: 3 };

#[test]
fn decides_as_scikit_learn_does() {
    let policy = Policy::load(ONNX, CARD).expect("the test's own policy is valid");
    let (mut session, mut action) = (policy.session(), Vec::new());
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("recorded cases are JSON");
    let mut seen = [false; 5];
    for case in &cases {
        let observation: Vec<f32> = serde_json::from_value(case["observation"].clone()).expect("numbers");
        session.decide(&observation, &mut action).expect("it decides");
        let scores: Vec<f32> = serde_json::from_value(case["action"].clone()).expect("numbers");
        assert_eq!(scores[action[0] as usize], 1.0, "{case}");
        seen[action[0] as usize] = true;
    }
    assert!(session.state().is_empty() && seen.iter().filter(|taken| **taken).count() > 3);
}

#[test]
fn observations_with_nan_or_of_the_wrong_size_are_refused() {
    let mut session = Policy::load(ONNX, CARD).expect("valid").session();
    let mut action = Vec::new();
    let error = session.decide(&[0.0, f32::NAN, 0.0, 0.0], &mut action).expect_err("NaN");
    assert_eq!((error.place.as_str(), error.found.as_str()), ("answer", "its own NaN"));
    assert!(session.decide(&[0.0], &mut action).is_err());
}

/// Format an error as code and place.
fn coded(error: &Error) -> String {
    format!("{} at {}", error.code, error.place)
}

#[test]
fn cards_that_do_not_fit_are_refused() {
    let says = |pointer: &str, value: Value| {
        let mut card: Value = serde_json::from_str(CARD).expect("JSON");
        *card.pointer_mut(pointer).expect("the field exists") = value;
        coded(&Policy::load(ONNX, &card.to_string()).expect_err("this must be refused"))
    };
    let real = json!({"kind": "exponential", "base": 2.0});
    let mut card: Value = serde_json::from_str(CARD).expect("JSON");
    card["agent"]["action"]["map"] = real;
    card["policy"]["action_size"] = json!(1);
    let error = Policy::load(ONNX, &card.to_string()).expect_err("real numbers");
    assert_eq!(coded(&error), "policy-unsuitable at card.agent.action");
    assert_eq!(says("/policy/state_size", json!(2)), "shape-mismatch at card.policy.state_size");
    assert_eq!(says("/onnx_sha256", json!("00")), "policy-changed at SHA-256 of the ONNX file");
    // A tree whose card says network, and the reverse.
    assert_eq!(says("/policy/kind", json!("mlp")), "unsupported at graph");
    let network = include_bytes!("../../../tests/models/scores.onnx");
    card = serde_json::from_str(CARD).expect("JSON");
    card["onnx_sha256"] = json!(sha256(network));
    let error = Policy::load(network, &card.to_string()).expect_err("a network");
    assert_eq!(coded(&error), "policy-unreadable at opset ai.onnx.ml");
}

/// Attributes of a tree in a file; those of [`Parts::good`] are valid.
#[derive(Clone)]
struct Parts {
    trees: Vec<i64>,
    ids: Vec<i64>,
    modes: Vec<&'static str>,
    features: Vec<i64>,
    thresholds: Vec<f32>,
    at_most: Vec<i64>,
    above: Vec<i64>,
    answer_nodes: Vec<i64>,
    answers: Vec<i64>,
    weights: Vec<f32>,
    classes: Vec<i64>,
    transform: &'static str,
    operation: &'static str,
    input: &'static str,
    packed: bool,
    more: Vec<u8>,
}

impl Parts {
    /// x0 ≤ 1 ? 0 : (x1 ≤ −2 ? 1 : 2)
    fn good() -> Self {
        Self {
            trees: vec![0; 5],
            ids: vec![0, 1, 2, 3, 4],
            modes: vec!["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
            features: vec![0, 0, 1, 0, 0],
            thresholds: vec![1.0, 0.0, -2.0, 0.0, 0.0],
            at_most: vec![1, 0, 3, 0, 0],
            above: vec![2, 0, 4, 0, 0],
            answer_nodes: vec![1, 3, 4],
            answers: vec![0, 1, 2],
            weights: vec![1.0; 3],
            classes: vec![0, 1, 2],
            transform: "NONE",
            operation: "TreeEnsembleClassifier",
            input: "observation",
            packed: false,
            more: Vec::new(),
        }
    }

    fn onnx(&self) -> Vec<u8> {
        let ints = |name: &str, values: &[i64]| {
            let cells: Vec<Vec<u8>> = values.iter().map(|value| varint(*value as u64)).collect();
            let list = if self.packed {
                field(8, &cells.concat())
            } else {
                cells.iter().flat_map(|cell| [&[8 << 3], &cell[..]].concat()).collect()
            };
            field(5, &[field(1, name.as_bytes()), list].concat())
        };
        let floats = |name: &str, values: &[f32]| {
            let list = if self.packed {
                field(7, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())
            } else {
                values.iter().flat_map(|x| [&[(7 << 3) | 5], &x.to_le_bytes()[..]].concat()).collect()
            };
            field(5, &[field(1, name.as_bytes()), list].concat())
        };
        let modes = self.modes.iter().flat_map(|mode| field(9, mode.as_bytes())).collect();
        let answer_trees = vec![0; self.answer_nodes.len()];
        let node = [
            field(1, b"observation"),
            field(2, b"label"),
            field(2, b"action"),
            field(4, self.operation.as_bytes()),
            field(7, b"ai.onnx.ml"),
            ints("nodes_treeids", &self.trees),
            ints("nodes_nodeids", &self.ids),
            field(5, &[field(1, b"nodes_modes"), modes].concat()),
            ints("nodes_featureids", &self.features),
            floats("nodes_values", &self.thresholds),
            ints("nodes_truenodeids", &self.at_most),
            ints("nodes_falsenodeids", &self.above),
            ints("class_treeids", &answer_trees),
            ints("class_nodeids", &self.answer_nodes),
            ints("class_ids", &self.answers),
            floats("class_weights", &self.weights),
            ints("classlabels_int64s", &self.classes),
            field(5, &[field(1, b"post_transform"), field(4, self.transform.as_bytes())].concat()),
        ]
        .concat();
        let ports = [field(11, &field(1, self.input.as_bytes())), field(12, &field(1, b"action"))].concat();
        let graph = [field(1, &node), ports, self.more.clone()].concat();
        let opset = |domain: &[u8]| field(8, &[field(1, domain), vec![0x10, 1]].concat());
        [vec![0x08, 7], opset(b"ai.onnx.ml"), field(7, &graph)].concat()
    }

    fn read(&self) -> Result<Tree, Error> {
        Tree::read(&self.onnx(), SIZES)
    }
}

#[test]
fn comparisons_lead_to_leaves() {
    for packed in [false, true] {
        let tree = Parts { packed, ..Parts::good() }.read().expect("valid");
        for (observation, action) in [
            ([1.0, 0.0], 0),
            ([1.0 + f32::EPSILON, -2.0], 1),
            ([9.0, -1.9], 2),
            ([f32::MAX, f32::MIN], 1),
            ([-0.0, 5.0], 0),
        ] {
            assert_eq!(tree.decide(&observation), action, "{observation:?}");
        }
    }
}

#[test]
fn invalid_trees_are_refused() {
    let refusal = |change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::good();
        change(&mut parts);
        let error = parts.read().expect_err("this must be refused");
        assert!(!error.found.is_empty() && !error.expected.is_empty() && !error.hint.is_empty(), "{error}");
        error.place
    };
    type Change = fn(&mut Parts);
    let cases: &[(Change, &str)] = &[
        (|p| p.ids.clear(), "tree, nodes"),
        (|p| p.ids = vec![0; 200_001], "tree, nodes"),
        (|p| p.features.truncate(4), "tree, nodes_featureids"),
        (|p| p.modes.truncate(1), "tree, nodes_modes"),
        (|p| p.weights.push(1.0), "tree, class_weights"),
        (|p| p.ids[2] = 7, "tree, node 2, number"),
        (|p| p.trees[4] = 1, "tree, node 4, number"),
        (|p| p.modes[0] = "BRANCH_LT", "tree, node 0, mode"),
        (|p| p.features[2] = 2, "tree, node 2, feature"),
        (|p| p.features[2] = -1, "tree, node 2, feature"),
        (|p| p.thresholds[0] = f32::NAN, "tree, node 0, threshold"),
        (|p| p.thresholds[2] = f32::INFINITY, "tree, node 2, threshold"),
        (|p| p.at_most[2] = 5, "tree, node 2, true branch"),
        (|p| p.above[2] = 0, "tree, node 2, false branch"),
        (|p| p.above[2] = 2, "tree, node 2, false branch"),
        (|p| p.above[2] = -4, "tree, node 2, false branch"),
        (|p| p.above[0] = 1, "tree, node 0, false branch"),
        (|p| p.modes[2] = "LEAF", "tree, node 3, parent"),
        (|p| p.answer_nodes[0] = 0, "tree, answer 0, node"),
        (|p| p.answer_nodes[1] = 1, "tree, answer 1, node"),
        (|p| p.answers[2] = 3, "tree, answer 2, action"),
        (|p| p.weights[2] = 0.0, "tree, answer 2, weight"),
        (|p| p.classes.reverse(), "tree, classlabels_int64s"),
        (|p| p.classes.truncate(2), "tree, classlabels_int64s"),
        (|p| p.transform = "SOFTMAX", "tree, post_transform"),
        (|p| p.operation = "TreeEnsembleRegressor", "graph"),
        (|p| p.input = "x", "graph inputs"),
        (|p| p.more = field(1, b""), "graph"),
    ];
    for (change, wanted) in cases {
        assert_eq!(refusal(change), *wanted);
    }
    let silent = refusal(&|p| {
        p.answer_nodes.pop();
        p.answers.pop();
        p.weights.pop();
    });
    assert_eq!(silent, "tree, node 4, answer");
}

#[test]
fn depth_is_bounded() {
    /// Make a chain of `depth` splits.
    fn chain(depth: usize) -> Parts {
        let count = 2 * depth + 1;
        let inner = |i: usize| i % 2 == 0 && i + 1 < count;
        let leaves: Vec<i64> = (0..count).filter(|i| !inner(*i)).map(|i| i as i64).collect();
        Parts {
            trees: vec![0; count],
            ids: (0..count as i64).collect(),
            modes: (0..count).map(|i| if inner(i) { "BRANCH_LEQ" } else { "LEAF" }).collect(),
            features: vec![0; count],
            thresholds: (0..count).map(|i| i as f32).collect(),
            at_most: (0..count as i64).map(|i| i + 1).collect(),
            above: (0..count as i64).map(|i| i + 2).collect(),
            answers: vec![1; leaves.len()],
            weights: vec![1.0; leaves.len()],
            answer_nodes: leaves,
            ..Parts::good()
        }
    }
    assert_eq!(chain(MAX_DEPTH).read().expect("as deep as allowed").decide(&[1e9, 0.0]), 1);
    assert_eq!(chain(MAX_DEPTH + 1).read().expect_err("deeper").place, "tree, node 128, depth");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// With a matching digest, a damaged file gives an error, or a tree that decides.
    #[test]
    fn damaged_trees_give_an_error_or_decide(place in 0usize..4_000_000_000, bit in 0u8..8, packed in any::<bool>(), which in any::<bool>()) {
        let mut onnx = if which { ONNX.to_vec() } else { Parts { packed, ..Parts::good() }.onnx() };
        let sizes = if which { NetworkShape { observation_size: 4, action_size: 5, ..SIZES } } else { SIZES };
        let length = onnx.len();
        onnx[place % length] ^= 1 << bit;
        match Tree::read(&onnx, sizes) {
            Ok(tree) => prop_assert!((tree.decide(&[0.5; 4]) as usize) < sizes.action_size),
            Err(error) => prop_assert!(!error.found.is_empty() && !error.hint.is_empty()),
        }
    }
}
