//! Distributions of transfer sizes.

use ccgym_core::{schema, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distribution of transfer sizes, bytes of payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "TransferSize")]
pub enum SizeSpec {
    /// Always the same.
    Constant {
        /// Payload bytes.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        bytes: u64,
    },
    /// Evenly between two bounds.
    Uniform {
        /// Minimum.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        min: u64,
        /// Maximum.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        max: u64,
    },
    /// Evenly in the logarithm, between two bounds.
    LogUniform {
        /// Minimum.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        min: u64,
        /// Maximum.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        max: u64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        mean: u64,
        /// Maximum: larger sizes are cut to this.
        #[serde(default = "gigabyte")]
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        max: u64,
    },
    /// Pareto: many small ones, few very large ones.
    Pareto {
        /// Minimum.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        min: u64,
        /// Shape; up to 1 the mean is only finite because of `max`.
        #[schemars(range(min = 0.1, max = 100.0))]
        shape: f64,
        /// Maximum: larger sizes are cut to this.
        #[serde(default = "gigabyte")]
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        max: u64,
    },
    /// Lognormal.
    Lognormal {
        /// Median.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        median: u64,
        /// Standard deviation of the natural logarithm.
        #[schemars(range(min = 0.0, max = 10.0))]
        sigma: f64,
        /// Maximum: larger sizes are cut to this.
        #[serde(default = "gigabyte")]
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        max: u64,
    },
    /// A table, for example a measured one: linear between its points.
    Table {
        /// Payload bytes, ascending.
        #[schemars(length(min = 1, max = 10_000), extend("items" = {"type": "integer", "format": "bytes", "minimum": 1}))]
        sizes: Vec<u64>,
        /// Fraction of the transfers that have at most the size at the same place, ascending; the last one is 1.
        #[schemars(length(min = 1, max = 10_000), inner(range(min = 0.0, max = 1.0)))]
        fractions: Vec<f64>,
    },
}

impl SizeSpec {
    /// Check constraints that the types do not express.
    ///
    /// # Errors
    /// A value is out of range, or values do not fit each other; the place begins with `at`.
    pub fn validate(&self, at: &str) -> Result<(), Error> {
        schema::check(at, self)?;
        let (smallest, max) = match *self {
            Self::Constant { bytes } => (bytes, bytes),
            Self::Uniform { min, max } | Self::LogUniform { min, max } => (min, max),
            Self::Exponential { mean, max } => (mean, max),
            Self::Pareto { min, max, .. } => (min, max),
            Self::Lognormal { median, max, .. } => (median, max),
            Self::Table { ref sizes, ref fractions } => {
                let found = format!("{} sizes and {} fractions", sizes.len(), fractions.len());
                let pairs = !sizes.is_empty() && sizes.len() == fractions.len();
                Error::ensure(pairs, at, found, "a fraction for every size")?;
                let found = format!("{sizes:?}");
                Error::ensure(sizes.is_sorted(), &format!("{at}.sizes"), found, "ascending sizes")?;
                let whole = fractions.first().is_some_and(|first| *first >= 0.0) && fractions.last() == Some(&1.0);
                let ascending = whole && fractions.is_sorted();
                let found = format!("{fractions:?}");
                Error::ensure(ascending, &format!("{at}.fractions"), found, "ascending fractions that end at 1")?;
                (sizes[0], sizes[sizes.len() - 1])
            }
        };
        let ordered = smallest > 0 && smallest <= max && max <= MAX_TRANSFER;
        Error::ensure(ordered, at, format_args!("{smallest} and at most {max} bytes"), "1 byte to 1 TB, in order")
    }

    /// Draw a size of at least one byte; `uniform` returns numbers in [0, 1), of which none, one or two are used.
    pub fn draw(&self, mut uniform: impl FnMut() -> f64) -> u64 {
        let (drawn, max) = match *self {
            Self::Constant { bytes } => return bytes,
            Self::Uniform { min, max } => (min as f64 + (max - min) as f64 * uniform(), max),
            Self::LogUniform { min, max } => {
                let (low, high) = (min as f64, max as f64);
                ((low.ln() + (high / low).ln() * uniform()).exp().clamp(low, high), max)
            }
            Self::Exponential { mean, max } => (-(mean as f64) * (1.0 - uniform()).ln(), max),
            Self::Pareto { min, shape, max } => (min as f64 * (1.0 - uniform()).powf(-1.0 / shape), max),
            Self::Lognormal { median, sigma, max } => {
                // Box and Muller's, as `Rng::normal`.
                let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * uniform()).cos();
                (median as f64 * (sigma * normal).exp(), max)
            }
            Self::Table { ref sizes, ref fractions } => {
                let part = uniform();
                let above = fractions.partition_point(|fraction| *fraction <= part).min(sizes.len() - 1);
                let Some(below) = above.checked_sub(1) else { return sizes[0] };
                let (low, high) = (sizes[below] as f64, sizes[above] as f64);
                let along = (part - fractions[below]) / (fractions[above] - fractions[below]);
                (low + (high - low) * along, sizes[above])
            }
        };
        (drawn.round() as u64).clamp(1, max)
    }

    /// Return the mean of the drawn sizes, including the cut at the max, bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant { bytes } => bytes as f64,
            Self::Uniform { min, max } => f64::midpoint(min as f64, max as f64),
            Self::LogUniform { min, max } if min == max => min as f64,
            Self::LogUniform { min, max } => (max - min) as f64 / (max as f64 / min as f64).ln(),
            Self::Exponential { mean, max } => -(mean as f64) * (-(max as f64) / mean as f64).exp_m1(),
            // The min, and the integral of the fraction of larger sizes, from there to the max.
            Self::Pareto { min, shape, max } => {
                let ratio = (max as f64 / min as f64).ln();
                let steepness = 1.0 - shape;
                let tail = if steepness.abs() < 1e-9 { ratio } else { (steepness * ratio).exp_m1() / steepness };
                min as f64 * (1.0 + tail)
            }
            // Over the normal distribution, by the trapezoidal rule, which is exact for it up to rounding.
            Self::Lognormal { median, sigma, max } => {
                let step = 0.01;
                let at = |z: f64| (median as f64 * (sigma * z).exp()).min(max as f64) * (-z * z / 2.0).exp();
                let last = ((sigma + 20.0) / step) as i32;
                (-1000..=last).map(|k| at(f64::from(k) * step)).sum::<f64>() * step / std::f64::consts::TAU.sqrt()
            }
            Self::Table { ref sizes, ref fractions } => {
                let first = sizes[0] as f64 * fractions[0];
                let between =
                    |k: usize| (fractions[k] - fractions[k - 1]) * f64::midpoint(sizes[k] as f64, sizes[k - 1] as f64);
                first + (1..sizes.len()).map(between).sum::<f64>()
            }
        }
    }
}

/// Max bytes of a transfer.
const MAX_TRANSFER: u64 = 1_000_000_000_000;

const fn gigabyte() -> u64 {
    1_000_000_000
}

#[cfg(test)]
mod tests {
    use ccgym_core::Rng;
    use proptest::prelude::*;

    use super::*;

    const MAX: u64 = 1_000_000_000;

    fn drawn(size: &SizeSpec) -> Vec<u64> {
        let mut rng = Rng::stream(1, "test", 0);
        let mut sizes: Vec<_> = (0..100_001).map(|_| size.draw(|| rng.uniform())).collect();
        sizes.sort_unstable();
        sizes
    }

    fn mean(sizes: &[u64]) -> f64 {
        sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
    }

    /// Return the web search flows of the DCTCP paper, as used in simulations.
    fn web_search() -> SizeSpec {
        let kilobytes = [1, 10, 20, 30, 50, 80, 200, 1000, 2000, 5000, 10_000, 30_000];
        let fractions = vec![0.0, 0.15, 0.2, 0.3, 0.4, 0.53, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0];
        SizeSpec::Table { sizes: kilobytes.map(|size| size * 1000).to_vec(), fractions }
    }

    #[test]
    fn sizes_follow_their_law() {
        assert!(drawn(&SizeSpec::Constant { bytes: 7 }).iter().all(|size| *size == 7));
        let uniform = drawn(&SizeSpec::Uniform { min: 30_000, max: 50_000 });
        assert!(uniform[0] >= 30_000 && uniform[100_000] <= 50_000 && uniform[25_000].abs_diff(35_000) < 200);
        let logarithmic = drawn(&SizeSpec::LogUniform { min: 10_000, max: 10_000_000 });
        assert!((logarithmic[50_000] as f64 / 316_228.0 - 1.0).abs() < 0.03, "{}", logarithmic[50_000]);
        // Pareto: the median is min · 2^(1/shape).
        let pareto = drawn(&SizeSpec::Pareto { min: 1000, shape: 2.5, max: MAX });
        assert_eq!(pareto[0], 1000);
        assert!((pareto[50_000] as f64 / (1000.0 * 2f64.powf(0.4)) - 1.0).abs() < 0.01);
        let lognormal = drawn(&SizeSpec::Lognormal { median: 5000, sigma: 1.0, max: 20_000 });
        assert!((lognormal[50_000] as f64 / 5000.0 - 1.0).abs() < 0.02);
        assert_eq!(lognormal[100_000], 20_000, "none is larger than the largest");
        // e^(−ln 4) = 1/4 of the sizes below the median's quarter at z = −ln 4: Φ(−1.386) = 8.3 %.
        assert!((lognormal.iter().filter(|size| **size < 1250).count() as f64 / 1e5 - 0.083).abs() < 0.005);
        let table = drawn(&web_search());
        let share = |bytes: u64| table.partition_point(|size| *size <= bytes) as f64 / 1e5;
        for (bytes, fraction) in [(10_000, 0.15), (65_000, 0.465), (1_000_000, 0.7), (20_000_000, 0.985)] {
            assert!((share(bytes) - fraction).abs() < 0.006, "{bytes}: {}", share(bytes));
        }
        // A first fraction above zero is that of the smallest size.
        let two = drawn(&SizeSpec::Table { sizes: vec![100, 200], fractions: vec![0.5, 1.0] });
        assert!((two.partition_point(|size| *size == 100) as f64 / 1e5 - 0.5).abs() < 0.01);
    }

    #[test]
    fn means() {
        // min · shape / (shape − 1) without a cut.
        let pareto = SizeSpec::Pareto { min: 1000, shape: 2.5, max: MAX };
        assert!((pareto.mean() / (1000.0 * 2.5 / 1.5) - 1.0).abs() < 1e-6);
        // median · e^(σ²/2)
        let lognormal = SizeSpec::Lognormal { median: 5000, sigma: 1.5, max: MAX };
        assert!((lognormal.mean() / (5000.0 * 1.125f64.exp()) - 1.0).abs() < 1e-6, "{}", lognormal.mean());
        assert!((SizeSpec::LogUniform { min: 10_000, max: 10_000_000 }.mean() / 1_446_200.0 - 1.0).abs() < 1e-4);
        assert!((web_search().mean() / 1.71e6 - 1.0).abs() < 0.01, "{}", web_search().mean());
    }

    fn any_size() -> impl Strategy<Value = SizeSpec> {
        let bounds = (1u64..100_000, 1u64..1_000_000).prop_map(|(min, more)| (min, min + more));
        prop_oneof![
            bounds.clone().prop_map(|(min, max)| SizeSpec::Uniform { min, max }),
            bounds.clone().prop_map(|(min, max)| SizeSpec::LogUniform { min, max }),
            bounds.clone().prop_map(|(mean, max)| SizeSpec::Exponential { mean, max }),
            (bounds.clone(), 0.5f64..3.0).prop_map(|((min, max), shape)| SizeSpec::Pareto { min, shape, max }),
            (bounds, 0.0f64..2.0).prop_map(|((median, max), sigma)| SizeSpec::Lognormal { median, sigma, max }),
            prop::collection::vec((1u64..1_000_000, 0.0f64..1.0), 1..8).prop_map(|points| {
                let (mut sizes, mut fractions): (Vec<_>, Vec<_>) = points.into_iter().unzip();
                sizes.sort_unstable();
                fractions.sort_by(f64::total_cmp);
                *fractions.last_mut().unwrap() = 1.0;
                SizeSpec::Table { sizes, fractions }
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Drawn sizes are within the bounds and have the mean; the same numbers draw the same sizes.
        #[test]
        fn any_law_keeps_its_bounds_and_its_mean(size in any_size()) {
            prop_assert!(size.validate("size").is_ok(), "{size:?}");
            let sizes = drawn(&size);
            let (low, high) = match size {
                SizeSpec::Constant { bytes } => (bytes, bytes),
                SizeSpec::Uniform { min, max } | SizeSpec::LogUniform { min, max } | SizeSpec::Pareto { min, max, .. } => (min, max),
                SizeSpec::Exponential { max, .. } | SizeSpec::Lognormal { max, .. } => (1, max),
                SizeSpec::Table { ref sizes, .. } => (sizes[0], sizes[sizes.len() - 1]),
            };
            prop_assert!(low <= sizes[0] && sizes[100_000] <= high, "{size:?}: {} to {}", sizes[0], sizes[100_000]);
            let (found, expected) = (mean(&sizes), size.mean());
            let deviation = (sizes.iter().map(|size| (*size as f64 - found).powi(2)).sum::<f64>() / 1e5).sqrt();
            prop_assert!((found - expected).abs() < 5.0 * deviation / 1e5f64.sqrt() + 1.0, "{size:?}: {found}, {expected}");
            prop_assert_eq!(drawn(&size), sizes);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let table =
            |sizes: &[u64], fractions: &[f64]| SizeSpec::Table { sizes: sizes.into(), fractions: fractions.into() };
        for (size, place) in [
            (SizeSpec::LogUniform { min: 10, max: 5 }, "size"),
            (SizeSpec::Pareto { min: 10, shape: 0.0, max: 50 }, "size.shape"),
            (table(&[], &[]), "size"),
            (table(&[1, 2], &[1.0]), "size"),
            (table(&[2, 1], &[0.5, 1.0]), "size.sizes"),
            (table(&[1, 2], &[0.5, 0.9]), "size.fractions"),
            (table(&[1, 2, 3], &[0.5, 0.4, 1.0]), "size.fractions"),
            (table(&[0, 2], &[0.5, 1.0]), "size.sizes[0]"),
        ] {
            assert_eq!(size.validate("size").unwrap_err().place, place, "{size:?}");
        }
    }
}
