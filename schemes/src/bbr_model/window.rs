//! The window that follows the model, and its value before a reduction.

/// Return the window after an acknowledgement of `acked` bytes: it grows toward `target` by at most that, and falls to
/// it at once. Before the pipe is full it does not fall, and `early` in the flow it may grow past the target.
#[inline]
pub fn toward(target: u64, cwnd: u64, acked: u64, full_pipe: bool, early: bool) -> u64 {
    if full_pipe {
        (cwnd + acked).min(target)
    } else if cwnd < target || early {
        cwnd + acked
    } else {
        cwnd
    }
}

/// The window to restore after a recovery or PROBE_RTT. Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriorWindow(u64);

impl PriorWindow {
    /// Save `cwnd` before a reduction. If it is reduced already, the max of nested saves counts.
    pub fn save(&mut self, cwnd: u64, is_cut: bool) {
        self.0 = if is_cut { self.0.max(cwnd) } else { cwnd };
    }

    /// Return the max of `cwnd` and the saved window.
    #[inline]
    pub fn restore(self, cwnd: u64) -> u64 {
        self.0.max(cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth() {
        // Target, window, acknowledged, full pipe, early, window after.
        for (target, cwnd, acked, full_pipe, early, expected) in [
            (100, 80, 10, true, false, 90),
            (100, 95, 10, true, false, 100),
            (100, 120, 10, true, false, 100),
            (100, 95, 10, false, false, 105),
            (100, 120, 10, false, false, 120),
            (100, 120, 10, false, true, 130),
        ] {
            assert_eq!(toward(target, cwnd, acked, full_pipe, early), expected, "{cwnd} {full_pipe} {early}");
        }
    }

    #[test]
    fn nested_cuts_keep_the_largest_window() {
        let mut prior = PriorWindow::default();
        prior.save(80, false);
        prior.save(40, true);
        assert_eq!((prior.restore(4), prior.restore(90)), (80, 90));
        prior.save(40, false);
        assert_eq!(prior.restore(4), 40);
    }
}
