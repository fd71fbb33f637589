//! Slow start: the growth of the window below ssthresh, and its end before a loss.
//!
//! One strategy per file. Window-based schemes (Reno, CUBIC) choose one by their `start_up` parameter.

mod hystart;
mod hystart_plus_plus;
mod standard;

use ccgym_core::{AckEvent, TimeSpan};

pub use hystart::HyStart;
pub use hystart_plus_plus::HyStartPlusPlus;

/// A strategy. An enum, not a trait object: it runs once per acknowledgement.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// Doubling until a loss (RFC 5681 §3.1).
    Standard,
    /// Doubling until delay rises, then a conservative phase (RFC 9406).
    HyStartPlusPlus(HyStartPlusPlus),
    /// Doubling until delay rises or an acknowledgement train spans the path (Linux `tcp_cubic.c`).
    HyStart(HyStart),
}

/// Inputs of a strategy for one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The acknowledgement.
    pub event: &'a AckEvent<'a>,
    /// Window before it, bytes.
    pub cwnd: u64,
    /// Bytes of a full packet.
    pub mss: u64,
    /// Delay to judge by: usually the RTT sample.
    pub delay: Option<TimeSpan>,
    /// Min of these delays.
    pub delay_min: TimeSpan,
}

/// Result of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Growth of the window, before the cap at ssthresh, bytes.
    pub growth: u64,
    /// True if slow start ends here: ssthresh becomes the window.
    pub exit: bool,
}

impl SlowStart {
    /// Make the strategy with this name in parameters: `none`, `hystart++` or `hystart`.
    pub fn by_name(name: &str, paced: bool) -> Self {
        match name {
            "hystart++" => Self::HyStartPlusPlus(HyStartPlusPlus::new(paced)),
            "hystart" => Self::HyStart(HyStart::linux(paced)),
            _ => Self::Standard,
        }
    }

    /// Process one acknowledgement in slow start.
    #[inline]
    pub fn on_ack(&mut self, input: &Input<'_>) -> Step {
        match self {
            Self::Standard => standard::on_ack(input),
            Self::HyStartPlusPlus(strategy) => strategy.on_ack(input),
            Self::HyStart(strategy) => strategy.on_ack(input),
        }
    }

    /// Process a reduction of the window, which ends the initial slow start.
    pub fn on_congestion(&mut self) {
        match self {
            // RFC 9406 §4.3: only the initial slow start.
            Self::HyStartPlusPlus(_) => *self = Self::Standard,
            Self::Standard | Self::HyStart(_) => {}
        }
    }

    /// Restart slow start after a timeout.
    pub fn on_timeout(&mut self) {
        match self {
            Self::HyStart(strategy) => strategy.reset(),
            Self::Standard | Self::HyStartPlusPlus(_) => self.on_congestion(),
        }
    }

    /// Return a number for time series: 0 plain, 1 or 2 HyStart++ (2: conservative), 3 HyStart searching, 4 done.
    pub fn phase(&self) -> f64 {
        match self {
            Self::Standard => 0.0,
            Self::HyStartPlusPlus(strategy) => 1.0 + f64::from(u8::from(strategy.is_conservative())),
            Self::HyStart(strategy) => 3.0 + f64::from(u8::from(strategy.has_found())),
        }
    }
}
