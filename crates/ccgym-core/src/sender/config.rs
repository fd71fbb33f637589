//! How a sender behaves: profiles, loss detection, timers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::loss_detection::LossConfig;
use crate::units::TimeSpan;

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

/// How much may leave during fast recovery, where the algorithm leaves that to the transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryRule {
    /// Proportional rate reduction (RFC 9937; in the profile `ns3` as ns-3.37 has it): a part of what arrives, from the
    /// first acknowledgement on.
    #[default]
    Prr,
    /// RFC 6675 (RFC 6582 with SACK): one segment at once, then nothing until no more than the reduced window is in flight.
    Classic,
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
    /// Wire bytes of the handshake packet; zero: data flows at once.
    pub handshake_size: u32,
    /// Whether lost segments are sent again.
    pub reliable: bool,
    /// What may leave during fast recovery.
    pub recovery: RecoveryRule,
    /// Whether losses are found and recovered as ns-3.37 does ([`crate::ns3`]).
    pub ns3: bool,
    /// Loss detection.
    pub loss: LossConfig,
    /// Timers.
    pub timers: TimerConfig,
    /// Wire bytes that a paced sender's host lets leave together at least.
    pub min_burst: u64,
    /// A paced sender that was late by up to this sends at once what it missed.
    pub catch_up: TimeSpan,
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

    /// TCP as ns-3 3.37 runs it: SACK by segment alone, its own PRR, no tail loss probe, timeout of 1 s or more.
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

    /// Datagrams with per-packet receipts (RFC 9002 timers and thresholds); nothing is sent again.
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
                // RFC 9002 names no ceiling; without one a flow sleeps through the return of its path.
                rto_ceiling: TimeSpan::from_millis(3_000),
                max_ack_delay: TimeSpan::from_millis(25),
            },
            min_burst: 0,
            catch_up: TimeSpan::ZERO,
        }
    }
}
