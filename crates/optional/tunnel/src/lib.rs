//! Path between two machines: packets of a private namespace travel in UDP datagrams to that of the other machine, and
//! both ends log every packet, as Pantheon's tunnel does.
//!
//! | module | content |
//! |---|---|
//! | [`end`] | one end of a run: the senders of all flows, or their receivers |
//! | [`header`] | header before a packet in a datagram |
//! | [`message`] | messages between the ends |
//! | [`rendezvous`] | meeting of the ends |
//! | [`link`] | running tunnel, and its log |
//! | [`clocks`] | relation of both machines' clocks, from packets in both directions |
//! | [`join`](mod@join) | result of a run, from the results of both ends |
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
