//! The delay profile: the delay of packets by the window that they were sent under, learned while sending.

use super::spline::Spline;

/// Max window that is stored or chosen.
pub const MAX_WINDOW: usize = 40_000;
/// Weight of the old delay of a window.
const KEPT: f64 = 0.875;
/// Packets of the max window per coefficient of the curve; there are at least five.
const WINDOWS_PER_COEFFICIENT: usize = 15;
const MIN_COEFFICIENTS: usize = 5;
/// Min window of the curve, plus one packet.
const FIRST: usize = 2;

#[derive(Clone, Debug, Default)]
pub struct DelayProfile {
    /// Smoothed delay in milliseconds, by window in packets; NaN if unknown.
    points: Vec<f64>,
    curve: Option<Curve>,
    /// True if points were added or dropped since the curve was fitted.
    changed: bool,
}

impl DelayProfile {
    /// Add `delay` milliseconds of a packet sent under a window of `window` packets.
    pub fn observe(&mut self, window: usize, delay: f64) {
        self.changed = true;
        let window = window.min(MAX_WINDOW - 1);
        if window >= self.points.len() {
            self.points.resize(window + 1, f64::NAN);
        }
        let point = &mut self.points[window];
        *point = if point.is_nan() { delay } else { KEPT * *point + (1.0 - KEPT) * delay };
    }

    /// Drop windows from `window` on.
    pub fn truncate(&mut self, window: usize) {
        self.points.truncate(window);
        self.changed = true;
    }

    /// Fit the curve again. Returns true if enough windows are known.
    #[must_use]
    pub fn fit(&mut self, smoothing: f64) -> bool {
        if !self.changed && self.curve.is_some() {
            return true;
        }
        self.changed = false;
        let known: Vec<_> =
            (1..self.points.len()).map(|w| (w as f64, self.points[w])).filter(|(_, delay)| !delay.is_nan()).collect();
        let Some(largest) = known.last().map(|&(w, _)| w as usize).filter(|&w| w >= MIN_COEFFICIENTS) else {
            return false;
        };
        let count = (largest / WINDOWS_PER_COEFFICIENT).max(MIN_COEFFICIENTS);
        self.curve = Spline::fit(&known, count, smoothing).map(|spline| Curve::new(spline, largest));
        self.curve.is_some()
    }

    /// Return the delay at `window`, milliseconds; without a curve that of the nearest smaller known window.
    pub fn delay_at(&self, window: f64) -> Option<f64> {
        let nearest = || self.points.iter().take(window as usize + 1).rev().copied().find(|delay| !delay.is_nan());
        self.curve_at(window).or_else(nearest)
    }

    /// Return the delay at `window` on the curve, if there is one.
    pub fn curve_at(&self, window: f64) -> Option<f64> {
        self.curve.as_ref().map(|curve| curve.delay_at(window))
    }

    /// Return the window before the first one whose delay exceeds `delay`; `None`: none up to [`MAX_WINDOW`] does.
    pub fn window_at(&self, delay: f64) -> Option<f64> {
        match &self.curve {
            Some(curve) => curve.window_at(delay),
            None => Some(self.window_at_points(delay)),
        }
    }

    /// The same before there is a curve: a delay above all known ones is lowered until one is known.
    fn window_at_points(&self, delay: f64) -> f64 {
        let known = || self.points.iter().enumerate().skip(FIRST).filter(|(_, delay)| !delay.is_nan());
        let above = known().find(|(_, known)| **known > delay);
        let largest = || known().max_by(|a, b| a.1.total_cmp(b.1));
        above.or_else(largest).map_or(1.0, |(window, _)| (window - 1) as f64)
    }
}

/// The fitted curve at whole windows. Beyond the max known one its last piece continues, as in Verus.
#[derive(Clone, Debug)]
struct Curve {
    spline: Spline,
    /// Max delay up to each window from [`FIRST`] to the max known one: the curve need not rise everywhere.
    maxima: Vec<f64>,
}

impl Curve {
    fn new(spline: Spline, largest: usize) -> Self {
        let maxima = (FIRST..=largest).scan(f64::MIN, |max, w| {
            *max = spline.at(w as f64).max(*max);
            Some(*max)
        });
        Self { maxima: maxima.collect(), spline }
    }

    /// Return the delay, linear between whole windows.
    fn delay_at(&self, window: f64) -> f64 {
        let window = window.clamp(FIRST as f64, (MAX_WINDOW - 2) as f64);
        let (below, part) = (window.floor(), window.fract());
        self.spline.at(below) * (1.0 - part) + self.spline.at(below + 1.0) * part
    }

    fn window_at(&self, delay: f64) -> Option<f64> {
        let below = FIRST + self.maxima.partition_point(|max| *max <= delay);
        let first_above =
            (below..MAX_WINDOW).find(|&w| w < FIRST + self.maxima.len() || self.spline.at(w as f64) > delay);
        first_above.map(|w| (w - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Make a profile of 40 ms, and 1 ms more for each packet beyond 20.
    fn learned() -> DelayProfile {
        let mut profile = DelayProfile::default();
        for w in 1..=60 {
            profile.observe(w, 40.0 + (w as f64 - 20.0).max(0.0));
        }
        profile
    }

    #[test]
    fn points_are_smoothed() {
        let mut profile = DelayProfile::default();
        profile.observe(10, 40.0);
        profile.observe(10, 80.0);
        assert_eq!(profile.delay_at(10.0), Some(45.0));
        assert_eq!((profile.delay_at(9.0), profile.delay_at(12.9)), (None, Some(45.0)));
        profile.truncate(10);
        assert_eq!(profile.delay_at(10.0), None);
    }

    #[test]
    fn windows_before_there_is_a_curve() {
        assert_eq!(DelayProfile::default().window_at(10.0), Some(1.0));
        let profile = learned();
        for (delay, expected) in [(0.0, 1.0), (39.9, 1.0), (40.0, 20.0), (49.5, 29.0), (79.5, 59.0), (500.0, 59.0)] {
            assert_eq!(profile.window_at(delay), Some(expected), "{delay} ms");
        }
    }

    #[test]
    fn windows_and_delays_are_inverse_on_the_curve() {
        let mut profile = learned();
        assert!(profile.fit(-4.0));
        for delay in [45.0, 60.0, 75.0, 79.0] {
            let window = profile.window_at(delay).unwrap();
            assert!((window - (delay - 20.0)).abs() <= 3.0, "{delay} ms: {window}");
            let (here, next) = (profile.delay_at(window).unwrap(), profile.delay_at(window + 1.0).unwrap());
            assert!(here <= delay + 1e-9 && next > delay, "{delay} ms: {here}, {next}");
        }
        assert_eq!(profile.window_at(1.0), Some(1.0));
        assert_eq!(profile.window_at(1e300), None, "beyond every window");
    }

    #[test]
    fn the_curve_goes_on_beyond_the_windows_known() {
        let mut straight = DelayProfile::default();
        for w in 1..=60 {
            straight.observe(w, 40.0 + w as f64);
        }
        assert!(straight.fit(2.0));
        let window = straight.window_at(150.0).unwrap();
        assert!((window - 110.0).abs() <= 1.0, "{window}");
    }

    #[test]
    fn flat_profiles_and_few_windows() {
        let mut flat = DelayProfile::default();
        for w in 1..=50 {
            flat.observe(w, 40.0);
        }
        assert!(flat.fit(2.0));
        assert!(flat.window_at(50.0).is_none(), "no window has that delay");
        let mut few = DelayProfile::default();
        for w in 1..=4 {
            few.observe(w, 40.0);
        }
        assert!(!few.fit(2.0) && !DelayProfile::default().fit(2.0));
    }
}
