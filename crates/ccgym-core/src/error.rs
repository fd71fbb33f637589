//! The error of all crates: code, place, found, expected, hint.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// One explained failure. It is displayed as by `ccgym/errors.py`: place and found, then `expected` and `hint` on lines of
/// their own if not empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub struct Error {
    /// Code of `ccgym/errors.py`; `invalid-value` if the reader of the description knows a better one.
    pub code: Cow<'static, str>,
    /// Path of the value, such as `observation.features[2].signal`; or the step that failed, such as
    /// `opening /dev/net/tun`.
    pub place: String,
    /// The value there, or the event.
    pub found: String,
    /// Valid values; empty if clear.
    pub expected: String,
    /// Advice; empty if it follows from the rest.
    pub hint: String,
}

impl fmt::Display for Error {
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

impl Error {
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

    /// The same error with valid values.
    #[must_use]
    pub fn expected(mut self, text: impl ToString) -> Self {
        self.expected = text.to_string();
        self
    }

    /// The same error with advice.
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

/// Return the known name nearest to `found`. A third of its letters may differ, or one of two or three.
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
            let error = Error::unknown("unknown-name", "it", "a name", found, known.into_iter());
            assert_eq!(error.hint.is_empty(), wanted.is_none(), "{error}");
        }
    }
}
