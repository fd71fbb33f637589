//! The one error of all crates: what is wrong, where, what was found, what was expected, what to do.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One explained failure. Shown as `ccgym/errors.py` shows its errors: place and found, then a line each for what was
/// expected and what to do, where these say more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub struct SpecError {
    /// Code of `ccgym/errors.py`; `invalid-value` where only the reader of the description can tell.
    pub code: Cow<'static, str>,
    /// Path of the value, such as `observation.features[2].signal`; or the step that failed, such as
    /// `opening /dev/net/tun`.
    pub place: String,
    /// What stands there, or what happened.
    pub found: String,
    /// What may stand there; empty if that is clear.
    pub expected: String,
    /// What to do; empty if that follows.
    pub hint: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.found)?;
        for (word, text) in [("expected", &self.expected), ("hint", &self.hint)] {
            if !text.is_empty() {
                write!(f, "\n  {word}: {text}")?;
            }
        }
        Ok(())
    }
}

impl SpecError {
    /// `found` at `place`, with a code.
    pub fn of(code: &'static str, place: impl Into<String>, found: impl ToString) -> Self {
        let (place, found) = (place.into(), found.to_string());
        Self { code: code.into(), place, found, expected: String::new(), hint: String::new() }
    }

    /// A value of a description: at `place`, `found` stands instead of what is `expected`.
    pub fn new(place: impl Into<String>, found: impl ToString, expected: impl ToString) -> Self {
        Self::of("invalid-value", place, found).expected(expected)
    }

    /// `found` is none of the names in `known`, which name a `what`.
    #[must_use]
    pub fn unknown<'a>(
        code: &'static str,
        place: &str,
        what: &str,
        found: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<_> = known.collect();
        let error = Self::of(code, place, format!("{found:?}"));
        match nearest(found, &known) {
            Some(name) => error.expected(what).hint(format!("did you mean {name:?}?")),
            None => error.expected(format!("{what}: {}", known.join(", "))),
        }
    }

    /// The same error with another code.
    #[must_use]
    pub fn coded(mut self, code: &'static str) -> Self {
        self.code = code.into();
        self
    }

    /// The same error with another code where it only says that a value is not valid.
    #[must_use]
    pub fn code_or(self, otherwise: &'static str) -> Self {
        if self.code == "invalid-value" {
            self.coded(otherwise)
        } else {
            self
        }
    }

    /// The same error, of a value within `step`.
    #[must_use]
    pub fn within(mut self, step: impl std::fmt::Display) -> Self {
        self.place = format!("{step}: {}", self.place);
        self
    }

    /// The same error with what should have been.
    #[must_use]
    pub fn expected(mut self, text: impl ToString) -> Self {
        self.expected = text.to_string();
        self
    }

    /// The same error with what to do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = text.into();
        self
    }

    /// Check a condition on the value at `place`.
    ///
    /// # Errors
    /// If it does not hold.
    pub fn ensure(ok: bool, place: &str, found: impl ToString, expected: impl ToString) -> Result<(), Self> {
        if ok {
            Ok(())
        } else {
            Err(Self::new(place, found, expected))
        }
    }
}

/// The known name that `found` was most likely meant to be: a third of its letters may be wrong, one of two or three.
fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let found = found.to_lowercase();
    let letters = found.chars().count();
    let limit = (letters / 3).max(1).min(letters.saturating_sub(1));
    let distance = |name: &&&str| strsim::osa_distance(&found, name);
    known.iter().min_by_key(distance).filter(|name| distance(name) <= limit).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        let known = ["cubic", "c", "bbr3", "reno"];
        for (found, wanted) in
            [("cubci", Some("cubic")), ("BBR", Some("bbr3")), ("x", None), ("", None), ("vegas", None)]
        {
            assert_eq!(nearest(found, &known), wanted, "{found}");
            let error = SpecError::unknown("unknown-name", "it", "a name", found, known.into_iter());
            assert_eq!(error.hint.is_empty(), wanted.is_none(), "{error}");
        }
    }
}
