//! TUN devices.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use super::interface::Interfaces;
use super::namespace::Namespace;
use super::port::Port;
use super::syscalls;
use crate::error::{Context, Result};

/// Where TUN devices are made.
pub const DEVICE: &str = "/dev/net/tun";

/// Whether this process may open [`DEVICE`].
///
/// # Errors
/// Why not.
pub fn available() -> io::Result<()> {
    open().map(drop)
}

fn open() -> io::Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
    Ok(file.into())
}

/// Make a TUN device in `namespace` and bring it up; a `%d` in `name` becomes the first free number. The answer says its
/// name.
///
/// # Errors
/// If the machine offers no TUN devices, or not to this process.
pub fn make(namespace: &Arc<Namespace>, name: &str) -> Result<(Port, String)> {
    namespace.run(|| {
        let fd = open().context(|| format!("opening {DEVICE}")).map_err(|error| {
            error.hint(
                "run as root, or make the device readable and writable for this user; CCGYM_DEVICE=veth does without",
            )
        })?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let name = syscalls::attach_tun(fd.as_fd(), name, flags).context(|| format!("making TUN device {name}"))?;
        let basic = libc::TUN_F_CSUM | libc::TUN_F_TSO4;
        let datagrams = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        syscalls::set_tun_offload(fd.as_fd(), basic | datagrams)
            // Kernels before 6.2 cut datagrams themselves.
            .or_else(|_| syscalls::set_tun_offload(fd.as_fd(), basic))
            .context(|| format!("setting up TUN device {name}"))?;
        super::packet_socket::without_ipv6(&name);
        Interfaces::open()?.bring_up_for_path(&name)?;
        Ok((Port::tun(fd, Arc::clone(namespace), name.clone()), name))
    })?
}
