//! Decides when a loss-based window is reduced, may grow, or waits.

use ccgym_core::{AckEvent, Ecn, PacketNumber, Timestamp};

/// Effect of one acknowledgement on the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A recovery episode began: reduce, once for all of its losses (RFC 9002 §7.3.2).
    Loss,
    /// A congestion mark on data sent since the last reduction: reduce (RFC 3168 §6.1.2).
    Mark,
    /// The window may grow.
    Grow,
    /// Recovery is active, or nothing was acknowledged: keep the window.
    Hold,
}

/// State for these decisions.
#[derive(Clone, Debug)]
pub struct Reductions {
    /// ECN codepoint of packets; marks count unless it is Not-ECT.
    ecn: Ecn,
    /// Marks on packets below this number belong to the previous reduction.
    marks_settled: PacketNumber,
    /// Marks before this time belong to it as well.
    marks_from: Timestamp,
    /// True if the current recovery began with a timeout: slow start continues in it (RFC 5681 §3.1).
    after_timeout: bool,
}

impl Reductions {
    pub fn new(ecn: Ecn) -> Self {
        Self { ecn, marks_settled: 0, marks_from: Timestamp::ZERO, after_timeout: false }
    }

    /// Return the codepoint of packets.
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Ignore marks before `from`, even on packets sent since the last reduction.
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
