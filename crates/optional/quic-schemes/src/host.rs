//! Transport of a scheme, driven by the calls that the library makes to a controller.

use ccgym_core::congestion_control::{Capabilities, IntervalEnd, LostPacket};
use ccgym_core::rate_sampler::{RateSample, RateSampler};
use ccgym_core::{
    AckEvent, CongestionControl, Control, InitContext, MonitorInterval, Rate, RttEstimator, TimeSpan, TimeoutEvent,
    Timestamp,
};

use super::departures::{Departure, Departures};

/// Max expiries of a scheme's timer that one call makes up for.
const MAX_EXPIRIES: usize = 64;
/// Packets above the window that may be in flight: probes ignore the window.
const PROBES: u64 = 16;

/// Result so far of one ACK or one expiry of the loss timer.
#[derive(Clone, Debug, Default)]
struct Batch {
    now: Timestamp,
    /// True if the ACK is complete; losses and marks may follow.
    complete: bool,
    acked_packets: u64,
    acked_bytes: u64,
    newest: Option<Departure>,
    lost: Vec<LostPacket>,
    lost_bytes: u64,
    /// Send time of the last packet that was lost or marked.
    congested: Option<Timestamp>,
    marks: u64,
    persistent: bool,
    app_limited: bool,
    prior_in_flight: u64,
}

/// Scheme and the transport's state for it.
#[derive(Clone)]
pub(super) struct Host {
    scheme: Box<dyn CongestionControl>,
    capabilities: Capabilities,
    control: Control,
    window: u64,
    max_window: u64,
    /// Current size of a full packet, bytes.
    mtu: u64,
    departures: Departures,
    in_flight: u64,
    sent_any: bool,
    largest_acked: Option<u64>,
    sampler: RateSampler,
    rtt: RttEstimator,
    /// Start of the latest recovery period (RFC 9002 §7.3.2).
    recovery_start: Option<Timestamp>,
    in_recovery: bool,
    batch: Option<Batch>,
    by_intervals: bool,
    interval_end: IntervalEnd,
    monitor: MonitorInterval,
    closed: MonitorInterval,
}

impl Host {
    pub fn new(mut scheme: Box<dyn CongestionControl>, context: InitContext) -> Self {
        let (start, mtu) = (context.now, context.mss);
        scheme.init(context);
        // The handshake does not fill the path.
        let mut sampler = RateSampler::default();
        sampler.mark_app_limited(0);
        let mut host = Self {
            capabilities: scheme.capabilities(),
            control: scheme.control(),
            by_intervals: scheme.interval_driven().is_some(),
            scheme,
            window: 0,
            max_window: 0,
            mtu,
            departures: Departures::default(),
            in_flight: 0,
            sent_any: false,
            largest_acked: None,
            sampler,
            rtt: RttEstimator::default(),
            recovery_start: None,
            in_recovery: false,
            batch: None,
            interval_end: IntervalEnd::default(),
            monitor: MonitorInterval::new(start),
            closed: MonitorInterval::new(start),
        };
        host.adopt();
        host
    }

    /// Return the window for the library: one byte more than the scheme's, since the library never fills it exactly.
    pub fn window(&mut self) -> u64 {
        self.conclude();
        self.window.saturating_add(1)
    }

    pub fn ssthresh(&self) -> Option<u64> {
        self.scheme.ssthresh()
    }

    pub fn pacing_rate(&self) -> Option<Rate> {
        Some(self.control.pacing_rate).filter(|rate| *rate != Rate::ZERO)
    }

    pub fn set_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
        self.adopt();
    }

    /// Process the departure of datagrams with `bytes` in total.
    pub fn on_sent(&mut self, now: Timestamp, bytes: u64) {
        self.conclude();
        self.serve(now);
        if self.in_flight == 0 && self.sent_any {
            self.scheme.on_idle_restart(now);
            self.adopt();
        }
        self.sent_any = true;
        let mut left = bytes;
        while left > 0 {
            let bytes = left.min(self.mtu);
            left -= bytes;
            let app_limited = self.sampler.is_app_limited();
            let stamp = self.sampler.on_send(now, self.in_flight);
            self.in_flight += bytes;
            let in_flight = self.in_flight;
            self.departures.push(Departure { number: 0, sent: now, bytes, in_flight, stamp, app_limited });
            self.monitor.on_sent(bytes, false);
        }
        let without_data = self.departures.bound(self.max_window.saturating_add(PROBES * self.mtu));
        self.in_flight = self.in_flight.saturating_sub(without_data);
    }

    /// Process one packet of the current ACK.
    pub fn on_acked(&mut self, now: Timestamp, sent: Timestamp, bytes: u64, app_limited: bool) {
        if self.batch.as_ref().is_some_and(|batch| batch.complete) {
            self.conclude();
        }
        let departure = self.departures.take_acked(sent);
        let batch = self.batch_at(now);
        batch.acked_packets += 1;
        batch.acked_bytes += bytes;
        batch.app_limited = app_limited;
        if departure.is_some_and(|one| batch.newest.is_none_or(|newest| newest.number < one.number)) {
            batch.newest = departure;
        }
    }

    /// Process the end of the ACK; `in_flight` bytes remain.
    pub fn on_end_acks(&mut self, now: Timestamp, in_flight: u64, app_limited: bool) {
        let batch = self.batch_at(now);
        batch.complete = true;
        batch.app_limited = app_limited;
        if let Some(newest) = batch.newest {
            self.departures.reconcile(newest.number, in_flight);
        }
        self.in_flight = in_flight;
    }

    /// Process a loss of `bytes`; the last of these packets was sent at `sent`. Zero bytes: packets were marked.
    pub fn on_congestion(&mut self, now: Timestamp, sent: Timestamp, persistent: bool, bytes: u64) {
        let mut lost = Vec::new();
        self.departures.take_lost(sent, bytes, &mut lost);
        if lost.is_empty() && bytes > 0 {
            // These lost bytes belong to packets that are not known here.
            let (number, in_flight_at_send) = (self.departures.next().saturating_sub(1), self.in_flight);
            lost.push(LostPacket { number, bytes, sent, in_flight_at_send });
        }
        let batch = self.batch_at(now);
        batch.complete = true;
        batch.lost.append(&mut lost);
        batch.lost_bytes += bytes;
        batch.congested = batch.congested.max(Some(sent));
        batch.marks += u64::from(bytes == 0);
        batch.persistent |= persistent;
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// Return the batch of `now`; conclude an earlier one.
    fn batch_at(&mut self, now: Timestamp) -> &mut Batch {
        if self.batch.as_ref().is_some_and(|batch| batch.now != now) {
            self.conclude();
        }
        let prior_in_flight = self.in_flight;
        self.batch.get_or_insert_with(|| Batch { now, prior_in_flight, ..Batch::default() })
    }

    /// Pass the whole batch to the scheme.
    fn conclude(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        let now = batch.now;
        self.serve(now);
        let (mut rtt_sample, mut rate_sample) = (None, None);
        if batch.acked_packets > 0 {
            self.sampler.on_delivered(now, batch.acked_bytes);
        }
        self.sampler.on_lost(batch.lost_bytes);
        if let Some(newest) = &batch.newest {
            let number = self.departures.number(newest);
            if self.largest_acked.is_none_or(|largest| number > largest) {
                self.largest_acked = Some(number);
                let sample = now.since(newest.sent);
                self.rtt.update(sample, TimeSpan::ZERO);
                rtt_sample = Some(sample);
            }
            if self.capabilities.rate_samples {
                let Departure { stamp, sent, in_flight, app_limited, .. } = newest;
                rate_sample = self.sampler.sample(stamp, *sent, *in_flight, *app_limited, self.rtt.min());
            }
        }
        let entered = self.enter_or_leave_recovery(&batch);
        if self.by_intervals {
            self.watch(&batch, rtt_sample, rate_sample.as_ref());
        }
        // A scheme gets losses first.
        let Batch { prior_in_flight, ref lost, persistent: timeout, .. } = batch;
        if timeout {
            self.scheme.on_timeout(&TimeoutEvent { now, count: 1, lost, prior_in_flight, rtt: &self.rtt });
        }
        if !timeout || batch.acked_packets > 0 {
            self.scheme.on_ack(&AckEvent {
                now,
                acked_packets: batch.acked_packets,
                acked_bytes: batch.acked_bytes,
                counted_bytes: batch.acked_bytes,
                acked: &[],
                lost: if timeout { &[] } else { lost },
                lost_bytes: if timeout { 0 } else { batch.lost_bytes },
                rtt_sample,
                rtt: &self.rtt,
                rate_sample: rate_sample.as_ref(),
                prior_in_flight,
                in_flight: self.in_flight,
                delivered: self.sampler.delivered(),
                largest_acked: self.largest_acked.unwrap_or(0),
                next_packet_number: self.departures.next(),
                entered_recovery: entered && !timeout,
                in_recovery: self.in_recovery,
                cwnd_limited: !batch.app_limited,
                ack_delayed: false,
                ce_packets: batch.marks,
            });
        }
        self.adopt();
        if batch.app_limited && self.in_flight < self.window {
            self.sampler.mark_app_limited(self.in_flight);
            self.monitor.app_limited = true;
            self.scheme.on_app_limited(now, self.in_flight);
            self.adopt();
        }
        let end = self.interval_end;
        if self.by_intervals && end.acks > 0 && end.at <= now && self.monitor.acks >= end.acks {
            self.end_interval(now);
        }
    }

    /// Return true if a recovery period starts: each has one reduction.
    fn enter_or_leave_recovery(&mut self, batch: &Batch) -> bool {
        let after_start = |sent| self.recovery_start.is_none_or(|start| sent > start);
        if batch.congested.is_some_and(after_start) {
            self.recovery_start = Some(batch.now);
            self.in_recovery = true;
            return true;
        }
        if batch.newest.is_some_and(|newest| after_start(newest.sent)) {
            self.in_recovery = false;
        }
        false
    }

    /// Count the batch in the current interval.
    fn watch(&mut self, batch: &Batch, rtt_sample: Option<TimeSpan>, rate_sample: Option<&RateSample>) {
        self.monitor.on_acked(batch.acked_packets, batch.acked_bytes);
        self.monitor.on_lost(batch.lost.len() as u64, batch.lost_bytes);
        self.monitor.ce_packets += batch.marks;
        self.monitor.timeouts += u64::from(batch.persistent);
        let (Some(rtt), Some(newest)) = (rtt_sample, &batch.newest) else { return };
        // The receiver's clock is not known: the RTT replaces the one-way delay.
        self.monitor.on_sample(batch.now, newest.sent, batch.now);
        if let Some(sample) = rate_sample {
            let since = (self.departures.next() - self.departures.number(newest)) * self.mtu;
            self.monitor.on_rates(rtt, self.rtt.min(), sample.rate(), Rate::from_bytes_over(since, rtt));
        }
    }

    /// Fire the scheme's timers that have expired. quinn gives its controllers no timers; these fire at its next call.
    fn serve(&mut self, now: Timestamp) {
        for _ in 0..MAX_EXPIRIES {
            if !self.capabilities.timers || self.scheme.next_timer() > now {
                break;
            }
            self.scheme.on_timer(now);
            self.adopt();
        }
        if self.by_intervals && self.interval_end.acks == 0 && self.interval_end.at <= now {
            self.end_interval(now);
        }
    }

    fn end_interval(&mut self, now: Timestamp) {
        let Self { monitor, closed, rtt, in_flight, control, scheme, .. } = self;
        monitor.close_into(closed, now, rtt, *in_flight, control, scheme.ssthresh());
        if let Some(agent) = scheme.interval_driven_mut() {
            agent.on_interval(closed);
        }
        self.adopt();
    }

    /// Apply the scheme's decision.
    fn adopt(&mut self) {
        self.control = self.scheme.control();
        self.interval_end =
            self.scheme.interval_driven().map_or_else(IntervalEnd::default, |agent| agent.interval_end());
        let Control { cwnd, pacing_rate, .. } = self.control;
        // With pacing by the rate and not by the window, this much is in flight.
        let by_rate = (pacing_rate != Rate::ZERO).then(|| pacing_rate.bytes_in(self.rtt.smoothed()));
        self.window = by_rate.map_or(cwnd, |bytes| bytes.min(cwnd)).max(2 * self.mtu);
        self.max_window = self.max_window.max(self.window);
    }
}
