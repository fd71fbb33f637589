//! Replacement for TUN: a veth pair; a packet socket reads and writes at its far end.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::interface::{Interfaces, Mac, MTU};
use super::namespace::Namespace;
use super::port::Port;
use super::syscalls;
use crate::error::{Context, Result};

/// Max bytes in the socket that wait to be read, and max bytes that wait to leave.
const BUFFER: i32 = 256 << 20;

/// Make a veth pair between `namespace` and `middle`, which has the packet socket; the near end is called `name`.
///
/// # Errors
/// The machine has no veth devices or packet sockets, or this process may not make them.
pub fn make(namespace: &Arc<Namespace>, middle: &Arc<Namespace>, name: &str, number: u8) -> Result<(Port, String)> {
    // Locally administered addresses, which are not visible elsewhere.
    let mac = |end: u8| -> Mac { [0x02, 0xcc, 0, 0, number, end] };
    let far = format!("far{number}");
    namespace.run(|| {
        let mut interfaces = Interfaces::open()?;
        // Disable IPv6 before the device is up, also in the machine's own namespace.
        interfaces.add_veth((name, mac(1)), (&far, mac(2)), middle.fd())?;
        without_ipv6(name);
        interfaces.bring_up_for_path(name, MTU)
    })??;
    let fd = middle.run(|| {
        let mut interfaces = Interfaces::open()?;
        interfaces.bring_up_for_path(&far, MTU)?;
        open(interfaces.index(&far)?)
    })??;
    let near = (Arc::clone(namespace), name.to_owned(), mac(1));
    Ok((Port::veth(fd, near, (Arc::clone(middle), far, mac(2))), name.to_owned()))
}

/// Open a packet socket on device `index` of this thread's namespace.
fn open(index: u32) -> Result<OwnedFd> {
    let step = || "opening a packet socket".to_owned();
    let socket = syscalls::packet_socket().context(step)?;
    let fd = socket.as_fd();
    syscalls::set_option(fd, libc::SOL_PACKET, PACKET_VNET_HDR, 1).context(step)?;
    for (forced, ordinary) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        syscalls::set_option(fd, libc::SOL_SOCKET, forced, BUFFER)
            .or_else(|_| syscalls::set_option(fd, libc::SOL_SOCKET, ordinary, BUFFER))
            .context(step)?;
    }
    syscalls::bind_packet_socket(fd, index, libc::ETH_P_IP as u16).context(step)?;
    Ok(socket)
}

/// `PACKET_VNET_HDR` of `linux/if_packet.h`.
const PACKET_VNET_HDR: i32 = 15;

/// Disable IPv6 on a device: it would send packets of its own.
pub(super) fn without_ipv6(device: &str) {
    // A kernel without IPv6 does not have this file.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
}
