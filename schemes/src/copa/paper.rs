//! Copa as published (NSDI 2018, §2 and §3).
//!
//! Choices where the paper is silent: a timeout restarts from two packets in slow start; a step is at most one packet
//! per acknowledged packet; 1/δ grows at the end of a round trip without loss; the five full round trips that start the
//! competition do not count while the window falls from an overshoot (see `Competition`).

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, TimeoutEvent, Timestamp};

use super::rtt_window::RttWindow;
use super::velocity::{Direction, Velocity};
use super::MIN_WINDOW;
use crate::pacing;

/// Pacing at two windows per RTT keeps bursts from looking like a queue (§2.1).
const PACING_GAIN: f64 = 2.0;
/// Round trips without a nearly empty queue after which other flows must be filling it (§2.2).
const FULL_ROUNDS: u64 = 5;

/// Competition with buffer-filling flows: 1/δ by additive increase and multiplicative decrease, like TCP's window
/// (§2.2).
///
/// A queue that stays for five round trips is attributed to other flows, since in equilibrium a flow's own queue does
/// not. After slow start, or after velocity carried the window past the target, its own queue does stay longer on large
/// pipes: the count waits until the window has come down to the target.
#[derive(Clone, Copy, Debug)]
struct Competition {
    enabled: bool,
    active: bool,
    /// 1/δ of the default mode, and min in competition.
    default_inverse: f64,
    inverse: f64,
    last_empty: Timestamp,
    /// True while the window falls from an overshoot.
    overshot: bool,
    round_began: Timestamp,
    lost_in_round: bool,
}

impl Competition {
    const fn new(delta: f64, enabled: bool) -> Self {
        Self {
            enabled,
            active: false,
            default_inverse: 1.0 / delta,
            inverse: 1.0 / delta,
            last_empty: Timestamp::ZERO,
            overshot: false,
            round_began: Timestamp::ZERO,
            lost_in_round: false,
        }
    }

    const fn restart(&mut self, now: Timestamp) {
        self.active = false;
        self.inverse = self.default_inverse;
        self.last_empty = now;
        self.overshot = false;
    }

    #[inline]
    fn delta(&self) -> f64 {
        1.0 / self.inverse
    }

    /// Choose the mode, and change 1/δ once per round trip.
    #[inline]
    fn on_ack(&mut self, now: Timestamp, rtts: &RttWindow, window: f64) {
        if !self.enabled {
            return;
        }
        let round_trip = rtts.smoothed;
        if rtts.nearly_empty(window) {
            self.last_empty = now;
            self.active = false;
            self.inverse = self.default_inverse;
        } else if self.overshot {
            self.last_empty = now;
        } else if !self.active && now.since(self.last_empty).0 > FULL_ROUNDS * round_trip.0 {
            self.active = true;
            self.round_began = now;
            self.lost_in_round = false;
        }
        if self.active && now.since(self.round_began) >= round_trip {
            if !self.lost_in_round {
                self.inverse += 1.0;
            }
            self.round_began = now;
            self.lost_in_round = false;
        }
    }

    /// Halve 1/δ at a loss, once per round trip.
    fn on_loss(&mut self, now: Timestamp) {
        if self.active && !self.lost_in_round {
            self.inverse = (self.inverse / 2.0).max(self.default_inverse);
            self.lost_in_round = true;
            self.round_began = now;
        }
    }
}

#[derive(Clone, Debug)]
pub struct PaperCopa {
    mss: u64,
    /// Packets.
    window: f64,
    slow_start: bool,
    rtts: RttWindow,
    velocity: Velocity,
    competition: Competition,
    control: Control,
}

impl PaperCopa {
    /// Make a flow with the default mode's `delta`; `competitive` allows the competitive mode.
    pub fn new(delta: f64, competitive: bool) -> Self {
        Self {
            mss: 1,
            window: MIN_WINDOW,
            slow_start: true,
            rtts: RttWindow::new(3, 0),
            velocity: Velocity::default(),
            competition: Competition::new(delta, competitive),
            control: Control::window(0),
        }
    }

    /// True if the current rate W/RTT_standing is at most the target rate 1/(δ·d_q).
    #[inline]
    fn below_target(&self) -> bool {
        let wanted = self.window * self.competition.delta() * self.rtts.queueing().0 as f64;
        wanted <= self.rtts.standing.0 as f64
    }

    #[inline]
    fn steer(&mut self, event: &AckEvent<'_>) {
        let acked = event.acked_packets as f64;
        let below = self.below_target();
        if self.slow_start {
            if below {
                if event.cwnd_limited {
                    self.window += acked;
                }
                return;
            }
            self.slow_start = false;
            self.velocity.restart(event.now, self.window);
            self.competition.overshot = true;
        }
        let speed = self.velocity.value;
        self.velocity.on_ack(event.now, self.rtts.smoothed, self.window);
        self.velocity.step(if below { Direction::Up } else { Direction::Down });
        if below || self.window <= MIN_WINDOW {
            self.competition.overshot = false;
        } else if speed > 1.0 && self.velocity.value <= 1.0 {
            self.competition.overshot = true;
        }
        let step = (self.velocity.value / (self.competition.delta() * self.window)).min(1.0) * acked;
        if !below {
            self.window -= step;
            if self.window <= MIN_WINDOW {
                self.window = MIN_WINDOW;
                // At the min window the velocity restarts.
                self.velocity.restart(event.now, self.window);
            }
        } else if event.cwnd_limited {
            // A window that the application does not use shows nothing of the path.
            self.window += step;
        }
    }

    fn decide(&mut self) {
        let bytes = self.window * self.mss as f64;
        self.control.cwnd = bytes as u64;
        self.control.pacing_rate = pacing::rate(bytes, self.rtts.pacing_basis(), PACING_GAIN);
    }
}

impl CongestionControl for PaperCopa {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss.max(1);
        self.window = (context.initial_window as f64 / self.mss as f64).max(MIN_WINDOW);
        self.competition.restart(context.now);
        self.decide();
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.lost_bytes > 0 {
            self.competition.on_loss(event.now);
        }
        if let Some(sample) = event.rtt_sample {
            self.rtts.update(event.now, sample);
        }
        if event.acked_packets == 0 || !self.rtts.is_known() {
            return;
        }
        self.competition.on_ack(event.now, &self.rtts, self.window);
        self.steer(event);
        self.decide();
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.window = MIN_WINDOW;
        self.slow_start = true;
        self.competition.restart(event.now);
        self.velocity.restart(event.now, self.window);
        self.decide();
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        // Idle time does not count as time with a full queue, and the window did not change.
        self.competition.last_empty = now;
        self.velocity.restart(now, self.window);
    }

    fn control(&self) -> Control {
        self.control
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window),
            ("delta", self.competition.delta()),
            ("velocity", self.velocity.value),
            ("competitive", f64::from(u8::from(self.competition.active))),
            ("slow_start", f64::from(u8::from(self.slow_start))),
            ("rtt_standing_ms", self.rtts.standing.as_millis_f64()),
            ("rtt_min_ms", self.rtts.min.as_millis_f64()),
            ("queueing_ms", self.rtts.queueing().as_millis_f64()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::TimeSpan;
    use serde_json::json;

    use super::*;
    use crate::testing::{ms, MockTransport, TestEvent};

    fn host() -> MockTransport {
        MockTransport::of("copa", &json!({"mode": "paper"}))
    }

    /// Make a flow past slow start, with RTT_min 40 ms.
    fn steady() -> MockTransport {
        let mut h = host();
        h.ack_round(ms(40), TimeSpan::ZERO);
        while h.observable("slow_start") == 1.0 {
            h.ack_after(ms(60));
        }
        h
    }

    #[test]
    fn slow_start_doubles_until_the_target_is_passed() {
        let mut h = host();
        assert_eq!(h.window(), 10.0);
        h.ack_round(ms(40), TimeSpan::ZERO);
        assert_eq!(h.window(), 20.0);
        h.ack_round(ms(40), TimeSpan::ZERO);
        assert_eq!(h.window(), 40.0);
        assert_eq!(h.observable("slow_start"), 1.0);
        // d_q = 20 ms: the target window is 60/(0.5·20) = 6 packets. The standing value needs half a round trip.
        h.ack_round(ms(60), TimeSpan::ZERO);
        assert_eq!(h.observable("slow_start"), 0.0);
    }

    #[test]
    fn paces_at_twice_the_window_per_standing_round_trip() {
        let mut h = host();
        // No RTT sample: 1 ms is assumed.
        assert_eq!(h.scheme.control().pacing_rate.0, 240_000_000);
        h.ack_after(ms(40));
        // 11 packets of 12 kbit, twice, per 40 ms.
        assert_eq!(h.scheme.control().pacing_rate.0, 6_600_000);
    }

    #[test]
    fn steps_toward_the_target_by_v_over_delta_w() {
        // (round trip with RTT_min 40 ms, direction): W·δ·d_q against RTT_standing.
        for (rtt, up) in [(41, true), (60, false)] {
            let mut h = steady();
            // Let the standing RTT settle, then check one acknowledgement.
            let mut last = h.observable("cwnd_packets");
            let mut step = 0.0;
            for _ in 0..200 {
                h.ack_after(ms(rtt));
                let now = h.observable("cwnd_packets");
                step = now - last;
                assert!(step.abs() <= h.observable("velocity") / (0.5 * last) + 1e-9);
                last = now;
                if h.observable("velocity") == 1.0 && (h.observable("rtt_standing_ms") - rtt as f64).abs() < 1e-9 {
                    break;
                }
            }
            assert_eq!(step > 0.0, up, "{rtt} ms, {step}");
        }
    }

    #[test]
    fn equilibrium_queue_is_one_over_delta() {
        // At W = BDP + q the target is met if q = 1/δ packets: rate 1 packet/ms, d_q = 2 ms.
        let mut copa = PaperCopa::new(0.5, false);
        copa.rtts.update(Timestamp::ZERO, ms(40));
        copa.rtts.update(Timestamp::from_millis(100), ms(42));
        for (window, below) in [(41.9, true), (42.1, false)] {
            copa.window = window;
            assert_eq!(copa.below_target(), below, "{window}");
        }
    }

    #[test]
    fn ignores_loss_in_default_mode() {
        let mut h = steady();
        let before = h.window();
        h.play(TestEvent { lost: 3, acked: 1, ..TestEvent::default() });
        assert!((h.window() - before).abs() <= 1.0);
    }

    #[test]
    fn competes_after_five_full_round_trips_and_stops_when_the_queue_empties() {
        let mut h = host();
        h.ack_round(ms(40), TimeSpan::ZERO);
        let start = h.now;
        while h.observable("competitive") == 0.0 {
            h.ack_after(ms(80));
            assert!(h.now.since(start) < ms(2_000), "must compete");
        }
        // 80 ms with a min of 40 is never nearly empty. The count starts when the window has come down from slow start.
        let took = h.now.since(start).as_millis_f64();
        assert!((200.0..1200.0).contains(&took), "{took}");
        // Additive increase of 1/δ: one per round trip.
        let (inverse, then) = (1.0 / h.observable("delta"), h.now);
        h.ack_round(ms(80), TimeSpan::ZERO);
        h.ack_round(ms(80), TimeSpan::ZERO);
        h.ack_round(ms(80), TimeSpan::ZERO);
        let grown = 1.0 / h.observable("delta") - inverse;
        let rounds = h.now.since(then).as_millis_f64() / 80.0;
        assert!((grown - rounds).abs() <= 1.5, "{grown} {rounds}");
        // Halved at a loss.
        let inverse = 1.0 / h.observable("delta");
        h.play(TestEvent { lost: 1, acked: 1, ..TestEvent::default() });
        let halved = 1.0 / h.observable("delta");
        assert!((halved - (inverse / 2.0).max(2.0)).abs() < 1e-9, "{inverse} {halved}");
        // The queue empties: the RTT is 40 ms again.
        h.ack_round(ms(40), TimeSpan::ZERO);
        h.ack_round(ms(40), TimeSpan::ZERO);
        assert_eq!((h.observable("competitive"), h.observable("delta")), (0.0, 0.5));
    }

    #[test]
    fn rounds_after_an_overshoot_do_not_count() {
        let mut rtts = RttWindow::new(3, 0);
        rtts.update(Timestamp::ZERO, ms(40));
        let mut c = Competition::new(0.5, true);
        c.overshot = true;
        for i in 1..100 {
            rtts.update(Timestamp::from_millis(20 * i), ms(80));
            c.on_ack(Timestamp::from_millis(20 * i), &rtts, 80.0);
        }
        assert!(!c.active);
        // At the target: five round trips of 80 ms from here.
        c.overshot = false;
        for i in 100..=118 {
            rtts.update(Timestamp::from_millis(20 * i), ms(80));
            c.on_ack(Timestamp::from_millis(20 * i), &rtts, 80.0);
            assert!(!c.active, "{i}");
        }
        rtts.update(Timestamp::from_millis(2_400), ms(80));
        c.on_ack(Timestamp::from_millis(2_400), &rtts, 80.0);
        assert!(c.active);
    }

    #[test]
    fn at_the_min_window_velocity_is_one() {
        let mut h = steady();
        // Until just before the filter drops the min of 40 ms.
        while h.now < Timestamp::from_millis(9_000) {
            h.ack_after(ms(400));
            assert!(h.observable("cwnd_packets") >= 2.0);
        }
        assert!(h.observable("velocity") <= 2.0, "{:?}", h.scheme.observables());
    }

    #[test]
    fn halves_once_per_round_trip() {
        let mut rtts = RttWindow::new(3, 0);
        rtts.update(Timestamp::ZERO, ms(40));
        rtts.update(Timestamp::from_millis(100), ms(40));
        rtts.update(Timestamp::from_millis(200), ms(80));
        let round_trip = rtts.smoothed;
        let mut c = Competition::new(0.5, true);
        (c.active, c.inverse) = (true, 16.0);
        let start = Timestamp::from_millis(200);
        c.on_loss(start);
        c.on_ack(start, &rtts, 80.0);
        c.on_loss(start + ms(10));
        assert_eq!(c.inverse, 8.0);
        // The round trip with the loss adds no growth; the next one does.
        c.on_ack(start + round_trip, &rtts, 80.0);
        assert_eq!(c.inverse, 8.0);
        c.on_ack(start + round_trip + round_trip, &rtts, 80.0);
        assert_eq!(c.inverse, 9.0);
        c.on_loss(start + round_trip + round_trip);
        assert_eq!(c.inverse, 4.5);
    }

    #[test]
    fn delta_never_passes_the_default() {
        let mut c = Competition::new(0.5, true);
        c.active = true;
        c.on_loss(Timestamp::ZERO);
        assert_eq!(c.delta(), 0.5);
    }

    #[test]
    fn competition_can_be_switched_off() {
        let mut h = MockTransport::of("copa", &json!({"mode": "paper", "competitive": "off"}));
        h.ack_round(ms(40), TimeSpan::ZERO);
        for _ in 0..500 {
            h.ack_after(ms(80));
        }
        assert_eq!((h.observable("competitive"), h.observable("delta")), (0.0, 0.5));
    }

    #[test]
    fn application_limit_blocks_growth_only() {
        let mut h = steady();
        h.cwnd_limited = false;
        for _ in 0..100 {
            h.ack_after(ms(40));
        }
        let held = h.observable("cwnd_packets");
        for _ in 0..100 {
            h.ack_after(ms(40));
        }
        assert_eq!(h.observable("cwnd_packets"), held);
        h.cwnd_limited = true;
        h.ack_after(ms(40));
        assert!(h.observable("cwnd_packets") > held);
    }

    #[test]
    fn timeout_restarts() {
        let mut h = steady();
        h.time_out();
        assert_eq!((h.window(), h.observable("slow_start")), (2.0, 1.0));
    }
}
