//! The one error of this crate: in which step something went wrong, what was found, what was expected, what to do.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;

/// One explained failure: the step that failed or stalled, what was found, what was expected, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub struct NetError {
    /// What is wrong, by a code of `ccgym/errors.py`; `run-failed` where none of them says more.
    pub code: Cow<'static, str>,
    /// The step, as in `opening /dev/net/tun` or `handshake of flow 2 with 10.77.0.1:5002`.
    pub place: String,
    /// What happened.
    pub found: String,
    /// What should have; empty if that is clear.
    pub expected: String,
    /// What to do; empty if that follows.
    pub hint: String,
}

/// Result of everything in this crate that can fail.
pub type Result<T, E = NetError> = std::result::Result<T, E>;

impl Display for NetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.found)?;
        if !self.expected.is_empty() {
            write!(f, "\n  expected: {}", self.expected)?;
        }
        if !self.hint.is_empty() {
            write!(f, "\n  hint: {}", self.hint)?;
        }
        Ok(())
    }
}

impl NetError {
    /// A failure in the step `place`.
    pub fn new(place: impl Into<String>, found: impl Display) -> Self {
        Self::of("run-failed", place, found)
    }

    /// A failure in the step `place` that has a code of its own.
    pub fn of(code: &'static str, place: impl Into<String>, found: impl Display) -> Self {
        let (place, found) = (place.into(), found.to_string());
        Self { code: code.into(), place, found, expected: String::new(), hint: String::new() }
    }

    /// The same error with another code.
    #[must_use]
    pub fn coded(mut self, code: &'static str) -> Self {
        self.code = code.into();
        self
    }

    /// What should have been.
    #[must_use]
    pub fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = text.into();
        self
    }

    /// What to do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = text.into();
        self
    }
}

/// Name the step in which a system call failed.
pub trait Context<T> {
    /// The same result, with the step in its error.
    fn context(self, place: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, place: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| NetError::of("system-call-failed", place(), error))
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, place: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|errno| NetError::of("system-call-failed", place(), errno.desc()))
    }
}
