//! What is wrong with a path description: where, what was found, what was expected, what to do.

use std::fmt::Display;

/// An element cannot be built from its description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: found {found}, expected {expected}; {advice}")]
pub struct LinkError {
    /// The field, such as `link.queue.limit.packets`.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What could stand there.
    pub expected: String,
    /// What to do about it.
    pub advice: String,
}

impl LinkError {
    pub(crate) fn new(
        place: &str,
        found: impl Display,
        expected: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { place: place.to_owned(), found: found.to_string(), expected: expected.into(), advice: advice.into() }
    }
}
