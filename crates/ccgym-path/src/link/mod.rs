//! The bottleneck: a schedule and a queue.
//!
//! With an infinite or drop-tail queue the departure of a packet is known when it arrives, so [`FifoLink`] answers at
//! once. Active queue management decides at dequeue: [`HeldLink`] holds its packets.

mod fifo_link;
mod held;
pub(crate) mod rate_clock;
pub(crate) mod rate_server;
mod recorder;
mod server;
pub(crate) mod trace_clock;
pub(crate) mod trace_server;
pub(crate) mod waiting;

pub use fifo_link::FifoLink;
pub use held::HeldLink;

#[cfg(test)]
mod tests;
