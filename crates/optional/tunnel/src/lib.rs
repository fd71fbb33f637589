//! The path between two machines: packets of a private namespace travel in UDP datagrams to the other machine's, and both
//! ends write every packet down, as Pantheon's tunnel does.
//!
//! | module | what |
//! |---|---|
//! | [`end`] | one end of a run: the senders of all flows, or their receivers |
//! | [`header`] | what precedes a packet in a datagram |
//! | [`message`] | what the ends say to each other |
//! | [`rendezvous`] | how they find each other |
//! | [`link`] | the tunnel at work, and its log |
//! | [`clocks`] | how the clocks of both machines relate, from packets that went both ways |
//! | [`join`](mod@join) | the result of a run, from what both ends left |
//!
//! Start with [`end`]. May import `ccgym-net` and what that may; `ccgym-py` imports it and puts [`REMOTE`] into its
//! [`Host`](ccgym_net::run::Host).
#![cfg(target_os = "linux")]

pub mod clocks;
pub mod end;
pub mod header;
pub mod join;
pub mod link;
pub mod message;
pub mod rendezvous;

pub use end::REMOTE;
pub use header::TUNNEL_MTU;
pub use join::{join, HalfResult, JoinOptions};
pub use link::{Link, TunnelLog};
