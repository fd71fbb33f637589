//! Builds elements from descriptions.

use std::sync::Arc;

use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;
use ccgym_core::{schema, Error};

use crate::element::{Counters, Fate, LinkEvent, PathElement, Release};
use crate::elements::{Bleach, Delay, Duplicate, GilbertElliott, Intermittent, Jitter, Loss, OnOff};
use crate::link::rate_clock::RateClock;
use crate::link::rate_server::RateServer;
use crate::link::trace_clock::TraceClock;
use crate::link::trace_server::TraceServer;
use crate::link::waiting::Limits;
use crate::link::{FifoLink, HeldLink};
use crate::queue;
use crate::spec::{ElementSpec, QueueSpec, ScheduleSpec};
use crate::trace::DeliveryTrace;

/// Looks a trace up by name.
pub type Traces<'a> = &'a dyn Fn(&str) -> Option<Arc<DeliveryTrace>>;

/// A path element; the frequent ones without indirection, so that the compiler can inline them.
#[derive(Clone)]
pub enum Element {
    /// A rate with an infinite or drop-tail queue.
    RateFifo(FifoLink<RateClock>),
    /// A delivery trace with an infinite or drop-tail queue.
    TraceFifo(FifoLink<TraceClock>),
    /// A rate with a queue that decides at dequeue.
    RateHeld(HeldLink<RateServer>),
    /// A delivery trace with a queue that decides at dequeue.
    TraceHeld(HeldLink<TraceServer>),
    /// A fixed delay.
    Delay(Delay),
    /// Independent random loss.
    Loss(Loss),
    /// Any other.
    Other(Box<dyn PathElement>),
}

macro_rules! each {
    ($self:expr, $element:ident => $body:expr) => {
        match $self {
            Element::RateFifo($element) => $body,
            Element::TraceFifo($element) => $body,
            Element::RateHeld($element) => $body,
            Element::TraceHeld($element) => $body,
            Element::Delay($element) => $body,
            Element::Loss($element) => $body,
            Element::Other($element) => $body,
        }
    };
}

impl Element {
    fn offer_other(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        each!(self, e => e.offer(now, datagram))
    }
}

impl PathElement for Element {
    #[inline(always)]
    fn offer(&mut self, now: Timestamp, datagram: &mut Datagram) -> Fate {
        // These predictable comparisons come before the jump table.
        match self {
            Self::RateFifo(link) => link.offer(now, datagram),
            Self::TraceFifo(link) => link.offer(now, datagram),
            Self::Loss(loss) => loss.offer(now, datagram),
            Self::RateHeld(link) => link.offer(now, datagram),
            other => other.offer_other(now, datagram),
        }
    }
    #[inline(always)]
    fn next_event(&self) -> Timestamp {
        match self {
            Self::RateHeld(link) => link.next_event(),
            Self::TraceHeld(link) => link.next_event(),
            _ => Timestamp::NEVER,
        }
    }
    #[inline(always)]
    fn release(&mut self, now: Timestamp) -> Option<Release> {
        match self {
            Self::RateHeld(link) => link.release(now),
            Self::TraceHeld(link) => link.release(now),
            _ => None,
        }
    }
    #[inline]
    fn preserves_order(&self) -> bool {
        each!(self, e => e.preserves_order())
    }
    #[inline]
    fn may_hold(&self) -> bool {
        matches!(self, Self::RateHeld(_) | Self::TraceHeld(_))
    }
    fn may_duplicate(&self) -> bool {
        each!(self, e => e.may_duplicate())
    }
    fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        each!(self, e => e.backlog(now))
    }
    fn counters(&self) -> Counters {
        each!(self, e => e.counters())
    }
    fn held_bytes(&self) -> (usize, usize) {
        each!(self, e => e.held_bytes())
    }
    fn record_events(&mut self) {
        each!(self, e => e.record_events());
    }
    fn take_events(&mut self, until: Timestamp) -> Vec<LinkEvent> {
        each!(self, e => e.take_events(until))
    }
}

/// Build an element. Random streams are named by kind and `index`, which must differ between elements of a path.
///
/// # Errors
/// Parameters out of range, and unknown traces.
pub fn build_element(spec: &ElementSpec, seed: u64, index: u64, traces: Traces<'_>) -> Result<Element, Error> {
    schema::check("", spec)?;
    Ok(match spec {
        ElementSpec::Link { schedule, queue, overhead, device_packets } => {
            queue::check(queue)?;
            match schedule {
                ScheduleSpec::Trace { name, once } => {
                    let expected = "0 with a trace; leave it out, or use a rate schedule";
                    Error::ensure(*device_packets == 0, "link.device_packets", device_packets, expected)?;
                    let trace = traces(name).ok_or_else(|| {
                        let expected = "the name of a known trace; check the name, or provide the trace";
                        Error::new("link.schedule.name", format!("{name:?}"), expected)
                    })?;
                    match eager(queue) {
                        Some(limits) => {
                            Element::TraceFifo(FifoLink::new(TraceClock::new(&trace, *once), limits, *overhead, 0))
                        }
                        None => {
                            let queue = queue::from_spec(queue, seed, index);
                            Element::TraceHeld(HeldLink::new(TraceServer::new(&trace, *once), queue, *overhead))
                        }
                    }
                }
                ScheduleSpec::Rate { rate } => {
                    schema::check("link.schedule.rate", rate)?;
                    match eager(queue) {
                        Some(limits) => {
                            Element::RateFifo(FifoLink::new(RateClock::new(rate), limits, *overhead, *device_packets))
                        }
                        None => {
                            let queue = queue::from_spec(queue, seed, index);
                            Element::RateHeld(HeldLink::new(RateServer::new(rate, *device_packets), queue, *overhead))
                        }
                    }
                }
            }
        }
        ElementSpec::Delay { delay, tick } => Element::Delay(Delay::new(delay, *tick)),
        ElementSpec::Loss { probability } => Element::Loss(Loss::new(probability, seed, index)),
        ElementSpec::Duplicate { probability } => other(Duplicate::new(probability, seed, index)),
        ElementSpec::Bleach { probability } => other(Bleach::new(probability, seed, index)),
        ElementSpec::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
            let transitions = (*good_to_bad, *bad_to_good);
            other(GilbertElliott::new(transitions, (*loss_good, *loss_bad), seed, index))
        }
        ElementSpec::OnOff { mean_on, mean_off, hold } => other(OnOff::new((*mean_on, *mean_off), *hold, seed, index)),
        ElementSpec::Intermittent { on, off } => other(Intermittent::new(*on, *off)),
        ElementSpec::Jitter { distribution, reorder, flows } => {
            let zero = flows.contains(&0);
            Error::ensure(!zero, "jitter.flows", 0, "numbers of flows, from 1")?;
            other(Jitter::new(distribution.clone(), *reorder, flows, seed, index))
        }
    })
}

fn other(element: impl PathElement + 'static) -> Element {
    Element::Other(Box::new(element))
}

/// Return the limits of a queue whose departures are known at arrival.
fn eager(queue: &QueueSpec) -> Option<Limits> {
    match queue {
        QueueSpec::Infinite => Some(Limits::NONE),
        QueueSpec::Droptail { limit } => Some(limit.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return the element, or the place of the error.
    fn try_json(json: &str) -> Result<Element, String> {
        let spec: ElementSpec = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let trace = Arc::new(DeliveryTrace::from_ms("12mbps", vec![1]).map_err(|e| e.place)?);
        build_element(&spec, 1, 0, &|name| (name == "12mbps").then(|| Arc::clone(&trace))).map_err(|e| e.place)
    }

    #[test]
    fn builds_what_json_describes() {
        let queues = [
            r#"{"kind":"infinite"}"#,
            r#"{"kind":"droptail","limit":{"packets":94}}"#,
            r#"{"kind":"drophead","limit":{"bytes":9000}}"#,
            r#"{"kind":"mahimahi_codel","limit":{"packets":94},"target":5000000,"interval":100000000}"#,
            r#"{"kind":"mahimahi_pie","limit":{"packets":94},"qdelay_ref":20000000,"max_burst":100000000}"#,
            r#"{"kind":"codel","limit":{"packets":94},"target":5000000,"interval":100000000,"ecn":true}"#,
            r#"{"kind":"fq_codel","limit":{"packets":94},"target":5000000,"interval":100000000,"quantum":1514,"flows":64}"#,
            r#"{"kind":"pie","limit":{"packets":94},"target":20000000,"ecn":true}"#,
            r#"{"kind":"red","limit":{"bytes":90000},"min":10,"max":30,"gentle":false}"#,
            r#"{"kind":"step","threshold":{"packets":20}}"#,
            r#"{"kind":"step","limit":{"packets":94},"delay":1000000}"#,
            r#"{"kind":"dualpi2","step":500000,"coupling":1.5}"#,
        ];
        let schedules = [
            r#"{"kind":"trace","name":"12mbps"}"#,
            r#"{"kind":"rate","rate":12000000}"#,
            r#"{"kind":"rate","rate":[[0,12000000],[1000000000,0],[2000000000,6000000]]}"#,
        ];
        for queue in queues {
            for schedule in schedules {
                let json = format!(r#"{{"kind":"link","schedule":{schedule},"queue":{queue},"overhead":4}}"#);
                assert!(try_json(&json).is_ok(), "{json}: {:?}", try_json(&json).err());
            }
        }
        for json in [
            r#"{"kind":"delay","delay":51000000,"tick":1000000}"#,
            r#"{"kind":"loss","probability":0.0006}"#,
            r#"{"kind":"duplicate","probability":0.01}"#,
            r#"{"kind":"bleach"}"#,
            r#"{"kind":"gilbert_elliott","good_to_bad":0.01,"bad_to_good":0.2,"loss_bad":0.5}"#,
            r#"{"kind":"on_off","mean_on":1000000000,"mean_off":1000000000}"#,
            r#"{"kind":"intermittent","on":1000000000,"off":1000000000}"#,
            r#"{"kind":"jitter","distribution":{"kind":"uniform","max":1000000}}"#,
        ] {
            assert!(try_json(json).is_ok(), "{json}: {:?}", try_json(json).err());
        }
    }

    #[test]
    fn errors_say_where_what_and_what_to_do() {
        let link = |rest: &str| format!(r#"{{"kind":"link",{rest}}}"#);
        let infinite = r#""queue":{"kind":"infinite"}"#;
        let rate = r#""schedule":{"kind":"rate","rate":12000000}"#;
        for (json, place) in [
            (link(&format!(r#""schedule":{{"kind":"trace","name":"13mbps"}},{infinite}"#)), "link.schedule.name"),
            (link(&format!(r#""schedule":{{"kind":"rate","rate":[]}},{infinite}"#)), "link.schedule.rate"),
            (link(&format!(r#""schedule":{{"kind":"rate","rate":[[5,1]]}},{infinite}"#)), "link.schedule.rate"),
            (link(&format!(r#"{rate},"queue":{{"kind":"droptail","limit":{{}}}}"#)), "link.queue.limit"),
            (
                link(&format!(r#"{rate},"queue":{{"kind":"droptail","limit":{{"packets":0}}}}"#)),
                "link.queue.limit.packets",
            ),
            (
                link(&format!(r#""schedule":{{"kind":"trace","name":"12mbps"}},{infinite},"device_packets":3"#)),
                "link.device_packets",
            ),
            (link(&format!(r#"{rate},{infinite},"overhead":99999"#)), "link.overhead"),
            (link(&format!(r#"{rate},"queue":{{"kind":"step"}}"#)), "link.queue"),
            (
                link(&format!(r#"{rate},"queue":{{"kind":"step","threshold":{{"bytes":0}}}}"#)),
                "link.queue.threshold.bytes",
            ),
            (link(&format!(r#"{rate},"queue":{{"kind":"red","min":20}}"#)), "link.queue.max"),
            (link(&format!(r#"{rate},"queue":{{"kind":"red","weight":0.0}}"#)), "link.queue.weight"),
            (link(&format!(r#"{rate},"queue":{{"kind":"pie","interval":5}}"#)), "link.queue.interval"),
            (link(&format!(r#"{rate},"queue":{{"kind":"dualpi2","beta":-1}}"#)), "link.queue.beta"),
            (r#"{"kind":"loss","probability":1.5}"#.into(), "loss.probability"),
            (r#"{"kind":"loss","probability":[[0,0.1],[5,2.0]]}"#.into(), "loss.probability[1]"),
            (r#"{"kind":"duplicate","probability":-0.5}"#.into(), "duplicate.probability"),
            (r#"{"kind":"bleach","probability":2}"#.into(), "bleach.probability"),
            (r#"{"kind":"delay","delay":18446744073709551615}"#.into(), "delay.delay"),
            (r#"{"kind":"on_off","mean_on":0,"mean_off":5000}"#.into(), "on_off.mean_on"),
            (r#"{"kind":"intermittent","on":0,"off":5000}"#.into(), "intermittent.on"),
        ] {
            assert_eq!(try_json(&json).err().as_deref(), Some(place), "{json}");
        }
    }
}
