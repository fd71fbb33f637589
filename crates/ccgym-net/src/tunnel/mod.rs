//! The path between two machines: packets of a private namespace travel in UDP datagrams to the other machine's, and both
//! ends write every packet down, as Pantheon's tunnel does.
//!
//! | module | what |
//! |---|---|
//! | [`header`] | what precedes a packet in a datagram |
//! | [`message`] | what the ends say to each other |
//! | [`rendezvous`] | how they find each other |
//! | [`link`] | the tunnel at work, and its log |
//! | [`clocks`] | how the clocks of both machines relate, from packets that went both ways |

pub mod clocks;
pub mod header;
pub mod link;
pub mod message;
pub mod rendezvous;

pub use header::TUNNEL_MTU;
pub use link::{Link, TunnelLog};
