//! What the kernel is asked for: namespaces, devices, addresses.
//!
//! Nothing here outlives the process: namespaces vanish with their last file descriptor or thread, devices with the
//! descriptor that reads them or with their namespace.

pub mod capability;
pub mod capture;
pub mod endpoints;
mod idle_spinner;
pub mod interface;
pub mod namespace;
pub mod netlink;
pub mod packet_socket;
pub mod port;
pub(crate) mod signals;
pub mod supervise;
mod syscalls;
pub mod thread;
pub mod tun;

pub use capability::{become_capable, become_capable_as_oneself, sudo_caller, Capability};
pub use endpoints::{Endpoint, Endpoints, Placement};
pub use idle_spinner::IdleSpinner;
pub use namespace::Namespace;
pub use port::{DeviceKind, Offload, Port};
pub(crate) use syscalls::set_option;
