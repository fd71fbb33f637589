//! The bottleneck: a schedule and a queue.
//!
//! With an infinite or drop-tail queue the departure of a packet is known when it arrives, so [`TraceFifo`] and
//! [`RateFifo`] answer at once. Active queue management decides at dequeue: [`HeldLink`] holds its packets.

mod held;
mod rate_clock;
mod rate_fifo;
pub(crate) mod rate_server;
mod recorder;
mod server;
mod trace_fifo;
pub(crate) mod trace_server;
pub(crate) mod waiting;

pub use held::HeldLink;
pub use rate_fifo::RateFifo;
pub use trace_fifo::TraceFifo;

#[cfg(test)]
mod tests;
