//! How the program inside all shells says that it runs, over the socket that is its standard input.

use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags, UnixCredentials};
use nix::unistd::Pid;

/// What a program inside begins its report with.
const REPORT: &str = "inside ";

/// Why no report came.
pub(super) enum Silence {
    /// The socket closed: the shells ended.
    Ended,
    /// Nothing within the time.
    Late,
    /// Something else was said.
    Nonsense(String),
    Failed(Errno),
}

/// The program's process number and the outside's address.
pub(super) fn await_report(control: &UnixStream, deadline: Instant) -> Result<(Pid, Ipv4Addr), Silence> {
    let mut line = Vec::new();
    let mut sender = None;
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(control.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Err(Silence::Late),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(Silence::Failed(errno)),
        }
        // One byte at a time: what follows the line is for others.
        let mut byte = [0];
        let mut room = cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(control.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::MSG_CMSG_CLOEXEC)
            .map_err(Silence::Failed)?;
        if message.bytes == 0 {
            return Err(Silence::Ended);
        }
        // The kernel says who wrote it, by the number that we know it by.
        for control in message.cmsgs().map_err(Silence::Failed)? {
            if let ControlMessageOwned::ScmCredentials(credentials) = control {
                sender = Some(Pid::from_raw(credentials.pid()));
            }
        }
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    let base = line.strip_prefix(REPORT.trim_end()).and_then(|base| base.trim().parse().ok());
    match (sender, base) {
        (Some(pid), Some(base)) if pid.as_raw() > 0 => Ok((pid, base)),
        _ => Err(Silence::Nonsense(line)),
    }
}
