//! Congestion-control algorithms, one per file.
//!
//! To add one: write `src/<name>.rs` with a type that implements [`ccgym_core::CongestionControl`] and a
//! `pub const ENTRY`, declare the module here, and add its line to [`mod@registry`]'s table. Name look-up, the command
//! line, the contract tests, the documentation row and the plot style follow from the entry.

pub mod aimd;
pub mod bbr;
pub mod copa;
pub mod cubic;
pub mod fixed_rate;
pub mod fixed_window;
pub mod learned;
pub mod oracle;
pub mod reno;
pub mod synthesized_bbr;
pub mod vegas;

pub mod ns3_delay;
pub mod pacing;
pub mod registry;
pub mod slow_start;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use registry::{
    create, create_with, registry, Parameter, ParameterKind, Parameters, Resources, SchemeEntry, SchemeError,
    SchemeInfo,
};
