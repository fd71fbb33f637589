//! Logs of real mm-link runs (release 0.98, `tests/differential/recorded/mm_link`), replayed line by line.
//!
//! Each recorded arrival is offered at its millisecond to a link with the recorded trace and queue; our link's log must
//! equal the recorded file. CoDel reads mahimahi's wall clock, and PIE draws from hardware: for them nearly all lines,
//! or the distributions, must agree.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_path::log::{parse_log, LogLine};
use ccgym_path::spec::LimitSpec;
use ccgym_path::{build_element, DeliveryTrace, ElementSpec, Fate, LinkEvent, PathElement, QueueSpec, ScheduleSpec};
use serde_json::Value;

const OVERHEAD: u32 = 4;

struct Recording {
    name: String,
    about: Value,
    base_ms: u64,
    lines: Vec<LogLine>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential/recorded/mm_link")
}

fn unzip(file: &Path) -> Vec<u8> {
    let packed = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).expect("gzip");
    text
}

fn recordings(wanted: impl Fn(&str) -> bool) -> Vec<Recording> {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .expect("the recordings are part of the repository")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let all = files.into_iter().map(|file| {
        let about: Value = serde_json::from_slice(&std::fs::read(&file).expect("readable")).expect("JSON");
        let (header, lines) = parse_log(&unzip(&file.with_extension("log.gz"))).expect("a log of mm-link");
        let name = about["name"].as_str().expect("a name").to_owned();
        assert_eq!(Some(header.base_ms), about["base_timestamp_ms"].as_u64(), "{name}");
        Recording { name, about, base_ms: header.base_ms, lines }
    });
    let found: Vec<_> = all.filter(|r| wanted(r.about["queue"].as_str().expect("a queue"))).collect();
    assert!(!found.is_empty(), "no recordings of this queue in {}", folder().display());
    found
}

impl Recording {
    fn trace(&self) -> Arc<DeliveryTrace> {
        let kept = &self.about["trace"];
        let entries = kept["entries"].as_u64().expect("entries") as usize;
        let period = kept["period_ms"].as_u64().expect("period");
        let times: Vec<u64> = if let Some(times) = kept["ms"].as_array() {
            times.iter().map(|t| t.as_u64().expect("ms")).collect()
        } else if let Some(file) = kept["file"].as_str() {
            let parsed = DeliveryTrace::parse(&unzip(&folder().join(file)), file).expect("a good trace");
            parsed.times_ms().to_vec()
        } else if let Some(mbps) = kept["source"].as_str().and_then(|s| s.strip_prefix("make_trace.py constant ")) {
            let mbps: f64 = mbps.parse().expect("a rate");
            (0..entries).map(|i| (12.0 * i as f64 / mbps) as u64).collect()
        } else {
            // A packaged trace that is not kept: the log has the opportunities up to the end of the run.
            let mut times: Vec<u64> = self
                .lines
                .iter()
                .filter_map(|line| match line {
                    LogLine::Opportunity { ms, .. } => Some(ms - self.base_ms),
                    _ => None,
                })
                .take(entries)
                .collect();
            if times.len() < entries {
                times.push(period);
            }
            times
        };
        let trace = DeliveryTrace::from_ms(&self.name, times).expect("a good trace");
        assert_eq!(trace.period().0 / 1_000_000, period, "{}", self.name);
        Arc::new(trace)
    }

    fn argument(&self, name: &str) -> Option<u64> {
        let arguments = self.about["queue_args"].as_str()?;
        arguments.split(',').find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    fn queue(&self) -> QueueSpec {
        let limit = LimitSpec { packets: self.argument("packets"), bytes: self.argument("bytes") };
        let value = |name| self.argument(name).unwrap_or_else(|| panic!("{}: {name} is missing", self.name));
        match self.about["queue"].as_str() {
            Some("infinite") => QueueSpec::Infinite,
            Some("droptail") => QueueSpec::Droptail { limit },
            Some("drophead") => QueueSpec::Drophead { limit },
            Some("codel") => QueueSpec::MahimahiCodel {
                limit,
                target: TimeSpan::from_millis(value("target")),
                interval: TimeSpan::from_millis(value("interval")),
            },
            Some("pie") => QueueSpec::MahimahiPie {
                limit,
                qdelay_ref: TimeSpan::from_millis(value("qdelay_ref")),
                max_burst: TimeSpan::from_millis(value("max_burst")),
            },
            other => panic!("{}: queue {other:?}", self.name),
        }
    }

    /// Return our link's log for the recorded arrivals, without `d` lines, which release 0.98 does not have.
    fn replay(&self, seed: u64) -> Vec<LogLine> {
        let trace = self.trace();
        let once = self.about["once"].as_bool().unwrap_or(false);
        let schedule = ScheduleSpec::Trace { name: self.name.clone(), once };
        let spec = ElementSpec::Link { schedule, queue: self.queue(), overhead: OVERHEAD, device_packets: 0 };
        let mut link = Box::new(build_element(&spec, seed, 0, &|_| Some(Arc::clone(&trace))).expect("a good link"));
        link.record_events();
        let mut last = 0;
        let mut held = 0u64;
        for (id, line) in self.lines.iter().enumerate() {
            last = match *line {
                LogLine::Opportunity { ms, .. }
                | LogLine::Arrival { ms, .. }
                | LogLine::Departure { ms, .. }
                | LogLine::Drop { ms, .. } => ms - self.base_ms,
            };
            if let LogLine::Arrival { bytes, .. } = *line {
                let mut datagram = Datagram { id: id as u64, flow: 0, size: bytes - OVERHEAD, ecn: Ecn::NotEct };
                held += u64::from(link.offer(Timestamp::from_millis(last), &mut datagram) == Fate::Hold);
            }
        }
        let events = link.take_events(Timestamp::from_millis(last));
        conserves(&mut *link, held, last, &self.name);
        let at = |t: Timestamp| t.as_millis() + self.base_ms;
        let lines = events.iter().filter_map(|event| match *event {
            LinkEvent::Opportunity(t, bytes) => Some(LogLine::Opportunity { ms: at(t), bytes }),
            LinkEvent::Arrival(t, bytes, _) => Some(LogLine::Arrival { ms: at(t), bytes }),
            LinkEvent::Departure(t, bytes, _, arrived) => {
                Some(LogLine::Departure { ms: at(t), bytes, delay_ms: at(t) - at(arrived) })
            }
            LinkEvent::Drop(..) => None,
        });
        lines.collect()
    }
}

fn conserves(link: &mut dyn PathElement, held: u64, last: u64, name: &str) {
    let mut out = Vec::new();
    out.extend(std::iter::from_fn(|| link.release(Timestamp::from_millis(last))));
    let waiting = link.backlog(Timestamp::from_millis(last)).0;
    if held > 0 {
        // One packet may be in transit, neither waiting nor released.
        assert!((0..=1).contains(&(held - out.len() as u64 - waiting)), "{name}: packets appear or vanish");
    }
}

/// Return the number of departures and their mean delay in milliseconds.
fn service(lines: &[LogLine]) -> (usize, f64) {
    let delays: Vec<u64> = lines
        .iter()
        .filter_map(|line| match line {
            LogLine::Departure { delay_ms, .. } => Some(*delay_ms),
            _ => None,
        })
        .collect();
    (delays.len(), delays.iter().sum::<u64>() as f64 / delays.len().max(1) as f64)
}

fn first_difference(ours: &[LogLine], theirs: &[LogLine]) -> Option<usize> {
    let shared = ours.iter().zip(theirs).position(|(a, b)| a != b);
    shared.or_else(|| (ours.len() < theirs.len()).then_some(ours.len()))
}

/// Compare every line. If mahimahi was stopped within a millisecond, our log may continue to its end.
fn assert_exact(recording: &Recording) {
    let ours = recording.replay(1);
    if let Some(at) = first_difference(&ours, &recording.lines) {
        panic!(
            "{}: event {} of {} is {:?}, ours {:?}",
            recording.name,
            at + 1,
            recording.lines.len(),
            recording.lines[at],
            ours.get(at)
        );
    }
    let end = recording.lines.last().map(|line| format!("{line:?}"));
    let beyond = ours.len() - recording.lines.len();
    assert!(beyond <= 64, "{}: {beyond} events beyond the last, {end:?}", recording.name);
}

#[test]
fn infinite_is_exact() {
    recordings(|queue| queue == "infinite").iter().for_each(assert_exact);
}

#[test]
fn droptail_is_exact() {
    recordings(|queue| queue == "droptail").iter().for_each(assert_exact);
}

#[test]
fn drophead_is_exact() {
    recordings(|queue| queue == "drophead").iter().for_each(assert_exact);
}

/// CoDel decides by the wall clock, which may be a millisecond after the opportunity that it serves: one line in 37,385
/// differs.
#[test]
fn codel_agrees() {
    for recording in recordings(|queue| queue == "codel") {
        let ours = recording.replay(1);
        let (count, delay) = service(&recording.lines);
        let (our_count, our_delay) = service(&ours);
        let same = ours.iter().zip(&recording.lines).filter(|(a, b)| a == b).count();
        let report = format!(
            "{}: {count} departures with mean delay {delay:.3} ms, ours {our_count} with {our_delay:.3} ms; {same} of {} \
             lines equal in place, first difference at {:?}",
            recording.name,
            recording.lines.len(),
            first_difference(&ours, &recording.lines)
        );
        assert!(same * 1000 >= 999 * recording.lines.len(), "{report}");
        assert!(count.abs_diff(our_count) <= 1 && (delay - our_delay).abs() <= 0.001 * delay, "{report}");
    }
}

/// Return mean and standard deviation.
fn spread(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
    (mean, variance.sqrt())
}

/// Mahimahi's PIE draws from hardware, so that two runs of the same traffic differ. A recorded run must be within four
/// standard deviations of 40 seeds of ours for the same arrivals.
#[test]
fn pie_agrees_statistically() {
    let mut deviations = Vec::new();
    for recording in recordings(|queue| queue == "pie") {
        let (count, delay) = service(&recording.lines);
        let ours: Vec<_> = (0..40).map(|seed| service(&recording.replay(seed))).collect();
        let (our_count, count_std) = spread(&ours.iter().map(|o| o.0 as f64).collect::<Vec<_>>());
        let (our_delay, delay_std) = spread(&ours.iter().map(|o| o.1).collect::<Vec<_>>());
        let report = format!(
            "{}: {count} departures with mean delay {delay:.2} ms, ours {our_count:.1} ± {count_std:.1} with \
             {our_delay:.2} ± {delay_std:.2} ms",
            recording.name
        );
        assert!((count as f64 - our_count).abs() <= 4.0 * count_std, "{report}");
        assert!((delay - our_delay).abs() <= 4.0 * delay_std, "{report}");
        deviations.push((delay - our_delay) / delay_std);
    }
    // All of them together: this shows a bias that is small in each run.
    let together = deviations.iter().sum::<f64>() / (deviations.len() as f64).sqrt();
    assert!(together.abs() <= 4.0, "delays deviate together: {together:.2} from {deviations:?}");
}
