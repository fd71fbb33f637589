//! Supervised processes: programs in a PID namespace of their own, whose first process takes all others with it.
//!
//! However this process ends, the kernel then kills that first process, and with it everything in the namespace. Only
//! system calls happen between fork and exec, so that this process may have threads.

mod init;
mod isolated;
mod output;

pub use init::{Group, User};
pub use isolated::{mount_private, private_place, Isolated, Launch};
pub use output::KeptOutput;
