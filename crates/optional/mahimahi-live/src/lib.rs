//! A run inside real mahimahi: its own programs make the path, and its packets are watched at both ends of it.
//!
//! | module | what |
//! |---|---|
//! | [`session`] | the shells while they stand |
//! | `links`, [`packets`] | what mm-link logs, and what is seen at both ends |
//! | `remedy`, `diagnosis` | what mahimahi needs on a machine of today, and what it says where that is not enough |
//! | `run` | a plan carried out inside |
//! | [`doctor`] | whether this machine can do that |
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
