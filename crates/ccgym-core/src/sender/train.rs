//! Trains: the packets and acknowledgements of a paced flow between two decisions of a scheme that hears neither.
//!
//! They give the same result as [`Sender::poll_transmit`], [`Sender::on_ack`] and [`Sender::next_timeout`], for a driver
//! that asks no more than this about each.

use super::Sender;
use crate::packet::{Ecn, PacketNumber};
use crate::sent_packets::State;
use crate::units::{Rate, TimeSpan, Timestamp};

impl Sender {
    /// True if this flow may ever send trains.
    #[must_use]
    pub fn forms_trains(&self) -> bool {
        let needs = &self.capabilities;
        self.fast_send && self.by_intervals && needs.ecn == Ecn::NotEct && !(needs.timers || needs.rate_samples)
    }

    /// True if a train begins or goes on after [`Sender::poll_transmit`] returned `None`.
    #[must_use]
    #[inline]
    pub fn is_in_train(&self) -> bool {
        self.ignores_acks
            && self.awaits_release
            && self.interval_end.acks == 0
            && self.probes_wanted == 0
            && self.train_room() > 0
            && self.control.pacing_rate != Rate::ZERO
    }

    /// Return the time from which on timers may be due: the train ends before it. Changes with each acknowledgement.
    #[must_use]
    #[inline]
    pub fn train_end(&self) -> Timestamp {
        let quiet = self.cca_timer.min(self.quiet_until());
        if self.detector.has_holes() {
            quiet.min(self.detector.next_timeout(self.loss_rtt()))
        } else {
            quiet
        }
    }

    /// Return when the next packet of the train leaves.
    #[must_use]
    #[inline]
    pub const fn release(&self) -> Timestamp {
        self.pacer.release()
    }

    /// Return how many full packets window, application and memory allow in a row. Acknowledgements never lower it.
    #[must_use]
    #[inline]
    pub fn train_room(&self) -> u64 {
        let window = self.control.cwnd.saturating_sub(self.in_flight) / u64::from(self.config.packet_size);
        let full = self.full_until.saturating_sub(self.next_segment + 1);
        window.min(full).min(self.packets.room())
    }

    /// Send the next packet of the train, a full one for which there is [`Sender::train_room`]; returns its number.
    #[inline]
    pub fn send_in_train(&mut self, now: Timestamp) -> PacketNumber {
        let segment = self.next_segment;
        self.next_segment += 1;
        self.put_in_flight::<true>(now, segment, self.config.packet_size)
    }

    /// Process the acknowledgement of one packet, in the order of sending, which arrived at `received`; returns the new
    /// [`Sender::train_end`]. `None` if [`Sender::on_ack`] must process it: nothing has changed.
    #[inline]
    pub fn ack_in_train(&mut self, now: Timestamp, number: PacketNumber, received: Timestamp) -> Option<Timestamp> {
        let full = self.config.packet_size;
        let p = self.packets.get_mut(number)?;
        let (sent, outstanding) = (p.sent, p.state == State::Outstanding && u32::from(p.size) == full);
        let sample = now.since(sent);
        if number < self.acked_end || !outstanding || sample < self.rtt.min() {
            return None;
        }
        p.state = State::Acked;
        if number > self.acked_end {
            self.open_holes(number);
        }
        self.acked_end = number + 1;
        self.in_flight -= u64::from(full);
        self.detector.on_acked(1);
        self.timer_base = now;
        self.rtt.update(sample, TimeSpan::ZERO);
        let mut entered = false;
        if self.detector.has_holes() {
            self.lost_records.clear();
            entered = self.declare_losses(now);
            let lost_bytes = self.lost_records.iter().map(|lost| lost.bytes).sum();
            self.monitor.on_lost(self.lost_records.len() as u64, lost_bytes);
        }
        if self.begin_round() {
            self.max_in_flight_in_round = self.in_flight;
        }
        if !entered {
            self.try_exit_recovery(now, false);
        }
        self.monitor.on_sample(now, sent, received);
        self.packets.settle(now - TimeSpan(2 * self.rtt.smoothed().0));
        Some(self.train_end())
    }

    /// End the train, in which so many packets left and were acknowledged, the last one at `acked_at`: other calls follow.
    pub fn end_train(&mut self, sent: u64, acked: u64, acked_at: Timestamp) {
        let size = u64::from(self.config.packet_size);
        self.stats.sent_packets += sent;
        self.stats.sent_bytes += sent * size;
        self.monitor.sent_packets += sent;
        self.monitor.sent_bytes += sent * size;
        if acked > 0 {
            self.sampler.on_delivered(acked_at, acked * size);
            self.stats.acked_packets += acked;
            self.stats.acked_bytes += acked * size;
            self.monitor.acks += acked;
            self.monitor.acked_packets += acked;
            self.monitor.acked_bytes += acked * size;
            (self.timeouts, self.probes_sent, self.doubtful_below) = (0, 0, 0);
            self.update_fast_path();
        }
    }
}
