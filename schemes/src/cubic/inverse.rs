//! The inverse of the window, computed in advance.

use ccgym_core::cold_path;

/// 1/window, computed when the window changes, so that the next acknowledgement need not divide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inverse {
    /// The window that it belongs to, packets.
    pub(super) window: f64,
    inverse: f64,
}

impl Inverse {
    /// Compute it for `window`.
    #[inline]
    pub(super) fn of_window(window: f64) -> Self {
        Self { window, inverse: 1.0 / window }
    }
    /// Return 1/`window`: the stored value if it belongs to this window.
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
