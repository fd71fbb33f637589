//! LEDBAT as libutp behaves (revision b3465b9, `utp_internal.cpp`), the program in Pantheon's reports.
//!
//! Bytes are wire bytes here, and payload bytes there.

use std::collections::VecDeque;

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, RttEstimator, TimeSpan, TimeoutEvent, Timestamp};

use super::clock_drift::ClockDrift;
use super::{min_rtt, or_own, target_us, OneWay};
use crate::filters::slots::BaseDelay;
use crate::registry::Parameters;

/// Min window, bytes: less than a packet, so that on a full path the flow stops.
const MIN_WINDOW: u64 = 10;
/// Min time between two reductions by losses.
const DECAY_INTERVAL: TimeSpan = TimeSpan::from_millis(100);
/// Time for which the growth continues after the window last limited sending.
const USE_MEMORY: TimeSpan = TimeSpan::from_millis(1_000);
/// Share of the target above which slow start ends.
const SLOW_START_EXIT: f64 = 0.9;
/// Max fall of the reverse direction's min that counts as clock drift, microseconds.
const MAX_BASE_SHIFT: i64 = 10_000;
/// Retransmission timeout before the first sample, and min.
const FIRST_RTO: TimeSpan = TimeSpan::from_millis(3_000);
const MIN_RTO: TimeSpan = TimeSpan::from_millis(1_000);

/// Queueing delay of the forward direction, microseconds.
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

    /// Add a sample; returns the delay for the control of the window.
    fn update(&mut self, now: Timestamp, sample: OneWay, min_rtt: TimeSpan) -> i64 {
        let before = self.ack.get();
        self.ack.update(now, sample.ack);
        // If the min of the reverse direction falls, the receiver's clock gains on ours: our delays seem longer by as
        // much.
        if let (Some(before), Some(after)) = (before, self.ack.get()) {
            if after < before && before - after <= MAX_BASE_SHIFT {
                self.data.shift(before - after);
            }
        }
        // As in libutp, the base of this sample is the one before a new minute begins.
        let base = self.data.get().map_or(sample.data, |base| base.min(sample.data));
        self.data.update(now, sample.data);
        self.recent.pop_front();
        self.recent.push_back(sample.data.saturating_sub(base));
        self.drift.update(now, sample.data);
        // No delay exceeds the RTT: otherwise the base is wrong.
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
    /// Max growth, bytes per RTT.
    increase: f64,
    max_window: u64,
    mss: u64,
    /// Bytes.
    window: u64,
    slow_start: bool,
    ssthresh: u64,
    queueing: Queueing,
    /// Delay at the latest acknowledgement, microseconds.
    delay: f64,
    /// Time at which the window last limited sending.
    used: Timestamp,
    /// Time of the latest reduction by a loss.
    decayed: Option<Timestamp>,
    rto: TimeSpan,
    /// Time at which the retransmission timer was last set.
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

    /// Change the window as `apply_ccontrol` does.
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

    /// Restart with one packet, in slow start.
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

    /// The retransmission timer opens a window below a packet again.
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

    /// The retransmission timer continues while nothing is in flight, and reduces the window by a third at each expiry.
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

    /// The offset of the clocks cancels, positive or negative.
    #[test]
    fn only_differences_count() {
        for offset in [-5_000_000, 0, 7_000_000] {
            let mut queueing = Queueing::new(1, 13);
            assert_eq!(sample(&mut queueing, offset + 20_000, 20_000 - offset, 40_000), 0);
            assert_eq!(sample(&mut queueing, offset + 75_000, 20_000 - offset, 95_000), 55_000);
        }
    }

    /// If the reverse direction's min falls by `fall` µs, our base rises by as much, up to 10 ms.
    #[test]
    fn a_faster_receiver_clock_moves_the_base() {
        for (fall, expected) in [(0, 30_000), (4_000, 26_000), (10_000, 20_000), (10_001, 30_000)] {
            let mut queueing = Queueing::new(1, 13);
            sample(&mut queueing, 20_000, 20_000, 40_000);
            assert_eq!(sample(&mut queueing, 50_000, 20_000 - fall, 70_000), expected, "{fall} µs");
        }
    }

    /// A delay above the RTT is limited to it, and the base corrected for later samples.
    #[test]
    fn no_delay_exceeds_the_round_trip() {
        let mut queueing = Queueing::new(1, 13);
        sample(&mut queueing, 20_000, 20_000, 40_000);
        assert_eq!(sample(&mut queueing, 520_000, 20_000, 60_000), 60_000);
        assert_eq!(sample(&mut queueing, 520_000, 20_000, 100_000), 60_000);
    }
}
