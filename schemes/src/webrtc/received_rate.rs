//! The received rate.

use std::collections::VecDeque;

/// First and later windows of the deployed estimator, ms (libwebrtc `bitrate_estimator.cc`).
const FIRST_WINDOW: f64 = 500.0;
const WINDOW: f64 = 150.0;
/// Weight of a sample's distance from the estimate; a small sample below it counts less.
const UNCERTAINTY: f64 = 10.0;
const SMALL_UNCERTAINTY: f64 = 25.0;
const SMALL_BYTES: f64 = 2000.0;
/// Initial variance of the estimate, and its increase with each sample.
const FIRST_VARIANCE: f64 = 50.0;
const GAINED_VARIANCE: f64 = 5.0;
/// Min of the estimate, kbit/s.
const FLOOR_KBPS: f64 = 40.0;
/// The draft's window, ms: it asks for 0.5 to 1 s (§5.5).
const DRAFT_WINDOW: f64 = 1000.0;

/// One of the two estimators. Times are ms, on the receiver's clock.
#[derive(Clone, Debug)]
pub enum ReceivedRate {
    /// Samples of 150 ms, each weighted by its distance from the estimate.
    Weighted { estimate: Option<f64>, variance: f64, bytes: f64, window: f64, last: Option<f64> },
    /// Bytes received within the window.
    Sliding { arrivals: VecDeque<(f64, f64)>, bytes: f64, since: Option<f64> },
}

impl ReceivedRate {
    pub const fn weighted() -> Self {
        Self::Weighted { estimate: None, variance: FIRST_VARIANCE, bytes: 0.0, window: 0.0, last: None }
    }

    pub const fn sliding() -> Self {
        Self::Sliding { arrivals: VecDeque::new(), bytes: 0.0, since: None }
    }

    /// Add received bytes.
    pub fn add(&mut self, at: f64, added: f64) {
        match self {
            Self::Weighted { estimate, variance, bytes, window, last } => {
                let since = (at - last.replace(at).unwrap_or(at)).max(0.0);
                let length = if estimate.is_none() { FIRST_WINDOW } else { WINDOW };
                *window += since;
                if since >= length {
                    // After a pause only later packets count.
                    (*bytes, *window) = (0.0, *window % length);
                }
                if *window >= length {
                    let sample = *bytes * 8.0 / length;
                    let small = *bytes < SMALL_BYTES && estimate.is_some_and(|estimate| sample < estimate);
                    *estimate = Some(match *estimate {
                        None => sample,
                        Some(estimate) => {
                            let doubt = if small { SMALL_UNCERTAINTY } else { UNCERTAINTY };
                            let sample_variance = (doubt * (estimate - sample).abs() / estimate).powi(2);
                            let predicted = *variance + GAINED_VARIANCE;
                            *variance = sample_variance * predicted / (sample_variance + predicted);
                            (sample_variance * estimate + predicted * sample) / (sample_variance + predicted)
                        }
                    });
                    *estimate = estimate.map(|estimate| estimate.max(FLOOR_KBPS));
                    (*bytes, *window) = (0.0, *window - length);
                }
                *bytes += added;
            }
            Self::Sliding { arrivals, bytes, since } => {
                since.get_or_insert(at);
                arrivals.push_back((at, added));
                *bytes += added;
                while arrivals.front().is_some_and(|(then, _)| at - then >= DRAFT_WINDOW) {
                    *bytes -= arrivals.pop_front().map_or(0.0, |(_, old)| old);
                }
            }
        }
    }

    /// Return bits per second; `None` before the first window is over.
    pub fn bps(&self) -> Option<f64> {
        match self {
            Self::Weighted { estimate, .. } => estimate.map(|kbps| kbps * 1e3),
            Self::Sliding { arrivals, bytes, since } => {
                let (last, _) = arrivals.back()?;
                (last - (*since)? >= DRAFT_WINDOW / 2.0)
                    .then(|| *bytes * 8e3 / (last - since.unwrap_or(*last)).min(DRAFT_WINDOW))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_find_a_steady_rate() {
        for mut rate in [ReceivedRate::weighted(), ReceivedRate::sliding()] {
            let mut first = None;
            for ms in 0..3000 {
                rate.add(f64::from(ms), 125.0);
                first = first.or(rate.bps().map(|_| ms));
            }
            assert_eq!(first, Some(500));
            let bps = rate.bps().unwrap();
            assert!((bps - 1e6).abs() < 2000.0, "{bps}");
        }
    }

    #[test]
    fn weighted_estimate_follows_a_step_down_within_a_second() {
        let mut rate = ReceivedRate::weighted();
        (0..2000).for_each(|ms| rate.add(f64::from(ms), 375.0));
        (2000..3000).for_each(|ms| rate.add(f64::from(ms), 125.0));
        let bps = rate.bps().unwrap();
        assert!(bps < 1.2e6, "{bps}");
    }
}
