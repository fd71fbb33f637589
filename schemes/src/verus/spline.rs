//! A smooth curve through scattered points: cubic B-splines on equal steps with a penalty on the second differences of
//! their coefficients (Eilers and Marx, Statistical Science 11(2), 1996). Beyond its ends the outermost pieces go on.

/// Coefficients that are not zero at one place.
const WIDTH: usize = 4;

#[derive(Clone, Debug)]
pub struct Spline {
    from: f64,
    /// Distance of two knots.
    step: f64,
    coefficients: Vec<f64>,
}

impl Spline {
    /// The fit to `points`, sorted by their first number, with `count` coefficients (4 at least). The penalty is
    /// `10^smoothing` times as heavy as the points. `None` without points.
    pub fn fit(points: &[(f64, f64)], count: usize, smoothing: f64) -> Option<Self> {
        let (&(from, first), &(to, _)) = (points.first()?, points.last()?);
        let count = count.max(WIDTH);
        if to <= from {
            return Some(Self { from, step: 1.0, coefficients: vec![first; WIDTH] });
        }
        let mut spline = Self { from, step: (to - from) / (count - 3) as f64, coefficients: vec![0.0; count] };
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
        // 6 is the largest diagonal element of the squared second differences, but for the shortest curves.
        let heaviest = matrix.iter().map(|row| row[0]).fold(0.0, f64::max);
        let penalty = 10f64.powf(smoothing) * heaviest / 6.0;
        for start in 0..count - 2 {
            for (i, di) in DIFFERENCES.iter().enumerate() {
                for (j, dj) in DIFFERENCES[i..].iter().enumerate() {
                    matrix[start + i][j] += penalty * di * dj;
                }
            }
        }
        solve(&mut matrix, &mut right);
        spline.coefficients = right;
        Some(spline)
    }

    /// The curve at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let (start, weights) = self.basis(x);
        weights.iter().zip(&self.coefficients[start..]).map(|(w, c)| w * c).sum()
    }

    /// The first coefficient that counts at `x`, and how far `x` is within its step: 0 to 1 between the ends.
    fn place(&self, x: f64) -> (usize, f64) {
        let steps = (x - self.from) / self.step;
        let start = (steps as usize).min(self.coefficients.len() - WIDTH);
        (start, steps - start as f64)
    }

    fn basis(&self, x: f64) -> (usize, [f64; WIDTH]) {
        let (start, t) = self.place(x);
        let (s, t2, t3) = (1.0 - t, t * t, t * t * t);
        (
            start,
            [
                s * s * s / 6.0,
                (3.0 * t3 - 6.0 * t2 + 4.0) / 6.0,
                (-3.0 * t3 + 3.0 * t2 + 3.0 * t + 1.0) / 6.0,
                t3 / 6.0,
            ],
        )
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

    /// The knee of a delay profile, 40 ms up to a window of 40 and one more per packet then: a weak penalty follows it,
    /// a strong one approaches the straight line of least squares.
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

    #[test]
    fn few_points() {
        assert!(Spline::fit(&[], 5, 2.0).is_none());
        let one = Spline::fit(&[(7.0, 41.0)], 5, 2.0).unwrap();
        assert!((one.at(1.0) - 41.0).abs() < 1e-9 && (one.at(90.0) - 41.0).abs() < 1e-9);
        let two = Spline::fit(&[(1.0, 40.0), (11.0, 60.0)], 5, 2.0).unwrap();
        assert!((two.at(6.0) - 50.0).abs() < 1e-6 && (two.at(16.0) - 70.0).abs() < 1e-6);
    }
}
