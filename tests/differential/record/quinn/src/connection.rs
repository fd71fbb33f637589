//! A client that sends without end to a server, both driven in virtual time.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    Side, StreamId, TransportConfig, VarInt,
};

use crate::path::Path;
use crate::{HEADERS, PACKET};

/// Written to the stream at a time, while it takes it.
static CHUNK: [u8; 65_536] = [0; 65_536];
/// Bytes that the sender may hold unacknowledged: more than any path here has room for.
const SEND_BUFFER: u64 = 1 << 24;

/// One end.
struct Node {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Datagrams under way to it, in order of arrival.
    inbound: VecDeque<(Duration, Vec<u8>)>,
    timeout: Option<Instant>,
}

/// What is recorded.
pub struct Sample {
    /// Bytes.
    pub window: u64,
    /// Bytes on the wire that reached the server.
    pub delivered: u64,
    pub congestion_events: u64,
    pub lost_packets: u64,
    pub queue_drops: u64,
}

pub struct Pair {
    client: Node,
    server: Node,
    server_config: Arc<ServerConfig>,
    path: Path,
    begin: Instant,
    now: Duration,
    stream: Option<StreamId>,
    delivered: u64,
    window: u64,
    /// Whenever the window fell: when, from what, to what.
    pub cuts: Vec<(Duration, u64, u64)>,
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let datagram = (PACKET - HEADERS) as u16;
    transport
        .initial_mtu(datagram)
        .min_mtu(datagram)
        .mtu_discovery_config(None)
        .stream_receive_window(VarInt::MAX)
        .receive_window(VarInt::MAX)
        .send_window(SEND_BUFFER)
        .max_idle_timeout(None);
    transport
}

impl Pair {
    pub fn new(path: Path, controller: impl ControllerFactory + Send + Sync + 'static, seed: u64) -> Self {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("certificate");
        let certificate = generated.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(generated.signing_key.serialize_der().into());
        let mut server_config = ServerConfig::with_single_cert(vec![certificate.clone()], key).expect("server");
        server_config.transport_config(Arc::new(transport()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).expect("root");
        let mut client_config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("client");
        let mut sending = transport();
        sending.congestion_controller_factory(Arc::new(controller));
        client_config.transport_config(Arc::new(sending));

        let server_config = Arc::new(server_config);
        let node = |port: u16, config: Option<Arc<ServerConfig>>| {
            let mut endpoint = EndpointConfig::default();
            let mut random = [0; 32];
            random[..8].copy_from_slice(&seed.to_le_bytes());
            random[8..10].copy_from_slice(&port.to_le_bytes());
            endpoint.rng_seed(Some(random));
            Node {
                endpoint: Endpoint::new(Arc::new(endpoint), config, false, None),
                address: (Ipv4Addr::LOCALHOST, port).into(),
                connection: None,
                inbound: VecDeque::new(),
                timeout: None,
            }
        };
        let (mut client, server) = (node(1, None), node(2, Some(Arc::clone(&server_config))));
        // quinn-proto's times are instants; only differences from this one count.
        #[allow(clippy::disallowed_methods)]
        let begin = Instant::now();
        let connection = client.endpoint.connect(begin, client_config, server.address, "localhost").expect("connect");
        client.connection = Some(connection);
        Self {
            client,
            server,
            server_config,
            path,
            begin,
            now: Duration::ZERO,
            stream: None,
            delivered: 0,
            window: 0,
            cuts: Vec::new(),
        }
    }

    pub fn run_until(&mut self, until: Duration) {
        loop {
            self.drive_client();
            self.drive_server();
            self.note_cut();
            let timeouts = [self.client.timeout, self.server.timeout].map(|t| t.map(|t| t - self.begin));
            let arrivals = [&self.client, &self.server].map(|node| node.inbound.front().map(|(at, _)| *at));
            let next = timeouts.into_iter().chain(arrivals).flatten().min();
            match next {
                Some(next) if next <= until => self.now = self.now.max(next),
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    fn client_connection(&self) -> &Connection {
        &self.client.connection.as_ref().expect("connected from the start").1
    }

    fn note_cut(&mut self) {
        let window = self.client_connection().congestion_state().window();
        if window < self.window {
            self.cuts.push((self.now, self.window, window));
        }
        self.window = window;
    }

    pub fn sample(&self) -> Sample {
        let path = self.client_connection().stats().path;
        Sample {
            window: path.cwnd,
            delivered: self.delivered,
            congestion_events: path.congestion_events,
            lost_packets: path.lost_packets,
            queue_drops: self.path.drops,
        }
    }

    fn drive_client(&mut self) {
        let now = self.begin + self.now;
        self.client.receive(self.now, self.begin, self.server.address, None);
        let Some((_, connection)) = &mut self.client.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.stream = connection.streams().open(Dir::Uni),
                Event::ConnectionLost { reason } => panic!("the client lost the connection: {reason}"),
                _ => {}
            }
        }
        if let Some(stream) = self.stream {
            while connection.send_stream(stream).write(&CHUNK).is_ok() {}
        }
        for datagram in self.client.transmit(now) {
            let bytes = datagram.len() as u64 + HEADERS;
            if let Some(arrival) = self.path.offer(self.now, bytes) {
                self.server.inbound.push_back((arrival, datagram));
            }
        }
    }

    fn drive_server(&mut self) {
        let now = self.begin + self.now;
        self.delivered += self.server.receive(self.now, self.begin, self.client.address, Some(&self.server_config));
        if let Some((_, connection)) = &mut self.server.connection {
            while let Some(event) = connection.poll() {
                if let Event::ConnectionLost { reason } = event {
                    panic!("the server lost the connection: {reason}");
                }
                read_all(connection);
            }
        }
        for datagram in self.server.transmit(now) {
            self.client.inbound.push_back((self.now + self.path.propagation, datagram));
        }
    }
}

/// The server's application takes what is there.
fn read_all(connection: &mut Connection) {
    connection.streams().accept(Dir::Uni);
    let mut stream = connection.recv_stream(StreamId::new(Side::Client, Dir::Uni, 0));
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(_)) = chunks.next(usize::MAX) {}
        let _ = chunks.finalize();
    };
}

impl Node {
    /// Take what has arrived and let timers expire; the wire bytes taken.
    fn receive(&mut self, now: Duration, begin: Instant, from: SocketAddr, config: Option<&Arc<ServerConfig>>) -> u64 {
        let mut taken = 0;
        let instant = begin + now;
        while self.inbound.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, datagram)) = self.inbound.pop_front() else { break };
            taken += datagram.len() as u64 + HEADERS;
            let mut answer = Vec::new();
            match self.endpoint.handle(instant, from, None, None, datagram.as_slice().into(), &mut answer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, instant, &mut answer, config.cloned());
                    self.connection = Some(accepted.map_err(|error| error.cause).expect("accept"));
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    if let Some((_, connection)) = &mut self.connection {
                        connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
        if let Some((_, connection)) = &mut self.connection {
            if self.timeout.is_some_and(|at| at <= instant) {
                connection.handle_timeout(instant);
            }
        }
        taken
    }

    /// What leaves now; afterwards the next time-out is known.
    fn transmit(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        let Some((handle, connection)) = &mut self.connection else { return datagrams };
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let mut datagram = Vec::new();
            match connection.poll_transmit(now, 1, &mut datagram) {
                Some(_) => datagrams.push(datagram),
                None => break,
            }
        }
        self.timeout = connection.poll_timeout();
        datagrams
    }
}
