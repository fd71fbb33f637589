//! SCReAM, self-clocked rate adaptation for multimedia: a window that holds the queueing delay near a target, and a rate
//! for a video encoder that keeps frames from waiting for the window.
//!
//! Two sets of rules: RFC 8298, and the library of 2017 as Pantheon calls it.

mod delay;
mod media;
mod receiver;
mod rules;
#[cfg(test)]
mod tests;
mod window;

use ccgym_core::congestion_control::{Capabilities, FrameEvent, Media, Observables, ReceiverSide, SentEvent};
use ccgym_core::{
    AckEvent, CongestionControl, Control, Ecn, FeedbackReceiver, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp,
};

use crate::filters::slots::between;
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};
use delay::{DelayTarget, QueueDelay};
use media::{Meter, Network, Target, BETA_RATE};
use receiver::ScreamReceiver;
use rules::{Mode, Rules, PANTHEON, RFC};
use window::{Update, Window, BETA_ECN};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "scream",
        label: "SCReAM",
        reference: "RFC 8298; EricssonResearch/scream c3370fd for mode pantheon",
        summary: "Holds the queueing delay near a target by its window, and sets the rate of a video encoder.",
        parameters: parameters! {
            /// pantheon: the rules of the library that Pantheon runs, with its arguments: at most 0.2 Mbit/s. rfc:
            /// those of RFC 8298.
            mode: choice(&["pantheon", "rfc"]);
            /// Target of the queueing delay.
            target: number(100.0, (1.0, 1000.0), "ms");
            /// With rfc: maximum of that target, which rises with competing flows that fill the queue.
            max_target: number(400.0, (1.0, 10_000.0), "ms");
            /// Target of the encoder at the start; 0: the mode's default (rfc 0.3, pantheon 100).
            start_rate: number(0.0, (0.0, 10_000.0), "Mbit/s");
            /// Minimum of that target; 0: the mode's default (rfc 0.05, pantheon 0.064).
            min_rate: number(0.0, (0.0, 1000.0), "Mbit/s");
            /// Maximum of that target; 0: the mode's default (rfc 30, pantheon 0.2).
            max_rate: number(0.0, (0.0, 10_000.0), "Mbit/s");
            /// Maximum growth of that target; 0: the mode's default (rfc 200, pantheon 0.002).
            ramp_up: number(0.0, (0.0, 1e6), "kbit/s per s");
            /// Factor on the window at a loss; 0: the mode's default (rfc 0.8, pantheon 0.6).
            beta_loss: number(0.0, (0.0, 1.0), "");
            /// Time between two reports; 0: the mode's default (rfc 20 to 100, by the rate; pantheon 5).
            feedback: number(0.0, (0.0, 1000.0), "ms");
            /// With rfc: mark packets ECN-capable; a mark reduces the window to 0.9.
            ecn: flag(false);
        },
        role: Role::OnRequest,
        implementation: "EricssonResearch/scream c3370fd, BSD-2-Clause",
        // RTP packets of 1200 bytes of payload; 20 bytes of RTP and its payload format, 28 of UDP and IP.
        transport: Transport { mss: 1200, header: 48, source: "media", ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Scream::new(p))),
};

/// Min pacing rate, bit/s: RFC (`RATE_PACE_MIN`) and program.
const MIN_PACING: f64 = 50e3;
const PROGRAM_MIN_PACING: f64 = 5e3;
/// Pantheon: the pacing rate over window and round trip, …
const PROGRAM_PACING: f64 = 1.5;
/// … if the average delay is above this share of its target.
const PROGRAM_PACED_FROM: f64 = 0.1;
/// Pantheon: silence after which a packet leaves regardless of the window.
const PROBE_INTERVAL: TimeSpan = TimeSpan::from_millis(200);
/// Pantheon: rate, bit/s, below which the target follows the window down.
const FOLLOWS_WINDOW: f64 = 1e5;

#[derive(Clone, Debug)]
struct Scream {
    rules: Rules,
    ecn: bool,
    mss: u64,
    delay: QueueDelay,
    delay_target: DelayTarget,
    window: Window,
    meter: Meter,
    target: Target,
    in_flight: u64,
    srtt: TimeSpan,
    /// Bytes acknowledged or lost since the latest update of the window.
    settled: u64,
    /// Time of the latest reduction of the window by a loss or a mark.
    reduced: Option<Timestamp>,
    /// Time at which the retransmission timer expired, until an arrival shows if the packets are lost or late.
    timed_out: Option<Timestamp>,
    /// Share of round trips with a loss, true if the current one had one, and its start.
    loss_rate: f64,
    lossy: bool,
    round: Timestamp,
    /// True if a packet may leave regardless of the window, and the time of the next such packet.
    probe: bool,
    probe_due: Timestamp,
}

impl Scream {
    fn new(p: &Parameters) -> Self {
        let own = match p.word("mode") {
            "pantheon" => PANTHEON,
            _ => RFC,
        };
        let or_own = |key: &str, unit: f64, own: f64| match p.number(key) {
            0.0 => own,
            set => set * unit,
        };
        let min_rate = or_own("min_rate", 1e6, own.min_rate);
        let rules = Rules {
            beta_loss: or_own("beta_loss", 1.0, own.beta_loss),
            start_rate: or_own("start_rate", 1e6, own.start_rate),
            min_rate,
            max_rate: or_own("max_rate", 1e6, own.max_rate).max(min_rate),
            ramp_up: or_own("ramp_up", 1e3, own.ramp_up),
            feedback: match p.number("feedback") {
                0.0 => own.feedback,
                ms => Some(TimeSpan::from_secs_f64(ms / 1e3)),
            },
            ..own
        };
        let target = p.number("target") / 1e3;
        // The program has the adaptation of the target, but turns it off.
        let max_target = if rules.mode == Mode::Rfc { p.number("max_target") / 1e3 } else { target };
        Self {
            rules,
            ecn: rules.mode == Mode::Rfc && p.flag("ecn"),
            mss: 0,
            delay: QueueDelay::new(rules),
            delay_target: DelayTarget::new(target, max_target),
            window: Window::new(rules, 0, Timestamp::ZERO),
            meter: Meter::new(&rules, Timestamp::ZERO),
            target: Target::new(rules, Timestamp::ZERO),
            in_flight: 0,
            srtt: TimeSpan::ZERO,
            settled: 0,
            reduced: None,
            timed_out: None,
            loss_rate: 0.0,
            lossy: false,
            round: Timestamp::ZERO,
            probe: false,
            probe_due: Timestamp::NEVER,
        }
    }

    fn advance(&mut self, now: Timestamp) {
        self.meter.advance(now, self.target.rate);
        if now.since(self.round) > self.srtt {
            self.loss_rate += 0.01 * (f64::from(u8::from(self.lossy)) - self.loss_rate);
            (self.lossy, self.round) = (false, now);
        }
    }

    /// Reduce window and target after a loss or a mark, once per round trip. Returns true if they were reduced.
    fn reduce(&mut self, now: Timestamp, window: f64, target: f64) -> bool {
        let counts = self.reduced.is_none_or(|reduced| now.since(reduced) > self.srtt);
        if counts {
            self.reduced = Some(now);
            self.window.reduce(now, window);
            self.target.reduce(now, target, self.meter.rate());
        }
        counts
    }

    fn update_window(&mut self, event: &AckEvent<'_>) {
        let cut = self.window.update(&Update {
            at: event.now,
            settled: self.settled as f64,
            prior_in_flight: event.prior_in_flight as f64,
            in_flight: event.in_flight as f64,
            delay: self.delay.now,
            delay_target: self.delay_target.now,
            trend: self.delay.trend,
            srtt: self.srtt.as_secs_f64(),
            rate: self.meter.rate(),
            sent_rate: self.meter.sent,
        });
        if self.rules.mode == Mode::Pantheon && self.meter.rate() < FOLLOWS_WINDOW {
            self.target.follow(cut);
        }
    }

    fn pacing_rate(&self) -> Rate {
        let rate = self.window.bytes * 8.0 / self.srtt.as_secs_f64().max(0.001);
        match self.rules.mode {
            _ if self.srtt == TimeSpan::ZERO => Rate::ZERO,
            Mode::Rfc => Rate(rate.max(MIN_PACING) as u64),
            Mode::Pantheon if self.delay.average <= PROGRAM_PACED_FROM => Rate::ZERO,
            Mode::Pantheon => Rate((PROGRAM_PACING * rate.max(PROGRAM_MIN_PACING)) as u64),
        }
    }
}

impl CongestionControl for Scream {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            packet_events: true,
            timers: true,
            prr: false,
            ecn: if self.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            ..Capabilities::default()
        }
    }

    fn init(&mut self, context: InitContext) {
        let now = context.now;
        self.mss = context.mss;
        self.window = Window::new(self.rules, context.mss, now);
        self.meter = Meter::new(&self.rules, now);
        self.target = Target::new(self.rules, now);
        self.round = now;
    }

    fn on_packet_sent(&mut self, event: &SentEvent) {
        self.in_flight = event.in_flight;
        self.window.history.sent(event.now, event.in_flight as f64);
        self.meter.count(event.bytes, 0, 0);
        self.advance(event.now);
        if self.rules.mode == Mode::Pantheon {
            self.probe = false;
            self.probe_due = event.now + PROBE_INTERVAL;
        }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.in_flight = event.in_flight;
        self.srtt = event.rtt.smoothed();
        // Lost packets are settled, too: the highest number counts.
        let settled = event.acked_bytes + event.lost_bytes;
        self.settled += settled;
        self.meter.count(0, settled, 0);
        self.advance(event.now);
        let newest = event.acked.iter().rev().find_map(|packet| Some(between(packet.received?, packet.sent)));
        if let Some(one_way) = newest {
            self.delay.update(event.now, one_way, self.delay_target.now);
        }
        self.lossy |= !event.lost.is_empty();
        if let (Some(then), Some(oldest)) = (self.timed_out, event.acked.first()) {
            self.timed_out = None;
            if oldest.sent >= then {
                self.lossy = true;
                self.target.reduce(event.now, BETA_RATE, self.meter.rate());
            }
        }
        let lost = !event.lost.is_empty() && self.reduce(event.now, self.rules.beta_loss, BETA_RATE);
        let marked = self.ecn && !lost && event.ce_packets > 0 && self.reduce(event.now, BETA_ECN, BETA_ECN);
        if event.acked_packets > 0 {
            if !lost && !marked {
                self.update_window(event);
            }
            self.settled = 0;
            self.delay_target.update(self.delay.now, self.loss_rate);
        }
    }

    /// Neither source has a timer: missing packets are lost once a later one arrives. Until then only the window, which
    /// is empty now, is reduced: after an outage of the link the encoder continues.
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.in_flight = 0;
        self.timed_out = Some(event.now);
        self.window.reduce(event.now, self.rules.beta_loss);
    }

    fn next_timer(&self) -> Timestamp {
        self.probe_due
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.probe_due <= now {
            self.probe = true;
            self.probe_due = now + PROBE_INTERVAL;
        }
    }

    /// The window has one packet more at a delay below its target, so that a large frame need not wait (§4.1.2.4).
    fn control(&self) -> Control {
        let window = self.window.bytes as u64;
        let window = if self.delay.now <= self.delay_target.now { window.saturating_add(self.mss) } else { window };
        let probe = if self.probe { self.in_flight.saturating_add(self.mss) } else { 0 };
        Control { pacing_rate: self.pacing_rate(), ..Control::window(window.max(probe)) }
    }

    fn observables(&self) -> Observables {
        vec![
            ("target_mbps", self.target.rate / 1e6),
            ("cwnd_packets", self.window.bytes / self.mss.max(1) as f64),
            ("queueing_delay_ms", self.delay.now * 1e3),
            ("delay_target_ms", self.delay_target.now * 1e3),
            ("delay_trend", self.delay.trend),
            ("fast_increase", f64::from(u8::from(self.window.fast_increase))),
            ("sent_mbps", self.meter.sent / 1e6),
            ("acked_mbps", self.meter.acked / 1e6),
        ]
    }

    fn media(&mut self) -> Option<&mut dyn Media> {
        Some(self)
    }

    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        Some(self)
    }
}

impl Media for Scream {
    fn on_frame(&mut self, event: &FrameEvent) {
        self.meter.count(0, 0, event.bytes);
        self.advance(event.now);
        let network = Network {
            fast_increase: self.window.fast_increase,
            trend: self.delay.trend,
            peak_trend: self.delay.peak_trend,
        };
        self.target.on_frame(event, &self.meter, &network);
    }

    fn target_rate(&self) -> Rate {
        let scale = if self.rules.mode == Mode::Pantheon { self.meter.overshoot } else { 1.0 };
        Rate((self.target.rate * scale) as u64)
    }
}

impl ReceiverSide for Scream {
    fn receiver(&self) -> Box<dyn FeedbackReceiver> {
        Box::new(ScreamReceiver::new(self.rules.feedback))
    }
}
