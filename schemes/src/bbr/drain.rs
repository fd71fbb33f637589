//! DRAIN: pace at the inverse of the start-up gain until the queue that STARTUP built is gone.

/// DRAIN's pacing gain: it empties in one round what `startup_gain` put there.
pub fn gain(startup_gain: f64) -> f64 {
    1.0 / startup_gain
}

/// Whether the queue is gone: no more than one bandwidth-delay product (with its quantization budget) is in the
/// network. Bytes.
#[inline]
pub const fn is_done(in_network: u64, one_bdp: u64) -> bool {
    in_network <= one_bdp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoes_startup() {
        assert!((gain(2.885) - 0.346_620_450_6).abs() < 1e-9);
        assert!(!is_done(60_001, 60_000));
        assert!(is_done(60_000, 60_000));
    }
}
