//! LEDBAT by RFC 6817 §2.4.2.

use std::collections::VecDeque;

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, TimeoutEvent};

use super::{or_own, target_us, OneWay};
use crate::filters::slots::BaseDelay;
use crate::registry::Parameters;

/// Initial and min window, packets (`INIT_CWND`, `MIN_CWND`).
const MIN_WINDOW: f64 = 2.0;

#[derive(Clone, Debug)]
pub struct Rfc {
    /// Microseconds.
    target: f64,
    gain: f64,
    /// Packets.
    allowed_increase: f64,
    mss: f64,
    /// Bytes.
    window: f64,
    base: BaseDelay,
    /// The latest delays, microseconds.
    current: VecDeque<i64>,
    filter: usize,
    /// Microseconds.
    queueing: f64,
}

impl Rfc {
    pub fn new(p: &Parameters) -> Self {
        Self {
            target: target_us(p),
            gain: p.number("gain"),
            allowed_increase: p.integer("allowed_increase") as f64,
            mss: 1.0,
            window: 0.0,
            base: BaseDelay::of_minutes(or_own(p, "base_history", 10)),
            current: VecDeque::new(),
            filter: or_own(p, "current_filter", 4),
            queueing: 0.0,
        }
    }

    /// Update the filtered delay above the base.
    fn observe(&mut self, event: &AckEvent<'_>) {
        let Some(sample) = OneWay::of(event) else { return };
        self.base.update(event.now, sample.data);
        self.current.push_back(sample.data);
        if self.current.len() > self.filter {
            self.current.pop_front();
        }
        if let (Some(current), Some(base)) = (self.current.iter().min(), self.base.get()) {
            self.queueing = current.saturating_sub(base) as f64;
        }
    }
}

impl CongestionControl for Rfc {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, prr: false, ..Default::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss as f64;
        self.window = (context.initial_window as f64).max(MIN_WINDOW * self.mss);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        // Once per episode, which lasts a round trip.
        if event.entered_recovery {
            self.window = self.window.min((self.window / 2.0).max(MIN_WINDOW * self.mss));
        }
        if event.acked_packets == 0 {
            return;
        }
        self.observe(event);
        let off_target = (self.target - self.queueing) / self.target;
        let grown = self.window + self.gain * off_target * event.acked_bytes as f64 * self.mss / self.window;
        let allowed = event.prior_in_flight as f64 + self.allowed_increase * self.mss;
        self.window = grown.min(allowed).max(MIN_WINDOW * self.mss);
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        self.window = self.mss;
    }

    fn control(&self) -> Control {
        Control::window(self.window as u64)
    }

    fn observables(&self) -> Observables {
        vec![("cwnd_packets", self.window / self.mss), ("queueing_delay_ms", self.queueing / 1e3)]
    }
}
