//! Ends of intervals: by time or by round trips.

use super::spec::{ClockSpec, RttSource};
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::Error;

impl ClockSpec {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Fixed { interval, on_ack, tick } => {
                let place = "clock.tick";
                Error::ensure(*on_ack || tick.0 == 0, place, tick.0, "0, or on_ack: true")?;
                Error::ensure(tick <= interval, place, tick.0, "at most the interval")
            }
            Self::Rtt { multiple, floor, ceiling, first_rtts, .. } => {
                let positive =
                    |place: &str, x: f64| Error::ensure(x.is_finite() && x > 0.0, place, x, "a number above 0");
                positive("clock.multiple", *multiple)?;
                positive("clock.first_rtts", first_rtts.unwrap_or(*multiple))?;
                let ceiling = ceiling.unwrap_or(TimeSpan::MAX);
                Error::ensure(ceiling >= *floor, "clock.ceiling", format!("{} ns", ceiling.0), "at least the floor")
            }
        }
    }

    pub(crate) fn describe(&self) -> String {
        let ms = |span: &TimeSpan| format!("{} ms", span.as_millis_f64());
        match self {
            Self::Fixed { interval, on_ack: false, .. } => format!("every {}", ms(interval)),
            Self::Fixed { interval, tick, .. } => {
                let ticks = if tick.0 > 0 { format!(", times cut to {}", ms(tick)) } else { String::new() };
                format!("at the first acknowledgement more than {} after the previous decision{ticks}", ms(interval))
            }
            Self::Rtt { multiple, of, floor, ceiling, warm_up_rtts, first_rtts, no_ack } => {
                let of = match of {
                    RttSource::Mean => "the previous interval's mean round trip",
                    RttSource::Smoothed => "the smoothed round trip",
                    RttSource::Min => "the min RTT",
                };
                let warm_up = if *warm_up_rtts > 0.0 {
                    format!("first decision {warm_up_rtts} first round trips after the start, unrecorded; ")
                } else {
                    String::new()
                };
                let (first, floor, no_ack) = (first_rtts.unwrap_or(*multiple), ms(floor), ms(no_ack));
                let max = ceiling.as_ref().map_or_else(String::new, |ceiling| format!(" and at most {}", ms(ceiling)));
                format!(
                    "{warm_up}first recorded interval {first} first round trips, then {multiple} × {of}, at least \
                     {floor}{max}; every {no_ack} before any round trip"
                )
            }
        }
    }
}

/// The clock of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Timestamp,
    /// First RTT sample.
    first: Option<TimeSpan>,
    /// Start of the current interval.
    begin: Timestamp,
    next: Timestamp,
    /// True if the current interval is warm-up: it is not recorded.
    warming: bool,
    /// Length of the current interval, if RTTs set it.
    length: Option<TimeSpan>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let never = Timestamp::NEVER;
        Self { start: never, first: None, begin: never, next: never, warming: false, length: None }
    }

    /// Start at the start of the flow.
    pub(crate) fn start(&mut self, spec: &ClockSpec, now: Timestamp) {
        *self = Self { start: now, begin: now, ..Self::new() };
        self.next = match spec {
            ClockSpec::Fixed { .. } => after(spec, now),
            ClockSpec::Rtt { warm_up_rtts, no_ack, .. } => {
                self.warming = *warm_up_rtts > 0.0;
                now.saturating_add(*no_ack)
            }
        };
    }

    /// Return the end of the current interval.
    #[inline]
    pub(crate) fn next(&self) -> Timestamp {
        self.next
    }

    /// True if a first RTT sample would change the interval.
    #[inline]
    pub(crate) fn awaits_rtt(&self) -> bool {
        self.first.is_none()
    }

    /// Take the first RTT sample.
    pub(crate) fn on_first_rtt(&mut self, spec: &ClockSpec, now: Timestamp, sample: TimeSpan) {
        self.first = Some(sample);
        let ClockSpec::Rtt { warm_up_rtts, .. } = spec else { return };
        self.next = if self.warming {
            self.start.saturating_add(times(sample, *warm_up_rtts)).max(now)
        } else {
            let length = first_length(spec, sample);
            self.length = Some(length);
            self.begin.saturating_add(length).max(now)
        };
    }

    /// Begin the next interval after `m`. Returns true if `m` must be recorded.
    pub(crate) fn close(&mut self, spec: &ClockSpec, m: &MonitorInterval) -> bool {
        self.begin = m.end;
        let ClockSpec::Rtt { multiple, of, floor, ceiling, no_ack, .. } = spec else {
            self.next = after(spec, m.end);
            return true;
        };
        if let (None, Some(sample)) = (self.first, m.mean_rtt()) {
            self.first = Some(sample);
        }
        let Some(first) = self.first else {
            self.next = m.end.saturating_add(*no_ack);
            return !self.warming;
        };
        let recorded = !std::mem::take(&mut self.warming);
        let present = match of {
            _ if !recorded => None,
            RttSource::Mean => m.mean_rtt(),
            RttSource::Smoothed => Some(m.srtt).filter(|rtt| rtt.0 > 0),
            RttSource::Min => Some(m.min_rtt).filter(|rtt| *rtt != TimeSpan::MAX),
        };
        let length = match (present, self.length) {
            (Some(rtt), _) => times(rtt, *multiple).max(*floor).min(ceiling.unwrap_or(TimeSpan::MAX)),
            (None, Some(length)) => length,
            (None, None) => first_length(spec, first),
        };
        self.length = Some(length);
        self.next = m.end.saturating_add(length);
        recorded
    }
}

/// Return the end of the interval that begins at `begin`, for a clock without RTTs.
fn after(spec: &ClockSpec, begin: Timestamp) -> Timestamp {
    match spec {
        ClockSpec::Fixed { interval, on_ack: true, tick } if tick.0 > 0 => {
            Timestamp((begin.0 / tick.0 + interval.0 / tick.0).saturating_add(1).saturating_mul(tick.0))
        }
        ClockSpec::Fixed { interval, on_ack, .. } => {
            begin.saturating_add(*interval).saturating_add(TimeSpan(u64::from(*on_ack)))
        }
        _ => begin,
    }
}

fn first_length(spec: &ClockSpec, first: TimeSpan) -> TimeSpan {
    match spec {
        ClockSpec::Rtt { multiple, first_rtts, floor, .. } => times(first, first_rtts.unwrap_or(*multiple)).max(*floor),
        _ => TimeSpan::ZERO,
    }
}

fn times(span: TimeSpan, factor: f64) -> TimeSpan {
    TimeSpan((span.0 as f64 * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, interval, ms};

    #[test]
    fn fixed_intervals() {
        for (on_ack, tick, start, next, then) in [
            (false, 0, at(5), at(15), at(25)),
            // Strictly more than the interval …
            (true, 0, at(5), Timestamp(at(15).0 + 1), Timestamp(at(25).0 + 2)),
            // … and on a clock of whole milliseconds: the first whose number is 11 higher.
            (true, 1, Timestamp(at(5).0 + 900_000), at(16), at(27)),
        ] {
            let spec = ClockSpec::Fixed { interval: ms(10), on_ack, tick: ms(tick) };
            let mut clock = Clock::new();
            assert_eq!(clock.next(), Timestamp::NEVER);
            clock.start(&spec, start);
            assert_eq!(clock.next(), next);
            assert!(clock.close(&spec, &interval(start, next, &[])));
            assert_eq!(clock.next(), then);
        }
    }

    /// Events of a clock; times in milliseconds.
    enum Event {
        /// The first RTT sample, at a time.
        Rtt(u64, u64),
        /// The end of an interval with such samples; true if it is recorded.
        End(&'static [u64], u64, bool),
    }
    use Event::{End, Rtt};

    /// Run the clock of `json` from `start`. Each event comes with the time of the next decision after it.
    fn run(json: &str, start: u64, first: u64, events: &[(Event, u64)]) {
        let spec: ClockSpec = serde_json::from_str(json).expect("a clock");
        let mut clock = Clock::new();
        clock.start(&spec, at(start));
        assert_eq!((clock.next(), clock.awaits_rtt()), (at(first), true));
        let mut from = start;
        for (event, next) in events {
            match event {
                Rtt(now, rtt) => clock.on_first_rtt(&spec, at(*now), ms(*rtt)),
                End(rtts, to, recorded) => {
                    assert_eq!(clock.close(&spec, &interval(at(from), at(*to), rtts)), *recorded, "to {to}");
                    from = *to;
                }
            }
            assert_eq!(clock.next(), at(*next), "from {from}");
        }
    }

    const AURORA: &str = r#"{"kind": "rtt", "multiple": 0.5, "warm_up_rtts": 3.0, "first_rtts": 1.5}"#;

    #[test]
    fn round_trips_with_warm_up() {
        // Without a sample the length stays; a short round trip meets the floor.
        let ends = [(End(&[110], 300, false), 450), (End(&[120], 450, true), 510), (End(&[], 510, true), 570)];
        let events = [(Rtt(100, 100), 300)].into_iter().chain(ends).chain([(End(&[4], 570, true), 580)]);
        run(AURORA, 0, 1000, &events.collect::<Vec<_>>());
    }

    #[test]
    fn no_answer_at_first() {
        let late = [(End(&[], 1000, false), 2000), (Rtt(1500, 400), 1500), (End(&[400], 1500, false), 2100)];
        run(AURORA, 0, 1000, &late);
    }

    #[test]
    fn a_silence_does_not_lengthen_intervals_beyond_the_ceiling() {
        let json = r#"{"kind": "rtt", "multiple": 1.0, "ceiling": 1000000000}"#;
        let events =
            [(Rtt(20_050, 50), 20_050), (End(&[10_000], 20_050, true), 21_050), (End(&[60], 21_050, true), 21_110)];
        run(json, 20_000, 21_000, &events);
    }

    #[test]
    fn without_warm_up_the_first_interval_counts() {
        let json = r#"{"kind": "rtt", "multiple": 1.0, "no_ack": 100000000}"#;
        run(json, 0, 100, &[(Rtt(50, 50), 50), (End(&[50], 50, true), 100)]);
    }
}
