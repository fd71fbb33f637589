//! The columns of a decision interval, the same for a simulated and a real path.

use ccgym_agent::GroundTruth;
use ccgym_core::{MonitorInterval, Sender, TimeSpan, Timestamp};

/// Statistics of the interval that ends with a step, in order: what [`write_stats`] writes.
pub const COLUMNS: [&str; 24] = [
    "time_s",
    "duration_s",
    "sent_packets",
    "sent_bytes",
    "acked_packets",
    "acked_bytes",
    "lost_packets",
    "retransmissions",
    "timeouts",
    "mean_rtt_s",
    "interval_min_rtt_s",
    "interval_max_rtt_s",
    "srtt_s",
    "min_rtt_s",
    "mean_one_way_delay_s",
    "rtt_slope",
    "half_split_rtt_change_s",
    "send_rate_bps",
    "delivery_rate_bps",
    "loss_fraction",
    "in_flight_bytes",
    "cwnd_bytes",
    "pacing_rate_bps",
    "refused_actions",
];

/// Columns that [`write_truth`] writes, in order.
pub const TRUTH_COLUMNS: [&str; 9] = [
    "link_rate_bps",
    "base_rtt_s",
    "backlog_packets",
    "queue_limit_packets",
    "loss",
    "flows",
    "fair_share_bps",
    "pacing_rate_bps",
    "cwnd_packets",
];

/// Write the ground truth of a flow in the order of [`TRUTH_COLUMNS`]. The last two cells are the sender's own: its
/// current pacing rate and window.
pub fn write_truth(truth: &GroundTruth, sender: &Sender, cells: &mut [f64]) {
    let control = sender.control();
    let packet = f64::from(sender.packet_size());
    let cwnd = if control.cwnd == u64::MAX { f64::INFINITY } else { control.cwnd as f64 / packet };
    cells.copy_from_slice(&[
        truth.link_rate,
        truth.base_rtt,
        truth.backlog,
        truth.queue_limit,
        truth.loss,
        f64::from(truth.flows),
        truth.fair_share,
        control.pacing_rate.0 as f64,
        cwnd,
    ]);
}

/// Write the statistics of interval `m`, which ended at `now`, in the order of [`COLUMNS`]; `refused` counts the
/// actions that the agent could not use.
pub fn write_stats(now: Timestamp, m: &MonitorInterval, refused: u64, cells: &mut [f64]) {
    let secs = |t: Option<TimeSpan>| t.map_or(0.0, TimeSpan::as_secs_f64);
    let min_rtt = (m.min_rtt != TimeSpan::MAX).then_some(m.min_rtt);
    let cwnd = if m.cwnd == u64::MAX { f64::INFINITY } else { m.cwnd as f64 };
    cells.copy_from_slice(&[
        now.as_secs_f64(),
        m.duration().as_secs_f64(),
        m.sent_packets as f64,
        m.sent_bytes as f64,
        m.acked_packets as f64,
        m.acked_bytes as f64,
        m.lost_packets as f64,
        m.retransmissions as f64,
        m.timeouts as f64,
        secs(m.mean_rtt()),
        secs(m.interval_min_rtt()),
        secs(m.interval_max_rtt()),
        m.srtt.as_secs_f64(),
        secs(min_rtt),
        m.mean_one_way_delay().unwrap_or(0.0),
        m.rtt_slope(),
        m.half_split_rtt_change(),
        m.send_rate().0 as f64,
        m.delivery_rate().0 as f64,
        m.loss_fraction(),
        m.in_flight as f64,
        cwnd,
        m.pacing_rate.0 as f64,
        refused as f64,
    ]);
}
