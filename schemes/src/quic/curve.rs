//! The window in congestion avoidance, in bytes, by the integer arithmetic of Chromium's `cubic_bytes.cc`.

use ccgym_core::{TimeSpan, Timestamp};

/// Clock of the cubic function: ticks per second.
const TICKS: u128 = 1024;
/// The function is C·1024·t³/2⁴⁰ packets for t in ticks: 2¹⁰ for C and 2³⁰ for the cubed clock.
const CUBE_SHIFT: u32 = 40;
/// Max ticks from the plateau (12 days), so that cubes fit into 128 bits.
const OFFSET_MAX: i64 = 1 << 30;
/// Min time between two updates of an unchanged window (`MaxCubicTimeInterval`).
const UPDATE_INTERVAL: TimeSpan = TimeSpan::from_millis(30);
/// Share of the window remembered as the maximum when a loss comes below the last one.
const MAXIMUM_KEPT: f64 = 0.85;

/// The constants of a number of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// True for the version deployed in 2017; false includes its three later corrections.
    pub(super) quantized: bool,
    /// Share of the window kept at a loss: one of N connections reduces its part.
    pub(super) beta: f64,
    /// Packets per round trip in the Reno-friendly region.
    pub(super) alpha: f64,
    /// Share of the window remembered when a loss comes below the last maximum.
    pub(super) maximum_kept: f64,
    /// C in 1/1024 packets/s³.
    pub(super) c: u64,
}

impl Constants {
    /// Make the constants for `connections` that each keep `beta` at a loss, with C in packets/s³.
    pub(super) fn new(quantized: bool, connections: u64, beta: f64, c: f64) -> Self {
        let n = connections as f64;
        let ensemble = |kept: f64| (n - 1.0 + kept) / n;
        let beta = ensemble(beta);
        Self {
            quantized,
            beta,
            alpha: 3.0 * n * n * (1.0 - beta) / (1.0 + beta),
            maximum_kept: if quantized { MAXIMUM_KEPT } else { ensemble(MAXIMUM_KEPT) },
            c: ((c * 1024.0).round() as u64).max(1),
        }
    }
}

/// The state of the curve. Windows are bytes.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) constants: Constants,
    mss: u64,
    /// Time of the first acknowledgement after a loss or an application-limited time; `NEVER` until then.
    epoch: Timestamp,
    /// The window at the last loss, or less (fast convergence); zero: none.
    pub(super) last_max: u64,
    /// The plateau.
    origin: u64,
    /// Time from the epoch to the plateau, ticks.
    k: i64,
    /// W_est: Reno's window.
    pub(super) w_est: u64,
    /// Bytes acknowledged since the last update.
    acked: u64,
    last_target: u64,
    updated: Timestamp,
    updated_at_window: u64,
}

impl Curve {
    pub(super) fn new(constants: Constants, mss: u64) -> Self {
        Self {
            constants,
            mss,
            epoch: Timestamp::NEVER,
            last_max: 0,
            origin: 0,
            k: 0,
            w_est: 0,
            acked: 0,
            last_target: 0,
            updated: Timestamp::ZERO,
            updated_at_window: 0,
        }
    }

    /// Reset after a timeout.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.constants, self.mss);
    }

    /// Stop the growth, since the window was not fully used; a new epoch begins when it is.
    pub(super) fn on_application_limited(&mut self) {
        self.epoch = Timestamp::NEVER;
    }

    pub(super) fn after_loss(&mut self, window: u64) -> u64 {
        // In bytes the window stays slightly below the last one; the correction allows one packet for that.
        let slack = if self.constants.quantized { 0 } else { self.mss };
        let below = window + slack < self.last_max;
        self.last_max = if below { scaled(window, self.constants.maximum_kept) } else { window };
        self.epoch = Timestamp::NEVER;
        scaled(window, self.constants.beta)
    }

    /// Return the window after `acked` bytes were acknowledged at `window`.
    pub(super) fn after_ack(&mut self, now: Timestamp, acked: u64, window: u64, min_rtt: TimeSpan) -> u64 {
        self.acked += acked;
        if self.constants.quantized {
            if self.updated_at_window == window && now.since(self.updated) <= UPDATE_INTERVAL {
                return self.last_target.max(self.w_est);
            }
            self.updated_at_window = window;
            self.updated = now;
        }
        if !self.epoch.is_set() {
            self.begin_epoch(now, acked, window);
        }
        let elapsed = ticks(now.since(self.epoch) + min_rtt);
        self.last_target = self.target(elapsed).min(window + self.acked / 2);
        if self.w_est > 0 {
            let step = self.acked as f64 * self.constants.alpha * self.mss as f64 / self.w_est as f64;
            self.w_est += step as u64;
        }
        self.acked = 0;
        self.last_target.max(self.w_est)
    }

    fn begin_epoch(&mut self, now: Timestamp, acked: u64, window: u64) {
        self.epoch = now;
        self.acked = acked;
        self.w_est = window;
        let climb = self.last_max.saturating_sub(window);
        self.origin = window + climb;
        let per_byte = (1u64 << CUBE_SHIFT) / self.constants.c / self.mss;
        self.k = (per_byte as f64 * climb as f64).cbrt() as i64;
    }

    /// Return the cubic function at `elapsed` ticks.
    fn target(&self, elapsed: i64) -> u64 {
        let offset = i128::from((self.k - elapsed).clamp(-OFFSET_MAX, OFFSET_MAX));
        let cube = i128::from(self.constants.c) * offset * offset * offset;
        let mss = i128::from(self.mss);
        let below = if self.constants.quantized {
            // An arithmetic shift rounds down, so that past the plateau the first packet comes at once.
            (cube >> CUBE_SHIFT) * mss
        } else {
            ((cube.abs() * mss) >> CUBE_SHIFT) * cube.signum()
        };
        u64::try_from((i128::from(self.origin) - below).max(0)).unwrap_or(u64::MAX)
    }

    /// Return K in seconds.
    pub(super) fn k_s(&self) -> f64 {
        self.k as f64 / TICKS as f64
    }
}

/// Return `share` of `window`, in whole bytes.
fn scaled(window: u64, share: f64) -> u64 {
    (window as f64 * share) as u64
}

/// Return whole ticks, from whole microseconds.
fn ticks(span: TimeSpan) -> i64 {
    let micros = u128::from(span.0 / 1_000);
    i64::try_from(micros * TICKS / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const MSS: u64 = 1500;
    const RTT: TimeSpan = TimeSpan::from_millis(40);

    fn curve(quantized: bool) -> Curve {
        Curve::new(Constants::new(quantized, 2, 0.7, 0.4), MSS)
    }

    #[test]
    fn constants_of_an_ensemble() {
        for (connections, beta, alpha, kept) in
            [(1, 0.7, 0.529_412, 0.85), (2, 0.85, 0.972_973, 0.925), (4, 0.925, 1.870_130, 0.9625)]
        {
            let (first, later) =
                (Constants::new(true, connections, 0.7, 0.4), Constants::new(false, connections, 0.7, 0.4));
            assert!((first.beta - beta).abs() < 1e-12, "{first:?}");
            assert!((first.alpha - alpha).abs() < 1e-6, "{first:?}");
            assert_eq!(first.maximum_kept, 0.85, "the same for any number of connections");
            assert!((later.maximum_kept - kept).abs() < 1e-12, "{later:?}");
            assert_eq!(first.c, 410);
        }
    }

    /// The window after a loss, and the maximum remembered of it.
    #[test]
    fn loss() {
        for (quantized, below) in [(true, 0.85), (false, 0.925)] {
            let mut curve = curve(quantized);
            assert_eq!(curve.after_loss(100 * MSS), 85 * MSS);
            assert_eq!(curve.last_max, 100 * MSS);
            assert_eq!(curve.after_loss(85 * MSS), scaled(85 * MSS, 0.85));
            assert_eq!(curve.last_max, scaled(85 * MSS, below));
        }
        // A packet less is below the maximum in 2017 only.
        for (quantized, kept) in [(true, scaled(99 * MSS, 0.85)), (false, 99 * MSS)] {
            let mut curve = curve(quantized);
            curve.after_loss(100 * MSS);
            curve.after_loss(99 * MSS);
            assert_eq!(curve.last_max, kept);
        }
    }

    /// K = cbrt(0.15·W_max/C): 2.46 s for 40 packets, 3.35 s for 100, 4.21 s for 200, all to a tick.
    #[test]
    fn time_to_the_plateau() {
        for w_max in [40, 100, 200] {
            let mut curve = curve(true);
            let window = curve.after_loss(w_max * MSS);
            curve.after_ack(at(0), MSS, window, RTT);
            let expected = (0.15 * w_max as f64 / (410.0 / 1024.0)).cbrt();
            assert!((curve.k_s() - expected).abs() < 1.0 / 1024.0, "{} and {expected}", curve.k_s());
        }
    }

    /// Below and above the plateau a quantized curve is rounded up to whole packets from it; the corrected one is exact
    /// to a byte.
    #[test]
    fn cube() {
        let seconds = |s: f64| (s * 1024.0) as i64;
        for (quantized, from_k, packets) in [
            (true, -3.0, -10.0),
            (true, -2.0, -3.0),
            (true, -1.0, 0.0),
            (true, 0.0, 0.0),
            (true, 0.01, 1.0),
            (true, 1.0, 1.0),
            (true, 2.0, 4.0),
            (false, -2.0, -3.203),
            (false, -1.0, -0.400),
            (false, 0.01, 0.0),
            (false, 2.0, 3.203),
        ] {
            let mut curve = curve(quantized);
            curve.origin = 100 * MSS;
            curve.k = seconds(4.0);
            let found = curve.target(curve.k + seconds(from_k)) as f64 / MSS as f64 - 100.0;
            assert!((found - packets).abs() < 0.001, "{quantized}, {from_k} s: {found}, expected {packets}");
        }
    }

    /// Past the plateau growth is at most half of the acknowledged bytes.
    #[test]
    fn growth_per_acknowledgement() {
        let mut curve = curve(true);
        assert_eq!(curve.after_ack(at(0), MSS, 50 * MSS, RTT), 50 * MSS + MSS / 2);
    }

    /// The Reno-friendly window is used if the cubic function is slower: α packets per window acknowledged.
    #[test]
    fn friendly_region() {
        let mut curve = curve(false);
        let mut window = curve.after_loss(20 * MSS);
        for i in 0..17 {
            window = curve.after_ack(at(i), MSS, window, TimeSpan::from_millis(1));
        }
        let grown = window as f64 / MSS as f64 - 17.0;
        assert!((grown - 0.95).abs() < 0.02, "{grown}");
    }

    /// In 2017 an unchanged window waits 30 ms.
    #[test]
    fn update_interval() {
        for (quantized, waits) in [(true, true), (false, false)] {
            let mut curve = curve(quantized);
            // A large window: the Reno-friendly step of a small acknowledgement is less than a byte.
            let window = curve.after_loss(1_000 * MSS);
            let after = curve.after_ack(at(0), 100, window, RTT);
            curve.updated_at_window = after;
            assert_eq!(curve.after_ack(at(30), 100 * MSS, after, RTT) == after, waits);
            assert!(curve.after_ack(at(31), 100 * MSS, after, RTT) > after);
        }
    }

    /// Time without use does not count in the epoch.
    #[test]
    fn application_limited() {
        let mut curve = curve(true);
        let window = curve.after_loss(100 * MSS);
        let grown = curve.after_ack(at(0), MSS, window, RTT);
        curve.on_application_limited();
        // Ten seconds later the curve restarts at the current window.
        let k = curve.k;
        let after = curve.after_ack(at(10_000), MSS, grown, RTT);
        assert!(curve.k <= k && after <= grown + MSS / 2, "{after} after {grown}");
        assert_eq!(curve.epoch, at(10_000));
    }
}
