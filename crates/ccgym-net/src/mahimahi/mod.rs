//! A run inside real mahimahi: its own programs make the path, and its packets are watched at both ends of it.

mod diagnosis;
mod links;
mod packets;
mod remedy;
mod session;

pub(crate) use diagnosis::understand;
pub use packets::{match_ends, Matched, Watch, Watched};
pub(crate) use remedy::{DNSMASQ, IPTABLES};
pub use session::{Session, SessionSpec, Shell, ShellLogs, INGRESS};
