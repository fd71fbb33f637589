//! A small host that sends consistent events to a scheme, for unit tests of schemes here and in other crates.
//!
//! It keeps one flow's packets, RTT, rate samples and recovery episodes as the transport does; the test decides which
//! packets are acknowledged or lost, and when. It ignores pacing.

use std::collections::VecDeque;

use ccgym_core::congestion_control::{AckedPacket, Capabilities, KnownPath, LostPacket, SentEvent, SpuriousLossEvent};
use ccgym_core::rate_sampler::{RateSampler, SendStamp};
use ccgym_core::sender::MIN_SHORT;
use ccgym_core::{
    AckEvent, CongestionControl, InitContext, Rate, Rng, RttEstimator, TimeSpan, TimeoutEvent, Timestamp,
};
use serde_json::Value;

/// Bytes of a full packet.
pub const MSS: u64 = 1500;

/// Convert milliseconds.
pub const fn ms(value: u64) -> TimeSpan {
    TimeSpan::from_millis(value)
}
/// Time `ms` milliseconds after the start.
pub const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// Max packets in flight, for schemes without a window.
const FLIGHT_LIMIT: usize = 2_000;

/// Return the path for schemes that may know it: 12 Mbit/s and 40 ms, so 40 packets of 1 ms each.
#[must_use]
pub fn path() -> KnownPath {
    KnownPath {
        capacity: vec![(Timestamp::ZERO, Rate::from_mbps(12.0))],
        base_rtt: TimeSpan::from_millis(40),
        flows: 1,
        loss_before: 0.0,
    }
}

/// Return a context for `init`: packets of [`MSS`], an initial window of ten of them, and [`path`].
#[must_use]
pub fn context() -> InitContext {
    InitContext {
        now: Timestamp::ZERO,
        mss: MSS,
        initial_window: 10 * MSS,
        flow: 0,
        rng: Rng::stream(1, "testing", 0),
        path: Some(path()),
    }
}

/// Make the scheme called `name` with parameters from a JSON object; panics on an error.
#[must_use]
pub fn scheme(name: &str, params: &Value) -> Box<dyn CongestionControl> {
    let params = params.as_object().cloned().unwrap_or_default();
    crate::create(name, &params).unwrap_or_else(|error| panic!("{error}"))
}

/// Return an event that acknowledges `packets` full packets at `now`, all else empty.
#[must_use]
pub fn acknowledgement(now: Timestamp, packets: u64, rtt: &RttEstimator) -> AckEvent<'_> {
    let bytes = packets * MSS;
    AckEvent {
        acked_packets: packets,
        acked_bytes: bytes,
        counted_bytes: bytes,
        cwnd_limited: true,
        ..AckEvent::new(now, rtt)
    }
}

/// Read the rows below the heading of `tests/recorded/<name>.csv` as numbers; NaN for an empty field.
/// Panics if a row has another number of fields.
#[cfg(test)]
pub fn recorded<const N: usize>(name: &str) -> Vec<[f64; N]> {
    let path = format!("{}/tests/recorded/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let number = |field: &str| if field.is_empty() { f64::NAN } else { field.parse().expect(field) };
    let row = |line: &str| line.split(',').map(number).collect::<Vec<_>>().try_into().expect("a row of the width");
    text.lines().skip(1).map(row).collect()
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    packet: LostPacket,
    stamp: SendStamp,
    app_limited: bool,
}

/// One event: the oldest `lost` packets are lost and the next `acked` acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestEvent {
    /// Number of packets acknowledged.
    pub acked: usize,
    /// Number of packets lost.
    pub lost: usize,
    /// Number of acknowledged packets with the CE mark.
    pub ce: usize,
    /// True if the receiver delayed the acknowledgement.
    pub delayed: bool,
}

/// The host of one flow.
pub struct MockTransport {
    /// The scheme under test.
    pub scheme: Box<dyn CongestionControl>,
    /// The clock.
    pub now: Timestamp,
    /// `cwnd_limited` of the next events.
    pub cwnd_limited: bool,
    /// Round-trip state.
    pub rtt: RttEstimator,
    capabilities: Capabilities,
    mss: u64,
    flight: VecDeque<InFlight>,
    in_flight: u64,
    next_number: u64,
    largest_acked: u64,
    sampler: RateSampler,
    /// Packet numbers below this belong to the latest recovery episode.
    recovery_end: u64,
    in_recovery: bool,
    /// True if the recovery began with a timeout; it then lasts until as many packets as were lost have arrived.
    after_timeout: bool,
    timeouts: u32,
}

impl MockTransport {
    /// Make a host of `scheme` that has sent its initial window.
    #[must_use]
    pub fn new(scheme: Box<dyn CongestionControl>) -> Self {
        Self::with_context(scheme, context())
    }

    /// Make a host of `scheme` from another context.
    #[must_use]
    pub fn with_context(mut scheme: Box<dyn CongestionControl>, context: InitContext) -> Self {
        let (now, mss) = (context.now, context.mss);
        scheme.init(context);
        let mut host = Self {
            capabilities: scheme.capabilities(),
            scheme,
            now,
            cwnd_limited: true,
            rtt: RttEstimator::default(),
            mss,
            flight: VecDeque::new(),
            in_flight: 0,
            next_number: 0,
            largest_acked: 0,
            sampler: RateSampler::default(),
            recovery_end: 0,
            in_recovery: false,
            after_timeout: false,
            timeouts: 0,
        };
        host.send();
        host
    }

    /// Make a host of the scheme called `name`; see [`scheme`].
    #[must_use]
    pub fn of(name: &str, params: &Value) -> Self {
        Self::new(scheme(name, params))
    }

    /// Make a host with an initial window of `packets`.
    #[must_use]
    pub fn with_window(name: &str, packets: u64, params: &Value) -> Self {
        Self::with_context(scheme(name, params), InitContext { initial_window: packets * MSS, ..context() })
    }

    /// Send as the window allows.
    pub fn send(&mut self) {
        while self.flight.len() < FLIGHT_LIMIT {
            let room = self.scheme.control().cwnd.saturating_sub(self.in_flight);
            let shortens = self.capabilities.short_packets && room >= MIN_SHORT;
            if room < self.mss && !shortens {
                break;
            }
            self.send_one(room.min(self.mss));
        }
    }

    fn send_one(&mut self, bytes: u64) {
        let stamp = self.sampler.on_send(self.now, self.in_flight);
        let app_limited = self.sampler.is_app_limited();
        self.in_flight += bytes;
        let packet = LostPacket { number: self.next_number, bytes, sent: self.now, in_flight_at_send: self.in_flight };
        self.flight.push_back(InFlight { packet, stamp, app_limited });
        self.next_number += 1;
        if self.capabilities.packet_events {
            let LostPacket { number, bytes, sent: now, in_flight_at_send: in_flight } = packet;
            self.scheme.on_packet_sent(&SentEvent { now, number, bytes, in_flight, more: true });
        }
    }

    /// Advance the clock by `span`; the scheme's timers fire on time.
    pub fn advance(&mut self, span: TimeSpan) {
        let until = self.now + span;
        // Fail if a timer never advances.
        let mut calls = 0;
        while self.capabilities.timers && self.scheme.next_timer() <= until {
            self.now = self.now.max(self.scheme.next_timer());
            self.scheme.on_timer(self.now);
            calls += 1;
            assert!(calls < 100_000, "timers without end: {:?}", self.scheme.observables());
        }
        self.now = until;
    }

    /// Process one event now, then send as the window allows.
    pub fn play(&mut self, event: TestEvent) {
        let prior_in_flight = self.in_flight;
        let lost: Vec<_> = (0..event.lost).map_while(|_| self.take()).map(|p| p.packet).collect();
        let acked: Vec<InFlight> = (0..event.acked).map_while(|_| self.take()).collect();
        let lost_bytes = lost.iter().map(|p| p.bytes).sum();
        let acked_bytes: u64 = acked.iter().map(|p| p.packet.bytes).sum();
        self.sampler.on_lost(lost_bytes);
        self.sampler.on_delivered(self.now, acked_bytes);
        let mut rtt_sample = None;
        let mut rate_sample = None;
        if let Some(newest) = acked.last() {
            let sample = self.now.since(newest.packet.sent);
            self.rtt.update(sample, TimeSpan::ZERO);
            rtt_sample = Some(sample);
            self.largest_acked = self.largest_acked.max(newest.packet.number);
            let sample = self.sampler.sample(
                &newest.stamp,
                newest.packet.sent,
                newest.packet.in_flight_at_send,
                newest.app_limited,
                self.rtt.min(),
            );
            rate_sample = sample.filter(|_| self.capabilities.rate_samples);
            self.timeouts = 0;
        }
        // The receiver's clock equals the sender's, and the one-way delay is half of the RTT.
        let receipt = |p: &InFlight| AckedPacket {
            number: p.packet.number,
            bytes: p.packet.bytes,
            sent: p.packet.sent,
            received: Some(p.packet.sent + TimeSpan(self.now.since(p.packet.sent).0 / 2)),
        };
        let receipts: Vec<_> = acked.iter().filter(|_| self.capabilities.packet_events).map(receipt).collect();
        let was_in_recovery = self.in_recovery;
        let entered_recovery = !self.after_timeout && lost.last().is_some_and(|p| p.number >= self.recovery_end);
        if entered_recovery {
            self.recovery_end = self.next_number;
        }
        // An episode ends when all packets sent before it began are acknowledged or lost.
        let unsettled = self.flight.front().map_or(self.next_number, |p| p.packet.number) < self.recovery_end;
        self.in_recovery = entered_recovery || (was_in_recovery && unsettled);
        self.after_timeout &= self.in_recovery;
        self.scheme.on_ack(&AckEvent {
            now: self.now,
            acked_packets: acked.len() as u64,
            acked_bytes,
            counted_bytes: acked_bytes,
            acked: &receipts,
            lost: &lost,
            lost_bytes,
            rtt_sample,
            rtt: &self.rtt,
            rate_sample: rate_sample.as_ref(),
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: self.largest_acked,
            next_packet_number: self.next_number,
            entered_recovery,
            in_recovery: self.in_recovery,
            cwnd_limited: self.cwnd_limited,
            ack_delayed: event.delayed,
            ce_packets: event.ce.min(acked.len()) as u64,
        });
        self.send();
    }

    fn take(&mut self) -> Option<InFlight> {
        let flying = self.flight.pop_front()?;
        self.in_flight -= flying.packet.bytes;
        Some(flying)
    }

    /// Acknowledge the oldest `packets` now, in one event.
    pub fn ack(&mut self, packets: usize) {
        self.play(TestEvent { acked: packets, ..TestEvent::default() });
    }

    /// Acknowledge the oldest packet `rtt` after it was sent, or now if that is past.
    pub fn ack_after(&mut self, rtt: TimeSpan) {
        if let Some(oldest) = self.flight.front() {
            let due = oldest.packet.sent + rtt;
            self.advance(due.since(self.now));
        }
        self.ack(1);
    }

    /// Acknowledge all packets now in flight one by one, each `rtt` after it was sent, `spacing` after the previous.
    pub fn ack_round(&mut self, rtt: TimeSpan, spacing: TimeSpan) {
        for _ in 0..self.flight.len() {
            self.advance(spacing);
            self.ack_after(rtt);
        }
    }

    /// Lose the oldest packet and acknowledge the next three, in one event.
    pub fn lose(&mut self) {
        self.play(TestEvent { lost: 1, acked: 3, ..TestEvent::default() });
    }

    /// Lose one packet and acknowledge the rest of the flight, so that the episode ends.
    pub fn lose_and_recover(&mut self, rtt: TimeSpan) {
        self.lose();
        while self.in_recovery {
            self.ack_after(rtt);
        }
    }

    /// Let the retransmission timer expire: all packets in flight are lost.
    pub fn time_out(&mut self) {
        let prior_in_flight = self.in_flight;
        let lost: Vec<_> = std::iter::from_fn(|| self.take()).map(|p| p.packet).collect();
        self.sampler.on_lost(prior_in_flight);
        self.timeouts += 1;
        self.in_recovery = true;
        self.after_timeout = true;
        self.recovery_end = self.recovery_end.max(self.next_number) + lost.len() as u64;
        self.scheme.on_timeout(&TimeoutEvent {
            now: self.now,
            count: self.timeouts,
            lost: &lost,
            prior_in_flight,
            rtt: &self.rtt,
        });
        self.send();
    }

    /// Report the latest losses as spurious.
    pub fn spurious(&mut self) {
        let delivered = self.sampler.delivered();
        self.scheme.on_spurious_loss(&SpuriousLossEvent { now: self.now, in_flight: self.in_flight, delivered });
        self.send();
    }

    /// Report that the application has no data.
    pub fn app_limit(&mut self) {
        self.sampler.mark_app_limited(self.in_flight);
        self.scheme.on_app_limited(self.now, self.in_flight);
    }

    /// Let `span` pass with nothing in flight, then send again.
    pub fn idle(&mut self, span: TimeSpan) {
        let everything = self.flight.len();
        if everything > 0 {
            self.ack(everything);
            // Drop the packets that this acknowledgement released: the application had nothing to send.
            while self.take().is_some() {}
        }
        self.advance(span);
        self.scheme.on_idle_restart(self.now);
        self.send();
    }

    /// Set the scheme's value that can be steered from outside.
    pub fn steer(&mut self, value: f64) {
        self.scheme.steerable().expect("a scheme that can be steered").steer(value);
    }

    /// Return the window, packets.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.scheme.control().cwnd as f64 / self.mss as f64
    }
    /// Packets in flight.
    #[must_use]
    pub fn packets_in_flight(&self) -> usize {
        self.flight.len()
    }
    /// True during a recovery episode.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.in_recovery
    }
    /// One of the scheme's observables; panics if there is none of that name.
    #[must_use]
    pub fn observable(&self, name: &str) -> f64 {
        let all = self.scheme.observables();
        match all.iter().find(|(key, _)| *key == name) {
            Some((_, value)) => *value,
            None => panic!("no observable {name}, but {all:?}"),
        }
    }
}

impl Clone for MockTransport {
    fn clone(&self) -> Self {
        Self { scheme: self.scheme.clone(), flight: self.flight.clone(), ..*self }
    }
}
