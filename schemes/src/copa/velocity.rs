//! Velocity (Copa §2.1, §3): the window moves faster while its direction does not change.

use ccgym_core::{TimeSpan, Timestamp};

/// Round trips in the same direction before doubling begins: in equilibrium the direction changes after 2.5.
const STEADY_ROUNDS: u32 = 3;

/// Direction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Growing.
    Up,
    /// Shrinking.
    Down,
}

/// The velocity parameter v.
#[derive(Clone, Copy, Debug)]
pub struct Velocity {
    pub value: f64,
    direction: Option<Direction>,
    /// Number of round trips in the same direction as the one before.
    repeated: u32,
    round_began: Timestamp,
    window_then: f64,
}

impl Default for Velocity {
    fn default() -> Self {
        Self { value: 1.0, direction: None, repeated: 0, round_began: Timestamp::ZERO, window_then: 0.0 }
    }
}

impl Velocity {
    pub fn restart(&mut self, now: Timestamp, window: f64) {
        *self = Self { round_began: now, window_then: window, ..Self::default() };
    }

    /// Compare the window with the one a round trip ago, once per round trip.
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, round_trip: TimeSpan, window: f64) {
        if now.since(self.round_began) < round_trip {
            return;
        }
        let direction = if window > self.window_then { Direction::Up } else { Direction::Down };
        if self.direction == Some(direction) {
            self.repeated += 1;
            if self.repeated >= STEADY_ROUNDS {
                self.value *= 2.0;
            }
        } else {
            self.turn(direction);
        }
        self.round_began = now;
        self.window_then = window;
    }

    /// Take a step in `direction`. A step against the flow's own direction resets the velocity at once, not at the end
    /// of the round trip (as in mvfst): a fast window would overshoot by as much.
    #[inline]
    pub fn step(&mut self, direction: Direction) {
        if self.value > 1.0 && self.direction != Some(direction) {
            self.turn(direction);
        }
    }

    const fn turn(&mut self, direction: Direction) {
        self.direction = Some(direction);
        self.repeated = 0;
        self.value = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeSpan = TimeSpan::from_millis(40);

    /// Return v after each round trip with these windows.
    fn course(windows: &[f64]) -> Vec<f64> {
        let mut v = Velocity::default();
        v.restart(Timestamp::ZERO, 10.0);
        (1..)
            .zip(windows)
            .map(|(round, &window)| {
                v.on_ack(Timestamp::from_millis(40 * round), RTT, window);
                v.value
            })
            .collect()
    }

    #[test]
    fn doubles_after_three_round_trips_in_one_direction() {
        for (name, windows, expected) in [
            ("up", &[11.0, 12.0, 13.0, 14.0, 15.0, 16.0][..], &[1.0, 1.0, 1.0, 2.0, 4.0, 8.0][..]),
            ("down", &[9.0, 8.0, 7.0, 6.0, 5.0], &[1.0, 1.0, 1.0, 2.0, 4.0]),
            ("turning", &[11.0, 12.0, 13.0, 14.0, 13.0, 12.0], &[1.0, 1.0, 1.0, 2.0, 1.0, 1.0]),
            ("equilibrium", &[11.0, 12.0, 11.5, 10.0, 11.0, 12.0], &[1.0; 6]),
        ] {
            assert_eq!(course(windows), expected, "{name}");
        }
    }

    #[test]
    fn is_judged_once_per_round_trip() {
        let mut v = Velocity::default();
        v.restart(Timestamp::ZERO, 10.0);
        for ms in 1..40 {
            v.on_ack(Timestamp::from_millis(ms), RTT, 10.0 + ms as f64);
        }
        assert_eq!((v.repeated, v.direction), (0, None));
    }

    #[test]
    fn a_step_against_the_direction_resets() {
        let mut v = Velocity { value: 8.0, direction: Some(Direction::Up), repeated: 5, ..Velocity::default() };
        v.step(Direction::Up);
        assert_eq!(v.value, 8.0);
        v.step(Direction::Down);
        assert_eq!((v.value, v.repeated), (1.0, 0));
    }
}
