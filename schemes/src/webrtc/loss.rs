//! The loss-based rate.

use super::Mode;

/// The rate grows below the first share of lost packets, and is reduced above the second (draft §6).
const LOW: f64 = 0.02;
const HIGH: f64 = 0.1;
/// Time between two reports in the draft, and between two steps of growth, ms.
const REPORT_MS: f64 = 1000.0;
/// As deployed: packets per report, and time between two reductions in addition to an RTT, ms.
const REPORT_PACKETS: u64 = 20;
const CUT_GAP_MS: f64 = 300.0;

/// The loss-based controller. Rates are bit/s, times ms.
#[derive(Clone, Debug)]
pub struct LossControl {
    mode: Mode,
    pub rate: f64,
    /// Packets since the latest report, lost ones among them, and time of the report.
    packets: u64,
    lost: u64,
    reported: f64,
    grown: f64,
    cut: f64,
}

impl LossControl {
    pub const fn new(mode: Mode, rate: f64) -> Self {
        Self { mode, rate, packets: 0, lost: 0, reported: 0.0, grown: 0.0, cut: f64::NEG_INFINITY }
    }

    /// Count acknowledged and lost packets together, and the lost ones.
    pub fn count(&mut self, packets: u64, lost: u64) {
        self.packets += packets;
        self.lost += lost;
    }

    /// Update the rate by the losses, up to `limit`, the delay-based rate.
    pub fn update(&mut self, limit: f64, rtt: f64, now: f64) {
        let due = match self.mode {
            Mode::Libwebrtc => self.packets >= REPORT_PACKETS,
            Mode::Draft => self.packets > 0 && now - self.reported >= REPORT_MS,
        };
        if due {
            let share = self.lost as f64 / self.packets as f64;
            (self.packets, self.lost, self.reported) = (0, 0, now);
            let gap = if self.mode == Mode::Libwebrtc { CUT_GAP_MS + rtt } else { 0.0 };
            if share < LOW && now - self.grown >= REPORT_MS {
                // Once per second on average, at any time of the reports.
                self.grown = (self.grown + REPORT_MS).max(now - REPORT_MS);
                self.rate = match self.mode {
                    Mode::Libwebrtc => self.rate * 1.08 + 1000.0,
                    Mode::Draft => self.rate * 1.05,
                };
            } else if share > HIGH && now - self.cut >= gap {
                self.cut = now;
                self.rate *= 1.0 - 0.5 * share;
            }
        }
        self.rate = self.rate.min(limit);
    }

    /// Treat all packets in flight as lost.
    pub fn lose_all(&mut self, now: f64) {
        (self.packets, self.lost, self.cut) = (0, 0, now);
        self.rate *= 0.5;
    }
}
