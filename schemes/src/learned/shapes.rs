//! How large the numbers inside a graph get, and how much work they are: known from the file, before anything runs.
//!
//! A few kilobytes can ask for gigabytes: each Concat of a value with itself doubles it, and products of constants are
//! computed when the runtime loads the graph. So every node's outputs are given shapes here, by the rules of ONNX
//! (<https://onnx.ai/onnx/operators/>) and for one observation, and their numbers are added up.

use std::collections::BTreeMap;

use super::error::{PolicyError, EXPORT_AGAIN};

/// Numbers in all values of a graph together, constants aside: 32 MB.
pub(super) const MAX_NUMBERS: u64 = 4_000_000;
/// Multiplications and other operations on numbers for one decision: a tenth of a second or so.
pub(super) const MAX_WORK: u64 = 100_000_000;
/// Dimensions of a value.
const MAX_RANK: usize = 8;
/// Entries of the lists that Split and Slice take.
pub(super) const MAX_LIST: usize = 1024;

/// A value before anything has run.
#[derive(Clone, Debug, Default)]
pub(super) struct Value {
    /// Its dimensions.
    pub dims: Vec<u64>,
    /// What it holds, if it is a short constant of whole numbers.
    pub list: Option<Vec<i64>>,
}

/// What matters of a node.
#[derive(Default)]
pub(super) struct Node<'a> {
    /// For messages.
    pub name: String,
    /// As in ONNX.
    pub kind: String,
    /// Names of its inputs; empty: left out.
    pub inputs: Vec<&'a [u8]>,
    pub outputs: Vec<&'a [u8]>,
    /// For Cast: the type after it.
    pub cast_to: Option<u64>,
    pub axis: Option<i64>,
    /// `transA` and `transB` of Gemm.
    pub turn_a: bool,
    pub turn_b: bool,
}

/// The values of a graph, node by node.
pub(super) struct Shapes<'a> {
    known: BTreeMap<&'a [u8], Value>,
    numbers: u64,
    work: u64,
}

type Dims = Vec<u64>;

impl<'a> Shapes<'a> {
    /// With constants and inputs.
    pub fn new(known: BTreeMap<&'a [u8], Value>) -> Self {
        Self { known, numbers: 0, work: 0 }
    }

    /// Add the outputs of a node, whose inputs are known.
    pub fn add(&mut self, node: &Node<'a>) -> Result<(), PolicyError> {
        let place = || format!("graph, node \"{}\" ({})", node.name, node.kind);
        let refuse = |found: String, expected: &str| PolicyError::new(place(), found, expected, EXPORT_AGAIN);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in node.inputs.iter().filter(|name| !name.is_empty()) {
            let value = self.known.get(name).ok_or_else(|| {
                refuse(format!("the input {:?}", String::from_utf8_lossy(name)), "inputs that come before it")
            })?;
            inputs.push(value);
        }
        let shapes = shapes(node, &inputs)
            .filter(|shapes| shapes.iter().all(|dims| dims.len() <= MAX_RANK))
            .ok_or_else(|| {
                let found = inputs.iter().take(8).map(|v| format!("{:?}", v.dims)).collect::<Vec<_>>().join(", ");
                refuse(format!("inputs of the shapes {found}"), "shapes that fit, and sizes that are constants")
            })?;
        let made = shapes.iter().fold(0, |sum: u64, dims| sum.saturating_add(count(dims)));
        let per_number = match node.kind.as_str() {
            "MatMul" | "Gemm" => inner(node, inputs[0]),
            _ => node.inputs.len().max(1) as u64,
        };
        self.numbers = self.numbers.saturating_add(made);
        self.work = self.work.saturating_add(made.saturating_mul(per_number));
        if self.numbers > MAX_NUMBERS {
            return Err(refuse(format!("{} numbers in all values so far", self.numbers), &at_most(MAX_NUMBERS))
                .coded("too-large"));
        }
        if self.work > MAX_WORK {
            return Err(
                refuse(format!("{} operations on numbers so far", self.work), &at_most(MAX_WORK)).coded("too-large")
            );
        }
        for (name, dims) in node.outputs.iter().zip(shapes) {
            self.known.insert(name, Value { dims, list: None });
        }
        Ok(())
    }
}

fn at_most(most: u64) -> String {
    format!("{most} at most")
}

/// Numbers in a value.
pub(super) fn count(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |n: u64, dim| n.saturating_mul(*dim))
}

/// Terms of each sum in a matrix product.
fn inner(node: &Node<'_>, first: &Value) -> u64 {
    let axis = if node.kind == "Gemm" && node.turn_a { 0 } else { first.dims.len().saturating_sub(1) };
    first.dims.get(axis).copied().unwrap_or(1).max(1)
}

/// Shapes of the outputs; `None` if the inputs do not fit.
fn shapes(node: &Node<'_>, inputs: &[&Value]) -> Option<Vec<Dims>> {
    let first = inputs.first()?;
    let one = |dims: Option<Dims>| dims.map(|dims| vec![dims]);
    match node.kind.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Max" | "Min" => {
            one(inputs[1..].iter().try_fold(first.dims.clone(), |dims, other| broadcast(&dims, &other.dims)))
        }
        "MatMul" => one(matrix_product(&first.dims, &inputs.get(1)?.dims)),
        "Gemm" => one(gemm(node, inputs)),
        "Concat" => one(concat(inputs, node.axis?)),
        "Split" => split(node, first, inputs.get(1).copied()),
        "Slice" => one(slice(first, &inputs[1..])),
        // One number from each: Abs, Cast, Clip, Exp, Identity, Log, Neg, Relu, Sigmoid, Sqrt, Tanh.
        _ => Some(vec![first.dims.clone()]),
    }
}

fn broadcast(a: &[u64], b: &[u64]) -> Option<Dims> {
    let rank = a.len().max(b.len());
    let at = |dims: &[u64], i: usize| (i + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

fn matrix_product(a: &[u64], b: &[u64]) -> Option<Dims> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    // A vector counts as a row on the left and as a column on the right, and that dimension goes away again.
    let left = if a.len() == 1 { vec![1, a[0]] } else { a.to_vec() };
    let right = if b.len() == 1 { vec![b[0], 1] } else { b.to_vec() };
    let ([.., rows, terms], [.., depth, columns]) = (left.as_slice(), right.as_slice()) else { return None };
    if terms != depth {
        return None;
    }
    let mut dims = broadcast(&left[..left.len() - 2], &right[..right.len() - 2])?;
    dims.extend((a.len() > 1).then_some(*rows));
    dims.extend((b.len() > 1).then_some(*columns));
    Some(dims)
}

fn gemm(node: &Node<'_>, inputs: &[&Value]) -> Option<Dims> {
    let matrix = |value: &Value, turned: bool| match *value.dims.as_slice() {
        [rows, columns] if turned => Some((columns, rows)),
        [rows, columns] => Some((rows, columns)),
        _ => None,
    };
    let (rows, terms) = matrix(inputs[0], node.turn_a)?;
    let (depth, columns) = matrix(inputs.get(1)?, node.turn_b)?;
    let dims = vec![rows, columns];
    let fits = inputs.get(2).is_none_or(|c| broadcast(&dims, &c.dims).as_ref() == Some(&dims));
    (terms == depth && fits).then_some(dims)
}

fn place(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

fn concat(inputs: &[&Value], axis: i64) -> Option<Dims> {
    let mut dims = inputs[0].dims.clone();
    let axis = place(axis, dims.len())?;
    for other in &inputs[1..] {
        let same = dims.len() == other.dims.len() && (0..dims.len()).all(|i| i == axis || dims[i] == other.dims[i]);
        if !same {
            return None;
        }
        dims[axis] = dims[axis].saturating_add(other.dims[axis]);
    }
    Some(dims)
}

fn split(node: &Node<'_>, value: &Value, sizes: Option<&Value>) -> Option<Vec<Dims>> {
    let axis = place(node.axis.unwrap_or(0), value.dims.len())?;
    let whole = value.dims[axis];
    let parts = node.outputs.len() as u64;
    let sizes: Dims = match sizes {
        Some(sizes) => sizes.list.as_ref()?.iter().map(|n| u64::try_from(*n).ok()).collect::<Option<_>>()?,
        None => {
            let part = whole.div_ceil(parts.max(1));
            (0..parts).map(|i| part.min(whole.saturating_sub(i * part))).collect()
        }
    };
    let sum = sizes.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    if sizes.len() as u64 != parts || sum != whole {
        return None;
    }
    let part = |n: u64| {
        let mut dims = value.dims.clone();
        dims[axis] = n;
        dims
    };
    Some(sizes.into_iter().map(part).collect())
}

fn slice(value: &Value, lists: &[&Value]) -> Option<Dims> {
    let list = |i: usize| lists.get(i).map(|value| value.list.clone());
    let (starts, ends) = (list(0)??, list(1)??);
    let all = || (0..starts.len() as i64).collect::<Vec<_>>();
    let axes = list(2).unwrap_or_else(|| Some(all()))?;
    let steps = list(3).unwrap_or_else(|| Some(vec![1; starts.len()]))?;
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return None;
    }
    let mut dims = value.dims.clone();
    for (i, axis) in axes.iter().enumerate() {
        let axis = place(*axis, dims.len())?;
        let size = i64::try_from(dims[axis]).ok()?;
        let from_end = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
        let (start, end, step) = (from_end(starts[i]), from_end(ends[i]), steps[i]);
        let distance = match step {
            0 => return None,
            1.. => end.clamp(0, size) - start.clamp(0, size),
            _ => start.clamp(0, size - 1) - end.clamp(-1, size - 1),
        };
        dims[axis] = (distance.max(0) as u64).div_ceil(step.unsigned_abs());
    }
    Some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(dims: &[u64]) -> Value {
        Value { dims: dims.to_vec(), list: None }
    }

    fn constants(list: &[i64]) -> Value {
        Value { dims: vec![list.len() as u64], list: Some(list.to_vec()) }
    }

    fn of(kind: &str, axis: Option<i64>, inputs: &[Value], outputs: usize) -> Option<Vec<Dims>> {
        let node = Node {
            kind: kind.into(),
            outputs: vec![&b"x"[..]; outputs],
            axis,
            turn_b: kind == "Gemm",
            ..Node::default()
        };
        shapes(&node, &inputs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn each_operation_has_the_shape_of_onnx() {
        let v = value;
        for (kind, axis, inputs, expected) in [
            ("Tanh", None, vec![v(&[1, 7])], Some(vec![vec![1, 7]])),
            ("Add", None, vec![v(&[1, 7]), v(&[7])], Some(vec![vec![1, 7]])),
            ("Mul", None, vec![v(&[3, 1]), v(&[1, 4])], Some(vec![vec![3, 4]])),
            ("Max", None, vec![v(&[1, 4]), v(&[]), v(&[2, 1])], Some(vec![vec![2, 4]])),
            ("Add", None, vec![v(&[3]), v(&[4])], None),
            ("MatMul", None, vec![v(&[1, 7]), v(&[7, 5])], Some(vec![vec![1, 5]])),
            ("MatMul", None, vec![v(&[7]), v(&[7])], Some(vec![vec![]])),
            ("MatMul", None, vec![v(&[6, 2, 3]), v(&[3, 4])], Some(vec![vec![6, 2, 4]])),
            ("MatMul", None, vec![v(&[1, 7]), v(&[6, 5])], None),
            ("Gemm", None, vec![v(&[1, 7]), v(&[5, 7]), v(&[5])], Some(vec![vec![1, 5]])),
            ("Gemm", None, vec![v(&[1, 7]), v(&[7, 5])], None),
            ("Concat", Some(-1), vec![v(&[1, 7]), v(&[1, 2])], Some(vec![vec![1, 9]])),
            ("Concat", Some(2), vec![v(&[1, 7]), v(&[1, 2])], None),
            ("Split", Some(1), vec![v(&[1, 7]), constants(&[3, 4])], Some(vec![vec![1, 3], vec![1, 4]])),
            ("Split", Some(1), vec![v(&[1, 7])], Some(vec![vec![1, 4], vec![1, 3]])),
            ("Split", Some(1), vec![v(&[1, 7]), v(&[2])], None),
            ("Slice", None, vec![v(&[9, 7]), constants(&[1]), constants(&[-1])], Some(vec![vec![7, 7]])),
            (
                "Slice",
                None,
                vec![v(&[9, 7]), constants(&[6]), constants(&[i64::MIN]), constants(&[1]), constants(&[-2])],
                Some(vec![vec![9, 4]]),
            ),
        ] {
            let outputs = expected.as_ref().map_or(2, Vec::len);
            assert_eq!(of(kind, axis, &inputs, outputs), expected, "{kind} of {inputs:?}");
        }
    }

    #[test]
    fn doubling_again_and_again_is_refused() {
        let names: Vec<String> = (0..64).map(|i| format!("v{i}")).collect();
        let mut shapes = Shapes::new(BTreeMap::from([(names[0].as_bytes(), value(&[1, 2]))]));
        let error = names.windows(2).find_map(|pair| {
            let node = Node {
                kind: "Concat".into(),
                inputs: vec![pair[0].as_bytes(); 2],
                outputs: vec![pair[1].as_bytes()],
                axis: Some(1),
                ..Node::default()
            };
            shapes.add(&node).err()
        });
        assert_eq!(error.expect("refused").code, "too-large");
    }
}
