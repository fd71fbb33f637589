//! The emulated path in real time: packets are read at one end and released at the other at the path's times; and
//! `ccgym shell`, a command behind such a path.

mod direction;
mod environment;
mod job;
mod logs;
pub mod offload;
mod path_emulator;
mod records;
mod release;
mod report;
pub(crate) mod session;
mod store;
mod watch;

pub use job::ShellJob;
pub use path_emulator::{EmulatorSpec, PathEmulator};
pub use release::ReleaseErrors;
pub use report::{DirectionReport, EmulatorReport};
pub use store::USUAL_LIMIT as USUAL_PACKET_MEMORY;

/// Port of the first flow's receiver, of UDP or TCP.
pub const FIRST_PORT: u16 = 5001;

/// Return the flow of a packet with these ports (source, destination) to the receivers, or (`uplink` false) from them: one end
/// of flow i has port `FIRST_PORT` + i, usually the receiver; the sender, if it is the one that listens. Other ports are far
/// above these.
#[must_use]
pub fn flow_of(ports: Option<(u16, u16)>, uplink: bool, flows: u32) -> Option<u32> {
    let (source, destination) = ports?;
    let (receiver, sender) = if uplink { (destination, source) } else { (source, destination) };
    let flow = |port: u16| port.checked_sub(FIRST_PORT).map(u32::from).filter(|&flow| flow < flows);
    flow(receiver).or_else(|| flow(sender))
}
