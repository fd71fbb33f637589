//! Our end of a device: it reads IP packets that the namespace sends, and writes packets that the namespace receives.
//!
//! A packet larger than the MTU stands for several packets on the wire, under one header: the kernel did not segment
//! them (or need not merge them). [`Offload`] describes the segments.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::uio::{readv, writev};

use super::interface::{Interfaces, Mac};
use super::namespace::Namespace;
use super::syscalls;
use crate::error::Result;

/// Buffer size that a read needs, the max size of an IP packet.
pub const LARGEST_PACKET: usize = 65_536;
/// Length of the header that describes segmentation (`struct virtio_net_hdr`).
const OFFLOAD_HEADER: usize = 10;
/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Kind of device through which packets leave and enter a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// TUN device: needs `/dev/net/tun`.
    Tun,
    /// Veth pair: a packet socket reads and writes at its far end.
    Veth,
}

/// Kind of segments in a packet larger than the MTU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Segmentation {
    /// One packet on the wire.
    #[default]
    None,
    /// TCP over IPv4.
    Tcp4,
    /// UDP over IPv4, one datagram per segment.
    Udp4,
}

/// Work on a packet that the kernel left to us, or that we leave to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Kind of segments.
    pub segmentation: Segmentation,
    /// Payload bytes of each segment except the last; zero without segmentation.
    pub segment_size: u16,
    /// Start of the transport header, and offset of the checksum in it, if it has only the pseudo-header's sum.
    pub checksum: Option<(u16, u16)>,
}

const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM_IS_RIGHT: u8 = 2;

impl Offload {
    /// Read the header before a packet, whose IP header begins `link` bytes after the origin of the offsets.
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

    /// Make the header before a packet whose headers, up to the payload, have `headers` bytes.
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

/// Our end of a device. Reads and writes never block.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    /// Header before each packet that we write: none, or an Ethernet header.
    link: Option<[u8; ETHERNET]>,
    /// Devices of the path, whose counters are read: the one near the namespace's sockets first.
    devices: Vec<(Arc<Namespace>, String)>,
}

/// Packets that the devices of a port lost since they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Lost from the namespace to us.
    pub outgoing: u64,
    /// Lost from us to the namespace.
    pub incoming: u64,
}

impl Port {
    /// Wrap TUN device `name` of `namespace`.
    pub(super) fn tun(fd: OwnedFd, namespace: Arc<Namespace>, name: String) -> Self {
        Self { fd, link: None, devices: vec![(namespace, name)] }
    }

    /// Wrap a veth pair: `near` in its namespace (with the hardware address for our packets), `far` at our socket.
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
    /// The device is gone or down.
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
            // Only signals interrupt the read of a TUN device; they have no meaning here.
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            // The far end of a veth pair went down: the socket reports it once, and packets may come again.
            Err(Errno::ENETDOWN) if self.link.is_some() => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Write one packet: `headers`, which end before the transport's payload, and the rest. False if the device had no
    /// room: the packet is lost.
    ///
    /// # Errors
    /// The device is gone or down, or the packet is malformed.
    pub fn send(&self, offload: &Offload, headers: &[u8], rest: &[u8]) -> io::Result<bool> {
        let before = offload.write(headers.len() as u16, self.link_bytes());
        let link = self.link.as_ref().map_or(&[][..], |link| link);
        match writev(&self.fd, &[&before, link, headers, rest].map(IoSlice::new)) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Return the descriptor, to wait for packets.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Return the losses of the devices so far. A packet socket reports its losses once: call this once, at the end.
    ///
    /// # Errors
    /// The counters are not readable.
    pub fn drops(&self) -> Result<Drops> {
        let mut drops = Drops::default();
        for (i, (namespace, device)) in self.devices.iter().enumerate() {
            let counters = namespace.run(|| Interfaces::open()?.counters(device))??;
            let (transmitted, received) = (counters.tx_dropped, counters.rx_dropped);
            // Packets that the near device transmits come toward us; the far device transmits those from us.
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
    fn offload_headers_are_read_as_written() {
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
