//! Ground truth about the path of a run, from its specification: capacity, queue, number of flows. For experts,
//! critics, rewards that use it, and reports; never for a deployed policy.

use std::ops::Range;

use ccgym_agent::GroundTruth;
use ccgym_core::units::{Rate, TimeSpan, Timestamp};
use ccgym_path::{ElementSpec, Param, QueueSpec};

use crate::route::Route;
use crate::spec::{FlowSpec, RunSpec};

/// Computes the ground truth over any interval of a run.
#[derive(Clone, Debug)]
pub struct GroundTruthModel {
    /// One per flow.
    routes: Vec<RouteTruth>,
    /// Start and stop of each flow.
    active: Vec<Range<Timestamp>>,
}

/// Ground truth about the route of one flow.
#[derive(Clone, Debug)]
struct RouteTruth {
    /// Steps of the capacity of its slowest link.
    capacity: Vec<(Timestamp, Rate)>,
    /// Propagation RTT, including the flow's own.
    base_rtt: TimeSpan,
    /// Queue limit at the bottleneck, packets.
    queue_limit: f64,
    loss: Vec<Param<f64>>,
}

impl GroundTruthModel {
    /// Make the model of the run of `spec`; `bottlenecks` has the direction of each flow's bottleneck.
    #[must_use]
    pub fn of(spec: &RunSpec, bottlenecks: &[usize]) -> Self {
        let packet = spec.flows.first().map_or(1500, |f| f.mss + f.header);
        let route = |(i, flow): (usize, &FlowSpec)| {
            let there = spec.route(i).unwrap_or_else(|_| Route::plain()).there;
            let loss = spec.elements(&there).filter_map(ElementSpec::loss).collect();
            let limits = spec.elements(&bottlenecks[i..=i]).filter_map(|element| match element {
                ElementSpec::Link { queue, overhead, .. } => Some(limit_packets(queue, packet + overhead)),
                _ => None,
            });
            let queue_limit = limits.fold(f64::INFINITY, f64::min);
            let facts = spec.facts_of(i);
            let base_rtt = facts.map_or(TimeSpan::ZERO, |f| f.base_rtt) + flow.extra_rtt;
            RouteTruth { capacity: facts.map(|f| f.capacity.clone()).unwrap_or_default(), base_rtt, queue_limit, loss }
        };
        Self {
            routes: spec.flows.iter().enumerate().map(route).collect(),
            active: spec.flows.iter().map(|f| f.start..f.stop.unwrap_or(Timestamp::NEVER)).collect(),
        }
    }

    /// Return the number of flows scheduled to run at `t`.
    #[must_use]
    pub fn active_flows(&self, t: Timestamp) -> usize {
        self.active.iter().filter(|active| active.contains(&t)).count()
    }

    /// Return the ground truth of `flow` over `from..to`, with `backlog` packets at the bottleneck at the end and
    /// `active_flows` that share it. The specification does not give the deliveries of the others.
    #[must_use]
    pub fn over(&self, flow: usize, from: Timestamp, to: Timestamp, backlog: f64, active_flows: usize) -> GroundTruth {
        let route = &self.routes[flow];
        let link_rate = mean_capacity(&route.capacity, from, to);
        let flows = active_flows.max(1);
        GroundTruth {
            link_rate,
            base_rtt: route.base_rtt.as_secs_f64(),
            backlog,
            queue_limit: route.queue_limit,
            loss: 1.0 - route.loss.iter().map(|p| 1.0 - at(p, to)).product::<f64>(),
            flows: flows as u32,
            fair_share: link_rate / flows as f64,
            rate_spread: if flows > 1 { f64::NAN } else { 0.0 },
        }
    }
}

/// Return the mean capacity over `from..to`, bit/s; the capacity at `to` if the interval is empty.
fn mean_capacity(capacity: &[(Timestamp, Rate)], from: Timestamp, to: Timestamp) -> f64 {
    let [first, ..] = capacity else { return 0.0 };
    if capacity.len() == 1 {
        return first.1 .0 as f64;
    }
    let in_force = |t: Timestamp| capacity.partition_point(|(at, _)| *at <= t).max(1) - 1;
    if from >= to {
        return capacity[in_force(to)].1 .0 as f64;
    }
    let mut bits = 0.0;
    for i in in_force(from)..=in_force(to) {
        let begin = capacity[i].0.max(from);
        let end = capacity.get(i + 1).map_or(to, |next| next.0.min(to));
        bits += capacity[i].1 .0 as f64 * end.since(begin).as_secs_f64();
    }
    bits / to.since(from).as_secs_f64()
}

fn at(steps: &Param<f64>, t: Timestamp) -> f64 {
    match steps {
        Param::Constant(p) => *p,
        Param::Steps(steps) => steps[steps.partition_point(|(from, _)| *from <= t).max(1) - 1].1,
    }
}

/// Return the smaller of a queue's limits in packets of `packet` bytes.
fn limit_packets(queue: &QueueSpec, packet: u32) -> f64 {
    let limit = queue.limit().copied().unwrap_or_default();
    let packets = limit.packets.map_or(f64::INFINITY, |p| p as f64);
    let bytes = limit.bytes.map_or(f64::INFINITY, |b| b as f64 / f64::from(packet));
    packets.min(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::loss_before_link;
    use serde_json::json;

    fn model() -> GroundTruthModel {
        let spec: RunSpec = serde_json::from_value(json!({
            "duration": 10_000_000_000u64,
            "uplink": [
                {"kind": "link", "schedule": {"kind": "rate", "rate": 8_000_000},
                 "queue": {"kind": "droptail", "limit": {"packets": 40, "bytes": 30_000}}},
                {"kind": "loss", "probability": 0.1},
                {"kind": "gilbert_elliott", "good_to_bad": 0.1, "bad_to_good": 0.3, "loss_good": 0.0, "loss_bad": 0.4},
            ],
            "downlink": [],
            "flows": [{"scheme": "reno", "extra_rtt": 10_000_000}],
            "facts": {"capacity": [[0, 8_000_000], [1_000_000_000u64, 16_000_000]], "base_rtt": 40_000_000},
        }))
        .unwrap();
        GroundTruthModel::of(&spec, &[0])
    }

    #[test]
    fn capacity_is_the_mean_over_the_interval() {
        let model = model();
        let at = |from, to| {
            mean_capacity(&model.routes[0].capacity, Timestamp::from_millis(from), Timestamp::from_millis(to))
        };
        assert_eq!((at(0, 0), at(1000, 1000)), (8e6, 16e6));
        assert_eq!(at(100, 600), 8e6);
        assert!((at(500, 1500) - 12e6).abs() < 1e-6);
        assert!((at(0, 4000) - 14e6).abs() < 1e-6);
    }

    #[test]
    fn the_queue_is_that_of_the_bottleneck() {
        let link = |name: &str, packets: u64| {
            json!({"name": name, "downlink": [], "uplink": [
                {"kind": "link", "schedule": {"kind": "rate", "rate": 1_000_000},
                 "queue": {"kind": "droptail", "limit": {"packets": packets}}},
                {"kind": "loss", "probability": 0.1}]})
        };
        let facts = json!({"capacity": [[0, 1_000_000]], "base_rtt": 10_000_000});
        let spec: RunSpec = serde_json::from_value(json!({
            "duration": 1, "uplink": [], "downlink": [], "links": [link("a", 5), link("b", 50)], "facts": facts,
            "flows": [{"scheme": "reno"}, {"scheme": "reno", "route": ["a"],
                       "facts": {"capacity": [[0, 2_000_000]], "base_rtt": 5_000_000}}],
        }))
        .unwrap();
        let model = GroundTruthModel::of(&spec, &[2, 0]);
        let of = |flow| model.over(flow, Timestamp::ZERO, Timestamp::ZERO, 0.0, 2);
        assert_eq!((of(0).queue_limit, of(0).link_rate, of(0).base_rtt), (50.0, 1e6, 0.01));
        assert_eq!((of(1).queue_limit, of(1).link_rate, of(1).base_rtt), (5.0, 2e6, 0.005));
        assert!((of(0).loss - 0.19).abs() < 1e-12 && (of(1).loss - 0.1).abs() < 1e-12);
    }

    #[test]
    fn only_steady_loss_before_the_link_counts() {
        let of = |uplink: serde_json::Value| {
            let elements: Vec<ElementSpec> = serde_json::from_value(uplink).unwrap();
            loss_before_link(elements.iter())
        };
        let link = json!({"kind": "link", "schedule": {"kind": "rate", "rate": 1}, "queue": {"kind": "infinite"}});
        let loss = |p: f64| json!({"kind": "loss", "probability": p});
        assert!((of(json!([loss(0.1), loss(0.5), link])) - 0.55).abs() < 1e-12);
        assert_eq!(of(json!([link, loss(0.1)])), 0.0);
        assert_eq!(of(json!([{"kind": "loss", "probability": [[0, 0.5]]}, link])), 0.0);
    }

    #[test]
    fn limits_and_losses_combine() {
        let t = model().over(0, Timestamp::ZERO, Timestamp::from_millis(500), 7.0, 2);
        assert_eq!((t.queue_limit, t.backlog, t.flows), (20.0, 7.0, 2));
        assert!((t.loss - (1.0 - 0.9 * 0.9)).abs() < 1e-12);
        assert!((t.base_rtt - 0.05).abs() < 1e-12);
        assert_eq!(t.fair_share, 4e6);
    }
}
