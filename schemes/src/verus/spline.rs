//! A smooth curve through scattered points: a natural cubic spline with equidistant nodes. It minimizes the squared
//! errors and a penalty, the integral of the squared second derivative. Beyond its ends it is straight. This is the fit
//! of alglib's `spline1dfitpenalized`, which Verus uses: nodes, penalty and ends by its manual, the penalty's scale by
//! its source. None of its code is here.

/// Number of B-spline coefficients that are not zero at one place.
const WIDTH: usize = 4;

#[derive(Clone, Debug)]
pub struct Spline {
    from: f64,
    /// Distance between two nodes.
    step: f64,
    /// Coefficients of the B-splines centered at the nodes. The straight ends define one more at each end.
    coefficients: Vec<f64>,
}

impl Spline {
    /// Fit to `points`, sorted by their first number, with `count` nodes (at least 4). The factor of the penalty is
    /// `10^smoothing`, scaled by [`Self::scale`]. `None` without points.
    pub fn fit(points: &[(f64, f64)], count: usize, smoothing: f64) -> Option<Self> {
        let (&(from, first), &(to, _)) = (points.first()?, points.last()?);
        let count = count.max(WIDTH);
        if to <= from {
            return Some(Self { from, step: 1.0, coefficients: vec![first; WIDTH] });
        }
        let mut spline = Self { from, step: (to - from) / (count - 1) as f64, coefficients: vec![0.0; count] };
        let penalty = 10f64.powf(smoothing) * spline.scale(points);
        // The normal equations, banded: row i holds columns i to i + 3.
        let mut matrix = vec![[0.0; WIDTH]; count];
        let mut right = vec![0.0; count];
        for &(x, y) in points {
            let (start, weights) = spline.basis(x);
            for (i, wi) in weights.iter().enumerate() {
                right[start + i] += wi * y;
                for (j, wj) in weights[i..].iter().enumerate() {
                    matrix[start + i][j] += wi * wj;
                }
            }
        }
        // The second derivative is linear between nodes. At a node it is the second difference; at both ends it is 0.
        for start in 0..count - 2 {
            // Between two nodes with second differences a and b the integral is (a² + ab + b²) / 3.
            for (i, di) in DIFFERENCES.iter().enumerate() {
                for (j, dj) in DIFFERENCES[i..].iter().enumerate() {
                    matrix[start + i][j] += penalty * 2.0 / 3.0 * di * dj;
                }
                if start + 3 < count {
                    for (j, dj) in DIFFERENCES.iter().enumerate() {
                        let (low, high) = (i.min(j + 1), i.max(j + 1));
                        let both = if low == high { 2.0 } else { 1.0 };
                        matrix[start + low][high - low] += penalty / 6.0 * both * di * dj;
                    }
                }
            }
        }
        solve(&mut matrix, &mut right);
        spline.coefficients = right;
        Some(spline)
    }

    /// Return the scale of the penalty: over the curves that are 1 at one node and 0 at the others, the max sum of
    /// squares at the points divided by the max penalty.
    fn scale(&self, points: &[(f64, f64)]) -> f64 {
        let count = self.coefficients.len();
        let (mut heaviest, mut most_bent) = (0f64, 0f64);
        for node in 0..count {
            let mut one = Self { coefficients: vec![0.0; count], ..*self };
            one.coefficients[node] = 1.0;
            one.interpolate();
            heaviest = heaviest.max(points.iter().map(|&(x, _)| one.at(x).powi(2)).sum());
            most_bent = most_bent.max(one.bending());
        }
        heaviest / most_bent
    }

    /// Turn values at the nodes into coefficients.
    fn interpolate(&mut self) {
        let values = &mut self.coefficients;
        let last = values.len() - 1;
        // c[j-1] + 4 c[j] + c[j+1] = 6 values[j] inside; the outermost coefficients are the values themselves.
        let mut factors = vec![0.0; last];
        for j in 1..last {
            let divisor = 4.0 - factors[j - 1];
            factors[j] = 1.0 / divisor;
            values[j] = (6.0 * values[j] - values[j - 1]) / divisor;
        }
        for j in (1..last).rev() {
            values[j] -= factors[j] * values[j + 1];
        }
    }

    /// Return the integral of the squared second derivative, in steps.
    fn bending(&self) -> f64 {
        let inner = self.coefficients.windows(3).map(|c| c[0] - 2.0 * c[1] + c[2]);
        let bends: Vec<_> = std::iter::once(0.0).chain(inner).chain([0.0]).collect();
        bends.windows(2).map(|d| (d[0] * d[0] + d[0] * d[1] + d[1] * d[1]) / 3.0).sum()
    }

    /// Return the curve at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let (start, weights) = self.basis(x);
        weights.iter().zip(&self.coefficients[start..]).map(|(w, c)| w * c).sum()
    }

    /// Return the index of the first coefficient that counts at `x`, and the weights.
    fn basis(&self, x: f64) -> (usize, [f64; WIDTH]) {
        let last = self.coefficients.len() - 1;
        let steps = (x - self.from) / self.step;
        if steps <= 0.0 {
            return (0, [1.0 - steps, steps, 0.0, 0.0]);
        }
        if steps >= last as f64 {
            let beyond = steps - last as f64;
            return (last - 3, [0.0, 0.0, -beyond, 1.0 + beyond]);
        }
        let interval = (steps as usize).min(last - 1);
        let t = steps - interval as f64;
        let (s, t2, t3) = (1.0 - t, t * t, t * t * t);
        let weights = [
            s * s * s / 6.0,
            (3.0 * t3 - 6.0 * t2 + 4.0) / 6.0,
            (-3.0 * t3 + 3.0 * t2 + 3.0 * t + 1.0) / 6.0,
            t3 / 6.0,
        ];
        // The coefficient beyond an end is on the straight line through the two before it.
        match interval {
            0 => (0, [weights[1] + 2.0 * weights[0], weights[2] - weights[0], weights[3], 0.0]),
            _ if interval == last - 1 => {
                (last - 3, [0.0, weights[0], weights[1] - weights[3], weights[2] + 2.0 * weights[3]])
            }
            _ => (interval - 1, weights),
        }
    }
}

const DIFFERENCES: [f64; 3] = [1.0, -2.0, 1.0];

/// Solve a symmetric positive definite banded system in place, by square-root-free Cholesky factors.
fn solve(matrix: &mut [[f64; WIDTH]], right: &mut [f64]) {
    let n = right.len();
    for k in 0..n {
        let row = matrix[k];
        for i in 1..WIDTH.min(n - k) {
            let factor = row[i] / row[0];
            for (entry, above) in matrix[k + i].iter_mut().zip(&row[i..]) {
                *entry -= factor * above;
            }
            right[k + i] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        for j in 1..WIDTH.min(n - k) {
            right[k] -= matrix[k][j] * right[k + j];
        }
        right[k] /= matrix[k][0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(f: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (1..=150).map(|x| (f64::from(x), f(f64::from(x)))).collect()
    }

    /// A straight line has no second differences: no penalty bends it, inside and beyond the ends.
    #[test]
    fn lines_are_kept() {
        for smoothing in [-3.0, 0.0, 2.0, 6.0] {
            let spline = Spline::fit(&points(|x| 40.0 + 0.5 * x), 10, smoothing).unwrap();
            for x in [0.0, 1.0, 33.3, 150.0, 400.0] {
                assert!((spline.at(x) - (40.0 + 0.5 * x)).abs() < 1e-6, "{smoothing}, {x}: {}", spline.at(x));
            }
        }
    }

    /// The knee of a delay profile, 40 ms up to a window of 40 and one more per packet then: with a weak penalty the
    /// curve follows it, with a strong one it approaches the straight line of least squares.
    #[test]
    fn smoothing_straightens() {
        let knee = points(|x| 40.0 + (x - 40.0).max(0.0));
        let off = |smoothing| {
            let spline = Spline::fit(&knee, 30, smoothing).unwrap();
            knee.iter().map(|&(x, y)| (spline.at(x) - y).abs()).fold(0.0, f64::max)
        };
        assert!(off(-4.0) < 1.0, "{}", off(-4.0));
        assert!(off(0.0) > off(-4.0) && off(2.0) > off(0.0) && off(8.0) > off(2.0));
        assert!(off(8.0) > 10.0, "{}", off(8.0));
    }

    /// Values of `spline1dfitpenalized` in the alglib that comes with Verus (yzaki/verus d4b447e) for the knee
    /// (`schemes/tests/recorders/verus_alglib.cpp`).
    #[test]
    fn values_of_alglib() {
        let knee = points(|x| 40.0 + (x - 40.0).max(0.0));
        for (nodes, smoothing, values) in [
            (5, 2.0, [19.140939063, 19.936309152, 51.109066741, 80.164488637, 143.239763861, 185.909195675]),
            (10, -4.0, [39.304931436, 39.429409556, 41.935922237, 75.663597153, 149.973695311, 199.693632665]),
            (10, 2.0, [28.471024973, 28.942098764, 48.966232164, 75.753460364, 149.365593310, 200.433267025]),
            (30, 2.0, [40.121955751, 40.081242545, 42.891985920, 75.354365908, 150.000050823, 200.004044427]),
        ] {
            let spline = Spline::fit(&knee, nodes, smoothing).unwrap();
            for (x, expected) in [0.0, 1.0, 40.0, 75.5, 150.0, 200.0].into_iter().zip(values) {
                let found = spline.at(x);
                assert!((found - expected).abs() < 1e-7, "{nodes} nodes, {smoothing}, at {x}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn few_points() {
        assert!(Spline::fit(&[], 5, 2.0).is_none());
        let one = Spline::fit(&[(7.0, 41.0)], 5, 2.0).unwrap();
        assert!((one.at(1.0) - 41.0).abs() < 1e-9 && (one.at(90.0) - 41.0).abs() < 1e-9);
        let two = Spline::fit(&[(1.0, 40.0), (11.0, 60.0)], 5, 2.0).unwrap();
        assert!((two.at(6.0) - 50.0).abs() < 1e-6 && (two.at(16.0) - 70.0).abs() < 1e-6);
    }
}
