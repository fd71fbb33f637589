//! Mahimahi's link, exactly, and other path elements, sans I/O.

pub mod element;
pub mod spec;

pub use element::{Counters, Fate, LinkEvent, PathElement, Release};
pub use spec::{ElementSpec, QueueSpec, ScheduleSpec};
