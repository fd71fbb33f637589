//! The step of a rate along the gradient of its utility: it grows with the number of steps in one direction (the
//! confidence amplifier), within a bound that grows while it is hit (the dynamic change boundary; PCC Vivace, NSDI
//! 2018, §4.2).
//!
//! Rates are megabits per second, of 10⁶ or 2²⁰ bits depending on the scheme.

/// Programs with different rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// Vivace: branch NSDI-2018 of PCC-Uspace, `sender/app/pcc.h`.
    Vivace,
    /// PCC-Uspace cd43e34, `pcc_sender.cpp`.
    Uspace,
}

/// Min move, Mbit/s.
const MIN_STEP: f64 = 0.5;
/// Max number of moves in the new direction, after a reversal, that do not raise the amplifier.
const MAX_SWING: u32 = 2;

/// The state of the two programs.
#[derive(Clone, Debug)]
pub struct Step {
    program: Program,
    /// First bound of a move, as a share of the rate.
    bound: f64,
    /// Growth of the bound each time it is hit.
    bound_step: f64,
    amplifier: f64,
    hits: u32,
    swing: u32,
    /// The latest move, Mbit/s.
    pub previous: f64,
    /// Number of moves in one direction (Vivace).
    pub trend: u32,
}

impl Step {
    /// Make steps of `program` with this bound and its growth.
    #[must_use]
    pub fn new(program: Program, bound: f64, bound_step: f64) -> Self {
        Self { program, bound, bound_step, amplifier: 0.0, hits: 0, swing: 0, previous: 0.0, trend: 0 }
    }

    /// Return the factor on the gradient after a streak.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        let k = self.amplifier;
        if k < 3.0 {
            k + 1.0
        } else if k < 6.0 {
            2.0 * k - 2.0
        } else if k < 9.0 {
            4.0 * k - 14.0
        } else {
            match self.program {
                Program::Vivace => 8.0 * k - 50.0,
                Program::Uspace => 9.0 * k - 50.0,
            }
        }
    }

    /// Reset direction and streak.
    pub fn restart(&mut self) {
        (self.amplifier, self.hits) = (0.0, 0);
    }

    /// Return two flags: `change` has the direction of the latest move, or the opposite one. Without a latest move both
    /// are false for Vivace; the other program assumes one downward.
    fn compare(&self, change: f64) -> (bool, bool) {
        match self.program {
            Program::Vivace => (change * self.previous > 0.0, change * self.previous < 0.0),
            Program::Uspace => {
                let same = (change > 0.0) == (self.previous > 0.0);
                (same, !same)
            }
        }
    }

    /// Return the move for `gradient` at `rate`, Mbit/s.
    pub fn change(&mut self, gradient: f64, rate: f64) -> f64 {
        let (same, reversed) = self.compare(gradient);
        if reversed {
            self.restart();
            self.swing = (self.swing + 1).min(MAX_SWING);
            self.trend = 0;
        }
        let mut change = gradient * self.amplification();
        if same {
            self.trend = self.trend.saturating_add(1);
            if self.swing == 0 {
                self.amplifier += match self.program {
                    Program::Vivace if self.amplifier > 3.0 => 0.5,
                    Program::Uspace if self.amplifier < 3.0 => 0.5,
                    _ => 1.0,
                };
            }
            self.swing = self.swing.saturating_sub(1);
        }
        let limit = (self.bound + self.bound_step * f64::from(self.hits)) * rate;
        if change.abs() > limit {
            self.hits = self.hits.saturating_add(1);
            change = limit.copysign(change);
        } else {
            self.hits = self.hits.saturating_sub(1);
        }
        if reversed {
            self.restart();
        }
        if change != 0.0 && change.abs() < MIN_STEP {
            change = MIN_STEP.copysign(change);
        }
        change
    }
}

/// Truncate toward zero to an even number of hundredths, by the arithmetic of both programs: growth of less than two
/// hundredths counts as noise.
#[must_use]
pub fn even_hundredths(value: f64) -> f64 {
    let hundredths = (value * 100.0) as i64;
    let again = (hundredths as f64 / 100.0 * 100.0) as i64;
    (again / 2 * 2) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Amplification per streak, from the formulas of the two programs.
    #[test]
    fn streaks_amplify() {
        for (program, expected) in [
            (Program::Vivace, [1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0]),
            (Program::Uspace, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 8.0, 10.0]),
        ] {
            // A bound that is never hit, and gradients above the min move.
            let mut step = Step::new(program, 1e9, 0.0);
            step.previous = 1.0;
            for factor in expected {
                let change = step.change(1.0, 10.0);
                assert!((change - factor).abs() < 1e-9, "{program:?}: {change}, expected {factor}");
                step.previous = change;
            }
        }
    }

    #[test]
    fn amplification_is_piecewise() {
        for (program, k, expected) in [
            (Program::Vivace, 2.0, 3.0),
            (Program::Vivace, 3.0, 4.0),
            (Program::Vivace, 6.0, 10.0),
            (Program::Vivace, 9.0, 22.0),
            (Program::Uspace, 9.0, 31.0),
        ] {
            let mut step = Step::new(program, 1.0, 0.0);
            step.amplifier = k;
            assert_eq!(step.amplification(), expected, "{program:?} {k}");
        }
    }

    /// 5 % of the rate, then 6 % of it more per hit; a move within the bound takes one hit back.
    #[test]
    fn bound_widens_while_it_is_hit() {
        let mut step = Step::new(Program::Vivace, 0.05, 0.06);
        for (gradient, expected) in [(100.0, 5.0), (100.0, 11.0), (100.0, 17.0), (0.6, 1.8), (100.0, 17.0)] {
            let change = step.change(gradient, 100.0);
            assert!((change - expected).abs() < 1e-9, "{change}, expected {expected}");
            step.previous = change;
        }
    }

    #[test]
    fn reversal_starts_over() {
        let mut step = Step::new(Program::Vivace, 0.05, 0.06);
        for _ in 0..6 {
            step.previous = step.change(100.0, 100.0);
        }
        assert_eq!(step.change(-100.0, 100.0), -5.0);
        assert_eq!((step.amplification(), step.trend), (1.0, 0));
        // The streak in the new direction counts from the second move on.
        step.previous = -5.0;
        for expected in [-1.0, -1.0, -2.0] {
            assert_eq!(step.change(-1.0, 100.0), expected);
        }
    }

    #[test]
    fn moves_are_half_a_megabit_at_least() {
        for (gradient, expected) in [(0.1, 0.5), (-0.1, -0.5), (0.0, 0.0), (0.7, 0.7)] {
            assert_eq!(Step::new(Program::Vivace, 0.05, 0.06).change(gradient, 100.0), expected);
        }
    }

    #[test]
    fn hundredths_are_even_and_toward_zero() {
        for (value, expected) in
            [(0.0199, 0.0), (0.02, 0.02), (0.039, 0.02), (0.05, 0.04), (-0.039, -0.02), (-0.019, 0.0), (f64::NAN, 0.0)]
        {
            assert_eq!(even_hundredths(value), expected, "{value}");
        }
    }
}
