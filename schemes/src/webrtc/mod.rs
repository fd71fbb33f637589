//! WebRTC's congestion control (Google congestion control, GCC): a target for a video encoder from the growth of the
//! one-way delay and from loss.
//!
//! Two sets of rules: those of libwebrtc as deployed since 2017, also in Pantheon's Chromium, and those of
//! draft-ietf-rmcat-gcc-02. WebRTC's receiver reports arrival times in batches; here each acknowledgement brings one,
//! and the rate is updated at the times of the batches.

mod arrival;
mod detector;
mod filter;
mod loss;
mod rate_control;
mod received_rate;
#[cfg(test)]
mod tests;

use ccgym_core::congestion_control::{Capabilities, Media, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, TimeoutEvent, Timestamp};

use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};

use arrival::Arrivals;
use detector::{Detector, Usage};
use filter::{Filter, Kalman, TrendLine};
use loss::LossControl;
use rate_control::RateControl;
use received_rate::ReceivedRate;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "webrtc",
        label: "WebRTC media",
        reference: "draft-ietf-rmcat-gcc-02; libwebrtc for mode libwebrtc",
        summary: "Sets the rate of a video encoder from the growth of the one-way delay and from loss (GCC).",
        parameters: parameters! {
            /// libwebrtc: the deployed trend line, which Pantheon's browser runs. draft: the Kalman filter of
            /// draft-ietf-rmcat-gcc-02.
            mode: choice(&["libwebrtc", "draft"]);
            /// Target at the start.
            start_rate: number(0.3, (0.01, 1000.0), "Mbit/s");
            /// Minimum of the target.
            min_rate: number(0.03, (0.001, 1000.0), "Mbit/s");
            /// Maximum of the target.
            max_rate: number(30.0, (0.01, 10_000.0), "Mbit/s");
            /// Time between two updates of the target.
            feedback: number(100.0, (10.0, 1000.0), "ms");
            /// Pacing rate divided by the target, so that a large frame leaves fast.
            pacing: number(2.5, (1.0, 10.0), "");
        },
        role: Role::OnRequest,
        implementation: "aiortc 1.16.0, BSD-3-Clause; str0m 0.25.0, MIT or Apache-2.0",
        // RTP packets of 1200 bytes, and 28 of UDP and IP.
        transport: Transport { mss: 1188, header: 40, source: "media", ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Webrtc::new(p))),
};

/// Set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Libwebrtc,
    Draft,
}

#[derive(Clone, Debug)]
pub struct Webrtc {
    pacing: f64,
    /// Time between two updates of the target, ms.
    feedback: f64,
    /// Bounds of the target, bit/s.
    bounds: (f64, f64),
    arrivals: Arrivals,
    filter: Filter,
    detector: Detector,
    received: ReceivedRate,
    delay: RateControl,
    loss: LossControl,
    /// Arrival of the latest packet, on the receiver's clock, ms.
    arrived: f64,
    /// Time of the latest update of the target, ms.
    updated: f64,
    growth: f64,
}

impl Webrtc {
    fn new(p: &Parameters) -> Self {
        let mode = match p.word("mode") {
            "draft" => Mode::Draft,
            _ => Mode::Libwebrtc,
        };
        let (min, max) = (p.number("min_rate") * 1e6, p.number("max_rate") * 1e6);
        let bounds = (min, max.max(min));
        let start = (p.number("start_rate") * 1e6).clamp(bounds.0, bounds.1);
        let (filter, gains, received) = match mode {
            Mode::Libwebrtc => (Filter::TrendLine(TrendLine::default()), (0.0087, 0.039), ReceivedRate::weighted()),
            Mode::Draft => (Filter::Kalman(Kalman::default()), (0.01, 0.00018), ReceivedRate::sliding()),
        };
        Self {
            pacing: p.number("pacing"),
            feedback: p.number("feedback"),
            bounds,
            arrivals: Arrivals::default(),
            filter,
            detector: Detector::new(gains),
            received,
            delay: RateControl::new(mode, start),
            loss: LossControl::new(mode, start),
            arrived: 0.0,
            updated: 0.0,
            growth: 0.0,
        }
    }

    /// Return the min of the two rates.
    fn target(&self) -> f64 {
        self.delay.rate.min(self.loss.rate)
    }

    fn bound(&mut self) {
        let (min, max) = self.bounds;
        self.delay.rate = self.delay.rate.clamp(min, max);
        self.loss.rate = self.loss.rate.clamp(min, max);
    }
}

fn ms(at: Timestamp) -> f64 {
    at.as_secs_f64() * 1e3
}

impl CongestionControl for Webrtc {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            packet_events: true,
            prr: false,
            pacing_required: true,
            bounded: true,
            ..Capabilities::default()
        }
    }

    fn init(&mut self, context: InitContext) {
        self.updated = ms(context.now);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let mut overused = false;
        for packet in event.acked {
            let Some(received) = packet.received else { continue };
            self.arrived = self.arrived.max(ms(received));
            let Some(variation) = self.arrivals.add(packet.sent, received) else { continue };
            let Some(growth) = self.filter.add(&variation) else { continue };
            self.growth = growth.value;
            overused |= self.detector.detect(growth, variation.send_gap, variation.arrived);
        }
        if event.acked_bytes > 0 {
            self.received.add(self.arrived, event.acked_bytes as f64);
        }
        self.loss.count(event.acked_packets + event.lost.len() as u64, event.lost.len() as u64);
        let now = ms(event.now);
        if !overused && now - self.updated < self.feedback {
            return;
        }
        self.updated = now;
        let rtt = event.rtt.smoothed().as_millis_f64();
        self.delay.update(self.detector.usage, self.received.bps(), rtt, now);
        self.loss.update(self.delay.rate, rtt, now);
        self.bound();
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.loss.lose_all(ms(event.now));
        self.bound();
    }

    fn control(&self) -> Control {
        let pacing_rate = Rate((self.target() * self.pacing) as u64);
        Control { pacing_rate, ..Control::window(u64::MAX) }
    }

    fn media(&mut self) -> Option<&mut dyn Media> {
        Some(self)
    }

    fn observables(&self) -> Observables {
        let usage = match self.detector.usage {
            Usage::Under => -1.0,
            Usage::Normal => 0.0,
            Usage::Over => 1.0,
        };
        vec![
            ("target_mbps", self.target() / 1e6),
            ("delay_based_mbps", self.delay.rate / 1e6),
            ("loss_based_mbps", self.loss.rate / 1e6),
            ("received_mbps", self.received.bps().unwrap_or(0.0) / 1e6),
            ("growth_ms", self.growth),
            ("threshold_ms", self.detector.threshold),
            ("usage", usage),
        ]
    }
}

impl Media for Webrtc {
    fn target_rate(&self) -> Rate {
        Rate(self.target() as u64)
    }
}
