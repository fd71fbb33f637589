//! The description of a path, as data (JSON): what `NetworkPath` in Python compiles to.
//!
//! Times are nanoseconds, rates bits per second, sizes bytes.

use ccgym_core::units::{Rate, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

/// A parameter: one value, or steps in time `[[from_ns, value], …]` (the first at 0, times strictly increasing).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Param<T> {
    /// The same value throughout.
    Constant(T),
    /// Piecewise constant.
    Steps(Vec<(Timestamp, T)>),
}

/// When a link may deliver.
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

/// A buffer limit; both hold where both are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSpec {
    /// Packets that may wait (the packet in transmission is not waiting).
    #[serde(default)]
    pub packets: Option<u64>,
    /// Wire bytes (IP length + overhead) that may wait.
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// A queue discipline, one per file in `queue/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// Unbounded FIFO.
    Infinite,
    /// Drop arrivals beyond the limit (mahimahi's `droptail`).
    Droptail {
        /// Limit; at least one of the two.
        limit: LimitSpec,
    },
    /// Accept, then drop from the head until the limit holds (mahimahi's `drophead`).
    Drophead {
        /// Limit; at least one of the two.
        limit: LimitSpec,
    },
    /// mahimahi's `codel`, quirks included.
    MahimahiCodel {
        /// Tail-drop limit.
        limit: LimitSpec,
        /// Target delay, whole milliseconds.
        target_ms: u64,
        /// Interval, whole milliseconds.
        interval_ms: u64,
    },
    /// mahimahi's `pie`, quirks included, with a seeded random stream.
    MahimahiPie {
        /// Tail-drop limit.
        limit: LimitSpec,
        /// Reference delay, whole milliseconds.
        qdelay_ref_ms: u64,
        /// Burst allowance, whole milliseconds.
        max_burst_ms: u64,
    },
    /// Textbook CoDel (RFC 8289) with ECN.
    Codel {
        /// Tail-drop limit.
        limit: LimitSpec,
        /// Target sojourn time (RFC: 5 ms).
        target: TimeSpan,
        /// Interval (RFC: 100 ms).
        interval: TimeSpan,
        /// Mark ECN-capable packets instead of dropping.
        #[serde(default)]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290) with ECN.
    FqCodel {
        /// Limit over all flow queues (RFC: 10240 packets).
        limit: LimitSpec,
        /// Target sojourn time.
        target: TimeSpan,
        /// Interval.
        interval: TimeSpan,
        /// Bytes per round-robin turn (RFC: 1514).
        quantum: u32,
        /// Number of flow queues (RFC: 1024).
        flows: u32,
        /// Mark ECN-capable packets instead of dropping.
        #[serde(default)]
        ecn: bool,
    },
}

/// One path element, in the order in which a packet crosses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ElementSpec {
    /// A bottleneck: schedule and queue.
    Link {
        /// When it may deliver.
        schedule: ScheduleSpec,
        /// What waits, and what is dropped.
        queue: QueueSpec,
        /// Bytes charged per packet beside its IP length: mahimahi 4 (the TUN prefix), PPP 2, else 0.
        #[serde(default)]
        overhead: u32,
        /// Rate schedules only: packets that wait in a device buffer below the queue discipline, out of its sight
        /// (ns-3's net device queue; 0 for none). The packet in transmission is not counted in either.
        #[serde(default)]
        device_packets: u32,
    },
    /// A fixed delay (mahimahi's `mm-delay`). Order is kept when the delay shrinks.
    Delay {
        /// One-way delay in nanoseconds.
        delay: Param<TimeSpan>,
        /// Clock granularity: arrival and release are counted in whole ticks (mahimahi: 1 ms, so that the real
        /// delay lies in (MS−1, MS]); 0: exact.
        #[serde(default)]
        tick: TimeSpan,
    },
    /// Independent random loss (mahimahi's `mm-loss`), seeded.
    Loss {
        /// Probability in [0, 1].
        probability: Param<f64>,
    },
    /// Two-state burst loss (Gilbert–Elliott): per packet, the state moves first, then the coin of the state falls.
    GilbertElliott {
        /// Probability of good → bad per packet.
        good_to_bad: f64,
        /// Probability of bad → good per packet.
        bad_to_good: f64,
        /// Loss probability in the good state.
        #[serde(default)]
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// mahimahi's `mm-onoff`: exponential periods, starts on; arrivals while off are dropped, or held.
    OnOff {
        /// Mean on period.
        mean_on: TimeSpan,
        /// Mean off period.
        mean_off: TimeSpan,
        /// Whether arrivals while off leave together when it is on again, as from a host that was not scheduled.
        #[serde(default)]
        hold: bool,
    },
    /// mahimahi's `mm-intermittent`: fixed periods, starts on; arrivals while off are dropped.
    Intermittent {
        /// On period.
        on: TimeSpan,
        /// Off period.
        off: TimeSpan,
    },
    /// Random extra delay per packet.
    Jitter {
        /// Distribution of the extra delay.
        distribution: JitterSpec,
        /// Whether later packets may overtake; if not, a packet never leaves before its predecessor.
        #[serde(default)]
        reorder: bool,
    },
}

/// Distribution of extra delay; never negative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum JitterSpec {
    /// Uniform in [0, max].
    Uniform {
        /// Largest extra delay.
        max: TimeSpan,
    },
    /// Normal, cut at zero.
    Normal {
        /// Mean.
        mean: TimeSpan,
        /// Standard deviation.
        std: TimeSpan,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: TimeSpan,
    },
}
