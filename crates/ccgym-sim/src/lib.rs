//! The virtual-time driver of ccgym: flows over one path, or over routes of several links, as fast as the machine
//! allows, bit-exact from a seed.
//!
//! A flow's own propagation delay (`extra_rtt`) is added behind the shared path: data reaches the receiver half of it
//! later; the acknowledgement crosses the shared way back as if it had not waited, then waits for the whole. A constant
//! shift of one flow's times at the shared elements does not change their behavior, and keeps the times in order.
//!
//! Start with [`Simulator`]. May import `ccgym-run` and its imports; never names a scheme. Imported by `ccgym-py`.

mod actor;
pub mod agent_batch;
mod bounds;
mod flow;
mod host;
mod inbox;
mod pool;
mod simulator;
mod tournament;

pub use actor::{Activation, Actor};
pub use agent_batch::AgentBatch;
pub use bounds::{projected_memory, Interrupt, MemoryUse};
pub use simulator::{simulate, Simulator};
