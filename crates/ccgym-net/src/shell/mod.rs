//! The emulated path in real time: packets read at one end, released at the other when the path says so; and
//! `ccgym shell`, a command behind such a path.

pub mod direction;
pub mod environment;
pub mod flow_table;
pub mod job;
pub mod logs;
pub mod offload;
pub mod path_emulator;
mod records;
pub mod release;
pub mod session;
pub mod store;
mod watch;

pub use flow_table::FIRST_PORT;
pub use job::ShellJob;
pub use path_emulator::{DirectionReport, EmulatorReport, EmulatorSpec, PathEmulator};
pub use release::{emulator_limited, ReleaseErrors};
pub use store::USUAL_LIMIT as USUAL_PACKET_MEMORY;
