//! Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013; behavior of keithw/sprout c838669, which Pantheon runs): the
//! receiver makes a cautious forecast of the link's deliveries, and the sender sends what will arrive within 100 ms.

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
        summary: "Sends what will very likely arrive within 100 ms by its receiver's forecast of the link.",
        parameters: parameters! {
            /// bayes: a model of a varying rate and its 5th percentile. ewma: the mean rate (Sprout-EWMA).
            forecast: choice(&["bayes", "ewma"]);
            /// Bytes that leave the queue per tick without a newer forecast. pantheon: the whole forecast so far, a bug
            /// of the program. paper: the tick's share.
            mode: choice(&["pantheon", "paper"]);
            /// Time in which sent data must arrive, in ticks of 20 ms.
            lookahead: integer(5, (1, 7), "ticks");
        },
        role: Role::OnRequest,
        implementation: "keithw/sprout, GPL-3.0 (its behavior)",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Sprout::new(p))),
};

/// Silence after which one packet leaves regardless of the window, announced in the last packet of a flight.
const PROBE_INTERVAL: TimeSpan = TimeSpan::from_millis(50);
/// Content of a packet in forecasts, bytes.
const FORECAST: u64 = 1400;
/// Content of a full packet of the sender: that and two bytes with the length of a forecast.
const FULL: u64 = FORECAST + 2;
/// Wire bytes around the content, of 1500.
const ENVELOPE: u64 = MIN_SHORT - 2;
/// Addition per packet in the sender's numbering, bytes.
const NUMBERING: u64 = 50;
/// The program's loop sleeps 10 ms at a time; delay of its wake-up within a tick.
const LATE: TimeSpan = TimeSpan::from_micros(120);
/// Max time between departures of packets that may be reordered.
const REORDERING: TimeSpan = TimeSpan::from_millis(10);

/// Return the content of a packet of `bytes` on the wire, where a full one has `mss`: the same as in the program.
fn content(bytes: u64, mss: u64) -> u64 {
    bytes.saturating_sub(ENVELOPE) * FULL / mss.saturating_sub(ENVELOPE).max(1)
}

/// The sender.
#[derive(Clone)]
struct Sprout {
    forecaster: Forecaster,
    /// True if the whole forecast is subtracted each tick, as in the program.
    cumulative_drain: bool,
    lookahead: usize,
    mss: u64,
    /// The current forecast, its arrival, and the number of its ticks that have passed.
    forecast: Forecast,
    forecast_at: Timestamp,
    tick: usize,
    /// Estimate of the bytes in flight.
    queue: u64,
    next_number: PacketNumber,
    /// Start of each packet from [`Sprout::settled`] to the next one in the sender's numbering, bytes.
    positions: VecDeque<u64>,
    /// All packets before this number have arrived or are lost.
    settled: PacketNumber,
    /// Number of the latest report.
    report: u32,
    /// Departures within [`REORDERING`] of the latest.
    recent: VecDeque<Timestamp>,
    /// Header of the latest packet.
    header: Header,
    in_flight: u64,
    /// Content of a probe, bytes, and true if one may leave.
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
            // Before the first report both forecasters use this one.
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
            // For the mean rate an empty packet does not count: the rate would never rise again.
            probe_content: if matches!(forecaster, Forecaster::Bayes(_)) { FULL - FORECAST } else { FULL },
            probe: true,
            probe_due: Timestamp::NEVER,
            forecaster,
        }
    }

    /// Return the forecast deliveries by the end of tick `tick`, bytes.
    fn delivered(&self, tick: usize) -> u64 {
        u64::from(self.forecast[tick.min(TICKS - 1)]) * FORECAST
    }

    /// Return the forecast deliveries within the lookahead, bytes.
    fn deliveries(&self) -> u64 {
        self.delivered(self.tick + self.lookahead).saturating_sub(self.delivered(self.tick))
    }

    /// Return the bytes that may be sent now.
    fn window(&self) -> u64 {
        self.deliveries().saturating_sub(self.queue).max(if self.probe { self.probe_content } else { 0 })
    }

    /// Process the ticks that have ended by `now`: the queue drains by the forecast.
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
        // No forecast exceeds the model's max rate.
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

    /// The forecast reacts to losses.
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
        // Ignore copies and older reports, and those with more arrivals than packets sent.
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
