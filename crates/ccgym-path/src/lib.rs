//! Mahimahi's link, exactly, and other path elements, sans I/O.
//!
//! A path is a chain of [`PathElement`]s made by [`build_element`] from [`ElementSpec`]s. Links are a schedule
//! (delivery trace or rate) and a queue discipline; if the departure is known at arrival they answer at once.
//!
//! Start with [`ElementSpec`], then [`Pipeline`], which carries packets through a chain. May import `ccgym-core`;
//! imported by `ccgym-run`, and by crates that import it.

mod chain;
mod element;
mod elements;
mod instantiate;
mod link;
pub mod log;
mod opportunities;
mod param;
mod pipeline;
mod queue;
pub mod spec;
pub mod trace;

pub use chain::{check_copies, Chain};
pub use element::{Counters, Fate, LinkEvent, PathElement, Release};
pub use instantiate::{build_element, Element};
pub use param::ParamCursor;
pub use pipeline::{Crossed, Exit, Pipeline};
pub use spec::{ElementSpec, LimitSpec, Param, QueueSpec, ScheduleSpec};
pub use trace::{DeliveryTrace, OPPORTUNITY_BYTES};
