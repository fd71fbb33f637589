//! Parameters of a sender: profiles, loss detection, timers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loss_detection::LossConfig;
use crate::units::TimeSpan;

/// Parameters of probe and retransmission timers.
#[derive(Clone, Copy, Debug)]
pub struct TimerConfig {
    /// Probes (RFC 8985 §7 tail loss probe, RFC 9002 §6.2) before the retransmission timeout.
    pub probes: u32,
    /// Min variation term of the retransmission timeout (Linux: 200 ms; RFC 6298: clock granularity).
    pub rto_variation_floor: TimeSpan,
    /// Min retransmission timeout (RFC 6298: 1 s).
    pub rto_floor: TimeSpan,
    /// Max backed-off timeout.
    pub rto_ceiling: TimeSpan,
    /// Max time that the receiver may delay an acknowledgement.
    pub max_ack_delay: TimeSpan,
}

/// Rule for sending during fast recovery, if the algorithm leaves that to the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryRule {
    /// Proportional rate reduction (RFC 9937; in the profile `ns3` that of ns-3.37): a part of the delivered bytes,
    /// from the first acknowledgement on.
    #[default]
    Prr,
    /// RFC 6675 (RFC 6582 with SACK): one segment at once, then nothing until no more than the reduced window is in flight.
    Classic,
}

/// Parameters of a sender.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// Index of the flow.
    pub flow: u32,
    /// Wire bytes of a full packet.
    pub packet_size: u32,
    /// Initial window in packets.
    pub initial_window: u32,
    /// Wire bytes of the handshake packet; zero: data flows at once.
    pub handshake_size: u32,
    /// True if lost segments are sent again.
    pub reliable: bool,
    /// Rule for sending during fast recovery.
    pub recovery: RecoveryRule,
    /// True if losses are detected and recovered as in ns-3.37 ([`crate::ns3`]).
    pub ns3: bool,
    /// Loss detection.
    pub loss: LossConfig,
    /// Timers.
    pub timers: TimerConfig,
    /// Min wire bytes that a paced sender's host sends together.
    pub min_burst: u64,
    /// Max lateness that a paced sender makes up for at once.
    pub catch_up: TimeSpan,
}

impl SenderConfig {
    /// Make a sender like Linux's TCP: SACK-like ranges, RACK, PRR, one tail loss probe, min timeout about 200 ms,
    /// initial window 10.
    #[must_use]
    pub const fn tcp(flow: u32, packet_size: u32) -> Self {
        Self {
            flow,
            packet_size,
            initial_window: 10,
            handshake_size: 60,
            reliable: true,
            recovery: RecoveryRule::Prr,
            ns3: false,
            loss: LossConfig { packet_threshold: 3, rack: true, reordering_window: (1, 4) },
            timers: TimerConfig {
                probes: 1,
                rto_variation_floor: TimeSpan::from_millis(200),
                rto_floor: TimeSpan::ZERO,
                rto_ceiling: TimeSpan::from_millis(120_000),
                max_ack_delay: TimeSpan::from_millis(40),
            },
            min_burst: 0,
            catch_up: TimeSpan::ZERO,
        }
    }

    /// Make a sender like TCP of ns-3.37: SACK by segment only, its own PRR, no probes, timeout of at least 1 s.
    #[must_use]
    pub const fn ns3(flow: u32, packet_size: u32) -> Self {
        let mut config = Self::tcp(flow, packet_size);
        config.handshake_size = 56;
        config.ns3 = true;
        config.loss = LossConfig { packet_threshold: 3, rack: false, reordering_window: (0, 1) };
        config.timers.probes = 0;
        config.timers.rto_variation_floor = TimeSpan::from_millis(1);
        config.timers.rto_floor = TimeSpan::from_millis(1000);
        config
    }

    /// Make a sender of datagrams with per-packet receipts (RFC 9002 timers and thresholds); nothing is sent again.
    #[must_use]
    pub const fn udp(flow: u32, packet_size: u32) -> Self {
        Self {
            flow,
            packet_size,
            initial_window: 10,
            handshake_size: 0,
            reliable: false,
            recovery: RecoveryRule::Prr,
            ns3: false,
            loss: LossConfig { packet_threshold: 3, rack: false, reordering_window: (1, 8) },
            timers: TimerConfig {
                probes: 2,
                rto_variation_floor: TimeSpan::from_millis(1),
                rto_floor: TimeSpan::ZERO,
                // RFC 9002 has no max; without one a flow waits far beyond the return of its path.
                rto_ceiling: TimeSpan::from_millis(3_000),
                max_ack_delay: TimeSpan::from_millis(25),
            },
            min_burst: 0,
            catch_up: TimeSpan::ZERO,
        }
    }
}
