//! Limits that end a simulation early: memory, and an interrupt.
//!
//! The event loop checks them every [`STRIDE`] packets or events, and counts bytes once per several checks. A check
//! does not affect the trajectory.

use std::fmt::{self, Write};
use std::sync::Arc;

use ccgym_core::{Error, Rate, TimeSpan, Timestamp};
use ccgym_path::{ElementSpec, LinkEvent, ScheduleSpec, OPPORTUNITY_BYTES};
use ccgym_run::recorder::Series;
use ccgym_run::{RunSpec, Traces};

/// Packets and events between two checks.
pub const STRIDE: u32 = 256;
/// Min number of checks between two counts of bytes; more with many flows, since every flow is counted.
const CHECKS: usize = 64;

/// Returns true to stop a simulation; called at intervals, from any thread.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// Format bytes for users.
pub fn bytes(count: u64) -> String {
    match count {
        0..=999 => format!("{count} B"),
        1_000..=999_999 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..=999_999_999 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

/// Memory of a simulation, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Flows without packets in flight.
    pub flows: usize,
    /// Packets and acknowledgements in flight or in queues, and the endpoints' records of them.
    pub in_flight: usize,
    /// Packet logs.
    pub packets: usize,
    /// Series.
    pub series: usize,
    /// Events of links.
    pub link_events: usize,
}

impl MemoryUse {
    /// Return the sum.
    pub const fn total(&self) -> u64 {
        self.flows
            .saturating_add(self.in_flight)
            .saturating_add(self.packets)
            .saturating_add(self.series)
            .saturating_add(self.link_events) as u64
    }
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = [
            ("flows", self.flows),
            ("packets in flight", self.in_flight),
            ("packet logs", self.packets),
            ("series", self.series),
            ("link events", self.link_events),
        ];
        parts.sort_by_key(|(_, held)| std::cmp::Reverse(*held));
        let mut text = String::new();
        for (name, held) in parts.iter().filter(|(_, held)| *held > 0) {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{name} {}", bytes(*held as u64))?;
        }
        write!(f, "{} ({text})", bytes(self.total()))
    }
}

/// Checks the limits of one simulation.
#[derive(Clone)]
pub(crate) struct Guard {
    max: u64,
    interrupt: Option<Interrupt>,
    /// Number of checks until bytes are counted.
    checks: usize,
    /// Reason of the stop.
    pub stopped: Option<Error>,
    /// True after a failed allocation.
    pub starved: bool,
}

/// Return the packets or events before the next count of bytes, with `flows` flows.
pub(crate) fn before_next_count(flows: usize) -> usize {
    checks(flows) * STRIDE as usize
}

fn checks(flows: usize) -> usize {
    CHECKS.max(flows / 16)
}

impl Guard {
    pub fn new(max: u64) -> Self {
        Self { max, interrupt: None, checks: 1, stopped: None, starved: false }
    }

    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = Some(interrupt);
    }

    /// Return true if bytes must be counted now; `None` if the simulation must end.
    pub fn check(&mut self, now: Timestamp, flows: usize) -> Option<bool> {
        if self.stopped.is_none() && self.interrupt.as_ref().is_some_and(|interrupt| interrupt()) {
            let found = format!("an interrupt at {} s of simulated time", now.as_secs_f64());
            self.stopped = Some(Error::of("run-abandoned", "simulation", found));
        }
        if self.stopped.is_some() {
            return None;
        }
        self.checks -= 1;
        let count = self.checks == 0 || self.starved;
        if count {
            self.checks = checks(flows);
        }
        Some(count)
    }

    /// True if this memory is allowed; otherwise the simulation is over.
    pub fn admit(&mut self, memory_use: &MemoryUse, now: Timestamp, end: Timestamp) -> bool {
        let when = || format!("at {:.3} s of {} s of simulated time", now.as_secs_f64(), end.as_secs_f64());
        if self.starved {
            let error = Error::of("memory-exceeded", "memory", format!("{memory_use} {}", when()));
            let expected = "no more than this machine has";
            self.stopped = Some(error.expected(expected).hint("record less, run less at a time, or free memory"));
        } else if memory_use.total() > self.max {
            self.stopped = Some(too_much(memory_use, &when(), self.max));
        }
        self.stopped.is_none()
    }
}

fn too_much(memory_use: &MemoryUse, when: &str, max: u64) -> Error {
    let found = format!("{memory_use} {when}");
    Error::of("memory-exceeded", "memory", found).expected(format!("at most {} (max_memory)", bytes(max)))
}

/// Bytes that are certain to come, whatever the flows do: series, and delivery opportunities of links.
pub fn projected_memory(spec: &RunSpec, traces: Traces<'_>) -> MemoryUse {
    let samples = spec.duration.0.checked_div(spec.record.series.0).unwrap_or(0) as usize;
    let series = Series::bytes_of(samples, spec.flows.len(), spec.directions().len() / 2);
    let link_events = if spec.record.link_events {
        let count = opportunities_of(spec, traces).into_iter().filter(|count| count.is_finite()).sum::<f64>();
        (count * std::mem::size_of::<LinkEvent>() as f64) as usize
    } else {
        0
    };
    MemoryUse { series, link_events, ..MemoryUse::default() }
}

/// Refuse a simulation that is certain to hold more than it may. Bytes of link events otherwise.
pub(crate) fn projected_link_events(spec: &RunSpec, traces: Traces<'_>) -> Result<usize, Error> {
    let memory_use = projected_memory(spec, traces);
    if memory_use.total() <= spec.max_memory {
        return Ok(memory_use.link_events);
    }
    let when = format!("to come in {} s of simulated time", spec.duration.as_secs_f64());
    Err(too_much(&memory_use, &when, spec.max_memory))
}

/// Return the delivery opportunities of the first link in each direction; infinite if there is none.
pub(crate) fn opportunities_of(spec: &RunSpec, traces: Traces<'_>) -> Vec<f64> {
    let first = |chain: &[ElementSpec]| {
        let link = chain.iter().find_map(|element| match element {
            ElementSpec::Link { schedule, .. } => Some(schedule),
            _ => None,
        });
        link.map_or(f64::INFINITY, |schedule| opportunities(schedule, spec.duration, traces))
    };
    spec.directions().into_iter().map(|(_, elements)| first(elements)).collect()
}

/// Return the delivery opportunities within `duration`.
fn opportunities(schedule: &ScheduleSpec, duration: TimeSpan, traces: Traces<'_>) -> f64 {
    match schedule {
        ScheduleSpec::Trace { name, once } => traces(name).map_or(0.0, |trace| {
            let periods = duration.0 as f64 / trace.period().0 as f64;
            trace.len() as f64 * if *once { periods.min(1.0) } else { periods }
        }),
        ScheduleSpec::Rate { rate } => {
            let steps = rate.steps();
            let ends = steps.iter().skip(1).map(|(at, _)| at.0).chain([duration.0]);
            let bits = |((at, rate), end): (&(Timestamp, Rate), u64)| {
                rate.0 as f64 * end.min(duration.0).saturating_sub(at.0) as f64 / 1e9
            };
            steps.iter().zip(ends).map(bits).sum::<f64>() / (8.0 * f64::from(OPPORTUNITY_BYTES))
        }
    }
}
