//! Arguments of the methods of a scheme in Python: plain numbers, in seconds, packets, bytes and bits per second.

use ccgym_core::{AckEvent, InitContext, MonitorInterval, RttEstimator, TimeSpan, TimeoutEvent};
use pyo3::prelude::*;

/// Before the first packet.
#[pyclass(frozen, get_all, module = "ccgym._core")]
pub struct Start {
    now_s: f64,
    flow: u32,
    packet_bytes: u64,
    initial_window: f64,
    seed: u64,
}

/// An acknowledgement that acknowledged something.
#[pyclass(frozen, get_all, module = "ccgym._core")]
pub struct Ack {
    now_s: f64,
    acked_packets: u64,
    acked_bytes: u64,
    lost_packets: u64,
    lost_bytes: u64,
    rtt_s: Option<f64>,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    delivery_rate_bps: Option<f64>,
    delivered_bytes: u64,
    in_flight_packets: f64,
    in_flight_bytes: u64,
    entered_recovery: bool,
    in_recovery: bool,
    cwnd_limited: bool,
    ce_packets: u64,
}

/// Packets were declared lost.
#[pyclass(frozen, get_all, module = "ccgym._core")]
pub struct Loss {
    now_s: f64,
    lost_packets: u64,
    lost_bytes: u64,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    in_flight_packets: f64,
    in_flight_bytes: u64,
    entered_recovery: bool,
    in_recovery: bool,
}

/// The retransmission timer expired.
#[pyclass(frozen, get_all, module = "ccgym._core")]
pub struct Timeout {
    now_s: f64,
    count: u32,
    lost_packets: u64,
    lost_bytes: u64,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
}

/// Statistics between two decisions.
#[pyclass(frozen, get_all, module = "ccgym._core")]
pub struct Interval {
    now_s: f64,
    duration_s: f64,
    sent_packets: u64,
    sent_bytes: u64,
    acked_packets: u64,
    acked_bytes: u64,
    lost_packets: u64,
    lost_bytes: u64,
    loss_fraction: f64,
    send_rate_bps: f64,
    delivery_rate_bps: f64,
    mean_rtt_s: Option<f64>,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    rtt_slope: f64,
    in_flight_packets: f64,
    in_flight_bytes: u64,
    timeouts: u64,
    ce_packets: u64,
    app_limited: bool,
}

fn seconds(rtt: &RttEstimator, time: TimeSpan) -> Option<f64> {
    (rtt.samples() > 0).then(|| time.as_secs_f64())
}

impl Start {
    pub fn new(context: &InitContext) -> Self {
        let mut rng = context.rng.clone();
        Self {
            now_s: context.now.as_secs_f64(),
            flow: context.flow,
            packet_bytes: context.mss,
            initial_window: context.initial_window as f64 / context.mss as f64,
            seed: rng.next_u64(),
        }
    }
}

impl Ack {
    pub fn new(event: &AckEvent<'_>, mss: u64) -> Self {
        Self {
            now_s: event.now.as_secs_f64(),
            acked_packets: event.acked_packets,
            acked_bytes: event.acked_bytes,
            lost_packets: event.lost.len() as u64,
            lost_bytes: event.lost_bytes,
            rtt_s: event.rtt_sample.map(TimeSpan::as_secs_f64),
            srtt_s: seconds(event.rtt, event.rtt.smoothed()),
            min_rtt_s: seconds(event.rtt, event.rtt.min()),
            delivery_rate_bps: event.rate_sample.map(|sample| sample.rate().0 as f64),
            delivered_bytes: event.delivered,
            in_flight_packets: event.in_flight as f64 / mss as f64,
            in_flight_bytes: event.in_flight,
            entered_recovery: event.entered_recovery,
            in_recovery: event.in_recovery,
            cwnd_limited: event.cwnd_limited,
            ce_packets: event.ce_packets,
        }
    }
}

impl Loss {
    pub fn new(event: &AckEvent<'_>, mss: u64) -> Self {
        Self {
            now_s: event.now.as_secs_f64(),
            lost_packets: event.lost.len() as u64,
            lost_bytes: event.lost_bytes,
            srtt_s: seconds(event.rtt, event.rtt.smoothed()),
            min_rtt_s: seconds(event.rtt, event.rtt.min()),
            in_flight_packets: event.in_flight as f64 / mss as f64,
            in_flight_bytes: event.in_flight,
            entered_recovery: event.entered_recovery,
            in_recovery: event.in_recovery,
        }
    }
}

impl Timeout {
    pub fn new(event: &TimeoutEvent<'_>) -> Self {
        Self {
            now_s: event.now.as_secs_f64(),
            count: event.count,
            lost_packets: event.lost.len() as u64,
            lost_bytes: event.lost.iter().map(|packet| packet.bytes).sum(),
            srtt_s: seconds(event.rtt, event.rtt.smoothed()),
            min_rtt_s: seconds(event.rtt, event.rtt.min()),
        }
    }
}

impl Interval {
    pub fn new(interval: &MonitorInterval, mss: u64) -> Self {
        let measured = interval.min_rtt != TimeSpan::MAX;
        Self {
            now_s: interval.end.as_secs_f64(),
            duration_s: interval.duration().as_secs_f64(),
            sent_packets: interval.sent_packets,
            sent_bytes: interval.sent_bytes,
            acked_packets: interval.acked_packets,
            acked_bytes: interval.acked_bytes,
            lost_packets: interval.lost_packets,
            lost_bytes: interval.lost_bytes,
            loss_fraction: interval.loss_fraction(),
            send_rate_bps: interval.send_rate().0 as f64,
            delivery_rate_bps: interval.delivery_rate().0 as f64,
            mean_rtt_s: interval.mean_rtt().map(TimeSpan::as_secs_f64),
            srtt_s: measured.then(|| interval.srtt.as_secs_f64()),
            min_rtt_s: measured.then(|| interval.min_rtt.as_secs_f64()),
            rtt_slope: interval.rtt_slope(),
            in_flight_packets: interval.in_flight as f64 / mss as f64,
            in_flight_bytes: interval.in_flight,
            timeouts: interval.timeouts,
            ce_packets: interval.ce_packets,
            app_limited: interval.app_limited,
        }
    }
}
