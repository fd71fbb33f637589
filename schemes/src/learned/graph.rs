//! Reads an ONNX file: its nodes, constants, inputs and outputs. Checks everything.
//!
//! Field numbers are those of `onnx.proto3` (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::error::{PolicyError, EXPORT_AGAIN};
use crate::wire::{packed, Field, Fields, Malformed};

/// Newest version of the file format that is read.
pub(super) const NEWEST_IR: u64 = 10;
/// Max bytes of a file: eight million weights.
pub(super) const MAX_FILE: usize = 64_000_000;
/// Max nodes of a graph. Our networks have about a hundred.
const MAX_NODES: usize = 10_000;
/// Max inputs of a node.
const MAX_INPUTS: usize = 10_000;

/// Types of numbers.
pub(super) const FLOAT: u64 = 1;
const INT64: u64 = 7;
pub(super) const DOUBLE: u64 = 11;

/// The content of a file. Names are byte strings of it.
#[derive(Default)]
pub(super) struct Graph<'a> {
    pub nodes: Vec<Node<'a>>,
    pub constants: BTreeMap<&'a [u8], Constant>,
    pub inputs: Vec<Port<'a>>,
    pub outputs: Vec<Port<'a>>,
    /// Domains of operations, with their versions.
    opsets: Vec<(&'a [u8], u64)>,
}

#[derive(Default)]
pub(super) struct Node<'a> {
    pub inputs: Vec<&'a [u8]>,
    pub outputs: Vec<&'a [u8]>,
    pub name: &'a [u8],
    pub kind: &'a [u8],
    pub domain: &'a [u8],
    pub attributes: Vec<Attribute<'a>>,
}

/// An attribute of a node; the parts that its type does not use are empty.
#[derive(Default)]
pub(super) struct Attribute<'a> {
    pub name: &'a [u8],
    pub float: Option<f32>,
    pub int: Option<i64>,
    pub text: &'a [u8],
    pub floats: Vec<f32>,
    pub ints: Vec<i64>,
    pub strings: Vec<&'a [u8]>,
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
#[derive(Default)]
pub(super) struct Port<'a> {
    pub name: &'a [u8],
    /// Type of its numbers, if the file has it.
    pub element: Option<u64>,
    /// Its last dimension, if it is fixed.
    pub width: Option<u64>,
}

impl Port<'_> {
    /// Describe it for messages.
    pub fn shown(&self) -> String {
        let width = self.width.map_or("?".into(), |width| width.to_string());
        format!("{}: [batch, {width}]", String::from_utf8_lossy(self.name))
    }
}

impl<'a> Graph<'a> {
    /// Read a whole file, which must contain exactly one graph.
    pub(super) fn read(onnx: &'a [u8]) -> Result<Self, PolicyError> {
        if onnx.len() > MAX_FILE {
            let (found, expected) = (format!("{} bytes", onnx.len()), format!("{MAX_FILE} at most"));
            return Err(PolicyError::new("file", found, expected, "export a smaller network").coded("too-large"));
        }
        let (mut graph, mut content) = (Self::default(), None);
        for field in fields("file", onnx) {
            match field? {
                (1, Field::Varint(ir)) if ir > NEWEST_IR => {
                    let (found, expected) = (format!("version {ir}"), format!("{NEWEST_IR} at most"));
                    let hint = "export with an older ir_version";
                    return Err(PolicyError::new("file format", found, expected, hint).coded("policy-version"));
                }
                (7, Field::Bytes(bytes)) => content = Some(bytes),
                (8, Field::Bytes(bytes)) => graph.opsets.push(operator_set(bytes)?),
                (20 | 25, _) => {
                    return Err(refused("file", "training information or functions", "one graph and nothing else"))
                }
                _ => {}
            }
        }
        if graph.opsets.is_empty() {
            let hint = "export with the version of the operations";
            return Err(
                PolicyError::new("opset", "none", "a version of ONNX's operations", hint).coded("policy-version")
            );
        }
        graph.read_content(content.ok_or_else(|| refused("file", "no graph", "an ONNX model"))?)?;
        Ok(graph)
    }

    fn read_content(&mut self, message: &'a [u8]) -> Result<(), PolicyError> {
        for field in fields("graph", message) {
            match field? {
                (1, Field::Bytes(_)) if self.nodes.len() == MAX_NODES => {
                    let found = format!("more than {MAX_NODES} nodes");
                    return Err(refused("graph", &found, &format!("{MAX_NODES} at most")).coded("too-large"));
                }
                (1, Field::Bytes(bytes)) => self.nodes.push(node(bytes)?),
                (5, Field::Bytes(bytes)) => {
                    let (name, constant) = tensor(bytes)?;
                    self.constants.insert(name, constant);
                }
                (11, Field::Bytes(bytes)) => self.inputs.push(port(bytes)?),
                (12, Field::Bytes(bytes)) => self.outputs.push(port(bytes)?),
                (15, _) => return Err(refused("graph", "a sparse initializer", "dense ones")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Check the version of the operations of `domain`.
    pub(super) fn require_opset(
        &self,
        place: &str,
        domains: &[&[u8]],
        versions: &RangeInclusive<u64>,
    ) -> Result<(), PolicyError> {
        let found = self.opsets.iter().find(|(name, _)| domains.contains(name)).map(|(_, version)| *version);
        if found.is_some_and(|version| versions.contains(&version)) {
            return Ok(());
        }
        let found = found.map_or("none".into(), |version| version.to_string());
        let expected = format!("{} to {}", versions.start(), versions.end());
        Err(PolicyError::new(place, found, expected, "export for one of these opsets"))
    }
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

fn node(message: &[u8]) -> Result<Node<'_>, PolicyError> {
    let mut node = Node::default();
    for field in fields("node", message) {
        match field? {
            (1, Field::Bytes(_)) if node.inputs.len() == MAX_INPUTS => {
                let found = format!("a node of more than {MAX_INPUTS} inputs");
                return Err(refused("graph", &found, &format!("{MAX_INPUTS} at most")).coded("too-large"));
            }
            (1, Field::Bytes(name)) => node.inputs.push(name),
            (2, Field::Bytes(name)) => node.outputs.push(name),
            (3, Field::Bytes(name)) => node.name = name,
            (4, Field::Bytes(name)) => node.kind = name,
            (5, Field::Bytes(bytes)) => node.attributes.push(attribute(bytes)?),
            (7, Field::Bytes(name)) => node.domain = name,
            _ => {}
        }
    }
    Ok(node)
}

fn attribute(message: &[u8]) -> Result<Attribute<'_>, PolicyError> {
    let mut one = Attribute::default();
    for field in fields("attribute", message) {
        match field? {
            (1, Field::Bytes(bytes)) => one.name = bytes,
            (2, Field::Fixed(bytes)) => one.float = bytes.try_into().ok().map(f32::from_le_bytes),
            (3, Field::Varint(value)) => one.int = Some(value as i64),
            (4, Field::Bytes(bytes)) => one.text = bytes,
            // Numbers come packed or one by one.
            (7, Field::Bytes(bytes) | Field::Fixed(bytes)) => {
                one.floats.extend(cells("attribute", bytes, f32::from_le_bytes)?);
            }
            (8, Field::Varint(value)) => one.ints.push(value as i64),
            (8, Field::Bytes(bytes)) => one.ints.extend(whole_numbers("attribute", bytes)?),
            (9, Field::Bytes(bytes)) => one.strings.push(bytes),
            (5 | 6 | 10 | 11 | 22 | 23, _) => {
                let expected = "numbers and texts; constants as initializers";
                return Err(refused("graph", "a tensor or a graph as an attribute", expected));
            }
            _ => {}
        }
    }
    Ok(one)
}

fn port(message: &[u8]) -> Result<Port<'_>, PolicyError> {
    let mut port = Port::default();
    for field in fields("value_info", message) {
        match field? {
            (1, Field::Bytes(bytes)) => port.name = bytes,
            (2, Field::Bytes(kind)) => {
                // TypeProto.tensor_type: the type of its numbers, and its shape.
                let tensor = inside(kind, 1)?;
                port.element = number(tensor, 1)?;
                for dim in fields("value_info", inside(tensor, 2)?) {
                    if let (1, Field::Bytes(dim)) = dim? {
                        port.width = number(dim, 1)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(port)
}

/// Return the message in field `wanted` of `message`; empty if absent.
fn inside(message: &[u8], wanted: u64) -> Result<&[u8], PolicyError> {
    let mut found: &[u8] = &[];
    for field in fields("value_info", message) {
        match field? {
            (field, Field::Bytes(bytes)) if field == wanted => found = bytes,
            _ => {}
        }
    }
    Ok(found)
}

/// Return the whole number in field `wanted` of `message`.
fn number(message: &[u8], wanted: u64) -> Result<Option<u64>, PolicyError> {
    let mut found = None;
    for field in fields("value_info", message) {
        match field? {
            (field, Field::Varint(value)) if field == wanted => found = Some(value),
            _ => {}
        }
    }
    Ok(found)
}

fn tensor(message: &[u8]) -> Result<(&[u8], Constant), PolicyError> {
    let (mut name, mut kind, mut raw) = (&message[..0], 0, None);
    let (mut dims, mut int64, mut float64) = (Vec::new(), Vec::new(), Vec::new());
    const PLACE: &str = "initializer";
    for field in fields(PLACE, message) {
        match field? {
            (1, Field::Varint(dim)) => dims.push(dim as i64),
            (1, Field::Bytes(bytes)) => dims.extend(whole_numbers(PLACE, bytes)?),
            (2, Field::Varint(value)) => kind = value,
            (7, Field::Varint(value)) => int64.push(value as i64),
            (7, Field::Bytes(bytes)) => int64.extend(whole_numbers(PLACE, bytes)?),
            (8, Field::Bytes(bytes)) => name = bytes,
            (9, Field::Bytes(bytes)) => raw = Some(bytes),
            (10, Field::Bytes(bytes) | Field::Fixed(bytes)) => {
                float64.extend(cells(PLACE, bytes, f64::from_le_bytes)?);
            }
            (13, _) | (14, Field::Varint(1..)) => {
                let expected = "all numbers inside the ONNX file";
                return Err(refused(&initializer(name), "numbers in another file", expected));
            }
            _ => {}
        }
    }
    let place = initializer(name);
    let listed = int64.len() + float64.len();
    let (numbers, found) = match kind {
        DOUBLE => {
            float64.extend(cells(PLACE, raw.unwrap_or_default(), f64::from_le_bytes)?);
            let found = float64.len();
            (Numbers::Float64(float64), found)
        }
        INT64 => {
            int64.extend(cells(PLACE, raw.unwrap_or_default(), i64::from_le_bytes)?);
            let found = int64.len();
            (Numbers::Int64(int64), found)
        }
        _ => return Err(refused(&place, &format!("data type {kind}"), "11 (float64), or 7 (int64) for sizes")),
    };
    let sizes: Option<Vec<usize>> = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    let count = sizes.as_ref().and_then(|sizes| sizes.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim)));
    let Some(dims) = sizes.filter(|_| count == Some(found) && (raw.is_none() || listed == 0)) else {
        return Err(refused(&place, &format!("{found} numbers"), &format!("as many as {dims:?} has")));
    };
    if matches!(&numbers, Numbers::Float64(numbers) if !numbers.iter().all(|x| x.is_finite())) {
        let hint = "training has diverged, or the file is damaged: export an earlier checkpoint";
        return Err(PolicyError::new(place, "NaN or infinity", "numbers", hint).coded("learning-diverged"));
    }
    Ok((name, Constant { dims, numbers }))
}

fn initializer(name: &[u8]) -> String {
    format!("initializer {:?}", String::from_utf8_lossy(name))
}

/// Iterate over numbers of `N` bytes each.
fn cells<'a, const N: usize, T: 'a>(
    place: &str,
    bytes: &'a [u8],
    number: fn([u8; N]) -> T,
) -> Result<impl Iterator<Item = T> + 'a, PolicyError> {
    if bytes.len() % N != 0 {
        return Err(malformed(place, Malformed("a list of numbers of another width")));
    }
    Ok(bytes.chunks_exact(N).filter_map(|cell| cell.try_into().ok()).map(number))
}

fn whole_numbers(place: &str, bytes: &[u8]) -> Result<impl Iterator<Item = i64>, PolicyError> {
    let values = packed(bytes).map_err(|m| malformed(place, m))?;
    Ok(values.into_iter().map(|value| value as i64))
}

fn fields<'a>(
    place: &'static str,
    message: &'a [u8],
) -> impl Iterator<Item = Result<(u64, Field<'a>), PolicyError>> + 'a {
    Fields::of(message).map(move |field| field.map_err(|m| malformed(place, m)))
}

fn malformed(place: &str, malformed: Malformed) -> PolicyError {
    let found = format!("bytes that are not ONNX: {}", malformed.0);
    refused(&format!("ONNX {place}"), &found, "a whole ONNX model")
}

fn refused(place: &str, found: &str, expected: &str) -> PolicyError {
    PolicyError::new(place, found, expected, EXPORT_AGAIN)
}
