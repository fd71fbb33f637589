//! Capture of a device's packets, with the kernel's timestamps: outgoing packets when they leave for the device,
//! incoming ones when they arrive from it.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{recvmmsg, setsockopt, sockopt, ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders};
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, ClockId};

use super::{syscalls, Namespace};
use crate::clock::monotonic_ns;
use crate::error::{Context, Error, Result};

/// Captured bytes of a packet: the headers of IP and TCP with all their options, or of UDP and some payload.
pub const SNAP: usize = 128;
/// Max packets read by one call.
const BATCH: usize = 64;
/// Buffer for packets that wait to be read, bytes: seconds of traffic at 100 Mbit/s.
const BUFFER: i32 = 64 << 20;
/// Interval of reading. The kernel makes the timestamps, therefore a delay changes nothing.
const EVERY: Duration = Duration::from_millis(5);
/// `sll_pkttype` of packets that the machine sends.
const OUTGOING: u8 = 4;
/// `sll_hatype` of Ethernet and of loopback devices, whose packets begin with an Ethernet header.
const WITH_ETHERNET: [u16; 2] = [1, 772];

/// Packet at a device.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Timestamp of the kernel, ns of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// True if it left the namespace, false if it arrived in it.
    pub outgoing: bool,
    /// First bytes from the IP header on, max [`SNAP`].
    pub bytes: &'a [u8],
}

/// Running capture, in a thread.
#[derive(Debug)]
pub struct Capture<S> {
    halt: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(S, u64)>>>,
}

impl<S: Send + 'static> Capture<S> {
    /// Start a capture at `device` of `namespace`: `see` adds every packet to the sum that [`Capture::stop`] returns.
    ///
    /// # Errors
    /// The device does not exist, or this process may not watch it.
    pub fn start(
        namespace: &Arc<Namespace>,
        device: &str,
        sum: S,
        see: impl FnMut(&mut S, CapturedPacket<'_>) + Send + 'static,
    ) -> Result<Self> {
        let halt = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let watch = {
            let (halt, namespace, device) = (Arc::clone(&halt), Arc::clone(namespace), device.to_owned());
            move || {
                let opened = namespace.enter().and_then(|()| open(&device));
                drop(namespace);
                let _ = tell.send(opened.as_ref().map(drop).map_err(Clone::clone));
                watch(&opened?, &halt, sum, see).context(|| format!("watching the packets of {device}"))
            }
        };
        let step = || "starting a thread that watches packets".to_owned();
        let thread = thread::Builder::new().name("ccgym-capture".into()).spawn(watch).context(step)?;
        told.recv().map_err(|_| Error::of("run-failed", step(), "it panicked"))??;
        Ok(Self { halt, thread: Some(thread) })
    }

    /// Read the waiting packets, and end; return the sum, and the number of packets for which the buffer had no room.
    pub fn stop(mut self) -> Result<(S, u64)> {
        self.halt.store(true, Ordering::Relaxed);
        let joined = self.thread.take().and_then(|thread| thread.join().ok());
        joined.unwrap_or_else(|| Err(Error::of("run-failed", "watching packets", "the thread panicked")))
    }
}

impl<S> Drop for Capture<S> {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Relaxed);
    }
}

/// Open a packet socket with timestamps at a device of this thread's namespace.
fn open(device: &str) -> Result<OwnedFd> {
    let step = || format!("watching the packets of {device}");
    let index = if_nametoindex(device).context(step)?;
    let socket = syscalls::packet_socket()
        .context(step)
        .map_err(|error| error.hint("this needs CAP_NET_RAW in the device's network namespace"))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).context(step)?;
    // Forcing needs CAP_NET_ADMIN of the machine; otherwise the buffer is smaller, and losses are counted.
    syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)
        .or_else(|_| syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER))
        .context(step)?;
    // Only a socket for all protocols gets outgoing packets.
    syscalls::bind_packet_socket(socket.as_fd(), index, libc::ETH_P_ALL as u16).context(step)?;
    Ok(socket)
}

fn watch<S>(
    socket: &OwnedFd,
    halt: &AtomicBool,
    mut sum: S,
    mut see: impl FnMut(&mut S, CapturedPacket<'_>),
) -> nix::Result<(S, u64)> {
    let mut headers: MultiHeaders<LinkAddr> = MultiHeaders::preallocate(BATCH, Some(cmsg_space!(TimeSpec)));
    let mut room = vec![[0u8; SNAP]; BATCH];
    let mut drops = 0;
    loop {
        // Loaded before the last read, so that no packet from before `stop` is missed.
        let last = halt.load(Ordering::Relaxed);
        loop {
            // The timestamps are of the wall clock, which may be changed meanwhile.
            let wall = clock_gettime(ClockId::CLOCK_REALTIME)?;
            let ahead = nanoseconds(wall) - i128::from(monotonic_ns());
            let mut slices: Vec<[IoSliceMut<'_>; 1]> = room.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
            let received =
                match recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                    Ok(received) => received,
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => continue,
                    // The device went down, and its packets are lost.
                    Err(Errno::ENETDOWN) => break,
                    Err(errno) => return Err(errno),
                };
            for message in received {
                let Some(address) = message.address else { continue };
                let stamp = message.cmsgs()?.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => Some(nanoseconds(stamp)),
                    _ => None,
                });
                let (Some(stamp), Some(bytes)) = (stamp, message.iovs().next()) else { continue };
                let bytes =
                    if WITH_ETHERNET.contains(&address.hatype()) { bytes.get(14..).unwrap_or_default() } else { bytes };
                let at = u64::try_from(stamp - ahead).unwrap_or(0);
                see(&mut sum, CapturedPacket { at, outgoing: address.pkttype() == OUTGOING, bytes });
            }
        }
        drops += u64::from(syscalls::packet_socket_drops(socket.as_fd()).unwrap_or(0));
        if last {
            return Ok((sum, drops));
        }
        thread::sleep(EVERY);
    }
}

fn nanoseconds(time: TimeSpec) -> i128 {
    i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec())
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks and findings.
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::system::capability::present;

    #[test]
    fn both_directions_have_correct_timestamps() {
        if present().is_none() {
            eprintln!("SKIPPED: may not make namespaces");
            return;
        }
        let namespace = Namespace::new().unwrap().shared();
        let see = |sum: &mut Vec<(u64, bool, Vec<u8>)>, packet: CapturedPacket<'_>| {
            sum.push((packet.at, packet.outgoing, packet.bytes.to_vec()));
        };
        let capture = Capture::start(&namespace, "lo", Vec::new(), see).unwrap();
        let before = monotonic_ns();
        namespace
            .run(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                for i in 0..200u8 {
                    socket.send_to(&[i; 500], socket.local_addr().unwrap()).unwrap();
                    // A busy kernel delivers later than `send_to` returns.
                    socket.recv(&mut [0; 500]).unwrap();
                }
            })
            .unwrap();
        let after = monotonic_ns();
        let (seen, drops) = capture.stop().unwrap();
        assert_eq!((seen.len(), drops), (400, 0));
        assert_eq!(seen.iter().filter(|packet| packet.1).count(), 200);
        for (at, _, bytes) in &seen {
            // A busy machine may interrupt between the reads of the two clocks.
            assert!(*at + 20_000_000 >= before && *at <= after + 20_000_000, "{at} not in {before}..{after}");
            assert_eq!((bytes[0], bytes.len()), (0x45, SNAP - 14));
        }
        let error = Capture::start(&namespace, "nosuch0", (), |(), _| ()).unwrap_err();
        assert!(error.place.contains("nosuch0"), "{error}");
    }
}
