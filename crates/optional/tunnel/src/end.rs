//! One end of a run between two machines: the senders of all flows or their receivers, and a tunnel to the other end.
//!
//! The ends meet, ask each other for the time, and agree on the run's time zero; then each uses its own clock. Each end
//! produces half of the result; [`join`](crate::join()) combines both.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use ccgym_net::error::{Error, Result};
use ccgym_net::run::{
    encode, start_receivers, start_senders, Backend, Ended, FlowEndpoints, MakeGuests, Plan, Prepared,
};
use ccgym_net::system::endpoints::INGRESS;
use ccgym_net::system::{system_info, Endpoint, IdleSpinner, Side};
use ccgym_net::Clock;
use serde::{Deserialize, Serialize};

use crate::join::{HalfClock, HalfResult};
use crate::message::{secret, Message};
use crate::rendezvous::{meet, Meeting};
use crate::{Link, TUNNEL_MTU};

/// Backend of a path to another machine: this process is one of its two ends.
pub const REMOTE: Backend = Backend {
    kind: "remote",
    in_user_namespace: true,
    carry_out: |plan, make_guests| encode(&execute(plan, make_guests)?),
    examine: Vec::new,
};

/// Role of an end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// Senders of all flows.
    Senders,
    /// Receivers of all flows.
    Receivers,
}

/// End of a tunnel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelEnd {
    /// Role of this end.
    pub end: Half,
    /// Secret of both ends, 32 hexadecimal digits.
    pub secret: String,
    /// Address and port on which to wait for the other end; port 0: any.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// Address and port of the other end, if that one waits.
    #[serde(default)]
    pub connect: Option<SocketAddr>,
    /// Network device that the tunnel is bound to.
    #[serde(default)]
    pub interface: Option<String>,
    /// File that gets the port on which this end waits, as `{"listening": PORT}`.
    #[serde(default)]
    pub status: Option<PathBuf>,
}

/// Time before time zero for setting up the flows, in addition to some round trips.
const LEAD: Duration = Duration::from_millis(1500);
/// Round trips for setting up: handshakes, some of them lost.
const ROUND_TRIPS: u32 = 10;
/// Max time for the ends to agree after they have met.
const AGREEING: Duration = Duration::from_secs(30);
/// Interval at which a message is repeated.
const AGAIN: Duration = Duration::from_millis(200);
/// Time for which receivers stay after the run, for packets in flight, in addition to the RTT.
const LINGER: Duration = Duration::from_millis(500);

/// Run one end.
fn execute(plan: Plan, make_guests: MakeGuests<'_>) -> Result<HalfResult> {
    let end: TunnelEnd = plan.backend.settings()?;
    let step = || "checking the plan".to_owned();
    let Some(secret) = secret(&end.secret) else {
        return Err(Error::of("argument-missing", step(), "the tunnel's secret").expected("32 hexadecimal digits"));
    };
    let meeting = match (end.listen, end.connect) {
        (Some(at), None) => Meeting::Listen(at, end.status.as_deref()),
        (None, Some(to)) => Meeting::Connect(to),
        _ => {
            return Err(
                Error::of("exactly-one", step(), "the tunnel's addresses").expected("either `listen` or `connect`")
            )
        }
    };
    let mut prepared = Prepared::load(plan, make_guests)?;
    // The ends of QUIC flows need a common secret, which they cannot exchange: it is the tunnel's, repeated.
    prepared.quic.secret = std::array::from_fn(|i| secret[i % secret.len()]);
    let prepared = Arc::new(prepared);
    let socket = meet(meeting, &secret, end.interface.as_deref())?;
    // Times of this end start here.
    let clock = Clock::start();
    let side = if end.end == Half::Senders { Side::Inside } else { Side::Outside };
    let endpoint = Endpoint::alone(side, TUNNEL_MTU)?;
    let flows = prepared.flows().len() as u32;
    let mut link = Link::start(socket, endpoint.port.clone(), clock, secret, end.end == Half::Senders, flows)?;
    let _awake = IdleSpinner::start();
    let heard = link.ask()?;
    let one = This { prepared, endpoint, clock };
    match end.end {
        Half::Senders => one.send(link, &heard),
        Half::Receivers => one.receive(link, &heard),
    }
}

/// Local state of an end.
struct This {
    prepared: Arc<Prepared>,
    endpoint: Endpoint,
    clock: Clock,
}

impl This {
    fn flow_endpoints(&self, lead: Duration) -> FlowEndpoints {
        let (own, other) = (self.endpoint.address, self.endpoint.peer());
        let inside = self.endpoint.device == INGRESS;
        FlowEndpoints {
            inside: self.endpoint.namespace.clone(),
            outside: self.endpoint.namespace.clone(),
            address: if inside { other } else { own },
            inside_address: Some(if inside { own } else { other }),
            handshake: lead,
            backlog: None,
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_nanos(self.prepared.plan.spec.duration.0)
    }

    /// Run the end with the senders, which sets time zero.
    fn send(self, mut link: Link, heard: &[(Message, u64)]) -> Result<HalfResult> {
        let round_trip = Duration::from_nanos(link.first_estimate().0);
        let lead = (LEAD + round_trip * ROUND_TRIPS) * self.prepared.plan.patience();
        let run = Clock::starting_in(lead);
        let zero = run.monotonic(Timestamp::ZERO) - self.clock.monotonic(Timestamp::ZERO);
        let deadline = Instant::now() + AGREEING.min(lead);
        let mut listening = heard.iter().any(|&(message, _)| message == Message::Listening);
        while !listening {
            link.say(Message::Zero(zero))?;
            listening =
                link.hears(Instant::now() + AGAIN, |message| (message == Message::Listening).then_some(()))?.is_some();
            if !listening && Instant::now() > deadline {
                return Err(unanswered("the receivers do not say that they are ready", round_trip));
            }
        }
        let left = run.until(Timestamp::ZERO).map_or(Duration::ZERO, |span| Duration::from_nanos(span.0));
        let senders = start_senders(&self.prepared, &self.flow_endpoints(left), run)?;
        if run.has_started() {
            let found = format!("not done within {:.1} s", lead.as_secs_f64());
            return Err(Error::of("run-stalled", "setting up the flows", found)
                .hint("one of the machines is too busy for a run in real time, or the path loses too much"));
        }
        let ended = Ended::of(senders.join()?, Vec::new());
        run.sleep_until(Timestamp::ZERO + self.prepared.plan.spec.duration);
        // ACKs of the last packets do not count, but the packets for the clocks in both directions do.
        thread::sleep(round_trip);
        self.half(link, run, ended)
    }

    /// Run the end with the receivers, by its own clock and the offset estimated so far.
    fn receive(self, mut link: Link, heard: &[(Message, u64)]) -> Result<HalfResult> {
        let zero = |&(message, _): &(Message, u64)| if let Message::Zero(at) = message { Some(at) } else { None };
        let deadline = Instant::now() + AGREEING;
        let found = match heard.iter().find_map(zero) {
            Some(at) => Some(at),
            None => link.hears(deadline, |message| zero(&(message, 0)))?,
        };
        let (round_trip, offset) = link.first_estimate();
        let Some(at) = found else {
            return Err(unanswered("the senders do not say when to start", Duration::from_nanos(round_trip)));
        };
        // `offset` is the senders' clock minus ours.
        let here = at.saturating_add_signed(-offset);
        let lead = here.saturating_sub(self.clock.now().0);
        let run = Clock::starting_in(Duration::from_nanos(lead));
        let receivers = start_receivers(&self.prepared, &self.flow_endpoints(Duration::from_nanos(lead)), run)?;
        link.say(Message::Listening)?;
        let end =
            Instant::now() + Duration::from_nanos(lead) + self.duration() + Duration::from_nanos(round_trip) + LINGER;
        // The senders repeat their message until the answer arrives.
        while link.hears(end, |message| zero(&(message, 0)))?.is_some() {
            link.say(Message::Listening)?;
        }
        self.half(link, run, Ended::of(Vec::new(), receivers.end()?))
    }

    fn half(self, link: Link, run: Clock, ended: Ended) -> Result<HalfResult> {
        let log = link.stop()?;
        let drops = self.endpoint.port.drops()?;
        Ok(HalfResult {
            clock: HalfClock {
                zero: run.monotonic(Timestamp::ZERO) - self.clock.monotonic(Timestamp::ZERO),
                epoch_ms: self.clock.epoch_ms(Timestamp::ZERO),
            },
            device_drops: drops.outgoing + drops.incoming + log.dropped,
            rejected: log.rejected,
            log,
            ended,
            limited: self.prepared.fell_behind(),
            system: system_info(&self.endpoint.namespace)?,
        })
    }
}

fn unanswered(found: &str, round_trip: Duration) -> Error {
    let found = format!("{found} (round trip {:.1} ms)", round_trip.as_secs_f64() * 1e3);
    Error::of("no-answer", "agreeing on the start of the run", found)
        .expected("an answer of the other end, which did answer before")
        .hint("the other machine says what went wrong there, or the path between them stopped")
}
