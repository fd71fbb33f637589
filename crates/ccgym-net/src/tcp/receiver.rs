//! A receiver of kernel TCP: accepts one connection, discards its data and counts it.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use ccgym_core::{TimeSpan, Timestamp};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{recv, MsgFlags};
use nix::sys::time::TimeSpec;

use super::info::TcpInfo;
use crate::error::{Context, Error, Result};
use crate::system::signals::wait_for;
use crate::udp::{ReceiverResult, ReceiverTask};

/// Max time between checks of `halt`.
const HALT_CHECK: TimeSpan = TimeSpan::from_millis(50);
/// Max bytes per read. The kernel discards them without copying, so this memory is never used.
const CHUNK: usize = 4 << 20;

/// Serve one connection until it ends, or until `end`.
///
/// Payload counts when the application can read it, in order. The kernel does not report copies of payload,
/// so wire bytes do not include them. If a device coalesces segments, the kernel counts them as one: then the number of
/// packets is computed from the payload.
///
/// # Errors
/// A socket error. A missing connection and an abort by the sender are not errors.
pub fn run_receiver(listener: TcpListener, task: ReceiverTask) -> Result<ReceiverResult> {
    let mut counts = ReceiverResult::default();
    if let Some(stream) = accept(&listener, &task)? {
        drop(listener);
        stream.set_nonblocking(true).context(|| "receiving over TCP".into())?;
        receive(&stream, &task, &mut counts)?;
        look(&mut counts, stream.as_fd());
    }
    if task.step > TimeSpan::ZERO {
        fill(&mut counts, (task.end.0 / task.step.0) as usize);
    }
    Ok(counts)
}

fn over(task: &ReceiverTask) -> bool {
    task.halt.load(Ordering::Relaxed) || task.clock.now() >= task.end
}

fn accept(listener: &TcpListener, task: &ReceiverTask) -> Result<Option<TcpStream>> {
    let step = || "accepting a TCP flow".to_owned();
    listener.set_nonblocking(true).context(step)?;
    while !over(task) {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The peer closed between its handshake and this call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
            Err(error) => return Err(Error::of("system-call-failed", step(), error)),
        }
        wait(listener.as_fd(), task, Timestamp::NEVER)?;
    }
    Ok(None)
}

fn receive(stream: &TcpStream, task: &ReceiverTask, counts: &mut ReceiverResult) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut closing = Timestamp::NEVER;
    while !over(task) {
        let now = task.clock.now();
        if task.step > TimeSpan::ZERO {
            // A sample at time t counts arrivals up to and including t.
            if now > closing || !closing.is_set() {
                look(counts, stream.as_fd());
                fill(counts, (now.0.saturating_sub(1) / task.step.0) as usize);
                closing = Timestamp((now.0.saturating_sub(1) / task.step.0 + 1) * task.step.0);
            }
        }
        match recv(stream.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC) {
            Ok(0) | Err(Errno::ECONNRESET) => return Ok(()),
            Ok(bytes) => counts.received.unique_bytes += bytes as u64,
            Err(Errno::EAGAIN) => wait(stream.as_fd(), task, closing)?,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context(|| "receiving over TCP".into()),
        }
    }
    Ok(())
}

fn wait(fd: BorrowedFd<'_>, task: &ReceiverTask, until: Timestamp) -> Result<()> {
    let until = until.min(task.end).min(task.clock.now().saturating_add(HALT_CHECK));
    let timeout = task.clock.timeout(until).unwrap_or_else(|| TimeSpec::from_duration(Duration::ZERO));
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    wait_for(&mut fds, Some(timeout), "a TCP flow")
}

/// Read the number of packets from the kernel.
fn look(counts: &mut ReceiverResult, socket: BorrowedFd<'_>) {
    // A reset connection still returns data; on an error, keep the last data.
    if let Ok(info) = TcpInfo::of(socket) {
        let received = &mut counts.received;
        let min_packets = received.unique_bytes.div_ceil(u64::from(info.snd_mss.max(1)));
        received.packets = u64::from(info.data_segs_in).max(min_packets);
        received.bytes = received.unique_bytes + received.packets * u64::from(info.header());
    }
}

/// Fill all missing samples before number `index` with the current counts.
fn fill(counts: &mut ReceiverResult, index: usize) {
    if counts.received_bytes.len() < index {
        counts.received_bytes.resize(index, counts.received.bytes);
        counts.received_unique_bytes.resize(index, counts.received.unique_bytes);
        counts.read_bytes.resize(index, counts.received.unique_bytes);
    }
}
