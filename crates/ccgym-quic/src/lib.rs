//! QUIC by [quinn](quinn_proto), a library that is not ours.
//!
//! | module | what |
//! |---|---|
//! | [`identity`] | the receiver's key, and TLS that accepts this key alone |
//! | [`peer`] | one end of a connection over a UDP socket |
//! | [`library`] | the library's own congestion controllers by name, watched |
//! | [`sender`], [`receiver`] | the ends of a flow `quic:NAME` |
//! | [`congestion`] | our schemes and trained policies as controllers of any program that uses the library |
//! | [`job`] | the program `ccgym-quic`: a job from its standard input |
//!
//! Start with [`congestion`]. May import `ccgym-net`, `ccgym-schemes` and what these may. No crate imports it, nor does the
//! native module contain it: `ccgym-net` starts the program.
#![cfg(target_os = "linux")]

pub mod congestion;
pub mod identity;
pub mod job;
pub mod library;
pub mod peer;
pub mod receiver;
pub mod sender;
