//! Two ends of a path: a namespace inside, one outside, and a device in each that we read and write.

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
    /// Port through which its packets leave and enter.
    pub port: Arc<Port>,
    /// Namespace of its sockets.
    pub namespace: Arc<Namespace>,
    /// Address.
    pub address: Ipv4Addr,
    /// Name of its device.
    pub device: String,
}

/// Both ends of a path.
#[derive(Debug)]
pub struct Endpoints {
    /// End with the senders, or with the command of a shell.
    pub inside: Endpoint,
    /// End with the receivers.
    pub outside: Endpoint,
}

/// Placement of the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// In a namespace of its own: the machine's settings do not change.
    Isolated,
    /// In this thread's namespace, so that the machine's servers are reachable. Requires privileges over it.
    HostOutside,
}

/// Name of the senders' device, which mahimahi's users know.
pub const INGRESS: &str = "ingress";
/// Environment variable that forces the kind of device: `tun` or `veth`.
pub const DEVICE_VARIABLE: &str = "CCGYM_DEVICE";
/// Environment variable with the address outside the path, as in mahimahi: servers are reachable there.
pub const BASE_VARIABLE: &str = "MAHIMAHI_BASE";

impl Endpoints {
    /// Make both ends. They vanish when they are dropped and no thread is left inside.
    ///
    /// # Errors
    /// This process may not make namespaces or devices.
    pub fn open(placement: Placement) -> Result<Self> {
        Self::open_with(placement, choose()?)
    }

    /// Make both ends as [`Endpoints::open`] does, over devices of this kind.
    ///
    /// # Errors
    /// This process may not make namespaces or such devices.
    pub fn open_with(placement: Placement, kind: DeviceKind) -> Result<Self> {
        let inside = Namespace::new()?.shared();
        // The lock is held until the devices exist. Outside, other paths may run: the kernel numbers the device.
        let (outside, _lock, [near, far], name) = match placement {
            Placement::Isolated => (Namespace::new()?.shared(), None, ADDRESSES, "egress"),
            Placement::HostOutside => {
                let outside = Namespace::current()?.shared();
                let lock = outside.run(try_lock)?;
                let addresses = outside.run(free_addresses)??;
                (outside, lock, addresses, "ccgym%d")
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

/// End of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Side of the senders.
    Inside,
    /// Side of the receivers.
    Outside,
}

impl Endpoint {
    /// Make one end, in a namespace of its own, of a path to another machine. Its packets are those on the wire, max
    /// `mtu` bytes.
    ///
    /// # Errors
    /// This process may not make namespaces or TUN devices.
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

    /// Return the address of the other end.
    #[must_use]
    pub fn peer(&self) -> Ipv4Addr {
        let [outside, inside] = ADDRESSES;
        if self.address == inside {
            outside
        } else {
            inside
        }
    }

    /// Set address and route in the namespace of this end.
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

/// Outside and inside address of the first path.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)];

/// Abstract name of the socket that serves as lock.
const LOCK_NAME: &[u8] = b"ccgym-ends";
/// Max wait for the lock. Making both ends takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Choose TUN if it is available.
fn choose() -> Result<DeviceKind> {
    match env::var(DEVICE_VARIABLE).as_deref() {
        Ok("tun") => Ok(DeviceKind::Tun),
        Ok("veth") => Ok(DeviceKind::Veth),
        Ok("") | Err(_) => Ok(if tun::available().is_ok() { DeviceKind::Tun } else { DeviceKind::Veth }),
        Ok(other) => Err(Error::of("unknown-choice", format!("reading {DEVICE_VARIABLE}"), format!("{other:?}"))
            .expected("tun or veth, or nothing")),
    }
}

/// Lock the choice of name and addresses in this thread's network namespace: two processes that choose at the same time
/// would choose the same. Abstract names of sockets belong to one namespace, and vanish with their process. None if
/// another process keeps the lock or such sockets are missing: if a device cannot be made, that is an error of its own.
fn try_lock() -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(LOCK_NAME).ok()?;
    let until = Instant::now() + PATIENCE;
    loop {
        match UnixDatagram::bind_addr(&address) {
            Ok(lock) => return Some(lock),
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

/// Find a pair of addresses (outside, inside) that this thread's namespace does not use.
fn free_addresses() -> Result<[Ipv4Addr; 2]> {
    let mut interfaces = Interfaces::open()?;
    let mut used: Vec<(Ipv4Addr, u8)> = interfaces.addresses()?.into_iter().map(|a| (a, 32)).collect();
    used.extend(interfaces.routes()?.into_iter().filter(|&(_, prefix)| prefix > 0));
    used.extend(env::var(BASE_VARIABLE).ok().and_then(|base| base.parse().ok()).map(|base| (base, 32)));
    // Start with mahimahi's range; if the machine uses it (overlay networks), continue with rarely used ranges.
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

/// Replace the `%d` of a device name by a free number, as the kernel does for TUN devices.
fn free_name(pattern: &str) -> Result<String> {
    let mut interfaces = Interfaces::open()?;
    let names = (0..4096).map(|number| pattern.replace("%d", &format!("{number}")));
    let found = names.into_iter().find(|name| interfaces.index(name).is_err());
    found
        .ok_or_else(|| Error::of("name-taken", "choosing a device name", format!("{pattern} is taken for all numbers")))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks.
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
    fn parallel_paths_share_nothing() {
        if present() != Some(Capability::Root) {
            return eprintln!("SKIPPED: not root");
        }
        // A namespace in which many threads open paths at once, over either kind of device.
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
