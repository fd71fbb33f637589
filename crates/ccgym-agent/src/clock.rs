//! When intervals end: by time or by round trips.

use super::spec::{ClockSpec, RttSource};
use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::SpecError;

/// Min interval of a clock, so that time advances between decisions.
const MIN_INTERVAL: TimeSpan = TimeSpan(1_000);

impl ClockSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let long = |place: &str, span: TimeSpan| {
            SpecError::ensure(span >= MIN_INTERVAL, place, format!("{} ns", span.0), "at least 1000 ns")
        };
        match self {
            Self::Fixed { interval, on_ack, tick } => {
                long("clock.interval", *interval)?;
                let place = "clock.tick";
                SpecError::ensure(*on_ack || tick.0 == 0, place, tick.0, "0, or on_ack: true")?;
                SpecError::ensure(tick <= interval, place, tick.0, "at most the interval")
            }
            Self::Rtt { multiple, floor, ceiling, warm_up_rtts, first_rtts, no_ack, .. } => {
                let positive =
                    |place: &str, x: f64| SpecError::ensure(x.is_finite() && x > 0.0, place, x, "a number above 0");
                positive("clock.multiple", *multiple)?;
                positive("clock.first_rtts", first_rtts.unwrap_or(*multiple))?;
                let warm_up = warm_up_rtts.is_finite() && *warm_up_rtts >= 0.0;
                SpecError::ensure(warm_up, "clock.warm_up_rtts", warm_up_rtts, "a number from 0 on")?;
                long("clock.floor", *floor)?;
                if let Some(ceiling) = ceiling {
                    let found = format!("{} ns", ceiling.0);
                    SpecError::ensure(ceiling >= floor, "clock.ceiling", found, "at least the floor")?;
                }
                long("clock.no_ack", *no_ack)
            }
        }
    }

    /// In words.
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
    /// First round-trip sample.
    first: Option<TimeSpan>,
    /// Begin of the running interval.
    begin: Timestamp,
    next: Timestamp,
    /// Whether the running interval is warm-up: it is not recorded.
    warming: bool,
    /// Length of the running interval, if round trips set it.
    length: Option<TimeSpan>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let never = Timestamp::NEVER;
        Self { start: never, first: None, begin: never, next: never, warming: false, length: None }
    }

    /// The flow starts.
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

    /// When the running interval ends.
    #[inline]
    pub(crate) fn next(&self) -> Timestamp {
        self.next
    }

    /// Whether a first round-trip sample would matter.
    #[inline]
    pub(crate) fn awaits_rtt(&self) -> bool {
        self.first.is_none()
    }

    /// The first round-trip sample.
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

    /// Interval `m` ended; the next one begins. Returns whether it is to be recorded.
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

/// When the interval that begins at `begin` ends by a clock that knows no round trips.
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
    use crate::testing;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn interval(from: Timestamp, to: Timestamp, rtt_ms: Option<u64>) -> MonitorInterval {
        let rtts: Vec<_> = rtt_ms.into_iter().collect();
        testing::interval(from, to, &rtts)
    }

    #[test]
    fn fixed_intervals() {
        let mut clock = Clock::new();
        assert_eq!(clock.next(), Timestamp::NEVER);
        let mut spec = ClockSpec::Fixed { interval: TimeSpan::from_millis(10), on_ack: false, tick: TimeSpan::ZERO };
        clock.start(&spec, at(5));
        assert_eq!(clock.next(), at(15));
        assert!(clock.close(&spec, &interval(at(5), at(15), None)));
        assert_eq!(clock.next(), at(25));
        // Strictly more than the interval …
        spec = ClockSpec::Fixed { interval: TimeSpan::from_millis(10), on_ack: true, tick: TimeSpan::ZERO };
        clock.start(&spec, at(5));
        assert_eq!(clock.next(), Timestamp(at(15).0 + 1));
        // … and on a clock of whole milliseconds: the first whose number is 11 higher.
        spec = ClockSpec::Fixed { interval: TimeSpan::from_millis(10), on_ack: true, tick: TimeSpan::from_millis(1) };
        clock.start(&spec, Timestamp(at(5).0 + 900_000));
        assert_eq!(clock.next(), at(16));
    }

    fn aurora() -> ClockSpec {
        ClockSpec::Rtt {
            multiple: 0.5,
            of: RttSource::Mean,
            floor: TimeSpan::from_millis(10),
            ceiling: None,
            warm_up_rtts: 3.0,
            first_rtts: Some(1.5),
            no_ack: TimeSpan::from_millis(1000),
        }
    }

    #[test]
    fn round_trips_with_warm_up() {
        let (spec, mut clock) = (aurora(), Clock::new());
        clock.start(&spec, at(0));
        assert_eq!(clock.next(), at(1000));
        assert!(clock.awaits_rtt());
        clock.on_first_rtt(&spec, at(100), TimeSpan::from_millis(100));
        assert_eq!(clock.next(), at(300));
        assert!(!clock.close(&spec, &interval(at(0), at(300), Some(110))));
        assert_eq!(clock.next(), at(450));
        assert!(clock.close(&spec, &interval(at(300), at(450), Some(120))));
        assert_eq!(clock.next(), at(510));
        // Without a sample the length stays; a short round trip meets the floor.
        assert!(clock.close(&spec, &interval(at(450), at(510), None)));
        assert_eq!(clock.next(), at(570));
        assert!(clock.close(&spec, &interval(at(510), at(570), Some(4))));
        assert_eq!(clock.next(), at(580));
    }

    #[test]
    fn a_silence_does_not_lengthen_intervals_beyond_the_ceiling() {
        let json = r#"{"kind": "rtt", "multiple": 1.0, "ceiling": 1000000000}"#;
        let spec: ClockSpec = serde_json::from_str(json).expect("a clock");
        let mut clock = Clock::new();
        clock.start(&spec, at(20_000));
        clock.on_first_rtt(&spec, at(20_050), TimeSpan::from_millis(50));
        clock.close(&spec, &interval(at(20_000), at(20_050), Some(10_000)));
        assert_eq!(clock.next(), at(21_050));
        clock.close(&spec, &interval(at(20_050), at(21_050), Some(60)));
        assert_eq!(clock.next(), at(21_110));
        let low: ClockSpec = serde_json::from_str(&json.replace("1000000000", "1000000")).expect("a clock");
        assert_eq!(low.check().expect_err("too low").place, "clock.ceiling");
    }

    #[test]
    fn no_answer_at_first() {
        let (spec, mut clock) = (aurora(), Clock::new());
        clock.start(&spec, at(0));
        assert!(!clock.close(&spec, &interval(at(0), at(1000), None)));
        assert_eq!(clock.next(), at(2000));
        clock.on_first_rtt(&spec, at(1500), TimeSpan::from_millis(400));
        assert_eq!(clock.next(), at(1500));
        assert!(!clock.close(&spec, &interval(at(1000), at(1500), Some(400))));
        assert_eq!(clock.next(), at(2100));
    }

    #[test]
    fn without_warm_up_the_first_interval_counts() {
        let json = r#"{"kind": "rtt", "multiple": 1.0, "no_ack": 100000000}"#;
        let spec: ClockSpec = serde_json::from_str(json).expect("a clock");
        let mut clock = Clock::new();
        clock.start(&spec, at(0));
        assert_eq!(clock.next(), at(100));
        clock.on_first_rtt(&spec, at(50), TimeSpan::from_millis(50));
        assert_eq!(clock.next(), at(50));
        assert!(clock.close(&spec, &interval(at(0), at(50), Some(50))));
        assert_eq!(clock.next(), at(100));
    }
}
