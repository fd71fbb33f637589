//! The sending half of a flow: the transport machine around a congestion-control algorithm.
//!
//! It numbers packets, remembers them, turns acknowledgements into round-trip and delivery-rate samples and losses,
//! runs recovery (PRR) and the probe and retransmission timers, and asks the CCA what to do. The simulator and the
//! UDP endpoint drive the same machine:
//!
//! 1. [`Sender::on_ack`] or [`Sender::on_timeout`] when something happened;
//! 2. [`Sender::poll_transmit`] until it answers `None`;
//! 3. sleep until [`Sender::next_timeout`].

use std::collections::VecDeque;

use crate::congestion_control::{
    AckEvent, AckedPacket, Capabilities, CongestionControl, Control, InitContext, LossReason, LostPacket, SentEvent,
    SpuriousLossEvent, TimeoutEvent,
};
use crate::interval_set::IntervalSet;
use crate::loss_detection::{LossConfig, LossDetector};
use crate::monitor::MonitorInterval;
use crate::pacer::Pacer;
use crate::packet::{Ack, Ecn, Packet, PacketNumber};
use crate::prr::Prr;
use crate::rate_sampler::{RateSample, RateSampler, SendStamp};
use crate::rtt::RttEstimator;
use crate::sent_packets::{Circumstances, SentPacket, SentPackets, State};
use crate::units::{Rate, TimeSpan, Timestamp};

/// When the last resort fires.
#[derive(Clone, Copy, Debug)]
pub struct TimerConfig {
    /// Probes (RFC 8985 §7 tail loss probe, RFC 9002 §6.2) before the retransmission timeout.
    pub probes: u32,
    /// Floor of the variation term of the retransmission timeout (Linux: 200 ms; RFC 6298: clock granularity).
    pub rto_variation_floor: TimeSpan,
    /// Floor of the retransmission timeout (RFC 6298: 1 s).
    pub rto_floor: TimeSpan,
    /// Ceiling of the backed-off timeout.
    pub rto_ceiling: TimeSpan,
    /// Longest time that the receiver may hold an acknowledgement back.
    pub max_ack_delay: TimeSpan,
}

/// How a sender behaves.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// Index of the flow.
    pub flow: u32,
    /// Wire bytes of a full packet.
    pub packet_size: u32,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Whether lost segments are sent again.
    pub reliable: bool,
    /// Loss detection.
    pub loss: LossConfig,
    /// Timers.
    pub timers: TimerConfig,
    /// Collect [`MonitorInterval`] statistics.
    pub monitor: bool,
}

impl SenderConfig {
    /// TCP as Linux runs it: SACK-like ranges, RACK, PRR, one tail loss probe, minimum timeout about 200 ms,
    /// initial window 10.
    #[must_use]
    pub const fn tcp(flow: u32, packet_size: u32) -> Self {
        Self {
            flow,
            packet_size,
            initial_window: 10,
            reliable: true,
            loss: LossConfig { packet_threshold: 3, rack: true, reordering_window: (1, 4) },
            timers: TimerConfig {
                probes: 1,
                rto_variation_floor: TimeSpan::from_millis(200),
                rto_floor: TimeSpan::ZERO,
                rto_ceiling: TimeSpan::from_millis(120_000),
                max_ack_delay: TimeSpan::from_millis(40),
            },
            monitor: false,
        }
    }

    /// TCP as ns-3 3.37 runs it: SACK by count alone, PRR, no tail loss probe, timeout of 1 s or more.
    #[must_use]
    pub const fn ns3(flow: u32, packet_size: u32) -> Self {
        let mut config = Self::tcp(flow, packet_size);
        config.loss = LossConfig { packet_threshold: 3, rack: false, reordering_window: (0, 1) };
        config.timers.probes = 0;
        config.timers.rto_variation_floor = TimeSpan::from_millis(1);
        config.timers.rto_floor = TimeSpan::from_millis(1000);
        config
    }

    /// Datagrams with per-packet receipts (RFC 9002 timers and thresholds); nothing is sent again.
    #[must_use]
    pub const fn udp(flow: u32, packet_size: u32) -> Self {
        Self {
            flow,
            packet_size,
            initial_window: 10,
            reliable: false,
            loss: LossConfig { packet_threshold: 3, rack: false, reordering_window: (1, 8) },
            timers: TimerConfig {
                probes: 2,
                rto_variation_floor: TimeSpan::from_millis(1),
                rto_floor: TimeSpan::ZERO,
                // RFC 9002 names no ceiling; without one a flow sleeps through the return of its path.
                rto_ceiling: TimeSpan::from_millis(3_000),
                max_ack_delay: TimeSpan::from_millis(25),
            },
            monitor: false,
        }
    }
}

/// Linux's margin over two round trips before a tail loss probe (two jiffies at 1000 Hz).
const PROBE_MARGIN: TimeSpan = TimeSpan::from_millis(2);

/// Counters of a flow's life, at the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Losses that proved wrong.
    pub spurious_losses: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Probes.
    pub probes: u64,
    /// Recovery episodes that have ended, and the time spent in them.
    pub recoveries: u64,
    /// Total time in ended recovery episodes.
    pub recovery_time: TimeSpan,
}

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

/// Sender state machine. See the module text for how to drive it.
pub struct Sender {
    config: SenderConfig,
    capabilities: Capabilities,
    cca: Box<dyn CongestionControl>,
    control: Control,

    packets: SentPackets,
    /// Largest acknowledged number plus one; zero before the first.
    acked_end: PacketNumber,
    in_flight: u64,
    sampler: RateSampler,
    rtt: RttEstimator,
    detector: LossDetector,
    pacer: Pacer,

    recovery: Recovery,
    prr: Prr,
    /// Losses of the current episode that have not (yet) proved wrong.
    episode_losses: u64,
    /// Segments to send again, oldest first.
    retransmit: VecDeque<u64>,
    acked_segments: IntervalSet,
    next_segment: u64,
    /// Segments that the application has handed over so far (exclusive end); the last one may be short.
    segments_available: u64,
    /// Wire bytes of the last available segment, if short.
    last_segment_size: u32,

    round: u64,
    round_end: PacketNumber,
    /// Round in which sending last stopped at the window.
    window_limited_round: u64,
    max_in_flight_in_round: u64,

    last_sent: Timestamp,
    timer_base: Timestamp,
    timeouts: u32,
    probes_sent: u32,
    probes_wanted: u32,
    ce_seen: u32,
    /// Whether the next acknowledgement may take the short way; see [`Sender::on_ack`].
    plain: bool,
    /// Bytes in flight above which the probe timer needs no special case; unreachable where every case is special.
    several_packets: u64,
    /// Whether only pacing holds the next packet back.
    awaits_release: bool,
    idle: bool,
    stopped: bool,

    stats: SenderStats,
    monitor: MonitorInterval,
    acked_records: Vec<AckedPacket>,
    lost_records: Vec<LostPacket>,
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        Self {
            cca: self.cca.clone_box(),
            retransmit: self.retransmit.clone(),
            acked_segments: self.acked_segments.clone(),
            packets: self.packets.clone(),
            detector: self.detector.clone(),
            monitor: self.monitor.clone(),
            acked_records: Vec::new(),
            lost_records: Vec::new(),
            ..*self
        }
    }
}

impl Sender {
    /// A sender that starts at `context.now`; the application has nothing to send yet ([`Sender::write`]).
    #[must_use]
    pub fn new(config: SenderConfig, mut cca: Box<dyn CongestionControl>, context: InitContext) -> Self {
        let start = context.now;
        cca.init(context);
        Self {
            config,
            capabilities: cca.capabilities(),
            control: cca.control(),
            cca,
            packets: SentPackets::default(),
            acked_end: 0,
            in_flight: 0,
            sampler: RateSampler::default(),
            rtt: RttEstimator::default(),
            detector: LossDetector::new(config.loss),
            pacer: Pacer::default(),
            recovery: Recovery::Open,
            prr: Prr::default(),
            episode_losses: 0,
            retransmit: VecDeque::new(),
            acked_segments: IntervalSet::default(),
            next_segment: 0,
            segments_available: 0,
            last_segment_size: config.packet_size,
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
            plain: false,
            several_packets: if config.reliable && config.timers.probes > 0 {
                u64::from(config.packet_size)
            } else {
                u64::MAX
            },
            awaits_release: false,
            idle: true,
            stopped: false,
            stats: SenderStats::default(),
            monitor: MonitorInterval::new(start),
            acked_records: Vec::new(),
            lost_records: Vec::new(),
        }
    }

    /// The application hands over `segments` more full segments.
    pub fn write(&mut self, segments: u64) {
        self.segments_available = self.segments_available.saturating_add(segments);
    }

    /// The application takes back what was never sent: it has nothing to send any more.
    pub fn withdraw(&mut self) {
        self.segments_available = self.next_segment;
    }

    /// The flow ends: nothing is sent any more, not even lost segments again.
    pub fn stop(&mut self) {
        self.withdraw();
        self.retransmit.clear();
        self.probes_wanted = 0;
        self.stopped = true;
    }

    /// The last segment handed over is this short on the wire.
    pub fn set_last_segment_size(&mut self, size: u32) {
        self.last_segment_size = size;
    }

    /// Segments that the application has handed over and that were never sent.
    #[must_use]
    pub const fn backlog_segments(&self) -> u64 {
        self.segments_available - self.next_segment
    }

    /// Whether everything handed over is acknowledged (unreliable flows: sent and settled).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.next_segment == self.segments_available
            && if self.config.reliable {
                self.acked_segments.first_missing() == self.next_segment
            } else {
                self.in_flight == 0
            }
    }

    /// Wire bytes in flight.
    #[must_use]
    #[inline]
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// The decision in force.
    #[must_use]
    #[inline]
    pub const fn control(&self) -> &Control {
        &self.control
    }
    /// Window in force: the CCA's, or PRR's during fast recovery.
    #[must_use]
    #[inline]
    pub fn window(&self) -> u64 {
        if self.capabilities.prr && matches!(self.recovery, Recovery::Fast { .. }) {
            // With nothing in flight no acknowledgement will come to meter by: one packet restarts the clock.
            let least = if self.in_flight == 0 { u64::from(self.config.packet_size) } else { 0 };
            self.in_flight + self.prr.allowance().max(least)
        } else {
            self.control.cwnd
        }
    }
    /// Round-trip state.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }
    /// Delivery-rate state.
    #[must_use]
    pub const fn sampler(&self) -> &RateSampler {
        &self.sampler
    }
    /// Whether a recovery episode (fast or after a timeout) is under way.
    #[must_use]
    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.recovery != Recovery::Open
    }
    /// The algorithm.
    #[must_use]
    pub fn cca(&self) -> &dyn CongestionControl {
        &*self.cca
    }
    /// Steer the algorithm from outside, then adopt its decision.
    pub fn with_cca(&mut self, f: impl FnOnce(&mut dyn CongestionControl)) {
        f(&mut *self.cca);
        self.adopt_control();
    }
    /// Statistics since the last call, ending at `now`; the next interval begins.
    pub fn take_interval(&mut self, now: Timestamp) -> MonitorInterval {
        self.monitor.take(now, &self.rtt, self.in_flight, &self.control)
    }

    /// An acknowledgement arrives. Follow with [`Sender::poll_transmit`].
    #[inline]
    pub fn on_ack(&mut self, now: Timestamp, ack: &Ack) {
        // In order, nothing missing, nobody watching single packets: by far the most frequent case.
        let plain = self.plain
            && ack.range_count() == 1
            && ack.trigger == ack.largest
            && ack.largest >= self.acked_end
            && ack.largest < self.packets.next()
            && ack.range(0).first <= self.acked_end
            && ack.ce_total == self.ce_seen;
        if plain {
            self.on_plain_ack(now, ack);
        } else {
            self.on_any_ack(now, ack);
            self.plain = self.recovery == Recovery::Open
                && !self.detector.has_holes()
                && !self.capabilities.per_packet_receipts
                && !self.config.monitor;
        }
    }

    /// As [`Sender::on_any_ack`] when the acknowledgement extends an unbroken prefix outside recovery: every packet
    /// from `acked_end` on is outstanding then.
    #[inline]
    fn on_plain_ack(&mut self, now: Timestamp, ack: &Ack) {
        let prior_in_flight = self.in_flight;
        let end = ack.largest + 1;
        let from = self.acked_end;
        let (mut bytes, mut sent) = (0, now);
        for number in from..end {
            let p = self.packets.slot_mut(number);
            p.state = State::Acked;
            bytes += u64::from(p.size);
            sent = p.sent;
            let segment = p.segment;
            self.acked_segments.insert(segment);
        }
        let packets = end - from;
        self.in_flight -= bytes;
        self.acked_end = end;
        self.sampler.on_delivered(now, bytes);
        self.detector.on_acked(packets);
        self.stats.acked_packets += packets;
        self.stats.acked_bytes += bytes;
        self.timer_base = now;
        self.timeouts = 0;
        self.probes_sent = 0;
        let sample = now.since(sent);
        let wait = if self.config.reliable { TimeSpan::ZERO } else { TimeSpan(u64::from(ack.delay_ns)) };
        self.rtt.update(sample, wait);
        let rate_sample = if self.capabilities.rate_samples { self.sample_rate(ack.largest) } else { None };
        let round_start = self.begin_round();
        self.cca.on_ack(&AckEvent {
            now,
            acked_packets: packets,
            acked_bytes: bytes,
            packets: &[],
            lost: &[],
            lost_bytes: 0,
            rtt_sample: Some(sample),
            rtt: &self.rtt,
            rate_sample,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: ack.largest,
            next_packet_number: self.packets.next(),
            round: self.round,
            round_start,
            entered_recovery: false,
            in_recovery: false,
            exited_recovery: false,
            cwnd_limited: self.is_cwnd_limited(),
            ack_delayed: ack.delay_ns > 0,
            ce_packets: 0,
        });
        self.adopt_control();
        if round_start {
            self.max_in_flight_in_round = self.in_flight;
        }
        if self.packets.first() == from {
            self.packets.settle_to(end);
        } else {
            self.packets.settle(now - TimeSpan(2 * self.rtt.smoothed().0));
        }
    }

    /// Rounds are packet-timed, one per flight (RFC 9438 and BBR count them alike). Whether a new one begins.
    #[inline]
    fn begin_round(&mut self) -> bool {
        let start = self.acked_end > self.round_end;
        if start {
            self.round += 1;
            self.round_end = self.packets.next();
        }
        start
    }

    /// The general case: gaps, losses, reordering, recovery, receipts.
    #[inline(never)]
    fn on_any_ack(&mut self, now: Timestamp, ack: &Ack) {
        let prior_in_flight = self.in_flight;
        let old_end = self.acked_end;
        let segments_before = self.acked_segments.first_missing();
        self.acked_records.clear();
        self.lost_records.clear();

        let mut newly = Newly::default();
        // Oldest range first, so that packets are visited in the order in which they were sent.
        for i in (0..ack.range_count()).rev() {
            let range = ack.range(i);
            // Reordered packets lie below what was already acknowledged: only then is a range looked at in full.
            let from = if i == 0 && ack.trigger < old_end { range.first } else { range.first.max(self.acked_end) };
            let end = (range.last + 1).min(self.packets.next());
            if from >= end {
                continue;
            }
            if from > self.acked_end {
                self.open_holes(from);
            }
            self.take_acked(from.max(self.packets.first()), end, ack, &mut newly);
            self.acked_end = self.acked_end.max(end);
        }
        if newly.packets == 0 && !self.detector.has_holes() {
            return;
        }
        let mut rtt_sample = None;
        let mut rate_sample = None;
        if newly.packets > 0 {
            self.sampler.on_delivered(now, newly.bytes);
            self.detector.on_acked(newly.packets);
            self.stats.acked_packets += newly.packets;
            self.stats.acked_bytes += newly.bytes;
            self.timer_base = now;
            self.timeouts = 0;
            self.probes_sent = 0;
            if newly.trigger_acked {
                let sample = now.since(newly.trigger_sent);
                // TCP's clock includes the receiver's wait (RFC 6298); datagram receipts carry it (RFC 9002 §5.3).
                let wait = if self.config.reliable { TimeSpan::ZERO } else { TimeSpan(u64::from(ack.delay_ns)) };
                self.rtt.update(sample, wait);
                rtt_sample = Some(sample);
            }
            if self.capabilities.rate_samples {
                rate_sample = self.sample_rate(newly.newest);
            }
        }

        let mut entered = false;
        let mut spurious_episode = false;
        if newly.spurious > 0 {
            spurious_episode = self.on_late_arrivals(newly.spurious);
        }
        if self.detector.has_holes() {
            entered = self.declare_losses(now);
        }
        let lost_bytes = self.lost_records.iter().map(|l| l.bytes).sum();

        let round_start = self.begin_round();
        let exited = !entered && self.try_exit_recovery(now, spurious_episode);
        if self.capabilities.prr && entered {
            self.prr = Prr::begin(prior_in_flight);
        }

        let ce_packets = u64::from(ack.ce_total.wrapping_sub(self.ce_seen));
        self.ce_seen = ack.ce_total;

        if self.config.monitor {
            let trip = (newly.trigger_sent, ack.received);
            self.monitor.on_ack(now, newly.packets, newly.bytes, rtt_sample, trip);
            self.monitor.on_lost(self.lost_records.len() as u64, lost_bytes);
        }

        if spurious_episode {
            self.cca.on_spurious_loss(&SpuriousLossEvent { now, in_flight: self.in_flight });
        }
        let event = AckEvent {
            now,
            acked_packets: newly.packets,
            acked_bytes: newly.bytes,
            packets: &self.acked_records,
            lost: &self.lost_records,
            lost_bytes,
            rtt_sample,
            rtt: &self.rtt,
            rate_sample,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: self.acked_end.saturating_sub(1),
            next_packet_number: self.packets.next(),
            round: self.round,
            round_start,
            entered_recovery: entered,
            in_recovery: self.recovery != Recovery::Open,
            exited_recovery: exited,
            cwnd_limited: self.is_cwnd_limited(),
            ack_delayed: ack.delay_ns > 0,
            ce_packets,
        };
        self.cca.on_ack(&event);
        self.adopt_control();
        if round_start {
            self.max_in_flight_in_round = self.in_flight;
        }

        if self.capabilities.prr && matches!(self.recovery, Recovery::Fast { .. }) {
            let advanced = self.acked_segments.first_missing() > segments_before || !self.config.reliable;
            let safe = advanced && self.lost_records.is_empty();
            self.prr.on_ack(newly.bytes, self.in_flight, self.control.cwnd, u64::from(self.config.packet_size), safe);
        }
        // Lost packets stay for two round trips, so that a late acknowledgement exposes a wrong verdict.
        self.packets.settle(now - TimeSpan(2 * self.rtt.smoothed().0));
    }

    /// A message of the scheme's receiver half arrives.
    pub fn on_feedback(&mut self, now: Timestamp, message: &[u8]) {
        self.cca.on_feedback(now, message);
        self.adopt_control();
    }

    /// The next packet to send now, or `None`: window, pacing or application say wait.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Timestamp) -> Option<Packet> {
        self.awaits_release = false;
        if self.probes_wanted > 0 {
            self.probes_wanted -= 1;
            if let Some(packet) = self.send_probe(now) {
                return Some(packet);
            }
        }
        let again = !self.retransmit.is_empty();
        if !again && self.next_segment >= self.segments_available {
            self.pacer.end_burst(now, self.control.pacing_rate);
            self.note_app_limited(now);
            return None;
        }
        let size = self.size_of(if again { self.retransmit[0] } else { self.next_segment });
        if self.in_flight + u64::from(size) > self.window() {
            self.window_limited_round = self.round + 1;
            self.pacer.end_burst(now, self.control.pacing_rate);
            return None;
        }
        if self.pacer.release() > now {
            self.awaits_release = true;
            return None;
        }
        if self.idle {
            self.leave_idle(now);
        }
        let segment = if again { self.pop_retransmission() } else { self.next_segment };
        self.next_segment += u64::from(!again);
        Some(self.send(now, segment, size, again))
    }

    #[cold]
    fn pop_retransmission(&mut self) -> u64 {
        self.retransmit.pop_front().unwrap_or_default()
    }

    /// When [`Sender::on_timeout`] wants to be called: loss, probe and retransmission timers, the CCA's own timer,
    /// and the pacing release if only that holds back a packet.
    #[must_use]
    #[inline]
    pub fn next_timeout(&self) -> Timestamp {
        if self.plain
            && self.probes_sent == 0
            && self.in_flight > self.several_packets
            && !(self.awaits_release | self.capabilities.timers)
        {
            // The frequent case of `last_resort`.
            let base = self.last_sent.max(self.timer_base);
            return Timestamp(base.0 + 2 * self.rtt.smoothed().0 + PROBE_MARGIN.0);
        }
        let mut next = if self.awaits_acks() { self.last_resort() } else { Timestamp::NEVER };
        if self.capabilities.timers {
            next = next.min(self.cca.next_timer());
        }
        if self.detector.has_holes() {
            next = next.min(self.detector.next_timeout(self.loss_rtt()));
        }
        if self.awaits_release {
            next = next.min(self.pacer.release());
        }
        next
    }

    /// The time given by [`Sender::next_timeout`] has come. Follow with [`Sender::poll_transmit`].
    pub fn on_timeout(&mut self, now: Timestamp) {
        if self.capabilities.timers && self.cca.next_timer() <= now {
            self.cca.on_timer(now);
            self.adopt_control();
        }
        if self.detector.has_holes() && self.detector.next_timeout(self.loss_rtt()) <= now {
            self.on_loss_timer(now);
        }
        if self.awaits_acks() && self.last_resort() <= now {
            if self.probes_sent < self.config.timers.probes && !matches!(self.recovery, Recovery::Loss { .. }) {
                self.probes_sent += 1;
                self.probes_wanted = 1;
                self.stats.probes += 1;
                self.timer_base = now;
            } else {
                self.on_retransmission_timeout(now);
            }
        }
    }

    /// Read the algorithm's decision. A plain window comes in a register; copying the whole struct right after the
    /// algorithm stored its window would wait for that store.
    #[inline]
    fn adopt_control(&mut self) {
        if self.capabilities.window_only {
            self.control.cwnd = self.cca.cwnd();
        } else {
            self.control = self.cca.control();
        }
    }

    // ---- acknowledgements -------------------------------------------------------------------------------------

    /// Packets from the end of what is acknowledged up to `until` were skipped.
    #[cold]
    fn open_holes(&mut self, until: PacketNumber) {
        for number in self.acked_end.max(self.packets.first())..until {
            if let Some(p) = self.packets.get(number) {
                if p.state == State::Outstanding {
                    self.detector.on_hole(number, p.sent);
                }
            }
        }
    }

    #[inline]
    fn take_acked(&mut self, from: PacketNumber, end: PacketNumber, ack: &Ack, newly: &mut Newly) {
        for number in from..end {
            let Some(p) = self.packets.get_mut(number) else { continue };
            let was = p.state;
            if was == State::Acked {
                continue;
            }
            p.state = State::Acked;
            let (size, segment) = (u64::from(p.size), p.segment);
            newly.packets += 1;
            newly.bytes += size;
            newly.newest = newly.newest.max(number);
            if number == ack.trigger {
                newly.trigger_acked = true;
                newly.trigger_sent = p.sent;
            }
            if self.capabilities.per_packet_receipts {
                self.acked_records.push(AckedPacket {
                    number,
                    bytes: size,
                    sent: p.sent,
                    in_flight_at_send: u64::from(p.in_flight),
                    tag: p.tag,
                    received: (number == ack.trigger).then_some(ack.received),
                    retransmission: p.circumstances.retransmission(),
                    app_limited: p.circumstances.app_limited(),
                });
            }
            if was == State::Outstanding {
                self.in_flight -= size;
                if number < self.acked_end {
                    self.detector.on_hole_filled(number);
                }
            } else {
                newly.spurious += 1;
                self.take_late(segment);
            }
            self.acked_segments.insert(segment);
        }
    }

    /// A packet that was declared lost has arrived.
    #[cold]
    fn take_late(&mut self, segment: u64) {
        self.stats.spurious_losses += 1;
        self.detector.saw_reordering(self.config.loss.packet_threshold);
        // If it still waits to be sent again, it need not be.
        if let Some(i) = self.retransmit.iter().position(|&s| s == segment) {
            self.retransmit.remove(i);
        }
    }

    #[inline]
    fn sample_rate(&mut self, newest: PacketNumber) -> Option<RateSample> {
        let p = self.packets.get(newest)?;
        self.sampler.sample(&p.stamp, p.sent, u64::from(p.in_flight), p.circumstances.app_limited(), self.rtt.min())
    }

    /// Whether sending was held back by the window in this round or the one before. TCP does not grow on duplicate
    /// acknowledgements: while a hole is open nothing counts (RFC 5681 §3.2; Linux `tcp_may_raise_cwnd`).
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        if self.config.reliable && self.detector.has_holes() {
            return false;
        }
        self.window_limited_round >= self.round
            || self
                .cca
                .ssthresh()
                .is_some_and(|t| self.control.cwnd < t && 2 * self.max_in_flight_in_round > self.control.cwnd)
    }

    // ---- losses and recovery ----------------------------------------------------------------------------------

    fn loss_rtt(&self) -> TimeSpan {
        self.rtt.smoothed().max(self.rtt.latest())
    }

    /// Move holes whose time or count has come to the lost; whether this began a recovery episode.
    #[cold]
    fn declare_losses(&mut self, now: Timestamp) -> bool {
        let rtt = self.loss_rtt();
        let mut entered = false;
        while let Some((number, by_time)) = self.detector.next_lost(now, rtt, self.in_recovery() || entered) {
            let reason = if by_time { LossReason::TimeThreshold } else { LossReason::PacketThreshold };
            let begins = match self.recovery {
                // A packet sent before the episode that just ended began belongs to that episode.
                Recovery::Open => true,
                Recovery::Fast { point, .. } if !self.config.reliable => number >= point,
                Recovery::Fast { .. } | Recovery::Loss { .. } => false,
            };
            if begins {
                self.begin_recovery(now);
                entered = true;
            }
            self.mark_lost(number, reason);
        }
        entered
    }

    fn begin_recovery(&mut self, now: Timestamp) {
        if let Recovery::Fast { since, .. } = self.recovery {
            self.stats.recoveries += 1;
            self.stats.recovery_time = self.stats.recovery_time + now.since(since);
        }
        let point = if self.config.reliable { self.next_segment } else { self.packets.next() };
        self.recovery = Recovery::Fast { since: now, point };
        self.episode_losses = 0;
    }

    fn mark_lost(&mut self, number: PacketNumber, reason: LossReason) {
        let Some(p) = self.packets.get_mut(number) else { return };
        if p.state != State::Outstanding {
            return;
        }
        p.state = State::Lost;
        let p = *p;
        let size = u64::from(p.size);
        self.in_flight -= size;
        self.sampler.on_lost(size);
        self.stats.lost_packets += 1;
        self.episode_losses += 1;
        if self.config.reliable && !self.stopped && !self.acked_segments.contains(p.segment) {
            self.retransmit.push_back(p.segment);
        }
        self.lost_records.push(LostPacket {
            number,
            bytes: size,
            sent: p.sent,
            in_flight_at_send: u64::from(p.in_flight),
            tag: p.tag,
            reason,
        });
    }

    /// `count` packets declared lost arrived after all; whether that refutes the whole episode.
    #[cold]
    fn on_late_arrivals(&mut self, count: u64) -> bool {
        if self.recovery == Recovery::Open || self.episode_losses == 0 {
            return false;
        }
        self.episode_losses = self.episode_losses.saturating_sub(count);
        self.episode_losses == 0
    }

    #[inline]
    fn try_exit_recovery(&mut self, now: Timestamp, refuted: bool) -> bool {
        let point = match self.recovery {
            Recovery::Open => return false,
            Recovery::Fast { point, .. } | Recovery::Loss { point } => point,
        };
        let reached = if self.config.reliable { self.acked_segments.first_missing() } else { self.acked_end };
        // Reliable: everything outstanding when it began has arrived. Unreliable: a packet sent since then has.
        let passed = if self.config.reliable { reached >= point } else { reached > point };
        if !passed && !refuted {
            return false;
        }
        if let Recovery::Fast { since, .. } = self.recovery {
            self.stats.recoveries += 1;
            self.stats.recovery_time = self.stats.recovery_time + now.since(since);
        }
        self.recovery = Recovery::Open;
        self.episode_losses = 0;
        true
    }

    /// The reordering timer revealed losses without an acknowledgement.
    #[cold]
    fn on_loss_timer(&mut self, now: Timestamp) {
        self.plain = false;
        let prior_in_flight = self.in_flight;
        self.acked_records.clear();
        self.lost_records.clear();
        let entered = self.declare_losses(now);
        if self.lost_records.is_empty() {
            return;
        }
        if self.capabilities.prr && entered {
            self.prr = Prr::begin(prior_in_flight);
        }
        let lost_bytes = self.lost_records.iter().map(|l| l.bytes).sum();
        if self.config.monitor {
            self.monitor.on_lost(self.lost_records.len() as u64, lost_bytes);
        }
        let event = AckEvent {
            now,
            acked_packets: 0,
            acked_bytes: 0,
            packets: &[],
            lost: &self.lost_records,
            lost_bytes,
            rtt_sample: None,
            rtt: &self.rtt,
            rate_sample: None,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            largest_acked: self.acked_end.saturating_sub(1),
            next_packet_number: self.packets.next(),
            round: self.round,
            round_start: false,
            entered_recovery: entered,
            in_recovery: self.in_recovery(),
            exited_recovery: false,
            cwnd_limited: self.is_cwnd_limited(),
            ack_delayed: false,
            ce_packets: 0,
        };
        self.cca.on_ack(&event);
        self.adopt_control();
        if self.capabilities.prr && matches!(self.recovery, Recovery::Fast { .. }) {
            self.prr.on_ack(0, self.in_flight, self.control.cwnd, u64::from(self.config.packet_size), false);
        }
    }

    /// Whether the last-resort timer runs: something is in flight, or lost and not yet sent again.
    #[inline]
    fn awaits_acks(&self) -> bool {
        self.in_flight > 0 || !self.retransmit.is_empty()
    }

    /// When the probe or retransmission timer fires.
    #[inline]
    fn last_resort(&self) -> Timestamp {
        if self.probes_sent < self.config.timers.probes && self.recovery == Recovery::Open {
            let base = self.last_sent.max(self.timer_base);
            if self.config.reliable && self.in_flight > u64::from(self.config.packet_size) {
                // RFC 8985 §7.2: two round trips after the last transmission.
                return Timestamp(base.0 + 2 * self.rtt.smoothed().0 + PROBE_MARGIN.0);
            }
            return base + self.rare_probe_wait();
        }
        self.retransmission_due()
    }

    /// The wait before a probe when a delayed acknowledgement of the only packet may be what is awaited (RFC 8985
    /// §7.2), or by RFC 9002 §6.2.
    #[cold]
    fn rare_probe_wait(&self) -> TimeSpan {
        let timers = &self.config.timers;
        if self.config.reliable {
            return TimeSpan(2 * self.rtt.smoothed().0 + timers.rto_variation_floor.0);
        }
        let variation = (4 * self.rtt.variation().0).max(1_000_000);
        TimeSpan((self.rtt.smoothed().0 + variation + timers.max_ack_delay.0) << self.probes_sent)
    }

    #[cold]
    fn retransmission_due(&self) -> Timestamp {
        let timers = &self.config.timers;
        let mut rto = self.rtt.rto(timers.rto_variation_floor, timers.rto_floor);
        if !self.config.reliable {
            // RFC 9002 §7.6: persistent congestion after three probe periods.
            rto = TimeSpan(3 * (rto.0 + timers.max_ack_delay.0));
        }
        let backed_off = rto.0.saturating_mul(1 << self.timeouts.min(20)).min(timers.rto_ceiling.0);
        self.timer_base.saturating_add(TimeSpan(backed_off))
    }

    #[cold]
    fn on_retransmission_timeout(&mut self, now: Timestamp) {
        let prior_in_flight = self.in_flight;
        self.timeouts += 1;
        self.probes_sent = 0;
        self.timer_base = now;
        self.stats.rtos += 1;
        self.lost_records.clear();
        if let Recovery::Fast { since, .. } = self.recovery {
            self.stats.recoveries += 1;
            self.stats.recovery_time = self.stats.recovery_time + now.since(since);
        }
        if !matches!(self.recovery, Recovery::Loss { .. }) {
            self.episode_losses = 0;
        }
        self.detector.clear();
        self.plain = false;
        for number in self.packets.first()..self.packets.next() {
            self.mark_lost(number, LossReason::Timeout);
        }
        // Sent in order of the stream again.
        self.retransmit.make_contiguous().sort_unstable();
        self.acked_end = self.packets.next();
        self.recovery =
            Recovery::Loss { point: if self.config.reliable { self.next_segment } else { self.packets.next() } };
        if self.config.monitor {
            let bytes = self.lost_records.iter().map(|l| l.bytes).sum();
            self.monitor.on_lost(self.lost_records.len() as u64, bytes);
        }
        self.cca.on_timeout(&TimeoutEvent {
            now,
            count: self.timeouts,
            lost: &self.lost_records,
            prior_in_flight,
            rtt: &self.rtt,
            persistent: !self.config.reliable,
        });
        self.adopt_control();
    }

    // ---- sending ----------------------------------------------------------------------------------------------

    #[inline]
    fn size_of(&self, segment: u64) -> u32 {
        if segment + 1 == self.segments_available && self.last_segment_size != self.config.packet_size {
            self.last_segment_size
        } else {
            self.config.packet_size
        }
    }

    #[inline(always)]
    fn send(&mut self, now: Timestamp, segment: u64, size: u32, again: bool) -> Packet {
        let bytes = u64::from(size);
        let stamp: SendStamp = self.sampler.on_send(now, self.in_flight);
        let app_limited = self.sampler.is_app_limited();
        if self.in_flight == 0 {
            self.timer_base = now;
        }
        let number = self.packets.next();
        let mut tag = 0;
        if self.capabilities.sent_events {
            tag = self.cca.on_packet_sent(&SentEvent {
                now,
                number,
                bytes,
                in_flight_before: self.in_flight,
                retransmission: again,
                app_limited: self.retransmit.is_empty() && self.next_segment >= self.segments_available,
            });
            self.adopt_control();
        }
        self.in_flight += bytes;
        if self.in_flight > self.max_in_flight_in_round {
            self.max_in_flight_in_round = self.in_flight;
        }
        self.packets.push(SentPacket {
            sent: now,
            stamp,
            segment,
            tag,
            in_flight: self.in_flight.min(u64::from(u32::MAX)) as u32,
            size: size as u16,
            state: State::Outstanding,
            circumstances: Circumstances::new(app_limited, again),
        });
        self.last_sent = now;
        let control = &self.control;
        if control.pacing_rate != Rate::ZERO || control.min_send_gap != TimeSpan::ZERO {
            self.pacer.on_sent(now, bytes, control.pacing_rate, u64::from(control.send_quantum), control.min_send_gap);
        }
        if matches!(self.recovery, Recovery::Fast { .. }) {
            self.prr.on_sent(bytes);
        }
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += bytes;
        self.stats.retransmissions += u64::from(again);
        if self.config.monitor {
            self.monitor.on_sent(bytes);
        }
        Packet {
            number,
            segment,
            sent: now,
            least_unsettled: self.packets.first(),
            tag,
            flow: self.config.flow,
            size,
            ecn: if self.capabilities.ecn { Ecn::Ect0 } else { Ecn::NotEct },
            retransmission: again,
        }
    }

    /// A probe ignores window and pacing: new data if there is some (RFC 8985 §7.3), else the newest segment again.
    #[cold]
    fn send_probe(&mut self, now: Timestamp) -> Option<Packet> {
        if self.next_segment < self.segments_available {
            let segment = self.next_segment;
            let size = self.size_of(segment);
            self.next_segment += 1;
            return Some(self.send(now, segment, size, false));
        }
        if !self.config.reliable || self.stopped {
            return None;
        }
        let newest = (self.packets.first()..self.packets.next())
            .rev()
            .find_map(|n| self.packets.get(n).filter(|p| p.state == State::Outstanding).copied())?;
        Some(self.send(now, newest.segment, u32::from(newest.size), true))
    }

    #[cold]
    fn leave_idle(&mut self, now: Timestamp) {
        self.idle = false;
        if self.stats.sent_packets > 0 {
            self.cca.on_idle_restart(now);
            self.adopt_control();
        }
    }

    #[cold]
    fn note_app_limited(&mut self, now: Timestamp) {
        if self.in_flight < self.window() {
            self.sampler.mark_app_limited(self.in_flight);
            self.cca.on_app_limited(now, self.in_flight);
            self.adopt_control();
        }
        self.idle = self.in_flight == 0;
    }
}

/// What one acknowledgement newly acknowledged.
#[derive(Default)]
struct Newly {
    packets: u64,
    bytes: u64,
    /// Of these, how many had been declared lost.
    spurious: u64,
    newest: PacketNumber,
    trigger_acked: bool,
    trigger_sent: Timestamp,
}
