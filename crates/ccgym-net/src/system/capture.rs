//! A device's packets with the times at which the kernel saw them: what goes out as it leaves for the device, what
//! comes in as it arrives from there.

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

/// Bytes of a packet that are looked at: the headers of IP and TCP with all their options, or UDP's and some payload.
pub const SNAP: usize = 128;
/// Packets taken per call.
const BATCH: usize = 64;
/// Room for packets that wait to be taken: seconds of traffic at 100 Mbit/s.
const BUFFER: i32 = 64 << 20;
/// How often they are taken. The kernel stamps them, so nothing is lost by being late.
const EVERY: Duration = Duration::from_millis(5);
/// `sll_pkttype` of what the machine sends itself.
const OUTGOING: u8 = 4;
/// `sll_hatype` of Ethernet and of loopback devices, where an Ethernet header stands before the packets.
const WITH_ETHERNET: [u16; 2] = [1, 772];

/// One packet at a device.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// When the kernel saw it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// Whether it left the namespace, or arrived in it.
    pub outgoing: bool,
    /// Its first bytes from the IP header on, max [`SNAP`].
    pub bytes: &'a [u8],
}

/// A capture that runs, in a thread.
#[derive(Debug)]
pub struct Capture<S> {
    halt: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(S, u64)>>>,
}

impl<S: Send + 'static> Capture<S> {
    /// Watch `device` of `namespace`: `see` is shown every packet and adds to the sum that [`Capture::stop`] returns.
    ///
    /// # Errors
    /// If there is no such device, or this process may not watch it.
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

    /// Take what is still waiting, and end: the sum, and how many packets the buffer had no room for.
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

/// A packet socket that stamps what it sees at a device of this thread's namespace.
fn open(device: &str) -> Result<OwnedFd> {
    let step = || format!("watching the packets of {device}");
    let index = if_nametoindex(device).context(step)?;
    let socket = syscalls::packet_socket()
        .context(step)
        .map_err(|error| error.hint("this needs CAP_NET_RAW in the device's network namespace"))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).context(step)?;
    // Forcing needs CAP_NET_ADMIN of the machine; a smaller buffer may do, and losses are counted.
    syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)
        .or_else(|_| syscalls::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER))
        .context(step)?;
    // Only a socket for all protocols is shown what goes out.
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
        // Seen before the last look, so that it comes after all that was to be seen.
        let last = halt.load(Ordering::Relaxed);
        loop {
            // The stamps are of the wall clock, which may be set meanwhile.
            let wall = clock_gettime(ClockId::CLOCK_REALTIME)?;
            let ahead = nanoseconds(wall) - i128::from(monotonic_ns());
            let mut slices: Vec<[IoSliceMut<'_>; 1]> = room.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
            let received =
                match recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) {
                    Ok(received) => received,
                    Err(Errno::EAGAIN) => break,
                    Err(Errno::EINTR) => continue,
                    // The device went down, and its packets with it.
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
#[allow(clippy::print_stderr)] // Says what is skipped or found.
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::system::capability::present;

    #[test]
    fn both_directions_are_seen_when_they_happen() {
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
            // A busy machine interrupts between the two clocks that are compared.
            assert!(*at + 20_000_000 >= before && *at <= after + 20_000_000, "{at} not in {before}..{after}");
            assert_eq!((bytes[0], bytes.len()), (0x45, SNAP - 14));
        }
        let error = Capture::start(&namespace, "nosuch0", (), |(), _| ()).unwrap_err();
        assert!(error.place.contains("nosuch0"), "{error}");
    }
}
