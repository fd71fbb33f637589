//! What the transport tells a CCA: one struct per hook.

use serde::{Deserialize, Serialize};

use crate::packet::PacketNumber;
use crate::rate_sampler::RateSample;
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::units::{Rate, TimeSpan, Timestamp};

/// What a scheme that may know its path is told about it. A run's specification gives capacity and base RTT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownPath {
    /// Steps of the bottleneck's rate in IP bytes: (from when, rate). Never empty; the first starts at zero.
    pub capacity: Vec<(Timestamp, Rate)>,
    /// Propagation round trip.
    pub base_rtt: TimeSpan,
    /// Number of flows that share the bottleneck when all run.
    #[serde(skip)]
    pub flows: u32,
    /// Probability that a packet is lost at random before it reaches the bottleneck, and takes none of its capacity.
    #[serde(skip)]
    pub loss_before: f64,
}

/// Given once, before the first packet.
#[derive(Clone, Debug)]
pub struct InitContext {
    /// Start of the flow.
    pub now: Timestamp,
    /// Bytes on the wire of a full packet (what the window counts per packet).
    pub mss: u64,
    /// Initial window in bytes (10 packets, RFC 6928, unless configured).
    pub initial_window: u64,
    /// Index of the flow.
    pub flow: u32,
    /// The scheme's own random stream.
    pub rng: Rng,
    /// The path, if [`super::Capabilities::knows_path`].
    pub path: Option<KnownPath>,
}

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct SentEvent {
    /// When.
    pub now: Timestamp,
    /// Its number.
    pub number: PacketNumber,
    /// Its wire bytes.
    pub bytes: u64,
    /// Wire bytes in flight after it left, itself included.
    pub in_flight: u64,
    /// Whether there is more to send, as far as the application is concerned.
    pub more: bool,
}

/// One packet newly acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckedPacket {
    /// Its number.
    pub number: PacketNumber,
    /// Its wire bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Timestamp,
    /// When it arrived, on the receiver's clock, whose offset from the sender's is unknown. An acknowledgement tells it of
    /// the packet that caused it alone, the feedback of a scheme's receiver of all that it reports for the first time.
    pub received: Option<Timestamp>,
}

/// One packet declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Its number.
    pub number: PacketNumber,
    /// Its wire bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent: Timestamp,
    /// Bytes in flight just after it was sent, itself included.
    pub in_flight_at_send: u64,
}

/// Everything one acknowledgement (or one loss-timer expiry, then with nothing acknowledged) revealed.
#[derive(Debug)]
pub struct AckEvent<'a> {
    /// When, on the sender's clock.
    pub now: Timestamp,
    /// Packets newly acknowledged. Zero when a timer revealed losses.
    pub acked_packets: u64,
    /// Wire bytes newly acknowledged.
    pub acked_bytes: u64,
    /// Wire bytes that count for the growth of a window; none: it stays. The same, but in the profile `ns3` what the
    /// cumulative acknowledgement covers, unless there is selective news, too.
    pub counted_bytes: u64,
    /// The packets newly acknowledged, sorted by number, with [`super::Capabilities::packet_events`]; else empty.
    pub acked: &'a [AckedPacket],
    /// Packets newly declared lost, sorted by number.
    pub lost: &'a [LostPacket],
    /// Wire bytes newly declared lost.
    pub lost_bytes: u64,
    /// The round-trip sample of this acknowledgement, acknowledgement delay included; `None` if it carried none.
    pub rtt_sample: Option<TimeSpan>,
    /// The smoothed state, this sample included.
    pub rtt: &'a RttEstimator,
    /// Delivery-rate sample, with [`super::Capabilities::rate_samples`]; `None` when nothing was acknowledged or the sample
    /// was invalid.
    pub rate_sample: Option<RateSample>,
    /// Wire bytes in flight before this event.
    pub prior_in_flight: u64,
    /// Wire bytes in flight after it.
    pub in_flight: u64,
    /// Wire bytes delivered over the flow's life, this event included.
    pub delivered: u64,
    /// Largest number acknowledged so far.
    pub largest_acked: PacketNumber,
    /// The number that the next packet will get.
    pub next_packet_number: PacketNumber,
    /// Whether a new recovery episode began with the losses in this event. One reduction per episode: losses of
    /// packets sent before it began do not set this again (RFC 9002 §7.3.2).
    pub entered_recovery: bool,
    /// Whether the flow is in recovery after this event: windows must not grow. After a timeout it lasts until
    /// everything outstanding then has arrived; there TCP slow-starts all the same (RFC 5681 §3.1).
    pub in_recovery: bool,
    /// Whether the window (not the application) limited sending in the past round, as RFC 9002 §7.8 asks before
    /// growth; in slow start it is enough that more than half of the window was used (Linux `tcp_is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// Whether this acknowledgement waited at the receiver (delayed or aggregated).
    pub ack_delayed: bool,
    /// Packets newly reported with congestion-experienced.
    pub ce_packets: u64,
}

impl<'a> AckEvent<'a> {
    /// An event that tells of nothing but the time and the round trip.
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

/// The retransmission timer expired: every packet in flight is presumed lost.
#[derive(Debug)]
pub struct TimeoutEvent<'a> {
    /// When.
    pub now: Timestamp,
    /// Consecutive expiries, this one included.
    pub count: u32,
    /// Packets declared lost by it, sorted by number.
    pub lost: &'a [LostPacket],
    /// Wire bytes in flight before.
    pub prior_in_flight: u64,
    /// The smoothed state.
    pub rtt: &'a RttEstimator,
}

/// Every loss of the latest recovery episode (or timeout) proved wrong: the packets arrived after all.
#[derive(Clone, Copy, Debug)]
pub struct SpuriousLossEvent {
    /// When it became known.
    pub now: Timestamp,
    /// Wire bytes in flight.
    pub in_flight: u64,
    /// Wire bytes delivered over the flow's life, the late packets included.
    pub delivered: u64,
}
