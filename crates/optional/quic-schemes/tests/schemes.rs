//! Every registered scheme as a congestion controller of the library: between two ends in memory, over a path with a
//! delay and a bounded queue, in virtual time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_quic::identity::Identity;
use ccgym_quic::peer::{transport, Machine};
use ccgym_quinn::{offer, SchemeFactory};
use ccgym_schemes::{create, registry};
use quinn_proto::{Dir, EndpointConfig, Event, StreamEvent, StreamId};
use serde_json::Map;

/// Address of each end.
const ADDRESS: &str = "192.0.2.1:4433";
const FILE: usize = 1_000_000;
/// Bytes of a datagram in packets of 1500 bytes.
const DATAGRAM: u64 = 1472;
/// 12 Mbit/s.
const NANOS_PER_BYTE: u64 = 667;
/// Delay in each direction.
const DELAY: Duration = Duration::from_millis(20);
/// Bandwidth-delay product, bytes.
const QUEUE: u64 = 60_000;
/// Max virtual time of a transfer.
const LIMIT: Duration = Duration::from_secs(120);

/// One end, and the datagrams on their way to it.
struct End {
    machine: Machine,
    inbox: VecDeque<(Instant, Vec<u8>)>,
}

impl End {
    fn next(&mut self) -> Option<Instant> {
        let timer = self.machine.next_timeout();
        self.inbox.front().map(|(at, _)| *at).into_iter().chain(timer).min()
    }

    /// Process the datagrams that have arrived, and fire timers.
    fn advance(&mut self, now: Instant) {
        while let Some((_, data)) =
            self.inbox.front().is_some_and(|(at, _)| *at <= now).then(|| self.inbox.pop_front()).flatten()
        {
            self.machine.handle(now, &data, ADDRESS.parse().unwrap(), &mut Vec::new());
        }
        self.machine.fire(now);
    }

    /// Return the datagram that leaves now.
    fn transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut data = Vec::new();
        let transmit = self.machine.transmit(now, &mut data)?;
        data.truncate(transmit.size);
        Some(data)
    }
}

/// Result of a transfer.
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

/// Send a file; `None` if it does not end.
fn transfer(factory: SchemeFactory) -> Option<Transfer> {
    let identity = Identity::new(&[3; 32]).unwrap();
    let settings = || {
        let mut settings = EndpointConfig::default();
        settings.rng_seed(Some([7; 32]));
        settings
    };
    let mut controlled = transport(1500).unwrap();
    controlled.congestion_controller_factory(Arc::new(factory));
    let begun = Instant::now();
    let mut now = begun;
    let end = |machine: Result<Machine, _>| End { machine: machine.unwrap(), inbox: VecDeque::new() };
    let address = ADDRESS.parse().unwrap();
    let mut sender = end(Machine::connect(settings(), address, &identity, controlled, now));
    let mut receiver = end(Machine::listen(settings(), &identity, transport(1500).unwrap()));
    let (mut free, mut unsent, mut received) = (now, FILE, 0);
    let mut streams: (Option<StreamId>, Option<StreamId>) = (None, None);
    let mut result = Transfer { took: LIMIT, min_window: u64::MAX, dropped: 0 };
    while now < begun + LIMIT {
        sender.advance(now);
        receiver.advance(now);
        let connection = sender.machine.connection()?;
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
        if let Some(connection) = receiver.machine.connection() {
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
fn each_offered_scheme_carries_a_file_and_the_others_are_refused() {
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

/// Check our thresholds, which are well below measured values.
#[test]
fn schemes_have_the_expected_speed_and_drops() {
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
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../agents").join(name);
        let done = transfer(SchemeFactory::policy(&folder).unwrap());
        let done = done.unwrap_or_else(|| panic!("{name}: the transfer does not end"));
        assert!(done.min_window >= 2 * DATAGRAM && done.mbps() < 12.0, "{name}: {done:?}");
    }
}

#[test]
fn a_fixed_window_and_a_fixed_rate_have_their_speed() {
    let params = |text: &str| serde_json::from_str(text).unwrap();
    // 20 packets per RTT of about 42 ms, without headers.
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
