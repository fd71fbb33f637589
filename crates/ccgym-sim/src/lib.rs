//! The virtual-time driver of ccgym: flows over one path, as fast as the machine goes, bit-exact from a seed.
//!
//! A flow's own propagation delay (`extra_rtt`) lies behind the shared path: data reaches the receiver half of it
//! later, and the acknowledgement crosses the shared way back as if it had not waited, then pays the whole. Shifting
//! all of one flow's times at the shared elements by a constant does not change what they do, and keeps them in
//! order of time.

pub mod agent_batch;
pub mod bounds;
pub mod columns;
pub mod flow;
pub mod inbox;
pub mod logs;
pub mod outcome;
mod pool;
pub mod recorder;
pub mod simulator;
pub mod slab;
pub mod source;
pub mod spec;
pub mod tally;
pub mod tournament;
pub mod truth;

pub use agent_batch::AgentBatch;
pub use bounds::{Interrupt, Stopped};
pub use outcome::{FlowOutcome, Outcome};
pub use simulator::{simulate, Simulator};
pub use spec::{FlowSpec, SimError, SimSpec};
