//! Applications: they decide when a flow has data to send.

use ccgym_core::sender::ENDLESS;
use ccgym_core::{Rate, Rng, Sender, TimeSpan, Timestamp};
use ccgym_path::{Param, ParamCursor};

use crate::arrivals::Arrivals;
use crate::media::{Frame, Media};
use crate::requests::{Requests, Transfer};
use crate::spec::SourceSpec;

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
    OnOff(Periods),
    /// Segments at a rate.
    Rate(SegmentClock),
    /// Segments or transfers as a Poisson process.
    Poisson(Box<Arrivals>),
    /// A server that answers requests.
    Requests(Box<Requests>),
    /// A video encoder.
    Media(Box<Media>),
}

impl Source {
    /// Make the application of `spec`; `mss` is the payload of a full segment, `header` its header.
    #[must_use]
    pub fn new(spec: &SourceSpec, mss: u32, header: u32, seed: u64, flow: u64) -> Self {
        match *spec {
            SourceSpec::Greedy => Self::Greedy,
            SourceSpec::Bytes { bytes } => Self::Bytes { bytes },
            SourceSpec::OnOff { mean_on, mean_off } => Self::OnOff(Periods::new(mean_on, mean_off, seed, flow)),
            SourceSpec::Rate { ref rate, bytes } => Self::Rate(SegmentClock::new(rate, mss, bytes)),
            SourceSpec::Poisson { rate, ref size, bytes } => {
                let rng = Rng::stream(seed, "source", flow);
                Self::Poisson(Box::new(Arrivals::new(rate, size.clone(), bytes, (mss, header), rng)))
            }
            SourceSpec::Requests(ref requests) => {
                let rng = Rng::stream(seed, "source", flow);
                Self::Requests(Box::new(Requests::new(requests.clone(), mss, header, rng)))
            }
            SourceSpec::Media(ref media) => Self::Media(Box::new(Media::new(*media, mss, header))),
        }
    }

    /// Start the flow.
    pub fn start(&mut self, now: Timestamp, sender: &mut Sender, mss: u32, header: u32) {
        match self {
            Self::Greedy => sender.write(ENDLESS),
            Self::Bytes { bytes } => write_payload(sender, *bytes, mss, header),
            Self::OnOff(periods) => {
                periods.next = now;
                self.on_event(now, sender);
            }
            Self::Rate(clock) => {
                clock.start(now);
                self.on_event(now, sender);
            }
            Self::Poisson(arrivals) => arrivals.start(now),
            Self::Requests(requests) => requests.on_event(now, sender),
            Self::Media(media) => {
                media.start(now);
                media.on_event(now, sender);
            }
        }
    }

    /// Stop the flow: the application hands over no more data.
    pub fn stop(&mut self) {
        match self {
            Self::Greedy | Self::Bytes { .. } => {}
            Self::OnOff(periods) => periods.next = Timestamp::NEVER,
            Self::Poisson(arrivals) => arrivals.stop(),
            Self::Rate(clock) => clock.stop(),
            Self::Requests(requests) => requests.stop(),
            Self::Media(media) => media.stop(),
        }
    }

    /// True if it ends by itself, and has handed over all its data.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Bytes { .. } => true,
            Self::Rate(clock) => clock.left == 0,
            Self::Poisson(arrivals) => arrivals.is_done(),
            Self::Greedy | Self::OnOff(_) | Self::Requests(_) | Self::Media(_) => false,
        }
    }

    /// Return the server of a flow that answers requests.
    pub fn requests(&mut self) -> Option<&mut Requests> {
        match self {
            Self::Requests(requests) => Some(requests),
            _ => None,
        }
    }

    /// Return the transfers so far: responses to requests, or arrivals with a size; empty for other sources.
    #[must_use]
    pub fn transfers(&self) -> &[Transfer] {
        match self {
            Self::Poisson(arrivals) => arrivals.transfers(),
            Self::Requests(requests) => requests.transfers(),
            _ => &[],
        }
    }

    /// Process settled packets of the flow.
    pub fn on_settled(&mut self, now: Timestamp, sender: &Sender) {
        match self {
            Self::Poisson(arrivals) => arrivals.on_settled(now, sender),
            Self::Requests(requests) => requests.on_settled(now, sender),
            _ => {}
        }
    }

    /// Return the frames of a video encoder so far; empty for other sources.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        match self {
            Self::Media(media) => media.frames(),
            _ => &[],
        }
    }

    /// Return the next time for [`Source::on_event`].
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Timestamp {
        match self {
            Self::Greedy | Self::Bytes { .. } => Timestamp::NEVER,
            Self::OnOff(periods) => periods.next,
            Self::Poisson(arrivals) => arrivals.next_event(),
            Self::Rate(clock) => clock.next_event(),
            Self::Requests(requests) => requests.next_event(),
            Self::Media(media) => media.next_event(),
        }
    }

    /// Process the event at the time given by [`Source::next_event`].
    pub fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        match self {
            Self::Greedy | Self::Bytes { .. } => {}
            Self::OnOff(periods) => {
                if periods.change(now) {
                    sender.write(ENDLESS);
                } else {
                    sender.withdraw();
                }
            }
            Self::Rate(clock) => {
                let segments = clock.due(now);
                if segments > 0 {
                    sender.write(segments);
                }
            }
            Self::Poisson(arrivals) => arrivals.on_event(now, sender),
            Self::Requests(requests) => requests.on_event(now, sender),
            Self::Media(media) => media.on_event(now, sender),
        }
    }
}

/// The periods of an application that alternates.
#[derive(Clone, Debug)]
pub struct Periods {
    /// Mean lengths, seconds: off and on.
    means: [f64; 2],
    /// True in an on period.
    pub on: bool,
    /// Time of the next change.
    pub next: Timestamp,
    rng: Rng,
}

impl Periods {
    /// Make periods that are off until the start. The same seed draws the same periods.
    #[must_use]
    pub fn new(mean_on: TimeSpan, mean_off: TimeSpan, seed: u64, flow: u64) -> Self {
        let means = [mean_off.as_secs_f64(), mean_on.as_secs_f64()];
        Self { means, on: false, next: Timestamp::ZERO, rng: Rng::stream(seed, "source", flow) }
    }

    /// Begin the next period; returns true if it is an on period.
    pub fn change(&mut self, now: Timestamp) -> bool {
        self.on = !self.on;
        let length = TimeSpan::from_secs_f64(self.rng.exponential(self.means[usize::from(self.on)]));
        self.next = now + length.max(TimeSpan(1));
        self.on
    }
}

/// Hand over `bytes` of payload: full segments, and one with the rest.
pub(crate) fn write_payload(sender: &mut Sender, bytes: u64, mss: u32, header: u32) {
    sender.write(bytes / u64::from(mss));
    let rest = (bytes % u64::from(mss)) as u32;
    if rest > 0 {
        sender.write_short(rest + header);
    }
}

/// The times at which an application with a rate, which may change in steps, hands over its segments.
#[derive(Clone, Debug)]
pub struct SegmentClock {
    rate: ParamCursor<Rate>,
    bytes: u64,
    /// Remaining segments.
    left: u64,
    next: Timestamp,
}

impl SegmentClock {
    /// Make the clock of segments of `mss` bytes at `rate`, before the start; it ends after `total` bytes, if any.
    #[must_use]
    pub fn new(rate: &Param<Rate>, mss: u32, total: Option<u64>) -> Self {
        let bytes = u64::from(mss);
        let left = total.map_or(ENDLESS, |total| total.div_ceil(bytes));
        Self { rate: ParamCursor::new(rate, Rate::ZERO), bytes, left, next: Timestamp::NEVER }
    }

    /// Start the flow, with a segment if there is a rate.
    pub fn start(&mut self, now: Timestamp) {
        self.next = if self.rate.at(now) > Rate::ZERO { now } else { Timestamp::NEVER };
    }

    /// Stop: no more segments are handed over.
    pub fn stop(&mut self) {
        self.rate = ParamCursor::new(&Param::Constant(Rate::ZERO), Rate::ZERO);
        self.next = Timestamp::NEVER;
    }

    /// Return the next time for [`SegmentClock::due`].
    #[must_use]
    #[inline]
    pub fn next_event(&self) -> Timestamp {
        self.next.min(self.rate.until())
    }

    /// Return the number of segments due by `now` and not handed over before. After a step of the rate the next segment
    /// comes when it would have, or one gap of the new rate after the step, if that is sooner.
    pub fn due(&mut self, now: Timestamp) -> u64 {
        let mut segments = 0;
        loop {
            let change = self.rate.until();
            if self.next <= now && self.next < change {
                segments += 1;
                self.next = self.next.saturating_add(self.gap());
                self.left -= 1;
                if self.left == 0 {
                    self.stop();
                }
            } else if change <= now {
                self.rate.step();
                let idle = self.rate.value() == Rate::ZERO;
                self.next = if idle { Timestamp::NEVER } else { self.next.min(change.saturating_add(self.gap())) };
            } else {
                return segments;
            }
        }
    }

    fn gap(&self) -> TimeSpan {
        self.rate.value().time_for(self.bytes).max(TimeSpan(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_in_steps() {
        let ms = Timestamp::from_millis;
        // A segment every 100 ms; from 250 ms on every 10 ms; none from 300 ms to 400 ms; then every 100 ms again.
        let rates = [(0, 80_000), (250, 800_000), (300, 0), (400, 80_000)];
        let rate = Param::Steps(rates.iter().map(|&(at, rate)| (ms(at), Rate(rate))).collect());
        let run = |times: &[u64]| -> Vec<u64> {
            let mut clock = SegmentClock::new(&rate, 1000, None);
            clock.start(ms(0));
            times.iter().map(|&t| clock.due(ms(t))).collect()
        };
        assert_eq!(run(&[0, 99, 100, 249, 259, 260, 299, 300, 499, 500]), [1, 0, 1, 1, 0, 1, 3, 0, 0, 1]);
        assert_eq!(run(&[500]), [8], "however the time is divided");
        let mut clock = SegmentClock::new(&rate, 1000, None);
        clock.start(ms(350));
        assert_eq!((clock.due(ms(399)), clock.next_event()), (0, ms(400)));
        clock.stop();
        assert_eq!((clock.due(ms(900)), clock.next_event()), (0, Timestamp::NEVER));
        let mut clock = SegmentClock::new(&rate, 1000, Some(1500));
        clock.start(ms(0));
        assert_eq!((clock.due(ms(1000)), clock.next_event()), (2, Timestamp::NEVER), "two segments for 1500 bytes");
    }
}
