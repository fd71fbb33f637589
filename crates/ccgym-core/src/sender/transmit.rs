//! Transmission: retransmissions, new data, probes.

use super::application::MIN_SHORT;
use super::{Recovery, Sender};
use crate::congestion_control::SentEvent;
use crate::ns3::{Retransmission, HEADER};
use crate::packet::{Packet, PacketNumber};
use crate::sent_packets::State;
use crate::units::{Rate, Timestamp};

impl Sender {
    /// Return the next packet to send now, or `None` if window, pacing or application do not allow one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Timestamp) -> Option<Packet> {
        let mut packet = Packet::default();
        self.poll_transmit_into(now, &mut packet).then_some(packet)
    }

    /// As [`Sender::poll_transmit`], but write the packet to `packet`. Returns true if there is one.
    #[inline(always)]
    pub fn poll_transmit_into(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        self.poll_fast_path::<false>(now, packet).unwrap_or_else(|| self.poll_any_transmit(now, packet))
    }

    /// As [`Sender::poll_transmit_into`] if there is nothing to send again, and whole segments are to come; else `None`:
    /// call that. With `PLAIN`, of a sender that [`Sender::is_plain`], and `None` without room for another packet, too.
    #[inline(always)]
    pub fn poll_fast_path<const PLAIN: bool>(&mut self, now: Timestamp, packet: &mut Packet) -> Option<bool> {
        if self.awaits_release {
            self.awaits_release = false;
        }
        let fast = self.fast_path || (!PLAIN && self.fast_send && self.probes_wanted == 0);
        if !fast || self.next_segment + 1 >= self.full_until || self.idle || (PLAIN && !self.packets.has_room()) {
            crate::cold_path();
            return None;
        }
        let size = self.config.packet_size;
        if self.in_flight + u64::from(size) > self.control.cwnd {
            self.window_limited_round = self.round + 1;
            self.pacer.end_burst(now, self.control.pacing_rate);
            return Some(false);
        }
        if self.pacer.release() > now {
            self.awaits_release = true;
            return Some(false);
        }
        let segment = self.next_segment;
        self.next_segment += 1;
        self.send::<PLAIN>(now, segment, size, false, packet);
        Some(true)
    }

    /// Handle the general case of [`Sender::poll_transmit_into`].
    #[inline(never)]
    fn poll_any_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if self.is_connecting() {
            return self.poll_handshake(now, packet);
        }
        if self.probes_wanted > 0 {
            self.probes_wanted -= 1;
            if self.send_probe(now, packet) {
                return true;
            }
        }
        if self.config.ns3 && self.retransmit.is_empty() && self.next_segment >= self.segments_available {
            self.resend_oldest();
        }
        let again = !self.retransmit.is_empty();
        if !again && self.next_segment >= self.segments_available {
            self.pacer.end_burst(now, self.control.pacing_rate);
            self.note_app_limited(now);
            return false;
        }
        let size = if again { self.size_of(self.retransmit[0]) } else { self.size_of_next() };
        let forced = self.ns3.as_ref().is_some_and(|ns3| ns3.is_forced());
        let full = u64::from(size);
        let needed = if self.capabilities.short_packets { MIN_SHORT.min(full) } else { full };
        if !forced && self.in_flight + needed > self.window() {
            self.window_limited_round = self.round + 1;
            self.pacer.end_burst(now, self.control.pacing_rate);
            return false;
        }
        if self.pacer.release() > now {
            self.awaits_release = true;
            return false;
        }
        if self.idle {
            self.leave_idle(now);
        }
        let segment = if again { self.pop_retransmission() } else { self.take_segment() };
        self.send_and_notify(now, segment, size, again, packet);
        true
    }

    #[cold]
    fn pop_retransmission(&mut self) -> u64 {
        let segment = self.retransmit.pop_front().unwrap_or_default();
        let bytes = u64::from(self.size_of(segment));
        if let Some(ns3) = &mut self.ns3 {
            ns3.on_resent(segment, Retransmission { number: self.packets.next(), bytes });
        }
        segment
    }

    /// Call [`Sender::send`], and the algorithm's hook if it uses it.
    fn send_and_notify(&mut self, now: Timestamp, segment: u64, size: u32, again: bool, packet: &mut Packet) {
        self.send::<false>(now, segment, size, again, packet);
        if self.capabilities.packet_events {
            let (number, bytes) = (packet.number, u64::from(size));
            let more = !self.retransmit.is_empty() || self.next_segment < self.segments_available;
            self.cca.on_packet_sent(&SentEvent { now, number, bytes, in_flight: self.in_flight, more });
            if let Some(scheme) = self.cca.receiver_side() {
                packet.header = scheme.header();
            }
            self.adopt_control();
        }
    }

    #[inline(always)]
    fn send<const PLAIN: bool>(&mut self, now: Timestamp, segment: u64, size: u32, again: bool, packet: &mut Packet) {
        let bytes = u64::from(size);
        let number = self.put_in_flight::<false>(now, segment, size);
        if !PLAIN && matches!(self.recovery, Recovery::Fast { .. }) {
            match &mut self.ns3 {
                None => self.prr.on_sent(bytes),
                Some(ns3) => {
                    self.prr.on_sent(bytes);
                    ns3.on_sent(bytes.saturating_sub(HEADER));
                }
            }
        }
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += bytes;
        self.stats.retransmissions += u64::from(again);
        if !PLAIN && self.by_intervals {
            self.monitor.on_sent(bytes, again);
        }
        packet.number = number;
        packet.segment = segment;
        packet.sent = now;
        packet.least_unsettled = self.packets.first();
        packet.flow = self.config.flow;
        packet.size = size;
        packet.ecn = self.capabilities.ecn;
        packet.retransmission = again;
    }

    /// Store a packet that leaves now (`TRAIN`: in a train), and pace the next; returns its number. The caller counts it.
    #[inline(always)]
    pub(super) fn put_in_flight<const TRAIN: bool>(&mut self, now: Timestamp, segment: u64, size: u32) -> PacketNumber {
        let bytes = u64::from(size);
        let app_limited = self.sampler.is_app_limited();
        if self.in_flight == 0 {
            self.timer_base = now;
        }
        let number = self.packets.next();
        let in_flight_before = self.in_flight;
        self.in_flight += bytes;
        if self.in_flight > self.max_in_flight_in_round {
            self.max_in_flight_in_round = self.in_flight;
        }
        // Field by field: a struct made elsewhere would be copied in wide pieces, which wait for its narrow stores.
        let slot = self.packets.next_slot();
        slot.sent = now;
        slot.segment = segment;
        slot.in_flight = self.in_flight.min(u64::from(u32::MAX)) as u32;
        slot.size = size as u16;
        slot.state = State::Outstanding;
        slot.app_limited = app_limited;
        if !TRAIN && self.capabilities.rate_samples {
            self.packets.set_stamp(self.sampler.on_send(now, in_flight_before));
        }
        self.last_sent = now;
        if TRAIN || self.control.pacing_rate != Rate::ZERO {
            let quantum = if TRAIN || self.ignores_acks { self.quantum } else { self.cca.send_quantum() };
            self.pacer.on_sent(now, bytes, self.control.pacing_rate, quantum);
        }
        number
    }

    /// Send a probe, regardless of window and pacing: new data if any (RFC 8985 §7.3), else the newest segment again.
    #[cold]
    fn send_probe(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if self.next_segment < self.segments_available {
            let size = self.size_of(self.next_segment);
            let segment = self.take_segment();
            self.send_and_notify(now, segment, size, false, packet);
            return true;
        }
        if !self.config.reliable || self.stopped {
            return false;
        }
        let newest = (self.packets.first()..self.packets.next())
            .rev()
            .find_map(|n| self.packets.get(n).filter(|p| p.state == State::Outstanding).copied());
        let Some(newest) = newest else { return false };
        self.send_and_notify(now, newest.segment, u32::from(newest.size), true, packet);
        true
    }

    #[cold]
    fn leave_idle(&mut self, now: Timestamp) {
        self.idle = false;
        if self.stats.sent_packets > 0 {
            self.cca.on_idle_restart(now);
            self.adopt_control();
        }
    }

    #[cold]
    fn note_app_limited(&mut self, now: Timestamp) {
        if self.in_flight < self.window() {
            self.sampler.mark_app_limited(self.in_flight);
            self.monitor.app_limited = true;
            self.cca.on_app_limited(now, self.in_flight);
            self.adopt_control();
        }
        self.idle = self.in_flight == 0;
    }
}
