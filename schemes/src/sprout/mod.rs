//! Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013; behavior of keithw/sprout c838669, which Pantheon runs): the
//! receiver forecasts what the link will surely deliver, and the sender sends what will be through within 100 ms.

mod model;
mod receiver;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ccgym_core::congestion_control::{Capabilities, Observables, ReceiverSide, SentEvent};
use ccgym_core::sender::MIN_SHORT;
use ccgym_core::{
    AckEvent, CongestionControl, Control, FeedbackReceiver, InitContext, PacketNumber, TimeSpan, TimeoutEvent,
    Timestamp,
};

use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};
use model::{Forecast, TICK, TICKS};
use receiver::{Forecaster, Header, Report, SproutReceiver};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "sprout",
        label: "Sprout",
        reference: "Winstein et al., NSDI 2013; keithw/sprout c838669",
        summary: "Sends what a cautious forecast of the receiver says will be through within 100 ms.",
        parameters: parameters! {
            /// The model of a wandering rate and its 5th percentile, or the mean rate (Sprout-EWMA).
            forecast: choice(&["bayes", "ewma"]);
            /// What drains per tick without a newer forecast: by the program's quirk all of the forecast so far,
            /// or, in paper, its share of the forecast.
            mode: choice(&["pantheon", "paper"]);
            /// Time within which what is sent is to arrive, in ticks of 20 ms.
            lookahead: integer(5, (1, 7), "ticks");
        },
        role: Role::OnRequest,
        implementation: "keithw/sprout, GPL-3.0 (its behavior)",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Sprout::new(p))),
};

/// Silence after which one packet leaves whatever the window, and which the last packet of a flight announces.
const PROBE_INTERVAL: TimeSpan = TimeSpan::from_millis(50);
/// What a packet of the forecast holds, in bytes.
const FORECAST: u64 = 1400;
/// What a full packet of the sender holds: those, and two bytes that say how long a forecast is.
const FULL: u64 = FORECAST + 2;
/// Wire bytes around it, of 1500.
const ENVELOPE: u64 = MIN_SHORT - 2;
/// The sender's numbering counts each packet as so many bytes more.
const NUMBERING: u64 = 50;
/// The program's loop sleeps 10 ms at a time, and wakes late by this within a tick.
const LATE: TimeSpan = TimeSpan::from_micros(120);
/// Packets sent within this may overtake each other.
const REORDERING: TimeSpan = TimeSpan::from_millis(10);

/// What a packet of so many bytes on the wire holds, where a full one has `mss`: as much as in the program, whatever that is.
fn content(bytes: u64, mss: u64) -> u64 {
    bytes.saturating_sub(ENVELOPE) * FULL / mss.saturating_sub(ENVELOPE).max(1)
}

/// The sending half.
#[derive(Clone)]
struct Sprout {
    forecaster: Forecaster,
    /// By the program's quirk the whole forecast is subtracted each tick.
    cumulative_drain: bool,
    lookahead: usize,
    mss: u64,
    /// The forecast in force, when it came, and how many of its ticks have passed since.
    forecast: Forecast,
    forecast_at: Timestamp,
    tick: usize,
    /// Estimate of what is on its way and has not arrived, bytes.
    queue: u64,
    next_number: PacketNumber,
    /// Where the packets from [`Sprout::settled`] on begin in the sender's numbering, the next one's included, bytes.
    positions: VecDeque<u64>,
    /// All packets before this one have arrived or are lost.
    settled: PacketNumber,
    /// Number of the latest report.
    report: u32,
    /// Departures within [`REORDERING`] of the latest.
    recent: VecDeque<Timestamp>,
    /// What the latest packet said.
    header: Header,
    in_flight: u64,
    /// What a probe holds, bytes, and whether one may leave.
    probe_content: u64,
    probe: bool,
    probe_due: Timestamp,
}

impl Sprout {
    fn new(p: &Parameters) -> Self {
        let forecaster = match p.word("forecast") {
            "ewma" => Forecaster::Ewma(0.0),
            _ => Forecaster::bayes(),
        };
        Self {
            // Nothing is known yet, by either forecaster.
            forecast: Forecaster::bayes().forecast(),
            cumulative_drain: p.word("mode") == "pantheon",
            lookahead: p.integer("lookahead") as usize,
            mss: 0,
            forecast_at: Timestamp::ZERO,
            tick: 0,
            queue: 0,
            next_number: 0,
            positions: VecDeque::from([0]),
            settled: 0,
            report: 0,
            recent: VecDeque::new(),
            header: Header::default(),
            in_flight: 0,
            // For the mean rate an empty packet is nothing: it would never rise again.
            probe_content: if matches!(forecaster, Forecaster::Bayes(_)) { FULL - FORECAST } else { FULL },
            probe: true,
            probe_due: Timestamp::NEVER,
            forecaster,
        }
    }

    /// What the forecast has delivered by the end of tick `tick`, bytes.
    fn delivered(&self, tick: usize) -> u64 {
        u64::from(self.forecast[tick.min(TICKS - 1)]) * FORECAST
    }

    /// What will be delivered within the time looked ahead, bytes.
    fn deliveries(&self) -> u64 {
        self.delivered(self.tick + self.lookahead).saturating_sub(self.delivered(self.tick))
    }

    /// What packets that leave now may hold, bytes.
    fn window(&self) -> u64 {
        self.deliveries().saturating_sub(self.queue).max(if self.probe { self.probe_content } else { 0 })
    }

    /// Let the ticks pass that have ended by `now`: the queue drains as forecast.
    fn advance(&mut self, now: Timestamp) {
        let ticks = (now.since(self.forecast_at).0 / TICK.0).min(TICKS as u64 - 1) as usize;
        while self.tick < ticks {
            let before = if self.cumulative_drain || self.tick == 0 { 0 } else { self.delivered(self.tick - 1) };
            let drained = self.delivered(self.tick).saturating_sub(before);
            self.queue = self.queue.saturating_sub(drained);
            self.tick += 1;
        }
    }

    fn tick_due(&self) -> Timestamp {
        if self.tick + 1 < TICKS {
            self.forecast_at + TimeSpan((self.tick as u64 + 1) * (TICK + LATE).0)
        } else {
            Timestamp::NEVER
        }
    }
}

impl CongestionControl for Sprout {
    fn capabilities(&self) -> Capabilities {
        // No forecast is above the model's largest rate.
        Capabilities {
            packet_events: true,
            timers: true,
            prr: false,
            bounded: true,
            short_packets: true,
            ..Capabilities::default()
        }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.forecast_at = context.now;
        self.probe_due = context.now + PROBE_INTERVAL;
    }

    fn on_packet_sent(&mut self, event: &SentEvent) {
        self.in_flight = event.in_flight;
        self.next_number = event.number + 1;
        let content = content(event.bytes, self.mss);
        self.queue += content;
        self.positions.push_back(self.positions[self.positions.len() - 1] + content + NUMBERING);
        self.probe = false;
        self.probe_due = event.now + PROBE_INTERVAL;
        while self.recent.front().is_some_and(|sent| *sent + REORDERING < event.now) {
            self.recent.pop_front();
        }
        let ends = self.window() == 0 || !event.more;
        self.header = Header {
            recent: self.recent.len().min(usize::from(u16::MAX)) as u16,
            time_to_next_ms: if ends { PROBE_INTERVAL.as_millis() as u8 } else { 0 },
        };
        self.recent.push_back(event.now);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.in_flight = event.in_flight;
    }

    /// Losses are the forecast's business.
    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        self.in_flight = 0;
    }

    fn next_timer(&self) -> Timestamp {
        self.tick_due().min(self.probe_due)
    }

    fn on_timer(&mut self, now: Timestamp) {
        self.advance(now);
        if self.probe_due <= now {
            self.probe = true;
            self.probe_due = now + PROBE_INTERVAL;
        }
    }

    fn control(&self) -> Control {
        let window = self.window();
        let content = window * self.mss.saturating_sub(ENVELOPE) / FULL;
        Control::window(self.in_flight + content + window.div_ceil(FULL) * ENVELOPE)
    }

    fn observables(&self) -> Observables {
        vec![
            ("forecast_packets", self.deliveries() as f64 / FORECAST as f64),
            ("queue_packets", self.queue as f64 / FORECAST as f64),
            ("forecast_tick", self.tick as f64),
        ]
    }

    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        Some(self)
    }
}

impl ReceiverSide for Sprout {
    fn receiver(&self) -> Box<dyn FeedbackReceiver> {
        Box::new(SproutReceiver::new(self.forecaster.clone()))
    }

    fn header(&self) -> u32 {
        self.header.pack()
    }

    fn on_message(&mut self, now: Timestamp, message: &[u8]) {
        let Some(report) = Report::read(message) else { return };
        // A copy and an older one are no news; and more cannot have arrived than was sent.
        if report.number <= self.report || report.settled > self.next_number || report.settled < self.settled {
            return;
        }
        let news = (report.settled - self.settled) as usize;
        let sent = self.positions[self.positions.len() - 1] - self.positions[news];
        let Some(queue) = sent.checked_sub(u64::from(report.arrived_above)) else { return };
        self.positions.drain(..news);
        self.report = report.number;
        self.settled = report.settled;
        self.forecast = report.forecast;
        self.forecast_at = now;
        self.tick = 0;
        self.queue = queue;
    }
}
