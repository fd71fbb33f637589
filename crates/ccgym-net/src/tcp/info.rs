//! The kernel's data on a connection: `TCP_INFO` and the state of BBR.
//!
//! Fields are read by their offset in `linux/tcp.h`, whose structure only grows; fields that an older kernel does not
//! have are zero.

use std::io;
use std::os::fd::BorrowedFd;

use crate::system::get_option;

/// Socket option `TCP_CC_INFO`.
const TCP_CC_INFO: i32 = 26;
/// Bytes of the buffer: more than any kernel's structure.
const ROOM: usize = 512;
/// Option flag of TCP timestamps (`TCPI_OPT_TIMESTAMPS`).
const OPTION_TIMESTAMPS: u8 = 1;

/// Declares the structure and its reader: the offset of each field follows the field.
macro_rules! tcp_info {
    ($($(#[$doc:meta])* $name:ident: $type:ident @ $offset:literal,)*) => {
        /// The used part of `struct tcp_info`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct TcpInfo {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl TcpInfo {
            fn read(bytes: &[u8]) -> Self {
                Self { $($name: $type::from_ne_bytes(at(bytes, $offset)),)* }
            }
        }
    };
}

tcp_info! {
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    ca_state: u8 @ 1,
    /// TCP options in use: see [`TcpInfo::header`].
    options: u8 @ 5,
    /// Retransmission timeout, µs.
    rto_us: u32 @ 8,
    /// Payload bytes of a full segment.
    snd_mss: u32 @ 16,
    /// Segments in flight, or lost and not yet retransmitted.
    unacked: u32 @ 24,
    /// Of these, segments selectively acknowledged.
    sacked: u32 @ 28,
    /// Of these, segments considered lost.
    lost: u32 @ 32,
    /// Retransmitted segments in flight.
    retrans: u32 @ 36,
    /// Smoothed RTT, µs.
    rtt_us: u32 @ 68,
    /// Slow-start threshold in segments; `0x7fff_ffff` if not set.
    snd_ssthresh: u32 @ 76,
    /// cwnd in segments.
    snd_cwnd: u32 @ 80,
    /// Segments retransmitted so far.
    total_retrans: u32 @ 100,
    /// Pacing rate, bytes/s; all ones if none.
    pacing_rate: u64 @ 104,
    /// Payload bytes acknowledged in order so far.
    bytes_acked: u64 @ 120,
    /// Bytes that the application wrote and the kernel has not yet sent.
    notsent_bytes: u32 @ 144,
    /// Min RTT of the kernel's window (300 s), µs; all ones if none.
    min_rtt_us: u32 @ 148,
    /// Data segments received so far, copies included.
    data_segs_in: u32 @ 152,
    /// Data segments sent so far, copies included.
    data_segs_out: u32 @ 156,
    /// Delivery rate, bytes/s.
    delivery_rate: u64 @ 160,
    /// Segments delivered so far.
    delivered: u32 @ 192,
    /// Payload bytes sent so far, copies included.
    bytes_sent: u64 @ 200,
    /// Segments that the receiver reported as received twice.
    dsack_dups: u32 @ 216,
    /// Retransmission timeouts so far (kernel 6.7).
    total_rto: u16 @ 240,
}

/// The state of BBR (`struct tcp_bbr_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BbrInfo {
    /// Bottleneck bandwidth, bytes/s.
    pub bandwidth: u64,
    /// Min RTT of BBR's window (10 s), µs.
    pub min_rtt_us: u32,
    /// Gain on the pacing rate.
    pub pacing_gain: f64,
    /// Gain on the cwnd.
    pub cwnd_gain: f64,
}

/// Return the bytes at an offset; zeros beyond the end.
fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..offset + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

impl TcpInfo {
    /// Read the kernel's data.
    ///
    /// # Errors
    /// A descriptor that is not a TCP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut buffer = [0; ROOM];
        get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer).map(Self::read)
    }

    /// Return the segments in flight, as the kernel counts them.
    pub const fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// True if all written data is acknowledged.
    pub const fn all_acknowledged(&self) -> bool {
        self.unacked == 0 && self.notsent_bytes == 0
    }

    /// Return the bytes of a segment before the payload, including the IP header.
    pub const fn header(&self) -> u32 {
        if self.options & OPTION_TIMESTAMPS != 0 {
            52
        } else {
            40
        }
    }
}

impl BbrInfo {
    /// Read the kernel's data; `None` if the socket's congestion control is not BBR.
    pub fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut buffer = [0; ROOM];
        Self::read(get_option(socket, libc::IPPROTO_TCP, TCP_CC_INFO, &mut buffer).ok()?)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let u32 = |offset| u32::from_ne_bytes(at(bytes, offset));
        // Vegas and DCTCP return data too, but 16 bytes; later versions of BBR append more fields.
        (bytes.len() >= 20).then(|| Self {
            bandwidth: (u64::from(u32(4)) << 32) | u64::from(u32(0)),
            min_rtt_us: u32(8),
            pacing_gain: f64::from(u32(12)) / 256.0,
            cwnd_gain: f64::from(u32(16)) / 256.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn fields_beyond_the_end_are_zero() {
        let mut bytes = vec![0; 248];
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        bytes[240..242].copy_from_slice(&7u16.to_ne_bytes());
        assert_eq!((TcpInfo::read(&bytes).snd_cwnd, TcpInfo::read(&bytes).total_rto), (10, 7));
        assert_eq!((TcpInfo::read(&bytes[..241]).snd_cwnd, TcpInfo::read(&bytes[..241]).total_rto), (10, 0));
        assert_eq!(TcpInfo::read(&[]), TcpInfo::default());
        assert_eq!(BbrInfo::read(&bytes[..16]), None);
        let bbr: Vec<u8> = [1u32, 2, 300, 739, 512].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let bbr = BbrInfo::read(&bbr).unwrap();
        assert_eq!((bbr.bandwidth, bbr.min_rtt_us, bbr.cwnd_gain), ((2 << 32) | 1, 300, 2.0));
        assert!((bbr.pacing_gain - 2.887).abs() < 0.001);
    }

    #[test]
    fn in_flight_never_wraps() {
        let info = TcpInfo { unacked: 3, sacked: 2, lost: 2, ..TcpInfo::default() };
        assert_eq!(info.in_flight(), 0);
        let info = TcpInfo { unacked: 10, sacked: 2, lost: 3, retrans: 1, ..TcpInfo::default() };
        assert_eq!(info.in_flight(), 6);
    }

    #[test]
    fn a_fresh_connection_has_its_initial_window() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::of(client.as_fd()).unwrap();
        assert!(info.snd_cwnd == 10 && info.snd_mss > 500 && info.all_acknowledged(), "{info:?}");
        assert!(TcpInfo::of(std::net::UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()).is_err());
    }
}
