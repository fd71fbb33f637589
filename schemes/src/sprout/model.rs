//! Sprout's model of a cellular link: packets arrive as a Poisson process whose rate varies as Brownian motion and
//! sticks at zero for a while (NSDI 2013, §3; constants of keithw/sprout c838669).

use std::sync::OnceLock;

use ccgym_core::TimeSpan;

/// Time step of the process and of forecasts.
pub const TICK: TimeSpan = TimeSpan::from_millis(20);
/// Ticks of a forecast.
pub const TICKS: usize = 8;
/// Number of rates: bin 0 is an outage, the last one is open upward.
pub const BINS: usize = 257;
/// Cumulative deliveries by the end of each of the next ticks, packets.
pub type Forecast = [u16; TICKS];

const TICK_S: f64 = 0.02;
/// Width of a bin, packets per second.
const BIN_WIDTH: f64 = 1000.0 / 256.0;
/// Brownian motion: packets per second per √s.
const VOLATILITY: f64 = 200.0;
/// Rate at which outages end, 1/s.
const ESCAPE_RATE: f64 = 1.0;
/// Max packets per tick in the model, plus one.
const COUNTS: usize = 30;
/// Max step, in standard deviations.
const REACH: f64 = 5.0;
/// Probability that less than the forecast arrives.
const CAUTION: f64 = 0.05;

/// Probability of each rate, by bin.
pub type Belief = Vec<f64>;

/// Distribution of a bin's probability after a tick, from bin `first` on.
struct Step {
    first: usize,
    mass: Vec<f64>,
}

/// The process, with its predictions of the next ticks.
pub struct Model {
    steps: Vec<Step>,
    /// Packets per tick, by bin, and the logarithm.
    means: Vec<(f64, f64)>,
    /// For each tick: probability of at max_likelihood so many packets by its end (row), by the bin at the start (column).
    at_most: Vec<Vec<f64>>,
}

/// Return the rate of a bin, packets per second.
fn middle(bin: usize) -> f64 {
    if bin == 0 {
        0.0
    } else {
        (bin as f64 + 0.5) * BIN_WIDTH
    }
}

/// Return the lower edge of a bin.
fn edge(bin: usize) -> f64 {
    match bin {
        0 => f64::NEG_INFINITY,
        BINS => f64::INFINITY,
        _ => bin as f64 * BIN_WIDTH,
    }
}

fn bin_of(rate: f64) -> usize {
    ((rate / BIN_WIDTH).max(0.0) as usize).min(BINS - 1)
}

/// Return the normal distribution by its power series (Marsaglia, Journal of Statistical Software 11(4), 2004).
fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut k) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        k += 2.0;
        term *= x * x / k;
        sum += term;
    }
    0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
}

fn step_from(bin: usize) -> Step {
    let from = middle(bin);
    let sigma = VOLATILITY * TICK_S.sqrt();
    let first = bin_of(from - REACH * sigma);
    // The bin above the one that is just reached is included.
    let last = (bin_of(from + REACH * sigma) + 1).min(BINS - 1);
    let escape = 1.0 - (-ESCAPE_RATE * TICK_S).exp();
    let mass = (first..=last).map(|to| {
        let reached = normal_cdf((edge(to + 1) - from) / sigma) - normal_cdf((edge(to) - from) / sigma);
        match (bin, to) {
            (0, 0) => (1.0 - escape) * reached,
            (0, _) => escape * reached,
            _ => reached,
        }
    });
    Step { first, mass: mass.collect() }
}

impl Model {
    /// Return the model that all flows share, built at first use.
    pub fn shared() -> &'static Self {
        static MODEL: OnceLock<Model> = OnceLock::new();
        MODEL.get_or_init(Self::build)
    }

    fn build() -> Self {
        let steps: Vec<Step> = (0..BINS).map(step_from).collect();
        let means: Vec<(f64, f64)> = (0..BINS).map(|bin| middle(bin) * TICK_S).map(|mean| (mean, mean.ln())).collect();
        let poisson: Vec<[f64; COUNTS]> = means.iter().map(|(mean, _)| poisson(*mean)).collect();
        let mut model = Self { steps, means, at_most: Vec::new() };
        model.at_most = (0..TICKS).map(|tick| vec![0.0; (1 + (COUNTS - 1) * (tick + 1)) * BINS]).collect();
        for start in 0..BINS {
            let mut belief = vec![0.0; BINS];
            belief[start] = 1.0;
            // Packets by the end of each tick, as if ticks were independent given the start.
            let mut total = vec![1.0];
            for tick in 0..TICKS {
                let mut counts = [0.0; COUNTS];
                for (p, of_bin) in belief.iter().zip(&poisson).filter(|(p, _)| **p > 0.0) {
                    counts.iter_mut().zip(of_bin).for_each(|(count, q)| *count += p * q);
                }
                total = convolve(&total, &counts);
                let mut at_most = 0.0;
                for (count, p) in total.iter().enumerate() {
                    at_most += p;
                    model.at_most[tick][count * BINS + start] = at_most;
                }
                model.evolve(&mut belief);
            }
        }
        model
    }

    /// Let the rate vary for a tick.
    pub fn evolve(&self, belief: &mut Belief) {
        let mut next = vec![0.0; BINS];
        for (step, p) in self.steps.iter().zip(belief.iter()).filter(|(_, p)| **p > 0.0) {
            next[step.first..].iter_mut().zip(&step.mass).for_each(|(next, mass)| *next += p * mass);
        }
        *belief = next;
        normalize(belief);
    }

    /// Update with `count` packets in a tick.
    pub fn observe(&self, belief: &mut Belief, count: u32) {
        // The factorial is the same for every bin; relative to the max_likelihood likely bin nothing overflows.
        let likelihood = |&(mean, ln): &(f64, f64)| match count {
            0 => -mean,
            _ => f64::from(count) * ln - mean,
        };
        let max_likelihood = self.means.iter().map(likelihood).fold(f64::NEG_INFINITY, f64::max);
        let factors: Vec<f64> = self.means.iter().map(|mean| (likelihood(mean) - max_likelihood).exp()).collect();
        let possible: f64 = belief.iter().zip(&factors).map(|(p, factor)| p * factor).sum();
        if possible < f64::MIN_POSITIVE {
            // The observation is impossible under the belief: restart with the observation.
            *belief = factors;
        } else {
            belief.iter_mut().zip(&factors).for_each(|(p, factor)| *p *= factor);
        }
        normalize(belief);
    }

    /// Return the uniform distribution.
    pub fn ignorance() -> Belief {
        vec![1.0 / BINS as f64; BINS]
    }

    /// Return the packets that arrive by the end of each tick with a probability of 95 %.
    pub fn forecast(&self, belief: &Belief) -> Forecast {
        let mut forecast = [0; TICKS];
        for (tick, at_most) in self.at_most.iter().enumerate() {
            let rows = at_most.len() / BINS;
            let enough = |count: usize| {
                let row = &at_most[count * BINS..][..BINS];
                row.iter().zip(belief).map(|(at_most, p)| at_most * p).sum::<f64>() >= CAUTION
            };
            // Binary search; the result is the number of counts if none is enough, since their tail was cut off.
            let (mut low, mut high) = (0, rows);
            while low < high {
                let count = (low + high) / 2;
                (low, high) = if enough(count) { (low, count) } else { (count + 1, high) };
            }
            forecast[tick] = if low == rows { rows as u16 + 1 } else { low as u16 };
        }
        forecast
    }
}

fn normalize(belief: &mut Belief) {
    let sum: f64 = belief.iter().sum();
    belief.iter_mut().for_each(|p| *p /= sum);
}

fn poisson(mean: f64) -> [f64; COUNTS] {
    let mut p = (-mean).exp();
    std::array::from_fn(|count| {
        let this = p;
        p *= mean / (count + 1) as f64;
        this
    })
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate() {
        sum[i..].iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrate the normal density by Simpson's rule, up to ten standard deviations from its mean.
    fn gaussian_mass(from: f64, to: f64, sigma: f64) -> f64 {
        let (from, to) = (from.max(-10.0 * sigma), to.min(10.0 * sigma));
        if from >= to {
            return 0.0;
        }
        let density = |x: f64| (-(x / sigma).powi(2) / 2.0).exp() / (sigma * std::f64::consts::TAU.sqrt());
        let steps = 2 * (((to - from) / 0.4).ceil() as usize).max(4);
        let h = (to - from) / steps as f64;
        let weight = |i: usize| if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
        (0..=steps).map(|i| weight(i) * density(from + i as f64 * h)).sum::<f64>() * h / 3.0
    }

    /// Compute a tick of the process independently: rate by rate, with the density integrated.
    fn wander(belief: &[f64]) -> Vec<f64> {
        let (width, sigma) = (1000.0 / 256.0, 200.0 * 0.02_f64.sqrt());
        let mut next = vec![0.0; 257];
        for (i, p) in belief.iter().enumerate() {
            let rate = if i == 0 { 0.0 } else { (i as f64 + 0.5) * width };
            for (j, next) in next.iter_mut().enumerate() {
                let low = if j == 0 { -1e6 } else { j as f64 * width };
                let high = if j == 256 { 1e6 } else { (j + 1) as f64 * width };
                // The bins that five standard deviations reach, and one more above.
                let above = ((rate + 5.0 * sigma) / width).floor() + 1.0;
                if high <= rate - 5.0 * sigma || j as f64 > above {
                    continue;
                }
                let stays = (-0.02_f64).exp();
                let chance = if i > 0 {
                    1.0
                } else if j == 0 {
                    stays
                } else {
                    1.0 - stays
                };
                *next += p * chance * gaussian_mass(low - rate, high - rate, sigma);
            }
        }
        let sum: f64 = next.iter().sum();
        next.iter().map(|p| p / sum).collect()
    }

    fn certain(bin: usize) -> Belief {
        (0..BINS).map(|b| f64::from(u8::from(b == bin))).collect()
    }

    #[test]
    fn the_normal_distribution_has_its_tabled_values() {
        for (x, p) in
            [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (-1.96, 0.024_997_895_148_220), (-5.0, 2.866_515_718_8e-7)]
        {
            assert!((normal_cdf(x) - p).abs() < 1e-14, "{x}: {}", normal_cdf(x));
        }
        assert_eq!((normal_cdf(f64::INFINITY), normal_cdf(f64::NEG_INFINITY)), (1.0, 0.0));
    }

    #[test]
    fn a_tick_is_the_integral_of_the_density() {
        for bin in [0, 1, 17, 100, 250, 256] {
            let mut belief = certain(bin);
            let expected = wander(&belief);
            Model::shared().evolve(&mut belief);
            for (to, (found, expected)) in belief.iter().zip(&expected).enumerate() {
                assert!((found - expected).abs() < 1e-9, "{bin} to {to}: {found} for {expected}");
            }
        }
    }

    /// The forecast by its definition: the arrivals of each tick, summed as if they were independent.
    #[test]
    fn forecasts_are_quantiles_of_the_integrated_process() {
        let beliefs: [&[(usize, f64)]; 4] =
            [&[(128, 1.0)], &[(0, 1.0)], &[(0, 0.04), (60, 0.5), (200, 0.46)], &[(256, 0.9), (250, 0.1)]];
        for bins in beliefs {
            let mut belief = vec![0.0; BINS];
            bins.iter().for_each(|(bin, p)| belief[*bin] = *p);
            // By start: (probability, belief, distribution of the total).
            let mut starts: Vec<_> = bins.iter().map(|(bin, p)| (*p, certain(*bin), vec![1.0])).collect();
            let forecast = Model::shared().forecast(&belief);
            for (tick, found) in forecast.into_iter().enumerate() {
                let mut mixture = vec![0.0; 30 + 29 * tick];
                for (share, belief, total) in &mut starts {
                    let mut next = vec![0.0; mixture.len()];
                    for (i, p) in belief.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                        let mean: f64 = if i == 0 { 0.0 } else { (i as f64 + 0.5) * (1000.0 / 256.0) * 0.02 };
                        let mut factorial = 1.0;
                        for count in 0..30 {
                            factorial *= f64::max(f64::from(count), 1.0);
                            let arrives = p * (-mean).exp() * mean.powi(count) / factorial;
                            total
                                .iter()
                                .enumerate()
                                .for_each(|(so_far, q)| next[so_far + count as usize] += q * arrives);
                        }
                    }
                    mixture.iter_mut().zip(&next).for_each(|(sum, p)| *sum += *share * p);
                    *total = next;
                    *belief = wander(belief);
                }
                let mut sum = 0.0;
                let quantile = mixture.iter().position(|p| {
                    sum += p;
                    sum >= 0.05
                });
                let expected = quantile.map_or(mixture.len() + 1, |count| count);
                assert_eq!(usize::from(found), expected, "{bins:?}, tick {tick}");
            }
        }
    }

    #[test]
    fn observations_update_the_belief() {
        let model = Model::shared();
        for (count, low, high) in
            [(0_u32, 0.0, 20.0), (10, 400.0, 600.0), (25, 900.0, 1100.0), (100_000, 990.0, 1010.0)]
        {
            let mut belief = Model::ignorance();
            for _ in 0..50 {
                model.evolve(&mut belief);
                model.observe(&mut belief, count);
                let sum: f64 = belief.iter().sum();
                assert!((sum - 1.0).abs() < 1e-9 && belief.iter().all(|p| (0.0..=1.0).contains(p)), "{count}");
            }
            let mean: f64 = belief.iter().enumerate().map(|(bin, p)| p * middle(bin)).sum();
            assert!((low..=high).contains(&mean), "{count} a tick: {mean} packets/s");
            let forecast = model.forecast(&belief);
            assert!(forecast.windows(2).all(|pair| pair[0] <= pair[1]), "{forecast:?}");
        }
        // From an outage to full speed within a tick: impossible under the belief.
        let mut belief = certain(0);
        model.observe(&mut belief, 20);
        assert!(belief.iter().all(|p| p.is_finite()) && belief[255] > belief[100]);
    }
}
