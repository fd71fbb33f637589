//! The law of a flow that is alone or among its like, once per round: remove from the window what waits in the queue, and
//! add what shall wait there.

use ccgym_core::{TimeSpan, Timestamp};

use super::probe::{Probe, Reason, DEEP_PROBE_FACTOR};
use super::recent;
use super::round::{Next, Seen};
use crate::filters::slots::Slots;

/// Too few packets wait below this part of what is wanted without a queue raise: the flow asks for more and more, …
const TOO_FEW: f64 = 0.5;
const VELOCITY_STEP: f64 = 1.5;
/// … faster where next to none wait, …
const NONE: f64 = 0.1;
const EMPTY_STEP: f64 = 4.0;
/// … up to a part of the window per round: the first one, and the others after so many rounds and twice as many in which
/// none waited.
const GROWTH: [f64; 3] = [1.0 / 6.0, 1.0 / 3.0, 4.0 / 3.0];
const EMPTY_ROUNDS: u32 = 3;
/// Part of the way to the target that a round goes, since what is seen was decided two rounds ago; more of it down from a
/// queue of more than so many times what is wanted.
const STEP: f64 = 0.5;
const STEP_DOWN: f64 = 0.8;
pub const LONG_QUEUE_FACTOR: f64 = 3.0;
/// Losses halve what is wanted, down to this part; each good round adds a bit.
const MIN_PRESSURE: f64 = 0.05;
const PRESSURE_STEP: f64 = 1.0 / 64.0;
/// With no more than this part left, losses in a queue are those of others.
const LOW_PRESSURE: f64 = 0.25;
/// Round trips and seconds for which a window that lost packets is not exceeded.
const CEILING_ROUNDS: f64 = 16.0;
const CEILING_S: f64 = 1.0;
/// That is for queues of less than this part of the base RTT, which may be empty again at once; a longer one is seen.
const CEILING_QUEUE: f64 = 0.5;
/// A queue stands if it is longer than so many times what the flow wanted at its largest rate of late …
const STANDING: f64 = 3.0;
/// … or, soon after it competed, so many;
const STANDING_ON_PROBATION: f64 = 1.5;
/// so many times the noise count as none, …
const NOISE: f64 = 2.0;
/// … and a queue that shrinks by this part per round is on its way.
const SHRINKS: f64 = 0.95;
/// Rounds and seconds before the flow probes whose queue it is; on probation, rounds before it competes again.
const PATIENCE_ROUNDS: u32 = 8;
const PATIENCE: TimeSpan = TimeSpan::from_millis(1000);
const PROBATION_ROUNDS: u32 = 3;
/// How long it is on probation.
const PROBATION: TimeSpan = TimeSpan::from_millis(10_000);
/// Seconds after which the base RTT shall be seen again, first and at most, and round trips.
const AGE_S: f64 = 2.5;
const MAX_AGE_S: f64 = 10.0;
const AGE_ROUNDS: f64 = 25.0;

#[derive(Clone, Debug)]
pub struct Alone {
    /// Max rate of late, packets/s.
    rate: Slots<f64>,
    /// Multiple of the wanted packets that is added while too few wait.
    velocity: f64,
    /// Part of the appetite that losses leave.
    pub pressure: f64,
    /// Rounds since something waited.
    empty_rounds: u32,
    /// A window that was too much, packets, and until when that counts.
    ceiling: f64,
    ceiling_until: Timestamp,
    /// For how many rounds a queue stands, since when, and the window before, packets.
    standing_rounds: u32,
    standing_since: Timestamp,
    pub standing_window: f64,
    /// Seconds of queue that the flow takes for its own or of its like.
    pub short: f64,
    last_queue: f64,
    /// Round trips of the latest rounds, seconds.
    latest: [f64; 4],
    yielding: Yielding,
    /// Until when it may be wrong that the flow need not compete.
    probation: Timestamp,
    /// Seconds after which the base RTT shall be seen again.
    age: f64,
}

impl Default for Alone {
    fn default() -> Self {
        Self {
            rate: recent(0.0, f64::max),
            velocity: 1.0,
            pressure: 1.0,
            empty_rounds: 0,
            ceiling: 0.0,
            ceiling_until: Timestamp::ZERO,
            standing_rounds: 0,
            standing_since: Timestamp::ZERO,
            standing_window: 0.0,
            short: 0.0,
            last_queue: 0.0,
            latest: [0.0; 4],
            yielding: Yielding::default(),
            probation: Timestamp::ZERO,
            age: AGE_S,
        }
    }
}

impl Alone {
    /// It begins, at this rate in packets/s.
    pub fn enter(&mut self, now: Timestamp, rate: f64) {
        self.velocity = 1.0;
        self.standing_rounds = 0;
        self.yielding.restart();
        self.rate.restart(now, rate);
    }

    /// It competed so far, with this window in packets, and may be wrong to stop.
    pub fn on_probation(&mut self, now: Timestamp, window: f64) {
        self.probation = now + PROBATION;
        self.standing_window = window;
    }

    /// Whether the queue has been next to empty for more than three rounds: no other flow fills the link.
    pub fn is_empty(&self) -> bool {
        self.empty_rounds > EMPTY_ROUNDS
    }

    pub fn velocity(&self) -> f64 {
        self.velocity
    }

    /// How far the latest round trips are apart, seconds.
    pub fn span(&self) -> f64 {
        let (low, high) = self.latest.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &x| (l.min(x), h.max(x)));
        high - low
    }

    /// The decision after a round: `window` is the one in force, packets; `base_seen` when the base RTT last was.
    pub fn next(&mut self, seen: &Seen, window: f64, appetite: f64, base_seen: &mut Timestamp) -> Next {
        self.rate.update(seen.now, seen.rate);
        let on_probation = seen.now < self.probation;
        let reference = self.rate.get().unwrap_or(0.0);
        let times = if on_probation { STANDING_ON_PROBATION } else { STANDING };
        self.short = times * appetite / reference.sqrt() + 2.0 / reference + NOISE * seen.noise;
        self.latest.rotate_right(1);
        self.latest[0] = seen.rtt;
        if let Some(next) = self.on_standing_queue(seen, window, on_probation) {
            return next;
        }
        if let Some(from) = self.yielding.observe(seen, window) {
            return Next::Compete(from);
        }
        let mut keep = 1.0;
        if seen.excess {
            if self.pressure <= LOW_PRESSURE && seen.queue > 0.01 * seen.base && seen.waiting > seen.wants.now {
                return Next::Compete(seen.window * (1.0 - seen.loss));
            }
            self.pressure = (self.pressure / 2.0).max(MIN_PRESSURE);
            self.velocity = 1.0;
            keep = 1.0 - seen.loss;
            if seen.queue < CEILING_QUEUE * seen.base {
                self.ceiling = keep * seen.without_queue();
                self.ceiling_until = seen.now + TimeSpan::from_secs_f64((CEILING_ROUNDS * seen.base).max(CEILING_S));
            }
        } else {
            self.pressure = (self.pressure + PRESSURE_STEP).min(1.0);
        }
        if !seen.limited {
            return Next::Hold;
        }
        if seconds(seen.now.since(*base_seen)) > self.age.max(AGE_ROUNDS * seen.base) {
            self.age = (2.0 * self.age).min(MAX_AGE_S);
            *base_seen = seen.now;
            return Next::Probe(Probe::new(Reason::Age, DEEP_PROBE_FACTOR * window, window, seen.queue, seen.rtt));
        }
        self.law(seen, window, keep)
    }

    fn law(&mut self, seen: &Seen, window: f64, keep: f64) -> Next {
        let asks = seen.waiting < TOO_FEW * seen.wants.lasting && !seen.excess;
        self.empty_rounds =
            if seen.waiting < NONE * seen.wants.now && !seen.excess { self.empty_rounds + 1 } else { 0 };
        let faster = if self.empty_rounds > 1 { EMPTY_STEP } else { VELOCITY_STEP };
        self.velocity = if asks { faster * self.velocity } else { 1.0 };
        let most = window * GROWTH[(self.empty_rounds / EMPTY_ROUNDS).min(2) as usize];
        self.velocity = self.velocity.min((most / seen.wants.now).max(1.0));
        let mut target = keep * seen.without_queue() + self.velocity * seen.wants.now;
        if seen.now < self.ceiling_until && target > self.ceiling {
            target = self.ceiling;
            self.velocity = 1.0;
            self.empty_rounds = 0;
        }
        let step = if seen.waiting > LONG_QUEUE_FACTOR * seen.wants.own { STEP_DOWN } else { STEP };
        Next::Window(window + step * (target - window))
    }

    /// A queue that the flow did not want: whose is it?
    fn on_standing_queue(&mut self, seen: &Seen, window: f64, on_probation: bool) -> Option<Next> {
        let last_queue = std::mem::replace(&mut self.last_queue, seen.queue);
        if seen.queue <= self.short && seen.waiting <= 1.5 * (0.5 * seen.wants.own).max(seen.wants.now) + 1.0 {
            self.standing_rounds = 0;
            self.standing_since = seen.now;
            self.standing_window = window.max(if on_probation { self.standing_window } else { 0.0 });
            return None;
        }
        if seen.queue <= SHRINKS * last_queue {
            return None;
        }
        self.standing_rounds += 1;
        self.age = AGE_S;
        if on_probation && self.standing_rounds >= PROBATION_ROUNDS && seen.queue > self.short {
            return Some(Next::Compete(self.standing_window));
        }
        if self.standing_rounds >= PATIENCE_ROUNDS && seen.now.since(self.standing_since) >= PATIENCE {
            let kept = window.min(seen.without_queue());
            return Some(Next::Probe(Probe::new(
                Reason::Standing,
                DEEP_PROBE_FACTOR * kept,
                kept + seen.wants.now,
                seen.queue,
                seen.rtt,
            )));
        }
        None
    }
}

/// Rounds over which means are taken, …
const TREND_ROUNDS: u32 = 8;
/// … and how many of them in a row must show that others take what the flow yields: round trips grow by this part while
/// the window shrinks by this one.
const TRENDS: u32 = 3;
const RTT_GROWS: f64 = 1.0025;
const WINDOW_SHRINKS: f64 = 0.99;

/// Whether the flow yields to others that take it all.
#[derive(Clone, Copy, Debug, Default)]
struct Yielding {
    /// Sums of round trips and windows of the rounds under way, and of those before.
    sum: (f64, f64),
    before: (f64, f64),
    rounds: u32,
    /// How often it was so in a row, since when, and the window then, packets.
    trends: u32,
    since: Timestamp,
    from: f64,
}

impl Yielding {
    fn restart(&mut self) {
        self.trends = 0;
        self.before = (0.0, 0.0);
    }

    /// The window before it yielded, packets, once it is sure.
    fn observe(&mut self, seen: &Seen, window: f64) -> Option<f64> {
        self.sum.0 += seen.rtt;
        self.sum.1 += window;
        self.rounds += 1;
        if self.rounds < TREND_ROUNDS {
            return None;
        }
        self.rounds = 0;
        let now = std::mem::take(&mut self.sum);
        let before = std::mem::replace(&mut self.before, now);
        if before.0 == 0.0 || now.0 <= RTT_GROWS * before.0 || now.1 >= WINDOW_SHRINKS * before.1 {
            self.trends = 0;
            return None;
        }
        if self.trends == 0 {
            (self.since, self.from) = (seen.now, before.1 / f64::from(TREND_ROUNDS));
        }
        self.trends += 1;
        (self.trends >= TRENDS && seen.now.since(self.since) > PATIENCE).then_some(self.from)
    }
}

fn seconds(time: TimeSpan) -> f64 {
    time.0 as f64 * 1e-9
}
