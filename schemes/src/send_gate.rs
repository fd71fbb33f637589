//! The send gate of genericCC (`ctcp.hh`): a packet may leave while its number is below the largest acknowledged one
//! plus the window. Gaps free the window at once, and only an acknowledgement opens the gate.

use ccgym_core::{AckEvent, PacketNumber};

/// The gate of one flow, as a window in bytes with the same effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendGate {
    mss: u64,
    /// One past the max acknowledged number.
    acked_end: PacketNumber,
    /// Number of the next packet.
    next: PacketNumber,
    /// Wire bytes in flight.
    in_flight: u64,
}

impl SendGate {
    pub fn new(mss: u64) -> Self {
        Self { mss: mss.max(1), ..Self::default() }
    }

    /// Update with the departure of packet `number`.
    #[inline]
    pub fn on_sent(&mut self, number: PacketNumber, in_flight: u64) {
        self.next = self.next.max(number + 1);
        self.in_flight = in_flight;
    }

    #[inline]
    pub fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.acked_packets > 0 {
            self.acked_end = self.acked_end.max(event.largest_acked + 1);
        }
        self.next = self.next.max(event.next_packet_number);
        self.in_flight = event.in_flight;
    }

    /// Update after a timeout: nothing is in flight any more; the gate stays shut.
    pub fn on_timeout(&mut self) {
        self.in_flight = 0;
    }

    /// Count all packets as delivered.
    pub fn open(&mut self) {
        self.acked_end = self.next;
    }

    /// Return the window in bytes with the effect of a gate of `packets`.
    #[inline]
    pub fn cwnd(&self, packets: u64) -> u64 {
        let room = packets.saturating_sub(self.next.saturating_sub(self.acked_end));
        self.in_flight.saturating_add(room.saturating_mul(self.mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_counts_beyond_the_largest_acknowledged_number() {
        for (acked_end, next, in_flight, packets, room) in [
            (0, 0, 0, 2, 2),
            (0, 10, 10, 10, 0),
            // Two packets are missing below the largest acknowledged one: they take no space.
            (5, 10, 7, 10, 5),
            // The window fell below the packets in flight.
            (5, 10, 5, 3, 0),
            // After a timeout the gate stays shut.
            (5, 10, 0, 5, 0),
            (5, 10, 0, 7, 2),
        ] {
            let gate = SendGate { mss: 1500, acked_end, next, in_flight: in_flight * 1500 };
            assert_eq!(gate.cwnd(packets), (in_flight + room) * 1500, "{gate:?}");
        }
        let mut gate = SendGate { mss: 1500, acked_end: 5, next: 10, in_flight: 7500 };
        gate.on_timeout();
        assert_eq!(gate.cwnd(5), 0);
        gate.open();
        assert_eq!(gate.cwnd(2), 3000);
    }
}
