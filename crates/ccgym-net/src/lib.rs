//! Experiments in real time: the same path, transport and schemes as in the simulator, over real packets.
//!
//! | module | content |
//! |---|---|
//! | [`job`] | the only entry: a job as JSON, from Python |
//! | [`clock`] | the run's clock: monotonic nanoseconds since its start |
//! | [`application`], [`sample_times`] | common code of kernel TCP and QUIC |
//! | [`system`] | system calls: namespaces, devices, addresses, child processes |
//! | [`shell`] | the emulated path: packets are read at one end and released at the other at the path's times |
//! | [`udp`] | sender and receiver over sockets |
//! | [`tcp`] | the kernel's TCP as a flow |
//! | [`quic`] | QUIC as a flow: the program `ccgym-quic` |
//! | [`program`] | external programs as a flow |
//! | [`steer`] | decisions from outside, over a Unix socket |
//! | [`run`] | a whole run: path and flows, to an `Outcome` like the simulator's |
//! | [`doctor`] | checks of this machine |
//!
//! Start with [`run`]. May import `ccgym-run`, `ccgym-schemes` and their imports; imported by `ccgym-py` and the crates of
//! `crates/optional`: more backends, which a process puts into its [`run::Host`], and QUIC.
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
