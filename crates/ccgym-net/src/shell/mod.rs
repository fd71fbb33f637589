//! The emulated path in real time: packets read at one end, released at the other when the path says so; and
//! `ccgym shell`, a command behind such a path.

pub mod command;
pub mod direction;
pub mod environment;
pub mod ferry;
pub mod flow_table;
mod link_options;
pub mod logs;
pub mod offload;
pub mod options;
mod records;
pub mod release;
pub mod session;
mod spec_file;
pub mod store;
mod watch;
mod words;

pub use ferry::{DirectionReport, Ferry, FerryReport, FerrySpec};
pub use flow_table::FIRST_PORT;
pub use release::{emulator_limited, ReleaseErrors};
pub use store::USUAL_LIMIT as USUAL_PACKET_MEMORY;
