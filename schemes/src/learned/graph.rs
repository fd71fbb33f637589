//! Reads an ONNX file: its nodes, constants, inputs and outputs. Checks everything.
//!
//! Field numbers are those of `onnx.proto3` (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use prost::bytes::Bytes;
use prost::encoding::{decode_key, skip_field, DecodeContext};
use prost::{DecodeError, Message};

use super::error::unreadable;
use ccgym_core::Error;

/// Newest version of the file format that is read.
pub(super) const NEWEST_IR: u64 = 10;
/// Max bytes of a file: eight million weights.
pub(super) const MAX_FILE: usize = 64_000_000;
/// Nodes of a graph, inputs of a node, and entries of the other lists of messages. A network of ours has about a hundred
/// nodes.
const MAX_ENTRIES: usize = 10_000;

/// Types of numbers.
pub(super) const FLOAT: u64 = 1;
const INT64: u64 = 7;
pub(super) const DOUBLE: u64 = 11;

#[derive(Message)]
struct Model {
    #[prost(uint64, tag = "1")]
    ir: u64,
    #[prost(bytes = "bytes", optional, tag = "7")]
    graph: Option<Bytes>,
    #[prost(message, repeated, tag = "8")]
    opsets: Vec<OperatorSet>,
    #[prost(message, repeated, tag = "20")]
    training: Vec<()>,
    #[prost(message, repeated, tag = "25")]
    functions: Vec<()>,
}

#[derive(Message)]
struct OperatorSet {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(uint64, tag = "2")]
    version: u64,
}

#[derive(Message)]
struct Content {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    nodes: Vec<Bytes>,
    #[prost(message, repeated, tag = "5")]
    initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    inputs: Vec<Port>,
    #[prost(message, repeated, tag = "12")]
    outputs: Vec<Port>,
    #[prost(message, repeated, tag = "15")]
    sparse: Vec<()>,
}

/// The content of a file.
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub constants: BTreeMap<String, Constant>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// Domains of operations, with their versions.
    opsets: Vec<OperatorSet>,
}

#[derive(Message)]
pub(super) struct Node {
    #[prost(string, repeated, tag = "1")]
    pub inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub kind: String,
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// An attribute of a node; the parts that its type does not use are empty.
#[derive(Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, optional, tag = "2")]
    pub float: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub int: Option<i64>,
    #[prost(bytes = "bytes", tag = "4")]
    pub text: Bytes,
    #[prost(message, repeated, tag = "5")]
    tensor: Vec<()>,
    #[prost(message, repeated, tag = "6")]
    graph: Vec<()>,
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    #[prost(message, repeated, tag = "10")]
    tensors: Vec<()>,
    #[prost(message, repeated, tag = "11")]
    graphs: Vec<()>,
    #[prost(message, repeated, tag = "22")]
    sparse: Vec<()>,
    #[prost(message, repeated, tag = "23")]
    sparse_list: Vec<()>,
}

#[derive(Message)]
struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(uint64, tag = "2")]
    kind: u64,
    #[prost(int64, repeated, tag = "7")]
    int64: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "bytes", optional, tag = "9")]
    raw: Option<Bytes>,
    #[prost(double, repeated, tag = "10")]
    float64: Vec<f64>,
    #[prost(message, repeated, tag = "13")]
    external: Vec<()>,
    #[prost(uint64, tag = "14")]
    location: u64,
}

/// A tensor of the file.
pub(super) struct Constant {
    pub dims: Vec<usize>,
    pub numbers: Numbers,
}

pub(super) enum Numbers {
    Float64(Vec<f64>),
    Int64(Vec<i64>),
}

/// An input or output of the graph.
#[derive(Message)]
pub(super) struct Port {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<PortType>,
}

#[derive(Message)]
struct PortType {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorType>,
}

#[derive(Message)]
struct TensorType {
    #[prost(uint64, optional, tag = "1")]
    element: Option<u64>,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
}

#[derive(Message)]
struct Shape {
    #[prost(message, repeated, tag = "1")]
    dims: Vec<Dimension>,
}

#[derive(Message)]
struct Dimension {
    #[prost(uint64, optional, tag = "1")]
    size: Option<u64>,
}

impl Port {
    fn tensor(&self) -> Option<&TensorType> {
        self.kind.as_ref()?.tensor.as_ref()
    }

    /// Type of its numbers, if the file has it.
    pub fn element(&self) -> Option<u64> {
        self.tensor()?.element
    }

    /// Its last dimension, if it is fixed.
    pub fn width(&self) -> Option<u64> {
        self.tensor()?.shape.as_ref()?.dims.last()?.size
    }

    /// Describe it for messages.
    pub fn shown(&self) -> String {
        let width = self.width().map_or("?".into(), |width| width.to_string());
        format!("{}: [batch, {width}]", self.name)
    }
}

impl Graph {
    /// Read a whole file, which must contain exactly one graph.
    pub(super) fn read(onnx: &[u8]) -> Result<Self, Error> {
        if onnx.len() > MAX_FILE {
            let (found, expected) = (format!("{} bytes", onnx.len()), format!("{MAX_FILE} at most"));
            return Err(unreadable("file", found, expected).hint("export a smaller network").coded("too-large"));
        }
        let file: Model = decode("file", Bytes::copy_from_slice(onnx), &[(8, "sets of operations")])?;
        if file.ir > NEWEST_IR {
            let (found, expected) = (format!("version {}", file.ir), format!("{NEWEST_IR} at most"));
            let hint = "export with an older ir_version";
            return Err(unreadable("file format", found, expected).hint(hint).coded("policy-version"));
        }
        if !(file.training.is_empty() && file.functions.is_empty()) {
            return Err(unreadable("file", "training information or functions", "one graph and nothing else"));
        }
        if file.opsets.is_empty() {
            let hint = "export with the version of the operations";
            return Err(unreadable("opset", "none", "a version of ONNX's operations")
                .hint(hint)
                .coded("policy-version"));
        }
        let content = file.graph.ok_or_else(|| unreadable("file", "no graph", "an ONNX model"))?;
        let lists = [(1, "nodes"), (5, "initializers"), (11, "inputs"), (12, "outputs")];
        let content: Content = decode("graph", content, &lists)?;
        if !content.sparse.is_empty() {
            return Err(unreadable("graph", "a sparse initializer", "dense ones"));
        }
        let nodes = content.nodes.into_iter().map(node).collect::<Result<_, _>>()?;
        let constants = content.initializers.into_iter().map(constant).collect::<Result<_, _>>()?;
        Ok(Self { nodes, constants, inputs: content.inputs, outputs: content.outputs, opsets: file.opsets })
    }

    /// Check the version of the operations of `domain`.
    pub(super) fn require_opset(
        &self,
        place: &str,
        domains: &[&str],
        versions: &RangeInclusive<u64>,
    ) -> Result<(), Error> {
        let found = self.opsets.iter().find(|set| domains.contains(&set.domain.as_str())).map(|set| set.version);
        if found.is_some_and(|version| versions.contains(&version)) {
            return Ok(());
        }
        let found = found.map_or("none".into(), |version| version.to_string());
        let expected = format!("{} to {}", versions.start(), versions.end());
        Err(unreadable(place, found, expected).hint("export for one of these opsets"))
    }
}

fn node(message: Bytes) -> Result<Node, Error> {
    let lists = [(1, "inputs of a node"), (2, "outputs of a node"), (5, "attributes of a node")];
    let node: Node = decode("node", message, &lists)?;
    let nested = |one: &Attribute| {
        [&one.tensor, &one.graph, &one.tensors, &one.graphs, &one.sparse, &one.sparse_list]
            .iter()
            .any(|v| !v.is_empty())
    };
    if node.attributes.iter().any(nested) {
        let expected = "numbers and texts; constants as initializers";
        return Err(unreadable("graph", "a tensor or a graph as an attribute", expected));
    }
    Ok(node)
}

fn constant(tensor: Tensor) -> Result<(String, Constant), Error> {
    let Tensor { dims, kind, mut int64, name, raw, mut float64, external, location } = tensor;
    let place = format!("initializer {name:?}");
    if !external.is_empty() || location > 0 {
        return Err(unreadable(&place, "numbers in another file", "all numbers inside the ONNX file"));
    }
    let (listed, bytes) = (int64.len() + float64.len(), raw.as_deref().unwrap_or_default());
    let (numbers, found) = match kind {
        DOUBLE => {
            float64.extend(cells(bytes, f64::from_le_bytes)?);
            let found = float64.len();
            (Numbers::Float64(float64), found)
        }
        INT64 => {
            int64.extend(cells(bytes, i64::from_le_bytes)?);
            let found = int64.len();
            (Numbers::Int64(int64), found)
        }
        _ => return Err(unreadable(&place, format!("data type {kind}"), "11 (float64), or 7 (int64) for sizes")),
    };
    let sizes: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    let count = sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim)));
    let Some(dims) = sizes.filter(|_| count == Some(found) && (raw.is_none() || listed == 0)) else {
        return Err(unreadable(&place, format!("{found} numbers"), format!("as many as {dims:?} has")));
    };
    if matches!(&numbers, Numbers::Float64(numbers) if !numbers.iter().all(|x| x.is_finite())) {
        let hint = "training has diverged, or the file is damaged: export an earlier checkpoint";
        return Err(unreadable(place, "NaN or infinity", "numbers").hint(hint).coded("learning-diverged"));
    }
    Ok((name, Constant { dims, numbers }))
}

/// Iterate over numbers of `N` bytes each.
fn cells<'a, const N: usize, T: 'a>(
    bytes: &'a [u8],
    number: fn([u8; N]) -> T,
) -> Result<impl Iterator<Item = T> + 'a, Error> {
    if bytes.len() % N != 0 {
        return Err(malformed("initializer", "a list of numbers of another width"));
    }
    Ok(bytes.chunks_exact(N).filter_map(|cell| cell.try_into().ok()).map(number))
}

/// Read a message. The fields `lists` are counted first: two bytes of a file can ask for hundreds of memory.
fn decode<M: Message + Default>(place: &str, message: Bytes, lists: &[(u32, &str)]) -> Result<M, Error> {
    let damaged = |error: DecodeError| malformed(place, &error.to_string());
    let (mut rest, mut counts) = (message.clone(), vec![0; lists.len()]);
    while !rest.is_empty() {
        let (tag, kind) = decode_key(&mut rest).map_err(damaged)?;
        skip_field(kind, tag, &mut rest, DecodeContext::default()).map_err(damaged)?;
        for ((_, what), count) in lists.iter().zip(&mut counts).filter(|((list, _), _)| *list == tag) {
            *count += 1;
            if *count > MAX_ENTRIES {
                let found = format!("more than {MAX_ENTRIES} {what}");
                return Err(unreadable("graph", found, format!("{MAX_ENTRIES} at most")).coded("too-large"));
            }
        }
    }
    M::decode(message).map_err(damaged)
}

fn malformed(place: &str, found: &str) -> Error {
    let found = format!("bytes that are not ONNX: {found}");
    unreadable(format!("ONNX {place}"), found, "a whole ONNX model")
}
