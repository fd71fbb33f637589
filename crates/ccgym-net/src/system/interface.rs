//! Devices of this thread's namespace: names, addresses, routes, counters.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

pub use super::netlink::Netlink as Interfaces;
use crate::error::{Context, Error, Result};

/// Max IP packet on the path, bytes.
pub const MTU: u32 = 1500;
/// Max packets that wait in a device until we read them: enough that none is lost while we sleep.
pub const DEVICE_QUEUE: u32 = 20_000;

/// Hardware address.
pub type Mac = [u8; 6];

impl Interfaces {
    fn link(&mut self, name: &str) -> Result<LinkMessage> {
        let step = || format!("looking for device {name}");
        let mut request = LinkMessage::default();
        request.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let answers = self.get(RouteNetlinkMessage::GetLink(request)).context(step)?;
        let of = |answer| if let RouteNetlinkMessage::NewLink(link) = answer { Some(link) } else { None };
        let found = answers.into_iter().find_map(of);
        found.ok_or_else(|| Error::of("run-failed", step(), "the kernel's answer lacks the device"))
    }

    /// Return the number of a device.
    pub fn index(&mut self, name: &str) -> Result<u32> {
        Ok(self.link(name)?.header.index)
    }

    /// Return the counters of a device.
    pub fn counters(&mut self, name: &str) -> Result<Stats64> {
        let link = self.link(name)?;
        let of = |attribute| if let LinkAttribute::Stats64(stats) = attribute { Some(stats) } else { None };
        let found = link.attributes.into_iter().find_map(of);
        found.ok_or_else(|| {
            Error::of("run-failed", format!("reading the counters of {name}"), "the kernel's answer lacks them")
        })
    }

    /// Bring a device up with its present settings.
    pub fn bring_up(&mut self, name: &str) -> Result<()> {
        self.set_up(name, LinkFlags::empty(), Vec::new())
    }

    /// Bring a device up for a path: MTU, queue length, no address resolution.
    pub fn bring_up_for_path(&mut self, name: &str, mtu: u32) -> Result<()> {
        let settings = vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(DEVICE_QUEUE)];
        self.set_up(name, LinkFlags::Noarp, settings)
    }

    fn set_up(&mut self, name: &str, flags: LinkFlags, settings: Vec<LinkAttribute>) -> Result<()> {
        let mut request = LinkMessage::default();
        request.header.index = self.index(name)?;
        request.header.flags = LinkFlags::Up | flags;
        request.header.change_mask = request.header.flags;
        request.attributes = settings;
        self.change(RouteNetlinkMessage::SetLink(request), false).context(|| format!("bringing up device {name}"))
    }

    /// Make a veth pair: `near` here, `far` in the namespace of `fd`.
    pub fn add_veth(&mut self, near: (&str, Mac), far: (&str, Mac), fd: BorrowedFd<'_>) -> Result<()> {
        let describe = |(name, mac): (&str, Mac)| {
            let name = LinkAttribute::IfName(name.to_owned());
            vec![name, LinkAttribute::Address(mac.to_vec()), LinkAttribute::TxQueueLen(DEVICE_QUEUE)]
        };
        let mut peer = LinkMessage::default();
        peer.attributes = describe(far);
        peer.attributes.push(LinkAttribute::NetNsFd(fd.as_raw_fd()));
        let mut request = LinkMessage::default();
        request.attributes = describe(near);
        request.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.change(RouteNetlinkMessage::NewLink(request), true)
            .context(|| format!("making the veth pair {} and {}", near.0, far.0))
            .map_err(|error| error.hint("the kernel needs veth devices (CONFIG_VETH) where TUN is not available"))
    }

    /// Give a device an address whose only neighbor is `peer`.
    pub fn add_address(&mut self, name: &str, address: Ipv4Addr, peer: Ipv4Addr) -> Result<()> {
        let mut request = AddressMessage::default();
        request.header.family = AddressFamily::Inet;
        request.header.prefix_len = 32;
        request.header.index = self.index(name)?;
        request.attributes =
            vec![AddressAttribute::Local(IpAddr::V4(address)), AddressAttribute::Address(IpAddr::V4(peer))];
        self.change(RouteNetlinkMessage::NewAddress(request), true)
            .context(|| format!("giving device {name} the address {address}"))
    }

    /// Send all traffic that is not local through a device.
    pub fn add_default_route(&mut self, name: &str, gateway: Ipv4Addr) -> Result<()> {
        let mut request = RouteMessage::default();
        request.header.address_family = AddressFamily::Inet;
        request.header.table = RouteHeader::RT_TABLE_MAIN;
        request.header.protocol = RouteProtocol::Boot;
        request.header.scope = RouteScope::Universe;
        request.header.kind = RouteType::Unicast;
        request.attributes =
            vec![RouteAttribute::Gateway(RouteAddress::Inet(gateway)), RouteAttribute::Oif(self.index(name)?)];
        self.change(RouteNetlinkMessage::NewRoute(request), true)
            .context(|| format!("setting the default route through {name}"))
    }

    /// Return all local IPv4 addresses and the known addresses of their neighbors.
    pub fn addresses(&mut self) -> Result<Vec<Ipv4Addr>> {
        let mut request = AddressMessage::default();
        request.header.family = AddressFamily::Inet;
        let answers =
            self.list(RouteNetlinkMessage::GetAddress(request)).context(|| "listing the local addresses".into())?;
        let mut found = Vec::new();
        for answer in answers {
            let RouteNetlinkMessage::NewAddress(message) = answer else { continue };
            for attribute in message.attributes {
                if let AddressAttribute::Local(IpAddr::V4(a)) | AddressAttribute::Address(IpAddr::V4(a)) = attribute {
                    found.push(a);
                }
            }
        }
        Ok(found)
    }

    /// Return destinations and gateways of all IPv4 routes as (address, prefix length), without the default one.
    pub fn routes(&mut self) -> Result<Vec<(Ipv4Addr, u8)>> {
        let mut request = RouteMessage::default();
        request.header.address_family = AddressFamily::Inet;
        let answers = self.list(RouteNetlinkMessage::GetRoute(request)).context(|| "listing the routes".into())?;
        let mut found = Vec::new();
        for answer in answers {
            let RouteNetlinkMessage::NewRoute(message) = answer else { continue };
            for attribute in message.attributes {
                match attribute {
                    RouteAttribute::Destination(RouteAddress::Inet(a)) => {
                        found.push((a, message.header.destination_prefix_length));
                    }
                    RouteAttribute::Gateway(RouteAddress::Inet(a)) => found.push((a, 32)),
                    _ => {}
                }
            }
        }
        Ok(found)
    }
}
