//! LEDBAT as libutp behaves (revision b3465b9, `utp_internal.cpp`), which is what Pantheon's reports measured.
//!
//! Bytes are wire bytes here, and payload bytes there.

use std::collections::VecDeque;

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, RttEstimator, TimeSpan, TimeoutEvent, Timestamp};

use super::clock_drift::ClockDrift;
use super::{min_rtt, or_own, target_us, OneWay};
use crate::filters::slots::BaseDelay;
use crate::registry::Parameters;

/// Minimum window, bytes: less than a packet, so that a path full of other traffic silences the flow.
const MIN_WINDOW: u64 = 10;
/// A loss halves the window, at most once in this time.
const DECAY_INTERVAL: TimeSpan = TimeSpan::from_millis(100);
/// The window grows only if it held sending back within this time.
const USE_MEMORY: TimeSpan = TimeSpan::from_millis(1_000);
/// Slow start ends above this share of the target.
const SLOW_START_EXIT: f64 = 0.9;
/// When the minimum of the other direction falls by no more than this (microseconds), the clocks drift.
const MAX_BASE_SHIFT: i64 = 10_000;
/// Retransmission timeout before the first sample, and its minimum.
const FIRST_RTO: TimeSpan = TimeSpan::from_millis(3_000);
const MIN_RTO: TimeSpan = TimeSpan::from_millis(1_000);

/// Queueing delay of the data's direction, microseconds.
#[derive(Clone, Debug)]
struct Queueing {
    data: BaseDelay,
    ack: BaseDelay,
    drift: ClockDrift,
    /// The latest samples above the base of their time; zeros before the first.
    recent: VecDeque<i64>,
}

impl Queueing {
    fn new(filter: usize, history: usize) -> Self {
        Self {
            data: BaseDelay::of_minutes(history),
            ack: BaseDelay::of_minutes(history),
            drift: ClockDrift::new(Timestamp::ZERO),
            recent: VecDeque::from(vec![0; filter]),
        }
    }

    fn current(&self) -> i64 {
        self.recent.iter().copied().min().unwrap_or(0)
    }

    /// The delay that the window is steered by.
    fn update(&mut self, now: Timestamp, sample: OneWay, min_rtt: TimeSpan) -> i64 {
        let before = self.ack.get();
        self.ack.update(now, sample.ack);
        // A minimum that falls in the other direction means that the receiver's clock gains on ours: our delays seem
        // longer than they are by as much.
        if let (Some(before), Some(after)) = (before, self.ack.get()) {
            if after < before && before - after <= MAX_BASE_SHIFT {
                self.data.shift(before - after);
            }
        }
        // The base of this sample is the one before a new minute begins, as there.
        let base = self.data.get().map_or(sample.data, |base| base.min(sample.data));
        self.data.update(now, sample.data);
        self.recent.pop_front();
        self.recent.push_back(sample.data.saturating_sub(base));
        self.drift.update(now, sample.data);
        // No delay exceeds the round trip: if one seems to, the base is wrong.
        let rtt = (min_rtt.0 / 1000) as i64;
        let current = self.current();
        if current > rtt {
            self.data.shift(current - rtt);
        }
        current.min(rtt) + self.drift.penalty()
    }
}

#[derive(Clone, Debug)]
pub struct Libutp {
    /// Microseconds.
    target: f64,
    /// Bytes per round trip.
    increase: f64,
    max_window: u64,
    mss: u64,
    /// Bytes.
    window: u64,
    slow_start: bool,
    ssthresh: u64,
    queueing: Queueing,
    /// As of the latest acknowledgement, microseconds.
    delay: f64,
    /// When the window last held sending back.
    used: Timestamp,
    /// When a loss last halved the window.
    decayed: Option<Timestamp>,
    rto: TimeSpan,
    /// When the retransmission timer was last set.
    timer_base: Timestamp,
}

impl Libutp {
    pub fn new(p: &Parameters) -> Self {
        let max_window = p.integer("send_buffer");
        Self {
            target: target_us(p),
            increase: p.number("increase"),
            max_window,
            mss: 0,
            window: 0,
            slow_start: true,
            ssthresh: max_window,
            queueing: Queueing::new(or_own(p, "current_filter", 3), or_own(p, "base_history", 13)),
            delay: 0.0,
            used: Timestamp::ZERO,
            decayed: None,
            rto: FIRST_RTO,
            timer_base: Timestamp::ZERO,
        }
    }

    /// `apply_ccontrol`.
    fn steer(&mut self, now: Timestamp, acked: u64) {
        let used = now.since(self.used) <= USE_MEMORY;
        let (w, acked) = (self.window as f64, acked as f64);
        let share = w.min(acked) / w.max(acked);
        let mut gain = self.increase * share * (self.target - self.delay) / self.target;
        if gain > 0.0 && !used {
            gain = 0.0;
        }
        let steered = (w + gain).max(MIN_WINDOW as f64) as u64;
        if !self.slow_start {
            self.window = steered;
        } else {
            let grown = if used { self.window + (share * self.mss as f64) as u64 } else { self.window };
            if grown > self.ssthresh {
                self.slow_start = false;
            } else if self.delay > self.target * SLOW_START_EXIT {
                self.slow_start = false;
                self.ssthresh = self.window;
            } else {
                self.window = grown.max(steered);
            }
        }
        self.window = self.window.clamp(MIN_WINDOW, self.max_window.max(self.mss));
    }

    fn decay(&mut self, now: Timestamp) {
        if self.decayed.is_some_and(|then| now.since(then) < DECAY_INTERVAL) {
            return;
        }
        self.decayed = Some(now);
        self.window = (self.window / 2).max(MIN_WINDOW);
        self.slow_start = false;
        self.ssthresh = self.window;
    }

    /// One packet, and slow start.
    fn begin_again(&mut self, now: Timestamp) {
        self.window = self.mss;
        self.slow_start = true;
        self.timer_base = now;
    }

    fn update_rto(&mut self, now: Timestamp, rtt: &RttEstimator) {
        self.rto = rtt.rto(TimeSpan::ZERO, MIN_RTO);
        self.timer_base = now;
    }
}

impl CongestionControl for Libutp {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, timers: true, prr: false, bounded: true, ..Default::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.window = context.initial_window.clamp(context.mss, self.max_window.max(context.mss));
        self.used = context.now;
        self.timer_base = context.now;
        self.queueing.drift = ClockDrift::new(context.now);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.cwnd_limited {
            self.used = event.now;
        }
        if !event.lost.is_empty() {
            self.decay(event.now);
        }
        if event.acked_packets == 0 {
            return;
        }
        self.update_rto(event.now, event.rtt);
        if let (Some(sample), Some(rtt)) = (OneWay::of(event), min_rtt(event)) {
            self.delay = self.queueing.update(event.now, sample, rtt) as f64;
            self.steer(event.now, event.acked_bytes);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.begin_again(event.now);
    }

    /// A window below a packet is silence until the retransmission timer opens it again.
    fn next_timer(&self) -> Timestamp {
        if self.window < self.mss {
            self.timer_base.saturating_add(self.rto)
        } else {
            Timestamp::NEVER
        }
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.next_timer() <= now {
            self.begin_again(now);
        }
    }

    /// The retransmission timer goes on while nothing is in flight, and takes a third of the window at each expiry.
    fn on_idle_restart(&mut self, now: Timestamp) {
        let mut wait = self.rto;
        let mut expires = self.timer_base.saturating_add(wait);
        while expires <= now && self.window > self.mss {
            self.window = (self.window * 2 / 3).max(self.mss);
            wait = wait + wait;
            expires = expires.saturating_add(wait);
        }
        self.timer_base = now;
    }

    fn control(&self) -> Control {
        Control::window(self.window)
    }

    fn observables(&self) -> Observables {
        let packets = |bytes: u64| bytes as f64 / self.mss as f64;
        vec![
            ("cwnd_packets", packets(self.window)),
            ("ssthresh_packets", packets(self.ssthresh)),
            ("slow_start", f64::from(u8::from(self.slow_start))),
            ("queueing_delay_ms", self.delay / 1e3),
            ("clock_drift_penalty_ms", self.queueing.drift.penalty() as f64 / 1e3),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(queueing: &mut Queueing, data: i64, ack: i64, rtt_us: u64) -> i64 {
        queueing.update(Timestamp::ZERO, OneWay { data, ack }, TimeSpan::from_micros(rtt_us))
    }

    /// The offset of the clocks cancels, whatever its sign.
    #[test]
    fn only_differences_count() {
        for offset in [-5_000_000, 0, 7_000_000] {
            let mut queueing = Queueing::new(1, 13);
            assert_eq!(sample(&mut queueing, offset + 20_000, 20_000 - offset, 40_000), 0);
            assert_eq!(sample(&mut queueing, offset + 75_000, 20_000 - offset, 95_000), 55_000);
        }
    }

    /// The other direction's minimum falls by `fall` µs: up to 10 ms our base rises by as much.
    #[test]
    fn a_gaining_clock_moves_the_base() {
        for (fall, expected) in [(0, 30_000), (4_000, 26_000), (10_000, 20_000), (10_001, 30_000)] {
            let mut queueing = Queueing::new(1, 13);
            sample(&mut queueing, 20_000, 20_000, 40_000);
            assert_eq!(sample(&mut queueing, 50_000, 20_000 - fall, 70_000), expected, "{fall} µs");
        }
    }

    /// A delay beyond the round trip is cut, and the base corrected for later samples.
    #[test]
    fn no_delay_exceeds_the_round_trip() {
        let mut queueing = Queueing::new(1, 13);
        sample(&mut queueing, 20_000, 20_000, 40_000);
        assert_eq!(sample(&mut queueing, 520_000, 20_000, 60_000), 60_000);
        assert_eq!(sample(&mut queueing, 520_000, 20_000, 100_000), 60_000);
    }
}
