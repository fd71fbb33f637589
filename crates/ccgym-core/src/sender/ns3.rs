//! The sender's part of the profile `ns3`; [`crate::ns3`] has the rules.

use super::{Recovery, Sender};
use crate::ns3::{payload_of, Arrivals, HEADER};
use crate::sent_packets::State;
use crate::units::Timestamp;

impl Sender {
    /// For the profile `ns3`, return three flags of an acknowledgement: it restarts the retransmission timer, it gives
    /// an RTT sample, it acknowledges a retransmission. Otherwise: true, true, false.
    pub(super) fn detect_loss_ns3(&mut self, arrivals: &Arrivals) -> (bool, bool, bool) {
        let Some(ns3) = &mut self.ns3 else { return (true, true, false) };
        if arrivals.now == arrivals.before {
            return (false, false, false);
        }
        let resent = ns3.is_resent(arrivals.before);
        let partial = matches!(self.recovery, Recovery::Fast { point, .. } if arrivals.now < point);
        let (restarts, settled) = (ns3.restarts_timer(partial), ns3.settle(arrivals.now));
        for resent in settled {
            self.in_flight -= resent.bytes;
            self.outstanding_from = self.outstanding_from.max(resent.number + 1);
            if let Some(p) = self.packets.get_mut(resent.number) {
                p.state = State::Acked;
            }
        }
        (restarts, !resent, resent && partial)
    }

    /// True if recovery begins as in ns-3.
    pub(super) fn begins_ns3_recovery(&mut self, now: Timestamp, arrivals: &Arrivals) -> bool {
        let Some(ns3) = self.ns3.as_mut().filter(|_| self.recovery == Recovery::Open) else { return false };
        let arrived = &self.acked_segments;
        if !ns3.begins_recovery(arrivals, |segment| arrived.contains(segment)) {
            return false;
        }
        let unacknowledged = self.next_segment - arrivals.now;
        ns3.begin_recovery(unacknowledged * (u64::from(self.config.packet_size) - HEADER));
        self.begin_recovery(now);
        true
    }

    /// Return the bytes by which ns-3 lets the window grow: those of the cumulative acknowledgement, zero if it brings
    /// selective news, too; zero in recovery.
    pub(super) fn ns3_growth(&self, arrivals: &Arrivals, was: Recovery) -> u64 {
        let packets = match (self.recovery, was) {
            (Recovery::Fast { .. }, _) => 0,
            (Recovery::Open, _) if !self.ns3.as_ref().is_some_and(|ns3| ns3.grows()) => 0,
            // The rest of a recovery after a timeout does not count.
            (Recovery::Open, Recovery::Loss { point }) => arrivals.now - point,
            _ => arrivals.now - arrivals.before,
        };
        packets * u64::from(self.config.packet_size)
    }

    pub(super) fn reduce_as_ns3(&mut self, arrivals: &Arrivals, entered: bool, resent_acked: bool) {
        let Some(ns3) = self.ns3.as_mut().filter(|_| matches!(self.recovery, Recovery::Fast { .. })) else { return };
        let mss = u64::from(self.config.packet_size);
        let (in_flight, target) = (payload_of(self.in_flight, mss), payload_of(self.control.cwnd, mss));
        ns3.reduce(arrivals, entered, resent_acked, in_flight, target, mss - HEADER);
    }

    /// Declare losses as in ns-3; recovery begins by a separate rule.
    pub(super) fn declare_losses_by_segment(&mut self) {
        let lost_below = self.ns3.as_ref().map_or(0, |ns3| ns3.lost_below());
        while let Some(number) = self.detector.oldest() {
            let Some(segment) = self.packets.get(number).map(|p| p.segment) else { break };
            if segment >= lost_below {
                break;
            }
            self.detector.take_oldest();
            if let Some(ns3) = &mut self.ns3 {
                ns3.on_lost(segment);
            }
            self.mark_lost(number, State::Lost);
        }
    }

    /// Send the oldest missing segment again if nothing is lost and there is no new data, as ns-3 does in recovery (RFC
    /// 6675 §4, NextSeg rule 3, without its limit).
    #[cold]
    pub(super) fn resend_oldest(&mut self) {
        let Some(ns3) = self.ns3.as_ref().filter(|_| matches!(self.recovery, Recovery::Fast { .. })) else { return };
        if !ns3.is_forced() && self.in_flight + u64::from(self.config.packet_size) > self.window() {
            return;
        }
        let arrived = &self.acked_segments;
        let oldest = (arrived.first_missing()..self.next_segment).find(|s| !arrived.contains(*s) && !ns3.is_resent(*s));
        self.retransmit.extend(oldest);
    }
}
