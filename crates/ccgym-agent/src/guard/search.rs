//! Searches upwards, and holds the result.

use super::super::action::Actions;
use super::super::memory::Memory;
use super::super::spec::RecoverySpec;
use super::round::{fraction, Round};
use ccgym_core::monitor::MonitorInterval;

/// Delay above that at the start at which the path is full: as a fraction of it, and at least this many seconds.
const FULL_DELAY: (f64, f64) = (0.125, 0.004);
/// The same for the mean over the second half of an interval. The min delay shows a queue a whole interval after it
/// began to grow, when a doubling window has doubled again.
const FILLING_DELAY: (f64, f64) = (0.25, 0.008);
/// Growth of the window per round trip from a low rate …
const FIRST_GROWTH_PER_RTT: f64 = 2.0;
/// … and from the result of an earlier search, which usually is the max.
const LATER_GROWTH_PER_RTT: f64 = 1.25;
/// Round-trip samples below which a delay is not judged.
const MIN_RTT_SAMPLES: u64 = 4;
/// Lost packets below which a loss is not judged.
const MIN_LOST_PACKETS: u64 = 3;
/// Weight of the loss before the search in the loss that is tolerated.
const LOSS_BEFORE_WEIGHT: f64 = 1.5;
/// Growth of the delivery rate below which a round is flat (BBR's full pipe) …
const FLAT_BELOW_GROWTH: f64 = 1.25;
/// … and the number of flat rounds that ends a search.
const MAX_FLAT_ROUNDS: u32 = 3;
/// Growth of the delivery rate that makes a search from a low rate worthwhile.
const WORTHWHILE_GROWTH: f64 = 2.0;
/// Min rounds of holding.
const MIN_HOLD_ROUNDS: u32 = 4;
/// Max rounds in which the queue that the search built drains …
const MAX_DRAIN_ROUNDS: u32 = 3;
/// … and the fraction of what was found that is sent meanwhile.
const DRAIN_GAIN: f64 = 0.5;
/// Rounds with a queue that end a hold after that.
const MAX_QUEUED_ROUNDS: u32 = 2;
/// Fraction of the tolerated loss by which holding may raise the loss …
const HOLD_LOSS_FRACTION: f64 = 0.5;
/// … and the packets that it takes to see that.
const HOLD_LOSS_MIN_PACKETS: u64 = 20;

/// Rate, bit/s, and window, packets, of an agent.
pub(super) type Values = [f64; 2];

/// True if `seconds` exceed `base` by more than a part of it and more than `min` seconds.
pub(super) fn above(seconds: f64, base: f64, (part, min): (f64, f64)) -> bool {
    seconds > base + (part * base).max(min)
}

/// State before a search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub values: Values,
    /// Delivery rate, and loss.
    pub delivered: f64,
    pub loss: f64,
}

impl Before {
    /// True if `round` lost more.
    fn lossy(&self, spec: &RecoverySpec, round: &Round) -> bool {
        round.lost >= MIN_LOST_PACKETS && round.loss() > spec.loss + LOSS_BEFORE_WEIGHT * self.loss
    }
}

/// A search: the window grows with acknowledgements, so by the same factor each RTT, and not during silence.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// Window, packets, and its max at the end of the round: the initial one in the first round, which is still
    /// unknown.
    pub window: f64,
    most: f64,
    /// RTT without its queue.
    pub base: f64,
    /// Max delivery rate of a round, that when it last grew, and rounds since.
    best: f64,
    full: f64,
    flat: u32,
    /// True after a queue: no more growth, and the search ends with the round, whose delivery rate counts.
    queued: bool,
    pub before: Before,
    /// Result of an earlier search, if this one checks for more: a delay or a loss that was not its own may have ended
    /// it early.
    again: Option<f64>,
}

impl Search {
    pub fn new(window: f64, base: f64, before: Before) -> Self {
        Self { window, most: window, base, before, ..Self::default() }
    }

    /// Add an interval and the round that ended with it; returns true if the search is over.
    pub fn on_interval(
        &mut self,
        spec: &RecoverySpec,
        m: &MonitorInterval,
        round: Option<&Round>,
        actions: &Actions,
        memory: &Memory,
    ) -> bool {
        let queue = |samples: u64, rtt: f64, base: f64| samples >= MIN_RTT_SAMPLES && above(rtt, base, FULL_DELAY);
        let samples = m.rtt_count() as u64;
        self.queued |= m.interval_min_rtt().is_some_and(|rtt| queue(samples, rtt.as_secs_f64(), self.base))
            || m.second_half_rtt().is_some_and(|rtt| {
                samples >= 2 * MIN_RTT_SAMPLES && above(rtt.as_secs_f64(), self.base, FILLING_DELAY)
            });
        let growth = if self.again.is_none() { FIRST_GROWTH_PER_RTT } else { LATER_GROWTH_PER_RTT };
        if !self.queued {
            self.window = (self.window + (growth - 1.0) * m.acked_packets as f64).min(self.most);
        }
        let Some(round) = round else { return false };
        self.base = self.base.min(round.rtt);
        self.most = growth * self.window;
        let delivered = round.delivered();
        self.best = self.best.max(delivered);
        if delivered >= FLAT_BELOW_GROWTH * self.full {
            (self.full, self.flat) = (delivered, 0);
        } else {
            self.flat += 1;
        }
        let fastest = actions.limits.rate[1] * self.base / (8.0 * memory.mss);
        let widest = if actions.target.has_window() { actions.limits.window[1] } else { f64::INFINITY };
        let max = if actions.target.has_rate() { widest.min(fastest) } else { widest };
        self.queued
            || self.flat >= MAX_FLAT_ROUNDS
            || self.window >= max
            || self.before.lossy(spec, round)
            || queue(round.samples, round.rtt, self.base)
    }

    /// Return the hold for the result, if that is more than before.
    pub fn found(&self, spec: &RecoverySpec) -> Option<Hold> {
        let found = match self.again {
            None => self.best >= WORTHWHILE_GROWTH * self.before.delivered,
            Some(rate) => spec.lift * self.best >= FLAT_BELOW_GROWTH * rate,
        };
        found.then(|| Hold::new(spec.lift * self.best, self))
    }

    /// Return the earlier hold, if this search checks for more.
    pub fn held(&self) -> Option<Hold> {
        self.again.map(|rate| Hold::new(rate, self))
    }
}

/// Next step of a hold.
pub(super) enum Next {
    Hold,
    /// Check for more.
    Search,
    /// It is over, and the path carried the rate.
    Over,
    /// There was a queue or loss, not only at first.
    Congested,
}

/// Holds the result of a search.
#[derive(Clone, Debug, Default)]
pub(super) struct Hold {
    pub rate: f64,
    pub base: f64,
    pub before: Before,
    seconds: f64,
    rounds: u32,
    /// Rounds since the latest search or silence, and latest ones with a queue or loss.
    calm: u32,
    late: u32,
    /// RTT of the latest round.
    rtt: f64,
    /// Packets lost and acknowledged after the queue drained.
    lost: u64,
    acked: u64,
    /// True once the search's own queue has drained.
    drained: bool,
    /// True if another search found nothing more.
    pub sure: bool,
}

impl Hold {
    fn new(rate: f64, search: &Search) -> Self {
        Self { rate, base: search.base, before: search.before, ..Self::default() }
    }

    /// Note a silence of the path.
    pub fn on_timeout(&mut self) {
        (self.calm, self.late, self.drained, self.sure) = (0, 0, false, false);
    }

    /// Add a round; to be held for `seconds`.
    pub fn on_round(&mut self, spec: &RecoverySpec, seconds: f64, round: &Round) -> Next {
        self.base = self.base.min(round.rtt);
        self.rounds += 1;
        self.calm += 1;
        self.seconds += round.heard();
        // A shrinking queue drains.
        let queued = above(round.rtt, self.base, FULL_DELAY);
        let late = queued && round.rtt >= self.rtt;
        self.drained |= !queued || self.calm >= MAX_DRAIN_ROUNDS;
        self.rtt = round.rtt;
        self.late = if late { self.late + 1 } else { 0 };
        let settled = self.calm > MAX_DRAIN_ROUNDS;
        if settled {
            self.lost += round.lost;
            self.acked += round.acked;
        }
        let most = self.before.loss + HOLD_LOSS_FRACTION * spec.loss;
        let lossy = self.lost + self.acked >= HOLD_LOSS_MIN_PACKETS && fraction(self.lost, self.acked) > most;
        if lossy || (settled && self.late >= MAX_QUEUED_ROUNDS) {
            Next::Congested
        } else if self.sure && self.seconds >= seconds && self.rounds >= MIN_HOLD_ROUNDS {
            Next::Over
        } else if self.seconds >= seconds.max(spec.max_hold.as_secs_f64()) {
            // The path has carried this for long enough, at any delays.
            self.sure = true;
            Next::Congested
        } else if !self.sure && settled && !queued {
            Next::Search
        } else {
            Next::Hold
        }
    }

    /// Return the current rate.
    pub fn sent(&self) -> f64 {
        (if self.drained { 1.0 } else { DRAIN_GAIN }) * self.rate
    }

    /// Make a search for more than is held.
    pub fn search(&self, mss: f64) -> Search {
        Search { again: Some(self.rate), ..Search::new(self.rate * self.base / (8.0 * mss), self.base, self.before) }
    }
}
