//! Packet groups: a burst counts as one packet, so that the time between arrivals shows only the path's queue.

use std::collections::VecDeque;

use ccgym_core::Timestamp;

/// Packets that leave within this time of the first are one group, ms (draft §5.2).
const BURST_MS: f64 = 5.0;
/// Max length of a burst, ms (libwebrtc `inter_arrival.cc`).
const MAX_BURST_MS: f64 = 100.0;
/// Number of groups for the shortest gap.
const HISTORY: usize = 60;

/// Change of the one-way delay between two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Time between departures, ms.
    pub send_gap: f64,
    /// Time between arrivals less time between departures, ms.
    pub delay: f64,
    /// Arrival of the later group's last packet, on the receiver's clock, ms.
    pub arrived: f64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: f64,
    last_sent: f64,
    first_arrived: f64,
    last_arrived: f64,
}

/// Builds groups of packets.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    current: Option<Group>,
    previous: Option<Group>,
}

impl Arrivals {
    /// Add a packet. If it begins a group, return the change of delay between the two groups before.
    pub fn add(&mut self, sent: Timestamp, received: Timestamp) -> Option<Variation> {
        let (sent, arrived) = (sent.as_secs_f64() * 1e3, received.as_secs_f64() * 1e3);
        let new = Group { first_sent: sent, last_sent: sent, first_arrived: arrived, last_arrived: arrived };
        let Some(group) = &mut self.current else {
            self.current = Some(new);
            return None;
        };
        if sent < group.first_sent {
            return None; // out of order
        }
        let gap = arrived - group.last_arrived;
        let catches_up = gap - (sent - group.last_sent) < 0.0;
        let burst = catches_up && gap <= BURST_MS && arrived - group.first_arrived < MAX_BURST_MS;
        if burst || sent == group.last_sent || sent - group.first_sent <= BURST_MS {
            group.last_sent = group.last_sent.max(sent);
            group.last_arrived = group.last_arrived.max(arrived);
            return None;
        }
        let complete = *group;
        let previous = self.previous.replace(complete);
        self.current = Some(new);
        previous.map(|previous| {
            let send_gap = complete.last_sent - previous.last_sent;
            let delay = complete.last_arrived - previous.last_arrived - send_gap;
            Variation { send_gap, delay, arrived: complete.last_arrived }
        })
    }
}

/// The shortest of the latest gaps between groups.
#[derive(Clone, Debug, Default)]
pub struct ShortestGap(VecDeque<f64>);

impl ShortestGap {
    /// Add a gap; returns the shortest one, including this.
    pub fn add(&mut self, gap: f64) -> f64 {
        if self.0.len() == HISTORY {
            self.0.pop_front();
        }
        self.0.push_back(gap);
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(packets: &[(u64, u64)]) -> Vec<(f64, f64)> {
        let mut arrivals = Arrivals::default();
        let at = Timestamp::from_millis;
        let seen = packets.iter().filter_map(|(sent, came)| arrivals.add(at(*sent), at(*came)));
        seen.map(|one| (one.send_gap, one.delay)).collect()
    }

    #[test]
    fn packets_within_5_ms_are_one_group() {
        // Groups at 0–3, 20–25, 40: the second takes 2 ms longer than the first.
        assert_eq!(play(&[(0, 50), (3, 53), (20, 71), (25, 77), (40, 90)]), [(22.0, 2.0)]);
    }

    #[test]
    fn packets_that_catch_up_belong_to_the_group_before() {
        // The packet of 20 ms arrives right behind the first: the path had held them.
        assert_eq!(play(&[(0, 50), (20, 51), (40, 90), (60, 110)]), [(20.0, 19.0)]);
    }

    #[test]
    fn a_packet_out_of_order_is_ignored() {
        assert_eq!(play(&[(0, 50), (20, 70), (10, 75), (40, 90)]), [(20.0, 0.0)]);
    }
}
