//! The inverse of the window, ahead of time.

use ccgym_core::cold_path;

/// 1/window, divided when the window is known and not when it is needed: the next acknowledgement does not wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inverse {
    /// Of which window, in packets.
    pub(super) window: f64,
    inverse: f64,
}

impl Inverse {
    /// Of `window`, which becomes known now.
    #[inline]
    pub(super) fn of_window(window: f64) -> Self {
        Self { window, inverse: 1.0 / window }
    }
    /// 1/`window`: the stored one if it is of this window.
    #[inline]
    pub(super) fn of(self, window: f64) -> f64 {
        if self.window == window {
            self.inverse
        } else {
            cold_path();
            1.0 / window
        }
    }
}
