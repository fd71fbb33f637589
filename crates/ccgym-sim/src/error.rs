//! A simulation that cannot be run.

use ccgym_core::SpecError;

use crate::bounds::Stopped;

/// A simulation that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Its description is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A scheme cannot be built.
    #[error("flows[{flow}]: {message}")]
    Scheme {
        /// Index of the flow.
        flow: usize,
        /// Why.
        message: String,
    },
    /// Nothing on the path limits a flow that wants all of it.
    #[error(
        "flows[{flow}]: found {scheme:?} on a path without a link: nothing limits a greedy flow, and its window would \
         grow until memory ends; expected a link; add mm-link (or rate=…), or choose a bounded scheme or source"
    )]
    Unlimited {
        /// Index of the flow.
        flow: usize,
        /// Its scheme.
        scheme: String,
    },
    /// It could not be finished.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl SimError {
    /// What is wrong, by a code of `ccgym/errors.py`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Spec(error) => error.code_or("simulation-refused"),
            Self::Scheme { .. } => "scheme-unsuitable",
            Self::Unlimited { .. } => "path-without-link",
            Self::Stopped(error) => error.code(),
        }
    }
}
