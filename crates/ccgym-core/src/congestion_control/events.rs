//! Events from the transport to a CCA: one struct per hook.

use serde::{Deserialize, Serialize};

use crate::packet::PacketNumber;
use crate::rate_sampler::RateSample;
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::units::{Rate, TimeSpan, Timestamp};

/// Path data for schemes that may know their path. A run's specification gives capacity and base RTT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownPath {
    /// Steps of the bottleneck's rate in IP bytes: (start, rate). Never empty; the first starts at zero.
    pub capacity: Vec<(Timestamp, Rate)>,
    /// Propagation RTT.
    pub base_rtt: TimeSpan,
    /// Number of flows that share the bottleneck when all run.
    #[serde(skip)]
    pub flows: u32,
    /// Probability that a packet is lost at random before the bottleneck, without using its capacity.
    #[serde(skip)]
    pub loss_before: f64,
}

/// Data for a scheme at its start, before the first packet.
#[derive(Clone, Debug)]
pub struct InitContext {
    /// Start of the flow.
    pub now: Timestamp,
    /// Wire bytes of a full packet (the unit of windows in packets).
    pub mss: u64,
    /// Initial window in bytes (10 packets, RFC 6928, unless configured).
    pub initial_window: u64,
    /// Index of the flow.
    pub flow: u32,
    /// The scheme's own random stream.
    pub rng: Rng,
    /// The path, with [`super::Capabilities::knows_path`].
    pub path: Option<KnownPath>,
}

/// A packet was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentEvent {
    /// Time.
    pub now: Timestamp,
    /// Packet number.
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
    /// Wire bytes in flight after it was sent, itself included.
    pub in_flight: u64,
    /// True if the application has more to send.
    pub more: bool,
}

/// One packet newly acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckedPacket {
    /// Packet number.
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
    /// Time of sending.
    pub sent: Timestamp,
    /// Arrival on the receiver's clock, whose offset is unknown. An acknowledgement has it only for the packet that
    /// caused it, the feedback of a scheme's receiver for all packets that it reports for the first time.
    pub received: Option<Timestamp>,
}

/// One packet declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Packet number.
    pub number: PacketNumber,
    /// Wire bytes.
    pub bytes: u64,
    /// Time of sending.
    pub sent: Timestamp,
    /// Bytes in flight just after it was sent, itself included.
    pub in_flight_at_send: u64,
}

/// The news of one acknowledgement (or one expiry of the loss timer, then with nothing acknowledged).
#[derive(Debug)]
pub struct AckEvent<'a> {
    /// Time, on the sender's clock.
    pub now: Timestamp,
    /// Packets newly acknowledged. Zero when a timer detected losses.
    pub acked_packets: u64,
    /// Wire bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Wire bytes that count for the growth of a window; zero: it stays. Equal to `acked_bytes`, but in the profile
    /// `ns3` the bytes of the cumulative acknowledgement, zero if it selectively acknowledges more.
    pub counted_bytes: u64,
    /// The packets newly acknowledged, sorted by number, with [`super::Capabilities::packet_events`]; else empty.
    pub acked: &'a [AckedPacket],
    /// Packets newly declared lost, sorted by number.
    pub lost: &'a [LostPacket],
    /// Wire bytes newly declared lost.
    pub lost_bytes: u64,
    /// RTT sample of this acknowledgement, including its delay at the receiver; `None` if it has none.
    pub rtt_sample: Option<TimeSpan>,
    /// Smoothed RTT, including this sample.
    pub rtt: &'a RttEstimator,
    /// Delivery-rate sample, with [`super::Capabilities::rate_samples`]; `None` when nothing was acknowledged or the sample
    /// was invalid.
    pub rate_sample: Option<&'a RateSample>,
    /// Wire bytes in flight before this event.
    pub prior_in_flight: u64,
    /// Wire bytes in flight after it.
    pub in_flight: u64,
    /// Wire bytes delivered since the flow started, this event included.
    pub delivered: u64,
    /// Largest number acknowledged so far.
    pub largest_acked: PacketNumber,
    /// Number of the next packet.
    pub next_packet_number: PacketNumber,
    /// True if a new recovery episode began with the losses in this event. One reduction per episode: losses of packets
    /// sent before it began do not set this again (RFC 9002 §7.3.2).
    pub entered_recovery: bool,
    /// True if the flow is in recovery after this event: windows must not grow. After a timeout it lasts until all
    /// packets outstanding then have arrived; TCP still slow-starts in it (RFC 5681 §3.1).
    pub in_recovery: bool,
    /// True if the window (not the application) limited sending in the past round, as RFC 9002 §7.8 requires before
    /// growth; in slow start it is enough that more than half of the window was used (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// True if the receiver delayed this acknowledgement, or it was aggregated.
    pub ack_delayed: bool,
    /// Packets newly reported with congestion-experienced.
    pub ce_packets: u64,
}

impl<'a> AckEvent<'a> {
    /// Make an event with only time and RTT.
    #[must_use]
    #[inline(always)]
    pub const fn new(now: Timestamp, rtt: &'a RttEstimator) -> Self {
        Self {
            now,
            acked_packets: 0,
            acked_bytes: 0,
            counted_bytes: 0,
            acked: &[],
            lost: &[],
            lost_bytes: 0,
            rtt_sample: None,
            rtt,
            rate_sample: None,
            prior_in_flight: 0,
            in_flight: 0,
            delivered: 0,
            largest_acked: 0,
            next_packet_number: 0,
            entered_recovery: false,
            in_recovery: false,
            cwnd_limited: false,
            ack_delayed: false,
            ce_packets: 0,
        }
    }
}

/// The retransmission timer expired: all packets in flight are presumed lost.
#[derive(Debug)]
pub struct TimeoutEvent<'a> {
    /// Time.
    pub now: Timestamp,
    /// Consecutive expiries, this one included.
    pub count: u32,
    /// Packets declared lost by it, sorted by number.
    pub lost: &'a [LostPacket],
    /// Wire bytes in flight before.
    pub prior_in_flight: u64,
    /// Smoothed RTT.
    pub rtt: &'a RttEstimator,
}

/// All losses of the latest recovery episode (or timeout) were spurious: the packets arrived after all.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLossEvent {
    /// Time of the detection.
    pub now: Timestamp,
    /// Wire bytes in flight.
    pub in_flight: u64,
    /// Wire bytes delivered since the flow started, the late packets included.
    pub delivered: u64,
}
