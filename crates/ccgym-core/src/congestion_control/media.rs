//! The optional view of a scheme that paces an encoder (SCReAM, WebRTC).

use crate::units::{Rate, Timestamp};

/// A media source handed over a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    /// Time.
    pub now: Timestamp,
    /// Wire bytes of the frame; zero if the encoder skipped it.
    pub bytes: u64,
    /// Wire bytes of earlier frames that wait to be sent.
    pub waiting: u64,
}

/// A scheme that sets the rate of a media source.
pub trait Media {
    /// Process a frame, or a skipped one because earlier ones wait for too long.
    fn on_frame(&mut self, _event: &FrameEvent) {}
    /// Return the target rate of the encoder, including headers. The pacing rate may be higher, so that a large frame
    /// leaves fast. A source reads it at each frame.
    fn target_rate(&self) -> Rate;
}
