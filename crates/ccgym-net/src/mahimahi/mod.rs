//! A run inside real mahimahi: its own programs make the path, and its packets are watched at both ends of it.

mod diagnosis;
mod links;
mod packets;
mod probe;
mod remedy;
mod report;
mod session;

pub use diagnosis::Diagnosis;
pub use links::LinkLog;
pub use packets::{match_ends, Matched, Watch, Watched};
pub use probe::{probe, Finding};
pub use remedy::{forward_in_every_shell, stand_in_for_iptables};
pub use report::report_inside;
pub use session::{Inner, Session, SessionSpec, Shell, ShellLogs};
