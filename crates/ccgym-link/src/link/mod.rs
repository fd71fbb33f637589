//! The bottleneck: a schedule and a queue.
//!
//! With an infinite or drop-tail queue the departure of a packet is known when it arrives, so [`TraceFifo`] and
//! [`RateFifo`] answer at once. Active queue management decides at dequeue: [`HeldLink`] holds its packets.

pub mod held;
pub mod rate_clock;
pub mod rate_fifo;
pub mod rate_server;
pub mod recorder;
pub mod server;
pub mod trace_fifo;
pub mod trace_server;
pub mod waiting;

pub use held::HeldLink;
pub use rate_fifo::RateFifo;
pub use trace_fifo::TraceFifo;

#[cfg(test)]
mod tests;
