//! The delay-based rate: multiplicative growth, additive near the last max, and a reduction at over-use.

use super::detector::Usage;
use super::Mode;

/// Reduction to this share of the received rate; growth per second (draft §5.5).
const CUT: f64 = 0.85;
const GROWTH: f64 = 1.08;
/// Min increase, bit.
const MIN_INCREASE: f64 = 1000.0;
/// Max rate over the received rate, and, as deployed, an addition to it, bit/s.
const MAX_RATIO: f64 = 1.5;
const MAX_EXTRA: f64 = 10_000.0;
/// Response time of the detector, in addition to an RTT, ms.
const RESPONSE_MS: f64 = 100.0;
/// As deployed, min additive growth, bit/s per second.
const MIN_SLOPE: f64 = 4000.0;
/// The packet size of an additive step is that of a video with this frame rate.
const FRAMES_PER_SECOND: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// Weight of a new max in the mean of the maxima; bounds of their variance, kbit/s; number of deviations beyond which
/// the mean is dropped.
const MAXIMUM_WEIGHT: f64 = 0.05;
const VARIANCE: (f64, f64) = (0.4, 2.5);
const DEVIATIONS: f64 = 3.0;
/// As deployed, a reduction comes an RTT after the last change, within these bounds, ms; sooner if less than half of
/// the rate arrives.
const CUT_GAP_MS: (f64, f64) = (10.0, 200.0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Mean and variance of the rates at reductions, kbit/s.
#[derive(Clone, Copy, Debug)]
struct Maximum {
    mean: Option<f64>,
    variance: f64,
}

impl Maximum {
    fn deviation(&self, mean: f64) -> f64 {
        DEVIATIONS * (self.variance * mean).sqrt()
    }

    fn is_exceeded(&self, kbps: f64) -> bool {
        self.mean.is_some_and(|mean| kbps >= mean + self.deviation(mean))
    }

    fn add(&mut self, kbps: f64) {
        let kept = self.mean.filter(|mean| kbps >= mean - self.deviation(*mean));
        let mean = kept.map_or(kbps, |mean| mean + MAXIMUM_WEIGHT * (kbps - mean));
        let sample = (mean - kbps) * (mean - kbps) / mean.max(1.0);
        self.variance = (self.variance + MAXIMUM_WEIGHT * (sample - self.variance)).clamp(VARIANCE.0, VARIANCE.1);
        self.mean = Some(mean);
    }
}

/// The delay-based controller. Rates are bit/s, times ms.
#[derive(Clone, Debug)]
pub struct RateControl {
    mode: Mode,
    pub rate: f64,
    state: State,
    maximum: Maximum,
    /// Time of the latest change of the rate.
    changed: Option<f64>,
    /// Time of the latest reduction; only the draft uses it.
    cut: Option<f64>,
}

impl RateControl {
    pub const fn new(mode: Mode, rate: f64) -> Self {
        let maximum = Maximum { mean: None, variance: VARIANCE.0 };
        Self { mode, rate, state: State::Hold, maximum, changed: None, cut: None }
    }

    /// Update the rate by the detector's result and the received rate, if known.
    pub fn update(&mut self, usage: Usage, received: Option<f64>, rtt: f64, now: f64) {
        if usage == Usage::Over && self.mode == Mode::Libwebrtc {
            // The received rate is unknown: every update halves the rate.
            let Some(received) = received else {
                self.rate *= 0.5;
                self.changed = Some(now);
                return;
            };
            let gap = rtt.clamp(CUT_GAP_MS.0, CUT_GAP_MS.1);
            if self.changed.is_some_and(|changed| now - changed < gap) && received >= 0.5 * self.rate {
                return;
            }
        }
        self.state = match (self.state, usage) {
            (_, Usage::Over) => State::Decrease,
            (_, Usage::Under) | (State::Decrease, Usage::Normal) => State::Hold,
            (State::Hold, Usage::Normal) => {
                self.changed = Some(now);
                State::Increase
            }
            (State::Increase, Usage::Normal) => State::Increase,
        };
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(received, rtt, now),
            State::Decrease => self.decrease(received, rtt, now),
        }
    }

    /// True if reductions have shown a max.
    pub const fn near_maximum(&self) -> bool {
        self.maximum.mean.is_some()
    }

    fn increase(&mut self, received: Option<f64>, rtt: f64, now: f64) {
        if received.is_some_and(|received| self.maximum.is_exceeded(received / 1e3)) {
            self.maximum.mean = None;
        }
        let since = (now - self.changed.replace(now).unwrap_or(now)).max(0.0);
        let step = if self.near_maximum() {
            let frame = self.rate / FRAMES_PER_SECOND;
            let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
            let response = RESPONSE_MS + rtt;
            match self.mode {
                Mode::Libwebrtc => (packet / (2.0 * response) * 1e3).max(MIN_SLOPE) * since / 1e3,
                Mode::Draft => (0.5 * (since / response).min(1.0) * packet).max(MIN_INCREASE),
            }
        } else {
            ((GROWTH.powf((since / 1e3).min(1.0)) - 1.0) * self.rate).max(MIN_INCREASE)
        };
        let extra = if self.mode == Mode::Libwebrtc { MAX_EXTRA } else { 0.0 };
        let limit = received.map_or(f64::INFINITY, |received| MAX_RATIO * received + extra);
        // The limit stops growth; it does not lower the rate.
        self.rate = (self.rate + step).min(limit.max(self.rate));
    }

    fn decrease(&mut self, received: Option<f64>, rtt: f64, now: f64) {
        let deployed = self.mode == Mode::Libwebrtc;
        if !deployed && self.cut.is_some_and(|cut| now - cut < RESPONSE_MS + rtt) {
            return;
        }
        let cut = match received {
            Some(received) => {
                // As deployed: with a far higher received rate, the rate returns to the mean of the maxima.
                let maximum = self.maximum.mean.filter(|_| deployed && CUT * received > self.rate);
                self.maximum.add(received / 1e3);
                CUT * maximum.map_or(received, |kbps| kbps * 1e3)
            }
            None => 0.5 * self.rate,
        };
        self.rate = self.rate.min(cut);
        (self.changed, self.cut) = (Some(now), Some(now));
        if deployed {
            self.state = State::Hold;
        }
    }
}
