//! Proportional Rate Reduction (RFC 6937, obsoleted by RFC 9937): limits sending during fast recovery.

/// State of one recovery episode. All sizes are wire bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// Data in flight when recovery began (RecoverFS).
    recover_fs: u64,
    delivered: u64,
    out: u64,
    allowance: u64,
}

impl Prr {
    /// Begin recovery with `recover_fs` bytes in flight (the losses that began it included).
    pub fn begin(recover_fs: u64) -> Self {
        Self { recover_fs: recover_fs.max(1), ..Self::default() }
    }

    /// Process an acknowledgement of `delivered` bytes; `in_flight` remain; `ssthresh` is the target window. `safe`: it
    /// advanced the cumulative point and showed no further loss (RFC 9937 §6.2, SafeACK).
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, ssthresh: u64, mss: u64, safe: bool) {
        self.delivered += delivered;
        let quota = if in_flight > ssthresh {
            (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs)) as u64
        } else {
            // Below the target: grow back, by the delivered bytes plus one segment if that is safe.
            let limit = if safe { self.delivered.max(self.out + delivered) + mss } else { self.delivered };
            (self.out + (ssthresh - in_flight)).min(limit)
        };
        self.allowance = quota.saturating_sub(self.out);
        if self.out == 0 {
            // The fast retransmit itself always leaves.
            self.allowance = self.allowance.max(mss);
        }
    }

    /// Count `bytes` sent.
    #[inline]
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.allowance = self.allowance.saturating_sub(bytes);
    }

    /// True if a packet was sent in this episode.
    #[inline]
    pub const fn has_begun(&self) -> bool {
        self.out > 0
    }

    /// Return the bytes that may still leave now.
    #[inline]
    pub const fn allowance(&self) -> u64 {
        self.allowance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4 example: 20 segments in flight, one lost, target 10: half the rate while above the target.
    #[test]
    fn halves_the_rate_proportionally() {
        let mss = 1000;
        let mut prr = Prr::begin(20 * mss);
        let mut in_flight = 19 * mss;
        let mut sent = 0;
        for _ in 0..18 {
            in_flight -= mss;
            prr.on_ack(mss, in_flight, 10 * mss, mss, false);
            while prr.allowance() >= mss {
                prr.on_sent(mss);
                in_flight += mss;
                sent += 1;
            }
        }
        assert_eq!(sent, 9, "one segment for two delivered");
        assert!(in_flight.abs_diff(10 * mss) <= mss);
    }

    #[test]
    fn grows_back_when_losses_emptied_the_pipe() {
        // 20 in flight, 15 lost: 5 left, target 10. Slow-start bound: each safe ACK lets two leave.
        let mss = 1000;
        let mut prr = Prr::begin(20 * mss);
        prr.on_ack(mss, 4 * mss, 10 * mss, mss, true);
        assert_eq!(prr.allowance(), 2 * mss);
        prr.on_sent(2 * mss);
        prr.on_ack(mss, 5 * mss, 10 * mss, mss, false);
        assert_eq!(prr.allowance(), 0, "conservative without a safe ACK: delivered 2, out 2");
    }

    #[test]
    fn a_safe_ack_lets_two_leave_where_more_was_sent_than_delivered() {
        let mss = 1000;
        let mut prr = Prr::begin(20 * mss);
        prr.on_ack(0, 4 * mss, 10 * mss, mss, false);
        // The fast retransmit.
        prr.on_sent(mss);
        prr.on_ack(mss, 4 * mss, 10 * mss, mss, true);
        assert_eq!(prr.allowance(), 2 * mss);
    }
}
