//! TUN devices.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use super::interface::{Interfaces, MTU};
use super::namespace::Namespace;
use super::port::Port;
use super::syscalls;
use crate::error::{Context, Result};

/// Path of the device that makes TUN devices.
pub const DEVICE: &str = "/dev/net/tun";

/// Check that this process may open [`DEVICE`].
///
/// # Errors
/// It may not; the error has the reason.
pub fn available() -> io::Result<()> {
    open().map(drop)
}

fn open() -> io::Result<OwnedFd> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
    Ok(file.into())
}

/// Make a TUN device in `namespace` and bring it up; a `%d` in `name` becomes the first free number. Return the port
/// and the device's name. Packets of several segments arrive unsegmented, and need no checksums.
///
/// # Errors
/// The machine has no TUN devices, or this process may not make them.
pub fn make(namespace: &Arc<Namespace>, name: &str) -> Result<(Port, String)> {
    let basic = libc::TUN_F_CSUM | libc::TUN_F_TSO4;
    let datagrams = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    // Kernels before 6.2 segment datagrams themselves.
    make_with(namespace, name, MTU, &[basic | datagrams, basic])
}

/// Make a TUN device whose packets are those on the wire, segmented and with checksums, max `mtu` bytes.
///
/// # Errors
/// As [`make`].
pub fn make_plain(namespace: &Arc<Namespace>, name: &str, mtu: u32) -> Result<(Port, String)> {
    make_with(namespace, name, mtu, &[0])
}

/// `offloads`: candidates; the first one that the kernel supports is used.
fn make_with(namespace: &Arc<Namespace>, name: &str, mtu: u32, offloads: &[u32]) -> Result<(Port, String)> {
    namespace.run(|| {
        let fd = open().context(|| format!("opening {DEVICE}")).map_err(|error| {
            error.hint(
                "run as root, or make the device readable and writable for this user; CCGYM_DEVICE=veth does without",
            )
        })?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        let name = syscalls::attach_tun(fd.as_fd(), name, flags).context(|| format!("making TUN device {name}"))?;
        let mut last = Ok(());
        for &offload in offloads {
            last = syscalls::set_tun_offload(fd.as_fd(), offload);
            if last.is_ok() {
                break;
            }
        }
        last.context(|| format!("setting up TUN device {name}"))?;
        super::packet_socket::without_ipv6(&name);
        Interfaces::open()?.bring_up_for_path(&name, mtu)?;
        Ok((Port::tun(fd, Arc::clone(namespace), name.clone()), name))
    })?
}
