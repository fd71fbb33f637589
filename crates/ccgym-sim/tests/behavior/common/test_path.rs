//! The real sender and receiver over a path that the test changes while it runs: a bottleneck with a rate and a buffer
//! or a token bucket, chosen losses and detours, acknowledgements in batches, an application with a rate. The
//! The simulator's paths cannot follow the state of a scheme, as some published test cases ask, and the loss models of
//! RFC 9438 §5 are deterministic, which no path element is.

use std::collections::{BTreeMap, VecDeque};

use ccgym_core::{Ack, InitContext, Packet, Receiver, ReceiverConfig, Rng, Sender, SenderConfig, TimeSpan, Timestamp};
use ccgym_schemes::testing::{context, scheme};
use serde_json::Value;

use super::{secs, MSS};

/// A packet or acknowledgement on the path.
#[derive(Debug)]
enum Crossing {
    Data(Packet),
    Home(Ack),
}

/// A policer: drops packets without a token, and delays none.
#[derive(Debug)]
pub struct Policer {
    pub mbps: f64,
    pub burst: f64,
    /// Bytes.
    pub tokens: f64,
    pub since: Timestamp,
}

pub struct TestPath {
    pub sender: Sender,
    receiver: Receiver,
    pub now: Timestamp,
    /// Propagation delay of each direction.
    pub one_way: TimeSpan,
    /// Rate of the bottleneck.
    pub mbps: f64,
    /// Max waiting packets at the bottleneck.
    pub buffer: usize,
    pub policer: Option<Policer>,
    /// Rate of the application; `None`: it has data always, or never.
    app_mbps: Option<f64>,
    app_next: Timestamp,
    /// Interval at which acknowledgements leave together.
    pub batch: TimeSpan,
    /// True if acknowledgements wait until [`TestPath::release`].
    pub hold: bool,
    held: Vec<Ack>,
    /// One packet of this many is lost, evenly; zero: none.
    pub lose_every: u64,
    /// Additional delay of packets that now leave the bottleneck.
    pub detour: TimeSpan,
    departures: VecDeque<Timestamp>,
    /// Time at which the bottleneck becomes idle, and its idle time before that.
    busy_until: Timestamp,
    idle_before: TimeSpan,
    crossing: BTreeMap<(Timestamp, u64), Crossing>,
    count: u64,
    /// Packets dropped at the bottleneck or by the test.
    pub dropped: u64,
}

impl TestPath {
    /// Make a path with an RTT of 40 ms.
    pub fn new(scheme: &str, params: &Value, mbps: f64, buffer: usize) -> Self {
        Self::with_window(scheme, params, 10, mbps, buffer)
    }

    /// A round trip without a bottleneck, and a first window of so many packets.
    pub fn wire(scheme: &str, params: &Value, rtt: TimeSpan, initial_window: u32) -> Self {
        let path = Self::with_window(scheme, params, initial_window, f64::INFINITY, usize::MAX);
        Self { one_way: TimeSpan(rtt.0 / 2), ..path }
    }

    fn with_window(name: &str, params: &Value, initial_window: u32, mbps: f64, buffer: usize) -> Self {
        let mut config = SenderConfig::tcp(0, MSS as u32);
        // The driver counts data packets only.
        config.handshake_size = 0;
        config.initial_window = initial_window;
        let initial_window = MSS as u64 * u64::from(initial_window);
        let context = InitContext { initial_window, rng: Rng::stream(1, "scheme", 0), path: None, ..context() };
        let mut sender = Sender::new(config, scheme(name, params), context);
        sender.write(u64::MAX / 2);
        Self {
            sender,
            receiver: Receiver::new(ReceiverConfig::default()),
            now: Timestamp::ZERO,
            one_way: TimeSpan::from_millis(20),
            mbps,
            buffer,
            policer: None,
            app_mbps: None,
            app_next: Timestamp::ZERO,
            batch: TimeSpan::ZERO,
            hold: false,
            held: Vec::new(),
            lose_every: 0,
            detour: TimeSpan::ZERO,
            departures: VecDeque::new(),
            busy_until: Timestamp::ZERO,
            idle_before: TimeSpan::ZERO,
            crossing: BTreeMap::new(),
            count: 0,
            dropped: 0,
        }
    }

    fn cross(&mut self, at: Timestamp, what: Crossing) {
        self.count += 1;
        self.crossing.insert((at, self.count), what);
    }

    fn packet_time(mbps: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(MSS * 8e-6 / mbps)
    }

    /// Return when the packet that arrives at the bottleneck now leaves it.
    fn pass(&mut self) -> Option<Timestamp> {
        if let Some(policer) = &mut self.policer {
            let refill = policer.mbps * 1e6 / 8.0 * self.now.since(policer.since).as_secs_f64();
            policer.tokens = (policer.tokens + refill).min(policer.burst);
            policer.since = self.now;
            if policer.tokens < MSS {
                return None;
            }
            policer.tokens -= MSS;
            return Some(self.now);
        }
        while self.departures.front().is_some_and(|&at| at <= self.now) {
            self.departures.pop_front();
        }
        // The packet in transmission is not waiting.
        if self.departures.len() > self.buffer {
            return None;
        }
        self.idle_before = self.bottleneck_idle();
        self.busy_until = self.busy_until.max(self.now) + Self::packet_time(self.mbps);
        self.departures.push_back(self.busy_until);
        Some(self.busy_until)
    }

    /// Return the idle time of the bottleneck so far.
    pub fn bottleneck_idle(&self) -> TimeSpan {
        self.idle_before + self.now.since(self.busy_until)
    }

    fn send(&mut self, lost: &mut dyn FnMut(Timestamp, u64) -> bool) {
        if let Some(rate) = self.app_mbps {
            while self.app_next <= self.now {
                self.sender.write(1);
                self.app_next = self.app_next.max(self.now) + Self::packet_time(rate);
            }
        }
        while let Some(packet) = self.sender.poll_transmit(self.now) {
            let lost = lost(self.now, packet.number) || self.lose_every > 0 && packet.number % self.lose_every == 0;
            match self.pass().filter(|_| !lost) {
                Some(left) => self.cross(left + self.one_way + self.detour, Crossing::Data(packet)),
                None => self.dropped += 1,
            }
        }
    }

    /// Give the application data without end.
    pub fn greedy(&mut self) {
        self.app_mbps = None;
        self.sender.write(u64::MAX / 2);
    }

    /// Stop the application's data.
    pub fn pause(&mut self) {
        self.app_mbps = None;
        self.sender.withdraw();
    }

    /// Limit the application to `mbps`.
    pub fn app_limit(&mut self, mbps: f64) {
        self.sender.withdraw();
        self.app_mbps = Some(mbps);
        self.app_next = self.now;
    }

    /// Advance the clock by `span` without events.
    pub fn idle(&mut self, span: TimeSpan) {
        self.send(&mut |_, _| false);
        assert!(self.crossing.is_empty(), "something is on its way");
        self.now += span;
    }

    /// Deliver the acknowledgements that waited at once, the newest first.
    pub fn release(&mut self) {
        self.hold = false;
        for ack in std::mem::take(&mut self.held).into_iter().rev() {
            self.cross(self.now, Crossing::Home(ack));
        }
    }

    /// One event later, or, if that is after `until`, then. Whether there was an event.
    fn step_until(&mut self, until: Timestamp, lost: &mut dyn FnMut(Timestamp, u64) -> bool) -> bool {
        self.send(lost);
        let mut next = self.sender.next_timeout();
        if let Some((&(at, _), _)) = self.crossing.first_key_value() {
            next = next.min(at);
        }
        if self.app_mbps.is_some() {
            next = next.min(self.app_next);
        }
        self.now = self.now.max(next).min(until);
        if next > until {
            return false;
        }
        match self.crossing.first_entry().filter(|e| e.key().0 <= self.now) {
            Some(entry) => match entry.remove() {
                Crossing::Data(packet) => {
                    if let (_, Some(ack)) = self.receiver.on_data(self.now, &packet) {
                        let mut home = self.now + self.one_way;
                        if self.batch > TimeSpan::ZERO {
                            home = Timestamp(home.0.div_ceil(self.batch.0) * self.batch.0);
                        }
                        if self.hold {
                            self.held.push(ack);
                        } else {
                            self.cross(home, Crossing::Home(ack));
                        }
                    }
                }
                Crossing::Home(ack) => self.sender.on_ack(self.now, &ack),
            },
            None => self.sender.on_timeout(self.now),
        }
        true
    }

    fn step(&mut self) {
        self.step_until(Timestamp::NEVER, &mut |_, _| false);
    }

    /// Run until `until`; `lost` is asked for each packet with its time and number.
    pub fn run_until(&mut self, until: Timestamp, mut lost: impl FnMut(Timestamp, u64) -> bool) {
        while self.step_until(until, &mut lost) {}
    }

    /// Mean window between two times, in packets: what was acknowledged per round trip.
    pub fn mean_window(&mut self, from: f64, to: f64, mut lost: impl FnMut(Timestamp, u64) -> bool) -> f64 {
        self.run_until(Timestamp(secs(from)), &mut lost);
        let before = self.sender.stats().acked_packets;
        self.run_until(Timestamp(secs(to)), &mut lost);
        (self.sender.stats().acked_packets - before) as f64 * 2.0 * self.one_way.as_secs_f64() / (to - from)
    }

    /// Run until `met` is true after an event; panics if that takes longer than `seconds`.
    pub fn until(&mut self, what: &str, seconds: f64, mut met: impl FnMut(&Self) -> bool) -> TimeSpan {
        let start = self.now;
        while !met(self) {
            self.step();
            let waited = self.now.since(start);
            assert!(waited.as_secs_f64() < seconds, "{what} after {waited:?}: {:?}", self.sender.cca().observables());
        }
        self.now.since(start)
    }

    /// Run for `seconds`, and call `look` after each event; returns the acknowledged rate, Mbit/s.
    pub fn watch(&mut self, seconds: f64, mut look: impl FnMut(&Self)) -> f64 {
        let end = self.now + TimeSpan::from_secs_f64(seconds);
        let before = self.sender.stats().acked_bytes;
        while self.now < end {
            self.step();
            look(self);
        }
        (self.sender.stats().acked_bytes - before) as f64 * 8e-6 / seconds
    }

    pub fn state(&self) -> &'static str {
        self.sender.cca().state()
    }

    pub fn observable(&self, name: &str) -> f64 {
        let all = self.sender.cca().observables();
        all.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("{name} in {all:?}")).1
    }

    /// Return the packets in flight.
    pub fn in_flight(&self) -> f64 {
        self.sender.in_flight() as f64 / MSS
    }

    /// Return the window, packets.
    pub fn window(&self) -> f64 {
        self.sender.control().cwnd as f64 / MSS
    }
}
