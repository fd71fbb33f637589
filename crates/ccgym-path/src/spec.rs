//! The description of a path, as data (JSON): `NetworkPath` in Python compiles to it.
//!
//! Each parameter is declared here once, with unit, range, default and help. [`JsonSchema`] carries that to Python,
//! where `ccgym.config.models` and the documentation come from. Times are nanoseconds, rates bits per second, sizes bytes.
//! In a variant, `words` describes an element to users: `{name}` stands for a parameter as written, `{name:yes|no}` for
//! one of two texts.

use std::borrow::Cow;

use ccgym_core::defaults;
use ccgym_core::units::{Rate, TimeSpan, Timestamp};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Min mean of exponential periods, nanoseconds: they are drawn one by one, and shorter ones only cost time.
pub const MIN_MEAN_PERIOD: u64 = 1_000;
/// Max bytes charged per packet.
pub const MAX_OVERHEAD: u32 = 10_000;
/// Max flow queues of FQ-CoDel.
pub const MAX_FLOW_QUEUES: u32 = 65_536;
/// Max bytes per round-robin turn, and max packets in a device buffer.
pub const MAX_SIGNED: u32 = u32::MAX >> 1;

/// Min time between updates of a queue's probability, nanoseconds: late updates are made one by one.
pub const MIN_UPDATE: u64 = 1_000_000;
/// Max gains of a queue's controller, per second.
pub const MAX_GAIN: f64 = 1000.0;
/// Min coupling between L4S and classic traffic.
pub const MIN_COUPLING: f64 = 0.1;
/// Max coupling between L4S and classic traffic.
pub const MAX_COUPLING: f64 = 100.0;
/// Min weight of the queue in RED's average.
pub const MIN_WEIGHT: f64 = 1e-6;

/// A parameter: one value, or steps in time `[[from_ns, value], …]` (the first at 0, times strictly increasing).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param<T> {
    /// The same value throughout.
    Constant(T),
    /// Piecewise constant.
    Steps(Vec<(Timestamp, T)>),
}

impl<T: JsonSchema> JsonSchema for Param<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Steps{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"format": "steps", "items": T::json_schema(generator)})
    }
}

/// Times at which a link may deliver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScheduleSpec {
    /// A mahimahi delivery trace, by the name under which the caller provides it.
    Trace {
        /// Name of the trace.
        name: String,
        /// Stop at the end instead of repeating (`mm-link --once`).
        #[serde(default)]
        once: bool,
    },
    /// A rate without a file: packets are serialized one after the other, exactly.
    Rate {
        /// Bits per second of wire bytes (IP length + overhead).
        rate: Param<Rate>,
    },
}

/// Max number of waiting packets or bytes. All given limits hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// Packets (the packet in transmission is not waiting).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Wire bytes (IP length + overhead).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl JsonSchema for LimitSpec {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "format": "limit"})
    }
}

/// A queue discipline, one per file in `queue/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Queue")]
pub enum QueueSpec {
    /// Unbounded FIFO: mahimahi's default.
    #[schemars(extend("words" = "infinite queue"))]
    Infinite,
    /// FIFO that drops arrivals beyond its limit.
    #[schemars(extend("words" = "droptail {limit}"))]
    Droptail {
        /// Limit.
        limit: LimitSpec,
    },
    /// FIFO that accepts, then drops from its head until the limit holds.
    #[schemars(extend("words" = "drophead {limit}"))]
    Drophead {
        /// Limit.
        limit: LimitSpec,
    },
    /// mahimahi's `codel`, with its deviations from RFC 8289.
    #[schemars(extend("words" = "mahimahi's CoDel {limit} (target {target}, interval {interval})"))]
    MahimahiCodel {
        /// Tail-drop limit.
        limit: LimitSpec,
        /// Target delay, whole milliseconds.
        #[schemars(extend("format" = "milliseconds"))]
        target: TimeSpan,
        /// Interval, whole milliseconds.
        #[schemars(extend("format" = "milliseconds"))]
        interval: TimeSpan,
    },
    /// mahimahi's `pie`, with its deviations from RFC 8033 and a seeded random stream.
    #[schemars(extend("words" = "mahimahi's PIE {limit} (reference {qdelay_ref}, burst {max_burst})"))]
    MahimahiPie {
        /// Tail-drop limit.
        limit: LimitSpec,
        /// Reference delay, whole milliseconds.
        #[schemars(extend("format" = "milliseconds"))]
        qdelay_ref: TimeSpan,
        /// Burst allowance, whole milliseconds.
        #[schemars(extend("format" = "milliseconds"))]
        max_burst: TimeSpan,
    },
    /// CoDel as in RFC 8289.
    #[schemars(extend("words" = "CoDel {limit} (target {target}, interval {interval}{ecn:, ECN|}{ns3:, as ns-3|})"))]
    Codel {
        /// Tail-drop limit; Linux's default is 1000 packets.
        #[serde(default = "thousand_packets")]
        limit: LimitSpec,
        /// Target sojourn time (RFC: 5 ms).
        #[serde(default = "codel_target")]
        #[schemars(range(min = 1))]
        target: TimeSpan,
        /// Interval (RFC: 100 ms).
        #[serde(default = "codel_interval")]
        #[schemars(range(min = 1))]
        interval: TimeSpan,
        /// Mark ECN-capable packets instead of dropping.
        #[serde(default)]
        ecn: bool,
        /// As ns-3.37 has it: square roots by one step of Newton's method per drop, a clock in units of 1024 ns, one
        /// waiting packet is a standing queue, and an episode that ended before its next drop was due is forgotten.
        #[serde(default)]
        ns3: bool,
    },
    /// Flow queueing with CoDel as in RFC 8290.
    #[schemars(extend("words" = "FQ-CoDel {limit} (target {target}, interval {interval}{ecn:, ECN|})"))]
    FqCodel {
        /// Limit over all flow queues (RFC: 10240 packets).
        #[serde(default = "fq_codel_limit")]
        limit: LimitSpec,
        /// Target sojourn time (RFC: 5 ms).
        #[serde(default = "codel_target")]
        #[schemars(range(min = 1))]
        target: TimeSpan,
        /// Interval (RFC: 100 ms).
        #[serde(default = "codel_interval")]
        #[schemars(range(min = 1))]
        interval: TimeSpan,
        /// Bytes per round-robin turn (RFC: 1514).
        #[serde(default = "fq_codel_quantum")]
        #[schemars(range(min = 1, max = MAX_SIGNED))]
        quantum: u32,
        /// Number of flow queues (RFC: 1024).
        #[serde(default = "fq_codel_flows")]
        #[schemars(range(min = 1, max = MAX_FLOW_QUEUES))]
        flows: u32,
        /// Mark ECN-capable packets instead of dropping.
        #[serde(default)]
        ecn: bool,
    },
    /// PIE as in RFC 8033.
    #[schemars(extend("words" = "PIE {limit} (target {target}{ecn:, ECN|})"))]
    Pie {
        /// Tail-drop limit; Linux's default is 1000 packets.
        #[serde(default = "thousand_packets")]
        limit: LimitSpec,
        /// Target delay (RFC: 15 ms).
        #[serde(default = "pie_target")]
        #[schemars(range(min = 1))]
        target: TimeSpan,
        /// Time between updates of the probability (RFC: 15 ms).
        #[serde(default = "pie_target")]
        #[schemars(range(min = MIN_UPDATE))]
        interval: TimeSpan,
        /// Change of probability per update and second of delay above target (RFC: 1/8), before it is tuned.
        #[serde(default = "pie_alpha")]
        #[schemars(range(min = 0.0, max = MAX_GAIN))]
        alpha: f64,
        /// Change of probability per second by which the delay has grown since the last update (RFC: 1 + 1/4).
        #[serde(default = "pie_beta")]
        #[schemars(range(min = 0.0, max = MAX_GAIN))]
        beta: f64,
        /// Time in which a burst passes without early drops (RFC: 150 ms).
        #[serde(default = "pie_max_burst")]
        max_burst: TimeSpan,
        /// Mark ECN-capable packets instead of dropping, up to `mark_up_to`.
        #[serde(default)]
        ecn: bool,
        /// With `ecn`, the probability above which packets are still dropped (RFC: 10 %).
        #[serde(default = "tenth")]
        #[schemars(extend("format" = "probability"))]
        mark_up_to: f64,
    },
    /// RED as in Floyd and Jacobson's paper of 1993, gentle by default.
    #[schemars(extend("words" = "RED {limit} ({min} to {max} packets, {max_probability}{ecn:, ECN|})"))]
    Red {
        /// Tail-drop limit.
        #[serde(default = "thousand_packets")]
        limit: LimitSpec,
        /// Average queue, in packets, from which on some are dropped at random (1993: 5).
        #[serde(default = "red_min")]
        #[schemars(range(min = 1, max = MAX_SIGNED))]
        min: u32,
        /// Average queue, in packets, at which the probability is `max_probability` (1993: 15).
        #[serde(default = "red_max")]
        #[schemars(range(min = 2, max = MAX_SIGNED))]
        max: u32,
        /// Probability of a drop where the average reaches `max` (1993: 2 %).
        #[serde(default = "tenth")]
        #[schemars(extend("format" = "probability"))]
        max_probability: f64,
        /// Weight of the queue in its average, per arrival (1993: 0.002).
        #[serde(default = "red_weight")]
        #[schemars(range(min = MIN_WEIGHT, max = 1.0))]
        weight: f64,
        /// Above `max` the probability grows to one at twice `max`, instead of being one.
        #[serde(default = "yes")]
        gentle: bool,
        /// Mark ECN-capable packets instead of dropping, as long as not all are dropped.
        #[serde(default)]
        ecn: bool,
    },
    /// FIFO that marks ECN-capable packets above a threshold, for DCTCP (RFC 8257).
    #[schemars(extend("words" = "step marking {limit} (above {threshold}, delay {delay})"))]
    Step {
        /// Tail-drop limit.
        #[serde(default = "thousand_packets")]
        limit: LimitSpec,
        /// Mark arrivals that bring the queue above this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<LimitSpec>,
        /// Mark packets that have waited longer than this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<TimeSpan>,
    },
    /// DualPI2 as in RFC 9332: a short queue for L4S traffic (ECT(1) and CE) coupled with one for the rest.
    #[schemars(extend("words" = "DualPI2 {limit} (target {target}, step {step}, coupling {coupling})"))]
    Dualpi2 {
        /// Tail-drop limit over both queues; Linux's default is 10000 packets.
        #[serde(default = "dualpi2_limit")]
        limit: LimitSpec,
        /// Target delay of classic traffic (RFC: 15 ms).
        #[serde(default = "pie_target")]
        #[schemars(range(min = 1))]
        target: TimeSpan,
        /// Time between updates of the probability (RFC: 16 ms).
        #[serde(default = "dualpi2_interval")]
        #[schemars(range(min = MIN_UPDATE))]
        interval: TimeSpan,
        /// Change of the base probability per update and second of delay above target (RFC: 0.16).
        #[serde(default = "dualpi2_alpha")]
        #[schemars(range(min = 0.0, max = MAX_GAIN))]
        alpha: f64,
        /// Change of the base probability per second by which the delay has grown since the last update (RFC: 3.2).
        #[serde(default = "dualpi2_beta")]
        #[schemars(range(min = 0.0, max = MAX_GAIN))]
        beta: f64,
        /// L4S packets are marked with the base probability times this, classic ones dropped with its square.
        #[serde(default = "dualpi2_coupling")]
        #[schemars(range(min = MIN_COUPLING, max = MAX_COUPLING))]
        coupling: f64,
        /// L4S packets that have waited longer than this are marked (Linux: 1 ms).
        #[serde(default = "dualpi2_step")]
        step: TimeSpan,
        /// Share of the link that classic traffic has at least (Linux: 10 %).
        #[serde(default = "tenth")]
        #[schemars(extend("format" = "probability"))]
        classic_share: f64,
    },
}

impl QueueSpec {
    /// Return the limit; `None` if unbounded.
    #[must_use]
    pub const fn limit(&self) -> Option<&LimitSpec> {
        match self {
            Self::Infinite => None,
            Self::Droptail { limit }
            | Self::Drophead { limit }
            | Self::MahimahiCodel { limit, .. }
            | Self::MahimahiPie { limit, .. }
            | Self::Codel { limit, .. }
            | Self::FqCodel { limit, .. }
            | Self::Pie { limit, .. }
            | Self::Red { limit, .. }
            | Self::Step { limit, .. }
            | Self::Dualpi2 { limit, .. } => Some(limit),
        }
    }
}

/// One path element, in the order in which a packet crosses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Element")]
pub enum ElementSpec {
    /// One direction of a bottleneck: when it may deliver, and what waits.
    Link {
        /// Times at which it may deliver.
        #[schemars(skip)]
        schedule: ScheduleSpec,
        /// The queue.
        #[serde(default = "infinite")]
        queue: QueueSpec,
        /// Bytes charged per packet on top of its IP length: mahimahi 4 (the TUN prefix), PPP 2.
        #[serde(default)]
        #[schemars(range(max = MAX_OVERHEAD))]
        overhead: u32,
        /// With a rate: packets in a device buffer below the queue discipline, out of its sight (ns-3's net device
        /// queue). The packet in transmission counts in neither.
        #[serde(default)]
        #[schemars(range(max = MAX_SIGNED))]
        device_packets: u32,
    },
    /// A propagation delay (mahimahi's `mm-delay`). Order is kept when it shrinks.
    #[schemars(extend("words" = "delay {delay}"))]
    Delay {
        /// One-way delay.
        delay: Param<TimeSpan>,
        /// Granularity of the clock: mahimahi's is 1 ms, so that its real delay lies in (MS−1, MS]; 0 is exact.
        #[serde(default)]
        tick: TimeSpan,
    },
    /// Independent random loss (mahimahi's `mm-loss`).
    #[schemars(extend("words" = "random loss {probability}"))]
    Loss {
        /// Probability per packet.
        #[schemars(extend("items" = {"format": "probability"}))]
        probability: Param<f64>,
    },
    /// Random duplication (netem's `duplicate`): the copy follows at once, and meets the elements behind by itself.
    #[schemars(extend("words" = "duplicates {probability}"))]
    Duplicate {
        /// Probability per packet.
        #[schemars(extend("items" = {"format": "probability"}))]
        probability: Param<f64>,
    },
    /// A hop that clears the ECN field: before a link no packet can be marked there, behind it the marks are lost.
    #[schemars(extend("words" = "ECN cleared {probability}"))]
    Bleach {
        /// Probability per packet.
        #[serde(default = "every_packet")]
        #[schemars(extend("items" = {"format": "probability"}))]
        probability: Param<f64>,
    },
    /// Burst loss with two states (Gilbert–Elliott): per packet, first the state may change, then the packet may be lost.
    #[schemars(extend(
        "words" = "burst loss {loss_bad} in the bad state ({good_to_bad} into, {bad_to_good} out of it)"
    ))]
    GilbertElliott {
        /// Probability of good → bad per packet.
        #[schemars(extend("format" = "probability"))]
        good_to_bad: f64,
        /// Probability of bad → good per packet.
        #[schemars(extend("format" = "probability"))]
        bad_to_good: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        #[schemars(extend("format" = "probability"))]
        loss_good: f64,
        /// Loss probability in the bad state.
        #[serde(default = "always")]
        #[schemars(extend("format" = "probability"))]
        loss_bad: f64,
    },
    /// Exponential on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-onoff`) or held.
    #[schemars(extend("words" = "on for {mean_on}, {hold:held|off} for {mean_off} (exponential means)"))]
    OnOff {
        /// Mean on period.
        #[schemars(range(min = MIN_MEAN_PERIOD))]
        mean_on: TimeSpan,
        /// Mean off period.
        #[schemars(range(min = MIN_MEAN_PERIOD))]
        mean_off: TimeSpan,
        /// If true, arrivals while off leave together when it is on again, as from a host that was not scheduled.
        #[serde(default)]
        hold: bool,
    },
    /// Fixed on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-intermittent`).
    #[schemars(extend("words" = "on for {on}, off for {off} (fixed)"))]
    Intermittent {
        /// On period.
        #[schemars(range(min = 1))]
        on: TimeSpan,
        /// Off period.
        #[schemars(range(min = 1))]
        off: TimeSpan,
    },
    /// Extra delay per packet, random or up to the next tick of a clock.
    #[schemars(extend("words" = "{distribution}{reorder: with reordering|}{flows: for some flows|}"))]
    Jitter {
        /// Its distribution; a time alone is the maximum of a uniform one.
        distribution: JitterSpec,
        /// If true, later packets may overtake; if not, a packet never leaves before its predecessor.
        #[serde(default)]
        reorder: bool,
        /// Numbers of the flows whose packets are delayed, from 1; those of others pass at once. Empty: all.
        #[serde(default)]
        flows: Vec<u32>,
    },
}

impl ElementSpec {
    /// Return the mean probability of random loss, if it has one.
    #[must_use]
    pub fn loss(&self) -> Option<Param<f64>> {
        match self {
            Self::Loss { probability } => Some(probability.clone()),
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let bad = good_to_bad / (good_to_bad + bad_to_good).max(f64::MIN_POSITIVE);
                Some(Param::Constant(loss_good * (1.0 - bad) + loss_bad * bad))
            }
            Self::Link { .. }
            | Self::Delay { .. }
            | Self::Duplicate { .. }
            | Self::Bleach { .. }
            | Self::OnOff { .. }
            | Self::Intermittent { .. }
            | Self::Jitter { .. } => None,
        }
    }
}

/// Distribution of extra delay; never negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "JitterDistribution")]
pub enum JitterSpec {
    /// Extra delay uniform in [0, max].
    #[schemars(extend("words" = "uniform jitter (max {max})"))]
    Uniform {
        /// Max extra delay.
        max: TimeSpan,
    },
    /// Normal extra delay, cut at zero.
    #[schemars(extend("words" = "normal jitter (mean {mean}, std {std})"))]
    Normal {
        /// Mean.
        mean: TimeSpan,
        /// Standard deviation.
        std: TimeSpan,
    },
    /// Exponential extra delay.
    #[schemars(extend("words" = "exponential jitter (mean {mean})"))]
    Exponential {
        /// Mean.
        mean: TimeSpan,
    },
    /// Wi-Fi's delay of draft-huitema-ccwg-c4-test: Poisson(1) waits of up to 1 ms for the channel, and for a part of the
    /// packets, which follows from the mean, Poisson(12) repetitions of 7.5 ms each.
    #[serde(rename = "wifi")]
    #[schemars(extend("words" = "Wi-Fi's jitter (mean {mean})"))]
    WiFi {
        /// Mean that the draft asks for, over time: up to 1 ms without repetitions, from 91 ms for all packets.
        mean: Param<TimeSpan>,
    },
    /// Packets leave together at multiples of a period, as from a device that collects them (Wi-Fi, a modem).
    #[schemars(extend("words" = "packets leave every {period}"))]
    Quantized {
        /// Period.
        #[schemars(range(min = 1))]
        period: TimeSpan,
    },
}

defaults! {
    infinite: QueueSpec = QueueSpec::Infinite;
    thousand_packets: LimitSpec = packets(1000);
    fq_codel_limit: LimitSpec = packets(10_240);
    codel_target: TimeSpan = TimeSpan::from_millis(5);
    codel_interval: TimeSpan = TimeSpan::from_millis(100);
    fq_codel_quantum: u32 = 1514;
    fq_codel_flows: u32 = 1024;
    pie_target: TimeSpan = TimeSpan::from_millis(15);
    pie_alpha: f64 = 0.125;
    pie_beta: f64 = 1.25;
    pie_max_burst: TimeSpan = TimeSpan::from_millis(150);
    tenth: f64 = 0.1;
    red_min: u32 = 5;
    red_max: u32 = 15;
    red_weight: f64 = 0.002;
    yes: bool = true;
    dualpi2_limit: LimitSpec = packets(10_000);
    dualpi2_interval: TimeSpan = TimeSpan::from_millis(16);
    dualpi2_alpha: f64 = 0.16;
    dualpi2_beta: f64 = 3.2;
    dualpi2_coupling: f64 = 2.0;
    dualpi2_step: TimeSpan = TimeSpan::from_millis(1);
    always: f64 = 1.0;
    every_packet: Param<f64> = Param::Constant(1.0);
}
const fn packets(packets: u64) -> LimitSpec {
    LimitSpec { packets: Some(packets), bytes: None }
}
