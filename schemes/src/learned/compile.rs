//! Compiles an ONNX graph to a network, or reports the node that it cannot compile.
//!
//! A value of the graph is one row of numbers: [1, n] for one observation. Matrices are constants. The rules are ONNX's
//! (<https://onnx.ai/onnx/operators/>). A few kilobytes can ask for gigabytes, as each Concat of a value with itself
//! doubles it, so the numbers and operations of all nodes are added up before anything is computed.

use std::collections::BTreeMap;

use ccgym_agent::network::{MatrixId, Network, Row, BINARY, UNARY};

use super::card::NetworkShape;
use super::error::unreadable;
use super::graph::{Constant, Graph, Node, Numbers, Port, DOUBLE, FLOAT};
use ccgym_core::Error;

/// Versions of ONNX's operations: from the first with `Split` by sizes to the newest that was compared with these rules.
const OPSETS: std::ops::RangeInclusive<u64> = 13..=22;
/// Max numbers in all values of a graph together, without constants: 32 MB.
pub(super) const MAX_NUMBERS: usize = 4_000_000;
/// Max multiplications and other operations per decision: about a tenth of a second.
pub(super) const MAX_WORK: usize = 100_000_000;

/// Operations that are not functions of one row or two.
const OTHERS: &[&str] =
    &["Cast", "Clip", "Concat", "Elu", "Flatten", "Gemm", "Identity", "LeakyRelu", "MatMul", "Slice", "Split"];

/// Return the names of all operations, sorted.
pub(super) fn operations() -> Vec<&'static str> {
    // Two of the functions of a row are helpers of others.
    let rows = UNARY.iter().map(|(name, _)| *name).filter(|name| !["Expm1", "Float32"].contains(name));
    let mut all: Vec<_> = rows.chain(BINARY.iter().map(|(name, _)| *name)).chain(OTHERS.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A network compiled from a graph: observation and state in, action and next state out.
#[derive(Debug)]
pub(super) struct PolicyNetwork {
    network: Network,
    action: Row,
    state: Option<Row>,
}

impl PolicyNetwork {
    /// Compile a file whose inputs and outputs are those of `sizes`.
    pub(super) fn read(onnx: &[u8], sizes: NetworkShape) -> Result<Self, Error> {
        let graph = Graph::read(onnx)?;
        graph.require_opset("opset", &["", "ai.onnx"], &OPSETS).map_err(|error| error.coded("policy-version"))?;
        let mut compiler = Compiler::new(&graph.constants);
        let memory = sizes.state_size > 0;
        let all = [("observation", sizes.observation_size), ("state", sizes.state_size)];
        let wanted = &all[..if memory { 2 } else { 1 }];
        compare("inputs", &graph.inputs, wanted)?;
        for (name, size) in wanted {
            let row = compiler.network.input(*size);
            compiler.values.insert(name, Value { row, float32: true });
        }
        graph.nodes.iter().try_for_each(|node| compiler.add(node))?;
        let all = [("action", sizes.action_size), ("state_out", sizes.state_size)];
        let wanted = &all[..if memory { 2 } else { 1 }];
        compare("outputs", &graph.outputs, wanted)?;
        let output = |(name, size): &(&str, usize)| {
            let expected = format!("{name}: float32 [batch, {size}]");
            match compiler.values.get(name) {
                Some(value) if value.float32 && value.row.len() == *size => Ok(value.row),
                Some(value) => {
                    let kind = if value.float32 { "float32" } else { "float64" };
                    let found = format!("{name}: {kind} [batch, {}]", value.row.len());
                    Err(unreadable("graph outputs", found, expected).coded("shape-mismatch"))
                }
                None => Err(unreadable("graph", format!("no value {name}"), expected)),
            }
        };
        let action = output(&wanted[0])?;
        let state = wanted.get(1).map(output).transpose()?;
        Ok(Self { network: compiler.network, action, state })
    }

    /// Compute the action for an observation, and the state after it; `values` is the buffer for the network's numbers.
    pub(super) fn run(
        &self,
        observation: &[f32],
        state: &[f32],
        after: &mut [f32],
        action: &mut Vec<f32>,
        values: &mut Vec<f64>,
    ) {
        self.network.run(values, observation.iter().chain(state));
        action.clear();
        action.extend(self.network.read(values, self.action).iter().map(|x| *x as f32));
        for (next, x) in after.iter_mut().zip(self.state.map_or(&[][..], |row| self.network.read(values, row))) {
            *next = *x as f32;
        }
    }
}

/// Check that the declared inputs or outputs of the file are those of the card.
pub(super) fn compare(place: &str, found: &[Port], wanted: &[(&str, usize)]) -> Result<(), Error> {
    let fits = |(port, (name, size)): (&Port, &(&str, usize))| {
        port.name == *name
            && port.element().is_none_or(|element| element == FLOAT)
            && port.width().is_none_or(|width| width == *size as u64)
    };
    if found.len() == wanted.len() && found.iter().zip(wanted).all(fits) {
        return Ok(());
    }
    let found: Vec<_> = found.iter().take(8).map(Port::shown).collect();
    let found = if found.is_empty() { "none".into() } else { found.join(", ") };
    let wanted: Vec<_> = wanted.iter().map(|(name, size)| format!("{name}: float32 [batch, {size}]")).collect();
    let hint = "network and card do not belong together: export the policy again";
    Err(unreadable(format!("graph {place}"), found, wanted.join(", ")).hint(hint).coded("shape-mismatch"))
}

/// A row, and true if it is float32 in ONNX: then only Cast reads it.
#[derive(Clone, Copy)]
struct Value {
    row: Row,
    float32: bool,
}

/// A network under construction.
struct Compiler<'a> {
    network: Network,
    constants: &'a BTreeMap<String, Constant>,
    values: BTreeMap<&'a str, Value>,
    /// Matrices by the constant's name and transposition: a constant that is used again is stored once.
    matrices: BTreeMap<(&'a str, bool), MatrixId>,
}

impl<'a> Compiler<'a> {
    fn new(constants: &'a BTreeMap<String, Constant>) -> Self {
        Self { network: Network::default(), constants, values: BTreeMap::new(), matrices: BTreeMap::new() }
    }

    fn add(&mut self, node: &'a Node) -> Result<(), Error> {
        let kind = node.kind.as_str();
        let standard = node.domain.is_empty() || node.domain == "ai.onnx";
        let known = operations();
        if !standard || !known.contains(&kind) {
            let from = if standard { String::new() } else { format!(" of {}", node.domain) };
            let hint = "express it through these (a discrete policy's output are the scores, without ArgMax)";
            let expected = format!("only {}", known.join(", "));
            return Err(unreadable("graph", format!("operation {kind:?}{from}"), expected)
                .hint(hint)
                .coded("unsupported"));
        }
        let place = || format!("graph, node \"{}\" ({kind})", node.name);
        let refuse = |found: String, expected: &str| unreadable(place(), found, expected);
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            match self.values.get(name.as_str()) {
                Some(value) if value.float32 && kind != "Cast" => {
                    let found = format!("\"{}\" ({kind}) on float32", node.name);
                    let expected =
                        "Cast to float64 right after the inputs, to float32 right before the outputs, float64 between";
                    return Err(unreadable("graph", found, expected).coded("unsupported"));
                }
                None if !self.constants.contains_key(name) => {
                    return Err(refuse(format!("the input {name:?}"), "inputs that come before it"));
                }
                _ => {}
            }
        }
        let rows = self.outputs(node, kind).filter(|rows| rows.len() >= node.outputs.len());
        for (found, what, limit) in [
            (self.network.numbers(), "numbers in all values so far", MAX_NUMBERS),
            (self.network.work(), "operations on numbers so far", MAX_WORK),
        ] {
            if found > limit {
                return Err(refuse(format!("{found} {what}"), &format!("{limit} at most")).coded("too-large"));
            }
        }
        let rows = rows.ok_or_else(|| {
            let shape = |name: &String| match (self.values.get(name.as_str()), self.constants.get(name)) {
                (Some(value), _) => format!("[1, {}]", value.row.len()),
                (_, Some(constant)) => format!("a constant {:?}", constant.dims),
                _ => "none".into(),
            };
            let found = node.inputs.iter().take(8).map(shape).collect::<Vec<_>>().join(", ");
            refuse(
                format!("inputs of the shapes {found}"),
                "rows [1, n] that fit, matrices and sizes that are constants, and attributes that keep to rows",
            )
        })?;
        let float32 = kind == "Cast" && node.int("to") == Some(FLOAT as i64);
        for (name, row) in node.outputs.iter().zip(rows) {
            self.values.insert(name, Value { row, float32 });
        }
        Ok(())
    }

    /// Return the output rows of a node; `None` if its inputs or attributes do not fit.
    fn outputs(&mut self, node: &'a Node, kind: &str) -> Option<Vec<Row>> {
        let one = |row: Row| Some(vec![row]);
        let optional = |i: usize| node.inputs.get(i).map(String::as_str).filter(|name| !name.is_empty());
        let first = optional(0)?;
        match kind {
            "MatMul" => one(self.product(first, optional(1)?, false)?),
            "Gemm" => one(self.gemm(node, first, optional(1)?, optional(2))?),
            "Concat" => {
                let whole = matches!(node.int("axis")?, 1 | -1);
                let rows = node.inputs.iter().map(|name| self.row(name)).collect::<Option<Vec<_>>>()?;
                one(self.network.concat(&rows)).filter(|_| whole)
            }
            "Split" => self.split(node, first, optional(1)),
            "Slice" => one(self.slice(node, first)?),
            "Max" | "Min" => {
                let mut row = self.row(first)?;
                for other in &node.inputs[1..] {
                    let other = self.row(other)?;
                    row = self.network.binary(kind, row, other)?;
                }
                one(row)
            }
            "Clip" => {
                let mut row = self.row(first)?;
                for (bound, which) in [(optional(1), "Max"), (optional(2), "Min")] {
                    if let Some(bound) = bound {
                        let bound = self.row(bound)?;
                        row = self.network.binary(which, row, bound)?;
                    }
                }
                one(row)
            }
            "Elu" | "LeakyRelu" => {
                let x = self.row(first)?;
                let alpha = node.float("alpha").unwrap_or(if kind == "Elu" { 1.0 } else { 0.01 });
                let (zero, alpha) = (self.network.constant(&[0.0]), self.network.constant(&[alpha]));
                let mut below = self.network.binary("Min", x, zero)?;
                if kind == "Elu" {
                    below = self.network.unary("Expm1", below)?;
                }
                let (above, below) = (self.network.binary("Max", x, zero)?, self.network.binary("Mul", below, alpha)?);
                one(self.network.binary("Add", above, below)?)
            }
            "Cast" => match node.int("to")? as u64 {
                DOUBLE => one(self.row(first)?),
                FLOAT => {
                    let row = self.row(first)?;
                    one(self.network.unary("Float32", row)?)
                }
                _ => None,
            },
            "Identity" => one(self.row(first)?),
            "Flatten" => one(self.row(first)?).filter(|_| matches!(node.int("axis"), None | Some(1 | -1))),
            "Softmax" if !matches!(node.int("axis"), None | Some(1 | -1)) => None,
            _ => {
                let left = self.row(first)?;
                match optional(1) {
                    None => one(self.network.unary(kind, left)?),
                    Some(right) => {
                        let right = self.row(right)?;
                        one(self.network.binary(kind, left, right)?)
                    }
                }
            }
        }
    }

    /// Return a value, or a constant that is one row.
    fn row(&mut self, name: &'a str) -> Option<Row> {
        if let Some(value) = self.values.get(name) {
            return Some(value.row);
        }
        let Constant { dims, numbers: Numbers::Float64(numbers) } = self.constants.get(name)? else { return None };
        if !matches!(dims.as_slice(), [] | [_] | [1, _]) {
            return None;
        }
        let row = self.network.constant(numbers);
        self.values.insert(name, Value { row, float32: false });
        Some(row)
    }

    fn whole_numbers(&self, name: &str) -> Option<&'a [i64]> {
        match &self.constants.get(name)?.numbers {
            Numbers::Int64(numbers) => Some(numbers),
            Numbers::Float64(_) => None,
        }
    }

    fn product(&mut self, left: &'a str, right: &'a str, transposed: bool) -> Option<Row> {
        let input = self.row(left)?;
        let Constant { dims, numbers: Numbers::Float64(numbers) } = self.constants.get(right)? else { return None };
        let &[rows, columns] = dims.as_slice() else { return None };
        let (inputs, outputs) = if transposed { (columns, rows) } else { (rows, columns) };
        if inputs != input.len() {
            return None;
        }
        let network = &mut self.network;
        let matrix = *self.matrices.entry((right, transposed)).or_insert_with(|| {
            network.matrix(inputs, outputs, |i, o| numbers[if transposed { o * columns + i } else { i * columns + o }])
        });
        network.product(input, matrix)
    }

    fn gemm(&mut self, node: &'a Node, a: &'a str, b: &'a str, c: Option<&'a str>) -> Option<Row> {
        if node.int("transA").unwrap_or(0) != 0 {
            return None;
        }
        let mut sums = self.product(a, b, node.int("transB").unwrap_or(0) != 0)?;
        sums = self.scaled(sums, node.float("alpha"))?;
        if let Some(c) = c {
            let length = sums.len();
            let c = self.row(c)?;
            let c = self.scaled(c, node.float("beta"))?;
            sums = self.network.binary("Add", sums, c).filter(|sums| sums.len() == length)?;
        }
        Some(sums)
    }

    fn scaled(&mut self, row: Row, factor: Option<f64>) -> Option<Row> {
        let Some(factor) = factor.filter(|factor| *factor != 1.0) else { return Some(row) };
        let factor = self.network.constant(&[factor]);
        self.network.binary("Mul", row, factor)
    }

    fn split(&mut self, node: &'a Node, value: &'a str, sizes: Option<&'a str>) -> Option<Vec<Row>> {
        let row = self.row(value).filter(|_| matches!(node.int("axis"), Some(1 | -1)))?;
        let parts = node.outputs.len();
        let sizes: Vec<usize> = match sizes {
            Some(sizes) => {
                self.whole_numbers(sizes)?.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<_>>()?
            }
            None => {
                let part = row.len().div_ceil(parts.max(1));
                (0..parts).map(|i| part.min(row.len().saturating_sub(i * part))).collect()
            }
        };
        let sum = sizes.iter().fold(0, |sum: usize, n| sum.saturating_add(*n));
        if sizes.len() != parts || sum != row.len() {
            return None;
        }
        let mut from = 0;
        let part = |size: usize| {
            from += size;
            row.part(from - size, size)
        };
        Some(sizes.into_iter().map(part).collect())
    }

    fn slice(&mut self, node: &'a Node, value: &'a str) -> Option<Row> {
        let mut row = self.row(value)?;
        let list = |i: usize| match node.inputs.get(i) {
            Some(name) if !name.is_empty() => self.whole_numbers(name).map(<[i64]>::to_vec),
            // Without axes: the first ones; without steps: of 1.
            _ if i == 3 => Some((0..self.whole_numbers(node.inputs.get(1)?)?.len() as i64).collect()),
            _ if i == 4 => Some(vec![1; self.whole_numbers(node.inputs.get(1)?)?.len()]),
            _ => None,
        };
        let (starts, ends, axes, steps) = (list(1)?, list(2)?, list(3)?, list(4)?);
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || steps.iter().any(|step| *step != 1) {
            return None;
        }
        for (i, axis) in axes.iter().enumerate() {
            let size = if matches!(axis, 1 | -1) { row.len() } else { 1 } as i64;
            let at = |n: i64| (if n < 0 { n.saturating_add(size) } else { n }).clamp(0, size);
            let (start, end) = (at(starts[i]), at(ends[i]));
            match axis {
                1 | -1 => row = row.part(start as usize, (end - start).max(0) as usize),
                0 | -2 if (start, end) == (0, 1) => {}
                _ => return None,
            }
        }
        Some(row)
    }
}

impl Node {
    fn int(&self, name: &str) -> Option<i64> {
        self.attributes.iter().find(|one| one.name == name)?.int
    }

    fn float(&self, name: &str) -> Option<f64> {
        self.attributes.iter().find(|one| one.name == name)?.float.map(f64::from)
    }
}
