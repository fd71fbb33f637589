//! The target of the encoder. Rates are bit/s.

use std::collections::VecDeque;

use ccgym_core::congestion_control::FrameEvent;
use ccgym_core::{TimeSpan, Timestamp};

use super::rules::{Mode, Rules};

/// Time between two updates of the target (`RATE_ADJUST_INTERVAL`).
const INTERVAL: TimeSpan = TimeSpan::from_millis(200);
/// Factor on the target at a loss (`BETA_R`).
pub const BETA_RATE: f64 = 0.9;
/// Share of the rate that a full trend takes (`PRE_CONGESTION_GUARD`; Pantheon's arguments leave the default).
const GUARD: f64 = 0.1;
/// RFC: if frames wait longer than this, s (`RTP_QDELAY_TH`), …
const MAX_WAIT: f64 = 0.02;
/// … the target is multiplied by this (`TARGET_RATE_SCALE_RTP_QDELAY`).
const WAIT_SCALE: f64 = 0.95;
/// RFC: number of intervals for the median of the encoder's rate, 10 s.
const MEDIAN_OF: usize = 50;
/// Number of remembered targets at congestion; the max counts.
const CONGESTED: usize = 3;
/// Min time between two of them.
const CONGESTED_GAP: TimeSpan = TimeSpan::from_millis(2_000);
/// Pantheon: weight of the waiting bits; the argument is one position off, like the others.
const QUEUE_FACTOR: f64 = 0.3;
/// Pantheon: no growth with more waiting bits than this.
const MAX_QUEUE: f64 = 12_000.0;
/// Pantheon: fast increase needs a shorter wait than this, s.
const FAST_WAIT: f64 = 0.1;

/// Measures the rates sent, acknowledged and encoded.
#[derive(Clone, Debug)]
pub struct Meter {
    interval: TimeSpan,
    intervals: usize,
    since: Timestamp,
    /// Bytes in this interval.
    bytes: [u64; 3],
    /// Rates of the latest intervals.
    history: VecDeque<[f64; 3]>,
    pub sent: f64,
    pub acked: f64,
    pub media: f64,
    /// The encoder's rate in the last ten seconds.
    past_media: VecDeque<f64>,
    /// Mean ratio of the target to the encoder's rate: encoders miss their targets.
    pub overshoot: f64,
}

impl Meter {
    pub fn new(rules: &Rules, now: Timestamp) -> Self {
        Self {
            interval: rules.rates.0,
            intervals: rules.rates.1,
            since: now,
            bytes: [0; 3],
            history: VecDeque::new(),
            sent: 0.0,
            acked: 0.0,
            media: 0.0,
            past_media: VecDeque::new(),
            overshoot: 1.0,
        }
    }

    /// Count bytes sent, bytes acknowledged or lost, and bytes of the encoder.
    pub fn count(&mut self, sent: u64, acked: u64, media: u64) {
        for (bytes, more) in self.bytes.iter_mut().zip([sent, acked, media]) {
            *bytes = bytes.saturating_add(more);
        }
    }

    pub fn advance(&mut self, now: Timestamp, target: f64) {
        let since = now.since(self.since);
        // Feedback is rare at low rates.
        let slow = self.intervals > 1 && self.acked < 50e3;
        if since.0 < self.interval.0 * if slow { 2 } else { 1 } {
            return;
        }
        if self.history.len() == self.intervals {
            self.history.pop_front();
        }
        self.history.push_back(self.bytes.map(|bytes| bytes as f64 * 8.0 / since.as_secs_f64()));
        let mean = |place: usize| self.history.iter().map(|rates| rates[place]).sum::<f64>() / self.intervals as f64;
        (self.sent, self.acked, self.media) = (mean(0), mean(1), mean(2));
        if self.past_media.len() == MEDIAN_OF {
            self.past_media.pop_front();
        }
        self.past_media.push_back(self.media);
        if self.media > 0.0 {
            self.overshoot = (self.overshoot + 0.05 * (target / self.media - self.overshoot)).clamp(0.8, 1.25);
        }
        (self.bytes, self.since) = ([0; 3], now);
    }

    /// Return the max of sent and acknowledged rate.
    pub fn rate(&self) -> f64 {
        self.sent.max(self.acked)
    }

    fn median_media(&self) -> f64 {
        let mut past: Vec<f64> = self.past_media.iter().copied().collect();
        past.sort_by(f64::total_cmp);
        past.get(past.len() / 2).copied().unwrap_or(0.0)
    }
}

/// State of the network part.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub fast_increase: bool,
    pub trend: f64,
    pub peak_trend: f64,
}

#[derive(Clone, Debug)]
pub struct Target {
    rules: Rules,
    pub rate: f64,
    updated: Timestamp,
    /// Targets at congestion, and time of the latest.
    congested: VecDeque<f64>,
    noted: Option<Timestamp>,
    was_fast: bool,
    /// Pantheon: average of waiting bits.
    waiting: f64,
}

impl Target {
    pub fn new(rules: Rules, now: Timestamp) -> Self {
        let rate = rules.start_rate.clamp(rules.min_rate, rules.max_rate);
        let congested = VecDeque::new();
        Self { rules, rate, updated: now, congested, noted: None, was_fast: true, waiting: 0.0 }
    }

    /// Multiply the target by `share` after a loss or a mark.
    pub fn reduce(&mut self, now: Timestamp, share: f64, rate: f64) {
        self.note_congestion(now, rate);
        self.rate *= share;
        self.updated = now;
        self.bound();
    }

    /// Reduce the target with the window at a low rate.
    pub fn follow(&mut self, cut: f64) {
        self.rate *= 1.0 - cut;
        self.bound();
    }

    pub fn on_frame(&mut self, event: &FrameEvent, meter: &Meter, network: &Network) {
        if event.now.since(self.updated) < INTERVAL {
            return;
        }
        self.updated = event.now;
        let waiting = event.waiting as f64 * 8.0;
        match self.rules.mode {
            Mode::Rfc => self.by_rfc(event.now, waiting, meter, network),
            Mode::Pantheon => self.by_program(event.now, waiting, meter, network),
        }
        self.bound();
    }

    /// Update by RFC 8298 §4.1.3.
    fn by_rfc(&mut self, now: Timestamp, waiting: f64, meter: &Meter, network: &Network) {
        let rate = meter.rate();
        if network.fast_increase {
            self.was_fast = true;
            self.rate += self.step() * self.near_congestion();
        } else {
            self.leave_fast_increase(now, rate);
            let mut change = rate * (1.0 - GUARD * network.trend) - waiting;
            if change > 0.0 {
                change = (change * self.near_congestion()).min(self.step());
            }
            self.rate += change;
            if waiting > MAX_WAIT * rate {
                self.rate *= WAIT_SCALE;
            }
        }
        // The target stays near the rate of an encoder that does not follow it, except before the first packet.
        let media = rate.max(meter.media).max(meter.median_media());
        if media > 0.0 {
            self.rate = self.rate.min(media * (2.0 - network.peak_trend));
        }
    }

    /// Update as `updateTargetBitrate` does.
    fn by_program(&mut self, now: Timestamp, waiting: f64, meter: &Meter, network: &Network) {
        let rate = meter.rate();
        self.waiting = 0.5 * (self.waiting + waiting);
        let follows = self.rate <= 1.5 * rate;
        if network.fast_increase && waiting < FAST_WAIT * rate.max(self.rate) {
            self.was_fast = true;
            if follows {
                self.rate += self.step() * self.near_congestion();
            }
            return;
        }
        self.leave_fast_increase(now, rate);
        let push = 1.0 + 0.05 * (50e3 / self.rate).min(1.0);
        let change = push * rate * (1.0 - GUARD * network.trend) - QUEUE_FACTOR * self.waiting - self.rate;
        if change > 0.0 {
            if waiting <= MAX_QUEUE {
                self.was_fast = true;
                if follows {
                    self.rate += (change * self.near_congestion()).min(self.step());
                }
            }
        } else if meter.media >= 0.8 * self.rate && meter.media <= 2.0 * self.rate {
            // Otherwise the encoder is idle, or makes a large frame.
            self.rate += change;
        }
    }

    /// Return the max growth per update.
    fn step(&self) -> f64 {
        self.rules.ramp_up.min(self.rate / 2.0) * INTERVAL.as_secs_f64()
    }

    /// Return the factor on growth near a target at congestion, 0.2 to 1.
    fn near_congestion(&self) -> f64 {
        let last = self.congested.iter().copied().fold(1.0, f64::max);
        let distance = 4.0 * (self.rate - last) / last;
        (distance * distance).clamp(0.2, 1.0)
    }

    fn leave_fast_increase(&mut self, now: Timestamp, rate: f64) {
        if self.was_fast {
            self.was_fast = false;
            self.note_congestion(now, rate);
        }
    }

    fn note_congestion(&mut self, now: Timestamp, rate: f64) {
        if self.noted.is_some_and(|noted| now.since(noted) <= CONGESTED_GAP) {
            return;
        }
        self.noted = Some(now);
        if self.congested.len() == CONGESTED {
            self.congested.pop_front();
        }
        self.congested.push_back(rate.min(self.rate));
    }

    fn bound(&mut self) {
        self.rate = self.rate.clamp(self.rules.min_rate, self.rules.max_rate);
    }
}
