//! The over-use detector: a threshold that adapts to the path.

use super::filter::Growth;

/// Bounds of the threshold, and its initial value, ms (draft §5.4).
const MIN: f64 = 6.0;
const MAX: f64 = 600.0;
const FIRST: f64 = 12.5;
/// Distance from the threshold above which it does not adapt, ms.
const TOO_FAR: f64 = 15.0;
/// Min time that the growth must lie above the threshold, ms.
const OVERUSE_MS: f64 = 10.0;
/// Max time by which the threshold adapts at once, ms.
const MAX_STEP_MS: f64 = 100.0;

/// Use of the path, by the growth of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Under,
    Normal,
    Over,
}

/// The over-use detector.
#[derive(Clone, Debug)]
pub struct Detector {
    /// Gains with which the threshold follows the growth upward and downward, per ms.
    gains: (f64, f64),
    pub threshold: f64,
    pub usage: Usage,
    /// Time and number of groups for which the growth has been above the threshold.
    above: Option<(f64, u32)>,
    previous: f64,
    updated: Option<f64>,
}

impl Detector {
    pub const fn new(gains: (f64, f64)) -> Self {
        Self { gains, threshold: FIRST, usage: Usage::Normal, above: None, previous: 0.0, updated: None }
    }

    /// Add the growth after a group that left `send_gap` ms after the one before and arrived at `arrived` ms. Returns
    /// true if over-use begins.
    pub fn detect(&mut self, growth: Growth, send_gap: f64, arrived: f64) -> bool {
        let mut news = false;
        if growth.value > self.threshold {
            // The first group may have been above for half of the gap before it.
            let (time, groups) = self.above.map_or((send_gap / 2.0, 1), |(time, groups)| (time + send_gap, groups + 1));
            self.above = Some((time, groups));
            if time > OVERUSE_MS && groups > 1 && growth.trend >= self.previous {
                self.above = Some((0.0, 0));
                news = self.usage != Usage::Over;
                self.usage = Usage::Over;
            }
        } else {
            self.above = None;
            self.usage = if growth.value < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        self.previous = growth.trend;
        self.adapt(growth.value.abs(), arrived);
        news
    }

    fn adapt(&mut self, size: f64, arrived: f64) {
        let since = arrived - self.updated.replace(arrived).unwrap_or(arrived);
        if size > self.threshold + TOO_FAR {
            return;
        }
        let gain = if size < self.threshold { self.gains.1 } else { self.gains.0 };
        let change = gain * (size - self.threshold) * since.clamp(0.0, MAX_STEP_MS);
        self.threshold = (self.threshold + change).clamp(MIN, MAX);
    }
}
