//! Supervised processes: programs in a PID namespace of their own.
//!
//! If this process ends for any reason, the kernel kills the first process of the namespace, and with it all others.
//! Only system calls run between fork and exec; therefore this process may have threads.

mod init;
mod isolated;
mod output;

pub use init::{Group, User};
pub use isolated::{mount_private, private_place, Isolated, Launch};
pub use output::KeptOutput;
