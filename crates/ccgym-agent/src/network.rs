//! Evaluates small networks: weighted sums, and functions between them, for one observation at a time.
//!
//! All arithmetic is float64 in a fixed order, and exp, tanh and log are made of it: equal inputs give equal bits on
//! every machine, with every compiler. Training, simulation and deployment use the same evaluator.

use std::ops::Range;

/// Columns of a matrix that are summed side by side: eight registers of two numbers.
const WIDE: usize = 16;
/// The same for the columns that are left.
const NARROW: usize = 4;

/// Numbers in a network: a piece of its constants, or of the values that one evaluation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    constant: bool,
    start: usize,
    length: usize,
}

impl Row {
    /// Count of its numbers.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is a size, and may be 0")]
    pub fn len(self) -> usize {
        self.length
    }

    /// `length` of its numbers, from `from` on; the caller has checked that they exist.
    #[must_use]
    pub fn part(self, from: usize, length: usize) -> Self {
        debug_assert!(from + length <= self.length);
        Self { start: self.start + from, length, ..self }
    }

    fn range(self) -> Range<usize> {
        self.start..self.start + self.length
    }
}

/// A matrix in the order in which it is read: tiles of [`WIDE`] columns, then of [`NARROW`], filled up with zeros.
#[derive(Debug)]
struct Matrix {
    inputs: usize,
    outputs: usize,
    weights: Vec<f64>,
}

/// Identifies a matrix of a network.
#[derive(Clone, Copy, Debug)]
pub struct MatrixId(usize);

type Unary = fn(&mut [f64], &[f64]);
type Binary = fn(&mut [f64], &[f64], &[f64]);

#[derive(Debug)]
enum Step {
    Product { matrix: usize, input: Row },
    Unary { function: Unary, input: Row },
    Binary { function: Binary, left: Row, right: Row },
}

/// A network: its inputs, then steps that each add a row.
#[derive(Debug, Default)]
pub struct Network {
    inputs: usize,
    constants: Vec<f64>,
    matrices: Vec<Matrix>,
    steps: Vec<(Step, Row)>,
    numbers: usize,
    work: usize,
}

impl Network {
    /// Add an input of `length` numbers. All inputs come before the first step.
    pub fn input(&mut self, length: usize) -> Row {
        self.inputs += length;
        self.row(length)
    }

    /// Add constants.
    pub fn constant(&mut self, values: &[f64]) -> Row {
        let start = self.constants.len();
        self.constants.extend_from_slice(values);
        Row { constant: true, start, length: values.len() }
    }

    /// Add a matrix of `inputs` × `outputs`, whose elements `at` gives.
    pub fn matrix(&mut self, inputs: usize, outputs: usize, at: impl Fn(usize, usize) -> f64) -> MatrixId {
        let mut weights = Vec::with_capacity(inputs * padded(outputs));
        let mut column = 0;
        while column < outputs {
            let width = if outputs - column >= WIDE { WIDE } else { NARROW };
            for input in 0..inputs {
                weights.extend((column..column + width).map(|o| if o < outputs { at(input, o) } else { 0.0 }));
            }
            column += width;
        }
        self.matrices.push(Matrix { inputs, outputs, weights });
        MatrixId(self.matrices.len() - 1)
    }

    /// The weighted sums of a row; `None` if the matrix has other inputs.
    pub fn product(&mut self, input: Row, MatrixId(matrix): MatrixId) -> Option<Row> {
        let Matrix { inputs, outputs, .. } = self.matrices[matrix];
        self.work = self.work.saturating_add(inputs.saturating_mul(padded(outputs)));
        (inputs == input.length).then(|| self.step(Step::Product { matrix, input }, outputs))
    }

    /// A function of each number, or of the whole row; `None` if there is none of this name.
    pub fn unary(&mut self, name: &str, input: Row) -> Option<Row> {
        let (_, function) = *UNARY.iter().find(|(known, _)| *known == name)?;
        Some(self.step(Step::Unary { function, input }, input.length))
    }

    /// A function of pairs of numbers; `None` if there is none of this name, or the lengths differ and none is 1.
    pub fn binary(&mut self, name: &str, left: Row, right: Row) -> Option<Row> {
        let (_, function) = *BINARY.iter().find(|(known, _)| *known == name)?;
        let length = match (left.length, right.length) {
            (a, b) if a == b => a,
            (1, length) | (length, 1) => length,
            _ => return None,
        };
        Some(self.step(Step::Binary { function, left, right }, length))
    }

    /// Rows one after the other.
    pub fn concat(&mut self, rows: &[Row]) -> Row {
        let start = self.numbers;
        for row in rows.iter().filter(|row| row.length > 0) {
            self.step(Step::Unary { function: |row, x| row.copy_from_slice(x), input: *row }, row.length);
        }
        Row { constant: false, start, length: self.numbers - start }
    }

    /// Numbers of the values of one evaluation.
    #[must_use]
    pub fn numbers(&self) -> usize {
        self.numbers
    }

    /// Multiplications and other operations of one evaluation.
    #[must_use]
    pub fn work(&self) -> usize {
        self.work
    }

    /// Evaluate: `inputs` fill the rows of the inputs, in order. Read the results with [`Network::read`].
    pub fn run<'a>(&self, values: &mut Vec<f64>, inputs: impl IntoIterator<Item = &'a f32>) {
        values.resize(self.numbers, 0.0);
        for (value, input) in values[..self.inputs].iter_mut().zip(inputs) {
            *value = f64::from(*input);
        }
        for (step, output) in &self.steps {
            let (before, after) = values.split_at_mut(output.start);
            let output = &mut after[..output.length];
            match *step {
                Step::Product { matrix, input } => self.matrices[matrix].apply(self.read(before, input), output),
                Step::Unary { function, input } => function(output, self.read(before, input)),
                Step::Binary { function, left, right } => {
                    function(output, self.read(before, left), self.read(before, right));
                }
            }
        }
    }

    /// The numbers of a row after [`Network::run`].
    #[must_use]
    pub fn read<'a>(&'a self, values: &'a [f64], row: Row) -> &'a [f64] {
        &(if row.constant { &self.constants } else { values })[row.range()]
    }

    fn step(&mut self, step: Step, length: usize) -> Row {
        let output = self.row(length);
        self.work = self.work.saturating_add(length);
        self.steps.push((step, output));
        output
    }

    fn row(&mut self, length: usize) -> Row {
        self.numbers = self.numbers.saturating_add(length);
        Row { constant: false, start: self.numbers - length, length }
    }
}

/// The columns that a matrix of `outputs` columns has in memory.
fn padded(outputs: usize) -> usize {
    outputs / WIDE * WIDE + (outputs % WIDE).div_ceil(NARROW) * NARROW
}

impl Matrix {
    fn apply(&self, input: &[f64], output: &mut [f64]) {
        let wide = self.outputs / WIDE * WIDE;
        let (wide_weights, narrow_weights) = self.weights.split_at(wide * self.inputs);
        let (wide_output, narrow_output) = output.split_at_mut(wide);
        tiles::<WIDE>(input, wide_weights, wide_output);
        tiles::<NARROW>(input, narrow_weights, narrow_output);
    }
}

/// Each output is one sum, from the first input to the last: its order does not depend on the width.
fn tiles<const N: usize>(input: &[f64], weights: &[f64], output: &mut [f64]) {
    for (place, output) in output.chunks_mut(N).enumerate() {
        let mut sums = [0.0; N];
        let tile = &weights[place * N * input.len()..][..N * input.len()];
        for (x, column) in input.iter().zip(tile.chunks_exact(N)) {
            for (sum, weight) in sums.iter_mut().zip(column) {
                *sum += x * weight;
            }
        }
        output.copy_from_slice(&sums[..output.len()]);
    }
}

/// Functions by their names in ONNX.
pub const UNARY: &[(&str, Unary)] = &[
    ("Abs", |row, x| each(row, x, f64::abs)),
    ("Elu", |row, x| each(row, x, |x| if x > 0.0 { x } else { exp_m1(x) })),
    ("Exp", |row, x| each(row, x, exp)),
    ("Expm1", |row, x| each(row, x, exp_m1)),
    ("Float32", |row, x| each(row, x, |x| f64::from(x as f32))),
    ("Log", |row, x| each(row, x, log)),
    ("Neg", |row, x| each(row, x, |x| -x)),
    ("Relu", |row, x| each(row, x, |x| larger(x, 0.0))),
    ("Sigmoid", |row, x| each(row, x, |x| 1.0 / (1.0 + exp(-x)))),
    ("Softmax", softmax),
    ("Softplus", |row, x| each(row, x, |x| larger(x, 0.0) + log(1.0 + exp(-x.abs())))),
    ("Sqrt", |row, x| each(row, x, f64::sqrt)),
    ("Tanh", |row, x| each(row, x, tanh)),
];

/// The same of pairs of numbers.
pub const BINARY: &[(&str, Binary)] = &[
    ("Add", |row, a, b| pairs(row, a, b, |x, y| x + y)),
    ("Div", |row, a, b| pairs(row, a, b, |x, y| x / y)),
    ("Max", |row, a, b| pairs(row, a, b, larger)),
    ("Min", |row, a, b| pairs(row, a, b, |x, y| -larger(-x, -y))),
    ("Mul", |row, a, b| pairs(row, a, b, |x, y| x * y)),
    ("Sub", |row, a, b| pairs(row, a, b, |x, y| x - y)),
];

fn each(row: &mut [f64], inputs: &[f64], function: impl Fn(f64) -> f64) {
    for (y, x) in row.iter_mut().zip(inputs) {
        *y = function(*x);
    }
}

fn pairs(row: &mut [f64], left: &[f64], right: &[f64], function: impl Fn(f64, f64) -> f64) {
    match (left, right) {
        ([x], right) => row.iter_mut().zip(right).for_each(|(z, y)| *z = function(*x, *y)),
        (left, [y]) => row.iter_mut().zip(left).for_each(|(z, x)| *z = function(*x, *y)),
        _ => row.iter_mut().zip(left.iter().zip(right)).for_each(|(z, (x, y))| *z = function(*x, *y)),
    }
}

/// The larger of two, or NaN if one of them is.
fn larger(x: f64, y: f64) -> f64 {
    if x > y || x.is_nan() {
        x
    } else {
        y
    }
}

/// `x` between `low` and `high`; NaN stays NaN.
#[inline(always)]
fn limit(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high {
        high
    } else {
        x
    }
}

fn softmax(row: &mut [f64], inputs: &[f64]) {
    let highest = inputs.iter().copied().fold(f64::NEG_INFINITY, larger);
    each(row, inputs, |x| exp(x - highest));
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}

// The functions below are inlined into loops over rows: there two numbers are computed at once.

/// 1/1! to 1/13!, of which the last is below the last bit of the sum.
const SERIES: [f64; 13] = {
    let (mut terms, mut k) = ([1.0; 13], 1);
    while k < 13 {
        terms[k] = terms[k - 1] / (k + 1) as f64;
        k += 1;
    }
    terms
};

/// ln 2 in two parts: products of the first with whole numbers are exact.
const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// 1.5 · 2^52: a number that is added to it is rounded, and is the lowest bits of the sum.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// e^x as 2^n and 2^n · (e^r − 1), where r is at most half of ln 2; for |x| up to 709.
#[inline(always)]
fn split_exp(x: f64) -> (f64, f64) {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    // The terms with even and with odd powers side by side.
    let (square, mut even, mut odd) = (r * r, SERIES[12], 0.0);
    for k in (0..6).rev() {
        (even, odd) = (even * square + SERIES[2 * k], odd * square + SERIES[2 * k + 1]);
    }
    let sum = even + odd * r;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (scale, scale * (sum * r))
}

/// e^x: 0 below −708, infinity above 709.
#[inline(always)]
fn exp(x: f64) -> f64 {
    let (scale, rest) = split_exp(limit(x, -708.0, 709.0));
    let y = scale + rest;
    let y = if x > 709.0 { f64::INFINITY } else { y };
    if x < -708.0 {
        0.0
    } else {
        y
    }
}

/// e^x − 1.
#[inline(always)]
fn exp_m1(x: f64) -> f64 {
    let (scale, rest) = split_exp(limit(x, -50.0, 709.0));
    let y = (scale - 1.0) + rest;
    if x > 709.0 {
        f64::INFINITY
    } else {
        y
    }
}

/// The hyperbolic tangent; exact to the last digits also next to 0.
#[inline(always)]
fn tanh(x: f64) -> f64 {
    let (scale, rest) = split_exp(limit(2.0 * x.abs(), 0.0, 50.0));
    let y = (scale - 1.0) + rest;
    (y / (y + 2.0)).copysign(x)
}

/// The natural logarithm.
fn log(x: f64) -> f64 {
    if !(x > 0.0 && x < f64::INFINITY) {
        return if x == 0.0 {
            f64::NEG_INFINITY
        } else if x > 0.0 {
            x
        } else {
            f64::NAN
        };
    }
    // A subnormal number becomes a normal one first.
    let (x, below) = if x < f64::MIN_POSITIVE { (x * (1u64 << 54) as f64, 54.0) } else { (x, 0.0) };
    // x = 2^n · m, with m from √½ to √2.
    let half = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    let n = (x.to_bits().wrapping_sub(half) as i64) >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub((n << 52) as u64));
    let s = (m - 1.0) / (m + 1.0);
    // 2 · artanh(s): s is at most 0.172, and the series ends below the last bit.
    let sum = (0..11).rev().fold(0.0, |sum, k| sum * (s * s) + 1.0 / f64::from(2 * k + 1));
    let n = n as f64 - below;
    n * LN_2[0] + (2.0 * s * sum + n * LN_2[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, wanted: f64, error: f64) -> bool {
        found.to_bits() == wanted.to_bits() || (found - wanted).abs() <= error * wanted.abs()
    }

    #[test]
    fn functions_are_right_to_a_few_units_in_the_last_place() {
        let mut at =
            vec![0.0, 1e-300, 5e-324, 1e-12, 3e-5, 0.1, 0.3466, 0.5, 1.0, 2.5, 20.0, 49.9, 300.0, 700.0, 1e300];
        at.extend((0..20_000).map(|i| f64::from(i) * 1.37e-3));
        at.extend([f64::INFINITY]);
        for x in at.iter().flat_map(|x| [*x, -x]) {
            let softplus = if x > 30.0 { x } else { x.exp().ln_1p() };
            for (name, found, wanted) in [
                ("exp", exp(x), x.exp()),
                ("exp_m1", exp_m1(x), x.exp_m1()),
                ("tanh", tanh(x), x.tanh()),
                ("log", log(x.abs()), x.abs().ln()),
            ] {
                assert!(near(found, wanted, 1e-15), "{name}({x:e}) = {found:e}, not {wanted:e}");
            }
            let mut row = [0.0];
            UNARY.iter().find(|(name, _)| *name == "Softplus").expect("it is there").1(&mut row, &[x]);
            assert!((row[0] - softplus).abs() <= 3e-16 * softplus.max(1.0) || row[0] == softplus, "softplus({x:e})");
        }
        assert!([exp(f64::NAN), exp_m1(f64::NAN), tanh(f64::NAN), log(f64::NAN), log(-1.0)].iter().all(|x| x.is_nan()));
    }

    /// Recorded bits: a machine or compiler that rounds otherwise fails here.
    #[test]
    fn functions_give_equal_bits_everywhere() {
        let mut digest = 0u64;
        for i in 0..10_000 {
            let x = (f64::from(i) - 5000.0) * 7.3e-3;
            for y in [exp(x), exp_m1(x), tanh(x), log(x.abs())] {
                digest = digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ y.to_bits();
            }
        }
        assert_eq!(digest, 12_847_968_610_582_344_752);
    }

    /// Against sums by hand, for widths around those of the tiles.
    #[test]
    fn sums_are_taken_input_by_input() {
        for (inputs, outputs) in [(1, 1), (3, 4), (5, 7), (7, 16), (30, 33), (2, 52), (0, 3), (3, 0)] {
            let weight = |i: usize, o: usize| ((i * 37 + o * 11) % 19) as f64 / 7.0 - 1.1;
            let mut network = Network::default();
            let input = network.input(inputs);
            let matrix = network.matrix(inputs, outputs, weight);
            let output = network.product(input, matrix).expect("it fits");
            let given: Vec<f32> = (0..inputs).map(|i| i as f32 * 0.3 - 1.0).collect();
            let mut values = Vec::new();
            network.run(&mut values, &given);
            let wanted: Vec<f64> = (0..outputs)
                .map(|o| (0..inputs).fold(0.0, |sum, i| sum + f64::from(given[i]) * weight(i, o)))
                .collect();
            assert_eq!(network.read(&values, output), wanted, "{inputs} x {outputs}");
        }
    }

    #[test]
    fn rows_fit_or_are_refused() {
        let mut network = Network::default();
        let (x, one) = (network.input(3), network.constant(&[2.0]));
        let matrix = network.matrix(2, 2, |_, _| 1.0);
        assert_eq!(network.product(x, matrix), None);
        assert_eq!((network.unary("Loop", x), network.binary("Pow", x, one)), (None, None));
        assert_eq!(network.binary("Add", x, x.part(0, 2)), None);
        let scaled = network.binary("Mul", one, x).expect("one number goes with any row");
        let lower = network.binary("Min", scaled, one).expect("as above");
        let both = network.concat(&[lower, x.part(1, 2), one]);
        let likely = network.unary("Softmax", both).expect("it is known");
        let mut values = Vec::new();
        network.run(&mut values, &[-1.0, 0.5, 3.0]);
        assert_eq!(network.read(&values, both), [-2.0, 1.0, 2.0, 0.5, 3.0, 2.0]);
        let sum: f64 = network.read(&values, likely).iter().sum();
        assert!((sum - 1.0).abs() < 1e-15);
        network.run(&mut values, &[f32::NAN, 0.0, 0.0]);
        assert!(network.read(&values, both)[0].is_nan() && network.read(&values, likely).iter().all(|x| x.is_nan()));
    }
}
