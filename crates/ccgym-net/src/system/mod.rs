//! Interfaces to the kernel: namespaces, devices, addresses.
//!
//! Nothing here outlives the process: namespaces vanish with their last file descriptor or thread, devices with their
//! reader's descriptor or with their namespace.

pub mod capability;
pub mod capture;
pub mod endpoints;
mod idle_spinner;
mod interface;
mod listening;
pub(crate) mod namespace;
mod netlink;
mod packet_socket;
pub mod port;
mod settings;
pub mod signals;
pub mod supervise;
mod syscalls;
mod thread;
pub mod tun;

pub use capability::{become_capable, sudo_caller, Capability};
pub use endpoints::{Endpoint, Endpoints, Placement, Side};
pub use idle_spinner::IdleSpinner;
pub(crate) use listening::is_listened_on;
pub use namespace::Namespace;
pub use port::{DeviceKind, Offload, Port};
pub use settings::system_info;
pub(crate) use syscalls::get_option;
pub use syscalls::set_option;
pub use thread::{act_on_time, precise_timers, when_parent_ends};
