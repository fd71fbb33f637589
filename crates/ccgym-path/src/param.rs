//! Parameters that change in time, and their evaluation by a cursor that only moves forward.

use ccgym_core::units::Timestamp;

use crate::spec::Param;

impl<T: Copy> Param<T> {
    /// Return the steps; a constant is one step at 0.
    pub fn steps(&self) -> Vec<(Timestamp, T)> {
        match self {
            Self::Constant(value) => vec![(Timestamp::ZERO, *value)],
            Self::Steps(steps) => steps.clone(),
        }
    }
}

/// The value of a [`Param`] at times that never decrease.
#[derive(Clone, Debug)]
pub struct ParamCursor<T> {
    value: T,
    until: Timestamp,
    /// Future steps, the next one last.
    rest: Vec<(Timestamp, T)>,
}

impl<T: Copy> ParamCursor<T> {
    /// Start at time 0. The parameter has been checked; one without steps is always `fallback`.
    pub fn new(param: &Param<T>, fallback: T) -> Self {
        let mut rest = param.steps();
        rest.reverse();
        let value = rest.pop().map_or(fallback, |(_, value)| value);
        Self { value, until: rest.last().map_or(Timestamp::NEVER, |s| s.0), rest }
    }

    /// Return the value at `now`, which must not be before an earlier call's.
    #[inline]
    pub fn at(&mut self, now: Timestamp) -> T {
        while now >= self.until && self.step() {}
        self.value
    }

    /// Return the value at the cursor.
    #[inline]
    pub fn value(&self) -> T {
        self.value
    }

    /// Return the time of the next change; [`Timestamp::NEVER`] if there is none.
    #[inline]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Move to the next step; false if there is none.
    #[cold]
    pub fn step(&mut self) -> bool {
        let Some((_, value)) = self.rest.pop() else { return false };
        self.value = value;
        self.until = self.rest.last().map_or(Timestamp::NEVER, |s| s.0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_from_their_time() {
        let param = Param::Steps(vec![(Timestamp(0), 1u64), (Timestamp(10), 2), (Timestamp(20), 3)]);
        let mut cursor = ParamCursor::new(&param, 0);
        let seen: Vec<_> = [0, 9, 10, 10, 19, 500].map(|t| cursor.at(Timestamp(t))).to_vec();
        assert_eq!(seen, [1, 1, 2, 2, 2, 3]);
        assert_eq!(cursor.until(), Timestamp::NEVER);
        assert_eq!(ParamCursor::new(&Param::Constant(7u64), 0).at(Timestamp::NEVER), 7);
    }
}
