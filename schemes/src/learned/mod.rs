//! Learned policies: exported networks and trees with their cards, and the scheme that runs them for a flow.

mod card;
mod compile;
mod error;
mod graph;
mod policy;
mod scheme;
mod tree;

pub use card::{sha256, Card, NetworkKind, NetworkShape};
pub use policy::{Policy, Session};
pub(crate) use scheme::Decider;
pub use scheme::{Learned, ENTRY};
pub use tree::{Tree, TreeNode};
