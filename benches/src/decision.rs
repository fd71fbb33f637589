//! How long a deployed policy takes for one decision, from the observation to the action.
//!
//! Of the committed policies, and of networks of other sizes that are put together here, with weights from a generator:
//! the time does not depend on their values.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_schemes::learned::{sha256, Policy, PolicyError};
use serde_json::{json, Value};

/// A network to time.
pub struct Network {
    /// Name in the results.
    pub name: &'static str,
    observation: usize,
    units: &'static [usize],
    action: usize,
    /// Whether the layers are LSTM cells, each with a state, rather than sums and tanh.
    recurrent: bool,
}

/// From a small one to one of 801,000 weights.
pub const NETWORKS: &[Network] = &[
    Network { name: "mlp_32_16", observation: 30, units: &[32, 16], action: 1, recurrent: false },
    Network { name: "lstm_32", observation: 9, units: &[32], action: 5, recurrent: true },
    Network { name: "lstm_64", observation: 16, units: &[64], action: 7, recurrent: true },
    Network { name: "lstm_256_256", observation: 11, units: &[256, 256], action: 7, recurrent: true },
];

/// The policies of `agents`, by name; where a file cannot be read or used, which, and why.
pub fn committed() -> Vec<(String, Result<Arc<Policy>, String>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents");
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) => return vec![("committed".into(), Err(format!("{}: {error}", directory.display())))],
    };
    let mut folders: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.retain(|folder| folder.join("policy.onnx").is_file());
    folders.sort();
    let load = |folder: &Path| {
        let bytes = std::fs::read(folder.join("policy.onnx")).map_err(|error| error.to_string())?;
        let card = std::fs::read_to_string(folder.join("card.json")).map_err(|error| error.to_string())?;
        Policy::load(&bytes, &card).map_err(|error| error.to_string())
    };
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    folders.iter().map(|path| (name(path), load(path))).collect()
}

/// The wall time of this many decisions in a row.
pub fn run(policy: &Arc<Policy>, decisions: u64) -> Result<(u64, Duration), PolicyError> {
    let mut session = policy.session();
    let mut observation = vec![0.0f32; policy.agent().observation_size()];
    let mut action = Vec::new();
    session.decide(&observation, &mut action)?;
    let start = Instant::now();
    for i in 0..decisions {
        observation[0] = (i % 100) as f32 / 100.0;
        session.decide(&observation, &mut action)?;
        std::hint::black_box(&action);
    }
    Ok((decisions, start.elapsed()))
}

/// A policy with `network`.
pub fn policy(network: &Network) -> Result<Arc<Policy>, PolicyError> {
    let onnx = Model::of(network);
    Policy::load(&onnx, &card(network, &sha256(&onnx)).to_string())
}

fn card(network: &Network, digest: &str) -> Value {
    let feature = |i: usize| json!({"signal": "send_ratio", "name": format!("feature {i}"), "clip": [0.0, 1000.0]});
    let map = match network.action {
        1 => json!({"kind": "signed_multiply", "delta": 0.025}),
        n => json!({"kind": "discrete", "operations": (1..=n).map(|i| format!("+{i}")).collect::<Vec<_>>()}),
    };
    let state = if network.recurrent { 2 * network.units.iter().sum::<usize>() } else { 0 };
    json!({
        "format": 1,
        "name": network.name, "label": network.name, "color": "black", "marker": "o",
        "summary": "A network with arbitrary weights.", "reference": "none",
        "agent": {
            "name": network.name,
            "clock": {"kind": "fixed", "interval": 10_000_000},
            "observation": {"features": (0..network.observation).map(feature).collect::<Vec<_>>()},
            "action": {"map": map, "target": "cwnd"},
            "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
            "startup": {"kind": "window", "packets": 10},
        },
        "policy": {
            "kind": if network.recurrent { "lstm" } else { "mlp" },
            "observation_size": network.observation, "state_size": state, "action_size": network.action,
        },
        "onnx_sha256": digest,
    })
}

/// The parts of an ONNX graph so far, in Protocol Buffers' wire format (field numbers: `onnx.proto3`).
#[derive(Default)]
struct Model {
    graph: Vec<u8>,
    values: usize,
    seed: u64,
}

const FLOAT: u64 = 1;
const INT64: u64 = 7;
const DOUBLE: u64 = 11;

impl Model {
    fn of(network: &Network) -> Vec<u8> {
        let mut model = Self::default();
        let mut value = model.node("Cast", &["observation"], &[("to", DOUBLE)], "");
        let mut width = network.observation;
        let mut ports = vec![(11, "observation", width), (12, "action", network.action)];
        if network.recurrent {
            let size = 2 * network.units.iter().sum::<usize>();
            ports.extend([(11, "state", size), (12, "state_out", size)]);
            let state = model.node("Cast", &["state"], &[("to", DOUBLE)], "");
            let sizes = network.units.iter().flat_map(|n| [*n, *n]).collect::<Vec<_>>();
            let before = model.split(&state, &sizes);
            let mut after = Vec::new();
            for (layer, units) in network.units.iter().enumerate() {
                let (hidden, cell) = (&before[2 * layer], &before[2 * layer + 1]);
                let both = model.node("Concat", &[&value, hidden], &[("axis", 1)], "");
                let gates = model.linear(&both, width + units, 4 * units);
                let gates = model.split(&gates, &[*units; 4]);
                let [enter, keep, leave] = [0, 1, 3].map(|i| model.node("Sigmoid", &[&gates[i]], &[], ""));
                let new = model.node("Tanh", &[&gates[2]], &[], "");
                let entered = model.node("Mul", &[&enter, &new], &[], "");
                let kept = model.node("Mul", &[&keep, cell], &[], "");
                let cell = model.node("Add", &[&kept, &entered], &[], "");
                let shown = model.node("Tanh", &[&cell], &[], "");
                value = model.node("Mul", &[&leave, &shown], &[], "");
                after.extend([value.clone(), cell]);
                width = *units;
            }
            let after = after.iter().map(String::as_str).collect::<Vec<_>>();
            let after = model.node("Concat", &after, &[("axis", 1)], "");
            model.node("Cast", &[&after], &[("to", FLOAT)], "state_out");
        } else {
            for units in network.units {
                let sum = model.linear(&value, width, *units);
                value = model.node("Tanh", &[&sum], &[], "");
                width = *units;
            }
        }
        let answer = model.linear(&value, width, network.action);
        model.node("Cast", &[&answer], &[("to", FLOAT)], "action");
        for (field, name, size) in ports {
            model.port(field, name, size);
        }
        // ir_version 7, opset 13.
        [number(1, 7), message(8, &number(2, 13)), message(7, &model.graph)].concat()
    }

    /// A node with one output, called `output` or by the next number; answers with its name.
    fn node(&mut self, operation: &str, inputs: &[&str], attributes: &[(&str, u64)], output: &str) -> String {
        self.values += 1;
        let output = if output.is_empty() { format!("v{}", self.values) } else { output.into() };
        self.add_node(operation, inputs, attributes, std::slice::from_ref(&output));
        output
    }

    fn add_node(&mut self, operation: &str, inputs: &[&str], attributes: &[(&str, u64)], outputs: &[String]) {
        let mut node = Vec::new();
        inputs.iter().for_each(|name| node.extend(message(1, name.as_bytes())));
        outputs.iter().for_each(|name| node.extend(message(2, name.as_bytes())));
        node.extend(message(4, operation.as_bytes()));
        for (name, value) in attributes {
            // Type 2: a whole number.
            node.extend(message(5, &[message(1, name.as_bytes()), number(3, *value), number(20, 2)].concat()));
        }
        self.graph.extend(message(1, &node));
    }

    fn split(&mut self, value: &str, sizes: &[usize]) -> Vec<String> {
        let cells = sizes.iter().flat_map(|n| (*n as i64).to_le_bytes()).collect::<Vec<_>>();
        let sizes_name = self.constant(INT64, &[sizes.len()], &cells);
        let outputs = (0..sizes.len()).map(|i| format!("{sizes_name}_{i}")).collect::<Vec<_>>();
        self.add_node("Split", &[value, &sizes_name], &[("axis", 1)], &outputs);
        outputs
    }

    /// Weighted sums of a value of `width` numbers.
    fn linear(&mut self, value: &str, width: usize, outputs: usize) -> String {
        let weights = self.weights(&[width, outputs]);
        let bias = self.weights(&[outputs]);
        let product = self.node("MatMul", &[value, &weights], &[], "");
        self.node("Add", &[&product, &bias], &[], "")
    }

    fn weights(&mut self, dims: &[usize]) -> String {
        let mut cells = Vec::new();
        for _ in 0..dims.iter().product() {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = (self.seed >> 11) as f64 / (1u64 << 53) as f64;
            cells.extend((0.2 * (uniform - 0.5)).to_le_bytes());
        }
        self.constant(DOUBLE, dims, &cells)
    }

    fn constant(&mut self, kind: u64, dims: &[usize], cells: &[u8]) -> String {
        self.values += 1;
        let name = format!("v{}", self.values);
        let dims = dims.iter().flat_map(|n| number(1, *n as u64)).collect::<Vec<_>>();
        let tensor = [dims, number(2, kind), message(8, name.as_bytes()), message(9, cells)].concat();
        self.graph.extend(message(5, &tensor));
        name
    }

    /// An input or output, float32 [1, size].
    fn port(&mut self, field: u64, name: &str, size: usize) {
        let shape = [message(1, &number(1, 1)), message(1, &number(1, size as u64))].concat();
        let tensor = [number(1, FLOAT), message(2, &shape)].concat();
        let info = [message(1, name.as_bytes()), message(2, &message(1, &tensor))].concat();
        self.graph.extend(message(field, &info));
    }
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn message(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint((field << 3) | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
