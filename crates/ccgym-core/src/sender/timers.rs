//! The reordering, probe and retransmission timers.

use super::{Recovery, Sender};
use crate::congestion_control::{AckEvent, TimeoutEvent};
use crate::prr::Prr;
use crate::sent_packets::State;
use crate::units::{TimeSpan, Timestamp};

/// Linux's margin over two round trips before a tail loss probe (two jiffies at 1000 Hz).
const PROBE_MARGIN: TimeSpan = TimeSpan::from_millis(2);

impl Sender {
    /// Return the next time for [`Sender::on_timeout`]: loss, probe and retransmission timers, the CCA's own timer, the
    /// end of the decision interval, and the pacing release if only that delays a packet.
    #[must_use]
    #[inline(always)]
    pub fn next_timeout(&self) -> Timestamp {
        if self.fast_path {
            // No hole is open. Paced: the next release comes long before the last resort.
            if self.awaits_release && self.pacer.release() < self.quiet_until() {
                return self.pacer.release().min(self.cca_timer);
            }
            // The frequent case of `last_resort`.
            if !self.awaits_release && self.probes_sent == 0 && self.in_flight > self.fast_timeout_above {
                let base = self.last_sent.max(self.timer_base);
                return Timestamp(base.0 + 2 * self.rtt.smoothed().0 + PROBE_MARGIN.0).min(self.cca_timer);
            }
        }
        self.next_of_all_timers()
    }

    /// Return the next time for [`Sender::on_timeout`] in the general case.
    #[inline(never)]
    fn next_of_all_timers(&self) -> Timestamp {
        if self.is_connecting() {
            return self.handshake_due();
        }
        if self.awaits_release && self.pacer.release() < self.quiet_until() {
            let next = self.pacer.release().min(self.cca_timer);
            if !self.detector.has_holes() {
                return next;
            }
            return next.min(self.detector.next_timeout(self.loss_rtt()));
        }
        let mut next = if self.awaits_acks() { self.last_resort() } else { Timestamp::NEVER };
        if self.detector.has_holes() {
            next = next.min(self.detector.next_timeout(self.loss_rtt()));
        }
        if self.awaits_release {
            next = next.min(self.pacer.release());
        }
        next.min(self.cca_timer)
    }

    /// Return the time before which neither probe nor retransmission timer fires.
    #[inline]
    pub(super) fn quiet_until(&self) -> Timestamp {
        self.timer_base + self.rtt.smoothed()
    }

    /// True if only the pacing release is due by `now`: then [`Sender::on_timeout`] has nothing to do.
    #[must_use]
    #[inline]
    pub fn is_release_due(&self, now: Timestamp) -> bool {
        self.awaits_release
            && self.pacer.release() <= now
            && now < self.quiet_until()
            && now < self.cca_timer
            && (self.fast_path || (!self.is_connecting() && self.has_no_loss_due(now)))
    }

    /// True if no hole is lost by time at `now`.
    fn has_no_loss_due(&self, now: Timestamp) -> bool {
        !self.detector.has_holes() || now < self.detector.next_timeout(self.loss_rtt())
    }

    /// Process the timers due at the time given by [`Sender::next_timeout`]. Follow with [`Sender::poll_transmit`].
    pub fn on_timeout(&mut self, now: Timestamp) {
        if self.is_connecting() {
            return; // the handshake is repeated by the next poll
        }
        if self.capabilities.timers && self.cca.next_timer() <= now {
            self.cca.on_timer(now);
            self.adopt_control();
        }
        if self.detector.has_holes() && self.detector.next_timeout(self.loss_rtt()) <= now {
            self.on_loss_timer(now);
        }
        if self.awaits_acks() && self.last_resort() <= now {
            if self.probes_sent < self.config.timers.probes && self.recovery == Recovery::Open {
                self.probes_sent += 1;
                self.probes_wanted = 1;
                self.fast_path = false;
                self.stats.probes += 1;
                self.timer_base = now;
            } else {
                self.on_retransmission_timeout(now);
            }
        }
        if self.is_interval_over(now) {
            self.end_interval(now);
        }
    }

    /// Process losses that the reordering timer detected without an acknowledgement.
    #[cold]
    fn on_loss_timer(&mut self, now: Timestamp) {
        self.fast_path = false;
        let prior_in_flight = self.in_flight;
        self.lost_records.clear();
        let entered = self.declare_losses(now);
        if self.lost_records.is_empty() {
            return;
        }
        if self.capabilities.prr && entered {
            self.prr = Prr::begin(prior_in_flight);
        }
        let lost_bytes = self.lost_records.iter().map(|l| l.bytes).sum();
        if self.by_intervals {
            self.monitor.on_lost(self.lost_records.len() as u64, lost_bytes);
        }
        let event = AckEvent {
            lost: &self.lost_records,
            lost_bytes,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: self.acked_end.saturating_sub(1),
            next_packet_number: self.packets.next(),
            entered_recovery: entered,
            in_recovery: self.in_recovery(),
            cwnd_limited: self.is_cwnd_limited(),
            ..AckEvent::new(now, &self.rtt)
        };
        self.cca.on_ack(&event);
        self.adopt_control();
        if self.capabilities.prr && matches!(self.recovery, Recovery::Fast { .. }) {
            self.prr.on_ack(0, self.in_flight, self.control.cwnd, u64::from(self.config.packet_size), false);
        }
    }

    /// True if the last-resort timer runs: packets are in flight, or lost and not yet sent again.
    #[inline]
    fn awaits_acks(&self) -> bool {
        self.in_flight > 0 || !self.retransmit.is_empty()
    }

    /// Return when the probe or retransmission timer fires.
    #[inline]
    fn last_resort(&self) -> Timestamp {
        if self.probes_sent < self.config.timers.probes && self.recovery == Recovery::Open {
            let due = self.probe_due();
            // A flow that no window limits continues to send, and each packet would delay the probe: it is never later
            // than the retransmission timer (RFC 8985 §7.2).
            return if self.last_sent > self.quiet_until() { due.min(self.retransmission_due()) } else { due };
        }
        self.retransmission_due()
    }

    #[inline]
    fn probe_due(&self) -> Timestamp {
        let base = self.last_sent.max(self.timer_base);
        if self.config.reliable && self.in_flight > u64::from(self.config.packet_size) {
            // RFC 8985 §7.2: two round trips after the last transmission.
            return Timestamp(base.0 + 2 * self.rtt.smoothed().0 + PROBE_MARGIN.0);
        }
        base + self.slow_path_probe_wait()
    }

    /// Return the wait before a probe if the acknowledgement of the only packet may be delayed (RFC 8985 §7.2), or by
    /// RFC 9002 §6.2.
    #[cold]
    fn slow_path_probe_wait(&self) -> TimeSpan {
        let timers = &self.config.timers;
        if self.config.reliable {
            return TimeSpan(2 * self.rtt.smoothed().0 + timers.rto_variation_floor.0);
        }
        let variation = (4 * self.rtt.variation().0).max(1_000_000);
        TimeSpan((self.rtt.smoothed().0 + variation + timers.max_ack_delay.0) << self.probes_sent)
    }

    #[cold]
    fn retransmission_due(&self) -> Timestamp {
        let timers = &self.config.timers;
        let mut rto = self.rtt.rto(timers.rto_variation_floor, timers.rto_floor);
        if !self.config.reliable {
            // RFC 9002 §7.6: persistent congestion after three probe periods.
            rto = TimeSpan(3 * (rto.0 + timers.max_ack_delay.0));
        }
        let backed_off = rto.0.saturating_mul(1 << self.timeouts.min(20)).min(timers.rto_ceiling.0);
        // A packet that only the pacer delays is not late (Linux `tcp_pacing_delay`).
        let base = if self.in_flight == 0 { self.timer_base.max(self.pacer.release()) } else { self.timer_base };
        base.saturating_add(TimeSpan(backed_off))
    }

    #[cold]
    fn on_retransmission_timeout(&mut self, now: Timestamp) {
        let prior_in_flight = self.in_flight;
        self.timeouts += 1;
        self.probes_sent = 0;
        self.timer_base = now;
        self.stats.rtos += 1;
        self.lost_records.clear();
        self.count_recovery(now);
        if !matches!(self.recovery, Recovery::Loss { .. }) {
            self.episode_losses = 0;
        }
        if let Some(ns3) = &mut self.ns3 {
            // Those that did not arrive are lost below.
            for resent in ns3.on_timeout() {
                let lost = self.packets.get(resent.number).is_some_and(|p| p.state == State::Outstanding);
                self.in_flight -= if lost { 0 } else { resent.bytes };
            }
        } else if self.timeouts == 1 {
            // Fast recovery continues as recovery after a timeout: its detected losses are lost in any case.
            self.doubtful_below = if self.recovery == Recovery::Open { self.packets.next() } else { 0 };
        }
        self.detector.clear();
        self.fast_path = false;
        for number in self.packets.first()..self.packets.next() {
            if self.timeouts == 1 {
                self.packets.settle_verdict(number);
            }
            self.mark_lost(number, State::TimedOut);
        }
        self.acked_end = self.packets.next();
        self.recovery =
            Recovery::Loss { point: if self.config.reliable { self.next_segment } else { self.packets.next() } };
        if self.by_intervals {
            self.monitor.timeouts += 1;
            let bytes = self.lost_records.iter().map(|l| l.bytes).sum();
            self.monitor.on_lost(self.lost_records.len() as u64, bytes);
        }
        self.cca.on_timeout(&TimeoutEvent {
            now,
            count: self.timeouts,
            lost: &self.lost_records,
            prior_in_flight,
            rtt: &self.rtt,
        });
        self.adopt_control();
    }
}
