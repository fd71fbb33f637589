//! What a run left behind.

use ccgym_core::{Packet, SenderStats, TimeSpan, Timestamp};
use ccgym_path::{Counters, LinkEvent};
use serde::{Deserialize, Serialize};

use crate::media::Frame;
use crate::recorder::{PacketLog, Series};
use crate::requests::Transfer;
use crate::send_buffer::Application;

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
    /// The responses of a server; none of other applications.
    pub transfers: Vec<Transfer>,
    /// What the applications of a flow with a send buffer wrote and read.
    pub application: Option<Application>,
    /// Which direction has the slowest link on the way of its data: an index into [`Outcome::links`].
    pub bottleneck: usize,
}

/// What happened on one direction of a link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// Its name: `uplink` and `downlink` where the path has one link; else that of the link, with `:reverse` behind it.
    pub name: String,
    /// Counters of its elements by kind.
    pub elements: Vec<(String, Counters)>,
    /// Which of the elements is its first link.
    pub bottleneck: Option<usize>,
    /// Events of that link, if recorded.
    pub events: Vec<LinkEvent>,
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
    /// Per direction of each link.
    pub links: Vec<LinkOutcome>,
    /// Every data packet, if recorded.
    pub data: Option<PacketLog>,
    /// Every acknowledgement, if recorded.
    pub acks: Option<PacketLog>,
    /// Series, if recorded.
    pub series: Option<Series>,
}
