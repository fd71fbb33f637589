//! Searching upwards, and holding what was found.

use super::super::action::Actions;
use super::super::memory::Memory;
use super::super::spec::{RecoverySpec, Target};
use super::round::{fraction, Round};
use ccgym_core::monitor::MonitorInterval;

/// Delay over that at the start, as part of it and in seconds, above which the path is full.
const FULL: (f64, f64) = (0.125, 0.004);
/// The same of the mean over the second half of an interval. The smallest delay shows a queue a whole interval after it
/// began to grow, when a window that doubles has become twice as long again.
const FILLING: (f64, f64) = (0.25, 0.008);
/// Growth of the window per round trip: from a low rate, and from what a search has found already, which mostly is all.
const DOUBLE: f64 = 2.0;
const MORE: f64 = 1.25;
/// Round-trip samples, and losses, below which neither is seen.
const SAMPLES: u64 = 4;
const LOSSES: u64 = 3;
/// Loss before the search counts so often.
const LOSS_BEFORE: f64 = 1.5;
/// Growth of the delivery rate below which a round is flat, and how many end a search (BBR's full pipe).
const GROWTH: f64 = 1.25;
const FLAT: u32 = 3;
/// Growth that makes a search from a low rate worth its while.
const FOUND: f64 = 2.0;
/// Fewest rounds of holding, most rounds in which the search's own queue leaves and what is sent then of what was found,
/// and rounds of a queue that end a hold after that.
const ROUNDS: u32 = 4;
const DRAIN: u32 = 3;
const DRAINING: f64 = 0.5;
const LATE: u32 = 2;
/// Part of the tolerated loss by which holding may raise it, and packets that show that.
const HELD_LOSS: f64 = 0.5;
const SETTLED: u64 = 20;

/// Rate, bit/s, and window, packets, of an agent.
pub(super) type Values = [f64; 2];

/// `seconds` above `base` by more than a part of it, or than so much.
pub(super) fn above(seconds: f64, base: f64, (part, least): (f64, f64)) -> bool {
    seconds > base + (part * base).max(least)
}

/// What was so before a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub values: Values,
    /// Delivery rate, and loss.
    pub delivered: f64,
    pub loss: f64,
}

impl Before {
    /// Whether `round` lost more.
    fn lossy(&self, spec: &RecoverySpec, round: &Round) -> bool {
        round.lost >= LOSSES && round.loss() > spec.loss + LOSS_BEFORE * self.loss
    }
}

/// A search: the window grows with what is acknowledged, so by the same factor each round trip, and not at all in silence.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Packets, and how many there may be at the end of the round: as many as at first in the first one, as nothing is
    /// known of it yet.
    pub window: f64,
    most: f64,
    /// Round trip without its queue.
    pub base: f64,
    /// Greatest delivery rate of a round, that when it last grew, and rounds since.
    best: f64,
    full: f64,
    flat: u32,
    /// A queue was seen: no more growth, and over with the round, lest what it delivers go unseen.
    queued: bool,
    before: Before,
    /// What an earlier search found, if this one is to see whether that was all: a delay or a loss that was not its own
    /// may have ended it early.
    again: Option<f64>,
}

impl Search {
    pub fn new(window: f64, base: f64, before: Before) -> Self {
        Self { window, most: window, base, best: 0.0, full: 0.0, flat: 0, queued: false, before, again: None }
    }

    /// Take in an interval and the round that ended with it; whether the search is over.
    pub fn on_interval(
        &mut self,
        spec: &RecoverySpec,
        m: &MonitorInterval,
        round: Option<&Round>,
        actions: &Actions,
        memory: &Memory,
    ) -> bool {
        let queue = |samples: u64, rtt: f64, base: f64| samples >= SAMPLES && above(rtt, base, FULL);
        let samples = m.rtt_count() as u64;
        self.queued |= m.interval_min_rtt().is_some_and(|rtt| queue(samples, rtt.as_secs_f64(), self.base))
            || m.second_half_rtt()
                .is_some_and(|rtt| samples >= 2 * SAMPLES && above(rtt.as_secs_f64(), self.base, FILLING));
        let growth = if self.again.is_none() { DOUBLE } else { MORE };
        if !self.queued {
            self.window = (self.window + (growth - 1.0) * m.acked_packets as f64).min(self.most);
        }
        let Some(round) = round else { return false };
        self.base = self.base.min(round.rtt);
        self.most = growth * self.window;
        let delivered = round.delivered();
        self.best = self.best.max(delivered);
        if delivered >= GROWTH * self.full {
            (self.full, self.flat) = (delivered, 0);
        } else {
            self.flat += 1;
        }
        let fastest = actions.limits.rate[1] * self.base / (8.0 * memory.mss);
        let highest = match actions.target {
            Target::Cwnd => actions.limits.window[1],
            Target::Rate => fastest,
            Target::Both => actions.limits.window[1].min(fastest),
        };
        self.queued
            || self.flat >= FLAT
            || self.window >= highest
            || self.before.lossy(spec, round)
            || queue(round.samples, round.rtt, self.base)
    }

    /// What to hold, if there was more than before.
    pub fn found(&self, spec: &RecoverySpec) -> Option<Hold> {
        let found = match self.again {
            None => self.best >= FOUND * self.before.delivered,
            Some(rate) => spec.lift * self.best >= GROWTH * rate,
        };
        found.then(|| Hold::new(spec.lift * self.best, self))
    }

    /// What was held before, if this search was to see whether there is more.
    pub fn held(&self) -> Option<Hold> {
        self.again.map(|rate| Hold::new(rate, self))
    }

    pub fn before(&self) -> &Before {
        &self.before
    }
}

/// How a hold goes on.
pub(super) enum Next {
    Hold,
    /// See whether there is more.
    Search,
    /// It lasted, and the path carried it.
    Over,
    /// There was a queue or loss, not only at first.
    Congested,
}

/// What a search found is in force.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub rate: f64,
    pub base: f64,
    before: Before,
    seconds: f64,
    rounds: u32,
    /// Rounds since the latest search or silence, and latest ones with a queue or loss.
    calm: u32,
    late: u32,
    /// Round trip of the latest one.
    rtt: f64,
    /// Packets lost and acknowledged after the queue left.
    lost: u64,
    acked: u64,
    /// The search's own queue has left.
    drained: bool,
    /// Another search found nothing more.
    pub sure: bool,
}

impl Hold {
    fn new(rate: f64, search: &Search) -> Self {
        let (base, before) = (search.base, search.before);
        let (seconds, rtt, rounds, calm, late, lost, acked) = (0.0, 0.0, 0, 0, 0, 0, 0);
        Self { rate, base, before, seconds, rounds, calm, late, rtt, lost, acked, drained: false, sure: false }
    }

    /// The path went silent.
    pub fn on_timeout(&mut self) {
        (self.calm, self.late, self.drained, self.sure) = (0, 0, false, false);
    }

    /// Take in a round; to be held for `seconds`.
    pub fn on_round(&mut self, spec: &RecoverySpec, seconds: f64, round: &Round) -> Next {
        self.base = self.base.min(round.rtt);
        self.rounds += 1;
        self.calm += 1;
        self.seconds += round.heard();
        // A queue that shrinks is leaving.
        let queued = above(round.rtt, self.base, FULL);
        let late = queued && round.rtt >= self.rtt;
        self.drained |= !queued || self.calm >= DRAIN;
        self.rtt = round.rtt;
        self.late = if late { self.late + 1 } else { 0 };
        let settled = self.calm > DRAIN;
        if settled {
            self.lost += round.lost;
            self.acked += round.acked;
        }
        let most = self.before.loss + HELD_LOSS * spec.loss;
        let lossy = self.lost + self.acked >= SETTLED && fraction(self.lost, self.acked) > most;
        if lossy || (settled && self.late >= LATE) {
            Next::Congested
        } else if self.sure && self.seconds >= seconds && self.rounds >= ROUNDS {
            Next::Over
        } else if self.seconds >= seconds.max(spec.longest.as_secs_f64()) {
            // It has carried this for long enough, whatever the delays were.
            self.sure = true;
            Next::Congested
        } else if !self.sure && settled && !queued {
            Next::Search
        } else {
            Next::Hold
        }
    }

    /// The rate in force.
    pub fn sent(&self) -> f64 {
        if !self.drained {
            DRAINING * self.rate
        } else {
            self.rate
        }
    }

    /// A search for more than is held.
    pub fn search(&self, mss: f64) -> Search {
        Search { again: Some(self.rate), ..Search::new(self.rate * self.base / (8.0 * mss), self.base, self.before) }
    }

    pub fn before(&self) -> &Before {
        &self.before
    }
}
