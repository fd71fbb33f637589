//! Processes acknowledgements: settled packets, samples, and the events for the algorithm.

use super::{Recovery, Sender, HANDSHAKE};
use crate::congestion_control::{AckEvent, AckedPacket, SpuriousLossEvent};
use crate::feedback::Feedback;
use crate::ns3::Arrivals;
use crate::packet::{Ack, AckRange, PacketNumber};
use crate::prr::Prr;
use crate::rate_sampler::RateSample;
use crate::sent_packets::State;
use crate::units::{TimeSpan, Timestamp};

/// Packets newly acknowledged by one acknowledgement.
#[derive(Default)]
struct AckDelta {
    packets: u64,
    bytes: u64,
    /// Number of these that had been declared lost.
    spurious: u64,
    /// True if one of these refutes the latest timeout.
    refutes_timeout: bool,
    newest: PacketNumber,
    /// Segments that arrived for the first time, and the highest of them; for the profile `ns3`.
    segments: u64,
    highest_segment: u64,
    trigger_acked: bool,
    trigger_sent: Timestamp,
}

/// State before an acknowledgement.
struct PriorState {
    prior_in_flight: u64,
    /// Segments acknowledged without a gap.
    segments: u64,
}

/// Data of an acknowledgement besides the packets that arrived.
struct AckMetadata {
    /// Arrival of the packet that caused it, on the receiver's clock.
    received: Timestamp,
    /// Delay from then to its departure.
    wait: TimeSpan,
    ce_total: u32,
}

impl Sender {
    /// Process an acknowledgement. Follow with [`Sender::poll_transmit`].
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, ack: &Ack) {
        self.on_ack_as::<false>(now, ack);
    }

    /// As [`Sender::on_ack`]; with `PLAIN`, of a sender that [`Sender::is_plain`].
    #[inline(always)]
    pub fn on_ack_as<const PLAIN: bool>(&mut self, now: Timestamp, ack: &Ack) {
        // In order and nothing missing: by far the most frequent case. Older ranges have no news while no hole is open.
        let fast = self.fast_path
            && ack.trigger == ack.largest
            && ack.largest >= self.acked_end
            && ack.largest < self.packets.next().min(self.fast_path_end)
            && ack.range(0).first <= self.acked_end
            && ack.ce_total == self.ce_seen;
        if fast {
            self.on_ack_fast_path::<PLAIN>(now, ack);
        } else {
            crate::cold_path();
            self.on_any_ack(now, ack);
            self.update_fast_path();
        }
        if !PLAIN {
            self.end_interval_on_ack(now);
        }
    }

    /// Update the conditions of the fast path for the next acknowledgement.
    #[inline(always)]
    pub(super) fn update_fast_path(&mut self) {
        // Recovery without PRR or retransmissions changes only its own end.
        self.fast_path_end = match self.recovery {
            Recovery::Open => PacketNumber::MAX,
            Recovery::Fast { point, .. } if !self.config.reliable && !self.capabilities.prr => point,
            _ => 0,
        };
        self.fast_path = self.fast_path_end > 0
            && !self.detector.has_holes()
            && !self.capabilities.packet_events
            && self.acked_end >= self.outstanding_from
            && self.ns3.as_ref().is_none_or(|ns3| self.acked_segments.gaps() == 0 && !ns3.has_resent());
    }

    /// Process feedback of the scheme's receiver. Follow with [`Sender::poll_transmit`].
    #[cold]
    pub fn on_feedback(&mut self, now: Timestamp, feedback: &Feedback) {
        // As with acknowledgements: packets that were never sent cannot have arrived.
        let newest = feedback.ranges.first().map(|range| range.last);
        if newest.into_iter().chain(feedback.arrivals.iter().map(|a| a.number)).any(|n| n >= self.packets.next()) {
            return;
        }
        if !feedback.message.is_empty() {
            if let Some(scheme) = self.cca.receiver_side() {
                scheme.on_message(now, &feedback.message);
            }
            self.adopt_control();
        }
        let before = self.before_ack();
        let mut arrivals = feedback.arrivals.clone();
        arrivals.sort_by_key(|arrived| arrived.number);
        // The arrivals include packets that the ranges leave out, since there are too many.
        let single = arrivals.iter().map(|arrived| AckRange { first: arrived.number, last: arrived.number });
        let mut ranges: Vec<AckRange> = feedback.ranges.iter().copied().chain(single).collect();
        ranges.sort_by_key(|range| (range.first, range.last));
        let trigger = feedback.arrivals.last();
        let mut delta = AckDelta::default();
        for range in ranges {
            if range.first > self.acked_end {
                self.open_holes(range.first);
            }
            let end = range.last + 1;
            let from = range.first.max(self.packets.first());
            self.take_acked(from, end, trigger.map_or(HANDSHAKE, |t| t.number), &mut delta, |number| {
                arrivals.binary_search_by_key(&number, |arrived| arrived.number).ok().map(|i| arrivals[i].at)
            });
            self.acked_end = self.acked_end.max(end);
        }
        let (received, wait) = trigger.map_or((feedback.sent, TimeSpan::ZERO), |t| (t.at, feedback.wait(t)));
        self.conclude_ack(now, &before, &delta, &AckMetadata { received, wait, ce_total: feedback.ce_total });
        self.update_fast_path();
    }

    /// As [`Sender::on_any_ack`] when the acknowledgement extends an unbroken prefix and ends no recovery: every packet
    /// from `acked_end` on is outstanding then.
    #[inline(always)]
    fn on_ack_fast_path<const PLAIN: bool>(&mut self, now: Timestamp, ack: &Ack) {
        let reliable = PLAIN || self.config.reliable;
        let prior_in_flight = self.in_flight;
        let end = ack.largest + 1;
        let from = self.acked_end;
        let (mut bytes, mut sent) = (0, now);
        for number in from..end {
            let p = self.packets.slot_mut(number);
            p.state = State::Acked;
            bytes += u64::from(p.size);
            sent = p.sent;
            let segment = p.segment;
            if reliable {
                self.acked_segments.insert(segment);
            }
        }
        let packets = end - from;
        self.in_flight -= bytes;
        self.acked_end = end;
        self.sampler.on_delivered(now, bytes);
        self.detector.on_acked(packets);
        self.stats.acked_packets += packets;
        self.stats.acked_bytes += bytes;
        self.timer_base = now;
        self.timeouts = 0;
        self.probes_sent = 0;
        let sample = now.since(sent);
        let wait = if reliable { TimeSpan::ZERO } else { TimeSpan(u64::from(ack.delay_ns)) };
        self.rtt.update(sample, wait);
        let rate_sample = if self.capabilities.rate_samples { self.sample_rate(ack.largest) } else { None };
        if !PLAIN && self.by_intervals {
            self.monitor.on_acked(packets, bytes);
            self.monitor.on_sample(now, sent, ack.received);
            self.add_rates(sample, ack.largest, rate_sample.as_ref());
        }
        let round_start = self.begin_round();
        self.cca.on_ack(&AckEvent {
            acked_packets: packets,
            acked_bytes: bytes,
            counted_bytes: bytes,
            rtt_sample: Some(sample),
            rate_sample: rate_sample.as_ref(),
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: ack.largest,
            next_packet_number: self.packets.next(),
            in_recovery: self.recovery != Recovery::Open,
            // No hole is open here.
            cwnd_limited: (!PLAIN && self.config.ns3) || self.has_used_window(),
            ack_delayed: ack.delay_ns > 0,
            ..AckEvent::new(now, &self.rtt)
        });
        self.control = self.cca.control();
        self.adopt_timer();
        if round_start {
            self.max_in_flight_in_round = self.in_flight;
        }
        if self.packets.first() == from {
            self.packets.settle_to(end);
        } else {
            self.packets.settle(now - TimeSpan(2 * self.rtt.smoothed().0));
        }
    }

    /// Begin a packet-timed round, one per flight (as in RFC 9438 and BBR). Returns true if a new one begins.
    #[inline]
    pub(super) fn begin_round(&mut self) -> bool {
        let start = self.acked_end > self.round_end;
        if start {
            self.round += 1;
            self.round_end = self.packets.next();
        }
        start
    }

    /// Process an acknowledgement in the general case: gaps, losses, reordering, recovery.
    #[inline(never)]
    fn on_any_ack(&mut self, now: Timestamp, ack: &Ack) {
        if ack.trigger == HANDSHAKE {
            return self.on_handshake_ack(now);
        }
        // An acknowledgement of packets that were never sent is invalid (RFC 9293 §3.10.7.4: drop it).
        if ack.largest.max(ack.trigger) >= self.packets.next() {
            return;
        }
        let before = self.before_ack();
        let old_end = self.acked_end;
        let mut delta = AckDelta::default();
        // Oldest range first, so that packets are visited in the order of sending. Packets below the previous
        // acknowledgements have no news, unless the trigger is a late one among them.
        let in_order = ack.trigger == ack.largest;
        let ranges = match ack.range_count() {
            n if n > 1 && in_order && ack.range(1).last < self.acked_end => 1,
            n => n,
        };
        for i in (0..ranges).rev() {
            let range = ack.range(i);
            // Reordered packets are below acknowledged ones: only then is a range visited in full.
            let from = if i == 0 && ack.trigger < old_end { range.first } else { range.first.max(self.acked_end) };
            let end = range.last + 1;
            if from >= end {
                continue;
            }
            if from > self.acked_end {
                self.open_holes(from);
            }
            let received = |number| (number == ack.trigger).then_some(ack.received);
            self.take_acked(from.max(self.packets.first()), end, ack.trigger, &mut delta, received);
            self.acked_end = self.acked_end.max(end);
        }
        let wait = TimeSpan(u64::from(ack.delay_ns));
        let metadata = AckMetadata { received: ack.received, wait, ce_total: ack.ce_total };
        self.conclude_ack(now, &before, &delta, &metadata);
    }

    #[inline]
    fn before_ack(&mut self) -> PriorState {
        self.lost_records.clear();
        self.acked_records.clear();
        PriorState { prior_in_flight: self.in_flight, segments: self.acked_segments.first_missing() }
    }

    /// Process the consequences: samples, losses, recovery, and the algorithm's event.
    #[inline]
    fn conclude_ack(&mut self, now: Timestamp, before: &PriorState, delta: &AckDelta, metadata: &AckMetadata) {
        let &PriorState { mut prior_in_flight, segments: segments_before } = before;
        let &AckMetadata { received, wait, ce_total } = metadata;
        if delta.packets == 0 && !self.detector.has_holes() {
            return;
        }
        let mut rtt_sample = None;
        let mut rate_sample = None;
        let arrivals = Arrivals {
            segments: delta.segments,
            highest: delta.highest_segment,
            before: segments_before,
            now: self.acked_segments.first_missing(),
        };
        let (restarts_timer, samples_rtt, resent_acked) = self.detect_loss_ns3(&arrivals);
        if delta.packets > 0 {
            self.sampler.on_delivered(now, delta.bytes);
            self.detector.on_acked(delta.packets);
            self.stats.acked_packets += delta.packets;
            self.stats.acked_bytes += delta.bytes;
            if restarts_timer {
                self.timer_base = now;
                self.timeouts = 0;
            }
            self.probes_sent = 0;
            if delta.trigger_acked && samples_rtt {
                let sample = now.since(delta.trigger_sent);
                // TCP's RTT includes the receiver's delay (RFC 6298); datagram receipts carry it (RFC 9002 §5.3).
                self.rtt.update(sample, if self.config.reliable { TimeSpan::ZERO } else { wait });
                rtt_sample = Some(sample);
            }
            if self.capabilities.rate_samples {
                rate_sample = self.sample_rate(delta.newest);
            }
        }

        let mut entered = false;
        let mut spurious_episode = false;
        if self.config.ns3 {
            // ns-3 never undoes anything.
        } else if delta.refutes_timeout {
            self.withdraw_timeout();
            // All of it was in flight.
            prior_in_flight = self.in_flight + delta.bytes;
            spurious_episode = true;
        } else if delta.spurious > 0 {
            spurious_episode = self.on_late_arrivals(delta.spurious);
        }
        if delta.packets > 0 {
            self.doubtful_below = 0;
        }
        if self.detector.has_holes() {
            entered = self.declare_losses(now);
        }
        let was = self.recovery;
        if self.config.ns3 {
            entered = self.begins_ns3_recovery(now, &arrivals);
        }
        let lost_bytes = self.lost_records.iter().map(|l| l.bytes).sum();

        let round_start = self.begin_round();
        if !entered {
            self.try_exit_recovery(now, spurious_episode);
        }
        let counted_bytes = if self.config.ns3 { self.ns3_growth(&arrivals, was) } else { delta.bytes };
        if self.capabilities.prr && entered {
            self.prr = Prr::begin(prior_in_flight);
        }

        // An overtaken acknowledgement has an older total.
        let ce_more = ce_total.wrapping_sub(self.ce_seen);
        let ce_packets = if ce_more > u32::MAX / 2 { 0 } else { u64::from(ce_more) };
        self.ce_seen = self.ce_seen.wrapping_add(ce_packets as u32);

        if self.by_intervals {
            self.monitor.on_acked(delta.packets, delta.bytes);
            self.monitor.on_lost(self.lost_records.len() as u64, lost_bytes);
            self.monitor.ce_packets += ce_packets;
            if let Some(sample) = rtt_sample {
                self.monitor.on_sample(now, delta.trigger_sent, received);
                self.add_rates(sample, delta.newest, rate_sample.as_ref());
            }
        }

        if spurious_episode {
            let delivered = self.sampler.delivered();
            self.cca.on_spurious_loss(&SpuriousLossEvent { now, in_flight: self.in_flight, delivered });
        }
        let event = AckEvent {
            acked_packets: delta.packets,
            acked_bytes: delta.bytes,
            counted_bytes,
            acked: &self.acked_records,
            lost: &self.lost_records,
            lost_bytes,
            rtt_sample,
            rate_sample: rate_sample.as_ref(),
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: self.acked_end.saturating_sub(1),
            next_packet_number: self.packets.next(),
            entered_recovery: entered,
            in_recovery: self.recovery != Recovery::Open,
            cwnd_limited: self.is_cwnd_limited(),
            ack_delayed: wait > TimeSpan::ZERO,
            ce_packets,
            ..AckEvent::new(now, &self.rtt)
        };
        self.cca.on_ack(&event);
        self.adopt_control();
        if round_start {
            self.max_in_flight_in_round = self.in_flight;
        }

        if self.config.ns3 {
            self.reduce_as_ns3(&arrivals, entered, resent_acked);
        }
        if self.capabilities.prr && matches!(self.recovery, Recovery::Fast { .. }) {
            let advanced = self.acked_segments.first_missing() > segments_before || !self.config.reliable;
            let safe = advanced && self.lost_records.is_empty();
            self.prr.on_ack(delta.bytes, self.in_flight, self.control.cwnd, u64::from(self.config.packet_size), safe);
        }
        // Lost packets stay for two RTTs, so that a late acknowledgement reveals a spurious loss.
        self.packets.settle(now - TimeSpan(2 * self.rtt.smoothed().0));
    }

    /// Open holes for the packets from the end of the acknowledged ones up to `until`.
    #[cold]
    pub(super) fn open_holes(&mut self, until: PacketNumber) {
        for number in self.acked_end.max(self.packets.first())..until {
            if let Some(p) = self.packets.get(number) {
                let resent = self.ns3.as_ref().is_some_and(|ns3| ns3.is_resent(p.segment));
                if p.state == State::Outstanding && !resent {
                    self.detector.on_hole(number, p.sent);
                }
            }
        }
    }

    #[inline]
    fn take_acked(
        &mut self,
        from: PacketNumber,
        end: PacketNumber,
        trigger: PacketNumber,
        delta: &mut AckDelta,
        received: impl Fn(PacketNumber) -> Option<Timestamp>,
    ) {
        for number in from..end {
            let Some(p) = self.packets.get_mut(number) else { continue };
            let was = p.state;
            if was == State::Acked {
                continue;
            }
            p.state = State::Acked;
            let (size, segment) = (u64::from(p.size), p.segment);
            if self.capabilities.packet_events {
                let received = received(number);
                self.acked_records.push(AckedPacket { number, bytes: size, sent: p.sent, received });
            }
            delta.packets += 1;
            delta.bytes += size;
            delta.newest = delta.newest.max(number);
            if number == trigger {
                delta.trigger_acked = true;
                delta.trigger_sent = p.sent;
            }
            if was == State::Outstanding {
                let counts_on = self.ns3.as_ref().is_some_and(|ns3| ns3.is_retransmission(segment, number));
                if !counts_on {
                    self.in_flight -= size;
                }
                if number < self.acked_end {
                    self.detector.on_hole_filled(number);
                }
            } else {
                delta.spurious += 1;
                if was == State::TimedOut && number < self.doubtful_below {
                    delta.refutes_timeout = true;
                    self.stats.spurious_losses += 1;
                } else {
                    self.on_late_arrival(segment);
                }
            }
            if self.config.reliable && self.acked_segments.insert(segment) {
                if let Some(ns3) = &mut self.ns3 {
                    delta.segments += 1;
                    delta.highest_segment = delta.highest_segment.max(segment);
                    ns3.on_arrival(segment);
                }
            }
        }
    }

    /// Process the arrival of a packet that was declared lost.
    #[cold]
    fn on_late_arrival(&mut self, segment: u64) {
        self.stats.spurious_losses += 1;
        self.detector.saw_reordering(self.config.loss.packet_threshold);
        // If it still waits for its retransmission, that is not needed.
        if let Ok(i) = self.retransmit.binary_search(&segment) {
            self.retransmit.remove(i);
        }
    }

    #[inline]
    fn sample_rate(&mut self, newest: PacketNumber) -> Option<RateSample> {
        let p = self.packets.get(newest)?;
        let stamp = self.packets.stamp(newest);
        self.sampler.sample(stamp, p.sent, u64::from(p.in_flight), p.app_limited, self.rtt.min())
    }

    /// True if the window limited sending in this round or the one before. TCP does not grow on duplicate
    /// acknowledgements: false while a hole is open (RFC 5681 §3.2; Linux `tcp_may_raise_cwnd`).
    #[inline]
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.config.ns3 || (!(self.config.reliable && self.detector.has_holes()) && self.has_used_window())
    }

    /// True if the window limited sending in this round or the one before, or is used enough in slow start.
    #[inline]
    fn has_used_window(&self) -> bool {
        self.window_limited_round >= self.round
            || self
                .cca
                .ssthresh()
                .is_some_and(|t| self.control.cwnd < t && 2 * self.max_in_flight_in_round > self.control.cwnd)
    }
}
