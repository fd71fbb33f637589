//! Running tunnel: one thread sends the packets of the namespace, another one delivers the packets that arrive. Both
//! log every packet.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use nix::libc;
use nix::poll::{PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};

use super::header::{read, write_packet, Content};
use super::message::{self, Message, Secret};
use ccgym_net::error::{Context, Error, Result};
use ccgym_net::shell::flow_of;
use ccgym_net::shell::offload::Layout;
use ccgym_net::system::port::{Offload, LARGEST_PACKET};
use ccgym_net::system::signals::wait_for;
use ccgym_net::system::{act_on_time, Port};
use ccgym_net::udp::{kernel_drops, RxBatch, TxBatch};
use ccgym_net::Clock;

/// Max wait, so that a request to halt is noticed.
const HALT_CHECK: Duration = Duration::from_millis(20);
/// Max packets sent by one call: a longer train would leave late.
const TRAIN: usize = 32;
/// Max messages of the other end that wait to be read; further ones are lost, as on the path.
const WAITING: usize = 256;
/// Flow of packets that belong to none, such as ICMP.
pub const NO_FLOW: u32 = u32::MAX;
/// Answers needed from the other end for its time, interval of the requests, and max time for all.
const PONGS: usize = 10;
const BETWEEN_PINGS: Duration = Duration::from_millis(20);
const ASKING: Duration = Duration::from_secs(15);

/// All packets that one end sent into the tunnel and that arrived there. Times: ns since that end started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TunnelLog {
    /// Send time of each packet; packet number n is at index n − 1.
    pub sent: Vec<u64>,
    /// Size of each packet sent, bytes.
    pub size: Vec<u32>,
    /// Flow of each packet sent; [`NO_FLOW`] if it belongs to none.
    pub flow: Vec<u32>,
    /// Number and arrival time of each packet that arrived here, copies included.
    pub arrived: Vec<(u64, u64)>,
    /// Time requests: sent by the local clock, arrived by the other end's clock.
    pub asked: Vec<(u64, u64)>,
    /// Answers to them: sent by the other end's clock, arrived by the local clock.
    pub answered: Vec<(u64, u64)>,
    /// Datagrams that do not belong to the tunnel.
    pub rejected: u64,
    /// Packets that arrived here and were lost here: the socket or the device had no room.
    pub dropped: u64,
}

/// State that the threads share with their creator.
struct Shared {
    socket: UdpSocket,
    port: Arc<Port>,
    clock: Clock,
    secret: Secret,
    halt: AtomicBool,
}

/// Local end of a running tunnel.
pub struct Link {
    shared: Arc<Shared>,
    outgoing: Option<JoinHandle<Result<TunnelLog>>>,
    incoming: Option<JoinHandle<Result<TunnelLog>>>,
    said: Receiver<(Message, u64)>,
    asked: Vec<(u64, u64)>,
    answered: Vec<(u64, u64)>,
}

impl Link {
    /// Start to carry packets between a device and a socket that is connected to the other end.
    ///
    /// # Arguments
    /// * `uplink` - true if the senders are here
    /// * `flows` - number of flows
    /// * `clock` - read zero when this end started
    pub fn start(
        socket: UdpSocket,
        port: Arc<Port>,
        clock: Clock,
        secret: Secret,
        uplink: bool,
        flows: u32,
    ) -> Result<Self> {
        let shared = Arc::new(Shared { socket, port, clock, secret, halt: AtomicBool::new(false) });
        let (tell, said) = sync_channel(WAITING);
        let (one, other) = (shared.clone(), shared.clone());
        let step = || "starting the tunnel".to_owned();
        let out = Builder::new().name("tunnel out".into()).spawn(move || one.carry_out(uplink, flows)).context(step)?;
        let into = Builder::new().name("tunnel in".into()).spawn(move || other.carry_in(&tell)).context(step);
        let mut link =
            Self { shared, outgoing: Some(out), incoming: None, said, asked: Vec::new(), answered: Vec::new() };
        link.incoming = Some(into?);
        Ok(link)
    }

    /// Send a message to the other end. It may get lost.
    pub fn say(&self, message: Message) -> Result<()> {
        say(&self.shared.socket, &self.shared.secret, message)
    }

    /// Return the next message of the other end and its arrival time; `None` if none arrives before `until`.
    ///
    /// # Errors
    /// The tunnel failed.
    pub fn hear(&mut self, until: Instant) -> Result<Option<(Message, u64)>> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        match self.said.recv_timeout(left) {
            Ok(said) => Ok(Some(said)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            // The thread ended: its result has the reason.
            Err(RecvTimeoutError::Disconnected) => {
                join(self.incoming.take())?;
                Err(Error::of("run-failed", "the tunnel", "it ended"))
            }
        }
    }

    /// Wait for a message for which `wanted` returns a value; answers to time requests are stored. `None` if none
    /// arrives before `until`.
    ///
    /// # Errors
    /// The tunnel failed.
    pub fn hears<T>(&mut self, until: Instant, wanted: impl Fn(Message) -> Option<T>) -> Result<Option<T>> {
        while let Some(said) = self.hear(until)? {
            if let Some(found) = self.note(said).and_then(|(message, _)| wanted(message)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Ask the other end for its time until enough answers have arrived. Return its other messages of that time.
    ///
    /// # Errors
    /// Answers are missing: packets arrive here, but possibly not at the other end.
    pub fn ask(&mut self) -> Result<Vec<(Message, u64)>> {
        let mut others = Vec::new();
        let deadline = Instant::now() + ASKING;
        while self.asked.len() < PONGS {
            if Instant::now() > deadline {
                let found = format!("{} answers of {PONGS}", self.asked.len());
                return Err(Error::of("no-answer", "asking the other end of the tunnel for its time", found)
                    .expected(format!("that many within {} s", ASKING.as_secs()))
                    .hint("the other machine says what went wrong there, or the path between them loses too much"));
            }
            self.say(Message::Ping(self.shared.clock.now().0))?;
            let until = Instant::now() + BETWEEN_PINGS;
            while let Some(said) = self.hear(until)? {
                others.extend(self.note(said));
            }
        }
        Ok(others)
    }

    /// Store an answer to a time request; return any other message.
    pub fn note(&mut self, (message, at): (Message, u64)) -> Option<(Message, u64)> {
        let Message::Pong(asked, came, answered) = message else { return Some((message, at)) };
        self.asked.push((asked, came));
        self.answered.push((answered, at));
        None
    }

    /// Return the min RTT of the time requests so far, and the clock offset of the other end by that request, ns.
    #[must_use]
    pub fn first_estimate(&self) -> (u64, i64) {
        let both = self.asked.iter().zip(&self.answered);
        both.map(|(&(sent, came), &(left, back))| {
            let round_trip = back.saturating_sub(sent).saturating_sub(left.saturating_sub(came));
            (round_trip, (came as i64 - sent as i64) / 2 + (left as i64 - back as i64) / 2)
        })
        .min()
        .unwrap_or_default()
    }

    /// End the tunnel; return its log.
    pub fn stop(mut self) -> Result<TunnelLog> {
        self.shared.halt.store(true, Ordering::Relaxed);
        let sent = join(self.outgoing.take())?;
        let arrived = join(self.incoming.take())?;
        let (asked, answered) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.answered));
        let TunnelLog { arrived, rejected, dropped, .. } = arrived;
        let dropped = dropped + u64::from(kernel_drops(self.shared.socket.as_fd()));
        Ok(TunnelLog { arrived, rejected, dropped, asked, answered, ..sent })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.halt.store(true, Ordering::Relaxed);
    }
}

fn join(thread: Option<JoinHandle<Result<TunnelLog>>>) -> Result<TunnelLog> {
    let Some(thread) = thread else { return Ok(TunnelLog::default()) };
    thread.join().unwrap_or_else(|_| Err(Error::of("run-failed", "the tunnel", "its thread panicked")))
}

/// Send a message. A refusal by a closed port counts as a loss.
pub fn say(socket: &UdpSocket, secret: &Secret, message: Message) -> Result<()> {
    match socket.send(&message::datagram(secret, message)) {
        Ok(_) => Ok(()),
        Err(e) if ccgym_net::udp::is_refusal(&e) || e.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
        Err(e) => Err(e).context(|| "sending to the other end of the tunnel".into()),
    }
}

impl Shared {
    fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    /// Carry packets of the namespace to the other end.
    fn carry_out(&self, uplink: bool, flows: u32) -> Result<TunnelLog> {
        act_on_time();
        let mut log = TunnelLog::default();
        let mut batch = TxBatch::default();
        let mut buffer = vec![0; LARGEST_PACKET];
        while !self.halted() {
            let mut count = 0;
            while count < TRAIN {
                let received = self.port.receive(&mut buffer).context(|| "reading the tunnel's device".into())?;
                let Some((length, offload)) = received else { break };
                let packet = &buffer[..length];
                let now = self.clock.now();
                let ports = Layout::of(packet, &offload).ports(packet);
                log.sent.push(now.0);
                log.size.push(length as u32);
                log.flow.push(flow_of(ports, uplink, flows).unwrap_or(NO_FLOW));
                let number = log.sent.len() as u64;
                batch.add(None, |out| write_packet(out, number, packet));
                count += 1;
            }
            while !batch.flush(self.socket.as_fd())? {
                wait(PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT))?;
                if self.halted() {
                    return Ok(log);
                }
            }
            if count == 0 {
                wait(PollFd::new(self.port.fd(), PollFlags::POLLIN))?;
            }
        }
        Ok(log)
    }

    /// Carry packets of the other end into the namespace; answer time requests.
    fn carry_in(&self, tell: &SyncSender<(Message, u64)>) -> Result<TunnelLog> {
        act_on_time();
        let mut log = TunnelLog::default();
        let mut arrivals = RxBatch::default();
        while !self.halted() {
            let count = arrivals.receive(self.socket.as_fd(), &self.clock)?;
            for index in 0..count {
                let Some((incoming, at)) = arrivals.get(index, Timestamp::ZERO) else { continue };
                for datagram in incoming.datagrams() {
                    match read(datagram) {
                        Some(Content::Packet(number, packet)) => {
                            log.arrived.push((number, at.0));
                            let headers = packet.len().min(20);
                            match self.port.send(&Offload::default(), &packet[..headers], &packet[headers..]) {
                                Ok(true) => {}
                                Ok(false) => log.dropped += 1,
                                // The kernel does not accept such a packet.
                                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => log.dropped += 1,
                                Err(e) => return Err(e).context(|| "writing the tunnel's device".into()),
                            }
                        }
                        Some(Content::Message(bytes)) => match message::read(&self.secret, bytes) {
                            Some(message) => self.take(message, at.0, tell)?,
                            None => log.rejected += 1,
                        },
                        None => log.rejected += 1,
                    }
                }
            }
            if count == 0 {
                wait(PollFd::new(self.socket.as_fd(), PollFlags::POLLIN))?;
            }
        }
        Ok(log)
    }

    fn take(&self, message: Message, at: u64, tell: &SyncSender<(Message, u64)>) -> Result<()> {
        match message {
            Message::Hello => say(&self.socket, &self.secret, Message::Welcome),
            Message::Ping(sent) => say(&self.socket, &self.secret, Message::Pong(sent, at, self.clock.now().0)),
            other => {
                // Without a reader the message is not needed.
                let _ = tell.try_send((other, at));
                Ok(())
            }
        }
    }
}

fn wait(descriptor: PollFd<'_>) -> Result<()> {
    wait_for(&mut [descriptor], Some(TimeSpec::from_duration(HALT_CHECK)), "packets of the tunnel")
}
