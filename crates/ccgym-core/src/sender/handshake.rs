//! Connecting: one small packet and its answer before the first data, as TCP's SYN.
//!
//! It costs the flow an RTT, and gives it the first RTT sample, which Linux's BBR uses to pace its initial window (RFC
//! 6298 §2 treats it like any other sample; a repeated one is ambiguous and gives none, §3).

use super::Sender;
use crate::packet::{Ecn, Packet, PacketNumber};
use crate::rtt::RttEstimator;
use crate::units::{TimeSpan, Timestamp};

/// The packet number of a handshake; no data packet has it.
pub const HANDSHAKE: PacketNumber = u64::MAX;

/// Wait before an unanswered handshake is repeated, doubling each time (RFC 6298 §2.1).
const FIRST_WAIT: TimeSpan = TimeSpan::from_millis(1000);

/// Assumed RTT after a repeated handshake, which gives no sample: the retransmission timeout is then 3 s (RFC 6298
/// §5.7), and a path with an RTT above 1 s causes no timeout of data that were never lost.
const RTT_AFTER_REPETITION: TimeSpan = TimeSpan::from_millis(1000);

/// State of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Connection {
    /// Nothing was sent.
    New,
    /// The handshake was sent this many times, the last time then.
    Asked { at: Timestamp, times: u32 },
    /// Data may flow.
    Established,
}

impl Sender {
    /// True if data must wait for the handshake.
    #[inline]
    pub(super) fn is_connecting(&self) -> bool {
        self.connection != Connection::Established
    }

    /// Return when an unanswered handshake is repeated.
    pub(super) fn handshake_due(&self) -> Timestamp {
        match self.connection {
            Connection::Asked { at, times } => at.saturating_add(TimeSpan(FIRST_WAIT.0 << (times - 1).min(6))),
            Connection::New | Connection::Established => Timestamp::NEVER,
        }
    }

    /// Send the handshake, the first time or again.
    pub(super) fn poll_handshake(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let times = match self.connection {
            Connection::New if self.next_segment < self.segments_available => 1,
            Connection::Asked { times, .. } if self.handshake_due() <= now => times + 1,
            _ => return false,
        };
        if times > 1 {
            self.stats.lost_packets += 1;
            self.stats.retransmissions += 1;
        }
        self.connection = Connection::Asked { at: now, times };
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(self.config.handshake_size);
        *packet = Packet {
            number: HANDSHAKE,
            sent: now,
            flow: self.config.flow,
            size: self.config.handshake_size,
            ecn: Ecn::NotEct,
            retransmission: times > 1,
            ..Packet::default()
        };
        true
    }

    /// End the handshake at the end of the flow; a late answer is ignored.
    pub(super) fn give_up_handshake(&mut self) {
        if let Connection::Asked { .. } = self.connection {
            self.stats.lost_packets += 1;
        }
        self.connection = Connection::Established;
    }

    /// Process the answer to the handshake.
    #[cold]
    pub(super) fn on_handshake_ack(&mut self, now: Timestamp) {
        let Connection::Asked { at, times } = self.connection else { return };
        self.connection = Connection::Established;
        self.stats.acked_packets += 1;
        self.stats.acked_bytes += u64::from(self.config.handshake_size);
        self.timer_base = now;
        self.last_sent = now;
        if times == 1 {
            let sample = now.since(at);
            self.rtt.update(sample, TimeSpan::ZERO);
            self.cca.on_handshake(now, sample);
        } else {
            self.rtt = RttEstimator::assuming(RTT_AFTER_REPETITION);
        }
        self.adopt_control();
    }
}
