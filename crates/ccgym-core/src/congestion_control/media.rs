//! The optional view of a scheme that paces an encoder (SCReAM, WebRTC).

use crate::units::{Rate, Timestamp};

/// A media source handed over a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    /// When.
    pub now: Timestamp,
    /// Its wire bytes; zero if the encoder skipped it.
    pub bytes: u64,
    /// Wire bytes of earlier frames that wait to be sent.
    pub waiting: u64,
}

/// A scheme that tells a media source at which rate to encode.
pub trait Media {
    /// A source handed over a frame, or skipped one because earlier ones wait for too long.
    fn on_frame(&mut self, _event: &FrameEvent) {}
    /// The rate to encode at, headers included. The pacing rate may be higher, so that a large frame leaves fast. A source
    /// asks at each frame.
    fn target_rate(&self) -> Rate;
}
