//! The start of a flow, until the agent decides.

use super::action::{window, Actions, Actuator};
use super::memory::Memory;
use super::spec::{ActionSpec, Exit, Pace, StartupSpec, Target};
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{Rate, TimeSpan};
use ccgym_core::Control;
use ccgym_core::Error;

/// Growth of the max delivery rate below which a round trip counts as flat, and number of those that ends slow start
/// (BBR's test of a full pipe).
const GROWTH: f64 = 1.25;
const FLAT_ROUNDS: u32 = 3;
/// Part of the min RTT by which that of the latest round may exceed it.
const DELAY: f64 = 1.0 / 8.0;
/// Window of an agent with a rate and an unknown RTT, in multiples of rate × first RTT.
const WINDOW_OF_RATE: f64 = 2.0;

impl StartupSpec {
    pub(crate) fn check(&self, action: &ActionSpec) -> Result<(), Error> {
        let inner = action.inner.is_some();
        match self {
            Self::Inner { .. } | Self::None {} => {
                Error::ensure(inner, "startup.kind", "inner or none", "a kind that does not need action.inner")?;
                let Self::Inner { gain } = self else { return Ok(()) };
                let own = *gain == 1.0 || action.target != Target::Gain;
                Error::ensure(own, "startup.gain", gain, "1: the agent steers no window")
            }
            _ if inner => {
                let expected = "inner or none: the base scheme starts the flow";
                Err(Error::new("startup.kind", "a start-up of the agent's own", expected))
            }
            Self::Rate { .. } => {
                let steered = action.target.has_rate();
                Error::ensure(steered, "startup.kind", "rate", "window: the target is the window")
            }
            Self::Window { .. } | Self::PacketsPerRtt { .. } => Ok(()),
            Self::SlowStart { exit, .. } => {
                Error::ensure(!exit.is_empty(), "startup.exit", "none", "at least one of loss, plateau, delay")
            }
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Rate { rate } => format!("at {} Mbit/s", rate / 1e6),
            Self::Window { packets } => format!("with a window of {packets} packets"),
            Self::PacketsPerRtt { packets } => {
                format!("{packets} packets, unpaced, before the first round trip; then {packets} packets per that")
            }
            Self::SlowStart { packets, exit } => {
                let word = |exit: &Exit| match exit {
                    Exit::Loss => "a loss or timeout",
                    Exit::Plateau => "three round trips in which the max delivery rate grew by less than a quarter",
                    Exit::Delay => "a round whose min RTT is an eighth above that of all",
                };
                let signs: Vec<_> = exit.iter().map(word).collect();
                format!("from {packets} packets doubling each round trip until {}", signs.join(", or "))
            }
            Self::Inner { gain } => {
                let also =
                    if *gain == 1.0 { String::new() } else { format!(", its window times {gain} each interval") };
                format!("as the base scheme{also}; the agent acts once that has left slow start")
            }
            Self::None {} => "as the base scheme; the agent acts at once".to_owned(),
        }
    }
}

/// The start of one flow.
#[derive(Clone, Debug)]
pub(crate) enum Startup {
    /// Over: the agent decides.
    Over,
    /// The rate waits for a round trip; until then, this many packets.
    BeforeRtt(f64),
    /// Doubling.
    SlowStart(SlowStart),
    /// The base scheme is in slow start.
    Inner(Rounds),
}

/// A window that doubles each round trip.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    /// Window, packets.
    window: f64,
    /// RTT samples that have grown the window in the current interval.
    counted: u64,
    rounds: Rounds,
}

/// Observations per round trip.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// True after a loss or timeout.
    lost: bool,
    /// Length of the round so far, bytes acknowledged and minimum RTT in it; seconds, bytes.
    seconds: f64,
    acked: u64,
    rtt: Option<f64>,
    /// Max delivery rate of a round when it last grew.
    full: f64,
    flat: u32,
    delayed: bool,
}

impl Rounds {
    fn add(&mut self, m: &MonitorInterval, memory: &Memory) {
        self.lost |= m.lost_packets > 0 || m.timeouts > 0;
        self.seconds += memory.seconds;
        self.acked += m.acked_bytes;
        if let Some(rtt) = m.interval_min_rtt() {
            let rtt = rtt.as_secs_f64();
            self.rtt = Some(self.rtt.map_or(rtt, |min| min.min(rtt)));
        }
        if memory.min_rtt <= 0.0 || self.seconds < memory.min_rtt || self.seconds <= 0.0 {
            return;
        }
        let rate = self.acked as f64 / self.seconds;
        if rate >= GROWTH * self.full && rate > 0.0 {
            (self.full, self.flat) = (rate, 0);
        } else if self.full > 0.0 {
            self.flat += 1;
        }
        self.delayed |= self.rtt.is_some_and(|rtt| rtt > (1.0 + DELAY) * memory.min_rtt);
        (self.seconds, self.acked, self.rtt) = (0.0, 0, None);
    }

    fn says(&self, exit: Exit) -> bool {
        match exit {
            Exit::Loss => self.lost,
            Exit::Plateau => self.flat >= FLAT_ROUNDS,
            Exit::Delay => self.delayed,
        }
    }
}

impl Startup {
    /// Start; sets the first values of `actuator`. `rate` and `packets` override those of `spec`.
    pub(crate) fn new(
        spec: &StartupSpec,
        actions: &Actions,
        rate: Option<f64>,
        packets: Option<f64>,
        actuator: &mut Actuator,
        memory: &Memory,
    ) -> Self {
        let startup = match spec {
            StartupSpec::Inner { .. } => return Self::Inner(Rounds::default()),
            StartupSpec::None {} => return Self::Over,
            StartupSpec::SlowStart { packets: n, .. } => {
                let (window, counted, rounds) = (packets.unwrap_or(*n), 0, Rounds::default());
                actuator.window = window;
                Self::SlowStart(SlowStart { window, counted, rounds })
            }
            StartupSpec::Rate { rate: given } => {
                Self::at(rate.or(packets.is_none().then_some(*given)), packets, actions.target, actuator)
            }
            StartupSpec::Window { packets: n } | StartupSpec::PacketsPerRtt { packets: n } => {
                let needed = rate.is_none() || actions.target == Target::Cwnd;
                Self::at(rate, packets.or(needed.then_some(*n)), actions.target, actuator)
            }
        };
        actuator.bound(actions, memory);
        startup
    }

    /// Start at a rate, with a window, or both.
    fn at(rate: Option<f64>, packets: Option<f64>, target: Target, actuator: &mut Actuator) -> Self {
        actuator.rate = rate.unwrap_or(0.0);
        actuator.window = packets.unwrap_or(f64::INFINITY);
        match (target, rate) {
            (Target::Cwnd | Target::Gain, _) | (Target::Rate, Some(_)) => Self::Over,
            (Target::Both, Some(_)) if packets.is_some() => Self::Over,
            (Target::Both, Some(_)) => Self::BeforeRtt(f64::INFINITY),
            (_, None) => Self::BeforeRtt(actuator.window),
        }
    }

    /// True if the agent decides.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// True if the agent does not decide at all. (Before the first RTT it does, without effect.)
    pub(crate) fn bypasses(&self) -> bool {
        matches!(self, Self::SlowStart(_) | Self::Inner(_))
    }

    /// Process an RTT sample.
    pub(crate) fn on_rtt(&mut self, sample: TimeSpan, actuator: &mut Actuator, actions: &Actions, memory: &Memory) {
        match self {
            Self::Over | Self::Inner(_) => {}
            Self::BeforeRtt(packets) => {
                let seconds = sample.as_secs_f64().max(1e-9);
                if packets.is_finite() {
                    actuator.rate = *packets * 8.0 * memory.mss / seconds;
                } else {
                    actuator.window = WINDOW_OF_RATE * actuator.rate * seconds / (8.0 * memory.mss);
                }
                actuator.bound(actions, memory);
                *self = Self::Over;
            }
            Self::SlowStart(s) => {
                s.window = (s.window + 1.0).min(actions.limits.window[1]);
                s.counted += 1;
            }
        }
    }

    /// Process a loss or timeout.
    pub(crate) fn on_loss(&mut self) {
        match self {
            Self::SlowStart(SlowStart { rounds, .. }) | Self::Inner(rounds) => rounds.lost = true,
            _ => {}
        }
    }

    /// Add an interval that `memory` has digested; the start may end with it.
    pub(crate) fn on_interval(
        &mut self,
        spec: &StartupSpec,
        m: &MonitorInterval,
        actuator: &mut Actuator,
        actions: &Actions,
        memory: &Memory,
    ) {
        match self {
            Self::Inner(rounds) => {
                rounds.add(m, memory);
                // In slow start ssthresh is not reached. Without ssthresh, a loss or a plateau ends it.
                let left = m.ssthresh.is_some_and(|threshold| m.cwnd >= threshold);
                if left || rounds.lost || (m.ssthresh.is_none() && rounds.says(Exit::Plateau)) {
                    *self = Self::Over;
                } else if let StartupSpec::Inner { gain } = spec {
                    if *gain != 1.0 {
                        actuator.overwrite(actions, memory, |window| window * gain);
                    }
                }
            }
            Self::SlowStart(s) => {
                s.rounds.add(m, memory);
                // Packets acknowledged without an RTT sample.
                let rest = m.acked_packets.saturating_sub(std::mem::take(&mut s.counted));
                s.window = (s.window + rest as f64).min(actions.limits.window[1]);
                let StartupSpec::SlowStart { exit, .. } = spec else { return };
                if exit.iter().any(|exit| s.rounds.says(*exit)) {
                    let known = memory.max_delivery_rate > 0.0 && memory.min_rtt > 0.0;
                    actuator.rate = if known { memory.max_delivery_rate } else { 0.0 };
                    actuator.window = if known { memory.bdp() } else { s.window / 2.0 };
                    actuator.bound(actions, memory);
                    *self = Self::Over;
                }
            }
            Self::Over | Self::BeforeRtt(_) => {}
        }
    }

    /// Return the current decision, unless the agent decides.
    pub(crate) fn control(&self, actions: &Actions, memory: &Memory) -> Option<Control> {
        match self {
            Self::Over | Self::Inner(_) => None,
            Self::BeforeRtt(packets) if packets.is_finite() => Some(window(packets.max(1.0), memory.mss)),
            Self::BeforeRtt(_) => None,
            Self::SlowStart(s) => {
                // Paced at two windows per RTT, so that pacing does not prevent the window from doubling.
                let paced = actions.pace != Pace::None && memory.min_rtt > 0.0;
                let rate = if paced { 2.0 * s.window * 8.0 * memory.mss / memory.min_rtt } else { 0.0 };
                Some(Control { pacing_rate: Rate(rate as u64), ..window(s.window, memory.mss) })
            }
        }
    }
}
