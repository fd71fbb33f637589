//! The emulated path in real time: packets read at one end, released at the other when the path says so; and
//! `ccgym shell`, a command behind such a path.

mod direction;
mod environment;
mod job;
mod logs;
mod offload;
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
