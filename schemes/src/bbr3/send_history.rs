//! The state at the departure of each packet: bytes lost until then, and whether the application limited sending. A
//! lost packet does not carry it, so the changes are stored instead.

use std::collections::VecDeque;

use ccgym_core::{TimeSpan, Timestamp};

/// Max number of stored changes. The oldest one is used for packets sent before it.
const MAX_CHANGES: usize = 512;

/// The state of the flow from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Then {
    at: Timestamp,
    /// Bytes lost since the flow started.
    pub lost: u64,
    /// True if the application limits sending.
    pub app_limited: bool,
}

/// The changes, oldest first.
#[derive(Clone, Debug)]
pub struct SendHistory {
    changes: VecDeque<Then>,
    /// Delivered bytes at which the application's limit ends.
    limited_until: u64,
}

impl Default for SendHistory {
    fn default() -> Self {
        Self { changes: VecDeque::from([Then::default()]), limited_until: 0 }
    }
}

impl SendHistory {
    /// Return the current state.
    pub fn now(&self) -> Then {
        self.changes.back().copied().unwrap_or_default()
    }

    /// Return the state in which a packet left at `sent`.
    pub fn at(&self, sent: Timestamp) -> Then {
        let later = self.changes.partition_point(|change| change.at <= sent);
        self.changes.get(later.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn push(&mut self, change: Then) {
        // A mark may be a nanosecond ahead of the clock.
        let at = change.at.max(self.now().at);
        let change = Then { at, ..change };
        match self.changes.back_mut() {
            Some(last) if last.at == at => *last = change,
            _ => self.changes.push_back(change),
        }
        if self.changes.len() > MAX_CHANGES {
            self.changes.pop_front();
        }
    }

    /// Add `bytes` declared lost; packets sent from now on leave after that.
    pub fn on_lost(&mut self, now: Timestamp, bytes: u64) {
        let last = self.now();
        self.push(Then { at: now, lost: last.lost + bytes, ..last });
    }

    /// Note that the application had no data, with `in_flight` bytes out and `delivered` arrived: packets sent from the
    /// next nanosecond on are limited by it.
    pub fn on_app_limited(&mut self, now: Timestamp, delivered: u64, in_flight: u64) {
        self.limited_until = (delivered + in_flight).max(1);
        if !self.now().app_limited {
            self.push(Then { at: now + TimeSpan(1), app_limited: true, ..self.now() });
        }
    }

    /// Update with `delivered` bytes since the flow started.
    #[inline]
    pub fn on_delivered(&mut self, now: Timestamp, delivered: u64) {
        if self.limited_until != 0 && delivered > self.limited_until {
            self.limited_until = 0;
            self.push(Then { at: now, app_limited: false, ..self.now() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn the_state_of_a_packet_is_that_of_its_departure() {
        let mut history = SendHistory::default();
        history.on_lost(at(10), 1500);
        history.on_lost(at(10), 1500);
        history.on_lost(at(20), 1500);
        for (sent, lost) in [(0, 0), (9, 0), (10, 3000), (19, 3000), (20, 4500), (99, 4500)] {
            assert_eq!(history.at(at(sent)).lost, lost, "sent at {sent} ms");
        }
    }

    #[test]
    fn the_limit_begins_after_the_mark_and_ends_when_its_packets_arrive() {
        let mut history = SendHistory::default();
        history.on_app_limited(at(10), 1000, 500);
        history.on_delivered(at(20), 1500);
        assert!(history.now().app_limited, "the last packet before the bubble");
        history.on_delivered(at(30), 1501);
        for (sent, limited) in [(10, false), (11, true), (29, true), (30, false)] {
            assert_eq!(history.at(at(sent)).app_limited, limited, "sent at {sent} ms");
        }
    }

    #[test]
    fn the_oldest_changes_are_forgotten() {
        let mut history = SendHistory::default();
        for ms in 1..=600 {
            history.on_lost(at(ms), 1);
        }
        assert_eq!(history.changes.len(), MAX_CHANGES);
        assert_eq!(history.at(at(1)).lost, 600 - MAX_CHANGES as u64 + 1);
    }
}
