//! CUBIC (RFC 9438), with the deviations of Linux `net/ipv4/tcp_cubic.c` and of ns-3.37 `tcp-cubic.cc` as modes, so
//! that runs can be compared with a kernel and with published ns-3 tables.

mod inverse;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent, Steerable, Steered};
use ccgym_core::units::{float, whole};
use ccgym_core::{
    cold_path, AckEvent, CongestionControl, Control, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp,
};

use self::inverse::Inverse;
use crate::loss_based::{classic_ecn, Reductions, Verdict};
use crate::ns3_delay::Ns3Delay;
use crate::pacing;
use crate::registry::{parameters, Parameters, SchemeEntry, SchemeInfo};
use crate::slow_start::{HyStart, Input, SlowStart};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "cubic",
        label: "TCP Cubic",
        reference: "RFC 9438",
        summary: "Grows the window by a cubic function of the time since the last loss, independent of the RTT.",
        parameters: parameters! {
            /// rfc: RFC 9438. linux: whole packets counted as tcp_cubic.c does, HyStart. ns3: as TcpCubic of
            /// ns-3.37, without the Reno-friendly region, with smoothed delays in milliseconds.
            mode: choice(&["rfc", "linux", "ns3"]);
            /// Share of the window kept at a loss.
            beta: number(0.7, (0.1, 0.99), "");
            /// Steepness of the cubic function.
            c: number(0.4, (0.001, 100.0), "packets/s³");
            /// Store less than the window at a loss below the last maximum, to make room for other flows.
            fast_convergence: flag(true);
            /// Grow at least as fast as Reno; auto: on, except in mode ns3.
            tcp_friendliness: choice(&["auto", "on", "off"]);
            /// Detector that ends slow start before a loss; auto: hystart++ in mode rfc, else hystart with that stack's
            /// constants.
            start_up: choice(&["auto", "none", "hystart++", "hystart"]);
            /// Pace at 1.25 windows per round trip (2 in slow start) instead of sending on ACKs.
            pacing: flag(false);
            /// Mark packets ECN-capable; a mark cuts the window as a loss does (RFC 9438 §4.6).
            ecn: flag(false);
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Cubic::new(p))),
};

/// Min window after a loss, packets.
const MIN_WINDOW: f64 = 2.0;
/// Max growth toward the target per round trip (RFC 9438 §4.2).
const TARGET_LIMIT: f64 = 1.5;
const SECS_PER_NANO: f64 = 1e-9;
/// Linux: min time between two updates of an unchanged window.
const LINUX_UPDATE_INTERVAL: TimeSpan = TimeSpan(1_000_000_000 / 32);
/// Delay samples this soon after the start of an epoch are discarded: they show the queue from before the reduction.
const LINUX_DISCARD: TimeSpan = TimeSpan::from_millis(1000);
const NS3_DISCARD: TimeSpan = TimeSpan::from_millis(10);
/// Counted growth: max packets acknowledged per packet of growth while no maximum is known.
const COUNT_WITHOUT_MAXIMUM: u64 = 20;
/// Counted growth: min packets acknowledged per packet of growth.
const COUNT_MIN: u64 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Rfc,
    Linux,
    Ns3,
}

/// State that a spurious loss restores (RFC 9438 §4.9), in packets and seconds.
#[derive(Clone, Copy, Debug)]
struct State {
    /// cwnd; a whole number in the counted modes.
    window: f64,
    ssthresh: f64,
    /// W_max of the last loss; zero if none: the next epoch starts at its own window.
    w_max: f64,
    /// cwnd_prior: the window before the last reduction, or at the end of a slow start without loss.
    prior: f64,
    /// Start of the epoch, shifted by the application-limited time; `NEVER` before congestion avoidance.
    epoch: Timestamp,
    /// K.
    k: f64,
    /// The plateau of the epoch: W_max, or the epoch's first window if that is larger.
    plateau: f64,
    /// W_est, the Reno-friendly window.
    w_est: f64,
    inverse: Inverse,
    counted: Counted,
}

/// Growth by counting: one packet per `every` acknowledged packets.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    every: u64,
    /// Packets acknowledged since the last growth.
    credit: u64,
    /// Packets acknowledged since the last step of W_est.
    friendly_credit: u64,
    updated: Timestamp,
    updated_at_window: f64,
}

#[derive(Clone, Debug)]
pub struct Cubic {
    mode: Mode,
    beta: f64,
    c: f64,
    /// α = 3(1−β)/(1+β) (RFC 9438 §4.3): W_est then averages what Reno would.
    alpha: f64,
    fast_convergence: bool,
    friendly: bool,
    paced: bool,
    mss: u64,
    per_mss: f64,
    /// mss, for conversions.
    bytes_per_packet: f64,
    state: State,
    /// The state before the latest reduction.
    before: Option<State>,
    reductions: Reductions,
    slow_start: SlowStart,
    /// Delay in the counted modes.
    delay: Option<TimeSpan>,
    delay_min: TimeSpan,
    ns3_delay: Ns3Delay,
    /// The last acknowledgement outside recovery.
    last_ack: Timestamp,
    /// `state.window` in bytes.
    cwnd: u64,
    pacing_rate: Rate,
}

impl Cubic {
    pub(crate) fn new(p: &Parameters) -> Self {
        let (mode, default_start_up) = match p.word("mode") {
            "linux" => (Mode::Linux, "hystart"),
            "ns3" => (Mode::Ns3, "hystart"),
            _ => (Mode::Rfc, "hystart++"),
        };
        let paced = p.flag("pacing");
        let start_up = match p.word("start_up") {
            "auto" => default_start_up,
            named => named,
        };
        let slow_start = match (start_up, mode) {
            ("hystart", Mode::Ns3) => SlowStart::HyStart(HyStart::ns3()),
            _ => SlowStart::by_name(start_up, paced),
        };
        // Linux stores both constants in 1/1024.
        let stored = |value: f64| if mode == Mode::Linux { (value * 1024.0).round() / 1024.0 } else { value };
        let beta = stored(p.number("beta"));
        Self {
            mode,
            beta,
            c: stored(p.number("c")).max(1.0 / 1024.0),
            alpha: 3.0 * (1.0 - beta) / (1.0 + beta),
            fast_convergence: p.flag("fast_convergence"),
            friendly: match p.word("tcp_friendliness") {
                "auto" => mode != Mode::Ns3,
                word => word == "on",
            },
            paced,
            mss: 1,
            per_mss: 1.0,
            bytes_per_packet: 1.0,
            state: State {
                window: 0.0,
                ssthresh: f64::INFINITY,
                w_max: 0.0,
                prior: 0.0,
                epoch: Timestamp::NEVER,
                k: 0.0,
                plateau: 0.0,
                w_est: 0.0,
                inverse: Inverse::default(),
                counted: Counted::default(),
            },
            before: None,
            reductions: Reductions::new(classic_ecn(p)),
            slow_start,
            delay: None,
            delay_min: TimeSpan::MAX,
            ns3_delay: Ns3Delay::default(),
            last_ack: Timestamp::ZERO,
            cwnd: 0,
            pacing_rate: Rate::ZERO,
        }
    }

    pub(crate) fn is_in_slow_start(&self) -> bool {
        self.state.window < self.state.ssthresh
    }

    /// Continue with a window of `window` packets, the plateau of a new epoch, and this ssthresh, packets.
    pub(crate) fn resume(&mut self, window: f64, ssthresh: f64) {
        self.state = State { window, ssthresh, w_max: window, prior: window, epoch: Timestamp::NEVER, ..self.state };
        self.before = None;
        self.publish(TimeSpan::ZERO);
    }

    /// Convert bytes to packets: whole ones in the counted modes.
    fn packets(&self, bytes: u64) -> f64 {
        match self.mode {
            Mode::Rfc => bytes as f64 / self.mss as f64,
            Mode::Linux | Mode::Ns3 => (bytes / self.mss) as f64,
        }
    }

    /// Reduce the window (RFC 9438 §4.6 and §4.7). `flight` are the bytes in flight.
    #[inline(never)]
    fn reduce(&mut self, flight: u64) {
        self.before = Some(self.state);
        let flight = self.packets(flight);
        let s = &mut self.state;
        let window = s.window;
        s.prior = window;
        s.w_max = if self.fast_convergence && window < s.w_max { window * (1.0 + self.beta) / 2.0 } else { window };
        // The RFC reduces the packets in flight, Linux and ns-3 the window, which may not be used in full.
        s.ssthresh = match self.mode {
            Mode::Rfc => flight.min(window) * self.beta,
            Mode::Linux | Mode::Ns3 => {
                s.w_max = s.w_max.floor();
                (window * self.beta).floor()
            }
        }
        .max(MIN_WINDOW);
        s.window = s.ssthresh;
        s.epoch = Timestamp::NEVER;
        self.slow_start.on_congestion();
    }

    /// Begin an epoch at the first acknowledgement in congestion avoidance (RFC 9438 §4.2, §4.8, §4.10).
    #[cold]
    fn begin_epoch(&mut self, now: Timestamp) {
        let s = &mut self.state;
        s.epoch = now;
        s.w_est = s.window;
        s.counted.friendly_credit = 0;
        if s.w_max <= s.window {
            s.k = 0.0;
            s.plateau = s.window;
        } else {
            s.k = ((s.w_max - s.window) / self.c).cbrt();
            s.plateau = s.w_max;
        }
    }

    /// Grow by the rules of RFC 9438 §4.2 to §4.5, for `acked` packets.
    #[inline]
    fn grow(&mut self, now: Timestamp, srtt: TimeSpan, acked: f64) {
        let s = &mut self.state;
        let window = s.window;
        let share = acked * s.inverse.of(window);
        let cubic = |t: f64| {
            let d = t - s.k;
            self.c * d * d * d + s.plateau
        };
        let t = float(now.since(s.epoch).0) * SECS_PER_NANO;
        if self.friendly {
            s.w_est += share * if s.w_est < s.prior { self.alpha } else { 1.0 };
            if cubic(t) < s.w_est {
                let friendly = window.max(s.w_est);
                return self.set_window(friendly);
            }
        }
        let ahead = cubic(t + float(srtt.0) * SECS_PER_NANO) - window;
        // The target is at most 1.5 windows away, and never below the window.
        self.set_window(window + (ahead * share).max(0.0).min((TARGET_LIMIT - 1.0) * acked));
    }

    /// Set the window in packets, in bytes, and its inverse for the next acknowledgement.
    #[inline]
    fn set_window(&mut self, window: f64) {
        self.state.window = window;
        self.cwnd = whole(window * self.bytes_per_packet);
        self.state.inverse = Inverse::of_window(window);
    }

    /// Grow in whole packets: the target becomes a number of acknowledgements per packet.
    #[inline(never)]
    fn grow_counted(&mut self, now: Timestamp, acked: u64) {
        let linux = self.mode == Mode::Linux;
        self.state.counted.friendly_credit += acked;
        let s = &self.state;
        let unchanged = s.counted.updated_at_window == s.window;
        if !(linux && unchanged && now.since(s.counted.updated) <= LINUX_UPDATE_INTERVAL) {
            self.update_count(now);
        }
        let s = &mut self.state;
        let count = &mut s.counted;
        if linux {
            // Credit left over from a larger count is worth one packet at most (`tcp_cong_avoid_ai`).
            if count.credit >= count.every {
                count.credit = 0;
                s.window += 1.0;
            }
            count.credit += acked;
            if count.credit >= count.every {
                let steps = count.credit / count.every;
                count.credit -= steps * count.every;
                s.window += steps as f64;
            }
        } else {
            count.credit += acked;
            if count.credit >= count.every {
                count.credit -= count.every;
                s.window += 1.0;
            }
        }
    }

    fn update_count(&mut self, now: Timestamp) {
        let delay_min = if self.delay_min == TimeSpan::MAX { TimeSpan::ZERO } else { self.delay_min };
        let s = &mut self.state;
        s.counted.updated = now;
        s.counted.updated_at_window = s.window;
        let window = s.window as u64;
        let d = (now.since(s.epoch) + delay_min).0 as f64 * SECS_PER_NANO - s.k;
        // Both stacks truncate the distance from the plateau, not the target.
        let target = s.plateau as i64 + (self.c * d * d * d) as i64;
        let ahead = target - window as i64;
        let mut every = if ahead > 0 { window / ahead as u64 } else { 100 * window };
        if s.w_max == 0.0 {
            every = every.min(COUNT_WITHOUT_MAXIMUM);
        }
        if self.friendly {
            // 1/α in eighths, truncated as Linux has it: 15/8 for β = 717/1024.
            let eighths = (8.0 * (1.0 + self.beta) / 3.0 / (1.0 - self.beta)) as u64;
            let step = (window * eighths / 8).max(1);
            let steps = s.counted.friendly_credit.saturating_sub(1) / step;
            s.counted.friendly_credit -= steps * step;
            s.w_est += steps as f64;
            let w_est = s.w_est as u64;
            if w_est > window {
                every = every.min(window / (w_est - window));
            }
        }
        s.counted.every = every.max(COUNT_MIN);
    }

    /// Keep the delay for HyStart and the counted modes. Linux takes raw samples; ns-3 its smoothed value, and none in
    /// recovery.
    #[inline]
    fn observe_delay(&mut self, event: &AckEvent<'_>) {
        self.delay = event.rtt_sample;
        let Some(sample) = event.rtt_sample else { return };
        let (delay, discard) = match self.mode {
            Mode::Rfc => {
                self.delay_min = event.rtt.min();
                return;
            }
            Mode::Linux => (sample, LINUX_DISCARD),
            Mode::Ns3 if event.in_recovery => return,
            Mode::Ns3 => (self.ns3_delay.update(event.now, sample), NS3_DISCARD),
        };
        self.delay = Some(delay);
        if self.state.epoch.is_set() && event.now.since(self.state.epoch) < discard {
            return;
        }
        self.delay_min = self.delay_min.min(delay);
    }

    #[inline]
    fn on_growth_ack(&mut self, event: &AckEvent<'_>) {
        let idle = event.now.since(self.last_ack);
        self.last_ack = event.now;
        let mut acked_bytes = event.counted_bytes;
        if self.is_in_slow_start() {
            let Some(left) = self.grow_in_slow_start(event) else { return };
            acked_bytes = left;
        }
        if !event.cwnd_limited {
            cold_path();
            // RFC 9438 §5.8: time spent application-limited is not time in the epoch.
            if self.state.epoch.is_set() {
                self.state.epoch += idle;
            }
            return;
        }
        if acked_bytes == 0 {
            return;
        }
        if !self.state.epoch.is_set() {
            self.begin_epoch(event.now);
        }
        match self.mode {
            Mode::Rfc => self.grow(event.now, event.rtt.smoothed(), float(acked_bytes) * self.per_mss),
            Mode::Linux | Mode::Ns3 => self.grow_counted(event.now, acked_bytes.div_ceil(self.mss)),
        }
    }

    /// Grow in slow start; returns the bytes that count for congestion avoidance, `None` if it goes on.
    #[cold]
    #[inline(never)]
    fn grow_in_slow_start(&mut self, event: &AckEvent<'_>) -> Option<u64> {
        let step = self.slow_start.on_ack(&Input {
            event,
            cwnd: self.cwnd,
            mss: self.mss,
            delay: self.delay,
            delay_min: self.delay_min,
        });
        if step.exit {
            self.state.ssthresh = self.state.window;
            self.state.prior = self.state.window;
        } else if event.cwnd_limited {
            let s = &mut self.state;
            let growth = step.growth as f64 / self.mss as f64;
            if self.mode == Mode::Ns3 {
                // ns-3 grows past ssthresh and enters congestion avoidance with the next acknowledgement.
                s.window += growth;
                return None;
            }
            let room = s.ssthresh - s.window;
            if growth < room {
                s.window += growth;
                return None;
            }
            // The growth beyond ssthresh counts for congestion avoidance (Linux `tcp_slow_start`).
            s.window = s.ssthresh;
            return Some(((growth - room) * self.mss as f64) as u64);
        } else {
            return None;
        }
        Some(event.counted_bytes)
    }

    #[inline]
    fn publish(&mut self, srtt: TimeSpan) {
        if self.state.inverse.window != self.state.window {
            // The window was changed by something else than growth along the curve.
            cold_path();
            self.set_window(self.state.window);
        }
        if self.paced {
            self.pacing_rate = pacing::of_window(self.cwnd, self.is_in_slow_start(), srtt);
        }
    }
}

impl CongestionControl for Cubic {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ecn: self.reductions.ecn(), pacing_required: self.paced, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.per_mss = 1.0 / context.mss as f64;
        self.bytes_per_packet = context.mss as f64;
        self.state.window = self.packets(context.initial_window);
        self.cwnd = context.initial_window;
        self.last_ack = context.now;
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        if self.mode == Mode::Ns3 {
            self.ns3_delay.update(now, rtt_sample);
        }
    }

    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.observe_delay(event);
        match self.reductions.judge(event) {
            Verdict::Grow => self.on_growth_ack(event),
            Verdict::Hold => {}
            Verdict::Loss | Verdict::Mark => {
                cold_path();
                self.reduce(event.prior_in_flight);
            }
        }
        self.publish(event.rtt.smoothed());
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        // RFC 5681 §3.1: only the first expiry sets ssthresh.
        if event.count <= 1 || self.mode == Mode::Ns3 {
            self.reduce(event.prior_in_flight);
        }
        // RFC 9438 §4.8: the next epoch starts on its own plateau.
        self.state.w_max = 0.0;
        self.state.window = 1.0;
        self.state.epoch = Timestamp::NEVER;
        if self.mode != Mode::Ns3 {
            self.state.counted = Counted::default();
        }
        self.reductions.on_timeout();
        if self.mode != Mode::Rfc {
            self.delay_min = TimeSpan::MAX;
        }
        self.slow_start.on_timeout();
        self.publish(event.rtt.smoothed());
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        let Some(before) = self.before.take() else { return };
        let (window, ssthresh) = (self.state.window, self.state.ssthresh);
        if self.mode == Mode::Rfc {
            // RFC 9438 §4.9: restore all state, so that the curve continues.
            self.state = before;
        }
        self.state.window = window.max(before.window);
        self.state.ssthresh = ssthresh.max(before.ssthresh);
        self.cwnd = (self.state.window * self.mss as f64) as u64;
    }

    /// The curve stays: epoch, plateau and K are those of the last loss, and the new window grows toward it, below
    /// ssthresh in slow start.
    #[inline]
    fn control(&self) -> Control {
        Control { pacing_rate: self.pacing_rate, ..Control::window(self.cwnd) }
    }

    fn ssthresh(&self) -> Option<u64> {
        // A cast from infinity saturates: ssthresh is not set yet.
        Some((self.state.ssthresh * self.mss as f64) as u64)
    }

    fn observables(&self) -> Observables {
        let s = &self.state;
        vec![
            ("cwnd_packets", s.window),
            ("ssthresh_packets", s.ssthresh),
            ("w_max_packets", s.w_max),
            ("w_est_packets", s.w_est),
            ("k_s", s.k),
            ("slow_start_phase", self.slow_start.phase()),
        ]
    }

    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        Some(self)
    }
}

impl Steerable for Cubic {
    fn steered(&self) -> Steered {
        Steered::Cwnd
    }

    fn steer(&mut self, value: f64) {
        self.set_window(self.packets(value as u64).max(1.0));
    }
}

#[cfg(test)]
mod tests;
