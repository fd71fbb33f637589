//! The two ends of a path: a namespace inside, one outside, and a device in each that leads to us.

use std::env;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::interface::Interfaces;
use super::namespace::Namespace;
use super::port::{DeviceKind, Port};
use super::{packet_socket, tun};
use crate::error::{Error, Result};

/// One end of a path.
#[derive(Debug)]
pub struct Endpoint {
    /// Where its packets come out and go in.
    pub port: Arc<Port>,
    /// Where its sockets live.
    pub namespace: Arc<Namespace>,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its device.
    pub device: String,
}

/// Both ends of a path.
#[derive(Debug)]
pub struct Endpoints {
    /// Where the senders are, or the command of a shell.
    pub inside: Endpoint,
    /// Where the receivers are.
    pub outside: Endpoint,
}

/// Where the outside is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// A namespace of its own: nothing of the machine is touched.
    Isolated,
    /// The namespace in which this thread is, so that servers of the machine can be reached. Needs power over it.
    HostOutside,
}

/// The senders' device, by a name that mahimahi's users know.
pub const INGRESS: &str = "ingress";
/// Environment variable that forces the kind of device: `tun` or `veth`.
pub const DEVICE_VARIABLE: &str = "CCGYM_DEVICE";
/// Environment variable with the address outside the path, as mahimahi has it: servers are reached there.
pub const BASE_VARIABLE: &str = "MAHIMAHI_BASE";

impl Endpoints {
    /// Make both ends. They vanish when dropped and no thread is left inside.
    ///
    /// # Errors
    /// If this process may not make namespaces or devices.
    pub fn open(placement: Placement) -> Result<Self> {
        Self::open_with(placement, choose()?)
    }

    /// As [`Endpoints::open`], over devices of this kind.
    ///
    /// # Errors
    /// If this process may not make namespaces or such devices.
    pub fn open_with(placement: Placement, kind: DeviceKind) -> Result<Self> {
        let inside = Namespace::new()?.shared();
        // The turn is held until the devices are made. Outside, others may be running: the kernel numbers the device.
        let (outside, _turn, [near, far], name) = match placement {
            Placement::Isolated => (Namespace::new()?.shared(), None, ADDRESSES, "egress"),
            Placement::HostOutside => {
                let outside = Namespace::current()?.shared();
                let turn = outside.run(take_turn)?;
                let addresses = outside.run(free_addresses)??;
                (outside, turn, addresses, "ccgym%d")
            }
        };
        let (inner, outer) = match kind {
            DeviceKind::Tun => (tun::make(&inside, INGRESS)?, tun::make(&outside, name)?),
            DeviceKind::Veth => {
                let middle = Namespace::new()?.shared();
                let outer = outside.run(|| free_name(name))??;
                let inner = packet_socket::make(&inside, &middle, INGRESS, 1)?;
                (inner, packet_socket::make(&outside, &middle, &outer, 2)?)
            }
        };
        let side = |(port, device): (Port, String), namespace, address, peer, route| -> Result<Endpoint> {
            let side = Endpoint { port: Arc::new(port), namespace, address, device };
            side.namespace.run(|| side.configure(peer, route))??;
            Ok(side)
        };
        Ok(Self { inside: side(inner, inside, far, near, true)?, outside: side(outer, outside, near, far, false)? })
    }
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the senders are.
    Inside,
    /// Where the receivers are.
    Outside,
}

impl Endpoint {
    /// One end of a path whose other end is on another machine, in a namespace of its own. Its packets are those of the
    /// wire, max `mtu` bytes.
    ///
    /// # Errors
    /// If this process may not make namespaces or TUN devices.
    pub fn alone(side: Side, mtu: u32) -> Result<Self> {
        let [outside, inside] = ADDRESSES;
        let (name, address, peer) = match side {
            Side::Inside => (INGRESS, inside, outside),
            Side::Outside => ("egress", outside, inside),
        };
        let namespace = Namespace::new()?.shared();
        let (port, device) = tun::make_plain(&namespace, name, mtu)
            .map_err(|error| error.hint("run as root, or make /dev/net/tun readable and writable for this user"))?;
        let end = Self { port: Arc::new(port), namespace, address, device };
        end.namespace.run(|| end.configure(peer, true))??;
        Ok(end)
    }

    /// The address of the other end.
    #[must_use]
    pub fn peer(&self) -> Ipv4Addr {
        let [outside, inside] = ADDRESSES;
        if self.address == inside {
            outside
        } else {
            inside
        }
    }

    /// In the namespace of this end.
    fn configure(&self, peer: Ipv4Addr, route: bool) -> Result<()> {
        packet_socket::without_ipv6(&self.device);
        let mut interfaces = Interfaces::open()?;
        interfaces.add_address(&self.device, self.address, peer)?;
        if route {
            interfaces.add_default_route(&self.device, peer)?;
        }
        Ok(())
    }
}

/// Outside and inside of the first path.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)];

/// Abstract name of the socket that stands for the turn.
const TURN: &[u8] = b"ccgym-ends";
/// Max wait for it. Making both ends takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// TUN where that can be had.
fn choose() -> Result<DeviceKind> {
    match env::var(DEVICE_VARIABLE).as_deref() {
        Ok("tun") => Ok(DeviceKind::Tun),
        Ok("veth") => Ok(DeviceKind::Veth),
        Ok("") | Err(_) => Ok(if tun::available().is_ok() { DeviceKind::Tun } else { DeviceKind::Veth }),
        Ok(other) => Err(Error::of("unknown-choice", format!("reading {DEVICE_VARIABLE}"), format!("{other:?}"))
            .expected("tun or veth, or nothing")),
    }
}

/// While this is held no other process chooses a name and addresses in the network namespace of this thread: two that choose at
/// once choose the same. Abstract names of sockets are each namespace's own, and vanish with their process. None if
/// another process keeps it, or there are no such sockets: a device that cannot be made is an error by itself.
fn take_turn() -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(TURN).ok()?;
    let until = Instant::now() + PATIENCE;
    loop {
        match UnixDatagram::bind_addr(&address) {
            Ok(turn) => return Some(turn),
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

/// A pair of addresses (outside, inside) that the namespace of this thread does not know.
fn free_addresses() -> Result<[Ipv4Addr; 2]> {
    let mut interfaces = Interfaces::open()?;
    let mut used: Vec<(Ipv4Addr, u8)> = interfaces.addresses()?.into_iter().map(|a| (a, 32)).collect();
    used.extend(interfaces.routes()?.into_iter().filter(|&(_, prefix)| prefix > 0));
    used.extend(env::var(BASE_VARIABLE).ok().and_then(|base| base.parse().ok()).map(|base| (base, 32)));
    // Mahimahi's range first; where the machine has it (as an overlay network), ranges that few use.
    for network in [[100, 64, 0], [100, 127, 77], [10, 213, 77], [192, 168, 213], [198, 18, 77]] {
        let candidates = (1..=254).map(|last| Ipv4Addr::new(network[0], network[1], network[2], last));
        let mut free = candidates.filter(|a| used.iter().all(|range| !contains(*range, *a)));
        if let (Some(outside), Some(inside)) = (free.next(), free.next()) {
            return Ok([outside, inside]);
        }
    }
    Err(Error::of("run-failed", "choosing two addresses for the path", "all that it may have are in use")
        .hint("remove a route that covers 100.64.0.0/24"))
}

fn contains((network, prefix): (Ipv4Addr, u8), address: Ipv4Addr) -> bool {
    let shift = 32 - u32::from(prefix.min(32));
    let bits = |a: Ipv4Addr| u32::from(a).checked_shr(shift).unwrap_or(0);
    bits(network) == bits(address)
}

/// Fill in the `%d` of a device name, as the kernel does for TUN devices.
fn free_name(pattern: &str) -> Result<String> {
    let mut interfaces = Interfaces::open()?;
    let names = (0..4096).map(|number| pattern.replace("%d", &format!("{number}")));
    let found = names.into_iter().find(|name| interfaces.index(name).is_err());
    found
        .ok_or_else(|| Error::of("name-taken", "choosing a device name", format!("{pattern} is taken for all numbers")))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // what is skipped must be seen
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;
    use crate::system::capability::{present, Capability};

    #[test]
    fn ranges_contain_their_addresses() {
        let a = Ipv4Addr::new(100, 64, 0, 7);
        assert!(contains((Ipv4Addr::new(100, 64, 0, 0), 10), a));
        assert!(!contains((Ipv4Addr::new(100, 64, 1, 0), 24), a));
        assert!(contains((a, 32), a));
        assert!(contains((Ipv4Addr::UNSPECIFIED, 0), a));
    }

    #[test]
    fn paths_made_at_once_share_nothing() {
        if present() != Some(Capability::Root) {
            return eprintln!("SKIPPED: not root");
        }
        // A namespace with many who open paths to it at once, over either kind of device.
        let outside = Namespace::new().unwrap().shared();
        let made: Vec<Endpoints> = thread::scope(|scope| {
            let open = |number: usize| {
                let kind = if number % 2 == 0 && tun::available().is_ok() { DeviceKind::Tun } else { DeviceKind::Veth };
                outside.run(|| Endpoints::open_with(Placement::HostOutside, kind).unwrap()).unwrap()
            };
            let all: Vec<_> = (0..6).map(|number| scope.spawn(move || open(number))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let devices: BTreeSet<_> = made.iter().map(|ends| &ends.outside.device).collect();
        let addresses: BTreeSet<_> = made.iter().flat_map(|ends| [ends.outside.address, ends.inside.address]).collect();
        assert_eq!((devices.len(), addresses.len()), (6, 12), "{devices:?} {addresses:?}");
    }
}
