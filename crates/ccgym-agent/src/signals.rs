//! All signals: name, unit, natural range, formula and computation in one row, so that they agree.

use super::memory::Memory;
use super::spec::Phase;
use ccgym_core::monitor::MonitorInterval;

/// Inputs of signals.
pub(crate) struct View<'a> {
    /// The interval that ended.
    pub m: &'a MonitorInterval,
    /// The flow's memory, this interval included.
    pub memory: &'a Memory,
}

/// A number that describes an interval or the flow.
pub(crate) struct Signal {
    /// Name.
    pub name: &'static str,
    /// Unit; "1" for ratios, counts have their thing's name.
    pub unit: &'static str,
    /// Natural range.
    pub low: f64,
    pub high: f64,
    /// Meaning, in one line.
    pub formula: &'static str,
    /// Its value; anything that is not finite counts as 0.
    pub compute: fn(&View<'_>) -> f64,
    /// True if it shows the reward, so it is computed after that.
    pub of_reward: bool,
}

impl Signal {
    /// True if it needs the rates of acknowledgements.
    pub(crate) fn needs_rate_samples(&self) -> bool {
        ["ewma_", "sampled_", "max_sampled_"].iter().any(|of_samples| self.name.starts_with(of_samples))
    }
}

const INF: f64 = f64::INFINITY;

/// Find the signal called `name`.
pub(crate) fn find(name: &str) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.name == name)
}

const fn row(
    name: &'static str,
    unit: &'static str,
    range: (f64, f64),
    formula: &'static str,
    compute: fn(&View<'_>) -> f64,
) -> Signal {
    Signal { name, unit, low: range.0, high: range.1, formula, compute, of_reward: false }
}

/// Make a signal that is a number of packets.
const fn packets(name: &'static str, formula: &'static str, compute: fn(&View<'_>) -> f64) -> Signal {
    row(name, "packets", (0.0, INF), formula, compute)
}

const fn rate(name: &'static str, formula: &'static str, compute: fn(&View<'_>) -> f64) -> Signal {
    row(name, "bit/s", (0.0, INF), formula, compute)
}

const fn time(name: &'static str, formula: &'static str, compute: fn(&View<'_>) -> f64) -> Signal {
    row(name, "s", (0.0, INF), formula, compute)
}

/// Make a signal that is a part of a whole, or 1 for true and 0 for false.
const fn part(name: &'static str, formula: &'static str, compute: fn(&View<'_>) -> f64) -> Signal {
    row(name, "1", (0.0, 1.0), formula, compute)
}

fn ratio(a: f64, b: f64, undefined: f64) -> f64 {
    if b == 0.0 {
        undefined
    } else {
        a / b
    }
}

/// Return the current window in bytes; 0 if unlimited.
fn cwnd(v: &View<'_>) -> f64 {
    if v.m.cwnd == u64::MAX {
        0.0
    } else {
        v.m.cwnd as f64
    }
}

fn flag(on: bool) -> f64 {
    f64::from(u8::from(on))
}

/// All of them. Round trips and sampled rates of an interval without a sample are those of the latest that had one.
pub(crate) static SIGNALS: &[Signal] = &[
    // Counters.
    time("duration", "length of the interval", |v| v.memory.seconds),
    packets("sent_packets", "packets sent", |v| v.m.sent_packets as f64),
    packets("acked_packets", "packets acknowledged", |v| v.m.acked_packets as f64),
    packets("lost_packets", "packets declared lost", |v| v.m.lost_packets as f64),
    row("acks", "acks", (0.0, INF), "acknowledgements that acknowledged something", |v| v.m.acks as f64),
    row("timeouts", "timeouts", (0.0, INF), "retransmission timeouts", |v| v.m.timeouts as f64),
    packets("ce_packets", "packets reported with congestion experienced", |v| v.m.ce_packets as f64),
    part("app_limited", "1 if the application held sending back at some time", |v| flag(v.m.app_limited)),
    row("rtt_count", "samples", (0.0, INF), "round-trip samples", |v| v.m.rtt_count() as f64),
    // Rates.
    rate("send_rate", "8·sent_bytes / duration", |v| v.memory.send_rate),
    rate("delivery_rate", "8·acked_bytes / duration", |v| v.memory.delivery_rate),
    rate("receive_rate", "8·max(0, acked_bytes − one packet) / duration", |v| v.memory.receive_rate),
    rate("lost_rate", "8·lost_bytes / duration", |v| v.memory.lost_rate),
    rate("max_delivery_rate", "max delivery_rate since the flow began", |v| v.memory.max_delivery_rate),
    rate(
        "sampled_delivery_rate",
        "mean of the acknowledgements' delivery-rate samples, each over a round trip or more",
        |v| v.memory.sampled_delivery_rate,
    ),
    rate("max_sampled_delivery_rate", "max sampled_delivery_rate since the flow began", |v| {
        v.memory.max_sampled_delivery_rate
    }),
    row(
        "send_ratio",
        "1",
        (0.0, 1000.0),
        "send_rate / receive_rate; 1 if receive_rate is 0 or the ratio ≥ 1000",
        |v| {
            let (sent, received) = (v.memory.send_rate, v.memory.receive_rate);
            if received > 0.0 && sent < 1000.0 * received {
                sent / received
            } else {
                1.0
            }
        },
    ),
    row("recv_ratio", "1", (0.0, INF), "receive_rate / send_rate; 1 if send_rate is 0", |v| {
        ratio(v.memory.receive_rate, v.memory.send_rate, 1.0)
    }),
    // Loss.
    part("loss_fraction", "lost_packets / (lost_packets + acked_packets); 0 if neither", |v| v.m.loss_fraction()),
    row("loss_over_sent", "1", (0.0, INF), "lost_packets / sent_packets; 0 if none was sent", |v| {
        ratio(v.m.lost_packets as f64, v.m.sent_packets as f64, 0.0)
    }),
    part("undelivered_fraction", "max(0, 1 − acked_packets / sent_packets); 0 if none was sent", |v| {
        (1.0 - ratio(v.m.acked_packets as f64, v.m.sent_packets as f64, 1.0)).max(0.0)
    }),
    part("ce_fraction", "ce_packets / acked_packets; 0 if none was acknowledged", |v| {
        ratio(v.m.ce_packets as f64, v.m.acked_packets as f64, 0.0).min(1.0)
    }),
    // Round trips.
    time("mean_rtt", "mean of the interval's round-trip samples", |v| v.memory.mean_rtt),
    time("interval_min_rtt", "min sample of the interval", |v| v.memory.interval_min_rtt),
    time("interval_max_rtt", "max sample of the interval", |v| v.memory.interval_max_rtt),
    row("rtt_inflation", "s/s", (-INF, INF), "half_split_rtt_change / duration", |v| {
        ratio(v.m.half_split_rtt_change(), v.memory.seconds, 0.0)
    }),
    row("rtt_slope", "s/s", (-INF, INF), "least-squares slope of the round trip over time; 0 below two samples", |v| {
        v.m.rtt_slope()
    }),
    time("srtt", "smoothed round trip (RFC 6298) at the end", |v| v.m.srtt.as_secs_f64()),
    time("min_rtt", "min round trip since the flow began, or of min_rtt_window intervals", |v| v.memory.min_rtt),
    row("latency_ratio", "1", (1.0, INF), "mean_rtt / min_mean_rtt; 1 without a sample in the interval", |v| {
        if v.m.rtt_count() == 0 {
            1.0
        } else {
            ratio(v.memory.mean_rtt, v.memory.min_mean_rtt, 1.0)
        }
    }),
    time("queue_delay", "mean_rtt − min_rtt", |v| (v.memory.mean_rtt - v.memory.min_rtt).max(0.0)),
    // Averages over acknowledgements.
    time("ewma_rtt", "round trip, each acknowledgement of the interval weighing 1/8", |v| v.m.ewma.rtt),
    time("ewma_queue_delay", "round trip − min_rtt, each acknowledgement weighing 1/8", |v| v.m.ewma.queue_delay),
    rate("ewma_delivery_rate", "delivery-rate sample, each acknowledgement weighing 1/8", |v| v.m.ewma.delivery_rate),
    rate("ewma_send_rate", "bytes sent in the packet's round trip / it, each weighing 1/8", |v| v.m.ewma.send_rate),
    // Current decision.
    packets("in_flight", "packets in flight at the end", |v| v.m.in_flight as f64 / v.memory.mss),
    packets("cwnd", "window in force at the end; 0 if unlimited", |v| cwnd(v) / v.memory.mss),
    rate("cwnd_rate", "cwnd in bits / min_rtt; 0 if either is unknown", |v| {
        ratio(8.0 * cwnd(v), v.memory.min_rtt, 0.0)
    }),
    rate("pacing_rate", "pacing rate in force at the end; 0 if unpaced", |v| v.m.pacing_rate.0 as f64),
    packets("ssthresh", "slow-start threshold at the end; 0 without one", |v| {
        v.m.ssthresh.filter(|bytes| *bytes != u64::MAX).map_or(0.0, |bytes| bytes as f64 / v.memory.mss)
    }),
    rate("rate", "rate that the agent decided", |v| v.memory.rate),
    packets("window", "window that the agent decided, fraction kept", |v| v.memory.window),
    row("gain", "1", (0.0, INF), "gain of the base scheme that the agent decided; 1 before", |v| v.memory.gain),
    packets("bdp", "min_rtt · max_delivery_rate / (8 · packet bytes)", |v| v.memory.bdp()),
    // Phases.
    part("phase_startup", "1 while the delivery rate grows", |v| flag(v.memory.phase == Phase::Startup)),
    part("phase_drain", "1 while the queue of start-up drains", |v| flag(v.memory.phase == Phase::Drain)),
    part("phase_probe", "1 afterward", |v| flag(v.memory.phase == Phase::Probe)),
    row("action", "1", (-INF, INF), "latest decision (its first number); 0 before", |v| {
        v.memory.action.map_or(0.0, |a| a[0])
    }),
    Signal { of_reward: true, ..row("reward", "1", (-INF, INF), "reward of this interval", |v| v.memory.reward) },
];

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_core::units::Timestamp;

    #[test]
    fn names_are_unique_and_an_empty_interval_has_values_in_range() {
        let memory = Memory::new(1500);
        let m = MonitorInterval::new(Timestamp::ZERO);
        for (i, signal) in SIGNALS.iter().enumerate() {
            assert!(SIGNALS[..i].iter().all(|other| other.name != signal.name), "{}", signal.name);
            let value = (signal.compute)(&View { m: &m, memory: &memory });
            assert!(value.is_finite() && value >= signal.low && value <= signal.high, "{} = {value}", signal.name);
            assert!(!signal.unit.is_empty() && !signal.formula.is_empty() && signal.formula.len() < 100);
        }
    }
}
