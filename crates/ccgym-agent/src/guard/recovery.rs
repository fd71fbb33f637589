//! `recovery`: searches upwards, as slow start does, from a rate that is low for no visible reason.
//!
//! ```text
//! watch ── low for long enough, path clear ──▶ search ── more was delivered ──▶ hold ── time is up ──▶ watch
//!   ▲                                             │
//!   └───────── nothing found: wait twice as long ◀┘
//! ```
//!
//! A search costs a queue of one BDP for about two RTTs, so if a low rate is right the waits between searches soon make
//! the cost negligible. The hold lasts longer than a policy that falls back each time.

use super::super::action::{window, Actions, Actuator};
use super::super::memory::Memory;
use super::super::spec::RecoverySpec;
use super::round::{Path, Round, MIN_RTT};
use super::search::{above, Before, Hold, Next, Search};
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{Rate, TimeSpan};
use ccgym_core::Control;
use ccgym_core::Error;

/// Min rounds before a decision.
const MIN_ROUNDS: u32 = 4;
/// Mean delay over the min, as part of that and in seconds, above which a path is not clear.
const CLEAR_PATH_DELAY: (f64, f64) = (0.25, 0.005);
/// Max time of a low rate on a path that is not clear, in max waits: half of that the second time, a quarter the first.
const MAX_DOUBT_WAITS: f64 = 4.0;
/// Initial window of a search.
const FIRST_WINDOW: f64 = 4.0;
/// Pacing gain of a window per RTT. Bursts would overflow a short queue well before the path is full; a window with
/// this pacing still grows 1.9-fold each RTT.
const WINDOW_PACING_GAIN: f64 = 1.25;
/// Seconds after which a flow that was low counts as recovered: the next time counts as the first.
const RECOVERED_AFTER: f64 = 10.0;
/// Invalid actions in a row after which the agent counts as silent.
const MAX_REFUSED_ACTIONS: u32 = 8;
/// Window while holding a rate, in BDPs and packets: bounds the loss on a silent path.
const HOLD_WINDOW: (f64, f64) = (2.0, 4.0);

impl RecoverySpec {
    pub(super) fn check(&self) -> Result<(), Error> {
        for (name, x) in [("fraction", self.fraction), ("lift", self.lift)] {
            Error::ensure(x > 0.0, &format!("guard.{name}"), x, "a part, above 0 up to 1")?;
        }
        let ordered = self.patience <= self.max_hold && self.hold <= self.max_hold;
        Error::ensure(ordered, "guard.max_hold", self.max_hold.0, "at least patience and hold")
    }

    pub(super) fn describe(&self) -> String {
        let Self { fraction, near, loss, lift, .. } = self;
        let s = |span: TimeSpan| format!("{} s", span.as_secs_f64());
        format!(
            "where the rate is up to {fraction} of the max delivery rate of the latest {} or up to {near} times the \
             lower bound, for {} with loss up to {loss} and no queue (else for {}), or no action can be read: double \
             each round trip until queue, loss or a flat delivery rate, hold {lift} of what was found for {} (up to {} \
             if the agent falls back), or wait twice as long if nothing was",
            s(self.memory),
            s(self.patience),
            s(self.max_hold),
            s(self.hold),
            s(self.max_hold)
        )
    }
}

/// Rounds in which the rate was low.
#[derive(Clone, Debug)]
struct Low {
    rounds: u32,
    sum: Round,
    bits: f64,
    /// Seconds, including earlier rounds that were not clear.
    total: f64,
}

impl Low {
    /// Start without rounds, after this many seconds that were not clear.
    fn after(total: f64) -> Self {
        Self { rounds: 0, sum: Round::new(), bits: 0.0, total }
    }

    fn add(&mut self, round: &Round) {
        self.rounds += 1;
        self.sum.add(round);
        self.bits += round.delivered() * round.heard();
        self.total += round.heard();
    }
}

#[derive(Clone, Debug)]
enum Stage {
    Watch(Low),
    Search(Search),
    Hold(Hold),
}

/// State of this guard for one flow.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    spec: RecoverySpec,
    path: Path,
    stage: Stage,
    /// Seconds of a low rate before the next search, and of holding its result.
    wait: f64,
    hold: f64,
    /// Seconds of a low rate on a path that is not clear.
    doubt: f64,
    /// Invalid actions in a row.
    refused: u32,
    /// Time (with feedback) at which the agent last took over, and at which the rate was last low.
    released: f64,
    low_at: f64,
    /// Number of times it has lifted the flow, or tried to.
    pub interventions: u64,
}

impl Recovery {
    pub fn new(spec: &RecoverySpec) -> Self {
        Self {
            spec: *spec,
            path: Path::new(spec.memory.as_secs_f64()),
            stage: Stage::Watch(Low::after(0.0)),
            wait: spec.patience.as_secs_f64(),
            hold: spec.hold.as_secs_f64(),
            doubt: spec.max_hold.as_secs_f64(),
            refused: 0,
            released: f64::NEG_INFINITY,
            low_at: 0.0,
            interventions: 0,
        }
    }

    /// Count an action of the agent; `read` is false for an invalid one.
    pub fn on_action(&mut self, read: bool) {
        self.refused = if read { 0 } else { self.refused.saturating_add(1) };
    }

    /// True if the guard decides instead of the agent.
    pub fn decides(&self) -> bool {
        !matches!(self.stage, Stage::Watch(_))
    }

    /// Add an interval that `memory` has digested; lift the flow if needed.
    pub fn on_interval(&mut self, m: &MonitorInterval, actuator: &mut Actuator, actions: &Actions, memory: &Memory) {
        let (spec, round) = (self.spec, self.path.add(m, memory));
        match (&mut self.stage, round) {
            (Stage::Watch(_), Some(round)) => self.watch(&round, actuator, actions, memory),
            // The path is silent: the search has no result.
            (Stage::Search(search), _) if m.timeouts > 0 => self.stage = go_back(search, actuator),
            (Stage::Search(search), round) => {
                if search.on_interval(&spec, m, round.as_ref(), actions, memory) {
                    self.end_search(actuator);
                }
            }
            (Stage::Hold(hold), _) if m.timeouts > 0 => hold.on_timeout(),
            (Stage::Hold(hold), Some(round)) => {
                let next = hold.on_round(&spec, self.hold, &round);
                self.end_hold(&next, actuator, memory);
            }
            (Stage::Watch(_) | Stage::Hold(_), None) => {}
        }
        // The agent continues from the guard's values.
        if let Some((window, rate, _)) = self.decision(actions, memory) {
            (actuator.window, actuator.rate) = (window, rate);
            actuator.bound(actions, memory);
        }
    }

    fn end_search(&mut self, actuator: &mut Actuator) {
        let Stage::Search(search) = &self.stage else { return };
        let spec = self.spec;
        self.stage = match (search.found(&spec), search.held()) {
            (Some(hold), again) => {
                if again.is_none() {
                    let relapsed = self.path.heard - self.released <= RECOVERED_AFTER;
                    self.hold = if relapsed { longer(self.hold, &spec) } else { spec.hold.as_secs_f64() };
                }
                Stage::Hold(hold)
            }
            (None, Some(mut hold)) => {
                hold.sure = true;
                Stage::Hold(hold)
            }
            (None, None) => {
                self.wait = longer(self.wait, &spec);
                go_back(search, actuator)
            }
        };
    }

    fn end_hold(&mut self, next: &Next, actuator: &mut Actuator, memory: &Memory) {
        let Stage::Hold(hold) = &self.stage else { return };
        match next {
            Next::Hold => {}
            Next::Search => {
                self.stage = Stage::Search(hold.search(memory.mss));
                self.path.cut();
            }
            Next::Over => {
                (self.released, self.wait) = (self.path.heard, self.spec.patience.as_secs_f64());
                self.stage = Stage::Watch(Low::after(0.0));
            }
            Next::Congested => {
                if !hold.sure {
                    [actuator.rate, actuator.window] = hold.before.values;
                }
                // The low rate may have been right, so its return is not the agent's fault.
                self.released = f64::NEG_INFINITY;
                self.wait = longer(self.wait, &self.spec);
                self.stage = Stage::Watch(Low::after(0.0));
            }
        }
    }

    fn watch(&mut self, round: &Round, actuator: &mut Actuator, actions: &Actions, memory: &Memory) {
        let spec = &self.spec;
        let shortest = memory.min_rtt.max(MIN_RTT);
        let used = decided(actuator, actions, memory, shortest).min(round.sent());
        let low = near_floor(spec, actuator, actions, memory)
            || used <= spec.fraction * self.path.carries()
            || self.refused >= MAX_REFUSED_ACTIONS;
        let Stage::Watch(stretch) = &mut self.stage else { return };
        if !low || round.app_limited {
            *stretch = Low::after(0.0);
            if self.path.heard - self.low_at > RECOVERED_AFTER {
                (self.wait, self.doubt) = (spec.patience.as_secs_f64(), spec.max_hold.as_secs_f64());
            }
            return;
        }
        self.low_at = self.path.heard;
        stretch.add(round);
        if stretch.rounds < MIN_ROUNDS || stretch.sum.seconds < self.wait {
            return;
        }
        let clear = stretch.sum.loss() <= spec.loss
            && !above(stretch.sum.rtt_sum / stretch.sum.samples.max(1) as f64, shortest, CLEAR_PATH_DELAY);
        if !clear && stretch.total < self.doubt {
            *stretch = Low::after(stretch.total);
            return;
        }
        if !clear {
            self.doubt = (2.0 * self.doubt).min(MAX_DOUBT_WAITS * spec.max_hold.as_secs_f64());
        }
        // At this rate it has no queue of its own. The path may have become longer meanwhile.
        let base = stretch.sum.rtt;
        let window = (2.0 * used * base / (8.0 * memory.mss)).max(FIRST_WINDOW);
        let before = Before {
            values: [actuator.rate, actuator.window],
            delivered: stretch.bits / stretch.sum.seconds,
            loss: stretch.sum.loss(),
        };
        self.stage = Stage::Search(Search::new(window, base, before));
        self.path.cut();
        self.interventions += 1;
    }

    /// Return window, rate, and the pacing gain over that rate, if it decides.
    fn decision(&self, actions: &Actions, memory: &Memory) -> Option<(f64, f64, f64)> {
        Some(match &self.stage {
            Stage::Watch(_) => return None,
            Stage::Search(s) => (s.window, s.window * 8.0 * memory.mss / s.base, WINDOW_PACING_GAIN),
            Stage::Hold(h) => {
                let bdp = h.sent() * h.base / (8.0 * memory.mss);
                if actions.target.has_rate() {
                    (HOLD_WINDOW.0 * bdp + HOLD_WINDOW.1, h.sent(), 1.0)
                } else {
                    (bdp, h.sent(), WINDOW_PACING_GAIN)
                }
            }
        })
    }

    /// Return its decision, if it decides.
    pub fn control(&self, actions: &Actions, memory: &Memory) -> Option<Control> {
        let (packets, rate, gain) = self.decision(actions, memory)?;
        let ([low, high], paced) = (actions.limits.window, gain * rate);
        let rated = actions.target.has_rate();
        let paced = if rated { paced.clamp(actions.rate_floor(memory), actions.limits.rate[1]) } else { paced };
        Some(Control { pacing_rate: Rate(paced as u64), ..window(packets.clamp(low, high), memory.mss) })
    }
}

/// Double a time, up to the max hold.
fn longer(seconds: f64, spec: &RecoverySpec) -> f64 {
    (2.0 * seconds).min(spec.max_hold.as_secs_f64())
}

/// Return to the agent's values after a search without a result.
fn go_back(search: &Search, actuator: &mut Actuator) -> Stage {
    match search.held() {
        Some(hold) => Stage::Hold(hold),
        None => {
            [actuator.rate, actuator.window] = search.before.values;
            Stage::Watch(Low::after(0.0))
        }
    }
}

/// Return the rate that the agent chose, or that corresponds to its window.
fn decided(actuator: &Actuator, actions: &Actions, memory: &Memory, base: f64) -> f64 {
    let window = actuator.window * 8.0 * memory.mss / base;
    let limited = if actions.target.has_window() { window } else { f64::INFINITY };
    if actions.target.has_rate() {
        limited.min(actuator.rate)
    } else {
        limited
    }
}

fn near_floor(spec: &RecoverySpec, actuator: &Actuator, actions: &Actions, memory: &Memory) -> bool {
    let rate = actuator.rate <= spec.near * actions.rate_floor(memory);
    let window = actuator.window <= spec.near * actions.limits.window[0];
    (actions.target.has_rate() && rate) || (actions.target.has_window() && window)
}
