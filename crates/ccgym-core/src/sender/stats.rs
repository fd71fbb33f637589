//! Counters of a sender.

use serde::{Deserialize, Serialize};

use crate::units::TimeSpan;

/// Counters since the flow started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderStats {
    /// Packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Wire bytes sent.
    pub sent_bytes: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Wire bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Spurious losses.
    pub spurious_losses: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Probes.
    pub probes: u64,
    /// Fast recoveries that have ended.
    pub recoveries: u64,
    /// Total time in them.
    pub recovery_time: TimeSpan,
}
