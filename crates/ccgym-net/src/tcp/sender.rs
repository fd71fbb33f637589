//! A sender of kernel TCP: writes the data of its application and samples the kernel's state.

use std::io::{self, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_run::spec::SourceSpec;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::sampler::Sampler;
use super::{available, load};
use crate::application::Application;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::system::signals::wait_for;
use crate::udp::SenderResult;

/// Max time of the handshake.
const CONNECT_TIMEOUT: TimeSpan = TimeSpan::from_millis(10_000);
/// Max time between checks of `halt`.
const HALT_CHECK: TimeSpan = TimeSpan::from_millis(50);
/// Interval between checks if a finite transfer is acknowledged in full.
const COMPLETION_EVERY: TimeSpan = TimeSpan::from_millis(1);
/// Max bytes per write.
const CHUNK: usize = 256 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];
/// Max unsent bytes in the kernel, for an application that can stop.
const MAX_UNSENT: u32 = 128 << 10;
/// Bytes of TCP's timestamp option, which the kernel includes in a requested segment size.
const TIMESTAMP_OPTION: u32 = 12;
/// Payload bytes of a full segment at an MTU of 1500 bytes.
const USUAL_MSS: u32 = 1448;

/// Task of one flow over the kernel's TCP. Its thread is already in the right namespace.
#[derive(Clone, Debug)]
pub struct TcpSenderTask {
    /// Index of the flow.
    pub flow: u32,
    /// Name of the congestion control, as in `tcp_available_congestion_control`.
    pub algorithm: String,
    /// The receiver.
    pub peer: SocketAddrV4,
    /// Application of the flow.
    pub source: SourceSpec,
    /// Seed of the application's periods.
    pub seed: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Other bytes of a segment, including the IP header.
    pub header: u32,
    /// The run's clock.
    pub clock: Clock,
    /// Time of the connection's start.
    pub start: Timestamp,
    /// Time of the abort.
    pub stop: Timestamp,
    /// Interval between samples; zero: none.
    pub step: TimeSpan,
    /// True: return now.
    pub halt: Arc<AtomicBool>,
}

impl TcpSenderTask {
    fn named(&self) -> String {
        format!("flow {} (tcp:{})", self.flow, self.algorithm)
    }

    fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }
}

/// Run a flow: connect at `start`, write until `stop`, then abort with a reset, so that nothing more is sent.
///
/// A flow without a connection until `stop` has sent nothing, which is not an error.
///
/// # Errors
/// A congestion control that the kernel does not have or does not permit; a refused connection, or
/// none within ten seconds; a broken connection.
pub fn run_sender(task: TcpSenderTask) -> Result<SenderResult> {
    let socket = open(&task)?;
    let mut sampler = Sampler::new(&task.algorithm, task.header, task.step, task.start);
    let mut finished = Timestamp::NEVER;
    if wait(&task, &mut sampler, None, task.start)? && connect(&task, &socket, &mut sampler)? {
        let stream = TcpStream::from(socket);
        finished = send(&task, &stream, &mut sampler)?;
        abort(stream);
    }
    Ok(sampler.finish(format!("tcp:{}", task.algorithm), finished))
}

/// Open a socket with the congestion control.
fn open(task: &TcpSenderTask) -> Result<Socket> {
    let step = || format!("opening a socket for {}", task.named());
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).context(step)?;
    socket.set_nonblocking(true).context(step)?;
    let choose = || socket.set_tcp_congestion(task.algorithm.as_bytes());
    let mut chosen = choose();
    if is(&chosen, Errno::ENOENT) {
        load(&task.algorithm);
        chosen = choose();
    }
    let step = || format!("choosing congestion control {} for flow {}", task.algorithm, task.flow);
    match chosen {
        Ok(()) => {}
        // EINVAL: the name is too long for the kernel.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) || error.raw_os_error() == Some(libc::EINVAL) => {
            return Err(Error::of("scheme-unavailable", step(), "this kernel does not have it")
                .expected(format!("one of {}", available().join(", ")))
                .hint(format!("if the machine has kernel modules: `modprobe tcp_{}` as root", task.algorithm)))
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            return Err(Error::of("capability-missing", step(), "ordinary users may not use it here")
                .expected("it in net.ipv4.tcp_allowed_congestion_control, or CAP_NET_ADMIN in this network namespace")
                .hint(format!(
                    "as root: `sysctl -w net.ipv4.tcp_allowed_congestion_control=\"reno cubic {}\"`",
                    task.algorithm
                )))
        }
        Err(error) => return Err(Error::of("system-call-failed", step(), error)),
    }
    if task.mss != USUAL_MSS {
        let size = task.mss + TIMESTAMP_OPTION;
        socket.set_tcp_mss(size).context(|| format!("setting the segment size of {} to {}", task.named(), task.mss))?;
    }
    Ok(socket)
}

fn is<T>(result: &io::Result<T>, errno: Errno) -> bool {
    result.as_ref().is_err_and(|error| error.raw_os_error() == Some(errno as i32))
}

/// Wait until `until` and take samples. False if halted.
fn wait(task: &TcpSenderTask, sampler: &mut Sampler, socket: Option<BorrowedFd<'_>>, until: Timestamp) -> Result<bool> {
    loop {
        let now = task.clock.now();
        if task.halted() {
            return Ok(false);
        }
        if now >= until && task.clock.has_started() {
            return Ok(true);
        }
        if now >= task.start {
            sampler.advance(now, socket)?;
        }
        // The clock reads zero until it starts.
        let left = task.clock.until(until).unwrap_or(HALT_CHECK);
        std::thread::sleep(Duration::from_nanos(left.0.min(HALT_CHECK.0)));
    }
}

/// Connect. False if the flow ended before.
fn connect(task: &TcpSenderTask, socket: &Socket, sampler: &mut Sampler) -> Result<bool> {
    let step = || format!("connecting {} to {}", task.named(), task.peer);
    match socket.connect(&SockAddr::from(task.peer)) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(explain(step(), &error)),
        _ => {}
    }
    let deadline = task.start.saturating_add(CONNECT_TIMEOUT);
    loop {
        let now = task.clock.now();
        if task.halted() || now >= task.stop {
            return Ok(false);
        }
        if now >= deadline {
            let found = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs_f64());
            return Err(Error::of("no-answer", step(), found)
                .expected("a listening receiver that the path leads to")
                .hint("does the path lose everything, or is the receiver's address not beyond it?"));
        }
        let until = deadline.min(task.stop).min(sampler.next_event()).min(now.saturating_add(HALT_CHECK));
        if poll(task, socket.as_fd(), PollFlags::POLLOUT, until)? {
            return match socket.take_error().context(step)? {
                Some(error) => Err(explain(step(), &error)),
                None => Ok(true),
            };
        }
        sampler.advance(task.clock.now(), None)?;
    }
}

fn explain(step: String, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::ConnectionRefused => "no receiver listens there",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "no route leads there from this namespace"
        }
        _ => "",
    };
    Error::of("system-call-failed", step, error).hint(hint)
}

/// Write until the flow's end. Return the time at which a finite transfer was acknowledged in full.
fn send(task: &TcpSenderTask, mut stream: &TcpStream, sampler: &mut Sampler) -> Result<Timestamp> {
    let mut source = Application::new(&task.source, task.mss, task.start, task.seed, task.flow);
    if source.keeps_little_waiting() {
        // Otherwise the kernel would still send for seconds after the application stops. An error is harmless.
        let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT);
    }
    let mut finished = Timestamp::NEVER;
    let mut full = false;
    loop {
        let now = task.clock.now();
        if task.halted() || now >= task.stop {
            sampler.look(now, stream.as_fd())?;
            return Ok(finished);
        }
        sampler.advance(now, Some(stream.as_fd()))?;
        source.advance(now);
        let wants = source.wants();
        if wants > 0 && !full {
            match stream.write(&ZEROS[..wants.min(CHUNK as u64) as usize]) {
                Ok(bytes) => source.wrote(bytes as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => full = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let step = format!("sending of {} to {} at {:.3} s", task.named(), task.peer, now.as_secs_f64());
                    return Err(
                        Error::of("system-call-failed", step, error).hint("did the receiver end before the flow?")
                    );
                }
            }
            continue;
        }
        let mut until =
            task.stop.min(sampler.next_event()).min(source.next_event()).min(now.saturating_add(HALT_CHECK));
        if source.is_done() && !finished.is_set() {
            if sampler.look(now, stream.as_fd())?.all_acknowledged() {
                finished = now;
            }
            until = until.min(now.saturating_add(COMPLETION_EVERY));
        }
        let interest = if full && wants > 0 { PollFlags::POLLOUT } else { PollFlags::empty() };
        if poll(task, stream.as_fd(), interest, until)? {
            full = false;
        }
    }
}

/// Wait for the socket or the time. True if the socket is ready.
fn poll(task: &TcpSenderTask, socket: BorrowedFd<'_>, interest: PollFlags, until: Timestamp) -> Result<bool> {
    let timeout = task.clock.timeout(until).unwrap_or_else(|| TimeSpec::from_duration(Duration::from_millis(50)));
    if interest.is_empty() {
        // Do not poll: a broken socket would return at once each time.
        std::thread::sleep(Duration::from(timeout));
        return Ok(false);
    }
    let mut fds = [PollFd::new(socket, interest)];
    wait_for(&mut fds, Some(timeout), &task.named())?;
    Ok(fds[0].any().unwrap_or(false))
}

/// Abort the connection with a reset; the kernel drops unsent data.
fn abort(stream: TcpStream) {
    // On an error the kernel continues to send for a while, but the run is over.
    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}
