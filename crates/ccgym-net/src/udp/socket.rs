//! The UDP socket of both endpoints: large buffers, arrival times from the kernel, batches of datagrams, waiting.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use ccgym_core::{TimeSpan, Timestamp};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{clock_gettime, ClockId};

use super::batch_calls::{GsoBatch, Inbox, Incoming, Outgoing};
use crate::error::{Context, Error, Result};
use crate::system::signals::wait_for;
use crate::system::{get_option, set_option};
use crate::Clock;

/// Bytes of a socket buffer to request: 80 ms at 1 Gbit/s, as the kernel counts.
const BUFFER: usize = 16 << 20;
/// Max bytes of a received batch: those of an IP packet.
const SLOT: usize = 65_536;
/// Distance of receive buffers: an odd number of cache lines, so that they do not share cache sets.
const STRIDE: usize = SLOT + 27 * 64;
/// Max datagrams or batches per receive call.
const BATCH: usize = 32;
/// Max datagrams in a batch: the kernel's limit since Linux 4.18.
const MAX_SEGMENTS: usize = 64;
/// Max bytes in a batch, so that it fits in an IP packet.
const MAX_BATCH_BYTES: usize = 65_000;

/// Return the bytes of the IP and UDP headers of a datagram to or from `ip`.
pub const fn overhead(ip: &IpAddr) -> u32 {
    if ip.is_ipv4() {
        28
    } else {
        48
    }
}

/// Max time between two clock readings that count as simultaneous.
const SAME_MOMENT: TimeSpan = TimeSpan(2_000);

/// Make a socket non-blocking, with large buffers, above the system's limit if permitted.
pub fn enlarge(socket: &UdpSocket) -> Result<()> {
    let step = || "preparing a UDP socket".to_owned();
    socket.set_nonblocking(true).context(step)?;
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &BUFFER).context(step)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &BUFFER).is_err() {
        setsockopt(socket, sockopt::SndBuf, &BUFFER).context(step)?;
    }
    Ok(())
}

/// Prepare a socket for our own endpoints. Use traffic class and batches if the kernel supports them.
pub fn prepare(socket: &UdpSocket) -> Result<()> {
    enlarge(socket)?;
    let step = || "preparing a UDP socket".to_owned();
    setsockopt(socket, sockopt::ReceiveTimestampns, &true).context(step)?;
    let fd = socket.as_fd();
    let (level, class, discover, probe) = if socket.local_addr().context(step)?.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_RECVTOS, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
    };
    set_option(fd, level, class, 1).context(step)?;
    // The path must see whole packets: no fragments.
    set_option(fd, level, discover, probe).context(step)?;
    // Since Linux 5.0.
    let _ = set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(())
}

/// Return the number of datagrams that the kernel dropped at a socket: its buffer was full, or a filter refused them.
pub fn kernel_drops(socket: BorrowedFd<'_>) -> u32 {
    const DROPS: usize = 8 * 4;
    let mut info = [0; 64];
    // Since Linux 4.12; 0 before it.
    let filled = get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut info);
    filled.ok().and_then(|info| info.get(DROPS..)?.first_chunk().copied()).map_or(0, u32::from_ne_bytes)
}

/// Received datagrams.
pub struct RxBatch {
    inbox: Inbox,
    /// Clock after the last call.
    now: Timestamp,
    /// `CLOCK_REALTIME` at the same time.
    wall_ns: u64,
}

impl Default for RxBatch {
    fn default() -> Self {
        Self { inbox: Inbox::new(BATCH, STRIDE), now: Timestamp::ZERO, wall_ns: 0 }
    }
}

impl RxBatch {
    /// Receive without waiting. Return the number of items for [`RxBatch::get`].
    pub fn receive(&mut self, socket: BorrowedFd<'_>, clock: &Clock) -> Result<usize> {
        let count = match self.inbox.receive(socket) {
            Ok(count) => count,
            // No datagram; or a refusal of the peer's machine because its port is closed, which counts as a loss.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(e) if is_refusal(&e) => 0,
            Err(e) => return Err(e).context(|| "receiving datagrams".into()),
        };
        self.now = clock.now();
        if count > 0 {
            self.read_both(clock);
        }
        Ok(count)
    }

    /// Read both clocks at the same time; repeat if the thread was interrupted between them.
    fn read_both(&mut self, clock: &Clock) {
        for _ in 0..10 {
            // The clock exists on every Linux; it cannot fail.
            self.wall_ns = clock_gettime(ClockId::CLOCK_REALTIME)
                .map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
            let before = std::mem::replace(&mut self.now, clock.now());
            if self.now.since(before) < SAME_MOMENT {
                return;
            }
        }
    }

    /// Return the clock after the last call of [`RxBatch::receive`].
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Return item `index` with its arrival time, at least `earliest`, which must not be later than now.
    pub fn get(&self, index: usize, earliest: Timestamp) -> Option<(Incoming<'_>, Timestamp)> {
        let incoming = self.inbox.get(index)?;
        // The kernel stamps with another clock, which can be set at any time: only the age counts.
        let age = if incoming.arrived_ns == 0 { 0 } else { self.wall_ns.saturating_sub(incoming.arrived_ns) };
        let at = self.now - TimeSpan(age);
        Some((incoming, at.max(earliest)))
    }
}

/// True if the peer's machine answered that the port is closed, or the network that the host is unreachable.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw),
        Some(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EPROTO)
    )
}

/// Datagrams to send with one call; neighbors of equal size and address form batches.
pub struct TxBatch {
    bytes: Vec<u8>,
    batches: Vec<GsoBatch>,
    outgoing: Outgoing,
    /// Number of batches that the kernel took.
    sent: usize,
    /// True if the kernel segments batches for this socket (GSO).
    cuts: bool,
}

impl Default for TxBatch {
    fn default() -> Self {
        Self { bytes: Vec::with_capacity(1 << 18), batches: Vec::new(), outgoing: Outgoing::new(), sent: 0, cuts: true }
    }
}

impl TxBatch {
    /// True if no datagram waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// True if [`TxBatch::flush`] should be called now.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= 1 << 18
    }

    /// Add the datagram that `write` appends.
    #[inline]
    pub fn add(&mut self, to: Option<SocketAddr>, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let end = self.bytes.len();
        if let Some(last) = self.batches.last_mut() {
            let whole = last.end - last.start;
            let fits = self.cuts
                && whole % last.segment == 0
                && end - start <= last.segment
                && whole / last.segment < MAX_SEGMENTS
                && end - last.start <= MAX_BATCH_BYTES
                && last.to == to;
            if fits {
                last.end = end;
                return;
            }
        }
        self.batches.push(GsoBatch { start, end, segment: (end - start).max(1), to });
    }

    /// Send all waiting datagrams. False: the kernel did not take all; the rest waits until the socket is writable,
    /// without losses. Datagrams without kernel memory, or refused by a closed port, are lost, as on any path.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<bool> {
        while self.sent < self.batches.len() {
            match self.outgoing.send(socket, &self.bytes, &self.batches[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // The error answers an earlier datagram; reading it clears it.
                Err(e) if is_refusal(&e) => self.retry_once(socket),
                Err(e) => self.handle_error(e)?,
            }
        }
        self.bytes.clear();
        self.batches.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Send a batch again after a refusal, then skip it.
    fn retry_once(&mut self, socket: BorrowedFd<'_>) {
        let one = &self.batches[self.sent..=self.sent];
        let _ = self.outgoing.send(socket, &self.bytes, one);
        self.sent += 1;
    }

    #[cold]
    fn handle_error(&mut self, error: io::Error) -> Result<()> {
        let batch = self.batches[self.sent];
        let bytes = batch.end - batch.start;
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ENOBUFS | Errno::ENOMEM) => self.sent += 1,
            // No batches on this device (it cannot compute checksums) or in this kernel.
            Some(Errno::EIO | Errno::EINVAL) if bytes > batch.segment => self.uncouple(),
            Some(Errno::EMSGSIZE) if bytes > batch.segment => self.uncouple(),
            Some(Errno::EMSGSIZE) => {
                return Err(Error::of("too-large", format!("sending a datagram of {bytes} bytes"), error)
                    .expected("a path whose MTU takes the whole packet")
                    .hint("lower mss: IP and UDP headers come on top of the datagram"))
            }
            _ => return Err(error).context(|| "sending datagrams".into()),
        }
        Ok(())
    }

    /// Send single datagrams from now on.
    pub fn uncouple(&mut self) {
        self.cuts = false;
        let mut single = Vec::new();
        for batch in self.batches.drain(..).skip(self.sent) {
            for start in (batch.start..batch.end).step_by(batch.segment) {
                single.push(GsoBatch { start, end: (start + batch.segment).min(batch.end), ..batch });
            }
        }
        self.batches = single;
        self.sent = 0;
    }
}

/// Wait until `socket` is readable (writable too, if `write`), `other` is readable, or `due`. True if `other` is.
pub(super) fn wait(
    socket: BorrowedFd<'_>,
    write: bool,
    other: Option<BorrowedFd<'_>>,
    clock: &Clock,
    due: Timestamp,
) -> Result<bool> {
    let events = if write { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
    let mut both = [PollFd::new(socket, events), PollFd::new(other.unwrap_or(socket), PollFlags::POLLIN)];
    let used = if other.is_some() { 2 } else { 1 };
    wait_for(&mut both[..used], clock.timeout(due), "datagrams")?;
    Ok(used == 2 && both[1].revents().is_some_and(|events| !events.is_empty()))
}
