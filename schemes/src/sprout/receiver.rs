//! Sprout's receiver: counts arrivals per tick, updates the model of the link, and sends forecasts.

use std::collections::BTreeMap;

use ccgym_core::congestion_control::ReceivedEvent;
use ccgym_core::{FeedbackReceiver, PacketNumber, TimeSpan, Timestamp};

use super::model::{Belief, Forecast, Model, TICK, TICKS};
use super::{content, FORECAST};

/// Bytes of a message.
const MESSAGE: usize = 2 * TICKS + 16;
/// Weight of a new tick in the moving average.
const EWMA_GAIN: f64 = 0.125;
/// Times between reports, in turn: the program's loop waits for at least 20 ms on a clock of whole milliseconds. So
/// reports drift through the ticks, and their data is up to a tick old.
const REPORTS: [TimeSpan; 2] = [TICK, TimeSpan::from_millis(21)];
/// Max ticks of a silence that are processed: after these the belief is uniform.
const MAX_TICKS: u64 = 500;

/// A report from the receiver to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Number of the report, from 1.
    pub number: u32,
    pub forecast: Forecast,
    /// Packets before this number have arrived or are lost.
    pub settled: PacketNumber,
    /// Bytes that arrived of the others.
    pub arrived_above: u32,
}

impl Report {
    pub fn write(&self, message: &mut Vec<u8>) {
        message.extend_from_slice(&self.number.to_le_bytes());
        self.forecast.iter().for_each(|count| message.extend_from_slice(&count.to_le_bytes()));
        message.extend_from_slice(&self.settled.to_le_bytes());
        message.extend_from_slice(&self.arrived_above.to_le_bytes());
    }

    pub fn read(message: &[u8]) -> Option<Self> {
        let message: &[u8; MESSAGE] = message.try_into().ok()?;
        let (number, rest) = message.split_at(4);
        let (counts, arrived) = rest.split_at(2 * TICKS);
        let (settled, above) = arrived.split_at(8);
        Some(Self {
            number: u32::from_le_bytes(number.try_into().ok()?),
            forecast: std::array::from_fn(|tick| u16::from_le_bytes([counts[2 * tick], counts[2 * tick + 1]])),
            settled: u64::from_le_bytes(settled.try_into().ok()?),
            arrived_above: u32::from_le_bytes(above.try_into().ok()?),
        })
    }
}

/// Header of each packet, for the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Number of packets sent within the 10 ms before this one: those before them are lost if they have not arrived.
    pub recent: u16,
    /// Time for which the sender announces silence, ms.
    pub time_to_next_ms: u8,
}

impl Header {
    pub fn pack(self) -> u32 {
        (u32::from(self.recent) << 8) | u32::from(self.time_to_next_ms)
    }

    pub fn unpack(header: u32) -> Self {
        Self { recent: (header >> 8) as u16, time_to_next_ms: header as u8 }
    }
}

/// Method of forecasting.
#[derive(Clone)]
pub enum Forecaster {
    /// The paper's model.
    Bayes(Belief),
    /// Sprout-EWMA: the link keeps its mean rate; packets per tick.
    Ewma(f64),
}

impl Forecaster {
    pub fn bayes() -> Self {
        Self::Bayes(Model::ignorance())
    }

    /// Process a tick with `arrived` packets; `None`: the sender announced silence, so none could arrive.
    fn tick(&mut self, arrived: Option<f64>) {
        match self {
            Self::Bayes(belief) => {
                Model::shared().evolve(belief);
                if let Some(arrived) = arrived {
                    // Any arrival counts as at least one packet.
                    let count = if arrived > 0.0 { arrived.round().max(1.0) } else { 0.0 };
                    Model::shared().observe(belief, count as u32);
                }
            }
            Self::Ewma(rate) => *rate += arrived.map_or(0.0, |arrived| EWMA_GAIN * (arrived - *rate)),
        }
    }

    pub fn forecast(&self) -> Forecast {
        match self {
            Self::Bayes(belief) => Model::shared().forecast(belief),
            Self::Ewma(rate) => std::array::from_fn(|tick| (rate * (tick + 1) as f64).min(f64::from(u16::MAX)) as u16),
        }
    }
}

/// The receiver.
#[derive(Clone)]
pub struct SproutReceiver {
    forecaster: Forecaster,
    /// Wire bytes of a full packet.
    mss: u64,
    tick_end: Timestamp,
    /// Arrivals in this tick, in packets of the forecast.
    arrived: f64,
    /// End of the silence that the sender announced.
    silent_until: Timestamp,
    report_at: Timestamp,
    reports: u32,
    /// All packets below this number have arrived or are lost …
    settled: PacketNumber,
    /// … and of the rest these have arrived.
    above: BTreeMap<PacketNumber, u64>,
}

impl SproutReceiver {
    pub fn new(forecaster: Forecaster) -> Self {
        Self {
            forecaster,
            mss: 1,
            tick_end: Timestamp::NEVER,
            arrived: 0.0,
            silent_until: Timestamp::ZERO,
            report_at: Timestamp::NEVER,
            reports: 0,
            settled: 0,
            above: BTreeMap::new(),
        }
    }

    /// Process the ticks that have ended by `now`.
    fn advance(&mut self, now: Timestamp) {
        if self.tick_end > now {
            return;
        }
        let skipped = (now.since(self.tick_end).0 / TICK.0).saturating_sub(MAX_TICKS);
        self.tick_end += TimeSpan(skipped * TICK.0);
        while self.tick_end <= now {
            let counts = self.arrived > 0.0 || self.tick_end - TICK >= self.silent_until;
            self.forecaster.tick(counts.then_some(self.arrived));
            self.arrived = 0.0;
            self.tick_end += TICK;
        }
    }
}

impl FeedbackReceiver for SproutReceiver {
    fn start(&mut self, now: Timestamp, mss: u64) {
        self.mss = mss.max(1);
        self.tick_end = now + TICK;
        self.report_at = now + REPORTS[0];
    }

    fn on_data(&mut self, event: &ReceivedEvent) {
        self.advance(event.now);
        let Header { recent, time_to_next_ms } = Header::unpack(event.header);
        let content = content(event.bytes, self.mss);
        self.arrived += content as f64 / FORECAST as f64;
        let silent_until = self.tick_end - TICK + TimeSpan::from_millis(u64::from(time_to_next_ms));
        self.silent_until = self.silent_until.max(silent_until);
        if event.number >= self.settled {
            self.above.insert(event.number, content);
        }
        let settled = event.number.saturating_sub(u64::from(recent));
        if settled > self.settled {
            self.settled = settled;
            self.above = self.above.split_off(&settled);
        }
    }

    fn next_feedback(&self) -> Timestamp {
        self.report_at
    }

    fn write_feedback(&mut self, now: Timestamp, message: &mut Vec<u8>) {
        self.advance(now);
        self.reports += 1;
        self.report_at = now + REPORTS[self.reports as usize % 2];
        let arrived_above = u32::try_from(self.above.values().sum::<u64>()).unwrap_or(u32::MAX);
        let forecast = self.forecaster.forecast();
        Report { number: self.reports, forecast, settled: self.settled, arrived_above }.write(message);
    }
}
