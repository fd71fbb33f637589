//! The rule of a flow alone or among flows of its kind, once per round: subtract its packets in the queue from the
//! window, and add the number that it wants to wait there.

use ccgym_core::{TimeSpan, Timestamp};

use super::probe::{Probe, Reason, DEEP_PROBE_FACTOR};
use super::recent;
use super::round::{Next, Seen};
use crate::filters::slots::Slots;

/// If less than this part of the wanted packets (without queue raise) waits, the flow raises what it adds, …
const TOO_FEW: f64 = 0.5;
const VELOCITY_STEP: f64 = 1.5;
/// … faster below this part, …
const NONE: f64 = 0.1;
const EMPTY_STEP: f64 = 4.0;
/// … up to a part of the window per round: the value for the first round, after some rounds, and after twice as many
/// rounds with an empty queue.
const GROWTH: [f64; 3] = [1.0 / 6.0, 1.0 / 3.0, 4.0 / 3.0];
const EMPTY_ROUNDS: u32 = 3;
/// Part of the distance to the target that a round moves, since a round shows decisions two rounds old; more of it down
/// from a queue of more than this multiple of the wanted packets.
const STEP: f64 = 0.5;
const STEP_DOWN: f64 = 0.8;
pub const LONG_QUEUE_FACTOR: f64 = 3.0;
/// Min of the factor on the wanted packets that losses halve; each round without loss raises it.
const MIN_PRESSURE: f64 = 0.05;
const PRESSURE_STEP: f64 = 1.0 / 64.0;
/// At or below this factor, losses in a queue are attributed to other flows.
const LOW_PRESSURE: f64 = 0.25;
/// Round trips and seconds for which the flow does not exceed a window that lost packets.
const CEILING_ROUNDS: f64 = 16.0;
const CEILING_S: f64 = 1.0;
/// The ceiling is for queues of less than this part of the base RTT, which may empty at once.
const CEILING_QUEUE: f64 = 0.5;
/// A queue is standing if it is longer than this multiple of the packets wanted at the max recent rate, …
const STANDING: f64 = 3.0;
/// … or, soon after the flow competed, this multiple;
const STANDING_ON_PROBATION: f64 = 1.5;
/// a queue of less than this multiple of the noise does not count, …
const NOISE: f64 = 2.0;
/// … nor one that shrinks to less than this part per round.
const SHRINKS: f64 = 0.95;
/// Rounds and seconds before the flow probes for the owner of the queue; on probation, rounds before it competes again.
const PATIENCE_ROUNDS: u32 = 8;
const PATIENCE: TimeSpan = TimeSpan::from_millis(1000);
const PROBATION_ROUNDS: u32 = 3;
/// Length of the probation.
const PROBATION: TimeSpan = TimeSpan::from_millis(10_000);
/// Seconds after which the base RTT must be measured again, first and max, and round trips.
const AGE_S: f64 = 2.5;
const MAX_AGE_S: f64 = 10.0;
const AGE_ROUNDS: f64 = 25.0;

#[derive(Clone, Debug)]
pub struct Alone {
    /// Max recent rate, packets/s.
    rate: Slots<f64>,
    /// Multiple of the wanted packets that is added while too few packets wait.
    velocity: f64,
    /// Factor on the appetite, reduced by losses.
    pub pressure: f64,
    /// Rounds since the queue was last not empty.
    empty_rounds: u32,
    /// A window that lost packets, packets, and the end of its validity.
    ceiling: f64,
    ceiling_until: Timestamp,
    /// Number of rounds with a standing queue, its start, and the window before it, packets.
    standing_rounds: u32,
    standing_since: Timestamp,
    pub standing_window: f64,
    /// Queue that the flow attributes to itself or to flows of its kind, seconds.
    pub short: f64,
    last_queue: f64,
    /// Round trips of the latest rounds, seconds.
    latest: [f64; 4],
    yielding: Yielding,
    /// End of the time in which the flow may be wrong not to compete.
    probation: Timestamp,
    /// Time after which the base RTT must be measured again, seconds.
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
    /// Enter this mode at this rate, packets/s.
    pub fn enter(&mut self, now: Timestamp, rate: f64) {
        self.velocity = 1.0;
        self.standing_rounds = 0;
        self.yielding.restart();
        self.rate.restart(now, rate);
    }

    /// Start the probation after competing with this window, packets.
    pub fn on_probation(&mut self, now: Timestamp, window: f64) {
        self.probation = now + PROBATION;
        self.standing_window = window;
    }

    /// True if the queue has been nearly empty for more than three rounds: no other flow fills the link.
    pub fn is_empty(&self) -> bool {
        self.empty_rounds > EMPTY_ROUNDS
    }

    pub fn velocity(&self) -> f64 {
        self.velocity
    }

    /// Return the difference between max and min of the latest round trips, seconds.
    pub fn span(&self) -> f64 {
        let (low, high) = self.latest.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &x| (l.min(x), h.max(x)));
        high - low
    }

    /// Decide after a round: `window` is the current one, packets; `base_seen` the latest sample of the base RTT.
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
        self.track_queue(seen, window, keep)
    }

    fn track_queue(&mut self, seen: &Seen, window: f64, keep: f64) -> Next {
        let asks = seen.waiting < TOO_FEW * seen.wants.lasting && !seen.excess;
        self.empty_rounds =
            if seen.waiting < NONE * seen.wants.now && !seen.excess { self.empty_rounds + 1 } else { 0 };
        let faster = if self.empty_rounds > 1 { EMPTY_STEP } else { VELOCITY_STEP };
        self.velocity = if asks { faster * self.velocity } else { 1.0 };
        let max_growth = window * GROWTH[(self.empty_rounds / EMPTY_ROUNDS).min(2) as usize];
        self.velocity = self.velocity.min((max_growth / seen.wants.now).max(1.0));
        let mut target = keep * seen.without_queue() + self.velocity * seen.wants.now;
        if seen.now < self.ceiling_until && target > self.ceiling {
            target = self.ceiling;
            self.velocity = 1.0;
            self.empty_rounds = 0;
        }
        let step = if seen.waiting > LONG_QUEUE_FACTOR * seen.wants.own { STEP_DOWN } else { STEP };
        Next::Window(window + step * (target - window))
    }

    /// Decide about a standing queue: find out whether it is the flow's own.
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

/// Number of rounds for each mean, …
const TREND_ROUNDS: u32 = 8;
/// … and number of means in a row that must show that others take the capacity the flow yields: RTT grows by this part
/// while the window shrinks by this part.
const TRENDS: u32 = 3;
const RTT_GROWS: f64 = 1.0025;
const WINDOW_SHRINKS: f64 = 0.99;

/// Detects that the flow yields to others that take all capacity.
#[derive(Clone, Copy, Debug, Default)]
struct Yielding {
    /// Sums of RTTs and windows of the current rounds, and of the previous ones.
    sum: (f64, f64),
    before: (f64, f64),
    rounds: u32,
    /// Number of such means in a row, start, and the window at the start, packets.
    trends: u32,
    since: Timestamp,
    from: f64,
}

impl Yielding {
    fn restart(&mut self) {
        self.trends = 0;
        self.before = (0.0, 0.0);
    }

    /// Return the window before the flow yielded, packets, once that is certain.
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
