//! Meeting of the two ends of a tunnel: one waits on a port, and the other one knows its address. The end that waits
//! learns the other address from the first Hello with the secret; this also works through NAT.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

use super::header::{read, Content};
use super::link::say;
use super::message::{self, Message, Secret};
use ccgym_net::error::{Context, Error, Result};
use ccgym_net::system::set_option;
use ccgym_net::udp::{is_refusal, prepare};
use std::os::fd::AsFd;

/// Max wait for the other end, which is started meanwhile.
const WAITING: Duration = Duration::from_secs(90);
/// Max time for sending Hello to the end that waits.
const CALLING: Duration = Duration::from_secs(15);
/// Interval between two Hellos.
const PAUSE: Duration = Duration::from_millis(200);

/// Role of an end at the meeting.
#[derive(Clone, Copy, Debug)]
pub enum Meeting<'a> {
    /// Wait at this address; the file gets the port.
    Listen(SocketAddr, Option<&'a Path>),
    /// Address of the end that waits.
    Connect(SocketAddr),
}

/// Return a socket that is connected to the other end after both know each other's address.
///
/// # Arguments
/// * `interface` - network device that the socket is bound to
///
/// # Errors
/// The address is not available, or the other end does not answer in time.
pub fn meet(meeting: Meeting<'_>, secret: &Secret, interface: Option<&str>) -> Result<UdpSocket> {
    let local = match meeting {
        Meeting::Listen(at, _) => at,
        Meeting::Connect(_) => SocketAddr::from(([0, 0, 0, 0], 0)),
    };
    let socket = UdpSocket::bind(local).context(|| format!("waiting for the other end of the tunnel at {local}"))?;
    if let Some(device) = interface {
        setsockopt(&socket, sockopt::BindToDevice, &device.into())
            .context(|| format!("binding the tunnel to the device {device}"))
            .map_err(|error| error.hint("`ip link` lists the devices; older kernels want root for this"))?;
    }
    prepare(&socket)?;
    // If the path carries less than 1500 bytes, packets are fragmented, as in Pantheon's tunnel.
    set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DONT)
        .context(|| "preparing the tunnel's socket".into())?;
    match meeting {
        Meeting::Listen(_, status) => listen(&socket, secret, status)?,
        Meeting::Connect(to) => call(&socket, secret, to)?,
    }
    Ok(socket)
}

fn listen(socket: &UdpSocket, secret: &Secret, status: Option<&Path>) -> Result<()> {
    let port = socket.local_addr().context(|| "asking for the tunnel's port".into())?.port();
    if let Some(file) = status {
        fs::write(file, format!("{{\"listening\": {port}}}\n")).context(|| "telling the tunnel's port".into())?;
    }
    let deadline = Instant::now() + WAITING;
    let mut strangers = 0;
    loop {
        match receive(socket, deadline)? {
            None => {
                let heard = if strangers == 0 {
                    "nothing came".to_owned()
                } else {
                    format!("{strangers} datagrams of others came")
                };
                let place = format!("waiting for the other end of the tunnel at UDP port {port}");
                return Err(Error::of("no-answer", place, heard)
                    .expected(format!("its Hello within {} s", WAITING.as_secs()))
                    .hint(format!("does a firewall here drop datagrams to UDP port {port}?")));
            }
            Some((bytes, from)) if heard(secret, &bytes) == Some(Message::Hello) => {
                socket.connect(from).context(|| format!("connecting to {from}"))?;
                return say(socket, secret, Message::Welcome);
            }
            Some(_) => strangers += 1,
        }
    }
}

fn call(socket: &UdpSocket, secret: &Secret, to: SocketAddr) -> Result<()> {
    socket.connect(to).context(|| format!("finding the way to {to}"))?;
    let deadline = Instant::now() + CALLING;
    let mut hellos = 0;
    while Instant::now() < deadline {
        say(socket, secret, Message::Hello)?;
        hellos += 1;
        let until = (Instant::now() + PAUSE).min(deadline);
        while let Some((bytes, _)) = receive(socket, until)? {
            if heard(secret, &bytes) == Some(Message::Welcome) {
                return Ok(());
            }
        }
    }
    let found = format!("no answer to {hellos} calls");
    Err(Error::of("no-answer", format!("calling the other end of the tunnel at {to}"), found)
        .expected("an answer over UDP")
        .hint(format!(
            "let UDP port {} through the firewall there (--tunnel-port chooses it), check the address \
             (--remote-addr, --local-addr), or let the other machine wait (--tunnel-server)",
            to.port()
        )))
}

fn heard(secret: &Secret, datagram: &[u8]) -> Option<Message> {
    let Some(Content::Message(bytes)) = read(datagram) else { return None };
    message::read(secret, bytes)
}

/// Return the next datagram; `None` after `until`, even if datagrams of others continue to arrive.
fn receive(socket: &UdpSocket, until: Instant) -> Result<Option<(Vec<u8>, SocketAddr)>> {
    use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
    let mut room = vec![0; 2048];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        match socket.recv_from(&mut room) {
            Ok((length, from)) => {
                room.truncate(length);
                return Ok(Some((room, from)));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock || e.kind() == ErrorKind::Interrupted || is_refusal(&e) => {}
            Err(e) => return Err(e).context(|| "receiving from the other end of the tunnel".into()),
        }
        let timeout = PollTimeout::try_from(left.min(PAUSE) + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let _ = poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const SECRET: Secret = [9; 16];

    fn file() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("ccgym-tunnel-{}-{:?}", std::process::id(), thread::current().id()))
    }

    fn port(file: &Path) -> u16 {
        for _ in 0..500 {
            if let Ok(text) = fs::read_to_string(file) {
                if let Some(port) = text.trim().strip_prefix("{\"listening\": ").and_then(|t| t.strip_suffix('}')) {
                    return port.parse().unwrap();
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no port in {}", file.display());
    }

    #[test]
    fn two_ends_with_the_secret_meet_despite_other_datagrams() {
        let file = file();
        let told = file.clone();
        let waits = thread::spawn(move || {
            meet(Meeting::Listen(SocketAddr::from(([127, 0, 0, 1], 0)), Some(&told)), &SECRET, None)
        });
        let at = SocketAddr::from(([127, 0, 0, 1], port(&file)));
        fs::remove_file(&file).unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.connect(at).unwrap();
        for noise in
            [message::datagram(&[8; 16], Message::Hello), message::datagram(&SECRET, Message::Listening), vec![1; 300]]
        {
            stranger.send(&noise).unwrap();
        }
        let calls = meet(Meeting::Connect(at), &SECRET, None).unwrap();
        let waiting = waits.join().unwrap().unwrap();
        assert_eq!(waiting.peer_addr().unwrap(), calls.local_addr().unwrap());
        // From here on, datagrams of an unknown sender are ignored.
        stranger.send(&message::datagram(&SECRET, Message::Zero(1))).unwrap();
        say(&calls, &SECRET, Message::Zero(2)).unwrap();
        let mut said = Vec::new();
        while let Some((bytes, _)) = receive(&waiting, Instant::now() + Duration::from_millis(100)).unwrap() {
            said.push(heard(&SECRET, &bytes));
        }
        assert!(said.contains(&Some(Message::Zero(2))) && !said.contains(&Some(Message::Zero(1))), "{said:?}");
    }

    #[test]
    fn endless_datagrams_do_not_extend_the_wait() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.connect(socket.local_addr().unwrap()).unwrap();
        stranger.send(&[1]).unwrap();
        assert_eq!(receive(&socket, Instant::now()).unwrap(), None);
        assert!(receive(&socket, Instant::now() + Duration::from_secs(10)).unwrap().is_some());
    }

    #[test]
    fn a_missing_device_is_an_error() {
        let at = SocketAddr::from(([127, 0, 0, 1], 9));
        let error = meet(Meeting::Connect(at), &SECRET, Some("nosuchdevice")).unwrap_err();
        assert!(error.place.contains("nosuchdevice") && !error.hint.is_empty(), "{error}");
    }
}
