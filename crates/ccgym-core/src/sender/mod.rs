//! The sender of a flow: the transport around a congestion-control algorithm.
//!
//! It numbers packets, stores them, turns acknowledgements into RTT and delivery-rate samples and losses, runs recovery
//! (PRR, or RFC 6675's) and the probe and retransmission timers, and calls the CCA. The simulator and the UDP endpoint
//! drive the same machine:
//!
//! 1. [`Sender::on_ack`] or [`Sender::on_timeout`] at an event;
//! 2. [`Sender::poll_transmit`] until it returns `None`;
//! 3. sleep until [`Sender::next_timeout`].

mod acknowledgements;
mod application;
mod config;
mod handshake;
mod intervals;
mod ns3;
mod recovery;
mod stats;
mod timers;
mod train;
mod transmit;

use std::collections::VecDeque;

use crate::congestion_control::Control;
use crate::congestion_control::{AckedPacket, Capabilities, CongestionControl, InitContext, IntervalEnd, LostPacket};
use crate::interval_set::IntervalSet;
use crate::loss_detection::LossDetector;
use crate::monitor::MonitorInterval;
use crate::ns3::{wire_of, Ns3};
use crate::pacer::Pacer;
use crate::packet::PacketNumber;
use crate::prr::Prr;
use crate::rate_sampler::RateSampler;
use crate::rtt::RttEstimator;
use crate::sent_packets::SentPackets;
use crate::units::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    Open,
    /// Fast recovery until the point is passed (segments if reliable, packet numbers if not).
    Fast {
        since: Timestamp,
        point: u64,
    },
    /// After a retransmission timeout, until the point is passed.
    Loss {
        point: u64,
    },
}

use application::ShortSegments;
use handshake::Connection;

pub use application::{ENDLESS, MIN_SHORT};
pub use config::{RecoveryRule, SenderConfig, TimerConfig};
pub use handshake::HANDSHAKE;
pub use stats::SenderStats;

/// Sender state machine. See the module text for how to drive it.
pub struct Sender {
    config: SenderConfig,
    capabilities: Capabilities,
    cca: Box<dyn CongestionControl>,
    control: Control,
    connection: Connection,

    packets: SentPackets,
    /// Largest acknowledged number plus one; zero before the first.
    acked_end: PacketNumber,
    in_flight: u64,
    sampler: RateSampler,
    rtt: RttEstimator,
    detector: LossDetector,
    pacer: Pacer,

    recovery: Recovery,
    /// Packets below this number were sent before the latest episode began.
    episode_start: PacketNumber,
    prr: Prr,
    /// State of the profile `ns3`.
    ns3: Option<Box<Ns3>>,
    /// Losses of the current episode that have not proved spurious.
    episode_losses: u64,
    /// An acknowledgement of a packet below this number refutes the retransmission timeouts since the one before it;
    /// zero: no timeout is in doubt.
    doubtful_below: PacketNumber,
    /// Segments to send again, oldest first.
    retransmit: VecDeque<u64>,
    acked_segments: IntervalSet,
    next_segment: u64,
    /// Segments from the application so far (exclusive end).
    segments_available: u64,
    /// Segments that are not full, and may still be needed.
    short_segments: ShortSegments,
    /// From the next segment up to this one (exclusive), all are full.
    full_until: u64,

    round: u64,
    round_end: PacketNumber,
    /// Round in which the window last limited sending.
    window_limited_round: u64,
    max_in_flight_in_round: u64,

    last_sent: Timestamp,
    timer_base: Timestamp,
    timeouts: u32,
    probes_sent: u32,
    probes_wanted: u32,
    ce_seen: u32,
    /// True if the next acknowledgement may take the fast path; see [`Sender::on_ack`].
    fast_path: bool,
    /// … if it acknowledges only packets below this number.
    fast_path_end: PacketNumber,
    /// Once [`Sender::acked_end`] has reached this number, all packets above are outstanding.
    outstanding_from: PacketNumber,
    /// True if only window and pacing ever limit sending: no handshake, no retransmissions, no PRR.
    fast_send: bool,
    /// Bytes in flight above which the probe timer needs no special case; unreachable if every case is special.
    fast_timeout_above: u64,
    /// True if only pacing delays the next packet.
    awaits_release: bool,
    idle: bool,
    stopped: bool,

    stats: SenderStats,
    /// True if the CCA decides at intervals: their statistics are collected.
    by_intervals: bool,
    monitor: MonitorInterval,
    /// The latest closed interval.
    closed: MonitorInterval,
    /// End of the current interval; never unless the CCA decides at intervals.
    interval_end: IntervalEnd,
    /// Next timer of the CCA: its own, or the end of the interval if that is by time.
    cca_timer: Timestamp,
    /// True if the CCA waits for a decision from outside.
    awaits_decision: bool,
    /// As [`IntervalDriven::ignores_acks`](crate::congestion_control::IntervalDriven::ignores_acks).
    ignores_acks: bool,
    /// The algorithm's send quantum while it ignores acknowledgements.
    quantum: u64,
    lost_records: Vec<LostPacket>,
    acked_records: Vec<AckedPacket>,
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        Self {
            cca: self.cca.clone(),
            retransmit: self.retransmit.clone(),
            acked_segments: self.acked_segments.clone(),
            short_segments: self.short_segments.clone(),
            packets: self.packets.clone(),
            detector: self.detector.clone(),
            ns3: self.ns3.clone(),
            monitor: self.monitor.clone(),
            closed: self.closed.clone(),
            lost_records: Vec::new(),
            acked_records: Vec::new(),
            ..*self
        }
    }
}

impl Sender {
    /// Make a sender that starts at `context.now`; the application has nothing to send yet ([`Sender::write`]).
    #[must_use]
    pub fn new(config: SenderConfig, mut cca: Box<dyn CongestionControl>, context: InitContext) -> Self {
        let start = context.now;
        cca.init(context);
        let control = cca.control();
        let capabilities = cca.capabilities();
        let by_intervals = cca.interval_driven().is_some();
        let mut sender = Self {
            config,
            capabilities,
            control,
            connection: if config.handshake_size > 0 { Connection::New } else { Connection::Established },
            cca,
            packets: SentPackets::new(capabilities.rate_samples),
            acked_end: 0,
            in_flight: 0,
            sampler: RateSampler::default(),
            rtt: RttEstimator::default(),
            detector: LossDetector::new(config.loss),
            pacer: Pacer::new(config.min_burst, config.catch_up),
            recovery: Recovery::Open,
            episode_start: 0,
            prr: Prr::default(),
            ns3: config.ns3.then(Box::default),
            episode_losses: 0,
            doubtful_below: 0,
            retransmit: VecDeque::new(),
            acked_segments: IntervalSet::default(),
            next_segment: 0,
            segments_available: 0,
            short_segments: ShortSegments::default(),
            full_until: 0,
            round: 0,
            round_end: 0,
            window_limited_round: 0,
            max_in_flight_in_round: 0,
            last_sent: start,
            timer_base: start,
            timeouts: 0,
            probes_sent: 0,
            probes_wanted: 0,
            ce_seen: 0,
            fast_path: false,
            fast_path_end: 0,
            outstanding_from: 0,
            fast_send: config.handshake_size == 0
                && !config.reliable
                && !capabilities.prr
                && !capabilities.packet_events,
            fast_timeout_above: if config.reliable && config.timers.probes > 0 {
                u64::from(config.packet_size)
            } else {
                u64::MAX
            },
            awaits_release: false,
            idle: true,
            stopped: false,
            stats: SenderStats::default(),
            by_intervals,
            monitor: MonitorInterval::new(start),
            closed: MonitorInterval::new(start),
            interval_end: IntervalEnd::default(),
            cca_timer: Timestamp::NEVER,
            awaits_decision: false,
            ignores_acks: false,
            quantum: 0,
            lost_records: Vec::new(),
            acked_records: Vec::new(),
        };
        sender.adopt_timer();
        sender
    }

    /// End the flow: nothing is sent any more, not even retransmissions.
    pub fn stop(&mut self) {
        self.withdraw();
        self.give_up_handshake();
        self.retransmit.clear();
        self.probes_wanted = 0;
        self.stopped = true;
    }

    /// True after [`Sender::stop`].
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// True if it needs none of the features that few flows have: decision intervals, events per packet, the
    /// profile `ns3`, unreliable data.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.config.reliable && !self.config.ns3 && !self.by_intervals && !self.capabilities.packet_events
    }

    /// True if nothing is missing and no recovery is active, so that the next acknowledgement in order has no
    /// consequences but for the CCA.
    #[must_use]
    #[inline]
    pub const fn is_on_fast_path(&self) -> bool {
        self.fast_path
    }

    /// True if all data is acknowledged (unreliable flows: sent and settled).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.next_segment == self.segments_available
            && if self.config.reliable {
                self.acked_segments.first_missing() == self.next_segment
            } else {
                self.in_flight == 0
            }
    }

    /// True if another packet can be stored without more memory.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.packets.has_room()
    }

    /// Make room for another packet; false if memory cannot be allocated. A host that prefers to stop rather than abort
    /// calls this if there is no room, before the next [`Sender::poll_transmit`].
    pub fn make_room(&mut self) -> bool {
        self.packets.make_room()
    }

    /// Return the bytes of the sender's buffers, and those needed for `more` further packets; the algorithm's own are
    /// unknown.
    #[must_use]
    pub fn held_bytes(&self, more: usize) -> usize {
        self.packets.held_bytes(more)
            + self.monitor.held_bytes()
            + self.closed.held_bytes()
            + self.retransmit.capacity() * std::mem::size_of::<u64>()
            + self.acked_segments.held_bytes()
            + self.short_segments.held_bytes()
            + self.ns3.as_ref().map_or(0, |ns3| ns3.held_bytes())
    }

    /// Return the wire bytes of a full packet.
    #[must_use]
    pub const fn packet_size(&self) -> u32 {
        self.config.packet_size
    }
    /// Return the wire bytes in flight.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Return the current decision.
    #[must_use]
    #[inline]
    pub const fn control(&self) -> &Control {
        &self.control
    }
    /// Return the current window: the CCA's, or that of the recovery rule during fast recovery.
    #[must_use]
    #[inline]
    pub fn window(&self) -> u64 {
        if !self.capabilities.prr || !matches!(self.recovery, Recovery::Fast { .. }) {
            return self.control.cwnd;
        }
        let packet = u64::from(self.config.packet_size);
        match self.config.recovery {
            RecoveryRule::Prr if self.config.ns3 => {
                self.in_flight + self.ns3.as_ref().map_or(0, |ns3| wire_of(ns3.allowance(), packet))
            }
            // With nothing in flight no acknowledgement will clock sending: one packet restarts the clock.
            RecoveryRule::Prr if self.in_flight == 0 => self.prr.allowance().max(packet),
            RecoveryRule::Prr => self.in_flight + self.prr.allowance(),
            RecoveryRule::Classic if self.prr.has_begun() => self.control.cwnd,
            RecoveryRule::Classic => self.control.cwnd.max(self.in_flight + packet),
        }
    }
    /// Return the RTT estimator.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Return the counters.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }
    /// Return the delivery-rate sampler.
    #[must_use]
    pub const fn sampler(&self) -> &RateSampler {
        &self.sampler
    }
    /// True in a recovery episode (fast or after a timeout).
    #[must_use]
    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.recovery != Recovery::Open
    }
    /// Return the algorithm.
    #[must_use]
    pub fn cca(&self) -> &dyn CongestionControl {
        &*self.cca
    }
    /// Read the algorithm's decision.
    #[inline]
    fn adopt_control(&mut self) {
        self.control = self.cca.control();
        self.adopt_timer();
    }
}
