//! What is wrong with a description of paths, flows or agents, and where.

/// A description that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: found {found}, expected {expected}")]
pub struct SpecError {
    /// What is wrong, by a code of `ccgym/errors.py`; `invalid-value` where only the reader of the description can tell.
    pub code: &'static str,
    /// Path of the value, such as `observation.features[2].signal`.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What may stand there, and what to do about it.
    pub expected: String,
}

impl SpecError {
    /// At `place`, `found` stands instead of what is `expected`.
    pub fn new(place: impl Into<String>, found: impl ToString, expected: impl ToString) -> Self {
        Self { code: "invalid-value", place: place.into(), found: found.to_string(), expected: expected.to_string() }
    }

    /// `found` is none of the names in `known`, which name a `what`.
    #[must_use]
    pub fn unknown<'a>(place: &str, what: &str, found: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<_> = known.collect();
        let limit = found.len() / 3 + 1;
        let nearest = known.iter().map(|name| (strsim::levenshtein(found, name), name)).min();
        let expected = match nearest.filter(|(distance, _)| *distance <= limit) {
            Some((_, name)) => format!("{what}; did you mean \"{name}\"?"),
            None => format!("{what}: {}", known.join(", ")),
        };
        Self::new(place, format!("\"{found}\""), expected).coded("unknown-name")
    }

    /// The same error with another code.
    #[must_use]
    pub fn coded(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// Its code; `otherwise` where only the reader of the description can tell.
    #[must_use]
    pub fn code_or(&self, otherwise: &'static str) -> &'static str {
        if self.code == "invalid-value" {
            otherwise
        } else {
            self.code
        }
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
