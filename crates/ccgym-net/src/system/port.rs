//! A device's end in our hands: IP packets that its namespace sends come out, and what we put in it receives.
//!
//! Packets may be larger than the MTU: then they are several packets of the wire in one, with one header, which the
//! kernel did not cut (or need not glue together), and [`Offload`] says how to.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::uio::{readv, writev};

use super::interface::{Interfaces, Mac};
use super::namespace::Namespace;
use super::syscalls;
use crate::error::Result;

/// Room that a read needs: the largest IP packet.
pub const LARGEST_PACKET: usize = 65_536;
/// Length of the header that says how a packet is to be cut (`struct virtio_net_hdr`).
const OFFLOAD_HEADER: usize = 10;
/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// The device by which packets get out of and into a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A TUN device: needs `/dev/net/tun`.
    Tun,
    /// A veth pair, read and written at its far end by a packet socket.
    Veth,
}

/// What a packet that is larger than the MTU consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segmentation {
    /// One packet of the wire.
    #[default]
    None,
    /// TCP over IPv4.
    Tcp4,
    /// UDP over IPv4, one datagram per segment.
    Udp4,
}

/// What the kernel left undone, or need not do, on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// How the packet is to be cut.
    pub segmentation: Segmentation,
    /// Payload bytes of each segment but the last; zero if there is nothing to cut.
    pub segment_size: u16,
    /// Where the transport header begins and where in it the checksum lies, if that holds only the pseudo-header's sum.
    pub checksum: Option<(u16, u16)>,
}

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_IS_RIGHT: u8 = 2;

impl Offload {
    /// From the header before a packet, whose IP header begins `link` bytes after what the offsets count from.
    fn read(bytes: [u8; OFFLOAD_HEADER], link: u16) -> Self {
        let field = |i: usize| u16::from_ne_bytes([bytes[i], bytes[i + 1]]);
        let segmentation = match bytes[1] & 0x7f {
            1 => Segmentation::Tcp4,
            5 => Segmentation::Udp4,
            _ => Segmentation::None,
        };
        Self {
            segmentation,
            segment_size: if segmentation == Segmentation::None { 0 } else { field(4) },
            checksum: (bytes[0] & NEEDS_CHECKSUM != 0).then(|| (field(6).saturating_sub(link), field(8))),
        }
    }

    /// The header before a packet whose headers down to the payload are `headers` bytes.
    fn write(&self, headers: u16, link: u16) -> [u8; OFFLOAD_HEADER] {
        let mut bytes = [0; OFFLOAD_HEADER];
        let mut put = |i: usize, value: u16| bytes[i..i + 2].copy_from_slice(&value.to_ne_bytes());
        if self.segmentation != Segmentation::None {
            put(2, headers + link);
            put(4, self.segment_size);
        }
        if let Some((start, offset)) = self.checksum {
            put(6, start + link);
            put(8, offset);
        }
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { CHECKSUM_IS_RIGHT };
        bytes[1] = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::Tcp4 => 1,
            Segmentation::Udp4 => 5,
        };
        bytes
    }
}

/// A device end. Reads and writes never block.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    /// What precedes a packet that we write: nothing, or an Ethernet header.
    link: Option<[u8; ETHERNET]>,
    /// The devices on the way, to read their counters: near the namespace's sockets first.
    devices: Vec<(Arc<Namespace>, String)>,
}

/// Packets that the devices of a port lost since they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// On their way from the namespace to us.
    pub outgoing: u64,
    /// On their way from us into the namespace.
    pub incoming: u64,
}

impl Port {
    /// A TUN device `name` in `namespace`.
    pub(super) fn tun(fd: OwnedFd, namespace: Arc<Namespace>, name: String) -> Self {
        Self { fd, link: None, devices: vec![(namespace, name)] }
    }

    /// A veth pair: `near` in its namespace (with the hardware address that we write to), `far` under our packet socket.
    pub(super) fn veth(fd: OwnedFd, near: (Arc<Namespace>, String, Mac), far: (Arc<Namespace>, String, Mac)) -> Self {
        let mut link = [0; ETHERNET];
        link[..6].copy_from_slice(&near.2);
        link[6..12].copy_from_slice(&far.2);
        link[12..].copy_from_slice(&(libc::ETH_P_IP as u16).to_be_bytes());
        Self { fd, link: Some(link), devices: vec![(near.0, near.1), (far.0, far.1)] }
    }

    /// Read one packet into `buffer`, which should have room for [`LARGEST_PACKET`] bytes; `None` if there is none.
    ///
    /// # Errors
    /// If the device is gone or down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Offload)>> {
        let mut offload = [0; OFFLOAD_HEADER];
        let mut ethernet = [0; ETHERNET];
        let link = self.link_bytes();
        let ethernet = IoSliceMut::new(&mut ethernet[..usize::from(link)]);
        match readv(&self.fd, &mut [IoSliceMut::new(&mut offload), ethernet, IoSliceMut::new(buffer)]) {
            Ok(read) => {
                let length = read.saturating_sub(OFFLOAD_HEADER + usize::from(link));
                Ok((length > 0).then(|| (length, Offload::read(offload, link))))
            }
            // The read of a TUN device is interrupted by signals alone, which mean nothing to us.
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            // The far end of a veth pair went down: packets may come again, the socket says this once.
            Err(Errno::ENETDOWN) if self.link.is_some() => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Write one packet: `headers`, which end where the transport's payload begins, and the rest. False if the device
    /// had no room for it, so that it is lost.
    ///
    /// # Errors
    /// If the device is gone or down, or the packet malformed.
    pub fn send(&self, offload: &Offload, headers: &[u8], rest: &[u8]) -> io::Result<bool> {
        let before = offload.write(headers.len() as u16, self.link_bytes());
        let link = self.link.as_ref().map_or(&[][..], |link| link);
        match writev(&self.fd, &[&before, link, headers, rest].map(IoSlice::new)) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// To wait for packets.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// What the devices lost so far. A packet socket's losses are told once only: call this once, at the end.
    ///
    /// # Errors
    /// If the counters cannot be read.
    pub fn drops(&self) -> Result<Drops> {
        let mut drops = Drops::default();
        for (i, (namespace, device)) in self.devices.iter().enumerate() {
            let counters = namespace.run(|| Interfaces::open()?.counters(device))??;
            let (transmitted, received) = (counters.tx_dropped, counters.rx_dropped);
            // What the near device transmits comes toward us, what the far one transmits goes away from us.
            let (outgoing, incoming) = if i == 0 { (transmitted, received) } else { (received, transmitted) };
            drops.outgoing += outgoing;
            drops.incoming += incoming;
        }
        if self.link.is_some() {
            drops.outgoing += u64::from(syscalls::packet_socket_drops(self.fd()).unwrap_or(0));
        }
        Ok(drops)
    }

    const fn link_bytes(&self) -> u16 {
        ETHERNET as u16 * self.link.is_some() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for link in [0, ETHERNET as u16] {
            for offload in [
                Offload::default(),
                Offload { checksum: Some((20, 6)), ..Offload::default() },
                Offload { segmentation: Segmentation::Tcp4, segment_size: 1448, checksum: Some((20, 16)) },
                Offload { segmentation: Segmentation::Udp4, segment_size: 1472, checksum: Some((24, 6)) },
            ] {
                assert_eq!(Offload::read(offload.write(52, link), link), offload);
            }
        }
    }
}
