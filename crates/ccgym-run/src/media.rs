//! A live video encoder: a frame at fixed times, of a size that follows the scheme's target.

use ccgym_core::{Rate, Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spec::MediaSpec;

/// A frame of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Time of capture.
    pub captured: Timestamp,
    /// Number of its packets; zero if it was skipped.
    pub packets: u32,
    /// Its payload bytes.
    pub bytes: u32,
}

/// The encoder of a flow.
#[derive(Clone, Debug)]
pub struct Media {
    spec: MediaSpec,
    /// Payload and header bytes of a full packet.
    mss: u32,
    header: u32,
    gap: TimeSpan,
    /// Frames from one key frame to the next; zero: no key frames.
    key_every: u64,
    /// Encoding rate, payload bits per second, and time of its latest change.
    rate: f64,
    since: Option<Timestamp>,
    /// Fraction of a byte by which the frames so far were short of their rate.
    carried: f64,
    next: Timestamp,
    /// Start and end of a pause without frames.
    pause: (Timestamp, Timestamp),
    /// Frames so far.
    frames: Vec<Frame>,
    /// The oldest frame that was not sent completely at the latest check, and its end in segments.
    oldest: usize,
    oldest_end: u64,
}

impl Media {
    pub(crate) fn new(spec: MediaSpec, mss: u32, header: u32) -> Self {
        let key_every = (spec.key_interval.as_secs_f64() * spec.frame_rate).round() as u64;
        Self {
            spec,
            mss,
            header,
            gap: TimeSpan::from_secs_f64(1.0 / spec.frame_rate),
            key_every,
            rate: 0.0,
            since: None,
            carried: 0.0,
            next: Timestamp::NEVER,
            pause: (Timestamp::NEVER, Timestamp::NEVER),
            frames: Vec::new(),
            oldest: 0,
            oldest_end: 0,
        }
    }

    pub(crate) fn start(&mut self, now: Timestamp) {
        self.next = now;
        self.pause = (now + self.spec.pause, now + self.spec.resume);
    }

    pub(crate) fn stop(&mut self) {
        self.next = Timestamp::NEVER;
    }

    pub(crate) const fn next_event(&self) -> Timestamp {
        self.next
    }

    /// Return the frames so far.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Capture a frame, encode it and hand it over.
    pub(crate) fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        self.next = self.next.saturating_add(self.gap);
        if (self.pause.0..self.pause.1).contains(&self.next) {
            self.next = self.pause.1;
        }
        self.adopt(now, sender.target_rate());
        if self.has_waited(now, sender) > self.spec.max_wait {
            sender.write_frame(now, 0, None);
            self.frames.push(Frame { captured: now, packets: 0, bytes: 0 });
            return;
        }
        let wanted = self.rate / (8.0 * self.spec.frame_rate) * self.share() + self.carried;
        let bytes = wanted.max(1.0) as u32;
        self.carried = (wanted - f64::from(bytes)).clamp(0.0, 1.0);
        let (full, rest) = (bytes / self.mss, bytes % self.mss);
        sender.write_frame(now, u64::from(full), (rest > 0).then_some(rest + self.header));
        self.frames.push(Frame { captured: now, packets: full + u32::from(rest > 0), bytes });
    }

    /// Adopt the scheme's target, unless the last change is too recent.
    fn adopt(&mut self, now: Timestamp, target: Rate) {
        if self.since.is_some_and(|since| now.since(since) < self.spec.reaction) {
            return;
        }
        let per_frame = 8.0 * self.spec.frame_rate;
        let wire = target.0 as f64 / per_frame;
        let packets = (wire / f64::from(self.mss + self.header)).ceil();
        let payload = (wire - packets * f64::from(self.header)) * per_frame;
        let rate = payload.max(self.spec.min_rate.0 as f64).min(self.spec.max_rate.0 as f64);
        if self.since.is_none() || rate != self.rate {
            self.rate = rate;
            self.since = Some(now);
        }
    }

    /// Return the size of the next frame over the mean size.
    fn share(&self) -> f64 {
        if self.key_every == 0 {
            return 1.0;
        }
        let (every, factor) = (self.key_every as f64, self.spec.key_factor);
        let other = every / (every - 1.0 + factor);
        if self.frames.len() as u64 % self.key_every == 0 {
            other * factor
        } else {
            other
        }
    }

    /// Return the wait of the oldest frame that is not sent completely.
    fn has_waited(&mut self, now: Timestamp, sender: &Sender) -> TimeSpan {
        while let Some(frame) = self.frames.get(self.oldest) {
            let end = self.oldest_end + u64::from(frame.packets);
            if end > sender.begun() {
                return now.since(frame.captured);
            }
            (self.oldest, self.oldest_end) = (self.oldest + 1, end);
        }
        TimeSpan::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::congestion_control::{
        self, AckEvent, CongestionControl, FrameEvent, InitContext, Observables, TimeoutEvent,
    };
    use ccgym_core::sender::SenderConfig;
    use ccgym_core::{Control, Rng};

    /// A scheme with a target rate that sends only with an open window, and stores the latest frame event.
    #[derive(Clone)]
    struct Told(Rate, u64, (u64, u64));

    impl CongestionControl for Told {
        fn init(&mut self, _context: InitContext) {}
        fn on_ack(&mut self, _event: &AckEvent<'_>) {}
        fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}
        fn control(&self) -> Control {
            Control::window(self.1)
        }
        fn media(&mut self) -> Option<&mut dyn congestion_control::Media> {
            Some(self)
        }
        fn observables(&self) -> Observables {
            vec![("bytes", self.2 .0 as f64), ("waiting", self.2 .1 as f64)]
        }
    }

    impl congestion_control::Media for Told {
        fn on_frame(&mut self, event: &FrameEvent) {
            self.2 = (event.bytes, event.waiting);
        }
        fn target_rate(&self) -> Rate {
            self.0
        }
    }

    fn sender(target: u64, window: u64) -> Sender {
        let context = InitContext {
            now: Timestamp::ZERO,
            mss: 1000,
            initial_window: 10_000,
            flow: 0,
            rng: Rng::stream(1, "media", 0),
            path: None,
        };
        Sender::new(SenderConfig::udp(0, 1000), Box::new(Told(Rate(target), window, (0, 0))), context)
    }

    fn frames(spec: MediaSpec, sender: &mut Sender, count: usize) -> (Media, Vec<u32>) {
        let mut media = Media::new(spec, 950, 50);
        media.start(Timestamp::ZERO);
        let mut sent = Vec::new();
        for _ in 0..count {
            let now = media.next_event();
            media.on_event(now, sender);
            sent.extend(std::iter::from_fn(|| sender.poll_transmit(now)).map(|packet| packet.size));
        }
        (media, sent)
    }

    fn spec() -> MediaSpec {
        MediaSpec { frame_rate: 25.0, reaction: TimeSpan::ZERO, ..MediaSpec::default() }
    }

    #[test]
    fn frames_fill_the_target_with_headers_and_end_in_a_short_packet() {
        // 500 kbit/s are 2500 bytes per frame on the wire: two full packets and one of 500 bytes.
        let mut sender = sender(500_000, u64::MAX);
        let (media, sent) = frames(spec(), &mut sender, 3);
        assert_eq!(sent, [1000, 1000, 500].repeat(3));
        let expected = [0, 40, 80].map(|ms| Frame { captured: Timestamp::from_millis(ms), packets: 3, bytes: 2350 });
        assert_eq!(media.frames(), expected);
    }

    #[test]
    fn scheme_is_told_of_each_frame_and_of_what_waits() {
        // Frames of 2500 bytes. The window takes only one full packet.
        let mut sender = sender(500_000, 1000);
        let told =
            |sender: &Sender| sender.cca().observables().iter().map(|(_, value)| *value as u64).collect::<Vec<_>>();
        for (count, expected) in [(1, [2500, 0]), (1, [2500, 1500]), (2, [2500, 6500])] {
            frames(spec(), &mut sender, count);
            assert_eq!(told(&sender), expected);
        }
        // After half a second the encoder skips.
        let (media, _) = frames(spec(), &mut sender, 15);
        assert_eq!(media.frames().last().map(|frame| frame.packets), Some(0));
        assert_eq!(told(&sender)[0], 0);
    }

    #[test]
    fn encoder_pauses_and_goes_on() {
        let paused = MediaSpec { pause: TimeSpan::from_millis(50), resume: TimeSpan::from_millis(100), ..spec() };
        let (media, _) = frames(paused, &mut sender(500_000, u64::MAX), 4);
        let captured: Vec<u64> = media.frames().iter().map(|frame| frame.captured.as_millis()).collect();
        assert_eq!(captured, [0, 40, 100, 140]);
    }

    #[test]
    fn encoder_has_a_minimum_and_a_maximum() {
        for (target, bytes) in [(0, 250), (10_000_000, 12_500)] {
            let (media, _) = frames(spec(), &mut sender(target, u64::MAX), 2);
            assert!(media.frames().iter().all(|frame| frame.bytes == bytes), "{:?}", media.frames());
        }
    }

    #[test]
    fn key_frames_are_larger_and_leave_the_mean() {
        let keys = MediaSpec { key_interval: TimeSpan::from_millis(200), key_factor: 5.0, ..spec() };
        // Five frames share 5 · 12 500 bytes as 5 : 1 : 1 : 1 : 1.
        let (media, _) = frames(keys, &mut sender(100_000_000, u64::MAX), 10);
        let sizes: Vec<u32> = media.frames().iter().map(|frame| frame.bytes).collect();
        let key = 62_500.0 / 9.0 * 5.0;
        for (place, size) in sizes.iter().enumerate() {
            let expected = if place % 5 == 0 { key } else { key / 5.0 };
            assert!((f64::from(*size) - expected).abs() <= 1.0, "{place}: {size}, not {expected}");
        }
        assert!(sizes.iter().sum::<u32>().abs_diff(125_000) <= 1);
    }

    #[test]
    fn rate_changes_no_faster_than_the_encoder_reacts() {
        let mut media = Media::new(MediaSpec { reaction: TimeSpan::from_millis(200), ..spec() }, 950, 50);
        let at = Timestamp::from_millis;
        for (ms, target, rate) in [(0, 100_000, 90_000.0), (160, 200_000, 90_000.0), (200, 200_000, 190_000.0)] {
            media.adopt(at(ms), Rate(target));
            assert_eq!(media.rate, rate, "after {ms} ms");
        }
        // A target that stayed for long changes at once.
        media.adopt(at(900), Rate(300_000));
        assert_eq!(media.rate, 280_000.0);
    }

    #[test]
    fn frames_are_skipped_while_one_waits_for_too_long() {
        // Nothing may leave: frames at 0, 40, …, 480 ms are encoded; at 520 ms the first has waited for 520 ms.
        let (media, sent) = frames(spec(), &mut sender(500_000, 0), 15);
        assert!(sent.is_empty());
        let skipped = media.frames().iter().position(|frame| frame.packets == 0);
        assert_eq!(skipped, Some(13));
        // Frames that are sent completely do not wait.
        let (media, _) = frames(spec(), &mut sender(500_000, u64::MAX), 50);
        assert!(media.frames().iter().all(|frame| frame.packets == 3));
    }
}
