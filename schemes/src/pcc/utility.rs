//! Allegro's utilities of an interval.

/// Steepness of the cut at the loss limit.
const LOSS_STEEPNESS: f64 = 100.0;
/// Steepness of the cut at a growing round trip (`cc.h`).
const RTT_STEEPNESS: f64 = 10.0;

/// 1/(1+e^(steepness·y)): near one below zero, near zero above.
fn cut(y: f64, steepness: f64) -> f64 {
    1.0 / (1.0 + (steepness * y).exp())
}

/// Measurements of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Packets or megabits per second sent.
    pub sent_rate: f64,
    /// Share of lost packets.
    pub loss: f64,
    /// RTT, ms.
    pub rtt_ms: f64,
    /// RTT at the result before, ms.
    pub previous_rtt_ms: f64,
}

/// Return the utility of NSDI 2015, §2.2 and §3.2: throughput with a cut at the loss limit, less the lost packets.
pub fn paper(o: &Outcome, loss_limit: f64) -> f64 {
    o.sent_rate * ((1.0 - o.loss) * cut(o.loss - loss_limit, LOSS_STEEPNESS) - o.loss)
}

/// Return the utility of `cc.h`: the same with a second cut if the RTT grows, over the RTT.
pub fn pantheon(o: &Outcome, loss_limit: f64) -> f64 {
    let growth = 1.0 - o.previous_rtt_ms / o.rtt_ms;
    let kept = cut(o.loss - loss_limit, LOSS_STEEPNESS) * cut(growth, RTT_STEEPNESS);
    o.sent_rate * ((1.0 - o.loss) * kept - o.loss) / o.rtt_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(loss: f64, rtt_ms: f64, previous_rtt_ms: f64) -> Outcome {
        Outcome { sent_rate: 100.0, loss, rtt_ms, previous_rtt_ms }
    }

    /// Values computed by hand from the formulas.
    #[test]
    fn values() {
        for (loss, expected) in [
            (0.0, 100.0 / (1.0 + (-5f64).exp())),
            (0.05, 95.0 * 0.5 - 5.0),
            (1.0, -100.0),
            (0.1, 90.0 / (1.0 + 5f64.exp()) - 10.0),
        ] {
            let found = paper(&outcome(loss, 40.0, 40.0), 0.05);
            assert!((found - expected).abs() < 1e-9, "{loss}: {found} {expected}");
        }
        for (loss, rtt, previous, expected) in [
            (0.0, 40.0, 40.0, 2.5 * 0.5 / (1.0 + (-5f64).exp())),
            (0.0, 50.0, 40.0, 2.0 / (1.0 + 2f64.exp()) / (1.0 + (-5f64).exp())),
            (0.0, 40.0, 50.0, 2.5 / (1.0 + (-2.5f64).exp()) / (1.0 + (-5f64).exp())),
            (0.05, 40.0, 40.0, 2.5 * (0.95 * 0.25 - 0.05)),
        ] {
            let found = pantheon(&outcome(loss, rtt, previous), 0.05);
            assert!((found - expected).abs() < 1e-9, "{loss} {rtt} {previous}: {found} {expected}");
        }
    }

    /// Utility per rate changes its sign at a loss of 7.4 % in the paper and of 6.8 % in the program.
    #[test]
    fn largest_loss_worth_sending() {
        for (utility, expected) in [(paper as fn(&Outcome, f64) -> f64, 0.074), (pantheon, 0.068)] {
            let zero = (0..1000).map(|i| f64::from(i) / 1e4).find(|&l| utility(&outcome(l, 40.0, 40.0), 0.05) < 0.0);
            assert!((zero.unwrap() - expected).abs() < 5e-4, "{zero:?}, expected {expected}");
        }
    }
}
