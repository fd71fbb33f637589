//! Queue disciplines: what waits, and what is dropped or marked. One per file.
//!
//! To add one: a file here, its `mod` line, a variant of [`QueueSpec`], and its arms in [`from_spec`] and [`check`].

use ccgym_core::packet::Datagram;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::SpecError;
use dyn_clone::DynClone;

use crate::spec::{LimitSpec, QueueSpec, MAX_FLOW_QUEUES, MAX_SIGNED};

mod codel;
mod control_law;
mod drophead;
mod droptail;
mod fq_codel;
mod infinite;
mod mahimahi_codel;
mod mahimahi_pie;
mod store;

/// A packet in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// The packet; a queue may set its ECN mark.
    pub datagram: Datagram,
    /// Bytes it costs on the wire: IP length and the link's overhead.
    pub wire: u32,
    /// When it arrived at the link.
    pub arrived: Timestamp,
}

/// A queue that decides what is sent next and what is lost. Times never decrease from call to call.
pub trait QueueDiscipline: DynClone + Send + Sync {
    /// A packet arrives. False: it is dropped. Others dropped on its account are appended to `dropped`.
    fn enqueue(&mut self, now: Timestamp, packet: Queued, dropped: &mut Vec<Queued>) -> bool;

    /// The link takes a packet at `now`; those dropped on the way are appended to `dropped`.
    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued>;

    /// Packets and wire bytes that wait.
    fn backlog(&self) -> (u64, u64);

    /// Packets marked with congestion-experienced so far.
    fn marked(&self) -> u64 {
        0
    }
}

dyn_clone::clone_trait_object!(QueueDiscipline);

/// The queue of a description that [`check`] accepts; `seed` and `index` name its random stream.
pub fn from_spec(spec: &QueueSpec, seed: u64, index: u64) -> Box<dyn QueueDiscipline> {
    match spec {
        QueueSpec::Infinite => Box::new(infinite::Infinite::new()),
        QueueSpec::Droptail { limit } => Box::new(droptail::Droptail::new(limit)),
        QueueSpec::Drophead { limit } => Box::new(drophead::Drophead::new(limit)),
        QueueSpec::MahimahiCodel { limit, target, interval } => {
            Box::new(mahimahi_codel::MahimahiCodel::new(limit, target.as_millis(), interval.as_millis()))
        }
        QueueSpec::MahimahiPie { limit, qdelay_ref, max_burst } => {
            let (reference_ms, max_burst_ms) = (qdelay_ref.as_millis(), max_burst.as_millis());
            Box::new(mahimahi_pie::MahimahiPie::new(limit, reference_ms, max_burst_ms, seed, index))
        }
        QueueSpec::Codel { limit, target, interval, ecn } => {
            Box::new(codel::Codel::new(limit, *target, *interval, *ecn))
        }
        QueueSpec::FqCodel { limit, target, interval, quantum, flows, ecn } => {
            let law = control_law::ControlLaw::new(*target, *interval, *ecn);
            Box::new(fq_codel::FqCodel::new(limit, law, *quantum, *flows, seed, index))
        }
    }
}

/// Check the parameters of a queue.
///
/// # Errors
/// For parameters out of range.
pub fn check(spec: &QueueSpec) -> Result<(), SpecError> {
    spec.limit().map_or(Ok(()), check_limit)?;
    match spec {
        QueueSpec::Infinite | QueueSpec::Droptail { .. } | QueueSpec::Drophead { .. } => Ok(()),
        QueueSpec::MahimahiCodel { target, interval, .. } => {
            check_milliseconds("link.queue.target", *target)?;
            check_milliseconds("link.queue.interval", *interval)
        }
        QueueSpec::MahimahiPie { qdelay_ref, max_burst, .. } => {
            check_milliseconds("link.queue.qdelay_ref", *qdelay_ref)?;
            check_milliseconds("link.queue.max_burst", *max_burst)
        }
        QueueSpec::Codel { target, interval, .. } => {
            check_range("link.queue.target", target.0, 1, u64::MAX)?;
            check_range("link.queue.interval", interval.0, 1, u64::MAX)
        }
        QueueSpec::FqCodel { target, interval, quantum, flows, .. } => {
            check_range("link.queue.target", target.0, 1, u64::MAX)?;
            check_range("link.queue.interval", interval.0, 1, u64::MAX)?;
            check_range("link.queue.quantum", u64::from(*quantum), 1, u64::from(MAX_SIGNED))?;
            check_range("link.queue.flows", u64::from(*flows), 1, u64::from(MAX_FLOW_QUEUES))
        }
    }
}

/// Mahimahi keeps these in 32 bits, and signed where it subtracts.
const MAX_MS: u64 = i32::MAX as u64;

fn check_milliseconds(at: &str, span: TimeSpan) -> Result<(), SpecError> {
    let whole = TimeSpan::from_millis(1).0;
    let good = span.0 % whole == 0 && (1..=MAX_MS).contains(&(span.0 / whole));
    let expected = format!("whole milliseconds, 1 to {MAX_MS}; mahimahi counts whole milliseconds");
    SpecError::ensure(good, at, format!("{} ns", span.0), expected)
}

fn check_limit(limit: &LimitSpec) -> Result<(), SpecError> {
    let at = "link.queue.limit";
    let any = limit.packets.is_some() || limit.bytes.is_some();
    SpecError::ensure(any, at, "no limit", "`packets`, `bytes` or both; set one, or use the queue `infinite`")?;
    for (name, value) in [("packets", limit.packets), ("bytes", limit.bytes)] {
        let expected = "at least 1; leave it out for no limit (as mahimahi reads 0)";
        SpecError::ensure(value != Some(0), &format!("{at}.{name}"), 0, expected)?;
    }
    Ok(())
}

fn check_range(at: &str, value: u64, min: u64, max: u64) -> Result<(), SpecError> {
    let expected = if max == u64::MAX { format!("at least {min}") } else { format!("{min} to {max}") };
    SpecError::ensure((min..=max).contains(&value), at, value, expected)
}

#[cfg(test)]
mod tests;
