//! Every scheme of the registry as a congestion controller of the library: between two ends in memory, over a path with
//! a delay and a bounded queue, in virtual time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use ccgym_quic::congestion::{offer, SchemeFactory};
use ccgym_quic::identity::Identity;
use ccgym_quic::peer::transport;
use ccgym_schemes::{create, registry};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ServerConfig,
    StreamEvent, StreamId,
};
use serde_json::Map;

const FILE: usize = 1_000_000;
/// Bytes of a datagram in packets of 1500.
const DATAGRAM: u64 = 1472;
/// 12 Mbit/s.
const NANOS_PER_BYTE: u64 = 667;
/// Each way.
const DELAY: Duration = Duration::from_millis(20);
/// A bandwidth-delay product.
const QUEUE: u64 = 60_000;
/// Nothing takes longer in virtual time.
const LIMIT: Duration = Duration::from_secs(120);

/// One end, and what is on its way to it.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    inbox: VecDeque<(Instant, Vec<u8>)>,
}

impl End {
    fn new(server: Option<ServerConfig>) -> Self {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([7; 32]));
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), false, None);
        Self { endpoint, connection: None, inbox: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Instant> {
        let timer = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.inbox.front().map(|(at, _)| *at).into_iter().chain(timer).min()
    }

    /// Take what has arrived, and let timers fire.
    fn advance(&mut self, now: Instant) {
        while self.inbox.front().is_some_and(|(at, _)| *at <= now) {
            let (_, data) = self.inbox.pop_front().unwrap();
            let from = "192.0.2.1:4433".parse().unwrap();
            match self.endpoint.handle(now, from, None, None, BytesMut::from(&data[..]), &mut Vec::new()) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    self.connection.as_mut().unwrap().1.handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    self.connection = self.endpoint.accept(incoming, now, &mut Vec::new(), None).ok();
                }
                _ => {}
            }
        }
        let Some((handle, connection)) = &mut self.connection else { return };
        while connection.poll_timeout().is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    /// What leaves now.
    fn transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut data = Vec::new();
        let transmit = self.connection.as_mut()?.1.poll_transmit(now, 1, &mut data)?;
        data.truncate(transmit.size);
        Some(data)
    }
}

/// How a transfer went.
#[derive(PartialEq, Debug)]
struct Transfer {
    took: Duration,
    min_window: u64,
    dropped: u64,
}

impl Transfer {
    fn mbps(&self) -> f64 {
        8e-6 * FILE as f64 / self.took.as_secs_f64()
    }
}

/// Send a file; `None` if that does not end.
fn transfer(factory: SchemeFactory) -> Option<Transfer> {
    let identity = Identity::new(&[3; 32]).unwrap();
    let mut server = ServerConfig::with_crypto(identity.server().unwrap());
    server.transport_config(Arc::new(transport(1500).unwrap()));
    let mut client = ClientConfig::new(identity.client().unwrap());
    let mut settings = transport(1500).unwrap();
    settings.congestion_controller_factory(Arc::new(factory));
    client.transport_config(Arc::new(settings));

    let begun = Instant::now();
    let mut now = begun;
    let (mut sender, mut receiver) = (End::new(None), End::new(Some(server)));
    sender.connection = sender.endpoint.connect(now, client, "192.0.2.1:4433".parse().unwrap(), "test").ok();
    let (mut free, mut unsent, mut received) = (now, FILE, 0);
    let mut streams: (Option<StreamId>, Option<StreamId>) = (None, None);
    let mut result = Transfer { took: LIMIT, min_window: u64::MAX, dropped: 0 };
    while now < begun + LIMIT {
        sender.advance(now);
        receiver.advance(now);
        let connection = &mut sender.connection.as_mut()?.1;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => streams.0 = connection.streams().open(Dir::Uni),
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        if let Some(stream) = streams.0.filter(|_| unsent > 0) {
            unsent -= connection.send_stream(stream).write(&vec![0; unsent]).unwrap_or(0);
            if unsent == 0 {
                connection.send_stream(stream).finish().unwrap();
            }
        }
        result.min_window = result.min_window.min(connection.congestion_state().window());
        if let Some((_, connection)) = &mut receiver.connection {
            while let Some(event) = connection.poll() {
                if matches!(event, Event::Stream(StreamEvent::Opened { .. })) {
                    streams.1 = connection.streams().accept(Dir::Uni);
                }
            }
            if let Some(stream) = streams.1 {
                let mut stream = connection.recv_stream(stream);
                let mut chunks = stream.read(true).unwrap();
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    received += chunk.bytes.len();
                }
                let _ = chunks.finalize();
            }
        }
        if received == FILE {
            return Some(Transfer { took: now - begun, ..result });
        }
        while let Some(data) = sender.transmit(now) {
            let backlog = free.saturating_duration_since(now).as_nanos() as u64 / NANOS_PER_BYTE;
            if backlog > QUEUE {
                result.dropped += 1;
                continue;
            }
            free = free.max(now) + Duration::from_nanos(NANOS_PER_BYTE * data.len() as u64);
            receiver.inbox.push_back((free + DELAY, data));
        }
        while let Some(data) = receiver.transmit(now) {
            sender.inbox.push_back((now + DELAY, data));
        }
        now = sender.next().into_iter().chain(receiver.next()).min()?.max(now);
    }
    None
}

fn scheme(name: &str) -> SchemeFactory {
    SchemeFactory::new(name, &Map::new()).unwrap()
}

#[test]
fn each_offered_scheme_carries_a_file_and_the_others_say_why_not() {
    for entry in registry() {
        let name = entry.info.name;
        let mut made = create(name, &Map::new()).unwrap();
        match (offer(&mut *made), SchemeFactory::new(name, &Map::new())) {
            (Ok(_), Ok(factory)) => {
                let done = transfer(factory).unwrap_or_else(|| panic!("{name}: the transfer does not end"));
                assert!(done.min_window >= 2 * DATAGRAM, "{name}: {done:?}");
                assert!(done.mbps() < 12.0, "{name}: {done:?}");
            }
            (Err(_), Err(error)) => {
                assert_eq!(error.code, "scheme-unsuitable", "{error}");
                assert!(!error.place.is_empty() && !error.expected.is_empty() && !error.hint.is_empty(), "{error:?}");
            }
            (asked, made) => panic!("{name}: {asked:?}, but {}", if made.is_ok() { "made" } else { "refused" }),
        }
    }
}

/// Thresholds are ours, well below what was measured.
#[test]
fn schemes_keep_their_character() {
    let [reno, cubic, bbr, copa, vegas] =
        ["reno", "cubic", "bbr", "copa", "vegas"].map(|name| transfer(scheme(name)).unwrap());
    for done in [&reno, &cubic, &bbr, &copa, &vegas] {
        assert!(done.mbps() > 6.0, "{done:?}");
    }
    assert!(copa.dropped < reno.dropped && vegas.dropped < reno.dropped, "{copa:?} {vegas:?} {reno:?}");
}

#[test]
fn each_trained_policy_carries_a_file() {
    for name in ["aurora", "eagle", "eagle_v1", "eagle_v2", "indigo"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").join(name);
        let done = transfer(SchemeFactory::policy(&folder).unwrap());
        let done = done.unwrap_or_else(|| panic!("{name}: the transfer does not end"));
        assert!(done.min_window >= 2 * DATAGRAM && done.mbps() < 12.0, "{name}: {done:?}");
    }
}

#[test]
fn a_window_and_a_rate_hold_what_they_say() {
    let params = |text: &str| serde_json::from_str(text).unwrap();
    // 20 packets a round trip of about 42 ms, less headers.
    let window = transfer(SchemeFactory::new("fixed_window", &params(r#"{"cwnd": 20}"#)).unwrap()).unwrap();
    assert!((4.5..5.7).contains(&window.mbps()), "{window:?} {}", window.mbps());
    let rate = transfer(SchemeFactory::new("fixed_rate", &params(r#"{"rate_mbps": 6}"#)).unwrap()).unwrap();
    assert!((4.5..6.0).contains(&rate.mbps()), "{rate:?} {}", rate.mbps());
    assert_eq!((window.dropped, rate.dropped), (0, 0));
}

#[test]
fn equal_transfers_take_equally_long() {
    assert_eq!(transfer(scheme("copa")), transfer(scheme("copa")));
}
