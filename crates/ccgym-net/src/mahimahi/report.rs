//! How the program inside all shells says that it runs, over the socket that is its standard input.

use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags, UnixCredentials};
use nix::unistd::Pid;

/// Why no report came.
pub(super) enum NoReport {
    /// The socket closed: the shells ended.
    Ended,
    /// Anything else, in words.
    Other(String),
}

impl From<Errno> for NoReport {
    fn from(errno: Errno) -> Self {
        Self::Other(errno.desc().to_owned())
    }
}

/// The program's process number and the outside's address. `patience`: the time that the deadline granted.
pub(super) fn await_report(
    control: &UnixStream,
    deadline: Instant,
    patience: Duration,
) -> Result<(Pid, Ipv4Addr), NoReport> {
    let mut line = Vec::new();
    let mut sender = None;
    while !line.ends_with(b"\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(control.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => {
                return Err(NoReport::Other(format!("it did not come up within {} s", patience.as_secs_f64())));
            }
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        // One byte at a time: what follows the line is for others.
        let mut byte = [0];
        let mut room = cmsg_space!(UnixCredentials);
        let mut parts = [IoSliceMut::new(&mut byte)];
        let message = recvmsg::<()>(control.as_raw_fd(), &mut parts, Some(&mut room), MsgFlags::MSG_CMSG_CLOEXEC)?;
        if message.bytes == 0 {
            return Err(NoReport::Ended);
        }
        // The kernel says who wrote it, by the number that we know it by.
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmCredentials(credentials) = control {
                sender = Some(Pid::from_raw(credentials.pid()));
            }
        }
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line).trim().to_owned();
    let base = line.strip_prefix("inside").and_then(|base| base.trim().parse().ok());
    match (sender, base) {
        (Some(pid), Some(base)) if pid.as_raw() > 0 => Ok((pid, base)),
        _ => Err(NoReport::Other(format!("the program inside reported {line:?}"))),
    }
}
