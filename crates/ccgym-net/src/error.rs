//! Errors of real paths: the one error of all crates, at the step in which something went wrong.

use std::io;

pub use ccgym_core::Error;

/// Result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Name the step in which a system call failed.
pub trait Context<T> {
    /// The same result, with the step in its error.
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
