//! Verus (Zaki et al., SIGCOMM 2015; behavior of `yzaki/verus` d4b447e, which Pantheon runs): learns the delay at each
//! window, sets a target delay in epochs of 5 ms, and takes the window from the curve.

mod departures;
mod profile;
mod spline;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ccgym_core::congestion_control::{AckedPacket, Capabilities, Observables, SentEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, PacketNumber, TimeSpan, TimeoutEvent, Timestamp};

use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};
use departures::Departures;
use profile::DelayProfile;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "verus",
        label: "Verus",
        reference: "Zaki et al., SIGCOMM 2015; yzaki/verus d4b447e",
        summary: "Learns the delay of each window, and follows this curve toward a target delay every 5 ms.",
        parameters: parameters! {
            /// Time between two decisions.
            epoch: number(5.0, (1.0, 100.0), "ms");
            /// Step of the target delay down, when the delay rises.
            delta_down: number(1.0, (0.01, 100.0), "ms");
            /// Step of the target delay up, when the delay does not rise, and down above the ratio.
            delta_up: number(2.0, (0.01, 100.0), "ms");
            /// Maximum of the delay divided by its minimum.
            ratio: number(6.0, (1.1, 100.0), "");
            /// Factor on the window at a loss.
            decrease: number(0.7, (0.1, 0.99), "");
            /// Time between two fits of the curve.
            refit: number(1.0, (0.01, 60.0), "s");
            /// Smoothing of the curve: its penalty on curvature, as a power of ten.
            smoothing: number(2.0, (-8.0, 8.0), "");
            /// Slow start ends above this delay.
            exit_delay: number(500.0, (1.0, 10_000.0), "ms");
        },
        role: Role::OnRequest,
        implementation: "yzaki/verus, MIT",
        // Pantheon's packets: 1414 bytes of UDP payload, including the 36 of Verus's header.
        transport: Transport { mss: 1378, header: 64, initial_window: 1, ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Verus::new(p))),
};

/// Weight of the old value in the mean delay.
const MEAN_KEPT: f64 = 0.875;
/// Weight of the old value in the maximum of earlier epochs.
const MAX_KEPT: f64 = 0.2;
/// Min delay before the first sample, ms.
const FIRST_D_MIN: f64 = 1000.0;
/// Step up of the min when even the smallest window exceeds the ratio, ms.
const D_MIN_STEP: f64 = 10.0;
/// A rise of the max by no more than this does not count, ms.
const NO_RISE: f64 = 1e-4;
/// Time after which a missing packet is lost.
const MISSING_EXPIRY: TimeSpan = TimeSpan::from_millis(150);
/// Window above which a loss ends slow start, packets.
const SLOW_START_MIN_EXIT: f64 = 20.0;
/// Min window that the first curve after slow start keeps, packets.
const FIRST_CURVE_MIN: u32 = 100;
/// Time without an acknowledgement of its first packet after which slow start restarts.
const FIRST_TIMEOUT: TimeSpan = TimeSpan::from_millis(1_000);
/// Timeout, as a multiple of the delay, and its bounds.
const TIMEOUT_DELAYS: f64 = 5.0;
const TIMEOUT_MS: (f64, f64) = (150.0, 1_000.0);

/// Constants of the flow. Times are in milliseconds if they are numbers.
#[derive(Clone, Copy, Debug)]
struct Settings {
    epoch: TimeSpan,
    delta_down: f64,
    delta_up: f64,
    ratio: f64,
    decrease: f64,
    refit: TimeSpan,
    smoothing: f64,
    exit_delay: f64,
}

/// State that a new slow start resets. Delays in milliseconds, windows in packets.
#[derive(Clone, Debug)]
struct Model {
    profile: DelayProfile,
    /// The current window (`wBar`).
    window: f64,
    slow_start: bool,
    /// True if slow start ended because of its delay, which does not count against the ratio until the queue is gone.
    overshot: bool,
    loss_phase: bool,
    /// Mean delay (`dTBar`).
    d_mean: f64,
    d_min: f64,
    /// Max delay in this epoch.
    epoch_max: Option<f64>,
    /// Smoothed max of the previous epochs (`dMaxLast`).
    d_max: Option<f64>,
    /// The target delay.
    d_est: f64,
    /// Packets in flight as Verus counts them.
    outstanding: u64,
    /// Packets skipped by acknowledgements, or declared lost by the transport; oldest first.
    missing: VecDeque<Missing>,
    /// True after the first acknowledgement.
    acked: bool,
    /// Time of the next fit of the curve.
    fit_due: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: PacketNumber,
    window: u32,
    since: Timestamp,
}

impl Model {
    fn new() -> Self {
        Self {
            profile: DelayProfile::default(),
            window: 1.0,
            slow_start: true,
            overshot: false,
            loss_phase: false,
            d_mean: 0.0,
            d_min: FIRST_D_MIN,
            epoch_max: None,
            d_max: None,
            d_est: 0.0,
            outstanding: 0,
            missing: VecDeque::new(),
            acked: false,
            fit_due: Timestamp::ZERO,
        }
    }

    /// Return the number of packets to send in this epoch (`calcSi`): the window, less the packets still in flight
    /// then, spread over the epochs of an RTT.
    fn packets_now(&self, epoch: TimeSpan) -> u64 {
        let n = (self.d_mean / epoch.as_millis_f64()).ceil() as i64;
        let outstanding = self.outstanding as i64;
        let settled = if n > 1 { outstanding * (2 - n) / (n - 1) } else { -outstanding };
        (self.window + settled as f64).max(0.0) as u64
    }
}

#[derive(Clone, Debug)]
pub struct Verus {
    settings: Settings,
    mss: u64,
    model: Model,
    departures: Departures,
    /// Packets below this number belong to an earlier slow start.
    session: PacketNumber,
    /// Packets below this number no longer count as in flight.
    counted_from: PacketNumber,
    /// Packets that may leave now.
    budget: u64,
    /// The transport's bytes in flight.
    in_flight: u64,
    /// True if the application left budget unused.
    app_limited: bool,
    /// Latest delay, ms.
    delay: f64,
    last_ack: Timestamp,
    epoch_due: Timestamp,
    timeout_due: Timestamp,
}

impl Verus {
    fn new(p: &Parameters) -> Self {
        let span = |ms: f64| TimeSpan::from_secs_f64(ms / 1e3);
        Self {
            settings: Settings {
                epoch: span(p.number("epoch")),
                delta_down: p.number("delta_down"),
                delta_up: p.number("delta_up"),
                ratio: p.number("ratio"),
                decrease: p.number("decrease"),
                refit: TimeSpan::from_secs_f64(p.number("refit")),
                smoothing: p.number("smoothing"),
                exit_delay: p.number("exit_delay"),
            },
            mss: 0,
            model: Model::new(),
            departures: Departures::default(),
            session: 0,
            counted_from: 0,
            budget: 1,
            in_flight: 0,
            app_limited: false,
            delay: 0.0,
            last_ack: Timestamp::ZERO,
            epoch_due: Timestamp::ZERO,
            timeout_due: Timestamp::ZERO,
        }
    }

    fn begin_slow_start(&mut self, now: Timestamp) {
        self.model = Model::new();
        self.session = self.departures.next();
        self.counted_from = self.session;
        self.budget = 1;
        self.timeout_due = now + FIRST_TIMEOUT;
    }

    fn arm_timeout(&mut self, now: Timestamp) {
        let (min, max) = TIMEOUT_MS;
        self.timeout_due = now + TimeSpan::from_secs_f64((TIMEOUT_DELAYS * self.delay).clamp(min, max) / 1e3);
    }

    fn on_acked(&mut self, now: Timestamp, packet: &AckedPacket) {
        let departed = self.departures.settle(packet.number);
        if packet.number < self.session {
            return;
        }
        let missed = || {
            let place = self.model.missing.iter().position(|m| m.number == packet.number)?;
            self.model.missing.remove(place).map(|m| m.window)
        };
        let Some(window) = departed.or_else(missed) else { return };
        self.delay = now.since(packet.sent).as_millis_f64();
        if self.model.slow_start && self.delay > self.settings.exit_delay {
            self.overshoot(window);
        }
        self.arm_timeout(now);
        let model = &mut self.model;
        if model.loss_phase && f64::from(window) <= model.window {
            model.epoch_max = None;
            model.loss_phase = false;
            model.overshot = false;
        }
        model.acked = true;
        if packet.number >= self.counted_from {
            self.last_ack = now;
            self.learn(window);
        }
        if self.model.slow_start && !self.app_limited {
            self.model.window = (self.model.window + 1.0).min(profile::MAX_WINDOW as f64);
            self.budget = (self.model.window as u64).saturating_sub(self.model.outstanding);
        }
    }

    /// Add a packet that the transport declared lost to the missing ones.
    fn miss(&mut self, now: Timestamp, number: PacketNumber) {
        if let Some(window) = self.departures.settle(number) {
            if number >= self.counted_from {
                self.model.missing.push_back(Missing { number, window, since: now });
            }
        }
    }

    /// Add the latest delay to the profile, for a packet sent under `window`.
    fn learn(&mut self, window: u32) {
        let (model, delay) = (&mut self.model, self.delay);
        model.outstanding = model.outstanding.saturating_sub(1);
        model.epoch_max = Some(model.epoch_max.unwrap_or(delay).max(delay));
        model.d_mean = MEAN_KEPT * model.d_mean + (1.0 - MEAN_KEPT) * delay;
        model.d_min = model.d_min.min(delay);
        if !model.loss_phase {
            model.profile.observe(window as usize, delay);
            return;
        }
        model.window += 1.0 / model.window;
        if let Some(delay) = model.profile.curve_at(model.window) {
            model.d_est = model.d_est.min(delay);
        }
    }

    /// End slow start: its delay is too long.
    fn overshoot(&mut self, window: u32) {
        let model = &mut self.model;
        model.window = (self.settings.decrease * f64::from(window)).max(1.0);
        model.d_est = model.profile.delay_at(model.window).unwrap_or(model.d_min);
        model.loss_phase = true;
        model.slow_start = false;
        model.overshot = true;
    }

    /// Declare packets lost that have been missing for too long; the first one of a loss phase reduces the window.
    fn expire_missing(&mut self, now: Timestamp) {
        while let Some(&lost) = self.model.missing.front().filter(|m| now.since(m.since) >= MISSING_EXPIRY) {
            let model = &mut self.model;
            model.missing.pop_front();
            model.outstanding = model.outstanding.saturating_sub(1);
            if !model.loss_phase {
                model.loss_phase = true;
                model.window = model.window.min(self.settings.decrease * f64::from(lost.window)).max(1.0);
                model.d_est = model.profile.delay_at(model.window).unwrap_or(model.d_min);
            }
            if model.slow_start && model.window > SLOW_START_MIN_EXIT {
                model.slow_start = false;
                model.profile.truncate(lost.window.max(FIRST_CURVE_MIN) as usize);
                self.forget_flight();
            }
        }
    }

    /// Stop counting the packets now in flight.
    fn forget_flight(&mut self) {
        self.model.outstanding = 0;
        self.model.missing.clear();
        self.counted_from = self.departures.next();
    }

    fn time_out(&mut self, now: Timestamp) {
        if !self.model.acked {
            return self.begin_slow_start(now);
        }
        if self.model.slow_start {
            self.model.slow_start = false;
        } else {
            self.model.loss_phase = true;
            self.model.d_est = self.model.d_min;
            self.forget_flight();
        }
        self.arm_timeout(now);
    }

    /// Decide at the end of an epoch after slow start.
    fn decide(&mut self, now: Timestamp) {
        if self.model.fit_due <= now {
            self.model.fit_due = now + self.settings.refit;
            if !self.model.profile.fit(self.settings.smoothing) {
                return self.begin_slow_start(now);
            }
        }
        let idle = self.app_limited && self.in_flight == 0;
        if !idle {
            let silenced = self.steer(now);
            let Some(window) = self.model.profile.window_at(self.model.d_est) else {
                return self.begin_slow_start(now);
            };
            self.model.window = window.max(1.0);
            if silenced {
                self.budget = 0;
                return;
            }
        }
        self.budget = self.model.packets_now(self.settings.epoch);
    }

    /// Change the target delay. Returns true if nothing may be sent in this epoch.
    fn steer(&mut self, now: Timestamp) -> bool {
        let (model, settings) = (&mut self.model, &self.settings);
        let silence = now.since(self.last_ack).as_millis_f64();
        let max = model.epoch_max.take().unwrap_or_else(|| model.d_max.unwrap_or(0.0).max(silence));
        let before = model.d_max.unwrap_or(max);
        model.d_max = Some(MAX_KEPT * before + (1.0 - MAX_KEPT) * max);
        if before / model.d_min > settings.ratio {
            if !model.overshot {
                model.d_est = (model.d_est - settings.delta_up).max(model.d_min);
                if model.d_est <= model.d_min {
                    if model.outstanding >= 2 {
                        return true;
                    }
                    model.d_min += D_MIN_STEP;
                }
            }
        } else if max - before > NO_RISE {
            model.d_est = (model.d_est - settings.delta_down).max(model.d_min);
        } else if !self.app_limited {
            model.d_est += settings.delta_up;
        }
        false
    }
}

impl CongestionControl for Verus {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, timers: true, prr: false, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.last_ack = context.now;
        self.epoch_due = context.now + self.settings.epoch;
        self.begin_slow_start(context.now);
    }

    fn on_packet_sent(&mut self, event: &SentEvent) {
        self.in_flight = event.in_flight;
        self.departures.push(event.number, self.model.window as u32);
        self.model.outstanding += 1;
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 {
            self.app_limited = false;
        }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.in_flight = event.in_flight;
        for lost in event.lost {
            self.miss(event.now, lost.number);
        }
        for packet in event.acked {
            self.on_acked(event.now, packet);
        }
    }

    /// The transport declared all packets in flight lost; Verus's own timer decides.
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.in_flight = 0;
        for lost in event.lost {
            self.miss(event.now, lost.number);
        }
    }

    fn next_timer(&self) -> Timestamp {
        self.epoch_due.min(self.timeout_due)
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.timeout_due <= now {
            if self.app_limited && self.in_flight == 0 {
                self.arm_timeout(now);
            } else {
                self.time_out(now);
            }
        }
        if self.epoch_due <= now {
            self.epoch_due = now + self.settings.epoch;
            self.expire_missing(now);
            if !self.model.slow_start {
                self.decide(now);
            }
        }
    }

    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {
        self.app_limited = true;
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        self.last_ack = now;
        self.arm_timeout(now);
    }

    fn control(&self) -> Control {
        Control::window(self.in_flight + self.budget * self.mss)
    }

    fn observables(&self) -> Observables {
        let model = &self.model;
        let flag = |on: bool| f64::from(u8::from(on));
        vec![
            ("window_packets", model.window),
            ("d_est_ms", model.d_est),
            ("d_min_ms", model.d_min),
            ("d_max_ms", model.d_max.unwrap_or(f64::NAN)),
            ("slow_start", flag(model.slow_start)),
            ("loss_phase", flag(model.loss_phase)),
        ]
    }
}
