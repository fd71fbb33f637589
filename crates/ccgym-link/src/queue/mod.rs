//! Queue disciplines: what waits, and what is dropped or marked. One per file.
//!
//! To add one: a file here ([`fifo::Rule`] if it keeps one queue), its `mod` line, a variant of [`QueueSpec`], and its arms in [`from_spec`] and [`check`].

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::SpecError;
use dyn_clone::DynClone;

use crate::link::waiting::Limits;
use crate::spec::{
    LimitSpec, QueueSpec, MAX_COUPLING, MAX_FLOW_QUEUES, MAX_GAIN, MAX_SIGNED, MIN_COUPLING, MIN_UPDATE, MIN_WEIGHT,
};

mod codel;
mod control_law;
mod drophead;
mod dualpi2;
mod fifo;
mod fq_codel;
mod mahimahi_codel;
mod mahimahi_pie;
mod pi;
mod pie;
mod red;
mod step;
mod store;

use control_law::ControlLaw;
use fifo::{Fifo, NoRule};

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

impl Queued {
    /// Set congestion-experienced, and count it if that is new. False if the flow does not understand ECN.
    pub fn mark(&mut self, marked: &mut u64) -> bool {
        let ecn = &mut self.datagram.ecn;
        if !ecn.is_capable() {
            return false;
        }
        *marked += u64::from(*ecn != Ecn::Ce);
        *ecn = Ecn::Ce;
        true
    }
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
        QueueSpec::Infinite => Box::new(Fifo::new(Limits::NONE, NoRule)),
        QueueSpec::Droptail { limit } => Box::new(Fifo::new(limit, NoRule)),
        QueueSpec::Drophead { limit } => Box::new(drophead::Drophead::new(limit)),
        QueueSpec::MahimahiCodel { limit, target, interval } => {
            let rule = mahimahi_codel::MahimahiCodel::new(target.as_millis(), interval.as_millis());
            Box::new(Fifo::new(limit, rule))
        }
        QueueSpec::MahimahiPie { limit, qdelay_ref, max_burst } => {
            let (reference_ms, max_burst_ms) = (qdelay_ref.as_millis(), max_burst.as_millis());
            Box::new(Fifo::new(limit, mahimahi_pie::MahimahiPie::new(reference_ms, max_burst_ms, seed, index)))
        }
        QueueSpec::Codel { limit, target, interval, ecn, ns3 } => {
            Box::new(Fifo::new(limit, ControlLaw::new(*target, *interval, *ecn, *ns3)))
        }
        QueueSpec::FqCodel { limit, target, interval, quantum, flows, ecn } => {
            let law = ControlLaw::new(*target, *interval, *ecn, false);
            Box::new(fq_codel::FqCodel::new(limit, law, *quantum, *flows, seed, index))
        }
        QueueSpec::Pie { limit, target, interval, alpha, beta, max_burst, ecn, mark_up_to } => {
            let controller = pi::PiController::new(*target, *interval, *alpha, *beta);
            let mark_up_to = ecn.then_some(*mark_up_to);
            Box::new(Fifo::new(limit, pie::Pie::new(controller, *max_burst, mark_up_to, (seed, index))))
        }
        QueueSpec::Red { limit, min, max, max_probability, weight, gentle, ecn } => {
            let settings = red::Settings {
                min: f64::from(*min),
                max: f64::from(*max),
                max_probability: *max_probability,
                weight: *weight,
                gentle: *gentle,
                ecn: *ecn,
            };
            Box::new(Fifo::new(limit, red::Red::new(settings, seed, index)))
        }
        QueueSpec::Step { limit, threshold, delay } => {
            Box::new(Fifo::new(limit, step::Step::new(threshold.as_ref(), *delay)))
        }
        QueueSpec::Dualpi2 { limit, target, interval, alpha, beta, coupling, step, classic_share } => {
            let controller = pi::PiController::new(*target, *interval, *alpha, *beta);
            Box::new(dualpi2::DualPi2::new(limit, controller, *coupling, *step, *classic_share, (seed, index)))
        }
    }
}

/// Check the parameters of a queue.
///
/// # Errors
/// For parameters out of range.
pub fn check(spec: &QueueSpec) -> Result<(), SpecError> {
    spec.limit().map_or(Ok(()), |limit| check_limit("link.queue.limit", limit))?;
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
        QueueSpec::Pie { target, interval, alpha, beta, mark_up_to, .. } => {
            check_controller(*target, *interval, *alpha, *beta)?;
            check_number("link.queue.mark_up_to", *mark_up_to, 0.0, 1.0)
        }
        QueueSpec::Red { min, max, max_probability, weight, .. } => {
            check_range("link.queue.min", u64::from(*min), 1, u64::from(MAX_SIGNED))?;
            let expected = "more than min; a usual max is three times min";
            SpecError::ensure(max > min, "link.queue.max", format_args!("{max} with min {min}"), expected)?;
            check_number("link.queue.max_probability", *max_probability, 0.0, 1.0)?;
            check_number("link.queue.weight", *weight, MIN_WEIGHT, 1.0)
        }
        QueueSpec::Step { threshold, delay, .. } => {
            let expected = "`threshold`, `delay` or both; say above what to mark";
            SpecError::ensure(threshold.is_some() || delay.is_some(), "link.queue", "step without either", expected)?;
            threshold.as_ref().map_or(Ok(()), |limit| check_limit("link.queue.threshold", limit))
        }
        QueueSpec::Dualpi2 { target, interval, alpha, beta, coupling, classic_share, .. } => {
            check_controller(*target, *interval, *alpha, *beta)?;
            check_number("link.queue.coupling", *coupling, MIN_COUPLING, MAX_COUPLING)?;
            check_number("link.queue.classic_share", *classic_share, 0.0, 1.0)
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

/// The PI controller of PIE and DualPI2.
fn check_controller(target: TimeSpan, interval: TimeSpan, alpha: f64, beta: f64) -> Result<(), SpecError> {
    check_range("link.queue.target", target.0, 1, u64::MAX)?;
    check_range("link.queue.interval", interval.0, MIN_UPDATE, u64::MAX)?;
    check_number("link.queue.alpha", alpha, 0.0, MAX_GAIN)?;
    check_number("link.queue.beta", beta, 0.0, MAX_GAIN)
}

fn check_limit(at: &str, limit: &LimitSpec) -> Result<(), SpecError> {
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

fn check_number(at: &str, value: f64, min: f64, max: f64) -> Result<(), SpecError> {
    let expected = format!("{min} to {max}; leave it out for the usual value");
    SpecError::ensure((min..=max).contains(&value), at, value, expected)
}

#[cfg(test)]
mod tests;
