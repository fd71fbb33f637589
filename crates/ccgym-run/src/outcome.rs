//! What a run left behind.

use ccgym_core::{Packet, SenderStats, TimeSpan, Timestamp};
use ccgym_link::{Counters, LinkEvent};
use serde::{Deserialize, Serialize};

use crate::media::Frame;
use crate::recorder::{PacketLog, Series};

/// What the receiver of a flow counted within the run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Received {
    /// Packets, copies included.
    pub packets: u64,
    /// Wire bytes, copies included.
    pub bytes: u64,
    /// Payload bytes that were new.
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
}

/// What one flow did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// Scheme.
    pub name: String,
    /// When it started.
    pub start: Timestamp,
    /// The sender's counters.
    pub sender: SenderStats,
    /// The receiver's counters.
    pub received: Received,
    /// Minimum RTT.
    pub min_rtt: TimeSpan,
    /// When a finite transfer was acknowledged in full; [`Timestamp::NEVER`] else.
    pub finished: Timestamp,
    /// The frames of a video encoder; none of other applications.
    pub frames: Vec<Frame>,
}

/// What a run left behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Clock at the end.
    pub end: Timestamp,
    /// Hash over the times and numbers of all acknowledgements: equal trajectories have equal hashes.
    pub hash: u64,
    /// Per flow.
    pub flows: Vec<FlowOutcome>,
    /// Counters of the uplink's elements by kind.
    pub uplink: Vec<(String, Counters)>,
    /// Counters of the downlink's elements by kind.
    pub downlink: Vec<(String, Counters)>,
    /// Which uplink element is the bottleneck link.
    pub bottleneck: Option<usize>,
    /// Every data packet, if recorded.
    pub data: Option<PacketLog>,
    /// Every acknowledgement, if recorded.
    pub acks: Option<PacketLog>,
    /// Series, if recorded.
    pub series: Option<Series>,
    /// Events of the uplink's bottleneck, if recorded.
    pub up_events: Vec<LinkEvent>,
    /// Events of the downlink's first link, if recorded.
    pub down_events: Vec<LinkEvent>,
}
