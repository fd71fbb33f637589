//! Flows of QUIC by the external library [quinn](quinn_proto).
//!
//! | module | content |
//! |---|---|
//! | [`identity`] | key of the receiver, and TLS that accepts only this key |
//! | [`peer`] | one end of a connection over a UDP socket |
//! | [`library`] | congestion controllers of the library by name, with counts |
//! | [`sender`], [`receiver`] | ends of a flow `quic:NAME` |
//! | [`job`] | program `ccgym-quic`: a job from its standard input |
//!
//! Start with [`sender`]. May import `ccgym-net` and what that may; only tests of `ccgym-quinn` import it. The native module
//! does not contain it: `ccgym-net` starts the program.
#![cfg(target_os = "linux")]

pub mod identity;
pub mod job;
pub mod library;
pub mod peer;
pub mod receiver;
pub mod sender;
