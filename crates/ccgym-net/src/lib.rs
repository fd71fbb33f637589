//! The driver in real time: the same path, transport and schemes as in the simulator, over real packets.
//!
//! | module | what |
//! |---|---|
//! | [`job`] | the one door: a job as JSON, from Python |
//! | [`clock`] | the run's clock: monotonic nanoseconds since its start |
//! | [`application`], [`sample_times`] | what transports that are not ours share |
//! | [`system`] | namespaces, devices, addresses, children: what the kernel is asked for |
//! | [`shell`] | the emulated path: packets read at one end, released at the other when the path says so |
//! | [`udp`] | sender and receiver over sockets |
//! | [`tcp`] | the kernel's own TCP as a flow |
//! | [`quic`] | QUIC as a flow: the program `ccgym-quic` |
//! | [`program`] | programs of others as a flow |
//! | [`steer`] | decisions from outside, over a Unix socket |
//! | [`run`] | a whole run: path and flows, to an `Outcome` like the simulator's |
//! | [`doctor`] | what this machine can do |
//!
//! Start with [`run`]. May import `ccgym-run`, `ccgym-schemes` and what these may; imported by `ccgym-py` and the crates of
//! `crates/optional`: further backends, which a process puts into its [`run::Host`], and QUIC.
#![cfg(target_os = "linux")]

pub mod application;
pub mod clock;
pub mod doctor;
pub mod error;
pub mod job;
pub mod program;
pub mod quic;
pub mod run;
pub mod sample_times;
pub mod shell;
pub mod steer;
pub mod system;
pub mod tcp;
pub mod udp;

pub use clock::Clock;
pub use error::{Error, Result};
