//! Two filters of the delay variation between groups, which measure the growth of the queue.

use std::collections::VecDeque;

use super::arrival::{ShortestGap, Variation};

/// Number of groups that a trend is fitted to (libwebrtc `trendline_estimator.cc`).
const WINDOW: usize = 20;
/// Weight of the past in the smoothed delay.
const SMOOTHING: f64 = 0.9;
/// Max factor by which a filter's result counts, the number of groups so far; a trend counts four times that.
const MAX_GROUPS: u64 = 60;
const GAIN: f64 = 4.0;

/// State noise of the Kalman filter, its first error variance, and the rate of the measured noise (draft §5.3).
const STATE_NOISE: f64 = 1e-3;
const FIRST_ERROR: f64 = 0.1;
const CHI: f64 = 0.01;

/// Growth of the queue: one value for the threshold, and one that must not fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// In ms, as the threshold.
    pub value: f64,
    /// Value that shows if the growth rises.
    pub trend: f64,
}

/// One of the two filters.
#[derive(Clone, Debug)]
pub enum Filter {
    /// The deployed one.
    TrendLine(TrendLine),
    /// The draft's.
    Kalman(Kalman),
}

impl Filter {
    /// Add a variation. `None` if it is too early to compare.
    pub fn add(&mut self, variation: &Variation) -> Option<Growth> {
        match self {
            Self::TrendLine(filter) => filter.add(variation),
            Self::Kalman(filter) => Some(filter.add(variation)),
        }
    }
}

/// The slope of the smoothed delay over the time of arrival, by least squares.
#[derive(Clone, Debug, Default)]
pub struct TrendLine {
    groups: u64,
    accumulated: f64,
    smoothed: f64,
    first: Option<f64>,
    trend: f64,
    points: VecDeque<(f64, f64)>,
}

impl TrendLine {
    fn add(&mut self, variation: &Variation) -> Option<Growth> {
        self.groups = (self.groups + 1).min(MAX_GROUPS);
        self.accumulated += variation.delay;
        self.smoothed = SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * self.accumulated;
        let first = *self.first.get_or_insert(variation.arrived);
        self.points.push_back((variation.arrived - first, self.smoothed));
        if self.points.len() > WINDOW {
            self.points.pop_front();
        }
        if self.points.len() == WINDOW {
            self.trend = slope(&self.points).unwrap_or(self.trend);
        }
        // Until then the trend is zero, and the threshold already follows it.
        (self.groups > 1).then_some(Growth { value: self.groups as f64 * self.trend * GAIN, trend: self.trend })
    }
}

fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let n = points.len() as f64;
    let (sum_x, sum_y) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), (x, y)| {
        (above + (x - mean_x) * (y - mean_y), below + (x - mean_x) * (x - mean_x))
    });
    (below > 0.0).then(|| above / below)
}

/// The draft's Kalman filter of one state: the mean growth of the delay per group.
#[derive(Clone, Debug)]
pub struct Kalman {
    groups: u64,
    mean: f64,
    error: f64,
    noise: f64,
    gap: ShortestGap,
}

impl Default for Kalman {
    fn default() -> Self {
        Self { groups: 0, mean: 0.0, error: FIRST_ERROR, noise: 1.0, gap: ShortestGap::default() }
    }
}

impl Kalman {
    fn add(&mut self, variation: &Variation) -> Growth {
        let shortest = self.gap.add(variation.send_gap);
        let residual = variation.delay - self.mean;
        // An outlier counts as one of three standard deviations.
        let limit = 3.0 * self.noise.sqrt();
        let bounded = residual.clamp(-limit, limit);
        let keep = (1.0 - CHI).powf(30.0 / 1000.0 * shortest.max(0.0));
        self.noise = (keep * self.noise + (1.0 - keep) * bounded * bounded).max(1.0);
        let predicted = self.error + STATE_NOISE;
        let gain = predicted / (self.noise + predicted);
        self.mean += residual * gain;
        self.error = (1.0 - gain) * predicted;
        // The draft compares the mean itself with the threshold; implementations of this filter multiply it.
        self.groups = (self.groups + 1).min(MAX_GROUPS);
        Growth { value: self.groups as f64 * self.mean, trend: self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::recorded;

    fn variation(place: u32, delay: f64) -> Variation {
        Variation { send_gap: 20.0, delay, arrived: f64::from(place) * 20.0 }
    }

    #[test]
    fn trend_of_a_queue_that_grows_evenly_is_its_slope() {
        let mut filter = TrendLine::default();
        // 1 ms per 20 ms: after the smoothing has settled, a slope of 0.05.
        let seen: Vec<_> = (0..200).filter_map(|i| filter.add(&variation(i, 1.0))).collect();
        assert_eq!(seen.len(), 199);
        assert_eq!(seen.iter().filter(|one| one.trend == 0.0).count(), WINDOW - 2);
        let last = seen[seen.len() - 1];
        assert!((last.trend - 0.05).abs() < 1e-6, "{last:?}");
        assert!((last.value - 60.0 * 4.0 * last.trend).abs() < 1e-12);
    }

    #[test]
    fn kalman_gain_and_noise_follow_the_draft() {
        let mut filter = Kalman::default();
        // noise = 0.99^0.6·1 + (1 − 0.99^0.6)·2² = 1.01804; gain = 0.101/(1.01804 + 0.101) = 0.090256.
        let first = filter.add(&variation(0, 2.0));
        let keep = 0.99f64.powf(0.6);
        let noise = keep + (1.0 - keep) * 4.0;
        let gain = 0.101 / (noise + 0.101);
        assert!((first.value - 2.0 * gain).abs() < 1e-12, "{first:?}");
        assert!((filter.error - (1.0 - gain) * 0.101).abs() < 1e-12);
        // The mean finds a steady growth.
        for i in 1..300 {
            filter.add(&variation(i, 2.0));
        }
        assert!((filter.mean - 2.0).abs() < 0.01, "{}", filter.mean);
    }

    #[test]
    fn kalman_mean_is_the_offset_of_aiortc() {
        // aiortc's noise starts elsewhere and has another formula: with no time between departures neither changes.
        let mut filter = Kalman { noise: 50.0, ..Kalman::default() };
        for (place, [delay, offset]) in recorded("aiortc_offsets").into_iter().enumerate() {
            let seen = filter.add(&Variation { send_gap: 0.0, delay, arrived: 0.0 });
            assert!((seen.trend - offset).abs() < 1e-12, "group {place}: {}, not {offset}", seen.trend);
        }
        assert_eq!(filter.noise, 50.0);
    }

    #[test]
    fn an_outlier_counts_three_deviations_for_the_noise() {
        let mut filter = Kalman::default();
        filter.add(&variation(0, 1000.0));
        let keep = 0.99f64.powf(0.6);
        assert!((filter.noise - (keep + (1.0 - keep) * 9.0)).abs() < 1e-9, "{}", filter.noise);
    }
}
