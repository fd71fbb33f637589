//! Applications: when a flow has something to send.

use ccgym_core::{Rng, Sender, TimeSpan, Timestamp};

use crate::media::{Frame, Media};
use crate::spec::SourceSpec;

/// More segments than any run sends.
const ENDLESS: u64 = u64::MAX / 2;

/// The application of one flow.
#[derive(Clone, Debug)]
pub enum Source {
    /// Always has data.
    Greedy,
    /// A finite transfer.
    Bytes {
        /// Payload bytes.
        bytes: u64,
    },
    /// Alternating.
    OnOff {
        /// Mean on period in seconds.
        mean_on: f64,
        /// Mean off period in seconds.
        mean_off: f64,
        /// Whether it is on now.
        on: bool,
        /// When that changes.
        next: Timestamp,
        /// Draws the periods.
        rng: Rng,
    },
    /// One segment every so often.
    Rate {
        /// Time between segments.
        gap: TimeSpan,
        /// When the next one is handed over.
        next: Timestamp,
    },
    /// A video encoder.
    Media(Box<Media>),
}

impl Source {
    /// The application that `spec` describes; `mss` is the payload of a full segment, `header` what comes before it.
    #[must_use]
    pub fn new(spec: &SourceSpec, mss: u32, header: u32, seed: u64, flow: u64) -> Self {
        match *spec {
            SourceSpec::Greedy => Self::Greedy,
            SourceSpec::Bytes { bytes } => Self::Bytes { bytes },
            SourceSpec::OnOff { mean_on, mean_off } => Self::OnOff {
                mean_on: mean_on.as_secs_f64(),
                mean_off: mean_off.as_secs_f64(),
                on: false,
                next: Timestamp::ZERO,
                rng: Rng::stream(seed, "source", flow),
            },
            SourceSpec::Rate { rate } => Self::Rate { gap: rate.time_for(u64::from(mss)), next: Timestamp::ZERO },
            SourceSpec::Media(media) => Self::Media(Box::new(Media::new(media, mss, header))),
        }
    }

    /// The flow starts.
    pub fn start(&mut self, now: Timestamp, sender: &mut Sender, mss: u32, header: u32) {
        match self {
            Self::Greedy => sender.write(ENDLESS),
            Self::Bytes { bytes } => {
                sender.write(*bytes / u64::from(mss));
                let rest = (*bytes % u64::from(mss)) as u32;
                if rest != 0 {
                    sender.write_short(rest + header);
                }
            }
            Self::OnOff { next, .. } | Self::Rate { next, .. } => {
                *next = now;
                self.on_event(now, sender);
            }
            Self::Media(media) => {
                media.start(now);
                media.on_event(now, sender);
            }
        }
    }

    /// The flow stops: the application hands over nothing more.
    pub fn stop(&mut self) {
        match self {
            Self::Greedy | Self::Bytes { .. } => {}
            Self::OnOff { next, .. } | Self::Rate { next, .. } => *next = Timestamp::NEVER,
            Self::Media(media) => media.stop(),
        }
    }

    /// The frames of a video encoder so far; none of the others.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        match self {
            Self::Media(media) => media.frames(),
            _ => &[],
        }
    }

    /// When [`Source::on_event`] wants to be called.
    #[must_use]
    #[inline]
    pub const fn next_event(&self) -> Timestamp {
        match self {
            Self::Greedy | Self::Bytes { .. } => Timestamp::NEVER,
            Self::OnOff { next, .. } | Self::Rate { next, .. } => *next,
            Self::Media(media) => media.next_event(),
        }
    }

    /// The time given by [`Source::next_event`] has come.
    pub fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        match self {
            Self::Greedy | Self::Bytes { .. } => {}
            Self::OnOff { mean_on, mean_off, on, next, rng } => {
                *on = !*on;
                let mean = if *on { *mean_on } else { *mean_off };
                *next = now + TimeSpan::from_secs_f64(rng.exponential(mean)).max(TimeSpan(1));
                if *on {
                    sender.write(ENDLESS);
                } else {
                    sender.withdraw();
                }
            }
            Self::Rate { gap, next } => {
                sender.write(1);
                *next = next.saturating_add(*gap);
            }
            Self::Media(media) => media.on_event(now, sender),
        }
    }
}
