//! Copa as genericCC behaves (revision d0153f8, `do_ss:auto:δ`), the program in Pantheon's reports. Written from a
//! description of its behavior; none of its code is here.
//!
//! Differences that the transport causes: packets have the path's size (1440 B there); the initial window leaves at
//! once, since no handshake has measured an RTT yet.

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::units::whole_up;
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, TimeSpan, TimeoutEvent, Timestamp};

use super::rtt_window::RttWindow;
use super::MIN_WINDOW;
use crate::pacing;

/// Initial window, packets, and packets per RTT at first.
const PROBE_PACKETS: u64 = 10;
/// A packet leaves every half standing RTT over W.
const PACING_GAIN: f64 = 2.0;
/// Time without an acknowledgement after which the flow restarts.
const SILENCE: TimeSpan = TimeSpan::from_millis(2_000);
/// Loss above this share …
const HEAVY_LOSS: f64 = 0.3;
/// … over more than this many packets and two round trips …
const HEAVY_LOSS_PACKETS: u64 = 20;
/// … multiplies the window by this.
const HEAVY_LOSS_FACTOR: f64 = 0.7;

/// The step size: doubles per round trip while the direction holds.
#[derive(Clone, Copy, Debug)]
struct UpdateAmount {
    value: f64,
    /// Stored direction: +1 or −1.
    direction: i64,
    /// Upward less downward steps since the last update.
    net: i64,
    judged: Timestamp,
}

impl UpdateAmount {
    const fn new(now: Timestamp) -> Self {
        Self { value: 1.0, direction: 1, net: 0, judged: now }
    }

    /// Return the amount for a step at `now`.
    #[inline]
    fn on_ack(&mut self, now: Timestamp, round_trip: TimeSpan, window_delta: f64) -> f64 {
        if now.since(self.judged) > round_trip {
            if self.net * self.direction > 0 {
                self.value = self.value.trunc() * 2.0;
            } else {
                self.value = 1.0;
                self.direction = -self.direction;
            }
            self.net = 0;
            self.judged = now;
        }
        if self.value > window_delta {
            self.value /= 2.0;
        }
        self.value = self.value.max(1.0);
        self.value
    }
}

/// δ and its changes.
#[derive(Clone, Copy, Debug)]
struct Delta {
    default: f64,
    value: f64,
    competitive: bool,
    loss_sensitive: bool,
    /// Time at which a loss last doubled it.
    doubled: Option<Timestamp>,
    /// Time at which it was last reduced or reset.
    updated: Timestamp,
}

impl Delta {
    const fn new(default: f64, competitive: bool) -> Self {
        Self { default, value: default, competitive, loss_sensitive: false, doubled: None, updated: Timestamp::ZERO }
    }

    #[inline]
    fn on_ack(&mut self, now: Timestamp, round_trip: TimeSpan, was_empty: bool) {
        self.loss_sensitive = self.competitive && !was_empty;
        if !self.loss_sensitive {
            if self.doubled.is_none_or(|then| now.since(then) > round_trip) {
                self.value = self.default;
                self.updated = now;
            }
        } else if now.since(self.updated) > round_trip {
            self.value = 1.0 / (1.0 / self.value + 1.0);
            self.updated = now;
        }
    }

    /// Double δ at an acknowledgement with a gap before it, each time.
    fn on_loss(&mut self, now: Timestamp) {
        if self.loss_sensitive {
            self.value = (self.value * 2.0).min(self.default);
            self.doubled = Some(now);
        } else {
            self.value = self.default;
            self.updated = now;
        }
    }
}

/// Detects heavy loss over at least two round trips.
#[derive(Clone, Copy, Debug)]
struct HeavyLoss {
    since: Timestamp,
    packets: u64,
    lost: u64,
}

impl HeavyLoss {
    const fn new(now: Timestamp) -> Self {
        Self { since: now, packets: 0, lost: 0 }
    }

    /// Count packets; true if an interval has just ended with heavy loss.
    #[inline]
    fn on_ack(&mut self, now: Timestamp, round_trip: TimeSpan, acked: u64, lost: u64) -> bool {
        self.packets += acked + lost;
        self.lost += lost;
        if self.packets <= HEAVY_LOSS_PACKETS || now.since(self.since).0 < 2 * round_trip.0 {
            return false;
        }
        let heavy = self.lost as f64 > HEAVY_LOSS * self.packets as f64;
        *self = Self::new(now);
        heavy
    }
}

#[derive(Clone, Debug)]
pub struct PantheonCopa {
    mss: u64,
    /// Packets.
    window: f64,
    slow_start: bool,
    acked: u64,
    rtts: RttWindow,
    amount: UpdateAmount,
    delta: Delta,
    heavy_loss: HeavyLoss,
    /// One past the largest acknowledged packet number.
    acked_end: u64,
    last_ack: Timestamp,
    control: Control,
}

impl PantheonCopa {
    /// Make a flow with the default mode's `delta`; `competitive` allows the competitive mode.
    pub fn new(delta: f64, competitive: bool) -> Self {
        Self {
            mss: 1,
            window: PROBE_PACKETS as f64,
            slow_start: true,
            acked: 0,
            rtts: RttWindow::new(4, 20),
            amount: UpdateAmount::new(Timestamp::ZERO),
            delta: Delta::new(delta, competitive),
            heavy_loss: HeavyLoss::new(Timestamp::ZERO),
            acked_end: 0,
            last_ack: Timestamp::ZERO,
            control: Control::window(0),
        }
    }

    /// Forget the path and restart.
    fn restart(&mut self, now: Timestamp) {
        let acked_end = self.acked_end;
        *self = Self { mss: self.mss, acked_end, ..Self::new(self.delta.default, self.delta.competitive) };
        self.amount = UpdateAmount::new(now);
        self.heavy_loss = HeavyLoss::new(now);
        self.delta.updated = now;
        self.last_ack = now;
        self.decide(0);
    }

    /// Return RTT_standing/(d_q·δ) packets; without a queue no window is too large.
    #[inline]
    fn target(&self) -> f64 {
        let queueing = self.rtts.queueing().0 as f64 * self.delta.value;
        if queueing > 0.0 {
            self.rtts.standing.0 as f64 / queueing
        } else {
            f64::INFINITY
        }
    }

    /// Take one step for an acknowledged packet.
    #[inline]
    fn steer(&mut self, now: Timestamp) {
        let target = self.target();
        if self.slow_start {
            self.window += 1.0;
            self.slow_start = self.window < target;
            return;
        }
        let step = self.amount.on_ack(now, self.rtts.latest, self.window * self.delta.value)
            / (self.delta.value * self.window);
        if self.window < target {
            self.amount.net += 1;
            self.window += step;
        } else {
            self.amount.net -= 1;
            self.window -= step;
        }
        self.window = self.window.max(MIN_WINDOW);
    }

    /// Set window and pacing rate. The send gate counts packet numbers beyond the largest acknowledged one, so gaps
    /// free the window at once; packets that the transport still counts in flight below it (`held` bytes) are added.
    /// After the first acknowledgement one packet more than the window may be in flight.
    fn decide(&mut self, held: u64) {
        let more = u64::from(self.acked > 0);
        self.control.cwnd = (whole_up(self.window) + more) * self.mss + held;
        let (window, gain) =
            if self.acked < 2 * PROBE_PACKETS { (PROBE_PACKETS as f64, 1.0) } else { (self.window, PACING_GAIN) };
        self.control.pacing_rate = pacing::rate(window * self.mss as f64, self.rtts.pacing_basis(), gain);
    }
}

impl CongestionControl for PantheonCopa {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, timers: true, pacing_required: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss.max(1);
        self.restart(context.now);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.acked_packets == 0 {
            return;
        }
        let now = event.now;
        self.last_ack = now;
        if let Some(sample) = event.rtt_sample {
            self.rtts.update(now, sample);
        }
        if !self.rtts.is_known() {
            return;
        }
        self.delta.on_ack(now, self.rtts.latest, self.rtts.was_nearly_empty());
        for _ in 0..event.acked_packets {
            self.acked += 1;
            if self.acked >= 2 * PROBE_PACKETS {
                self.steer(now);
            }
        }
        // Every gap in the packet numbers is a loss at once; reordering is not tolerated.
        let end = event.largest_acked + 1;
        let lost = end.saturating_sub(self.acked_end).saturating_sub(event.acked_packets);
        self.acked_end = self.acked_end.max(end);
        if lost > 0 {
            self.delta.on_loss(now);
        }
        if self.heavy_loss.on_ack(now, self.rtts.latest, event.acked_packets, lost) {
            self.window = (self.window * HEAVY_LOSS_FACTOR).max(MIN_WINDOW);
        }
        let beyond = event.next_packet_number.saturating_sub(end) * self.mss;
        self.decide(event.in_flight.saturating_sub(beyond));
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        // The program reacts to silence only, but nothing is in flight any more.
        self.decide(0);
    }

    fn next_timer(&self) -> Timestamp {
        self.last_ack + SILENCE
    }

    fn on_timer(&mut self, now: Timestamp) {
        if now >= self.next_timer() {
            self.restart(now);
        }
    }

    fn control(&self) -> Control {
        self.control
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window),
            ("delta", self.delta.value),
            ("update_amount", self.amount.value),
            ("competitive", f64::from(u8::from(self.delta.loss_sensitive))),
            ("slow_start", f64::from(u8::from(self.slow_start))),
            ("rtt_standing_ms", self.rtts.standing.as_millis_f64()),
            ("rtt_min_ms", self.rtts.min.as_millis_f64()),
            ("queueing_ms", self.rtts.queueing().as_millis_f64()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{at, ms, MockTransport, TestEvent, MSS};

    fn host() -> MockTransport {
        MockTransport::of("copa", &json!({"mode": "pantheon"}))
    }

    #[test]
    fn holds_ten_packets_for_nineteen_acknowledgements_then_doubles() {
        let mut h = host();
        assert_eq!(h.window(), 10.0);
        for _ in 0..19 {
            h.ack_after(ms(40));
            // One packet more may be in flight.
            assert_eq!((h.observable("cwnd_packets"), h.window()), (10.0, 11.0));
            // Ten packets per round trip: 3 Mbit/s.
            assert_eq!(h.scheme.control().pacing_rate.0, 3_000_000);
        }
        h.ack_after(ms(40));
        assert_eq!((h.observable("cwnd_packets"), h.window()), (11.0, 12.0));
        // Half a round trip per window: 11 · 12 kbit / 20 ms.
        assert_eq!(h.scheme.control().pacing_rate.0, 6_600_000);
        h.ack_round(ms(40), TimeSpan::ZERO);
        assert_eq!(h.observable("cwnd_packets"), 23.0);
    }

    /// The window grows whether or not it limits the flow.
    #[test]
    fn grows_while_application_limited() {
        let mut h = host();
        for _ in 0..40 {
            h.ack_after(ms(40));
        }
        let before = h.observable("cwnd_packets");
        h.cwnd_limited = false;
        h.ack_after(ms(40));
        assert_eq!(h.observable("cwnd_packets"), before + 1.0);
    }

    #[test]
    fn slow_start_ends_at_the_target() {
        let mut h = host();
        for _ in 0..40 {
            h.ack_after(ms(40));
        }
        // d_q = 20 ms: the target is 60/(0.1·20) = 30 packets.
        while h.observable("slow_start") == 1.0 {
            h.ack_after(ms(60));
        }
        assert!(h.window() >= 30.0);
    }

    #[test]
    fn target_window() {
        let mut copa = PantheonCopa::new(0.1, true);
        copa.rtts.update(at(0), ms(40));
        assert_eq!(copa.target(), f64::INFINITY);
        copa.rtts.update(at(100), ms(50));
        assert!((copa.target() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn update_amount_rules() {
        // (value, stored direction, net steps, W·δ) → (value, direction), updated after more than a round trip.
        for (name, (value, direction, net, window_delta), expected) in [
            ("same sign doubles", (2.0, 1, 5, 100.0), (4.0, 1)),
            ("the integer part only", (3.7, 1, 5, 100.0), (6.0, 1)),
            ("down counts alike", (2.0, -1, -5, 100.0), (4.0, -1)),
            ("other sign resets and flips", (8.0, 1, -5, 100.0), (1.0, -1)),
            ("undecided flips", (8.0, 1, 0, 100.0), (1.0, -1)),
            ("halved above W·δ", (8.0, 1, 5, 10.0), (8.0, 1)),
            ("never below one", (1.0, 1, 5, 0.5), (1.0, 1)),
        ] {
            let mut amount = UpdateAmount { value, direction, net, judged: at(0) };
            amount.on_ack(at(41), ms(40), window_delta);
            assert_eq!((amount.value, amount.direction, amount.net), (expected.0, expected.1, 0), "{name}");
        }
        let mut early = UpdateAmount { value: 4.0, direction: 1, net: -5, judged: at(0) };
        assert_eq!(early.on_ack(at(40), ms(40), 100.0), 4.0, "only once per round trip");
        assert_eq!(early.on_ack(at(40), ms(40), 3.9), 2.0, "but bounded at every acknowledgement");
    }

    #[test]
    fn delta_rules() {
        let rtt = ms(40);
        let mut d = Delta::new(0.1, true);
        d.on_loss(at(0));
        assert_eq!((d.value, d.doubled), (0.1, None), "default mode ignores loss");
        d.on_ack(at(100), rtt, false);
        assert!((d.value - 1.0 / 11.0).abs() < 1e-12, "1/δ grows by one");
        d.on_ack(at(140), rtt, false);
        assert!((d.value - 1.0 / 11.0).abs() < 1e-12, "once per round trip");
        for i in 1..=9 {
            d.on_ack(at(100 + 41 * i), rtt, false);
        }
        assert!((d.value - 0.05).abs() < 1e-12, "1/δ is 20");
        d.on_loss(at(500));
        assert!((d.value - 0.1).abs() < 1e-12, "a loss doubles δ");
        d.value = 0.02;
        d.on_loss(at(501));
        d.on_loss(at(502));
        assert_eq!(d.value, 0.08, "at each acknowledgement with a gap, not once per round trip");
        d.on_ack(at(542), rtt, true);
        assert_eq!(d.value, 0.08, "the default waits a round trip after the doubling");
        d.on_ack(at(543), rtt, true);
        assert_eq!(d.value, 0.1);
        d.on_ack(at(583), rtt, false);
        assert_eq!(d.value, 0.1, "the first lowering waits a round trip after the default mode's last acknowledgement");
        d.on_ack(at(584), rtt, false);
        assert!((d.value - 1.0 / 11.0).abs() < 1e-12);
        d.on_loss(at(600));
        assert_eq!(d.value, 0.1, "never above the default");
    }

    #[test]
    fn detector_wants_a_nearly_empty_queue_within_four_round_trips() {
        let mut h = host();
        for _ in 0..40 {
            h.ack_after(ms(40));
        }
        assert_eq!(h.observable("competitive"), 0.0, "a path without a queue is the default mode");
        let full = h.now;
        while h.observable("competitive") == 0.0 {
            h.ack_after(ms(80));
        }
        let took = h.now.since(full).as_millis_f64();
        assert!((160.0..420.0).contains(&took), "{took}");
    }

    #[test]
    fn gaps_free_the_window_at_once() {
        let mut h = host();
        for _ in 0..60 {
            h.ack_after(ms(40));
        }
        let mut copa = PantheonCopa::new(0.1, true);
        copa.mss = MSS;
        copa.window = 20.0;
        copa.decide(3 * MSS);
        assert_eq!(copa.control().cwnd, 23 * MSS);
        // The host reports a loss and 5 acknowledgements: the gap counts, and nothing below it is in flight.
        h.play(TestEvent { lost: 2, acked: 5, ..TestEvent::default() });
        assert_eq!(h.window(), h.observable("cwnd_packets").ceil() + 1.0);
    }

    #[test]
    fn heavy_loss_cuts() {
        for (acked, lost, span, heavy) in [
            (14, 7, 80, true),  // 33 % of 21
            (15, 6, 80, false), // 28 %
            (13, 7, 80, false), // 20 packets are too few
            (14, 7, 79, false), // less than two round trips
        ] {
            let mut h = HeavyLoss::new(at(0));
            assert_eq!(h.on_ack(at(span), ms(40), acked, lost), heavy, "{acked} {lost} {span}");
        }
    }

    #[test]
    fn silence_restarts_the_flow() {
        let mut h = host();
        for _ in 0..200 {
            h.ack_after(ms(40));
        }
        assert!(h.window() > 20.0);
        h.advance(ms(1_999));
        assert!(h.window() > 20.0);
        h.advance(ms(2));
        assert_eq!((h.window(), h.observable("slow_start")), (10.0, 1.0));
    }

    #[test]
    fn older_reports_used_half() {
        let h = MockTransport::of("copa", &json!({"mode": "pantheon", "delta": 0.5}));
        assert_eq!(h.observable("delta"), 0.5);
        assert_eq!(host().observable("delta"), 0.1);
    }
}
