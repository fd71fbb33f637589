//! The send gate of genericCC (`ctcp.hh`): a packet may leave while its number is below the largest acknowledged one
//! plus the window. Gaps free the window at once, and nothing but an acknowledgement opens it.

use ccgym_core::{AckEvent, PacketNumber};

/// The gate of one flow, as the window in bytes that has the same effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendGate {
    mss: u64,
    /// One past the largest number acknowledged.
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

    /// Packet `number` left.
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

    /// Nothing is in flight any more; the gate still waits for it.
    pub fn on_timeout(&mut self) {
        self.in_flight = 0;
    }

    /// Take everything for delivered.
    pub fn open(&mut self) {
        self.acked_end = self.next;
    }

    /// The window in bytes that lets through what a gate of `packets` would.
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
            // Two packets are missing below the largest acknowledged one: they hold no room.
            (5, 10, 7, 10, 5),
            // The window fell below what is out.
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
