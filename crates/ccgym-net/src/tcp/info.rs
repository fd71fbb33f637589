//! What the kernel tells of a connection: `TCP_INFO` and the state of BBR.
//!
//! Fields are read by their offset in `linux/tcp.h`, whose structure only ever grew; what an older kernel does not
//! tell is zero.

use std::io;
use std::os::fd::BorrowedFd;

use crate::system::get_option;

/// `TCP_CC_INFO`.
const TCP_CC_INFO: i32 = 26;
/// More than any kernel's structure has.
const ROOM: usize = 512;
/// TCP timestamps are in use (`TCPI_OPT_TIMESTAMPS`).
const OPTION_TIMESTAMPS: u8 = 1;

/// `struct tcp_info`, as far as it is used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State of the congestion machinery: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Whether segments carry timestamps (12 bytes of options).
    pub timestamps: bool,
    /// Retransmission timeout in µs.
    pub rto_us: u32,
    /// Payload bytes of a full segment.
    pub snd_mss: u32,
    /// Segments in flight or lost and not sent again.
    pub unacked: u32,
    /// Of these, segments selectively acknowledged.
    pub sacked: u32,
    /// Of these, segments thought lost.
    pub lost: u32,
    /// Segments sent again and in flight.
    pub retrans: u32,
    /// Smoothed RTT in µs.
    pub rtt_us: u32,
    /// Slow-start threshold in segments; `0x7fff_ffff` if not set.
    pub snd_ssthresh: u32,
    /// cwnd in segments.
    pub snd_cwnd: u32,
    /// Segments sent again so far.
    pub total_retrans: u32,
    /// Pacing rate in bytes per second; all ones if none.
    pub pacing_rate: u64,
    /// Payload bytes acknowledged in order so far.
    pub bytes_acked: u64,
    /// Payload bytes received in order so far.
    pub bytes_received: u64,
    /// Bytes that the application wrote and that were never sent.
    pub notsent_bytes: u32,
    /// Minimum RTT of the kernel's window (300 s) in µs; all ones if there is none.
    pub min_rtt_us: u32,
    /// Data segments received so far, copies included.
    pub data_segs_in: u32,
    /// Data segments sent so far, copies included.
    pub data_segs_out: u32,
    /// Delivery rate in bytes per second.
    pub delivery_rate: u64,
    /// Segments delivered so far.
    pub delivered: u32,
    /// Payload bytes sent so far, copies included.
    pub bytes_sent: u64,
    /// Segments that the receiver reported to have had twice.
    pub dsack_dups: u32,
    /// Retransmission timeouts so far (kernel 6.7).
    pub total_rto: u16,
}

/// The state of BBR (`struct tcp_bbr_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BbrInfo {
    /// Bottleneck bandwidth in bytes per second.
    pub bandwidth: u64,
    /// Minimum RTT of its window (10 s) in µs.
    pub min_rtt_us: u32,
    /// Gain on the pacing rate.
    pub pacing_gain: f64,
    /// Gain on the cwnd.
    pub cwnd_gain: f64,
}

/// Fields at offsets, zero beyond the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.0.get(offset..offset + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
    fn u8(&self, offset: usize) -> u8 {
        u8::from_ne_bytes(self.at(offset))
    }
    fn u16(&self, offset: usize) -> u16 {
        u16::from_ne_bytes(self.at(offset))
    }
    fn u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.at(offset))
    }
    fn u64(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.at(offset))
    }
}

impl TcpInfo {
    /// Ask the kernel.
    ///
    /// # Errors
    /// If the descriptor is not of a TCP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut buffer = [0; ROOM];
        get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut buffer).map(Self::read)
    }

    fn read(bytes: &[u8]) -> Self {
        let fields = Fields(bytes);
        Self {
            ca_state: fields.u8(1),
            timestamps: fields.u8(5) & OPTION_TIMESTAMPS != 0,
            rto_us: fields.u32(8),
            snd_mss: fields.u32(16),
            unacked: fields.u32(24),
            sacked: fields.u32(28),
            lost: fields.u32(32),
            retrans: fields.u32(36),
            rtt_us: fields.u32(68),
            snd_ssthresh: fields.u32(76),
            snd_cwnd: fields.u32(80),
            total_retrans: fields.u32(100),
            pacing_rate: fields.u64(104),
            bytes_acked: fields.u64(120),
            bytes_received: fields.u64(128),
            notsent_bytes: fields.u32(144),
            min_rtt_us: fields.u32(148),
            data_segs_in: fields.u32(152),
            data_segs_out: fields.u32(156),
            delivery_rate: fields.u64(160),
            delivered: fields.u32(192),
            bytes_sent: fields.u64(200),
            dsack_dups: fields.u32(216),
            total_rto: fields.u16(240),
        }
    }

    /// Segments in flight, as the kernel counts them.
    pub const fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// Whether everything that was written has been acknowledged.
    pub const fn all_acknowledged(&self) -> bool {
        self.unacked == 0 && self.notsent_bytes == 0
    }

    /// Bytes of a segment that are not payload, from the IP header on.
    pub const fn header(&self) -> u32 {
        if self.timestamps {
            52
        } else {
            40
        }
    }
}

impl BbrInfo {
    /// Ask the kernel; `None` unless the socket's congestion control answers as BBR does.
    pub fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let mut buffer = [0; ROOM];
        Self::read(get_option(socket, libc::IPPROTO_TCP, TCP_CC_INFO, &mut buffer).ok()?)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let fields = Fields(bytes);
        // Vegas and DCTCP answer too, with 16 bytes; later versions of BBR put more behind.
        (bytes.len() >= 20).then(|| Self {
            bandwidth: (u64::from(fields.u32(4)) << 32) | u64::from(fields.u32(0)),
            min_rtt_us: fields.u32(8),
            pacing_gain: f64::from(fields.u32(12)) / 256.0,
            cwnd_gain: f64::from(fields.u32(16)) / 256.0,
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
