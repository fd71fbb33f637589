//! One end of a connection: quinn's state machine over a UDP socket, in one thread.
//!
//! Datagrams are sent and received one by one, so that each is one packet on the path. ECN is not used: datagrams leave
//! unmarked, as those of the kernel's TCP do by default.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use ccgym_net::error::{Context, Error, Result};
use ccgym_net::udp::{enlarge, is_refusal};
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event, ServerConfig, Transmit,
    TransportConfig, VarInt,
};

use crate::identity::Identity;

/// Max bytes of a datagram.
const LARGEST: usize = 65_536;
/// Max datagrams received before others are sent.
const BATCH: usize = 64;
/// Receive window, bytes: so large that congestion control limits and flow control does not.
const RECEIVE_WINDOW: u32 = 1 << 30;
/// Server name that the sender asks for; the key authenticates.
const NAME: &str = "ccgym";

/// Make the transport settings of both ends for packets of `packet_bytes` IP bytes.
///
/// # Errors
/// QUIC has no packets of this size.
pub fn transport(packet_bytes: u32) -> Result<TransportConfig> {
    let datagram = packet_bytes.saturating_sub(28);
    let fits = u16::try_from(datagram).ok().filter(|&datagram| (1200..=65_000).contains(&datagram));
    let Some(datagram) = fits else {
        return Err(Error::of("out-of-range", "a flow of QUIC", format!("packets of {packet_bytes} bytes"))
            .expected("1228 to 65028 bytes: a datagram of QUIC has 1200 at least (RFC 9000 §14)")
            .hint("leave out mss and header: packets then have 1500 bytes"));
    };
    let mut transport = TransportConfig::default();
    // All packets have the size that the flow asks for, from the first one on, as in other flows.
    transport.initial_mtu(datagram).min_mtu(datagram).mtu_discovery_config(None);
    transport.receive_window(VarInt::from_u32(RECEIVE_WINDOW)).stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW));
    // A path may carry nothing for a long time; the connection ends with the run.
    transport.max_idle_timeout(None);
    transport.enable_segmentation_offload(false);
    Ok(transport)
}

/// State machine of one end, without socket and clock.
pub struct Machine {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
}

impl Machine {
    /// Make a receiver, which accepts the first connection only.
    ///
    /// # Errors
    /// The library refuses the key.
    pub fn listen(settings: EndpointConfig, identity: &Identity, transport: TransportConfig) -> Result<Self> {
        let mut config = ServerConfig::with_crypto(identity.server()?);
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::new(Arc::new(settings), Some(Arc::new(config)), false, None);
        Ok(Self { endpoint, connection: None })
    }

    /// Make a sender, which connects at `now`.
    ///
    /// # Errors
    /// No receiver can have this address.
    pub fn connect(
        settings: EndpointConfig,
        receiver: SocketAddr,
        identity: &Identity,
        transport: TransportConfig,
        now: Instant,
    ) -> Result<Self> {
        let mut endpoint = Endpoint::new(Arc::new(settings), None, false, None);
        let mut config = ClientConfig::new(identity.client()?);
        config.transport_config(Arc::new(transport));
        let connected = endpoint
            .connect(now, config, receiver, NAME)
            .map_err(|error| Error::of("socket-failed", format!("connecting to {receiver}"), error))?;
        Ok(Self { endpoint, connection: Some(connected) })
    }

    /// Return the connection; `None` before it exists.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Return the time of the connection's next timer.
    pub fn next_timeout(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    /// Process a received datagram. The returned immediate answer is in `out`.
    pub fn handle(&mut self, now: Instant, data: &[u8], from: SocketAddr, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(data), out)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                let (_, connection) = self.connection.as_mut().filter(|(own, _)| *own == handle)?;
                connection.handle_event(event);
                None
            }
            DatagramEvent::NewConnection(incoming) if self.connection.is_some() => {
                Some(self.endpoint.refuse(incoming, out))
            }
            DatagramEvent::NewConnection(incoming) => match self.endpoint.accept(incoming, now, out, None) {
                Ok(accepted) => {
                    self.connection = Some(accepted);
                    None
                }
                // An unknown sender, or a damaged datagram.
                Err(refused) => refused.response,
            },
            DatagramEvent::Response(answer) => Some(answer),
        }
    }

    /// Fire the timers that are due.
    pub fn fire(&mut self, now: Instant) {
        while self.next_timeout().is_some_and(|due| due <= now) {
            if let Some(connection) = self.connection() {
                connection.handle_timeout(now);
            }
        }
        self.exchange();
    }

    /// Exchange events between connection and endpoint.
    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    /// Return the next datagram that may leave now; its bytes are in `out`.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        let next = self.connection()?.poll_transmit(now, 1, out);
        if next.is_none() {
            self.exchange();
        }
        next
    }
}

/// One end of a connection.
pub struct Peer {
    socket: UdpSocket,
    machine: Machine,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

impl Peer {
    /// Run this machine over this socket.
    ///
    /// # Errors
    /// The socket does not work.
    pub fn new(socket: UdpSocket, machine: Machine) -> Result<Self> {
        enlarge(&socket)?;
        Ok(Self { socket, machine, inbox: vec![0; LARGEST], outbox: Vec::with_capacity(LARGEST) })
    }

    /// Return the connection; `None` before it exists.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.machine.connection()
    }

    /// Return the next event of the connection.
    pub fn event(&mut self) -> Option<Event> {
        self.connection()?.poll()
    }

    /// Process the datagrams that have arrived, and fire the timers that are due.
    ///
    /// # Errors
    /// The socket fails.
    pub fn receive(&mut self) -> Result<()> {
        // One time for all waiting datagrams, as in quinn's driver: the library's BBR divides the bytes of each packet
        // by the time since the previous one, and ignores packets with equal times. The microseconds that this loop
        // takes for a packet would look like a link of gigabits.
        let now = Instant::now();
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.inbox) {
                Ok((length, from)) => {
                    if let Some(answer) = self.machine.handle(now, &self.inbox[..length], from, &mut self.outbox) {
                        self.send(&answer)?;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(error) if is_refusal(&error) => {}
                Err(error) => return Err(error).context(|| "receiving datagrams of QUIC".into()),
            }
        }
        self.machine.fire(Instant::now());
        Ok(())
    }

    /// Send all datagrams that may leave now.
    ///
    /// # Errors
    /// The socket fails.
    pub fn transmit(&mut self) -> Result<()> {
        // One time for all packets of a burst, as in `receive`.
        let now = Instant::now();
        while let Some(next) = self.machine.transmit(now, &mut self.outbox) {
            self.send(&next)?;
        }
        Ok(())
    }

    fn send(&self, transmit: &Transmit) -> Result<()> {
        loop {
            match self.socket.send_to(&self.outbox[..transmit.size], transmit.destination) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.poll(PollFlags::POLLOUT, Duration::MAX)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Counts as a loss on the path.
                Err(error) if is_refusal(&error) || error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                    return Ok(())
                }
                Err(error) => return Err(error).context(|| "sending datagrams of QUIC".into()),
            }
        }
    }

    /// Wait for a datagram or a timer of the connection, max `longest`.
    ///
    /// # Errors
    /// The wait fails.
    pub fn wait(&mut self, longest: Duration) -> Result<()> {
        let until = self
            .machine
            .next_timeout()
            .map_or(longest, |due| due.saturating_duration_since(Instant::now()).min(longest));
        self.poll(PollFlags::POLLIN, until)
    }

    fn poll(&self, interest: PollFlags, longest: Duration) -> Result<()> {
        let timeout = TimeSpec::from_duration(longest.min(Duration::from_secs(1)));
        match ppoll(&mut [PollFd::new(self.socket.as_fd(), interest)], Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno).context(|| "waiting for a socket of QUIC".into()),
        }
    }

    /// Close the connection. Later, nothing is sent.
    ///
    /// # Errors
    /// The socket fails.
    pub fn close(&mut self) -> Result<()> {
        if let Some(connection) = self.connection() {
            connection.close(Instant::now(), VarInt::from_u32(0), Bytes::new());
        }
        self.transmit()
    }
}
