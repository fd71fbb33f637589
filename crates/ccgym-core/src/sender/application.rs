//! What the application hands over, and the rate it is told to hand it over at.

use std::collections::VecDeque;

use super::Sender;
use crate::congestion_control::FrameEvent;
use crate::units::{Rate, TimeSpan, Timestamp};

/// More segments than any run sends: what an application that never ends hands over.
pub const ENDLESS: u64 = u64::MAX / 2;
/// Wire bytes that a packet has at least which a window cuts short.
pub const MIN_SHORT: u64 = 100;

/// Segments that are not full, in order, with their wire bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortSegments(VecDeque<(u64, u32)>);

impl ShortSegments {
    fn size_of(&self, segment: u64) -> Option<u32> {
        let place = self.0.binary_search_by_key(&segment, |short| short.0).ok()?;
        Some(self.0[place].1)
    }

    /// Bytes that the segments from `segment` on are short of full ones.
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
    /// The application hands over `segments` more full segments.
    pub fn write(&mut self, segments: u64) {
        self.segments_available = self.segments_available.saturating_add(segments);
        self.find_short();
    }

    /// The application hands over one more segment, of `size` bytes on the wire.
    pub fn write_short(&mut self, size: u32) {
        let needed = if self.config.reliable { self.acked_segments.first_missing() } else { self.next_segment };
        while self.short_segments.0.front().is_some_and(|short| short.0 < needed) {
            self.short_segments.0.pop_front();
        }
        self.short_segments.0.push_back((self.segments_available, size));
        self.write(1);
    }

    /// A media source hands over a frame of `full` full segments and `rest`, one of so many bytes on the wire.
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

    /// Wire bytes handed over that were never sent.
    fn unsent_bytes(&self) -> u64 {
        let full = self.config.packet_size;
        let segments = self.segments_available.saturating_sub(self.next_segment);
        segments.saturating_mul(u64::from(full)) - self.short_segments.missing_from(self.next_segment, full)
    }

    /// The application takes back what was never sent: it has nothing to send any more.
    pub fn withdraw(&mut self) {
        self.segments_available = self.next_segment;
        while self.short_segments.0.back().is_some_and(|short| short.0 >= self.next_segment) {
            self.short_segments.0.pop_back();
        }
        self.find_short();
    }

    /// Segments handed over so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.segments_available
    }

    /// Segments acknowledged without a gap so far (reliable flows).
    #[must_use]
    pub const fn acknowledged(&self) -> u64 {
        self.acked_segments.first_missing()
    }

    /// Segments sent at least once so far.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.next_segment
    }

    /// The rate at which the application should hand data over, headers included: what the algorithm asks for, else the
    /// rate at which it sends. Zero while there is none.
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

    /// Bytes of the next new segment's packet: what the window leaves, if the scheme fills it so.
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

    /// The next new segment, which is sent now.
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
