//! Queue disciplines: they decide which packets wait, are dropped or marked. One per file.
//!
//! To add one: a file here ([`fifo::Rule`] if it keeps one queue), its `mod` line, a variant of [`QueueSpec`], and its arm in [`from_spec`].

use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;
use ccgym_core::Error;
use dyn_clone::DynClone;

use crate::link::waiting::Limits;
use crate::spec::QueueSpec;

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
    /// Bytes on the wire: IP length and the link's overhead.
    pub wire: u32,
    /// Arrival at the link.
    pub arrived: Timestamp,
}

/// A queue that decides which packet is sent next and which are lost. Times never decrease from call to call.
pub trait QueueDiscipline: DynClone + Send + Sync {
    /// Enqueue a packet. False: it is dropped. Other packets dropped because of it are appended to `dropped`.
    fn enqueue(&mut self, now: Timestamp, packet: Queued, dropped: &mut Vec<Queued>) -> bool;

    /// Return the packet that the link takes at `now`; dropped ones are appended to `dropped`.
    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued>;

    /// Return packets and wire bytes that wait.
    fn backlog(&self) -> (u64, u64);

    /// Return the number of packets marked with congestion-experienced.
    fn marked(&self) -> u64 {
        0
    }
}

dyn_clone::clone_trait_object!(QueueDiscipline);

/// Make the queue of a description that [`check`] accepts; `seed` and `index` name its random stream.
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

/// Check constraints that the schema does not express.
///
/// # Errors
/// Parameters that do not fit together.
pub fn check(spec: &QueueSpec) -> Result<(), Error> {
    match spec {
        QueueSpec::Red { min, max, .. } => {
            let expected = "more than min; a usual max is three times min";
            Error::ensure(max > min, "link.queue.max", format_args!("{max} with min {min}"), expected)
        }
        QueueSpec::Step { threshold, delay, .. } => {
            let expected = "`threshold`, `delay` or both; say above what to mark";
            Error::ensure(threshold.is_some() || delay.is_some(), "link.queue", "step without either", expected)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
