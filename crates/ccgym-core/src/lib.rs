//! Units, the congestion-control trait, and the transport machines of ccgym.
//!
//! Sans-I/O: nothing here reads a clock, draws ambient randomness or touches a socket. The simulator (`ccgym-sim`)
//! and the real-time endpoints run the same code.
//!
//! Start with [`CongestionControl`], then [`Sender`]. Imports no other crate of ccgym; every other may import it.

pub mod congestion_control;
mod error;
pub mod feedback;
mod interval_set;
mod loss_detection;
pub mod misbehavior;
pub mod monitor;
pub mod ns3;
mod pacer;
pub mod packet;
mod prr;
pub mod rate_sampler;
pub mod receiver;
pub mod rng;
pub mod rtt;
pub mod schema;
pub mod sender;
mod sent_packets;
pub mod units;

pub use congestion_control::{
    AckEvent, CongestionControl, Control, FeedbackHost, FeedbackReceiver, InitContext, TimeoutEvent,
};
pub use error::Error;
pub use feedback::Feedback;
pub use misbehavior::{MisbehavingReceiver, Misbehavior};
pub use monitor::MonitorInterval;
pub use packet::{Ack, Datagram, Ecn, Packet, PacketNumber};
pub use receiver::{Receiver, ReceiverConfig};
pub use rng::Rng;
pub use rtt::RttEstimator;
pub use sender::{Sender, SenderConfig, SenderStats};
pub use units::{Rate, TimeSpan, Timestamp};

/// Does nothing; marks the branch that calls it as unlikely, for the compiler's code layout.
#[cold]
#[inline(always)]
pub const fn cold_path() {}
