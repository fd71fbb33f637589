//! Learned policies: exported networks with their cards, and the scheme that a flow runs them by.

mod card;
mod error;
mod graph;
mod policy;
mod runtime;
mod scheme;
mod shapes;

pub use card::{sha256, Card, NetworkKind, NetworkShape};
pub use error::PolicyError;
pub use policy::{Policy, Session};
pub use runtime::{load_library, LIBRARY_VARIABLE};
pub(crate) use scheme::Decider;
pub use scheme::{Learned, ENTRY};
