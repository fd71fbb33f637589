//! Vivace's utility: x^t − b·x·slope − c·x·L (NSDI 2018, §4.1), with the rate x in Mbit/s, the slope of the round trip
//! over time and the share L of lost packets.

use crate::monitor_interval::step::even_hundredths;

/// Slopes below this are noise (§5).
const SLOPE_NOISE: f64 = 0.01;
/// Shares of lost packets up to this weigh [`LIGHT_LOSS_WEIGHT`] in the program (`pcc.h`).
const LIGHT_LOSS: f64 = 0.03;
const LIGHT_LOSS_WEIGHT: f64 = 1.0;

/// Exponent and coefficients.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weights {
    /// t.
    pub exponent: f64,
    /// b.
    pub latency: f64,
    /// c.
    pub loss: f64,
}

/// Return the published utility.
pub fn paper(w: &Weights, rate: f64, slope: f64, loss: f64) -> f64 {
    let slope = if slope.abs() < SLOPE_NOISE { 0.0 } else { slope };
    rate.powf(w.exponent) - w.latency * rate * slope - w.loss * rate * loss
}

/// Return the program's utility; its megabits have 2²⁰ bits.
pub fn pantheon(w: &Weights, rate: f64, slope: f64, loss: f64) -> f64 {
    let weight = if loss <= LIGHT_LOSS { LIGHT_LOSS_WEIGHT.min(w.loss) } else { w.loss };
    rate.powf(w.exponent) - rate * (weight * loss + w.latency * even_hundredths(slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = Weights { exponent: 0.9, latency: 900.0, loss: 11.35 };

    /// Values computed by hand from the formulas.
    #[test]
    fn values() {
        let x = 10f64.powf(0.9);
        for (slope, loss, in_paper, in_pantheon) in [
            (0.0, 0.0, x, x),
            (0.009, 0.0, x, x),
            (0.015, 0.0, x - 135.0, x),
            (0.05, 0.0, x - 450.0, x - 360.0),
            (-0.05, 0.0, x + 450.0, x + 360.0),
            (0.0, 0.02, x - 2.27, x - 0.2),
            (0.0, 0.04, x - 4.54, x - 4.54),
        ] {
            assert!((paper(&WEIGHTS, 10.0, slope, loss) - in_paper).abs() < 1e-9, "{slope} {loss}");
            assert!((pantheon(&WEIGHTS, 10.0, slope, loss) - in_pantheon).abs() < 1e-9, "{slope} {loss}");
        }
    }

    /// Without the latency term a rate x is worth raising until 0.9·x^−0.1 = 11.35·L at random loss L: 6.2 % at 12 and
    /// 5.0 % at 100 Mbit/s.
    #[test]
    fn largest_random_loss_worth_sending() {
        let w = Weights { latency: 0.0, ..WEIGHTS };
        for utility in [paper, pantheon] {
            for (x, expected) in [(12.0, 0.062), (100.0, 0.050)] {
                let gain = |loss: f64| utility(&w, x * 1.001, 0.0, loss) - utility(&w, x, 0.0, loss);
                let found = (300..1000).map(|i| f64::from(i) / 1e4 + 1e-6).find(|&loss| gain(loss) < 0.0);
                assert!((found.unwrap() - expected).abs() < 5e-4, "{x}: {found:?}");
            }
        }
    }

    /// n flows that just fill a link gain by sending more only where n > 12.6·x^0.1.
    #[test]
    fn flows_that_overflow_a_link() {
        let w = Weights { latency: 0.0, ..WEIGHTS };
        for (x, max_flows) in [(1.0, 12), (2.0, 13), (12.0, 16), (100.0, 19)] {
            let gains = |n: u32| {
                let link = f64::from(n) * x;
                let more = x * 1e-4;
                let loss = 1.0 - link / (link + more);
                paper(&w, x + more, 0.0, loss) > paper(&w, x, 0.0, 0.0)
            };
            assert!(!gains(max_flows) && gains(max_flows + 1), "{x} Mbit/s, {max_flows} flows");
        }
    }
}
