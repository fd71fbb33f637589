//! The pacing rate: first from the initial window, then `gain` times the modeled bandwidth.

use ccgym_core::{Rate, TimeSpan};

/// Assumed RTT before the first sample.
const NOMINAL_RTT: TimeSpan = TimeSpan::from_millis(1);

/// The current pacing rate. Methods that may change it return true if they did.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    rate: Rate,
    /// Share of the modeled rate at which to pace.
    margin: f64,
    /// True if the first rate is based on a measured RTT.
    measured: bool,
    /// Arguments of the latest [`Pacing::follow`] since the rate was set by other means.
    followed: Option<(Rate, f64, bool)>,
}

impl Pacing {
    pub const fn new(margin: f64) -> Self {
        Self { rate: Rate::ZERO, margin, measured: false, followed: None }
    }

    #[inline]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// True if [`Pacing::start`] waits for an RTT.
    #[inline]
    pub const fn awaits_rtt(&self) -> bool {
        !self.measured
    }

    /// Set the rate before the first bandwidth sample: `gain` windows of `cwnd` bytes per `srtt`, 1 ms if unknown.
    pub fn start(&mut self, cwnd: u64, srtt: Option<TimeSpan>, gain: f64) -> bool {
        self.measured = srtt.is_some();
        self.followed = None;
        let srtt = srtt.unwrap_or(NOMINAL_RTT);
        self.set(Rate((cwnd as f64 * 8e9 / srtt.0.max(1_000) as f64 * gain) as u64))
    }

    /// Set the rate to `gain` times `bandwidth`, less the margin. Before the pipe is full it never falls: early samples
    /// are too low.
    #[inline]
    pub fn follow(&mut self, bandwidth: Rate, gain: f64, full_pipe: bool) -> bool {
        let arguments = Some((bandwidth, gain, full_pipe));
        if self.followed == arguments {
            return false;
        }
        self.followed = arguments;
        // A rate of zero would mean no pacing.
        let rate = bandwidth.scaled(gain * self.margin).max(Rate(1));
        (full_pipe || rate > self.rate) && self.set(rate)
    }

    #[inline]
    fn set(&mut self, rate: Rate) -> bool {
        let changes = rate != self.rate;
        self.rate = rate;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_from_the_window() {
        // 10 packets of 1500 B: 120 kbit. Over 40 ms 3 Mbit/s, times 2.885.
        for (srtt, mbps) in [(None, 346.2), (Some(TimeSpan::from_millis(40)), 8.655)] {
            let mut pacing = Pacing::new(0.99);
            assert!(pacing.awaits_rtt());
            assert!(pacing.start(15_000, srtt, 2.885));
            assert!((pacing.rate().as_mbps() - mbps).abs() < 1e-3, "{srtt:?}");
            assert_eq!(pacing.awaits_rtt(), srtt.is_none());
        }
    }

    #[test]
    fn never_falls_before_the_pipe_is_full() {
        let mut pacing = Pacing::new(0.99);
        // Bandwidth in Mbit/s, gain, full pipe, rate, rate changed.
        for (mbps, gain, full, expected, changes) in [
            (10.0, 2.0, false, 19.8, true),
            (5.0, 2.0, false, 19.8, false),
            (5.0, 2.0, true, 9.9, true),
            (5.0, 2.0, true, 9.9, false),
            (0.0, 1.0, true, 1e-6, true),
        ] {
            assert_eq!(pacing.follow(Rate::from_mbps(mbps), gain, full), changes, "{mbps}");
            assert!((pacing.rate().as_mbps() - expected).abs() < 1e-9, "{mbps}");
        }
    }
}
