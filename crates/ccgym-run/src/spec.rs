//! The description of a run, as data (JSON).
//!
//! Times are nanoseconds, rates bits per second, sizes bytes unless a name says packets. The fields of a flow for users
//! are declared here once, with range, default and help; the models of `ccgym.config.models` are built from it.

use std::sync::Arc;

use ccgym_core::congestion_control::{CongestionControl, InitContext, KnownPath};
use ccgym_core::ns3;
use ccgym_core::receiver::AckPolicy;
use ccgym_core::sender::{RecoveryRule, SenderConfig};
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::{defaults, schema, Error, Misbehavior, ReceiverConfig, Rng};
use ccgym_path::{check_copies, Chain, DeliveryTrace, ElementSpec, Param};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod sizes;
mod sources;

pub use sizes::SizeSpec;
pub use sources::{MediaSpec, RequestsSpec, SourceSpec};

/// One run: a path, the flows on it, and what to record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Root of every random stream.
    #[serde(default)]
    pub seed: u64,
    /// Length of the run.
    pub duration: TimeSpan,
    /// Elements that data crosses, in travel order.
    pub uplink: Vec<ElementSpec>,
    /// Elements that acknowledgements cross, in travel order.
    pub downlink: Vec<ElementSpec>,
    /// Links with names that flows have routes over, in place of `uplink` and `downlink`, which are empty then.
    #[serde(default)]
    pub links: Vec<LinkSpec>,
    /// Flows, in order of their index.
    pub flows: Vec<FlowSpec>,
    /// Records of the run.
    #[serde(default)]
    pub record: RecordSpec,
    /// Bytes that the simulation may hold: packets in flight, logs, series, flows.
    #[serde(default = "max_memory")]
    pub max_memory: u64,
    /// The path's capacity and base RTT, for schemes that may know them.
    #[serde(default)]
    pub facts: Option<KnownPath>,
}

/// One of several links: a path with elements of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The name by which routes mention it.
    pub name: String,
    /// Elements that the data of flows which are not reversed crosses, in travel order.
    pub uplink: Vec<ElementSpec>,
    /// Elements that their acknowledgements cross, in travel order.
    pub downlink: Vec<ElementSpec>,
}

/// A flow, however it is steered. Rates have their units; plain times are seconds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Flow")]
pub struct FlowSpec {
    /// Registry name of the scheme.
    #[schemars(skip)]
    pub scheme: String,
    /// Its parameters; defaults for the rest.
    #[serde(default)]
    #[schemars(skip)]
    pub params: Map<String, Value>,
    /// Start.
    #[serde(default)]
    #[schemars(skip)]
    pub start: Timestamp,
    /// End of sending; the end of the run if absent.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub stop: Option<Timestamp>,
    /// Round-trip propagation time of its own access link, added to the path's; half of it counts in the one-way delay
    /// of data. Give this or `rtt`.
    #[serde(default)]
    pub extra_rtt: TimeSpan,
    /// Names of the links that it crosses, in the order in which its data does; acknowledgements come back over the same
    /// ones. Absent: all links of the path, in their order.
    #[serde(default)]
    pub route: Vec<String>,
    /// True if its data crosses its links in the other direction, that of other flows' acknowledgements.
    #[serde(default)]
    pub reverse: bool,
    /// Capacity and base RTT of its own route; of a flow without `route` and `reverse` those of the run if absent.
    #[serde(default)]
    #[schemars(skip)]
    pub facts: Option<KnownPath>,
    /// Transport: `tcp` (reliable, as Linux), `udp` (datagrams with per-packet receipts) or `ns3` (reliable, as ns-3.37).
    #[serde(default)]
    pub profile: Profile,
    /// The application.
    #[serde(default)]
    #[schemars(skip)]
    pub source: SourceSpec,
    /// Acknowledge every n-th packet; 2: delayed acknowledgements.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub ack_every: u32,
    /// … or after this time, the first of both.
    #[serde(default = "forty_ms")]
    pub ack_delay: TimeSpan,
    /// Number of packets at the start that are acknowledged immediately anyway (Linux: 16).
    #[serde(default)]
    pub quick_acks: u32,
    /// A receiver that misbehaves sends each acknowledgement so many times (ACK division, duplicate acknowledgements).
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub ack_copies: u32,
    /// … acknowledges with each packet as many further ones as arrived in the latest so much time (optimistic
    /// acknowledgements, which hide loss, too).
    #[serde(default)]
    pub ack_ahead: TimeSpan,
    /// … or acknowledges all up to the newest packet, and reports no mark.
    #[serde(default)]
    pub hide_loss: bool,
    /// Payload bytes of a full packet.
    #[serde(default = "default_mss")]
    #[schemars(range(min = 1, max = 65_483))]
    pub mss: u32,
    /// Header bytes of a packet from the IP header on; TCP with timestamps has 52.
    #[serde(default = "default_header")]
    #[schemars(range(max = 1000))]
    pub header: u32,
    /// Wire bytes of an acknowledgement.
    #[serde(default = "default_header")]
    #[schemars(skip)]
    pub ack_size: u32,
    /// Bytes that the application may have written and that are not yet acknowledged; what is written and read, and the delay
    /// between the two, is then measured. A reliable profile and the source `greedy`; absent: no bound.
    #[serde(default)]
    #[schemars(range(min = 1), extend("format" = "bytes"))]
    pub send_buffer: Option<u64>,
    /// Rule for sending during fast recovery, for schemes that leave it to the transport: `prr` (RFC 9937: a part of what
    /// arrives; with the profile `ns3` as ns-3.37 has it) or `classic` (RFC 6675: one segment, then nothing until no more
    /// than the reduced window is in flight).
    #[serde(default)]
    pub recovery: RecoveryRule,
    /// Packets sent before the first acknowledgement (RFC 6928: 10).
    #[serde(default = "ten")]
    #[schemars(range(min = 1))]
    pub initial_window: u32,
    /// Its host: `program`, `kernel`, `quic`, or the parts of it with latency. Simulated only.
    #[serde(default)]
    pub host: HostSpec,
    /// Differences from the profile.
    #[serde(default)]
    #[schemars(skip)]
    pub transport: TransportSpec,
}

/// A host with latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Host")]
pub struct HostSpec {
    /// The sender's loop serves a timer, its pacer's for instance, up to this late, at random; packets wake it at once. What
    /// fell due meanwhile leaves together.
    pub wakeup: TimeSpan,
    /// Packets that a paced sender lets leave together, where its scheme does not say more (GSO). A receiver that
    /// acknowledges each packet acknowledges so many at once, if they come within 50 µs (GRO).
    #[schemars(range(min = 1, max = 1000))]
    pub batch: u32,
    /// The sender's loop is blocked by other work: only once in each such period, at a random place of its first half, it
    /// reads what has come and sends what fell due.
    pub busy: TimeSpan,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self { wakeup: TimeSpan::ZERO, batch: 1, busy: TimeSpan::ZERO }
    }
}

/// Differences from a profile; absent fields keep it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportSpec {
    /// True for a handshake before the data (`tcp` and `ns3`: yes).
    #[serde(default)]
    pub handshake: Option<bool>,
}

/// Transport profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Reliable, Linux-like (SACK, RACK, PRR, RTO).
    #[default]
    Tcp,
    /// Datagrams with per-packet receipts; nothing is sent again.
    Udp,
    /// Reliable as ns-3.37: three later segments make a loss (no RACK, no tail loss probe), only a timeout of at least
    /// 1 s detects a lost retransmission, PRR of its own.
    Ns3,
}

/// Records of a run; none by default.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// Log every data packet.
    #[serde(default)]
    pub packets: bool,
    /// Log every acknowledgement, too, if packets are logged.
    #[serde(default = "yes")]
    pub acks: bool,
    /// Sample series at this spacing; zero: none.
    #[serde(default)]
    pub series: TimeSpan,
    /// Log the events of every link.
    #[serde(default)]
    pub link_events: bool,
}

impl Default for RecordSpec {
    fn default() -> Self {
        Self { packets: false, acks: true, series: TimeSpan::ZERO, link_events: false }
    }
}

/// Default memory limit of a simulation, bytes. The same on every machine, so that results depend on none.
pub const MAX_MEMORY: u64 = 4_000_000_000;

/// Time within which packets reach a receiver in one batch: as long as network cards delay an interrupt.
const BATCH_WAIT: TimeSpan = TimeSpan::from_micros(50);

/// Looks up delivery traces by name.
pub type Traces<'a> = &'a dyn Fn(&str) -> Option<Arc<DeliveryTrace>>;

defaults! {
    max_memory: u64 = MAX_MEMORY;
    yes: bool = true;
    one: u32 = 1;
    ten: u32 = 10;
    default_mss: u32 = 1448;
    default_header: u32 = 52;
    forty_ms: TimeSpan = TimeSpan::from_millis(40);
}

impl RunSpec {
    /// Make the context of flow `index` at its start.
    #[must_use]
    pub fn init_context(&self, index: usize, cca: &dyn CongestionControl) -> InitContext {
        let flow = &self.flows[index];
        let size = u64::from(flow.mss + flow.header);
        let path = self.facts_of(index).filter(|_| cca.capabilities().knows_path).map(|facts| KnownPath {
            capacity: facts.capacity.clone(),
            base_rtt: facts.base_rtt + flow.extra_rtt,
            flows: self.flows_beside(index),
            loss_before: self.route(index).map_or(0.0, |route| loss_before_link(self.elements(&route.there))),
        });
        InitContext {
            now: flow.start,
            mss: size,
            initial_window: size * u64::from(flow.initial_window),
            flow: index as u32,
            rng: Rng::stream(self.seed, "scheme", index as u64),
            path,
        }
    }

    /// Return capacity and base RTT of the route of flow `index`.
    #[must_use]
    pub fn facts_of(&self, index: usize) -> Option<&KnownPath> {
        let flow = &self.flows[index];
        let own_way = flow.reverse || !flow.route.is_empty();
        flow.facts.as_ref().or(self.facts.as_ref().filter(|_| !own_way))
    }

    /// Build the elements of each direction, in their order.
    ///
    /// # Errors
    /// An element that cannot be built.
    pub fn chains(&self, traces: Traces<'_>) -> Result<Vec<Chain>, Error> {
        let directions = self.directions().into_iter().enumerate();
        let build = |(i, (name, specs)): (usize, (String, &[ElementSpec]))| {
            let first_index = ((i as u64 / 2) << 40) + ((i as u64 % 2) << 32);
            Chain::new(specs, self.seed, first_index, traces)
                .map_err(|error| Error { place: format!("{name}{}", error.place), ..error })
        };
        directions.map(build).collect()
    }

    /// Check constraints that the types do not express.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn validate(&self) -> Result<(), Error> {
        Error::ensure(self.duration > TimeSpan::ZERO, "duration", 0, "a positive number of nanoseconds")?;
        Error::ensure(!self.flows.is_empty(), "flows", "an empty list", "one flow or more")?;
        let plain = self.uplink.is_empty() && self.downlink.is_empty();
        let expected = "an uplink and a downlink, or links with names";
        Error::ensure(plain || self.links.is_empty(), "links", "links, and also an uplink or a downlink", expected)?;
        for (i, link) in self.links.iter().enumerate() {
            let unique = !self.links[..i].iter().any(|other| other.name == link.name);
            Error::ensure(unique, &format!("links[{i}].name"), format!("{:?} again", link.name), "a new name")?;
        }
        for (i, f) in self.flows.iter().enumerate() {
            let route = self.route(i)?;
            let at = |key: &str| format!("flows[{i}].{key}");
            // For a single link its chain reports the error.
            for way in [&route.there, &route.back].into_iter().filter(|way| way.len() > 1) {
                check_copies(&at("route"), self.elements(way))?;
            }
            schema::check(&format!("flows[{i}]"), f)?;
            let size = u64::from(f.mss) + u64::from(f.header);
            let fits = size <= 65_535;
            Error::ensure(fits, &at("mss"), f.mss, "1 to 65535 bytes together with the header")?;
            let fits = f.profile != Profile::Ns3 || size > ns3::HEADER;
            let expected = format!("more than {} bytes together with the header: ns-3's own", ns3::HEADER);
            Error::ensure(fits, &at("mss"), f.mss, expected)?;
            Error::ensure(f.ack_size > 0, &at("ack_size"), 0, "1 byte or more")?;
            let later = f.stop.is_none_or(|stop| stop > f.start);
            Error::ensure(later, &at("stop"), format!("{:?}", f.stop), "a time after the flow's start")?;
            if let Some(bytes) = f.send_buffer {
                let fits = f.profile != Profile::Udp && matches!(f.source, SourceSpec::Greedy) && bytes > 0;
                let expected = "1 byte or more, with the profile tcp or ns3 and the source greedy";
                Error::ensure(fits, &at("send_buffer"), format!("{bytes} bytes for this flow"), expected)?;
            }
            f.source.validate(&at, f.profile)?;
        }
        let facts = self.flows.iter().map(|flow| &flow.facts).chain([&self.facts]);
        for KnownPath { capacity, .. } in facts.flatten() {
            let starts = capacity.first().is_some_and(|(from, _)| *from == Timestamp::ZERO);
            Error::ensure(starts, "facts.capacity", format!("{:?}", capacity.first()), "steps from time 0")?;
        }
        Ok(())
    }
}

/// True if something on a path bounds the growth of a greedy flow: a link in either direction, or an element that drops
/// data.
pub fn limits_flows<'a>(
    there: impl Iterator<Item = &'a ElementSpec> + Clone,
    back: impl Iterator<Item = &'a ElementSpec>,
) -> bool {
    let link = |element: &ElementSpec| matches!(element, ElementSpec::Link { .. });
    let drops = |element: &ElementSpec| match element {
        ElementSpec::OnOff { hold, .. } => !hold,
        ElementSpec::Intermittent { .. } => true,
        other => other.loss().is_some_and(|loss| loss.steps().iter().any(|(_, p)| *p > 0.0)),
    };
    there.clone().chain(back).any(link) || there.clone().any(drops)
}

impl FlowSpec {
    /// True if it always has more to send.
    #[must_use]
    pub const fn is_greedy(&self) -> bool {
        matches!(self.source, SourceSpec::Greedy | SourceSpec::OnOff { .. })
    }

    /// Return the sender's parameters.
    #[must_use]
    pub fn sender_config(&self, flow: u32) -> SenderConfig {
        let size = self.mss + self.header;
        let mut config = match self.profile {
            Profile::Tcp => SenderConfig::tcp(flow, size),
            Profile::Udp => SenderConfig::udp(flow, size),
            Profile::Ns3 => SenderConfig::ns3(flow, size),
        };
        config.initial_window = self.initial_window;
        config.recovery = self.recovery;
        // Turns of a busy loop are up to one and a half periods apart.
        config.catch_up = TimeSpan(self.host.wakeup.0 + 3 * self.host.busy.0 / 2);
        if self.host.batch > 1 {
            config.min_burst = u64::from(size) * u64::from(self.host.batch);
        }
        if self.profile != Profile::Udp && self.ack_every == 1 {
            config.timers.max_ack_delay = TimeSpan::ZERO;
        }
        match self.transport.handshake {
            Some(false) => config.handshake_size = 0,
            Some(true) => config.handshake_size = config.handshake_size.max(60),
            None => {}
        }
        config
    }

    /// Return the misbehavior of its receiver.
    #[must_use]
    pub const fn misbehavior(&self) -> Misbehavior {
        Misbehavior { copies: self.ack_copies, ahead: self.ack_ahead, hide_loss: self.hide_loss }
    }

    /// Return the parameters of its receiver, apart from misbehavior.
    #[must_use]
    pub fn receiver_config(&self) -> ReceiverConfig {
        let policy = match self.host.batch {
            batch if batch > 1 && self.ack_every == 1 => AckPolicy { every: batch, max_delay: BATCH_WAIT },
            _ => AckPolicy { every: self.ack_every, max_delay: self.ack_delay },
        };
        ReceiverConfig {
            policy,
            ack_size: self.ack_size,
            quick_acks: self.quick_acks,
            reliable: self.profile != Profile::Udp,
        }
    }
}

/// Return the probability of the independent, constant loss before the first link. Loss in bursts, or at a changing
/// rate, does not count: sending more cannot compensate for it.
pub fn loss_before_link<'a>(there: impl Iterator<Item = &'a ElementSpec>) -> f64 {
    let before = there.take_while(|element| !matches!(element, ElementSpec::Link { .. }));
    let kept = before.map(|element| match element {
        ElementSpec::Loss { probability: Param::Constant(p) } => 1.0 - p,
        _ => 1.0,
    });
    1.0 - kept.product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::schema::MAX_SPAN;
    use serde_json::json;

    /// Return the place of the error of a run of one flow; `elements` of kind duplicate each way, on each of two links.
    fn refused(flow: Value, elements: usize) -> Option<String> {
        let duplicates = vec![json!({"kind": "duplicate", "probability": 1.0}); elements];
        let link = |name: &str| json!({"name": name, "uplink": duplicates, "downlink": []});
        let spec = json!({"duration": 1, "uplink": [], "downlink": [], "links": [link("a"), link("b")],
                          "flows": [{"scheme": "reno"}]});
        let mut spec: RunSpec = serde_json::from_value(spec).unwrap();
        let flow = [json!({"scheme": "reno"}), flow];
        let flow: Map<_, _> = flow.iter().flat_map(|part| part.as_object().unwrap().clone()).collect();
        spec.flows = vec![serde_json::from_value(Value::Object(flow)).unwrap()];
        spec.validate().err().map(|error| error.place)
    }

    #[test]
    fn sizes_are_refused_where_arithmetic_would_fail() {
        for (flow, fits) in [
            (json!({"mss": 65_483}), true),
            (json!({"mss": 65_484}), false),
            (json!({"mss": u32::MAX, "header": 1}), false),
            (json!({"mss": 53, "header": 0, "profile": "ns3"}), true),
            (json!({"mss": 52, "header": 0, "profile": "ns3"}), false),
            (json!({"mss": 1, "header": 40, "profile": "ns3"}), false),
            (json!({"mss": 1, "header": 40}), true),
        ] {
            assert_eq!(refused(flow.clone(), 0), (!fits).then(|| "flows[0].mss".to_owned()), "{flow}");
        }
    }

    #[test]
    fn spans_are_bounded() {
        for key in ["extra_rtt", "ack_delay", "ack_ahead"] {
            assert_eq!(refused(json!({key: MAX_SPAN}), 0), None);
            assert_eq!(refused(json!({key: MAX_SPAN + 1}), 0), Some(format!("flows[0].{key}")));
        }
        for (key, max) in [("wakeup", MAX_SPAN), ("busy", MAX_SPAN), ("batch", 1000)] {
            assert_eq!(refused(json!({"host": {key: max}}), 0), None);
            assert_eq!(refused(json!({"host": {key: max + 1}}), 0), Some(format!("flows[0].host.{key}")));
        }
        assert_eq!(refused(json!({"host": {"batch": 0}}), 0), Some("flows[0].host.batch".to_owned()));
    }

    #[test]
    fn copies_are_bounded_over_a_whole_route() {
        assert_eq!(refused(json!({}), 2), None, "16 copies over both links");
        assert_eq!(refused(json!({}), 3), Some("flows[0].route".to_owned()));
        assert_eq!(refused(json!({"route": ["a"]}), 5), None, "its chain refuses it");
        assert_eq!(
            refused(json!({"reverse": true}), 3),
            Some("flows[0].route".to_owned()),
            "acknowledgements are copied"
        );
    }
}
