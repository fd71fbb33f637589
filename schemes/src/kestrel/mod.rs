//! Kestrel: a short queue where the flow is alone or among its like, and Cubic where others keep the queue filled.
//!
//! Ours. Once per round trip the flow subtracts its packets in the queue from its window and adds the number that it
//! wants to wait there, as FAST TCP does (Wei, Jin, Low and Hegde, IEEE/ACM ToN 14(6), 2006). That number grows with
//! the square root of the rate, so that equal queues mean equal rates at any RTT. The flow does not guess whether
//! others fill the queue: it removes packets of its own and probes. docs/schemes/kestrel.md has the rules.

mod alone;
mod competition;
mod drain;
mod latest;
mod losses;
mod many_flows;
mod probe;
mod queue_raise;
mod round;
#[cfg(test)]
mod tests;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent, Steerable, Steered};
use ccgym_core::{AckEvent, CongestionControl, Control, Error, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};
use serde_json::Map;

use self::alone::{Alone, LONG_QUEUE_FACTOR};
use self::competition::Competition;
use self::drain::Drain;
use self::latest::Latest;
use self::losses::Losses;
use self::many_flows::ManyFlows;
use self::probe::{Probe, Reason, Verdict, DEEP_PROBE_FACTOR};
use self::queue_raise::QueueRaise;
use self::round::{Next, Round, Seen, Wants};
use crate::cubic::{self, Cubic};
use crate::filters::slots::Slots;
use crate::pacing;
use crate::registry::{parameters, Parameters, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "kestrel",
        label: "Kestrel",
        reference: "ours",
        summary: "Keeps a short queue, and competes as Cubic where other flows keep the queue filled.",
        parameters: parameters! {
            /// Packets to keep in the queue, divided by the square root of the rate in packets/s.
            appetite: number(0.2, (0.001, 100.0), "s^½");
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Kestrel::new(p)?)),
};

/// Min window, packets, except after a timeout.
const MIN_WINDOW: f64 = 2.0;
/// Pacing rate over window per RTT, when alone: high enough to use the window, and too low for long bursts, since flows
/// of shorter RTT would fill the gaps between them.
const PACING_GAIN: f64 = 1.02;
/// Min RTT in computations; before the first sample it makes the pacing rate so high that the initial window leaves at
/// once.
const MIN_RTT: TimeSpan = TimeSpan(1_000);
/// A queue shows within a round if it is at least this part of the base RTT, and at least these seconds.
const VISIBLE: f64 = 1.0 / 8.0;
const VISIBLE_S: f64 = 0.002;
/// Start-up ends if more of the flow's packets wait than this, over the square root of the rate, plus two: next to
/// others that fill the link a flow of few packets must continue.
const START_QUEUE: f64 = 0.75;
const START_PACKETS: f64 = 2.0;
/// A reduction of the window to less than this part need not wait for the end of the round.
const SUDDEN: f64 = 0.7;
/// cwnd over window while packets leave evenly, …
const EVEN_SLACK: f64 = 1.5;
/// … and the part of the window that must be in flight then for the flow to be window-limited.
const EVEN_LIMITED: f64 = 0.8;
/// An RTT above the base RTT by at most this part, or these seconds, confirms the base RTT. More would let it drift up
/// over a queue that is always short.
const SEEN: f64 = 0.005;
const SEEN_S: f64 = 0.000_25;
/// Weight of a round in the noise of round trips.
const NOISE_WEIGHT: f64 = 1.0 / 8.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Alone,
    Competition,
}

/// Make a filter for the extreme of the last ten to twenty seconds; `nothing` is its value before the first sample.
fn recent(nothing: f64, better: fn(f64, f64) -> f64) -> Slots<f64> {
    let mut slots = Slots::new(TimeSpan::from_millis(10_000), 2, better);
    slots.restart(Timestamp::ZERO, nothing);
    slots
}

#[derive(Clone)]
pub struct Kestrel {
    appetite: f64,
    /// Multiple of the appetite, set from outside.
    gain: f64,
    queue_raise: QueueRaise,
    many_flows: ManyFlows,
    /// Wire bytes of a packet.
    mss: f64,
    mode: Mode,
    /// cwnd, packets, and the previous one: packets acknowledged in a round had left with that.
    window: f64,
    before: f64,
    /// The window before a reduction within the round, packets.
    cut_from: Option<f64>,
    initial_window: f64,
    /// Max window of start-up, packets.
    ssthresh: f64,
    drain: Drain,
    round: Round,
    latest: Latest,
    base: Slots<f64>,
    base_seen: Timestamp,
    /// Mean difference of the RTT from round to round, and the last RTT, seconds.
    noise: f64,
    last_rtt: f64,
    losses: Losses,
    probe: Option<Probe>,
    alone: Alone,
    competition: Competition,
    pacing_rate: Rate,
    srtt: TimeSpan,
}

impl Kestrel {
    fn new(p: &Parameters) -> Result<Self, Error> {
        let cubic = Cubic::new(&Parameters::resolve(&cubic::ENTRY.info, &Map::new())?);
        Ok(Self {
            appetite: p.number("appetite"),
            gain: 1.0,
            queue_raise: QueueRaise::default(),
            many_flows: ManyFlows::default(),
            mss: 1.0,
            mode: Mode::Startup,
            window: 0.0,
            before: 0.0,
            cut_from: None,
            initial_window: 0.0,
            ssthresh: f64::INFINITY,
            drain: Drain::new(Timestamp::ZERO, false),
            round: Round::new(Timestamp::ZERO, 0),
            latest: Latest::default(),
            base: recent(f64::INFINITY, f64::min),
            base_seen: Timestamp::ZERO,
            noise: 0.0,
            last_rtt: 0.0,
            losses: Losses::default(),
            probe: None,
            alone: Alone::default(),
            competition: Competition::new(cubic),
            pacing_rate: Rate::ZERO,
            srtt: TimeSpan::ZERO,
        })
    }

    /// Set the window; the next round shows the effect of the current one.
    fn set(&mut self, window: f64) {
        self.before = self.cut_from.take().unwrap_or(self.window);
        self.window = window.max(MIN_WINDOW);
    }

    fn enter_alone(&mut self, now: Timestamp, rate: f64) {
        self.mode = Mode::Alone;
        self.alone.enter(now, rate);
    }

    /// Compete from this window, after a slow start up to a larger ssthresh.
    fn compete(&mut self, now: Timestamp, window: f64, ssthresh: f64, queue: f64) {
        self.mode = Mode::Competition;
        self.window = window.max(MIN_WINDOW);
        self.before = self.window;
        self.cut_from = None;
        self.competition.enter(now, self.window, ssthresh.max(self.window), queue);
    }

    /// Stop competing, since no other flow seems to fill the queue; probation follows.
    fn leave_competition(&mut self, now: Timestamp, rate: f64, window: f64) {
        self.enter_alone(now, rate);
        self.alone.on_probation(now, window);
    }

    /// Restart the base RTT from this one.
    fn restart_base(&mut self, now: Timestamp, rtt: f64) {
        self.base.restart(now, rtt);
        self.base_seen = now;
    }

    fn begin(&mut self, probe: Probe) {
        self.set(probe.reduced);
        self.probe = Some(probe);
    }

    /// Return the min RTT of the last ten to twenty seconds, seconds; infinite before the first sample.
    fn base_rtt(&self) -> f64 {
        self.base.get().unwrap_or(f64::INFINITY)
    }

    /// True if start-up must end, by the RTT of packets that left with half of the window.
    fn overshoots(&self, rtt: f64) -> bool {
        let (base, window) = (self.base_rtt(), self.window / 2.0);
        let queue = rtt - base;
        queue > (VISIBLE * base).max(VISIBLE_S)
            && (window * queue / rtt > START_QUEUE * (window / rtt).sqrt() + START_PACKETS
                || self.losses.exceed(self.round.lost, self.round.acked + self.round.lost, true))
    }

    /// Return the packets that the flow wants in the queue at this rate, packets/s.
    fn wants(&self, now: Timestamp, rate: f64) -> Wants {
        let own = self.appetite * rate.sqrt();
        let gain = self.many_flows.gain(now, self.gain);
        let packets = |gain: f64| (gain * self.alone.pressure * own).max(1.0);
        Wants { own, lasting: packets(gain), now: packets(gain.max(self.queue_raise.gain)) }
    }

    /// Reduce the window within a round: the link is much slower, and rounds are so long that waiting would hurt.
    fn cut(&mut self, now: Timestamp, rtt: f64) {
        let base = self.base_rtt();
        let wanted = self.wants(now, self.before / rtt).now;
        let window = (self.before * base / rtt + LONG_QUEUE_FACTOR * wanted).max(MIN_WINDOW);
        if rtt - base > (VISIBLE * base).max(VISIBLE_S) && window < SUDDEN * self.window {
            self.cut_from.get_or_insert(self.window);
            self.window = window;
        }
    }

    fn see(&mut self, now: Timestamp, round: &Round) -> Seen {
        self.base.update(now, round.min);
        let base = self.base_rtt();
        let settled = self.mode == Mode::Alone && self.probe.is_none();
        let rtt = if settled { round.standing(base) } else { round.min };
        let (queue, rate) = (rtt - base, self.before / rtt);
        let wants = self.wants(now, rate);
        let (waiting, spread) = (self.before * queue / rtt, round.max - round.min);
        if self.mode == Mode::Alone {
            self.queue_raise.pass(rate, self.alone.is_empty());
        }
        if round.min - base < (SEEN * base).max(SEEN_S) {
            self.base_seen = now;
        }
        let sent = round.acked + round.lost;
        let loss = round.lost as f64 / sent as f64;
        let excess = self.losses.exceed(round.lost, sent, self.mode == Mode::Startup);
        if !excess && waiting < wants.now / 2.0 {
            self.losses.learn(round.lost, sent);
        }
        if self.probe.is_none() && self.mode != Mode::Startup {
            if self.last_rtt > 0.0 {
                self.noise += NOISE_WEIGHT * ((rtt - self.last_rtt).abs() - self.noise);
            }
            self.last_rtt = rtt;
        } else {
            self.last_rtt = 0.0;
        }
        let (window, limited, lost, noise) = (self.before, round.limited, round.lost, self.noise);
        Seen { now, base, rtt, spread, queue, window, rate, waiting, wants, loss, lost, excess, limited, noise }
    }

    fn on_round(&mut self, now: Timestamp, round: &Round) {
        let seen = self.see(now, round);
        if let Some(mut probe) = self.probe.take() {
            probe.rounds += 1;
            if probe.is_over() {
                self.conclude(&probe, &seen);
                if self.probe.is_none() {
                    self.before = self.window;
                }
            } else {
                // A probe for the base RTT only needs the queue to be empty for a moment.
                let back = if probe.reason == Reason::Age { probe.back } else { self.window };
                self.set(back);
                self.probe = Some(probe);
            }
            return;
        }
        let next = match self.mode {
            Mode::Startup => self.start(&seen),
            Mode::Alone => self.alone.next(&seen, self.window, self.appetite, &mut self.base_seen),
            Mode::Competition => {
                self.window = self.competition.cubic.control().cwnd as f64 / self.mss;
                self.before = self.window;
                self.competition.next(&seen, self.window)
            }
        };
        match next {
            Next::Hold => self.set(self.window),
            Next::Window(window) => self.set(window),
            Next::Probe(probe) => self.begin(probe),
            Next::Compete(window) => self.compete(now, window, window, seen.queue),
            Next::Leave { longer } => {
                if longer {
                    self.restart_base(now, seen.rtt);
                }
                self.leave_competition(now, seen.rate, self.window);
            }
        }
    }

    fn start(&mut self, seen: &Seen) -> Next {
        if seen.excess && seen.queue < VISIBLE_S && self.window < 2.0 * self.initial_window {
            // The first packets leave unpaced, and some queues have no room for them.
            return Next::Hold;
        }
        let blocked = self.overshoots(seen.rtt) || seen.excess;
        if !blocked && self.window < self.ssthresh {
            return Next::Hold;
        }
        // The packets acknowledged last had left one RTT earlier, with half of the window.
        let window = if blocked { self.window / 2.0 } else { self.window };
        self.drain = Drain::new(seen.now, seen.excess);
        Next::Probe(Probe::new(Reason::Started, DEEP_PROBE_FACTOR * window, window, seen.queue, seen.rtt))
    }

    fn conclude(&mut self, probe: &Probe, seen: &Seen) {
        let now = seen.now;
        let few = seen.waiting < 0.5 * seen.wants.own;
        let verdict = probe.judge(seen, self.alone.span(), few, self.competition.floor, self.window);
        match (probe.reason, verdict) {
            (Reason::Started, Verdict::Own) => {
                self.enter_alone(now, seen.rate);
                self.set(self.drain.window(seen.base, probe.back));
            }
            (Reason::Started, Verdict::Again(window)) => {
                let again = Probe::new(Reason::Started, DEEP_PROBE_FACTOR * window, window, seen.queue, seen.rtt);
                self.begin(Probe { tries: probe.tries + 1, competition: probe.competition, ..again });
            }
            (Reason::Started, _) => {
                // Like a new Cubic flow; bursts of acknowledgements only look like competitors.
                let ssthresh = if seen.spread < seen.queue { f64::INFINITY } else { probe.competition };
                self.compete(now, probe.competition, ssthresh, probe.queue);
            }
            (Reason::Standing, Verdict::Own) => {
                self.enter_alone(now, probe.back / seen.base);
                self.set(probe.back);
            }
            (Reason::Standing, Verdict::Longer) => {
                self.restart_base(now, seen.rtt);
                self.enter_alone(now, seen.rate);
                self.set(self.alone.standing_window);
            }
            (Reason::Standing, _) if probe.queue <= self.alone.short => self.set(probe.back),
            (Reason::Standing, _) => {
                let window = self.alone.standing_window;
                self.compete(now, window, window, probe.queue);
            }
            (Reason::Age, verdict) => {
                if verdict == Verdict::Longer {
                    self.restart_base(now, seen.rtt);
                    self.enter_alone(now, seen.rate);
                } else {
                    self.many_flows.probe(now, seen.queue, probe.queue);
                }
                self.set(probe.back);
            }
            (Reason::Competing, Verdict::Own | Verdict::Longer) => {
                if verdict == Verdict::Longer {
                    self.restart_base(now, seen.rtt);
                }
                self.leave_competition(now, probe.back / probe.rtt, probe.back);
                self.set(self.window + seen.wants.now);
            }
            (Reason::Competing, _) => {
                self.competition.stay(seen.rtt);
                self.window = probe.back;
            }
        }
    }

    /// True if packets leave evenly, by the pacing rate alone: after recent losses a queue may have no room for two
    /// packets that follow closely, as they do behind a window.
    fn is_even(&self) -> bool {
        self.mode == Mode::Alone && self.alone.pressure < 1.0
    }

    fn publish(&mut self) {
        let gain = match self.mode {
            Mode::Startup => pacing::SLOW_START_GAIN,
            Mode::Alone if self.is_even() => 1.0,
            Mode::Alone => PACING_GAIN,
            Mode::Competition => pacing::AVOIDANCE_GAIN,
        };
        self.pacing_rate = pacing::rate(self.window * self.mss, self.srtt.max(MIN_RTT), gain);
    }
}

impl CongestionControl for Kestrel {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss as f64;
        self.window = context.initial_window as f64 / self.mss;
        self.before = self.window;
        self.initial_window = self.window;
        self.base_seen = context.now;
        self.round = Round::new(context.now, 0);
        self.competition.cubic.init(context);
        self.publish();
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.srtt = event.rtt.smoothed();
        let mut latest = None;
        if let Some(sample) = event.rtt_sample {
            let rtt = sample.max(MIN_RTT).0 as f64 * 1e-9;
            self.round.sample(event.now, rtt);
            let base = (self.mode != Mode::Startup).then_some(self.base_rtt());
            latest = self.latest.sample(event.now, rtt, base);
        }
        self.round.count(event);
        if self.mode == Mode::Startup {
            self.drain.count(event.now, event.acked_packets);
        }
        self.round.limited |= self.is_even() && event.prior_in_flight as f64 >= EVEN_LIMITED * self.window * self.mss;
        let starting = self.mode == Mode::Startup && self.probe.is_none();
        if starting && event.cwnd_limited {
            self.window = (self.window + event.acked_bytes as f64 / self.mss).min(self.ssthresh.max(self.window));
        }
        if self.mode == Mode::Competition {
            self.competition.cubic.on_ack(event);
            // A loss answers the question of a probe.
            if event.entered_recovery && self.probe.take().is_some() {
                self.before = self.competition.cubic.control().cwnd as f64 / self.mss;
            }
            if self.probe.is_none() {
                self.window = self.competition.cubic.control().cwnd as f64 / self.mss;
            }
        }
        // Act within the round: one round later a growing queue would be much longer.
        match (latest, self.mode) {
            (Some(rtt), Mode::Startup) if starting && self.overshoots(rtt) => self.round.cut(rtt),
            (Some(rtt), Mode::Alone) if self.probe.is_none() => self.cut(event.now, rtt),
            _ => {}
        }
        if let Some(round) = self.round.ended_by(event, self.mode == Mode::Startup) {
            self.on_round(event.now, &round);
        }
        self.publish();
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        if event.count <= 1 {
            self.ssthresh = (self.window / 2.0).max(MIN_WINDOW);
        }
        self.mode = Mode::Startup;
        self.probe = None;
        self.window = 1.0;
        self.before = 1.0;
        self.cut_from = None;
        self.competition.cubic.on_timeout(event);
        self.publish();
    }

    fn on_spurious_loss(&mut self, event: &SpuriousLossEvent) {
        if self.mode == Mode::Competition {
            self.competition.cubic.on_spurious_loss(event);
        }
    }

    fn control(&self) -> Control {
        let slack = if self.is_even() { EVEN_SLACK } else { 1.0 };
        Control { pacing_rate: self.pacing_rate, ..Control::window((slack * self.window * self.mss) as u64) }
    }

    fn state(&self) -> &'static str {
        match (self.mode, self.probe) {
            (_, Some(_)) => "look",
            (Mode::Startup, None) => "startup",
            (Mode::Alone, None) => "alone",
            (Mode::Competition, None) => "company",
        }
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window),
            ("base_rtt_ms", self.base_rtt() * 1e3),
            ("gain", self.gain),
            ("velocity", self.alone.velocity()),
            ("pressure", self.alone.pressure),
            ("usual_loss", self.losses.usual),
        ]
    }

    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        Some(self)
    }
}

impl Steerable for Kestrel {
    fn steered(&self) -> Steered {
        Steered::Gain
    }

    fn steer(&mut self, value: f64) {
        self.gain = value;
    }
}
