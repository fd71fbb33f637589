//! Flows of QUIC by [quinn](quinn_proto), a library that is not ours.
//!
//! | module | what |
//! |---|---|
//! | [`identity`] | the receiver's key, and TLS that accepts this key alone |
//! | [`peer`] | one end of a connection over a UDP socket |
//! | [`library`] | the library's own congestion controllers by name, watched |
//! | [`sender`], [`receiver`] | the ends of a flow `quic:NAME` |
//! | [`job`] | the program `ccgym-quic`: a job from its standard input |
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
