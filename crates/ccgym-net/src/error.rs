//! Errors of real paths: the common error of all crates, with the failed step.

use std::io;

pub use ccgym_core::Error;

/// Result of all fallible functions in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the failed step to errors of system calls.
pub trait Context<T> {
    /// Return the same result, with the step in its error.
    fn context(self, place: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, place: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::of("system-call-failed", place(), error))
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn context(self, place: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|errno| Error::of("system-call-failed", place(), errno.desc()))
    }
}
