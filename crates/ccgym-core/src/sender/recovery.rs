//! Losses and the recovery episodes that they begin.

use super::{Recovery, Sender};
use crate::congestion_control::LostPacket;
use crate::packet::PacketNumber;
use crate::sent_packets::State;
use crate::units::{TimeSpan, Timestamp};

impl Sender {
    pub(super) fn loss_rtt(&self) -> TimeSpan {
        self.rtt.smoothed().max(self.rtt.latest())
    }

    /// Declare holes lost that reached a time or count threshold; returns true if this began a recovery episode.
    #[cold]
    pub(super) fn declare_losses(&mut self, now: Timestamp) -> bool {
        let rtt = self.loss_rtt();
        let mut entered = false;
        if self.ns3.is_some() {
            self.declare_losses_by_segment();
            return false;
        }
        while let Some(number) = self.detector.next_lost(now, rtt, self.in_recovery() || entered) {
            // RFC 9002 §7.3.2: a packet sent before an episode began belongs to it, also when its loss is detected
            // after the end. The last one sent before it is often lost: it met the fullest queue.
            let belongs = !self.config.reliable && number < self.episode_start;
            let begins = match self.recovery {
                Recovery::Open => !belongs,
                Recovery::Fast { .. } => !self.config.reliable && !belongs,
                Recovery::Loss { .. } => false,
            };
            if begins {
                self.begin_recovery(now);
                entered = true;
            }
            self.mark_lost(number, State::Lost);
        }
        entered
    }

    /// Count a fast recovery, if one ends.
    pub(super) fn count_recovery(&mut self, now: Timestamp) {
        if let Recovery::Fast { since, .. } = self.recovery {
            self.stats.recoveries += 1;
            self.stats.recovery_time = self.stats.recovery_time + now.since(since);
        }
    }

    pub(super) fn begin_recovery(&mut self, now: Timestamp) {
        self.count_recovery(now);
        let point = if self.config.reliable { self.next_segment } else { self.packets.next() };
        self.recovery = Recovery::Fast { since: now, point };
        self.episode_start = self.packets.next();
        self.episode_losses = 0;
    }

    /// Set the state of an outstanding packet to `verdict`.
    pub(super) fn mark_lost(&mut self, number: PacketNumber, verdict: State) {
        let Some(p) = self.packets.get_mut(number) else { return };
        if p.state != State::Outstanding {
            return;
        }
        p.state = verdict;
        let p = *p;
        let size = u64::from(p.size);
        self.in_flight -= size;
        self.sampler.on_lost(size);
        self.stats.lost_packets += 1;
        self.episode_losses += 1;
        let resent = self.ns3.as_ref().is_some_and(|ns3| ns3.is_resent(p.segment));
        if self.config.reliable && !self.stopped && !resent && !self.acked_segments.contains(p.segment) {
            self.retransmit_in_order(p.segment);
        }
        self.lost_records.push(LostPacket {
            number,
            bytes: size,
            sent: p.sent,
            in_flight_at_send: u64::from(p.in_flight),
        });
    }

    /// Queue a segment so that the lowest one is sent first (RFC 6675 §4, NextSeg rule 1), also if it was lost again:
    /// while it is missing the cumulative acknowledgement does not advance, and PRR sends no more than the delivered
    /// bytes.
    fn retransmit_in_order(&mut self, segment: u64) {
        let place = match self.retransmit.back() {
            Some(&last) if segment <= last => self.retransmit.partition_point(|&other| other < segment),
            _ => self.retransmit.len(),
        };
        self.retransmit.insert(place, segment);
    }

    /// Count the late arrival of `count` packets declared lost; returns true if that refutes the whole episode.
    #[cold]
    pub(super) fn on_late_arrivals(&mut self, count: u64) -> bool {
        if self.recovery == Recovery::Open || self.episode_losses == 0 {
            return false;
        }
        self.episode_losses = self.episode_losses.saturating_sub(count);
        self.episode_losses == 0
    }

    /// Undo a timeout: the first acknowledgement after it is for a packet that was sent before it, so the timer was
    /// wrong and that flight is on its way (RFC 3522 §3.2, RFC 5682 §3.1, Linux `tcp_try_undo_loss`). Its packets are
    /// in flight again, to be acknowledged or detected as lost like any other, and not sent again.
    #[cold]
    pub(super) fn withdraw_timeout(&mut self) {
        let mut segments = Vec::new();
        let mut acked_end = 0;
        for number in self.packets.first()..self.packets.next() {
            let Some(p) = self.packets.get_mut(number) else { continue };
            match p.state {
                State::TimedOut if number < self.doubtful_below => {
                    p.state = State::Outstanding;
                    self.in_flight += u64::from(p.size);
                    self.stats.spurious_losses += 1;
                    segments.push(p.segment);
                }
                State::Acked => acked_end = number + 1,
                State::Lost | State::TimedOut | State::Outstanding => {}
            }
        }
        segments.sort_unstable();
        self.retransmit.retain(|segment| segments.binary_search(segment).is_err());
        // Overtaken packets are holes again.
        self.detector.clear();
        self.outstanding_from = self.acked_end;
        self.acked_end = acked_end;
        for number in self.packets.first()..acked_end {
            if let Some(p) = self.packets.get(number).filter(|p| p.state == State::Outstanding) {
                self.detector.on_hole(number, p.sent);
            }
        }
        self.recovery = Recovery::Open;
        self.episode_losses = 0;
    }

    #[inline]
    pub(super) fn try_exit_recovery(&mut self, now: Timestamp, refuted: bool) {
        let point = match self.recovery {
            Recovery::Open => return,
            Recovery::Fast { point, .. } | Recovery::Loss { point } => point,
        };
        let reached = if self.config.reliable { self.acked_segments.first_missing() } else { self.acked_end };
        // Reliable: all packets outstanding when it began have arrived. Unreliable: a packet sent since then has.
        let passed = if self.config.reliable { reached >= point } else { reached > point };
        if !passed && !refuted {
            return;
        }
        self.count_recovery(now);
        self.recovery = Recovery::Open;
        self.episode_losses = 0;
        if let Some(ns3) = &mut self.ns3 {
            ns3.end_recovery();
        }
    }
}
