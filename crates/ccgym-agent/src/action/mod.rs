//! Turns an action into a window and a pacing rate, or into the gain of a base scheme.

mod map;
mod nearest;

use std::fmt;

use serde::Serialize;

use super::expressions::{Expression, Expressions, Values};
use super::memory::Memory;
use super::spec::{ActionSpec, LimitsSpec, Pace, Phase, Target};
use ccgym_core::units::Rate;
use ccgym_core::Control;
use ccgym_core::Error;

pub(crate) use map::Map;
use map::Quantity;
pub(crate) use nearest::ControlTarget;

/// The form of an action.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// An index below this number.
    Discrete(usize),
    /// Real numbers.
    Box {
        /// Number of them.
        size: usize,
        /// Min of each.
        low: f32,
        /// Max of each.
        high: f32,
    },
}

impl ActionKind {
    /// Return the numbers per action: one for an index.
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Discrete(_) => 1,
            Self::Box { size, .. } => *size,
        }
    }
}

/// The actions of an agent, ready for use.
#[derive(Clone)]
pub(crate) struct Actions {
    pub map: Map,
    pub target: Target,
    pub limits: LimitsSpec,
    bounds: [f64; 2],
    /// Min RTT, seconds, from which on a fraction of the current value is kept.
    smoothing: Vec<(f64, f64)>,
    pub pace: Pace,
    cap: Option<Cap>,
    /// True if a base scheme keeps the window, and the map's result overwrites it.
    pub overwrites: bool,
    /// True if a base scheme decides, and the map's result for 1 scales its packets in the queue.
    pub sets_gain: bool,
}

#[derive(Clone, Copy)]
struct Cap {
    bdp: f64,
    startup: f64,
    packets: f64,
    estimate: usize,
}

impl ActionSpec {
    /// Check that there is something to steer.
    pub(crate) fn check_target(&self) -> Result<(), Error> {
        let based = self.target != Target::Gain || self.inner.is_some();
        Error::ensure(based, "action.inner", "none", "the base scheme whose gain is steered, such as kestrel")
    }
}

impl Actions {
    pub(crate) fn new(spec: &ActionSpec, expressions: &mut Expressions) -> Result<Self, Error> {
        let LimitsSpec { rate, window, .. } = spec.limits;
        for (name, [low, high]) in [("rate", rate), ("window", window)] {
            let found = format!("[{low}, {high}]");
            let good = low >= 1.0 && low <= high && high.is_finite();
            Error::ensure(good, &format!("action.limits.{name}"), found, "[min, max], min from 1 on")?;
        }
        let [low, high] = spec.limits.gain();
        let good = low > 0.0 && low <= high && high.is_finite();
        Error::ensure(good, "action.limits.gain", format!("[{low}, {high}]"), "[min, max], min above 0")?;
        let [low, high] = spec.bounds;
        let ordered = low < high && (low as f32).is_finite() && (high as f32).is_finite();
        Error::ensure(ordered, "action.bounds", format!("[{low}, {high}]"), "two float32, the smaller first")?;
        let map = Map::new(spec, expressions)?;
        let active = !matches!(map, Map::Passive);
        let (windowed, scaled) = (spec.target == Target::Cwnd, spec.target == Target::Gain);
        let (overwrites, sets_gain) = (spec.inner.is_some() && active && !scaled, active && scaled);
        let expected =
            "cwnd or gain: it is the window of the base scheme that the agent overwrites, or its queue that it \
                        scales";
        Error::ensure(!overwrites || windowed, "action.target", "neither cwnd nor gain", expected)?;
        let steers = windowed && active;
        let unpaced = spec.pace == Pace::None;
        Error::ensure(unpaced || steers, "action.pace", "a pace", "none: only a steered window alone is paced")?;
        if spec.inner.is_some() && spec.cwnd_cap.is_some() {
            return Err(Error::new("action.cwnd_cap", "a cap", "none: the base scheme has its own window"));
        }
        let cap = match &spec.cwnd_cap {
            None => None,
            Some(cap) => {
                let startup = cap.startup.unwrap_or(cap.bdp);
                let estimate = Expression::parse_in("action.cwnd_cap.estimate", &cap.estimate, "bit/s")?;
                Some(Cap { bdp: cap.bdp, startup, packets: cap.packets, estimate: expressions.insert(estimate) })
            }
        };
        let (target, limits, bounds) = (spec.target, spec.limits, spec.bounds);
        let smoothing = spec.smoothing.iter().map(|step| (step.min_rtt.as_secs_f64(), step.keep)).collect::<Vec<_>>();
        for (i, (_, keep)) in smoothing.iter().enumerate() {
            let place = format!("action.smoothing[{i}]");
            Error::ensure((0.0..1.0).contains(keep), &format!("{place}.keep"), keep, "a fraction below 1")?;
            let ordered = i == 0 || smoothing[i - 1].0 < smoothing[i].0;
            Error::ensure(ordered, &format!("{place}.min_rtt"), "no more than before", "growing minimum RTTs")?;
        }
        let alone = smoothing.is_empty() || spec.inner.is_none();
        Error::ensure(alone, "action.smoothing", "one on top of a base scheme", "none there")?;
        Ok(Self { map, target, limits, bounds, smoothing, pace: spec.pace, cap, overwrites, sets_gain })
    }

    /// Return the fraction of the current value that a decision keeps.
    fn keep(&self, memory: &Memory) -> f64 {
        let reached = self.smoothing.iter().rev().find(|(from, _)| memory.min_rtt >= *from);
        reached.map_or(0.0, |(_, keep)| *keep)
    }

    /// Return the smoothed result of `action` for `quantity`.
    fn outcome(&self, action: [f64; 2], quantity: Quantity, memory: &Memory, values: &Values) -> f64 {
        let (keep, new) = (self.keep(memory), self.map.apply(action, quantity, values));
        if keep > 0.0 {
            keep * quantity.value + (1.0 - keep) * new
        } else {
            new
        }
    }

    /// Return the form of an action.
    pub(crate) fn kind(&self) -> ActionKind {
        match self.map.choices() {
            Some(n) => ActionKind::Discrete(n),
            None => {
                let [low, high] = self.bounds;
                ActionKind::Box { size: self.map.size(), low: low as f32, high: high as f32 }
            }
        }
    }

    /// Return the numbers of `action` within their bounds, an index rounded; `None` if it is invalid.
    pub(crate) fn read(&self, action: &[f32]) -> Option<[f64; 2]> {
        let choices = self.map.choices();
        let size = if choices.is_some() { 1 } else { self.map.size() };
        if action.len() != size || action.iter().any(|a| !a.is_finite()) {
            return None;
        }
        let mut numbers = [0.0; 2];
        for (number, a) in numbers.iter_mut().zip(action) {
            *number = match choices {
                Some(n) => f64::from(a.round()).clamp(0.0, (n - 1) as f64),
                None => f64::from(*a).clamp(self.bounds[0], self.bounds[1]),
            };
        }
        Some(numbers)
    }

    /// Return the current min rate.
    pub(crate) fn rate_floor(&self, memory: &Memory) -> f64 {
        let [low, high] = self.limits.rate;
        (self.limits.packets_per_min_rtt * memory.packet_per_min_rtt()).clamp(low, high)
    }

    /// Return the max packets in flight; infinite while unknown.
    fn cap(&self, memory: &Memory, values: &Values) -> f64 {
        let Some(cap) = self.cap else { return f64::INFINITY };
        let bdp = memory.in_packets(values.get(cap.estimate));
        if bdp > 0.0 {
            let multiple = if memory.phase == Phase::Startup { cap.startup } else { cap.bdp };
            (multiple * bdp + cap.packets).max(self.limits.window[0])
        } else {
            f64::INFINITY
        }
    }
}

/// Current rate, window and gain of one flow. Fractions are kept.
#[derive(Clone, Debug)]
pub(crate) struct Actuator {
    /// bit/s.
    pub rate: f64,
    /// Packets.
    pub window: f64,
    /// Factor on the packets that the base scheme lets wait in the queue.
    pub gain: f64,
    /// True if `window` or `gain` is not written into the base scheme yet.
    unwritten: bool,
    unwritten_gain: bool,
}

impl Actuator {
    pub(crate) fn new() -> Self {
        Self { rate: 0.0, window: 0.0, gain: 1.0, unwritten: false, unwritten_gain: false }
    }

    /// Limit both. A value that is not finite becomes the max.
    pub(crate) fn bound(&mut self, actions: &Actions, memory: &Memory) {
        self.rate = within(self.rate, actions.rate_floor(memory), actions.limits.rate[1]);
        self.window = within(self.window, actions.limits.window[0], actions.limits.window[1]);
    }

    pub(crate) fn apply(&mut self, actions: &Actions, action: [f64; 2], memory: &Memory, values: &Values) {
        if actions.overwrites {
            let map = |value| actions.map.apply(action, Quantity { value, packet: 1.0, component: 1 }, values);
            return self.overwrite(actions, memory, map);
        }
        if actions.sets_gain {
            let quantity = Quantity { value: 1.0, packet: 0.0, component: 0 };
            let [low, high] = actions.limits.gain();
            self.gain = within(actions.map.apply(action, quantity, values), low, high);
            self.unwritten_gain = true;
            return;
        }
        if actions.target.has_rate() {
            let quantity = Quantity { value: self.rate, packet: memory.packet_per_min_rtt(), component: 0 };
            self.rate = actions.outcome(action, quantity, memory, values);
        }
        if actions.target.has_window() {
            let quantity = Quantity { value: self.window, packet: 1.0, component: 1 };
            self.window = actions.outcome(action, quantity, memory, values);
        }
        self.bound(actions, memory);
    }

    /// Set the base scheme's window to the result of `change` for its window at the end of the interval.
    pub(crate) fn overwrite(&mut self, actions: &Actions, memory: &Memory, change: impl FnOnce(f64) -> f64) {
        self.window = change(memory.inner_window);
        self.unwritten = true;
        self.bound(actions, memory);
    }

    /// Return the window to write into the base scheme, in packets, once.
    #[inline]
    pub(crate) fn take_unwritten(&mut self) -> Option<f64> {
        std::mem::take(&mut self.unwritten).then_some(self.window)
    }

    /// Return the gain to write into the base scheme, once.
    #[inline]
    pub(crate) fn take_unwritten_gain(&mut self) -> Option<f64> {
        std::mem::take(&mut self.unwritten_gain).then_some(self.gain)
    }

    /// Return the current decision, without a base scheme.
    pub(crate) fn control(&self, actions: &Actions, memory: &Memory, srtt: f64, values: &Values) -> Control {
        let cap = actions.cap(memory, values);
        let (packets, rate) = match actions.target {
            Target::Rate => (cap, self.rate),
            Target::Both => (self.window.min(cap), self.rate),
            // The base scheme decides.
            Target::Gain => (f64::INFINITY, 0.0),
            Target::Cwnd => (self.window.min(cap), pace(actions.pace, self.window * memory.mss, memory.min_rtt, srtt)),
        };
        Control { pacing_rate: Rate(rate as u64), ..window(packets, memory.mss) }
    }
}

impl Actions {
    /// Return the limits from the base scheme's own decision: all of it, or, if its window is overwritten, at most the
    /// max window, and paced as declared.
    #[inline]
    pub(crate) fn over(&self, inner: &Control, memory: &Memory, srtt: f64) -> Control {
        if !self.overwrites {
            return *inner;
        }
        let cwnd = inner.cwnd.min((self.limits.window[1] * memory.mss) as u64);
        let pacing_rate = match self.pace {
            Pace::None => inner.pacing_rate,
            paced => Rate(pace(paced, cwnd as f64, memory.min_rtt, srtt) as u64),
        };
        Control { cwnd, pacing_rate }
    }
}

/// Return `x` within bounds; a value that is not finite becomes the upper one.
fn within(x: f64, low: f64, high: f64) -> f64 {
    if x.is_finite() {
        x.clamp(low, high)
    } else {
        high
    }
}

/// Return the bit/s of a window of `bytes` per RTT, in seconds; zero, which is unpaced, while the RTT is unknown.
#[inline]
fn pace(pace: Pace, bytes: f64, min_rtt: f64, srtt: f64) -> f64 {
    let rtt = match pace {
        Pace::None => 0.0,
        Pace::CwndOverMinRtt => min_rtt,
        Pace::CwndOverSrtt => srtt,
    };
    if rtt > 0.0 {
        bytes * 8.0 / rtt
    } else {
        0.0
    }
}

/// Make a window in packets; unlimited if infinite.
pub(crate) fn window(packets: f64, mss: f64) -> Control {
    Control::window(if packets.is_finite() { (packets * mss) as u64 } else { u64::MAX })
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Discrete(n) => write!(f, "one of {n}"),
            Self::Box { size, low, high } => write!(f, "{size} real numbers in [{low}, {high}]"),
        }
    }
}
