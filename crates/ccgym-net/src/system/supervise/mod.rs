//! Supervised processes: programs in a PID namespace of their own, whose first process takes all others with it.
//!
//! However this process ends, the kernel then kills that first process, and with it everything in the namespace. There
//! are two ways to start programs so, because forking is safe only while a process has a single thread:
//!
//! | module | when | for |
//! |---|---|---|
//! | `session` | before the first thread; the first process takes orders, so programs may start later | `ccgym shell` |
//! | `isolated` | at any time; only system calls happen between fork and exec | mahimahi's shells, programs of others |

mod fork;
mod isolated;
mod isolated_init;
mod orders;
mod output;
mod session;
mod session_init;

pub(crate) use fork::reset;
pub use isolated::{mount_private, private_place, Isolated, Launch};
pub use isolated_init::User;
pub(crate) use orders::readable;
pub use orders::{Identity, Order, Output, ProcessSpec, Program, Report};
pub use output::KeptOutput;
pub use session::Children;
