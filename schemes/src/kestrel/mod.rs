//! Kestrel: a short queue where the flow is alone or among its like, and Cubic where others keep the queue filled.
//!
//! Ours. Once per round trip it removes from the window what waits in the queue, and adds what it wants to wait there (as
//! FAST TCP does: Wei, Jin, Low and Hegde, IEEE/ACM ToN 14(6), 2006); that amount grows with the square root of the rate,
//! so that equal queues mean equal rates whatever the round trips. Whether others fill the queue is not guessed: the flow
//! removes its own packets for a round trip and looks.

mod recent;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};
use serde_json::Map;

use self::recent::Recent;
use crate::cubic::{self, Cubic};
use crate::pacing;
use crate::registry::{Parameter, Parameters, SchemeEntry, SchemeError, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "kestrel",
        label: "Kestrel",
        reference: "ours",
        summary: "Keeps a short queue, and competes as Cubic where others keep the queue filled.",
        style: None,
        parameters: &[Parameter::number(
            "appetite",
            0.2,
            (0.001, 100.0),
            "s^½",
            "Packets to keep waiting in the queue, over the square root of the rate in packets/s.",
        )],
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Kestrel::new(p)?)),
};

const MIN_WINDOW: f64 = 2.0;
const NOISE: f64 = 2.0;
/// Packets that start-up may queue, over the square root of the rate.
const START_QUEUE: f64 = 0.75;
const CEILING_ROUNDS: f64 = 16.0;
const CEILING_S: f64 = 1.0;
const BOOST: f64 = 2.5;
const BLOCK: TimeSpan = TimeSpan::from_millis(60);
const TREND_ROUNDS: u32 = 8;
/// Max growth per round: the window over this.
const GROWTH: f64 = 6.0;
/// A round has at least this many samples, or lasts `LONG_ROUND` windows.
const ROUND_SAMPLES: u32 = 16;
const LONG_ROUND: u32 = 4;
/// A queue is short for the purpose of start-up below this part of the base RTT, or these seconds.
const SHORT: f64 = 1.0 / 8.0;
const SHORT_S: f64 = 0.002;
/// Rounds, and seconds, of a queue that is not the flow's before it looks whose it is.
const PATIENCE_ROUNDS: u32 = 8;
const PATIENCE_S: f64 = 1.0;
/// Seconds after which the base RTT must have been seen again.
const BASE_AGE_S: f64 = 2.5;
/// The part of the window that is left for a round in which the base RTT is looked for.
const DEEP: f64 = 0.7;
/// A queue that shrinks to this part when the flow removes its packets was its own.
const OWN: f64 = 0.3;
/// What is forgiven beyond usual losses.
const EXCESS: f64 = 0.02;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Alone,
    Company,
}

/// Why the flow looks at what its packets contribute to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    /// Start-up ended.
    Started,
    /// A queue stands for long.
    Standing,
    /// The base RTT was not seen for long.
    Age,
    /// It competes, and may be alone.
    Competing,
}

/// Such a look: the window is reduced for a round; the round after that shows the effect.
#[derive(Clone, Copy, Debug)]
struct Look {
    reason: Reason,
    /// Rounds that have ended since the reduction.
    rounds: u32,
    /// The window to go back to, packets, and the one to compete with.
    window: f64,
    company: f64,
    tries: u32,
    /// Before: seconds of queue, and round trip.
    queue: f64,
    rtt: f64,
    /// Seconds of queue that the flow takes for its own or of its like.
    short: f64,
}

/// Part of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    began: Timestamp,
    samples: u32,
    min: f64,
}

impl Round {
    fn new(now: Timestamp, end: u64) -> Self {
        let block = Block { began: now, samples: 0, min: f64::INFINITY };
        Self { end, began: now, min: f64::INFINITY, block, ..Self::default() }
    }

    fn sample(&mut self, now: Timestamp, rtt: f64) {
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.samples += 1;
        if self.block.samples >= ROUND_SAMPLES && now.since(self.block.began) >= BLOCK {
            self.end_block(now);
        }
        self.block.samples += 1;
        self.block.min = self.block.min.min(rtt);
    }

    fn end_block(&mut self, now: Timestamp) {
        self.sum += self.block.min;
        self.blocks += 1;
        self.block = Block { began: now, samples: 0, min: f64::INFINITY };
    }

    /// The round trip without what comes and goes: the mean over blocks of their minima.
    fn standing(&self) -> f64 {
        if self.blocks == 0 {
            self.min
        } else {
            self.sum / f64::from(self.blocks)
        }
    }
}

/// The round under way.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    end: u64,
    began: Timestamp,
    passes: u32,
    samples: u32,
    min: f64,
    max: f64,
    /// Blocks of a round have equal lengths in time, whatever the round trip: flows on one link see the same queue.
    block: Block,
    blocks: u32,
    sum: f64,
    acked: u64,
    lost: u64,
    limited: bool,
}

#[derive(Clone)]
pub struct Kestrel {
    /// The parameter, and what it is multiplied by.
    own_appetite: f64,
    appetite: f64,
    mss: f64,
    mode: Mode,
    /// Packets.
    window: f64,
    /// The one before the latest change: what a round's samples show.
    before: f64,
    threshold: f64,
    initial: f64,
    round: Round,
    base: Recent,
    /// The minimum of the last few samples.
    recent: f64,
    rate: Recent,
    /// Multiple of the packets wanted in the queue that is added while too few wait.
    velocity: f64,
    /// Part of the appetite that losses leave.
    pressure: f64,
    /// A flow that has just begun asks for more, and reaches its share sooner.
    boost: f64,
    /// The round trip that it met; zero as soon as it was found to hold a queue of others.
    first_rtt: f64,
    usual_loss: f64,
    look: Option<Look>,
    /// Since when the queue is not short, in rounds and time, the window and the span of round trips then.
    standing_rounds: u32,
    standing_since: Timestamp,
    standing_window: f64,
    spans: [f64; 4],
    short: f64,
    /// How much the round trip changes from round to round, seconds.
    noise: f64,
    last_rtt: f64,
    /// Rounds since something waited.
    empty_rounds: u32,
    /// Packets that were too many, and until when that is remembered.
    ceiling: f64,
    ceiling_until: Timestamp,
    last_queue: f64,
    trend: (f64, f64),
    trend_before: (f64, f64),
    trend_rounds: u32,
    yielded: u32,
    yielded_from: f64,
    yielded_since: Timestamp,
    age: f64,
    span: (f64, f64),
    base_seen: Timestamp,
    /// Competing: the longest queue at a loss, when the queue was last seen, and the rounds since a look or a loss.
    peak: f64,
    queue_seen: Timestamp,
    quiet_rounds: u32,
    between: u32,
    /// The round trip that the last look while competing left.
    floor: f64,
    /// Competing: a round trip, and the window when it was first like that.
    mark: (f64, f64),
    probation: Timestamp,
    cubic: Cubic,
    pacing_rate: Rate,
    srtt: TimeSpan,
}

impl Kestrel {
    fn new(p: &Parameters) -> Result<Self, SchemeError> {
        let cubic = Cubic::new(&Parameters::resolve(&cubic::ENTRY.info, &Map::new())?);
        Ok(Self {
            own_appetite: p.number("appetite"),
            appetite: p.number("appetite"),
            mss: 1.0,
            mode: Mode::Startup,
            window: 0.0,
            before: 0.0,
            threshold: f64::INFINITY,
            initial: 0.0,
            round: Round::new(Timestamp::ZERO, 0),
            base: Recent::minimum(),
            recent: f64::INFINITY,
            rate: Recent::maximum(),
            velocity: 1.0,
            pressure: 1.0,
            boost: 1.0,
            first_rtt: 0.0,
            usual_loss: 0.0,
            look: None,
            standing_rounds: 0,
            standing_since: Timestamp::ZERO,
            standing_window: 0.0,
            spans: [0.0; 4],
            short: 0.0,
            noise: 0.0,
            last_rtt: 0.0,
            empty_rounds: 0,
            ceiling: 0.0,
            ceiling_until: Timestamp::ZERO,
            last_queue: 0.0,
            trend: (0.0, 0.0),
            trend_before: (0.0, 0.0),
            trend_rounds: 0,
            yielded: 0,
            yielded_from: 0.0,
            yielded_since: Timestamp::ZERO,
            age: BASE_AGE_S,
            span: (0.0, f64::INFINITY),
            base_seen: Timestamp::ZERO,
            peak: 0.0,
            queue_seen: Timestamp::ZERO,
            quiet_rounds: 0,
            between: 16,
            floor: 0.0,
            mark: (0.0, 0.0),
            probation: Timestamp::ZERO,
            cubic,
            pacing_rate: Rate::ZERO,
            srtt: TimeSpan::ZERO,
        })
    }

    fn set(&mut self, window: f64) {
        self.before = self.window;
        self.window = window.max(MIN_WINDOW);
    }

    fn enter_alone(&mut self, now: Timestamp, rate: f64) {
        self.mode = Mode::Alone;
        self.velocity = 1.0;
        self.standing_rounds = 0;
        self.yielded = 0;
        self.trend_before = (0.0, 0.0);
        self.rate.restart(now, rate);
    }

    fn enter_company(&mut self, now: Timestamp, window: f64, queue: f64) {
        self.mode = Mode::Company;
        self.window = window.max(MIN_WINDOW);
        self.before = self.window;
        self.cubic.resume(self.window);
        self.peak = queue;
        self.queue_seen = now;
        self.quiet_rounds = 0;
        self.between = 16;
        self.look = None;
    }

    /// Whether slow start shall end, by the round trip of packets that left with half of the window.
    fn overshoots(&self, rtt: f64) -> bool {
        let (base, window) = (self.base.get(), self.window / 2.0);
        let queue = rtt - base;
        queue > (SHORT * base).max(SHORT_S)
            && window * queue / rtt > START_QUEUE * (window / rtt).sqrt() + 2.0
    }

    /// It seems to be alone. For a while it may be wrong.
    fn leave_company(&mut self, now: Timestamp, rate: f64, window: f64) {
        self.enter_alone(now, rate);
        self.probation = now + TimeSpan::from_millis(10_000);
        self.standing_window = window;
    }

    fn begin_look(&mut self, reason: Reason, window: f64, back: f64, queue: f64, rtt: f64) {
        self.look = Some(Look { reason, rounds: 0, window: back, company: back, tries: 0, queue, rtt, short: self.short });
        self.set(window);
    }

    /// What a look showed.
    fn judge(&mut self, now: Timestamp, look: Look, rtt: f64, spread: f64, waiting: f64, wanted: f64) {
        let base = self.base.get();
        let queue = rtt - base;
        // Round trips that differ by more than that within a round show no queue.
        let gone = queue <= OWN * look.queue || queue < (SHORT_S / 2.0).max(self.noise);
        let rate = self.before / rtt;
        if std::env::var_os("KDEBUG").is_some() {
            eprintln!("judge {:?} rtt {:.2} base {:.2} gone {}", look, rtt * 1e3, base * 1e3, gone);
        }
        match look.reason {
            Reason::Age => {
                let steady = self.span.1 - self.span.0 < 0.05 * look.queue && (queue - look.queue).abs() < 0.05 * look.queue;
                if steady && look.queue > 0.05 * base {
                    self.base.restart(now, rtt);
                    self.base_seen = now;
                    self.enter_alone(now, rate);
                }
                self.set(look.window);
            }
            Reason::Started if gone || waiting < 0.5 * wanted / self.boost => {
                self.enter_alone(now, rate);
                self.set(look.window);
            }
            Reason::Standing if gone => {
                self.enter_alone(now, look.window / base);
                self.set(look.window);
            }
            Reason::Competing if gone => {
                self.leave_company(now, look.window / look.rtt, look.window);
                self.set(self.window + wanted);
            }
            Reason::Competing if rtt < 0.8 * look.rtt && (rtt - self.floor).abs() < 0.01 * rtt => {
                // Twice the same round trip is left: the path itself.
                self.base.restart(now, rtt);
                self.base_seen = now;
                self.leave_company(now, look.window / look.rtt, look.window);
                self.set(self.window + wanted);
            }
            Reason::Competing => {
                self.floor = rtt;
                self.between = (2 * self.between).min(64);
                self.window = look.window;
                self.before = look.window;
                self.quiet_rounds = 0;
            }
            Reason::Started if look.tries == 0 => {
                // Half of the window may still be too much.
                let window = self.window * base / rtt;
                self.begin_look(Reason::Started, DEEP * window, window, queue, rtt);
                self.look = self.look.map(|new| Look { tries: 1, company: look.window, ..new });
            }
            Reason::Started if look.tries < 4 && queue < 0.75 * look.queue => {
                // Others make room.
                self.begin_look(Reason::Started, DEEP * look.window, look.window, queue, rtt);
                self.look = self.look.map(|new| Look { tries: look.tries + 1, company: look.company, ..new });
            }
            Reason::Started => self.enter_company(now, look.company, look.queue),
            Reason::Standing => {
                let steady = self.span.1 - self.span.0 < 0.1 * look.queue;
                if steady {
                    self.base.restart(now, rtt);
                    self.base_seen = now;
                    self.enter_alone(now, rate);
                    self.set(self.standing_window);
                } else if look.queue <= look.short {
                    self.set(look.window);
                } else {
                    self.enter_company(now, self.standing_window, look.queue);
                }
            }
        }
    }

    /// A round has ended.
    fn on_round(&mut self, now: Timestamp, round: Round, cwnd_limited: bool) {
        self.base.update(now, round.min);
        let base = self.base.get();
        let rtt = if self.mode == Mode::Alone && self.look.is_none() { round.standing() } else { round.min };
        let queue = rtt - base;
        let rate = self.before / rtt;
        let waiting = self.before * queue / rtt;
        let wanted = (self.appetite * self.boost * rate.sqrt() * self.pressure).max(1.0);
        if self.first_rtt == 0.0 && self.mode == Mode::Startup {
            self.first_rtt = round.min;
        } else if base < self.first_rtt - (0.5 * self.own_appetite / rate.sqrt()).max(0.000_5) {
            // There was a queue before the flow came: others of its kind hold it.
            self.first_rtt = -1.0;
            self.boost = BOOST;
        }
        if self.mode == Mode::Alone {
            // So many rounds as flows take to share evenly.
            let decay = (BOOST - 1.0) * self.own_appetite / (rate.sqrt() * base);
            self.boost = (self.boost - decay.clamp(0.01, 0.5)).max(1.0);
        }
        if round.min - base < (0.01 * base).max(0.000_25) {
            self.base_seen = now;
        }
        if std::env::var_os("KDEBUG").is_some() {
            eprintln!("{:.3} {:?} {:?} W {:.1} before {:.1} rtt {:.2} base {:.2} q {:.2} wait {:.1} want {:.1} v {:.2} p {:.2} lost {} acked {} lim {} n {}",
                now.0 as f64 * 1e-9, self.mode, self.look.map(|l| (l.reason, l.rounds)), self.window, self.before, rtt * 1e3, base * 1e3, queue * 1e3, waiting, wanted, self.velocity, self.pressure, round.lost, round.acked, cwnd_limited, round.samples);
        }
        let sent = (round.acked + round.lost) as f64;
        let loss = round.lost as f64 / sent.max(1.0);
        let excess =
            round.lost > 1 && loss > self.usual_loss + EXCESS + 2.0 * (self.usual_loss.max(0.001) / sent).sqrt();
        if !excess && waiting < wanted / 2.0 {
            let weight = (sent / 1000.0).min(0.2);
            self.usual_loss = (self.usual_loss + weight * (loss - self.usual_loss)).min(0.06);
        }
        if self.look.is_none() && self.mode != Mode::Startup {
            let change = (rtt - self.last_rtt).abs();
            if self.last_rtt > 0.0 {
                self.noise += (change - self.noise) / 8.0;
            }
            self.last_rtt = rtt;
        } else {
            self.last_rtt = 0.0;
        }
        if let Some(mut look) = self.look {
            look.rounds += 1;
            self.look = Some(look);
            if look.rounds == 1 {
                // What was acknowledged had left before the window was reduced. The reduction has lasted long enough.
                if look.reason == Reason::Age {
                    self.set(look.window);
                } else {
                    self.before = self.window;
                }
            } else if look.rounds == 2 && look.reason != Reason::Age {
                self.before = self.window;
            } else {
                self.look = None;
                self.judge(now, look, rtt, round.max - round.min, waiting, wanted);
                if self.look.is_none() {
                    self.before = self.window;
                }
            }
            return;
        }
        match self.mode {
            Mode::Startup => {
                if excess && queue < SHORT_S && self.window < 2.0 * self.initial {
                    // The first packets leave unpaced, and some queues hold none of that.
                    self.before = self.window;
                    return;
                }
                let blocked = self.overshoots(rtt) || excess;
                if blocked || self.window >= self.threshold {
                    // What was acknowledged last had left a round trip earlier, with half of the window.
                    let window = if blocked { self.window / 2.0 } else { self.window };
                    self.begin_look(Reason::Started, DEEP * window, window, queue, rtt);
                } else {
                    self.before = self.window;
                }
            }
            Mode::Alone => self.alone(now, rtt, queue, rate, waiting, wanted, loss, excess, cwnd_limited),
            Mode::Company => self.company(now, rtt, queue, rate, round.lost > 0),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn alone(
        &mut self,
        now: Timestamp,
        rtt: f64,
        queue: f64,
        rate: f64,
        waiting: f64,
        wanted: f64,
        loss: f64,
        excess: bool,
        limited: bool,
    ) {
        let base = self.base.get();
        self.rate.update(now, rate);
        let reference = self.rate.get();
        let factor = if now < self.probation { 1.5 } else { 3.0 };
        let short = factor * self.own_appetite / reference.sqrt() + 2.0 / reference + NOISE * self.noise;
        self.short = short;
        let last_queue = std::mem::replace(&mut self.last_queue, queue);
        self.spans.rotate_right(1);
        self.spans[0] = rtt;
        self.span = self.spans.iter().fold((f64::INFINITY, 0.0), |(low, high), &x| (x.min(low), x.max(high)));
        let own = self.own_appetite * rate.sqrt();
        if queue <= short && waiting <= 1.5 * (0.5 * own).max(wanted) + 1.0 {
            self.standing_rounds = 0;
            self.standing_since = now;
            self.standing_window = self.window.max(if now < self.probation { self.standing_window } else { 0.0 });
        } else if queue > 0.95 * last_queue {
            // A queue that becomes shorter is on its way.
            self.standing_rounds += 1;
            self.age = BASE_AGE_S;
            if now < self.probation && self.standing_rounds >= 3 && queue > short {
                let window = self.standing_window;
                self.enter_company(now, window, queue);
                return;
            }
            let patient = now.since(self.standing_since).0 as f64 * 1e-9 < PATIENCE_S;
            if self.standing_rounds >= PATIENCE_ROUNDS && !patient {
                let window = self.window.min(self.before * base / rtt);
                self.begin_look(Reason::Standing, window * DEEP, window + wanted, queue, rtt);
                return;
            }
        }
        self.trend.0 += rtt;
        self.trend.1 += self.window;
        self.trend_rounds += 1;
        if self.trend_rounds == TREND_ROUNDS {
            self.trend_rounds = 0;
            let (now_rtt, now_window) = std::mem::take(&mut self.trend);
            let (rtt_before, window_before) = std::mem::replace(&mut self.trend_before, (now_rtt, now_window));
            let n = f64::from(TREND_ROUNDS);
            if now_rtt > 1.0025 * rtt_before && now_window < 0.99 * window_before && rtt_before > 0.0 {
                if self.yielded == 0 {
                    self.yielded_from = window_before / n;
                    self.yielded_since = now;
                }
                self.yielded += 1;
                if self.yielded >= 3 && now.since(self.yielded_since).0 as f64 * 1e-9 > PATIENCE_S {
                    let window = self.yielded_from;
                    self.enter_company(now, window, queue);
                    return;
                }
            } else {
                self.yielded = 0;
            }
        }
        let mut keep = 1.0;
        if excess {
            if self.pressure <= 0.25 && queue > 0.01 * base && waiting > wanted {
                self.enter_company(now, self.before * (1.0 - loss), queue);
                return;
            }
            self.pressure = (self.pressure / 2.0).max(0.05);
            self.velocity = 1.0;
            keep = 1.0 - loss;
            self.ceiling = self.before * keep * base / rtt;
            self.ceiling_until = now + TimeSpan::from_secs_f64((CEILING_ROUNDS * base).max(CEILING_S));
        } else {
            self.pressure = (self.pressure + 1.0 / 64.0).min(1.0);
        }
        if !limited {
            self.before = self.window;
            return;
        }
        if now.since(self.base_seen).0 as f64 * 1e-9 > self.age.max(25.0 * base) {
            self.age = (2.0 * self.age).min(10.0);
            self.base_seen = now;
            self.begin_look(Reason::Age, DEEP * self.window, self.window, queue, rtt);
            return;
        }
        if waiting < 0.7 * wanted && !excess {
            self.velocity *= 1.5;
        } else {
            self.velocity = 1.0;
        }
        self.empty_rounds = if waiting < 0.1 * wanted && !excess { self.empty_rounds + 1 } else { 0 };
        let most = self.window / GROWTH * [1.0, 2.0, 4.0][(self.empty_rounds / 6).min(2) as usize];
        self.velocity = self.velocity.min((most / wanted).max(1.0));
        let growth = self.velocity * wanted;
        // Half of the way, since what is seen now was decided two rounds ago.
        let mut target = self.before * keep * base / rtt + growth;
        if now < self.ceiling_until && target > self.ceiling {
            target = self.ceiling;
            self.velocity = 1.0;
            self.empty_rounds = 0;
        }
        let step = if waiting > 3.0 * own { 0.8 } else { 0.5 };
        self.set(self.window + step * (target - self.window));
    }

    fn company(&mut self, now: Timestamp, rtt: f64, queue: f64, rate: f64, lost: bool) {
        let base = self.base.get();
        self.window = self.cubic.cwnd() as f64 / self.mss;
        self.before = self.window;
        self.quiet_rounds += 1;
        if lost {
            self.peak = queue.max(0.5 * self.peak);
            self.quiet_rounds = 0;
        }
        if (rtt - self.mark.0).abs() > 0.01 * rtt {
            self.mark = (rtt, self.window);
        } else if self.window > 1.25 * self.mark.1 && queue > 0.0 {
            // More in flight and no longer round trips: nothing waits, and the path is longer than it was.
            self.base.restart(now, rtt);
            self.base_seen = now;
            let window = self.window;
            self.leave_company(now, rate, window);
            return;
        }
        let small = (0.01 * base).max(0.000_25).max(0.1 * self.peak);
        if queue > small {
            self.queue_seen = now;
        } else if lost || now.since(self.queue_seen).0 as f64 > 2e9_f64.max(16e9 * base) {
            let window = self.window;
            self.leave_company(now, rate, window);
            return;
        }
        if self.quiet_rounds >= self.between && queue > 0.5 * self.peak {
            let window = self.window;
            self.begin_look(Reason::Competing, 0.95 * window * base / rtt, window, queue, rtt);
        }
    }

    fn publish(&mut self) {
        let gain = match self.mode {
            Mode::Startup => pacing::SLOW_START_GAIN,
            Mode::Alone => 1.1,
            Mode::Company => pacing::AVOIDANCE_GAIN,
        };
        self.pacing_rate = pacing::rate(self.window * self.mss, self.srtt, gain);
    }
}

impl CongestionControl for Kestrel {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, accepts_gain: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss as f64;
        self.window = context.initial_window as f64 / self.mss;
        self.before = self.window;
        self.initial = self.window;
        self.base_seen = context.now;
        self.round.began = context.now;
        self.cubic.init(context);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.srtt = event.rtt.smoothed();
        let round = &mut self.round;
        if let Some(sample) = event.rtt_sample {
            let sample = sample.0 as f64 * 1e-9;
            round.sample(event.now, sample);
            self.recent = self.recent.min(sample);
        }
        round.acked += event.acked_packets;
        round.lost += event.lost.len() as u64;
        round.limited |= event.cwnd_limited;
        if self.mode == Mode::Startup && event.cwnd_limited && self.look.is_none() {
            self.window = (self.window + event.acked_bytes as f64 / self.mss).min(self.threshold.max(self.window));
        }
        if self.mode == Mode::Company {
            self.cubic.on_ack(event);
            if self.look.is_none() {
                self.window = self.cubic.cwnd() as f64 / self.mss;
            } else if event.entered_recovery {
                // A loss decides what a look was to find out.
                self.look = None;
                self.window = self.cubic.cwnd() as f64 / self.mss;
                self.before = self.window;
            }
        }
        let starting = self.mode == Mode::Startup && self.look.is_none();
        let round = &mut self.round;
        let queued = starting && round.samples >= ROUND_SAMPLES && round.samples % ROUND_SAMPLES == 0;
        if queued {
            // Within the round: a queue that grows would be seen a round later, and be twice as long.
            let recent = std::mem::replace(&mut self.recent, f64::INFINITY);
            if self.overshoots(recent) {
                self.round.end = 0;
                self.round.min = recent;
            }
        }
        let round = &mut self.round;
        if event.largest_acked >= round.end && event.acked_packets > 0 {
            round.passes += 1;
            let enough = round.samples >= ROUND_SAMPLES || round.passes >= LONG_ROUND || self.mode == Mode::Startup;
            round.end = event.next_packet_number;
            if enough && round.min.is_finite() {
                let ended = *round;
                *round = Round::new(event.now, event.next_packet_number);
                self.on_round(event.now, ended, ended.limited);
            }
        }
        self.publish();
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        if event.count <= 1 {
            self.threshold = (self.window / 2.0).max(MIN_WINDOW);
        }
        self.mode = Mode::Startup;
        self.look = None;
        self.window = 1.0;
        self.before = 1.0;
        self.cubic.on_timeout(event);
        self.publish();
    }

    fn on_spurious_loss(&mut self, event: &SpuriousLossEvent) {
        if self.mode == Mode::Company {
            self.cubic.on_spurious_loss(event);
        }
    }

    fn set_gain(&mut self, gain: f64) {
        self.appetite = self.own_appetite * gain;
    }

    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing_rate, ..Control::window((self.window * self.mss) as u64) }
    }

    fn state(&self) -> &'static str {
        match (self.mode, self.look) {
            (Mode::Company, None) => "company",
            (Mode::Startup, None) => "startup",
            (Mode::Alone, None) => "alone",
            _ => "look",
        }
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window),
            ("base_rtt_ms", self.base.get() * 1e3),
            ("velocity", self.velocity),
            ("pressure", self.pressure),
            ("usual_loss", self.usual_loss),
        ]
    }
}
