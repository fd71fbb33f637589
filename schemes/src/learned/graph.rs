//! Looks through an ONNX file before the runtime gets it.
//!
//! The runtime would run more than a policy may hold: a graph that reads further files, computes in float32 (whose
//! last digits depend on the machine), or holds weights that are not numbers. Here such a file is refused with an
//! explanation, and bytes that are not ONNX never reach the C++ parser.
//!
//! Field numbers are those of `onnx.proto3` (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>).

use std::collections::BTreeMap;

use super::card::NetworkShape;
use super::error::{PolicyError, EXPORT_AGAIN};
use super::shapes::{self, Node, Shapes, Value};
use crate::wire::{packed, Field, Fields, Malformed};

/// Versions of ONNX's operations that the runtime is asked to run: from the first with `Split` by sizes to the
/// newest of ONNX Runtime 1.22, the oldest that is loaded.
const OPSETS: std::ops::RangeInclusive<u64> = 13..=22;
const OPSET_RANGE: &str = "13 to 22";
/// Newest version of the file format of the same ONNX Runtime.
pub(super) const NEWEST_IR: u64 = 10;

/// What a policy may be made of. Each does float64, and none can make much of little input.
pub(super) const OPERATIONS: &[&str] = &[
    "Abs", "Add", "Cast", "Clip", "Concat", "Div", "Exp", "Gemm", "Identity", "Log", "MatMul", "Max", "Min", "Mul",
    "Neg", "Relu", "Sigmoid", "Slice", "Split", "Sqrt", "Sub", "Tanh",
];

/// Bytes of a file: eight million weights.
pub(super) const MAX_FILE: usize = 64_000_000;
/// Nodes of a graph. A network of ours has about a hundred.
const MAX_NODES: usize = 10_000;

const FLOAT: u64 = 1;
const INT64: u64 = 7;
const DOUBLE: u64 = 11;

/// An ONNX file whose frame is right.
pub(super) struct Opened<'a> {
    /// Its graph.
    pub graph: &'a [u8],
    /// Domains of operations, with their versions.
    opsets: Vec<(&'a [u8], u64)>,
}

impl Opened<'_> {
    /// The version of a domain that the file was written for.
    pub(super) fn opset(&self, domain: &[u8]) -> Option<u64> {
        self.opsets.iter().find(|(name, _)| *name == domain).map(|(_, version)| *version)
    }
}

/// Look at the frame of an ONNX file: its size, its format, and that it holds one graph.
pub(super) fn open(onnx: &[u8]) -> Result<Opened<'_>, PolicyError> {
    if onnx.len() > MAX_FILE {
        let expected = format!("{MAX_FILE} at most");
        return Err(PolicyError::new("file", format!("{} bytes", onnx.len()), expected, "export a smaller network")
            .coded("too-large"));
    }
    let mut graph = None;
    let mut opsets = Vec::new();
    for field in fields("file", onnx) {
        match field? {
            (1, Field::Varint(ir)) if ir > NEWEST_IR => {
                let hint = "export with an older ir_version";
                return Err(PolicyError::new(
                    "file format",
                    format!("version {ir}"),
                    format!("{NEWEST_IR} at most"),
                    hint,
                )
                .coded("policy-version"));
            }
            (7, Field::Bytes(bytes)) => graph = Some(bytes),
            (8, Field::Bytes(bytes)) => opsets.push(operator_set(bytes)?),
            (20 | 25, _) => {
                return Err(refused("file", "training information or functions", "one graph and nothing else"))
            }
            _ => {}
        }
    }
    if opsets.is_empty() {
        return Err(
            PolicyError::new("opset", "none", OPSET_RANGE, "export for one of these opsets").coded("policy-version")
        );
    }
    let graph = graph.ok_or_else(|| refused("file", "no graph", "an ONNX model"))?;
    Ok(Opened { graph, opsets })
}

/// Check the bytes of a network's ONNX file. What is right about them beyond that, the runtime finds out.
pub(super) fn check(onnx: &[u8], sizes: NetworkShape) -> Result<(), PolicyError> {
    let opened = open(onnx)?;
    match opened.opset(b"").or_else(|| opened.opset(b"ai.onnx")) {
        Some(version) if OPSETS.contains(&version) => {}
        found => {
            let found = found.map_or("none".into(), |v| v.to_string());
            return Err(
                PolicyError::new("opset", found, OPSET_RANGE, "export for one of these opsets").coded("policy-version")
            );
        }
    }
    check_graph(opened.graph, sizes)
}

/// An attribute of a node, as far as a tree needs one.
#[derive(Default)]
pub(super) struct Attribute<'a> {
    pub name: &'a [u8],
    pub text: &'a [u8],
    pub floats: Vec<f32>,
    pub ints: Vec<i64>,
    pub strings: Vec<&'a [u8]>,
}

/// The attributes of the one node that a graph has, which takes the observation and gives the scores of the actions.
pub(super) fn only_node<'a>(
    graph: &'a [u8],
    kind: &str,
    domain: &[u8],
    sizes: NetworkShape,
) -> Result<Vec<Attribute<'a>>, PolicyError> {
    let (mut nodes, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for field in fields("graph", graph) {
        match field? {
            (1, Field::Bytes(bytes)) if nodes.is_empty() => nodes.push(bytes),
            (1 | 5 | 15, _) => return Err(refused("graph", "more than one node", &format!("one {kind} alone"))),
            (11, Field::Bytes(bytes)) => inputs.push(port(bytes)?),
            (12, Field::Bytes(bytes)) => outputs.push(port(bytes)?),
            _ => {}
        }
    }
    let ports = [
        ("inputs", &inputs, "observation", sizes.observation_size),
        ("outputs", &outputs, "action", sizes.action_size),
    ];
    for (place, found, name, size) in ports {
        let fits =
            |one: &(&[u8], Option<u64>)| one.0 == name.as_bytes() && one.1.is_none_or(|width| width == size as u64);
        if found.len() != 1 || !found.iter().all(fits) {
            let found: Vec<_> = found
                .iter()
                .map(|(name, width)| {
                    let width = width.map_or("?".into(), |width| width.to_string());
                    format!("{}: [batch, {width}]", String::from_utf8_lossy(name))
                })
                .collect();
            let found = if found.is_empty() { "none".into() } else { found.join(", ") };
            return Err(refused(
                &format!("graph {place}"),
                &found,
                &format!("{name}: [batch, {size}], as on the card"),
            )
            .coded("shape-mismatch"));
        }
    }
    let node = nodes.pop().ok_or_else(|| refused("graph", "no node", &format!("one {kind}")))?;
    let (mut found_kind, mut found_domain, mut attributes) = (&node[..0], &node[..0], Vec::new());
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for field in fields("node", node) {
        match field? {
            (1, Field::Bytes(name)) => reads.push(name),
            (2, Field::Bytes(name)) => writes.push(name),
            (4, Field::Bytes(name)) => found_kind = name,
            (5, Field::Bytes(bytes)) => attributes.push(listed(bytes)?),
            (7, Field::Bytes(name)) => found_domain = name,
            _ => {}
        }
    }
    if found_kind != kind.as_bytes() || found_domain != domain {
        let found = String::from_utf8_lossy(found_kind);
        let from = String::from_utf8_lossy(found_domain);
        let expected = format!("{kind} of {}", String::from_utf8_lossy(domain));
        return Err(refused("graph", &format!("operation {found:?} of {from:?}"), &expected));
    }
    if reads != [b"observation"] || writes.len() != 2 || writes[1] != b"action" {
        return Err(refused("graph", "other inputs and outputs of the node", "observation; a label, and action"));
    }
    Ok(attributes)
}

/// An attribute with all its numbers and texts.
fn listed(message: &[u8]) -> Result<Attribute<'_>, PolicyError> {
    let mut one = Attribute::default();
    let float = |cell: &[u8]| cell.try_into().ok().map(f32::from_le_bytes);
    for field in fields("attribute", message) {
        match field? {
            (1, Field::Bytes(bytes)) => one.name = bytes,
            (4, Field::Bytes(bytes)) => one.text = bytes,
            // Numbers come packed or one by one.
            (7, Field::Bytes(bytes) | Field::Fixed(bytes)) => {
                if bytes.len() % 4 != 0 {
                    return Err(malformed("attribute", Malformed("a list of float32 of another width")));
                }
                one.floats.extend(bytes.chunks_exact(4).filter_map(float));
            }
            (8, Field::Varint(value)) => one.ints.push(value as i64),
            (8, Field::Bytes(bytes)) => {
                let values = packed(bytes).map_err(|m| malformed("attribute", m))?;
                one.ints.extend(values.into_iter().map(|value| value as i64));
            }
            (9, Field::Bytes(bytes)) => one.strings.push(bytes),
            (5 | 6 | 10 | 11 | 22 | 23, _) => {
                return Err(refused("graph", "a tensor or a graph as an attribute", "lists of numbers and texts"))
            }
            _ => {}
        }
    }
    Ok(one)
}

fn operator_set(message: &[u8]) -> Result<(&[u8], u64), PolicyError> {
    let (mut domain, mut version) = (&message[..0], 0);
    for field in fields("opset_import", message) {
        match field? {
            (1, Field::Bytes(bytes)) => domain = bytes,
            (2, Field::Varint(value)) => version = value,
            _ => {}
        }
    }
    Ok((domain, version))
}

fn check_graph(message: &[u8], sizes: NetworkShape) -> Result<(), PolicyError> {
    let mut constants = BTreeMap::new();
    let mut inputs = Vec::new();
    let mut widths = Vec::new();
    let mut outputs = Vec::new();
    let mut nodes = Vec::new();
    for field in fields("graph", message) {
        match field? {
            (1, Field::Bytes(_)) if nodes.len() == MAX_NODES => {
                return Err(refused("graph", &format!("more than {MAX_NODES} nodes"), &format!("{MAX_NODES} at most"))
                    .coded("too-large"))
            }
            (1, Field::Bytes(bytes)) => nodes.push(read_node(bytes)?),
            (5, Field::Bytes(bytes)) => {
                let (name, value) = check_tensor(bytes)?;
                constants.insert(name, value);
            }
            (11, Field::Bytes(bytes)) => {
                let (name, width) = port(bytes)?;
                inputs.push(name);
                widths.push(width);
            }
            (12, Field::Bytes(bytes)) => outputs.push(port(bytes)?.0),
            (15, _) => return Err(refused("graph", "a sparse initializer", "dense ones")),
            _ => {}
        }
    }
    if inputs.len() > 2 || outputs.len() > 2 {
        let found = format!("{} inputs and {} outputs", inputs.len(), outputs.len());
        return Err(refused("graph", &found, "an observation and an action, and a state each if it has a memory"));
    }
    // Constants are float64 or integers, so all is float64 if the inputs become it first and only outputs leave it.
    for node in &nodes {
        let reads = node.inputs.iter().any(|name| inputs.contains(name));
        let ok = match node.cast_to {
            Some(DOUBLE) => true,
            Some(FLOAT) => !reads && node.outputs.iter().all(|name| outputs.contains(name)),
            Some(_) => false,
            None => !reads,
        };
        if !ok {
            let found = format!("\"{}\" ({}) on float32", node.name, node.kind);
            let expected =
                "Cast to float64 right after the inputs, to float32 right before the outputs, float64 between";
            return Err(PolicyError::new("graph", found, expected, EXPORT_AGAIN).coded("unsupported"));
        }
    }
    // In this order, one observation at a time; the runtime looks at them once more.
    for ((name, size), width) in inputs.into_iter().zip([sizes.observation_size, sizes.state_size]).zip(widths) {
        if width.is_some_and(|width| width != size as u64) {
            let found = format!("{}: [batch, {}]", String::from_utf8_lossy(name), width.unwrap_or_default());
            let hint = "network and card do not belong together: export the policy again";
            return Err(PolicyError::new("graph inputs", found, format!("[batch, {size}], as on the card"), hint)
                .coded("shape-mismatch"));
        }
        constants.insert(name, Value { dims: vec![1, size as u64], list: None });
    }
    let mut shapes = Shapes::new(constants);
    nodes.iter().try_for_each(|node| shapes.add(node))
}

fn read_node(message: &[u8]) -> Result<Node<'_>, PolicyError> {
    let mut node = Node::default();
    let mut domain: &[u8] = b"";
    let mut to = 0;
    for field in fields("node", message) {
        match field? {
            (1, Field::Bytes(name)) => node.inputs.push(name),
            (2, Field::Bytes(name)) => node.outputs.push(name),
            (3, Field::Bytes(name)) => node.name = String::from_utf8_lossy(name).into_owned(),
            (4, Field::Bytes(name)) => node.kind = String::from_utf8_lossy(name).into_owned(),
            (5, Field::Bytes(bytes)) => match attribute(bytes)? {
                (b"to", value) => to = value,
                (b"axis", value) => node.axis = Some(value as i64),
                (b"transA", value) => node.turn_a = value != 0,
                (b"transB", value) => node.turn_b = value != 0,
                _ => {}
            },
            (7, Field::Bytes(name)) => domain = name,
            _ => {}
        }
    }
    let standard = domain.is_empty() || domain == b"ai.onnx";
    if !standard || !OPERATIONS.contains(&node.kind.as_str()) {
        let from = if standard { String::new() } else { format!(" of {}", String::from_utf8_lossy(domain)) };
        return Err(PolicyError::new(
            "graph",
            format!("operation {:?}{from}", node.kind),
            format!("only {}", OPERATIONS.join(", ")),
            "express it through these (a discrete policy's output are the scores, without ArgMax)",
        )
        .coded("unsupported"));
    }
    node.cast_to = (node.kind == "Cast").then_some(to);
    Ok(node)
}

/// Name of an attribute, and its whole number if it has one.
fn attribute(message: &[u8]) -> Result<(&[u8], u64), PolicyError> {
    let (mut name, mut number) = (&message[..0], 0);
    for field in fields("attribute", message) {
        match field? {
            (1, Field::Bytes(bytes)) => name = bytes,
            (3, Field::Varint(value)) => number = value,
            (5 | 6 | 10 | 11 | 22 | 23, _) => {
                return Err(refused("graph", "a tensor or a graph as an attribute", "constants as initializers"))
            }
            _ => {}
        }
    }
    Ok((name, number))
}

/// The name of a graph's input or output, and its last dimension if it has a fixed one.
fn port(message: &[u8]) -> Result<(&[u8], Option<u64>), PolicyError> {
    let (mut name, mut width) = (&message[..0], None);
    for field in fields("value_info", message) {
        match field? {
            (1, Field::Bytes(bytes)) => name = bytes,
            (2, Field::Bytes(kind)) => {
                // TypeProto.tensor_type, its shape, and the dimensions in it.
                let dims = inside(inside(Some(kind), 1)?, 2)?.unwrap_or_default();
                for dim in fields("value_info", dims) {
                    if let (1, Field::Bytes(dim)) = dim? {
                        width = Fields::of(dim).flatten().find_map(|field| match field {
                            (1, Field::Varint(value)) => Some(value),
                            _ => None,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, width))
}

/// The message in field `number` of `message`.
fn inside(message: Option<&[u8]>, number: u64) -> Result<Option<&[u8]>, PolicyError> {
    for field in fields("value_info", message.unwrap_or_default()) {
        if let (found, Field::Bytes(bytes)) = field? {
            if found == number {
                return Ok(Some(bytes));
            }
        }
    }
    Ok(None)
}

fn check_tensor(message: &[u8]) -> Result<(&[u8], Value), PolicyError> {
    let (mut name, mut kind, mut data) = (&message[..0], 0, None);
    let mut dims = Vec::new();
    // Numbers outside `raw_data` come packed or one by one, so they are counted.
    let mut listed = 0usize;
    let mut list = Vec::new();
    let mut finite = true;
    for field in fields("initializer", message) {
        match field? {
            (1, Field::Varint(dim)) => dims.push(dim),
            (1, Field::Bytes(bytes)) => dims.extend(packed(bytes).map_err(|m| malformed("initializer", m))?),
            (2, Field::Varint(value)) => kind = value,
            (8, Field::Bytes(bytes)) => name = bytes,
            (9, Field::Bytes(bytes)) => data = Some(bytes),
            (7, Field::Varint(value)) => {
                listed += 1;
                list.push(value as i64);
            }
            (7, Field::Bytes(bytes)) => {
                let values = packed(bytes).map_err(|m| malformed("initializer", m))?;
                listed += values.len();
                list.extend(values.into_iter().map(|value| value as i64));
            }
            (10, Field::Bytes(bytes) | Field::Fixed(bytes)) => {
                listed += bytes.len() / 8;
                finite &= bytes.len() % 8 == 0 && all_finite(bytes);
            }
            (13, _) | (14, Field::Varint(1..)) => {
                let expected = "all numbers inside the ONNX file";
                return Err(refused(&initializer(name), "numbers in another file", expected));
            }
            _ => {}
        }
    }
    let place = initializer(name);
    if kind != DOUBLE && kind != INT64 {
        return Err(refused(&place, &format!("data type {kind}"), "11 (float64), or 7 (int64) for sizes"));
    }
    let count = dims.iter().try_fold(1u64, |n, dim| n.checked_mul(*dim));
    let found = data.map_or(listed as u64, |bytes| (bytes.len() / 8) as u64);
    if count != Some(found) || data.is_some_and(|bytes| bytes.len() % 8 != 0 || listed > 0) {
        return Err(refused(&place, &format!("{found} numbers"), &format!("as many as {dims:?} has")));
    }
    if !finite || (kind == DOUBLE && !data.is_none_or(all_finite)) {
        let hint = "training has diverged, or the file is damaged: export an earlier checkpoint";
        return Err(PolicyError::new(place, "NaN or infinity", "numbers", hint).coded("learning-diverged"));
    }
    if let Some(bytes) = data.filter(|_| kind == INT64) {
        list = bytes.chunks_exact(8).map(|cell| i64::from_le_bytes(cell.try_into().unwrap_or_default())).collect();
    }
    let list = (kind == INT64 && list.len() <= shapes::MAX_LIST).then_some(list);
    Ok((name, Value { dims, list }))
}

fn initializer(name: &[u8]) -> String {
    format!("initializer {:?}", String::from_utf8_lossy(name))
}

fn all_finite(bytes: &[u8]) -> bool {
    bytes.chunks_exact(8).all(|cell| f64::from_le_bytes(cell.try_into().unwrap_or([0xff; 8])).is_finite())
}

fn fields<'a>(
    place: &'static str,
    message: &'a [u8],
) -> impl Iterator<Item = Result<(u64, Field<'a>), PolicyError>> + 'a {
    Fields::of(message).map(move |field| field.map_err(|m| malformed(place, m)))
}

fn malformed(place: &str, malformed: Malformed) -> PolicyError {
    refused(&format!("ONNX {place}"), &format!("bytes that are no ONNX: {}", malformed.0), "a whole ONNX model")
}

fn refused(place: &str, found: &str, expected: &str) -> PolicyError {
    PolicyError::new(place, found, expected, EXPORT_AGAIN)
}
