//! The interface of a congestion-control algorithm (CCA).
//!
//! A CCA is a state machine: it reads no clock and draws no randomness of its own. The transport calls it with one
//! event struct per hook and reads its decision once after each event with [`CongestionControl::control`]. The same
//! object runs in the simulator and over UDP.
//!
//! Order within one acknowledgement (which the conformance tests assert): losses that the acknowledgement revealed
//! and packets it acknowledged arrive *together* in one [`AckEvent`]; `lost` is sorted by packet number; a CCA that
//! distinguishes handles the loss first.

use std::any::Any;

use dyn_clone::DynClone;
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::monitor::MonitorInterval;
use crate::packet::{Ecn, PacketNumber};
use crate::rate_sampler::RateSample;
use crate::receiver_half::ReceiverHalf;
use crate::rng::Rng;
use crate::rtt::RttEstimator;
use crate::units::{Rate, TimeSpan, Timestamp};

/// What a CCA needs from its host, and what the host should do for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Fill [`AckEvent::rate_sample`] (costs time).
    pub rate_samples: bool,
    /// Fill [`AckEvent::acked`] and call [`CongestionControl::on_packet_sent`] (costs time).
    pub packet_events: bool,
    /// Ask [`CongestionControl::next_timer`] after each event.
    pub timers: bool,
    /// During fast recovery the transport meters sending by Proportional Rate Reduction (RFC 9937) toward the
    /// window the CCA chose at the loss. Schemes with their own recovery rule (BBR) say `false`.
    pub prr: bool,
    /// The decision is a plain window at all times: the host may read [`CongestionControl::cwnd`] instead of the
    /// whole [`Control`].
    pub window_only: bool,
    /// The scheme is meaningless without pacing; a host that cannot pace refuses it.
    pub pacing_required: bool,
    /// Give [`InitContext::path`]: only for `oracle` and experts.
    pub knows_path: bool,
    /// The ECN codepoint of its data packets: ECT(0), or ECT(1) for a scheme that reacts to marks as L4S asks (RFC 9331).
    pub ecn: Ecn,
    /// Its window or its rate has a bound of its own, whatever the path. Others grow until they fill the path, and need
    /// one that can be filled.
    pub bounded: bool,
    /// What a window leaves for less than a full packet goes in a shorter one, or in a full one where the application ends
    /// or what was lost is sent again.
    pub short_packets: bool,
    /// Its window can be set from outside ([`CongestionControl::set_cwnd`]).
    pub accepts_cwnd: bool,
    /// What it lets wait in the queue can be scaled from outside ([`CongestionControl::set_gain`]).
    pub accepts_gain: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            rate_samples: false,
            packet_events: false,
            timers: false,
            prr: true,
            window_only: false,
            pacing_required: false,
            knows_path: false,
            ecn: Ecn::NotEct,
            bounded: false,
            short_packets: false,
            accepts_cwnd: false,
            accepts_gain: false,
        }
    }
}

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
    /// The path, if [`Capabilities::knows_path`].
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

/// A media source handed over a frame.
#[derive(Clone, Copy, Debug)]
pub struct FrameEvent {
    /// When.
    pub now: Timestamp,
    /// Its wire bytes; zero if the encoder skipped it.
    pub bytes: u64,
    /// Wire bytes of earlier frames that wait to be sent.
    pub waiting: u64,
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
    /// the packet that caused it alone, the feedback of a receiver half of all that it reports for the first time.
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
    /// The packets newly acknowledged, sorted by number, with [`Capabilities::packet_events`]; else empty.
    pub acked: &'a [AckedPacket],
    /// Packets newly declared lost, sorted by number.
    pub lost: &'a [LostPacket],
    /// Wire bytes newly declared lost.
    pub lost_bytes: u64,
    /// The round-trip sample of this acknowledgement, acknowledgement delay included; `None` if it carried none.
    pub rtt_sample: Option<TimeSpan>,
    /// The smoothed state, this sample included.
    pub rtt: &'a RttEstimator,
    /// Delivery-rate sample, with [`Capabilities::rate_samples`]; `None` when nothing was acknowledged or the sample
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

/// When a decision interval ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalEnd {
    /// Not before this time; [`Timestamp::NEVER`] while it is not known.
    pub at: Timestamp,
    /// Zero: at that time, by a timer. Else: with the first acknowledgement from then on that is at least this one of
    /// the interval.
    pub acks: u64,
}

impl Default for IntervalEnd {
    fn default() -> Self {
        Self { at: Timestamp::NEVER, acks: 0 }
    }
}

/// What a scheme shows of itself, for tests and `describe`: names are the field's, units in the name.
pub type Observables = Vec<(&'static str, f64)>;

/// A congestion-control algorithm.
///
/// Required are a name and what to do at the start, at an acknowledgement and at a timeout, and the resulting decision;
/// every other hook defaults to doing nothing. Windows are wire bytes (a full packet counts [`InitContext::mss`]).
/// Implementations must be deterministic: equal events give equal decisions on every machine. They derive `Clone`, which
/// snapshots of a flow use.
pub trait CongestionControl: DynClone + Send + Sync {
    /// Registry name.
    fn name(&self) -> &'static str;
    /// What it needs. Constant over the flow's life.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    /// Called once before the first packet.
    fn init(&mut self, context: InitContext);
    /// The handshake was answered, with this round-trip sample, before the first data. Not called if the profile has no
    /// handshake, or if it had to be repeated (the answer is ambiguous then).
    fn on_handshake(&mut self, _now: Timestamp, _rtt_sample: TimeSpan) {}
    /// A packet left. Only with [`Capabilities::packet_events`].
    fn on_packet_sent(&mut self, _event: &SentEvent) {}
    /// A media source handed over a frame, or skipped one because earlier ones wait for too long.
    fn on_frame(&mut self, _event: &FrameEvent) {}
    /// The scheme's half at the receiver, if it has one: then its feedback takes the place of acknowledgements. The same
    /// for equal parameters, since the receiver may be another process that makes the scheme anew to ask for it.
    fn receiver_half(&self) -> Option<Box<dyn ReceiverHalf>> {
        None
    }
    /// What the packet that just left tells the receiver half. Asked after [`CongestionControl::on_packet_sent`], so only
    /// with [`Capabilities::packet_events`].
    fn header(&self) -> u32 {
        0
    }
    /// A message of the receiver half arrived. What it came with is told right after, through
    /// [`CongestionControl::on_ack`], if it is new. Over a network it may be anything.
    fn on_feedback(&mut self, _now: Timestamp, _message: &[u8]) {}
    /// An acknowledgement arrived, or the loss timer found losses.
    fn on_ack(&mut self, event: &AckEvent<'_>);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>);
    /// The latest reduction proved unnecessary.
    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {}
    /// When [`CongestionControl::on_timer`] wants to be called; [`Timestamp::NEVER`] if not. Only with
    /// [`Capabilities::timers`].
    fn next_timer(&self) -> Timestamp {
        Timestamp::NEVER
    }
    /// The time asked for by [`CongestionControl::next_timer`] has come.
    fn on_timer(&mut self, _now: Timestamp) {}
    /// The application has nothing to send although window and pacing would allow it.
    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {}
    /// The first packet after an idle time with nothing in flight is about to leave.
    fn on_idle_restart(&mut self, _now: Timestamp) {}
    /// The decision in force.
    fn control(&self) -> Control;
    /// The rate that a media source should encode at, headers included, where the scheme tells one: that of
    /// [`CongestionControl::control`] may be higher, so that a large frame leaves fast. A source asks at each frame.
    fn media_target(&self) -> Option<Rate> {
        None
    }
    /// Another decides the window, in wire bytes: go on from there, all other state being as it was, as a scheme of Linux
    /// does whose `snd_cwnd` is written. Only with [`Capabilities::accepts_cwnd`].
    fn set_cwnd(&mut self, _cwnd: u64) {}
    /// Another decides how much may wait in the queue, as a multiple of the packets that the scheme itself lets wait
    /// there: finite and above 0; 1, which is in force until the first call, is the scheme's own. It stays until the next
    /// call. Only with [`Capabilities::accepts_gain`].
    fn set_gain(&mut self, _gain: f64) {}
    /// The window of [`CongestionControl::control`] alone.
    fn cwnd(&self) -> u64 {
        self.control().cwnd
    }
    /// Slow-start threshold in wire bytes, where the scheme has one.
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    /// The state that it is in, by the name that its specification gives it; empty for a scheme without states.
    fn state(&self) -> &'static str {
        ""
    }
    /// Named internals for tests and debugging.
    fn observables(&self) -> Observables {
        Vec::new()
    }
    /// The scheme's side that decides at intervals, if it has one (agents). Constant over the flow's life.
    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        None
    }
    /// The same, to change it.
    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        None
    }
}

/// A scheme that decides once per interval, on statistics that the sender collects for it.
pub trait IntervalDriven {
    /// An interval ended; the next one begins now.
    fn on_interval(&mut self, interval: &MonitorInterval);
    /// When the running interval ends. Read after each event.
    fn interval_end(&self) -> IntervalEnd;
    /// Whether decisions come from an environment ([`IntervalDriven::decide`]). Constant over the flow's life.
    fn decided_outside(&self) -> bool {
        false
    }
    /// Whether it waits for such a decision. Asked after [`IntervalDriven::on_interval`].
    fn awaits_decision(&self) -> bool {
        false
    }
    /// The decision that [`IntervalDriven::awaits_decision`] waits for.
    fn decide(&mut self, _now: Timestamp, _action: &[f32]) {}
    /// What decides, for an environment that knows its type.
    fn agent(&self) -> &dyn Any;
}

dyn_clone::clone_trait_object!(CongestionControl);
