//! When a window that losses govern is reduced, when it may grow, and when it waits.

use ccgym_core::{AckEvent, Ecn, PacketNumber, Timestamp};

/// What one acknowledgement means for the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A recovery episode began: reduce, once for all of its losses (RFC 9002 §7.3.2).
    Loss,
    /// A congestion mark on data sent since the last reduction: reduce (RFC 3168 §6.1.2).
    Mark,
    /// The window may grow.
    Grow,
    /// A recovery episode is on, or nothing was acknowledged: leave the window as it is.
    Hold,
}

/// What must be remembered for it.
#[derive(Clone, Debug)]
pub struct Reductions {
    /// What packets carry; unless that is nothing, marks count.
    ecn: Ecn,
    /// A packet number: marks on packets below it belong to the reduction already made.
    marks_settled: PacketNumber,
    /// Marks that come before this belong to it as well.
    marks_from: Timestamp,
    /// The recovery under way began with a timeout: slow start goes on in it (RFC 5681 §3.1).
    after_timeout: bool,
}

impl Reductions {
    pub fn new(ecn: Ecn) -> Self {
        Self { ecn, marks_settled: 0, marks_from: Timestamp::ZERO, after_timeout: false }
    }

    /// The codepoint of packets.
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Marks do not reduce before `from`, even on packets sent since the last reduction.
    pub fn hold_marks(&mut self, from: Timestamp) {
        self.marks_from = from;
    }

    #[inline]
    pub fn judge(&mut self, event: &AckEvent<'_>) -> Verdict {
        let held = event.in_recovery && !self.after_timeout;
        self.after_timeout &= event.in_recovery && !event.entered_recovery;
        if event.entered_recovery {
            self.marks_settled = event.next_packet_number;
            return Verdict::Loss;
        }
        if event.ce_packets > 0 && self.ecn.is_capable() && !held {
            let settled = event.largest_acked < self.marks_settled || event.now < self.marks_from;
            if !settled {
                self.marks_settled = event.next_packet_number;
                return Verdict::Mark;
            }
        }
        if held || event.counted_bytes == 0 {
            Verdict::Hold
        } else {
            Verdict::Grow
        }
    }

    pub fn on_timeout(&mut self) {
        self.after_timeout = true;
    }
}
