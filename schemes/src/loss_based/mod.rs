//! The common part of schemes that keep a window and reduce it at a loss: Reno and similar schemes.
//!
//! [`LossBased`] is the scheme: slow start, one reduction per recovery episode, no growth of unused windows, timeouts,
//! spurious losses, marks and optional pacing. A [`Rule`] adds what differs: the growth of the window in congestion
//! avoidance, and its reduction at a congestion event. CUBIC has a curve and a window of its own, and uses only
//! [`Reductions`].

mod marks;
mod reductions;
mod rounds;

use std::fmt::Debug;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent, Steerable, Steered};
use ccgym_core::{AckEvent, CongestionControl, Control, Ecn, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};

use crate::pacing;
use crate::registry::{Parameter, Parameters};
use crate::slow_start::{Input, SlowStart};

pub use marks::MarkedShare;
pub use reductions::{Reductions, Verdict};
pub use rounds::Rounds;

/// Parameters that any scheme of this kind can have besides its own.
pub const START_UP: Parameter = Parameter::choice(
    "start_up",
    &["none", "hystart++", "hystart"],
    "Detector that ends slow start before a loss; none: slow start ends at a loss.",
);
pub const PACING: Parameter = Parameter::flag(
    "pacing",
    false,
    "Pace at 1.25 windows per round trip (2 in slow start) instead of sending on ACKs.",
);
pub const ECN: Parameter =
    Parameter::flag("ecn", false, "Mark packets ECN-capable; a mark reduces the window as a loss does (RFC 3168).");

/// Return the codepoint for the parameter [`ECN`].
pub fn classic_ecn(p: &Parameters) -> Ecn {
    if p.flag(ECN.name) {
        Ecn::Ect0
    } else {
        Ecn::NotEct
    }
}

/// Assumed RTT of a rule that is always paced before the first sample, as in Linux (1 ms).
const UNKNOWN_RTT: TimeSpan = TimeSpan::from_millis(1);
/// Min window after a reduction, packets (RFC 5681 §3.1, equation 4).
const MIN_WINDOW: u64 = 2;

/// Window and ssthresh in whole bytes, so that halving is exact.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Wire bytes of a full packet.
    pub mss: u64,
    pub cwnd: u64,
    pub ssthresh: u64,
    /// Bytes acknowledged since congestion avoidance last grew the window (RFC 3465 §2.1).
    pub(crate) counted: u64,
}

impl Window {
    /// Make a window in congestion avoidance, for tests of rules.
    #[cfg(test)]
    pub fn of_packets(packets: f64, mss: u64) -> Self {
        let cwnd = (packets * mss as f64) as u64;
        Self { mss, cwnd, ssthresh: cwnd, counted: 0 }
    }

    /// Return cwnd in packets.
    #[inline]
    pub fn packets(&self) -> f64 {
        self.cwnd as f64 / self.mss as f64
    }

    /// Convert packets to bytes.
    pub fn bytes(&self, packets: f64) -> u64 {
        (packets * self.mss as f64) as u64
    }

    /// Grow in slow start, up to ssthresh. Returns the growth beyond it, which counts for congestion avoidance (Linux
    /// `tcp_slow_start`).
    #[inline]
    pub fn add_to_threshold(&mut self, growth: u64) -> u64 {
        let added = growth.min(self.ssthresh - self.cwnd);
        self.cwnd += added;
        growth - added
    }

    /// Add one packet for each window acknowledged (RFC 3465 §2.1).
    #[inline]
    pub fn add_per_window(&mut self, acked: u64) {
        self.counted += acked;
        while self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    /// Add `increase` packets for each window acknowledged.
    #[inline]
    pub fn add_scaled(&mut self, increase: f64, acked: u64) {
        self.add_per_window((increase * acked as f64) as u64);
    }
}

/// Reason of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    Loss,
    Mark,
    Timeout,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    pub cause: Cause,
    pub now: Timestamp,
    /// Bytes in flight before and after the detection.
    pub flight: u64,
    pub left: u64,
}

/// The rules of one scheme.
pub trait Rule: Clone + Debug + Send + Sync + 'static {
    /// ECN codepoint of its packets; `None`: set by the parameter [`ECN`].
    const CODEPOINT: Option<Ecn> = None;
    /// Pacing gain after slow start, in windows per RTT, of a scheme that is always paced; `None`: set by the parameter
    /// [`PACING`].
    const PACING_GAIN: Option<f64> = None;
    /// Start the flow.
    fn init(&mut self, _now: Timestamp) {}
    /// Process the end of the handshake.
    fn handshake(&mut self, _now: Timestamp, _rtt_sample: TimeSpan) {}
    /// Send again after idle time.
    fn idle_restart(&mut self) {}
    /// Measure at each acknowledgement, before any change of the window.
    fn observe(&mut self, _window: &Window, _event: &AckEvent<'_>) {}
    /// Process an acknowledgement that may let the window grow, before it does.
    fn before_growth(&mut self, _window: &mut Window, _event: &AckEvent<'_>) {}
    /// Grow in slow start: the strategy allows `growth` bytes for `acked` acknowledged ones. Returns the bytes that
    /// count for congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, growth: u64, _acked: u64) -> u64 {
        window.add_to_threshold(growth)
    }
    /// Grow in congestion avoidance: `acked` bytes were acknowledged and the window was used.
    fn avoid(&mut self, window: &mut Window, now: Timestamp, acked: u64);
    /// Return the new ssthresh in bytes after congestion, which becomes the window unless it was a timeout. It is
    /// raised to two packets if less.
    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64;
    /// Return the time after a reduction for a mark in which marks do not reduce again, even if the RTT is shorter.
    fn mark_spacing(&self) -> TimeSpan {
        TimeSpan::ZERO
    }
    /// Undo the latest, spurious reduction; window and ssthresh are restored already.
    fn undo(&mut self) {}
    /// Return the state for time series.
    fn observables(&self, _mss: u64) -> Observables {
        Vec::new()
    }
}

/// A scheme with a [`Rule`]: the state of one flow.
#[derive(Clone, Debug)]
pub struct LossBased<R> {
    rule: R,
    paced: bool,
    window: Window,
    slow_start: SlowStart,
    reductions: Reductions,
    /// Window and ssthresh before the latest reduction.
    before: Option<(u64, u64)>,
    pacing_rate: Rate,
}

impl<R: Rule> LossBased<R> {
    /// Make it with the parameter [`START_UP`], and [`PACING`] and [`ECN`] if the rule does not set them.
    pub fn new(p: &Parameters, rule: R) -> Self {
        let paced = R::PACING_GAIN.is_some() || p.flag(PACING.name);
        Self {
            paced,
            slow_start: SlowStart::by_name(p.word(START_UP.name), paced),
            reductions: Reductions::new(R::CODEPOINT.unwrap_or_else(|| classic_ecn(p))),
            ..Self::plain(rule)
        }
    }

    /// Make it without these parameters, as if all were off.
    pub fn plain(rule: R) -> Self {
        Self {
            rule,
            paced: false,
            window: Window { mss: 0, cwnd: 0, ssthresh: u64::MAX, counted: 0 },
            slow_start: SlowStart::Standard,
            reductions: Reductions::new(Ecn::NotEct),
            before: None,
            pacing_rate: Rate::ZERO,
        }
    }

    fn reduce(&mut self, congestion: &Congestion) {
        let w = &mut self.window;
        self.before = Some((w.cwnd, w.ssthresh));
        w.ssthresh = self.rule.reduce(w, congestion).max(MIN_WINDOW * w.mss);
        w.cwnd = w.ssthresh;
        w.counted = 0;
        self.slow_start.on_congestion();
    }

    fn on_congestion(&mut self, cause: Cause, event: &AckEvent<'_>) {
        self.reduce(&Congestion { cause, now: event.now, flight: event.prior_in_flight, left: event.in_flight });
    }

    #[inline]
    fn grow(&mut self, event: &AckEvent<'_>) {
        let w = &mut self.window;
        self.rule.before_growth(w, event);
        let mut acked = event.acked_bytes;
        if w.cwnd < w.ssthresh {
            let step = self.slow_start.on_ack(&Input {
                event,
                cwnd: w.cwnd,
                mss: w.mss,
                delay: event.rtt_sample,
                delay_min: event.rtt.min(),
            });
            if step.exit {
                w.ssthresh = w.cwnd;
            } else if !event.cwnd_limited {
                return;
            } else {
                acked = self.rule.slow_start(w, step.growth, acked);
            }
            if w.cwnd < w.ssthresh {
                return;
            }
        }
        if event.cwnd_limited && acked > 0 {
            self.rule.avoid(w, event.now, acked);
        }
    }

    #[inline]
    fn pace(&mut self, srtt: TimeSpan) {
        if self.paced {
            let w = &self.window;
            let after_slow_start = R::PACING_GAIN.unwrap_or(pacing::AVOIDANCE_GAIN);
            let gain = if w.cwnd < w.ssthresh { pacing::SLOW_START_GAIN } else { after_slow_start };
            let unknown = R::PACING_GAIN.is_some() && srtt == TimeSpan::ZERO;
            self.pacing_rate = pacing::rate(w.cwnd as f64, if unknown { UNKNOWN_RTT } else { srtt }, gain);
        }
    }
}

impl<R: Rule> CongestionControl for LossBased<R> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { ecn: self.reductions.ecn(), pacing_required: self.paced, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.window.mss = context.mss;
        self.window.cwnd = context.initial_window;
        self.rule.init(context.now);
        self.pace(TimeSpan::ZERO);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.rule.handshake(now, rtt_sample);
    }

    #[inline]
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.rule.observe(&self.window, event);
        match self.reductions.judge(event) {
            Verdict::Loss => self.on_congestion(Cause::Loss, event),
            Verdict::Mark => {
                self.on_congestion(Cause::Mark, event);
                self.reductions.hold_marks(event.now + self.rule.mark_spacing());
            }
            Verdict::Grow => self.grow(event),
            Verdict::Hold => {}
        }
        self.pace(event.rtt.smoothed());
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        // RFC 5681 §3.1: only the first expiry sets ssthresh.
        if event.count <= 1 {
            let flight = event.prior_in_flight;
            self.reduce(&Congestion { cause: Cause::Timeout, now: event.now, flight, left: 0 });
        }
        self.window.cwnd = self.window.mss;
        self.window.counted = 0;
        self.reductions.on_timeout();
        self.slow_start.on_timeout();
        self.pace(event.rtt.smoothed());
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
            self.window.ssthresh = self.window.ssthresh.max(ssthresh);
            self.rule.undo();
        }
    }

    fn on_idle_restart(&mut self, _now: Timestamp) {
        self.rule.idle_restart();
    }

    #[inline]
    fn control(&self) -> Control {
        let Window { cwnd, mss, .. } = self.window;
        // A paced window is rounded up to whole packets: the rate is exact anyway (Linux `tcp_prague.c`).
        let cwnd = if R::PACING_GAIN.is_some() && mss > 0 { cwnd.next_multiple_of(mss) } else { cwnd };
        Control { pacing_rate: self.pacing_rate, ..Control::window(cwnd) }
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.window.ssthresh)
    }

    fn observables(&self) -> Observables {
        let w = &self.window;
        let threshold = if w.ssthresh == u64::MAX { f64::INFINITY } else { w.ssthresh as f64 / w.mss as f64 };
        let mut all = vec![
            ("cwnd_packets", w.packets()),
            ("ssthresh_packets", threshold),
            ("slow_start_phase", self.slow_start.phase()),
        ];
        all.extend(self.rule.observables(w.mss));
        all
    }

    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        Some(self)
    }
}

impl<R: Rule> Steerable for LossBased<R> {
    fn steered(&self) -> Steered {
        Steered::Cwnd
    }

    fn steer(&mut self, value: f64) {
        self.window.cwnd = value as u64;
    }
}
