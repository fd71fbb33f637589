//! Decision intervals: statistics collected between two decisions, and the algorithm's call when one ends.

use super::Sender;
use crate::congestion_control::IntervalEnd;
use crate::monitor::MonitorInterval;
use crate::rate_sampler::RateSample;
use crate::units::{Rate, TimeSpan, Timestamp};

impl Sender {
    /// Give the algorithm the decision that it waits for, and apply the result.
    pub fn decide(&mut self, now: Timestamp, action: &[f32]) {
        if let Some(scheme) = self.cca.interval_driven_mut() {
            scheme.decide(now, action);
        }
        self.hold_decision();
    }

    /// End the algorithm's wait without a decision: its last one stays valid.
    pub fn hold_decision(&mut self) {
        self.adopt_control();
        self.awaits_decision = false;
    }

    /// True if the algorithm waits for a decision from outside ([`Sender::decide`]). The driver checks after
    /// [`Sender::on_ack`] and [`Sender::on_timeout`], and processes no event before the decision: its time is then the
    /// same as if the algorithm had decided by itself.
    #[must_use]
    #[inline]
    pub const fn awaits_decision(&self) -> bool {
        self.awaits_decision
    }

    /// Return the latest closed interval.
    #[must_use]
    pub const fn last_interval(&self) -> &MonitorInterval {
        &self.closed
    }

    /// Close the interval at `now`, due or not, and call the algorithm.
    pub fn end_interval(&mut self, now: Timestamp) {
        let Self { monitor, closed, rtt, in_flight, control, cca, .. } = self;
        monitor.close_into(closed, now, rtt, *in_flight, control, cca.ssthresh());
        let Some(scheme) = self.cca.interval_driven_mut() else { return };
        scheme.on_interval(&self.closed);
        self.awaits_decision = scheme.awaits_decision();
        self.adopt_control();
    }

    /// Close the interval if this acknowledgement does.
    #[inline]
    pub(super) fn end_interval_on_ack(&mut self, now: Timestamp) {
        if self.by_intervals {
            crate::cold_path();
            let end = self.interval_end;
            if end.acks > 0 && end.at <= now && self.monitor.acks >= end.acks {
                self.end_interval(now);
            }
        }
    }

    /// True if the interval's end has come. Acknowledgements that arrive at that time belong to the next one: a driver
    /// calls [`Sender::end_interval`] before it passes such an acknowledgement, in the simulator as with real packets.
    /// On paths whose packets move by whole milliseconds simulated arrivals often coincide with timers.
    #[must_use]
    #[inline]
    pub fn is_interval_over(&self, now: Timestamp) -> bool {
        self.cca_timer <= now && self.by_intervals && self.interval_end.acks == 0 && self.interval_end.at <= now
    }

    /// Read the next timer from the algorithm.
    #[inline(always)]
    pub(super) fn adopt_timer(&mut self) {
        if self.by_intervals {
            self.adopt_interval_end();
        }
        if self.capabilities.timers {
            let own = self.cca.next_timer();
            self.cca_timer = if self.by_intervals { self.cca_timer.min(own) } else { own };
        }
    }

    /// Read the end of the current interval from the algorithm.
    fn adopt_interval_end(&mut self) {
        let scheme = self.cca.interval_driven();
        self.interval_end = scheme.map_or_else(IntervalEnd::default, |scheme| scheme.interval_end());
        self.ignores_acks = scheme.is_some_and(|scheme| scheme.ignores_acks());
        if self.ignores_acks {
            self.quantum = self.cca.send_quantum();
        }
        self.cca_timer = if self.interval_end.acks > 0 { Timestamp::NEVER } else { self.interval_end.at };
    }

    /// Add the rates of an acknowledgement of packet `newest`.
    pub(super) fn add_rates(&mut self, rtt: TimeSpan, newest: u64, sample: Option<&RateSample>) {
        let Some(sample) = sample else { return };
        let since = (self.packets.next() - newest) * u64::from(self.config.packet_size);
        let send_rate = Rate::from_bytes_over(since, rtt);
        self.monitor.on_rates(rtt, self.rtt.min(), sample.rate(), send_rate);
    }
}
