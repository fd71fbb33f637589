//! Ways to start: how the window grows below the slow-start threshold, and when it stops before a loss.
//!
//! One strategy per file. Window-based schemes (Reno, CUBIC) take any of them by their `start_up` parameter.

mod hystart;
mod hystart_plus_plus;
mod standard;

use ccgym_core::{AckEvent, TimeSpan};

pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;

/// A strategy. An enum, not a trait object: it is asked once per acknowledgement.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// Doubling until a loss (RFC 5681 §3.1).
    Standard,
    /// Doubling until delay rises, then a careful phase (RFC 9406).
    HyStartPlusPlus(HyStartPlusPlus),
    /// Doubling until delay rises or an acknowledgement train spans the path (Linux `tcp_cubic.c`).
    HyStart(HyStart),
}

/// What a strategy is told of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The acknowledgement.
    pub event: &'a AckEvent<'a>,
    /// Window before it, in bytes.
    pub cwnd: u64,
    /// Bytes of a full packet.
    pub mss: u64,
    /// The delay to judge by: usually the round-trip sample.
    pub delay: Option<TimeSpan>,
    /// The smallest such delay known.
    pub delay_min: TimeSpan,
}

/// What a strategy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes by which the window may grow, before the cap at the threshold.
    pub growth: u64,
    /// Whether slow start ends here: the threshold becomes the window.
    pub exit: bool,
}

impl SlowStart {
    /// The strategy by its name in parameters: `none`, `hystart++` or `hystart`.
    pub fn by_name(name: &str, paced: bool) -> Self {
        match name {
            "hystart++" => Self::HyStartPlusPlus(HyStartPlusPlus::new(paced)),
            "hystart" => Self::HyStart(HyStart::linux(paced)),
            _ => Self::Standard,
        }
    }

    /// One acknowledgement in slow start.
    #[inline]
    pub fn on_ack(&mut self, input: &Input<'_>) -> Step {
        match self {
            Self::Standard => standard::on_ack(input),
            Self::HyStartPlusPlus(strategy) => strategy.on_ack(input),
            Self::HyStart(strategy) => strategy.on_ack(input),
        }
    }

    /// The window was cut. The initial slow start is over.
    pub fn on_congestion(&mut self) {
        match self {
            // RFC 9406 §4.3: only the initial slow start.
            Self::HyStartPlusPlus(_) => *self = Self::Standard,
            Self::Standard | Self::HyStart(_) => {}
        }
    }

    /// The retransmission timer expired: slow start begins again.
    pub fn on_timeout(&mut self) {
        match self {
            Self::HyStart(strategy) => strategy.reset(),
            Self::Standard | Self::HyStartPlusPlus(_) => self.on_congestion(),
        }
    }

    /// A number for series: 0 plain, 1 HyStart++ searching, 2 in its careful phase, 3 HyStart searching, 4 done.
    pub fn phase(&self) -> f64 {
        match self {
            Self::Standard => 0.0,
            Self::HyStartPlusPlus(strategy) => 1.0 + f64::from(u8::from(strategy.is_careful())),
            Self::HyStart(strategy) => 3.0 + f64::from(u8::from(strategy.has_found())),
        }
    }
}
