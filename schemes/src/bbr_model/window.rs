//! The window as the model moves it, and what it was before something cut it.

/// The window after an acknowledgement of `acked` bytes: it grows by no more than that toward `target`, and falls to it at
/// once. Before the pipe is full it does not fall, and `early`, while next to nothing is known, it grows past the target.
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

/// The window to return to after a recovery or PROBE_RTT. Bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct PriorWindow(u64);

impl PriorWindow {
    /// Remember `cwnd` before something cuts it. While it is cut already, the largest of nested cuts counts.
    pub fn save(&mut self, cwnd: u64, is_cut: bool) {
        self.0 = if is_cut { self.0.max(cwnd) } else { cwnd };
    }

    /// `cwnd`, or what it was if that is more.
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
