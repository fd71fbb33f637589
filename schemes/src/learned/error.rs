//! Says what is wrong with an exported policy.

use thiserror::Error;

/// A policy that cannot be used, or could not decide.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: found {found}, expected {expected}; {hint}")]
pub struct PolicyError {
    /// What is wrong, by a code of `ccgym/errors.py`.
    pub code: &'static str,
    /// Which part: `card`, `card.policy`, `graph`, `observation`, …
    pub place: String,
    /// What is there.
    pub found: String,
    /// What may be there.
    pub expected: String,
    /// What to do about it.
    pub hint: String,
}

impl PolicyError {
    pub(super) fn new(
        place: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let (place, found) = (place.into(), found.into());
        Self { code: "policy-unreadable", place, found, expected: expected.into(), hint: hint.into() }
    }

    pub(super) fn coded(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }
}

/// Hint for files that do not belong together or are damaged.
pub(super) const EXPORT_AGAIN: &str = "export the policy again, or fetch both of its files again";
