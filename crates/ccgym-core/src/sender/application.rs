//! Data from the application, and the target rate for it.

use std::collections::VecDeque;

use super::Sender;
use crate::congestion_control::FrameEvent;
use crate::units::{Rate, TimeSpan, Timestamp};

/// More segments than any run sends: the data of an application that never ends.
pub const ENDLESS: u64 = u64::MAX / 2;
/// Min wire bytes of a packet that a window cuts short.
pub const MIN_SHORT: u64 = 100;

/// Segments that are not full, in order, with their wire bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortSegments(VecDeque<(u64, u32)>);

impl ShortSegments {
    fn size_of(&self, segment: u64) -> Option<u32> {
        let place = self.0.binary_search_by_key(&segment, |short| short.0).ok()?;
        Some(self.0[place].1)
    }

    /// Return the bytes by which the segments from `segment` on are short of full ones.
    fn missing_from(&self, segment: u64, full: u32) -> u64 {
        let place = self.0.partition_point(|short| short.0 < segment);
        self.0.range(place..).map(|short| u64::from(full.saturating_sub(short.1))).sum()
    }

    fn first_from(&self, segment: u64) -> Option<u64> {
        let place = self.0.partition_point(|short| short.0 < segment);
        self.0.get(place).map(|short| short.0)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.0.capacity() * std::mem::size_of::<(u64, u32)>()
    }
}

impl Sender {
    /// Add `segments` full segments from the application.
    pub fn write(&mut self, segments: u64) {
        self.segments_available = self.segments_available.saturating_add(segments);
        self.find_short();
    }

    /// Add one segment of `size` wire bytes from the application.
    pub fn write_short(&mut self, size: u32) {
        let needed = if self.config.reliable { self.acked_segments.first_missing() } else { self.next_segment };
        while self.short_segments.0.front().is_some_and(|short| short.0 < needed) {
            self.short_segments.0.pop_front();
        }
        self.short_segments.0.push_back((self.segments_available, size));
        self.write(1);
    }

    /// Add a frame from a media source: `full` full segments, and one of `rest` wire bytes.
    pub fn write_frame(&mut self, now: Timestamp, full: u64, rest: Option<u32>) {
        let waiting = self.unsent_bytes();
        self.write(full);
        if let Some(rest) = rest {
            self.write_short(rest);
        }
        let bytes = self.unsent_bytes() - waiting;
        if let Some(media) = self.cca.media() {
            media.on_frame(&FrameEvent { now, bytes, waiting });
        }
        self.adopt_control();
    }

    /// Return the wire bytes that were never sent.
    fn unsent_bytes(&self) -> u64 {
        let full = self.config.packet_size;
        let segments = self.segments_available.saturating_sub(self.next_segment);
        segments.saturating_mul(u64::from(full)) - self.short_segments.missing_from(self.next_segment, full)
    }

    /// Remove the data that was never sent: the application has nothing to send any more.
    pub fn withdraw(&mut self) {
        self.segments_available = self.next_segment;
        while self.short_segments.0.back().is_some_and(|short| short.0 >= self.next_segment) {
            self.short_segments.0.pop_back();
        }
        self.find_short();
    }

    /// Return the number of segments handed over.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.segments_available
    }

    /// Return the number of segments acknowledged without a gap (reliable flows).
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.acked_segments.first_missing()
    }

    /// Return the number of segments sent at least once.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.next_segment
    }

    /// Return the target rate for the application, including headers: the algorithm's target, else the rate at which it
    /// sends. Zero while there is none.
    #[must_use]
    pub fn target_rate(&mut self) -> Rate {
        if let Some(media) = self.cca.media() {
            return media.target_rate();
        }
        let (control, srtt) = (&self.control, self.rtt.smoothed());
        let by_window = match control.cwnd {
            u64::MAX => None,
            cwnd => (srtt > TimeSpan::ZERO).then(|| Rate::from_bytes_over(cwnd, srtt)),
        };
        let paced = Some(control.pacing_rate).filter(|rate| *rate != Rate::ZERO);
        by_window.into_iter().chain(paced).min().unwrap_or(Rate::ZERO)
    }

    pub(super) fn size_of(&self, segment: u64) -> u32 {
        self.short_segments.size_of(segment).unwrap_or(self.config.packet_size)
    }

    /// Return the bytes of the next new segment's packet: the room in the window, if the scheme allows short packets.
    pub(super) fn size_of_next(&self) -> u32 {
        let full = self.size_of(self.next_segment);
        let room = self.window().saturating_sub(self.in_flight);
        let shortens = self.capabilities.short_packets && self.segments_available >= ENDLESS;
        if shortens && (MIN_SHORT..u64::from(full)).contains(&room) {
            room as u32
        } else {
            full
        }
    }

    /// Take the next new segment, which is sent now.
    pub(super) fn take_segment(&mut self) -> u64 {
        let segment = self.next_segment;
        self.next_segment += 1;
        if segment == self.full_until {
            self.find_short();
        }
        segment
    }

    fn find_short(&mut self) {
        self.full_until = self.short_segments.first_from(self.next_segment).unwrap_or(self.segments_available);
    }
}
