//! The columns of a decision interval, the same for a simulated and a real path.

use ccgym_agent::GroundTruth;
use ccgym_core::{MonitorInterval, Sender, TimeSpan, Timestamp};

/// Defines names of columns, and a function that writes their cells.
macro_rules! columns {
    ($(#[$names_doc:meta])* $names:ident, $(#[$write_doc:meta])* fn $write:ident($($arg:ident: $type:ty),*);
     $($name:literal: $value:expr,)*) => {
        $(#[$names_doc])*
        pub const $names: [&str; [$($name),*].len()] = [$($name),*];

        $(#[$write_doc])*
        pub fn $write($($arg: $type,)* cells: &mut [f64]) {
            cells.copy_from_slice(&[$($value),*]);
        }
    };
}

columns! {
    /// Statistics of the interval that ends with a step.
    COLUMNS,
    /// Write the statistics of interval `m`, which ended at `now`, in the order of [`COLUMNS`]; `refused` counts the
    /// actions that the agent could not use.
    fn write_stats(now: Timestamp, m: &MonitorInterval, refused: u64);
    "time_s": now.as_secs_f64(),
    "duration_s": m.duration().as_secs_f64(),
    "sent_packets": m.sent_packets as f64,
    "sent_bytes": m.sent_bytes as f64,
    "acked_packets": m.acked_packets as f64,
    "acked_bytes": m.acked_bytes as f64,
    "lost_packets": m.lost_packets as f64,
    "retransmissions": m.retransmissions as f64,
    "timeouts": m.timeouts as f64,
    "mean_rtt_s": seconds(m.mean_rtt()),
    "interval_min_rtt_s": seconds(m.interval_min_rtt()),
    "interval_max_rtt_s": seconds(m.interval_max_rtt()),
    "srtt_s": m.srtt.as_secs_f64(),
    "min_rtt_s": seconds(Some(m.min_rtt).filter(|rtt| *rtt != TimeSpan::MAX)),
    "mean_one_way_delay_s": m.mean_one_way_delay().unwrap_or(0.0),
    "rtt_slope": m.rtt_slope(),
    "half_split_rtt_change_s": m.half_split_rtt_change(),
    "send_rate_bps": m.send_rate().0 as f64,
    "delivery_rate_bps": m.delivery_rate().0 as f64,
    "loss_fraction": m.loss_fraction(),
    "in_flight_bytes": m.in_flight as f64,
    "cwnd_bytes": window(m.cwnd),
    "pacing_rate_bps": m.pacing_rate.0 as f64,
    "refused_actions": refused as f64,
}

columns! {
    /// Ground truth of a flow, then the pacing rate and window of its sender.
    TRUTH_COLUMNS,
    /// Write them in the order of [`TRUTH_COLUMNS`].
    fn write_truth(truth: &GroundTruth, sender: &Sender);
    "link_rate_bps": truth.link_rate,
    "base_rtt_s": truth.base_rtt,
    "backlog_packets": truth.backlog,
    "queue_limit_packets": truth.queue_limit,
    "loss": truth.loss,
    "flows": f64::from(truth.flows),
    "fair_share_bps": truth.fair_share,
    "pacing_rate_bps": sender.control().pacing_rate.0 as f64,
    "cwnd_packets": window(sender.control().cwnd) / f64::from(sender.packet_size()),
}

fn seconds(span: Option<TimeSpan>) -> f64 {
    span.map_or(0.0, TimeSpan::as_secs_f64)
}

fn window(bytes: u64) -> f64 {
    if bytes == u64::MAX {
        f64::INFINITY
    } else {
        bytes as f64
    }
}
