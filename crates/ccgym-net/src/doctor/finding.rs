//! One finding.

use serde::{Deserialize, Serialize};

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Something is less than it could be.
    Warn,
    /// Something does not work here.
    Missing,
}

/// Something about this machine that a real path depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at, such as `timers`.
    pub name: String,
    /// How good it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; empty if nothing need be done.
    pub remedy: String,
}

impl Finding {
    /// All is well.
    #[must_use]
    pub fn ok(name: &str, found: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    /// Less than it could be.
    #[must_use]
    pub fn warn(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    /// It does not work here.
    #[must_use]
    pub fn missing(name: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), status: Status::Missing, found: found.into(), remedy: remedy.into() }
    }
}
