//! The first pacing rate.

use ccgym_core::{Rate, TimeSpan};

/// Assumed round trip when none was measured.
const NOMINAL_RTT: TimeSpan = TimeSpan::from_millis(1);

/// The rate before the first bandwidth sample: `gain` windows of `cwnd` bytes per `srtt`, 1 ms if unknown.
pub fn initial_rate(cwnd: u64, srtt: Option<TimeSpan>, gain: f64) -> Rate {
    let srtt = srtt.unwrap_or(NOMINAL_RTT);
    Rate((cwnd as f64 * 8e9 / srtt.0.max(1_000) as f64 * gain) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_pacing() {
        // 10 packets of 1500 B: 120 kbit. Over 40 ms 3 Mbit/s, times 2.885.
        for (srtt, mbps) in [(Some(TimeSpan::from_millis(40)), 8.655), (None, 346.2)] {
            assert!((initial_rate(15_000, srtt, 2.885).as_mbps() - mbps).abs() < 1e-3, "{srtt:?}");
        }
    }
}
