//! Run inside real mahimahi: its programs make the path, and its packets are captured at both ends.
//!
//! | module | content |
//! |---|---|
//! | [`session`] | running shells |
//! | `links`, [`packets`] | logs of mm-link, and captures at both ends |
//! | `remedy`, `diagnosis` | changes that mahimahi needs on current systems, and the meaning of its error output |
//! | `run` | execution of a plan inside |
//! | [`doctor`] | check of this machine |
//!
//! Start with [`session`]. May import `ccgym-net` and what that may; `ccgym-py` imports it and puts [`MAHIMAHI`] into its
//! [`Host`](ccgym_net::run::Host).
#![cfg(target_os = "linux")]

mod diagnosis;
pub mod doctor;
mod links;
pub mod packets;
mod remedy;
mod run;
pub mod session;

pub use packets::{match_ends, Matched, Watch, Watched};
pub use run::MAHIMAHI;
pub use session::{Session, SessionSpec, Shell, ShellLogs, INGRESS};
