//! What a session says to its init, and init to the session.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recv, send, MsgFlags};
use nix::unistd::{Gid, Uid};
use serde::{Deserialize, Serialize};

use crate::error::NetError;
use crate::system::Namespace;

/// Where the output of a program goes.
#[derive(Debug)]
pub enum Output {
    /// Where ours goes; its input is ours too.
    Ours,
    /// Both to our standard error; no input.
    Stderr,
    /// Both into a file; no input.
    File(File),
}

/// A program to start.
#[derive(Debug)]
pub struct Program {
    /// Its words; the first is looked up in `PATH`.
    pub words: Vec<String>,
    /// Its environment, `NAME=value`.
    pub environment: Vec<std::ffi::CString>,
    /// Where its sockets live.
    pub namespace: Arc<Namespace>,
    /// Where its output goes.
    pub output: Output,
}

/// The user that programs run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// As this process.
    Ours,
    /// As another user of the machine, with that user's groups.
    User {
        /// Login name.
        name: String,
        /// User.
        uid: Uid,
        /// Main group.
        gid: Gid,
    },
    /// As the user that this process had before it entered a user namespace, in which it appears as root.
    Before(Uid, Gid),
}

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec {
    /// Its end is the end of all.
    pub command: Program,
    /// What runs at the other end, if anything.
    pub peer: Option<Program>,
    /// The user that both run as.
    pub identity: Identity,
    /// Whether the command gets the terminal: it then has a process group of its own, in the foreground.
    pub terminal: bool,
}

/// What init is told. Sent as JSON, one per packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Start the command.
    Begin,
    /// Pass a signal on to the command.
    Signal(i32),
    /// The command may go on after a stop; give it the terminal again.
    Resume,
    /// Everything shall end: SIGTERM first, SIGKILL a second later.
    End,
}

/// What init tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// Everything is ready for the command; the peer runs.
    Ready,
    /// Something could not be started. Init ends.
    Failed(NetError),
    /// The command was stopped by a signal, as with Ctrl-Z.
    Stopped,
    /// The command ended: its status as a shell shows it, 128 + n after signal n. Init ends soon.
    Ended(i32),
    /// The peer ended by itself, with this status.
    PeerEnded(i32),
    /// Init is gone, and everything with it.
    Gone,
}

/// Send one message.
pub(super) fn transmit(socket: &OwnedFd, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    loop {
        match send(socket.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL) {
            Err(Errno::EINTR) => {}
            sent => return sent.map(|_| ()).map_err(io::Error::from),
        }
    }
}

/// Wait for one message; none when the other side is gone.
pub(super) fn receive<T: for<'a> Deserialize<'a>>(socket: &OwnedFd) -> io::Result<Option<T>> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) | Err(Errno::ECONNRESET) => return Ok(None),
            Ok(length) => return Ok(Some(serde_json::from_slice(&buffer[..length])?)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Whether one of the descriptors is readable (or closed) within `timeout`.
pub(crate) fn readable<const N: usize>(fds: [BorrowedFd<'_>; N], timeout: PollTimeout) -> [bool; N] {
    let mut polled = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut polled, timeout) {
        Ok(_) => polled.map(|fd| fd.any().unwrap_or(true)),
        Err(_) => [false; N],
    }
}
