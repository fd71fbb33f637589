//! Pacing derived from a window, for schemes that do not define it (RFC 9002 §7.7).

use ccgym_core::{Rate, TimeSpan};

/// Gain in slow start: a window may leave in half an RTT, since pacing must not slow the doubling (Linux
/// `tcp_pacing_ss_ratio`).
pub const SLOW_START_GAIN: f64 = 2.0;
/// Gain in congestion avoidance (RFC 9002 §7.7 suggests 1.25).
pub const AVOIDANCE_GAIN: f64 = 1.25;

/// Return the rate for a window of `cwnd` bytes, with the gain of its phase.
#[inline]
pub fn of_window(cwnd: u64, in_slow_start: bool, srtt: TimeSpan) -> Rate {
    rate(cwnd as f64, srtt, if in_slow_start { SLOW_START_GAIN } else { AVOIDANCE_GAIN })
}

/// Return `gain`·window/sRTT; zero (unpaced) if `srtt` is zero. Floating point, since a 128-bit division per
/// acknowledgement would be slow.
#[inline]
pub fn rate(window_bytes: f64, srtt: TimeSpan, gain: f64) -> Rate {
    if srtt == TimeSpan::ZERO {
        return Rate::ZERO;
    }
    Rate((gain * window_bytes * 8e9 / srtt.0 as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_over_round_trip() {
        // 15 000 bytes per 10 ms are 12 Mbit/s.
        assert_eq!(rate(15_000.0, TimeSpan::from_millis(10), 1.0), Rate(12_000_000));
        assert_eq!(rate(15_000.0, TimeSpan::from_millis(10), SLOW_START_GAIN), Rate(24_000_000));
        assert_eq!(rate(15_000.0, TimeSpan::ZERO, 1.0), Rate::ZERO);
    }
}
