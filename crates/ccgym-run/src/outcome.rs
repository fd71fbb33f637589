//! The outcome of a run.

use ccgym_core::{Packet, SenderStats, TimeSpan, Timestamp};
use ccgym_path::{Counters, LinkEvent};
use serde::{Deserialize, Serialize};

use crate::media::Frame;
use crate::recorder::{PacketLog, Series};
use crate::requests::Transfer;
use crate::send_buffer::Application;

/// Counters of a flow's receiver.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Received {
    /// Packets, including copies.
    pub packets: u64,
    /// Wire bytes, including copies.
    pub bytes: u64,
    /// New payload bytes.
    pub unique_bytes: u64,
}

impl Received {
    /// Count an arrival; `header` bytes of it are not payload.
    #[inline]
    pub fn count(&mut self, packet: &Packet, new: bool, header: u32) {
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if new {
            self.unique_bytes += u64::from(packet.size - header);
        }
    }

    /// Count `packets` arrivals of new packets of `size` wire bytes each.
    pub fn count_train(&mut self, packets: u64, size: u32, header: u32) {
        self.packets += packets;
        self.bytes += packets * u64::from(size);
        self.unique_bytes += packets * u64::from(size - header);
    }
}

/// Outcome of one flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// Scheme.
    pub name: String,
    /// Start.
    pub start: Timestamp,
    /// The sender's counters.
    pub sender: SenderStats,
    /// The receiver's counters.
    pub received: Received,
    /// Minimum RTT.
    pub min_rtt: TimeSpan,
    /// Time at which a finite transfer was acknowledged in full; [`Timestamp::NEVER`] otherwise.
    pub finished: Timestamp,
    /// Frames of a video encoder; empty for other applications.
    pub frames: Vec<Frame>,
    /// Responses of a server; empty for other applications.
    pub transfers: Vec<Transfer>,
    /// Data written and read by the applications of a flow with a send buffer.
    pub application: Option<Application>,
    /// Direction with the slowest link for its data: an index into [`Outcome::links`].
    pub bottleneck: usize,
}

/// Outcome of one direction of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// Name: `uplink` and `downlink` if the path has one link; else that of the link, followed by `:reverse`.
    pub name: String,
    /// Counters of its elements by kind.
    pub elements: Vec<(String, Counters)>,
    /// Index of its first link among the elements.
    pub bottleneck: Option<usize>,
    /// Events of that link, if recorded.
    pub events: Vec<LinkEvent>,
}

/// Outcome of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Clock at the end.
    pub end: Timestamp,
    /// Hash over the times and numbers of all acknowledgements: equal trajectories have equal hashes.
    pub hash: u64,
    /// Per flow.
    pub flows: Vec<FlowOutcome>,
    /// Per direction of each link.
    pub links: Vec<LinkOutcome>,
    /// Every data packet, if recorded.
    pub data: Option<PacketLog>,
    /// Every acknowledgement, if recorded.
    pub acks: Option<PacketLog>,
    /// Series, if recorded.
    pub series: Option<Series>,
}
