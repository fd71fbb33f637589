//! Guards: lift a flow that went down although its path is clear.
//!
//! Signals that are ratios look the same at the lower bound as at a good rate, so a policy that fell there may stay. A
//! guard detects the bound itself. While there is nothing to lift it only observes: the agent's decisions are used
//! exactly.

mod recovery;
mod round;
mod search;
#[cfg(test)]
mod tests;

use super::spec::GuardSpec;
use ccgym_core::Error;

pub(crate) use recovery::Recovery;

impl GuardSpec {
    pub(crate) fn check(&self, inner: bool) -> Result<(), Error> {
        let Self::Recovery(spec) = self else { return Ok(()) };
        Error::ensure(!inner, "guard.kind", "recovery", "none: the base scheme finds its own window")?;
        spec.check()
    }

    /// Make the guard of a flow that starts.
    pub(crate) fn start(&self) -> Option<Box<Recovery>> {
        match self {
            Self::None {} => None,
            Self::Recovery(spec) => Some(Box::new(Recovery::new(spec))),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::None {} => "none".to_owned(),
            Self::Recovery(spec) => spec.describe(),
        }
    }
}
