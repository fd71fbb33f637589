//! The target of the encoder. Rates are bit/s.

use std::collections::VecDeque;

use ccgym_core::congestion_control::FrameEvent;
use ccgym_core::{TimeSpan, Timestamp};

use super::rules::{Mode, Rules};

/// Time between two updates of the target (`RATE_ADJUST_INTERVAL`).
const INTERVAL: TimeSpan = TimeSpan::from_millis(200);
/// What a loss leaves of the target (`BETA_R`).
pub const BETA_RATE: f64 = 0.9;
/// Share of the rate that a full trend takes (`PRE_CONGESTION_GUARD`; Pantheon's arguments leave the default).
const GUARD: f64 = 0.1;
/// RFC: frames that wait for longer than this, s (`RTP_QDELAY_TH`), …
const MAX_WAIT: f64 = 0.02;
/// … leave this of the target (`TARGET_RATE_SCALE_RTP_QDELAY`).
const WAIT_SCALE: f64 = 0.95;
/// RFC: the median of the encoder's rate is of so many intervals, which are 10 s.
const MEDIAN_OF: usize = 50;
/// Targets at which there was congestion, of which the highest counts.
const CONGESTED: usize = 3;
/// They are this far apart, at least.
const CONGESTED_GAP: TimeSpan = TimeSpan::from_millis(2_000);
/// Pantheon: what waits counts by so much; the argument is a place off, like the others.
const QUEUE_FACTOR: f64 = 0.3;
/// Pantheon: no growth with more bits than this waiting.
const MAX_QUEUE: f64 = 12_000.0;
/// Pantheon: fast increase needs less than this of waiting, s.
const FAST_WAIT: f64 = 0.1;

/// What leaves, is acknowledged and comes from the encoder.
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
    /// The target over the encoder's rate, averaged: encoders miss what they are told.
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

    /// Count bytes that left, that were settled, and that the encoder made.
    pub fn count(&mut self, sent: u64, acked: u64, media: u64) {
        for (bytes, more) in self.bytes.iter_mut().zip([sent, acked, media]) {
            *bytes = bytes.saturating_add(more);
        }
    }

    pub fn advance(&mut self, now: Timestamp, target: f64) {
        let since = now.since(self.since);
        // Feedback is rare while little is sent.
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

    /// The higher one of what leaves and what is acknowledged.
    pub fn rate(&self) -> f64 {
        self.sent.max(self.acked)
    }

    fn median_media(&self) -> f64 {
        let mut past: Vec<f64> = self.past_media.iter().copied().collect();
        past.sort_by(f64::total_cmp);
        past.get(past.len() / 2).copied().unwrap_or(0.0)
    }
}

/// What the network part says.
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
    /// Targets at which there was congestion, and when that was last noted.
    congested: VecDeque<f64>,
    noted: Option<Timestamp>,
    was_fast: bool,
    /// Pantheon: bits that wait, averaged.
    waiting: f64,
}

impl Target {
    pub fn new(rules: Rules, now: Timestamp) -> Self {
        let rate = rules.start_rate.clamp(rules.min_rate, rules.max_rate);
        let congested = VecDeque::new();
        Self { rules, rate, updated: now, congested, noted: None, was_fast: true, waiting: 0.0 }
    }

    /// A loss or a mark leaves this share of the target.
    pub fn reduce(&mut self, now: Timestamp, share: f64, rate: f64) {
        self.note_congestion(now, rate);
        self.rate *= share;
        self.updated = now;
        self.bound();
    }

    /// With little sent, the target follows the window down.
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

    /// §4.1.3.
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
        // The target does not run away from an encoder that does not follow. Before anything was sent nothing is known.
        let media = rate.max(meter.media).max(meter.median_media());
        if media > 0.0 {
            self.rate = self.rate.min(media * (2.0 - network.peak_trend));
        }
    }

    /// `updateTargetBitrate`.
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
            // Otherwise it is the encoder that is idle, or makes a large frame.
            self.rate += change;
        }
    }

    /// Maximum growth per update.
    fn step(&self) -> f64 {
        self.rules.ramp_up.min(self.rate / 2.0) * INTERVAL.as_secs_f64()
    }

    /// Growth is slower near a target at which there was congestion: 0.2 to 1.
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
