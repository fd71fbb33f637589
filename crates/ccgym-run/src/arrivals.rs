//! Data that arrives as a Poisson process, independent of earlier data: packets, or transfers with sizes.

use std::collections::VecDeque;

use ccgym_core::{Rate, Rng, Sender, TimeSpan, Timestamp};

use crate::requests::Transfer;
use crate::source::write_payload;
use crate::spec::SizeSpec;

/// The application.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Sizes of transfers; `None`: each arrival is a full segment, not a transfer.
    size: Option<SizeSpec>,
    /// Payload and header bytes of a full packet.
    mss: u32,
    header: u32,
    /// Mean gap in seconds.
    mean_gap: f64,
    /// Remaining payload bytes.
    left: u64,
    next: Timestamp,
    rng: Rng,
    transfers: Vec<Transfer>,
    /// End segments of the unacknowledged transfers (exclusive).
    open: VecDeque<u64>,
}

impl Arrivals {
    pub(crate) fn new(
        rate: Rate,
        size: Option<SizeSpec>,
        bytes: Option<u64>,
        (mss, header): (u32, u32),
        rng: Rng,
    ) -> Self {
        let mean = size.as_ref().map_or(f64::from(mss), SizeSpec::mean);
        Self {
            size,
            mss,
            header,
            mean_gap: mean * 8.0 / rate.0 as f64,
            left: bytes.unwrap_or(u64::MAX),
            next: Timestamp::NEVER,
            rng,
            transfers: Vec::new(),
            open: VecDeque::new(),
        }
    }

    pub(crate) fn start(&mut self, now: Timestamp) {
        self.next = now + self.gap();
    }

    pub(crate) fn stop(&mut self) {
        self.next = Timestamp::NEVER;
    }

    pub(crate) const fn next_event(&self) -> Timestamp {
        self.next
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Return the transfers so far.
    pub(crate) fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Hand over the data that has arrived by now.
    pub(crate) fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        while self.next <= now {
            let bytes = match &self.size {
                Some(size) => size.draw(|| self.rng.uniform()),
                None => u64::from(self.mss),
            };
            write_payload(sender, bytes, self.mss, self.header);
            if self.size.is_some() {
                self.transfers.push(Transfer { asked: self.next, bytes, finished: Timestamp::NEVER });
                self.open.push_back(sender.written());
            }
            self.left = self.left.saturating_sub(bytes);
            self.next = if self.left > 0 { self.next + self.gap() } else { Timestamp::NEVER };
        }
    }

    /// Process newly acknowledged data, which may complete transfers.
    pub(crate) fn on_settled(&mut self, now: Timestamp, sender: &Sender) {
        while self.open.front().is_some_and(|end| *end <= sender.acknowledged()) {
            let place = self.transfers.len() - self.open.len();
            self.transfers[place].finished = now;
            self.open.pop_front();
        }
    }

    /// Draw a gap of the process.
    fn gap(&mut self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.rng.exponential(self.mean_gap)).max(TimeSpan(1))
    }
}
