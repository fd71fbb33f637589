//! Units, the congestion-control trait, and the transport machines of ccgym.
//!
//! Sans-I/O: nothing here reads a clock, draws ambient randomness or touches a socket. The simulator (`ccgym-sim`)
//! and the real-time endpoints run the same code.

pub mod congestion_control;
pub mod packet;
pub mod rate_sampler;
pub mod rng;
pub mod rtt;
pub mod units;

pub use congestion_control::{AckEvent, CongestionControl, Control, InitContext, TimeoutEvent};
pub use packet::{Ack, Datagram, Ecn, Packet, PacketNumber};
pub use rng::Rng;
pub use rtt::RttEstimator;
pub use units::{Rate, TimeSpan, Timestamp};
