//! FillP, reconstructed (github.com/fillthepipe: a program without source, its notes and the names that it exports): the
//! model of BBR, fed by a receiver that measures, with acknowledgements as thin as TACK's. No window caps what is in
//! flight once the pipe is full. FillP-Sheep (`fillp_sheep`) is the same with BBR's window.

pub mod tack;
#[cfg(test)]
mod tests;

use ccgym_core::congestion_control::{Capabilities, Observables, SpuriousLossEvent};
use ccgym_core::rate_sampler::RateSample;
use ccgym_core::{
    AckEvent, CongestionControl, Control, InitContext, Rate, ReceiverHalf, TimeSpan, TimeoutEvent, Timestamp,
};

use crate::bbr::{Bbr, BbrParameters, BW_WINDOW, PROBE_RTT_INTERVAL, STARTUP_GAIN};
use crate::bbr_model::{capabilities, PACING_MARGIN};
use crate::registry::{Parameter, Parameters, Role, SchemeEntry, SchemeInfo, Status, Transport};
use tack::{Frequency, Report, TackHalf};

pub const ACK_PACKETS: Parameter = Parameter::integer(
    "ack_packets",
    2,
    (1, 64),
    "packets",
    "Packets that one acknowledgement stands for at least (L).",
);
pub const ACKS_PER_RTT: Parameter =
    Parameter::number("acks_per_rtt", 4.0, (1.0, 100.0), "", "Acknowledgements per minimum round trip at most (β).");
pub const STARTUP_LOSS: Parameter = Parameter::number(
    "startup_loss",
    0.1,
    (0.001, 1.0),
    "",
    "Share of packets lost in each of two rounds that ends STARTUP.",
);

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fillp",
        label: "FillP",
        reference: "fillthepipe/fill-the-pipe d6da145; Li et al., SIGCOMM 2020 (TACK)",
        summary: "BBR's model on rates that the receiver measures, with thin acknowledgements and without a window.",
        parameters: &[
            ACK_PACKETS,
            ACKS_PER_RTT,
            STARTUP_LOSS,
            STARTUP_GAIN,
            Parameter::number("probe_rtt_gain", 0.5, (0.05, 1.0), "", "Pacing gain of PROBE_RTT."),
            BW_WINDOW,
            PROBE_RTT_INTERVAL,
            PACING_MARGIN,
        ],
        role: Role::OnRequest,
        status: Status::Reconstructed,
        implementation: "",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(Fillp::new(ENTRY.info.name, p, Some(p.number("probe_rtt_gain")), None))),
};

/// Rounds of loss that end STARTUP.
const LOSSY_ROUNDS: u32 = 2;

/// The sending half.
#[derive(Clone)]
pub struct Fillp {
    name: &'static str,
    bbr: Bbr,
    frequency: Frequency,
    startup_loss: f64,
    /// What came with the acknowledgement that follows.
    report: Option<Report>,
    reported: Rate,
    /// Bytes acknowledged and lost in this round of STARTUP, and rounds in a row that lost too many.
    acked: u64,
    lost: u64,
    lossy_rounds: u32,
}

impl Fillp {
    /// The scheme called `name`; either pacing alone limits it, with this gain in PROBE_RTT, or a window of this many BDP.
    pub fn new(name: &'static str, p: &Parameters, paced_only: Option<f64>, cwnd_gain: Option<f64>) -> Self {
        let bbr = BbrParameters::standard();
        let bbr = BbrParameters {
            startup_gain: p.number(STARTUP_GAIN.name),
            cwnd_gain: cwnd_gain.unwrap_or(bbr.cwnd_gain),
            pacing_margin: p.number(PACING_MARGIN.name),
            bw_window: p.integer(BW_WINDOW.name),
            probe_rtt_interval: TimeSpan::from_secs_f64(p.number(PROBE_RTT_INTERVAL.name)),
            // Acknowledgements are aggregated on purpose, and the receiver's rate does not suffer from it.
            extra_acked_gain: 0.0,
            paced_only,
            ..bbr
        };
        Self {
            name,
            bbr: Bbr::new(bbr),
            frequency: Frequency { packets: p.integer(ACK_PACKETS.name), per_rtt: p.number(ACKS_PER_RTT.name) },
            startup_loss: p.number(STARTUP_LOSS.name),
            report: None,
            reported: Rate::ZERO,
            acked: 0,
            lost: 0,
            lossy_rounds: 0,
        }
    }

    /// The acknowledgement with the receiver's measurements in place of the host's.
    fn on_reported_ack(&mut self, event: &AckEvent<'_>, report: Report) {
        let measured =
            |sample| RateSample { delivered: u64::from(report.delivered), interval: report.interval(), ..sample };
        if report.delivered > 0 {
            self.reported = Rate::from_bytes_over(u64::from(report.delivered), report.interval());
        }
        self.bbr.on_ack(&AckEvent {
            rtt_sample: report.round_trip(event).or(event.rtt_sample),
            ack_delayed: false,
            rate_sample: event.rate_sample.map(measured),
            ..*event
        });
    }

    /// Two rounds in a row with much loss end STARTUP.
    fn watch_startup(&mut self, event: &AckEvent<'_>) {
        self.acked += event.acked_bytes;
        self.lost += event.lost_bytes;
        if !self.bbr.startup_round_ended() {
            return;
        }
        let lossy = self.lost as f64 > self.startup_loss * (self.acked + self.lost) as f64;
        self.lossy_rounds = if lossy { self.lossy_rounds + 1 } else { 0 };
        if self.lossy_rounds >= LOSSY_ROUNDS {
            self.bbr.fill_pipe();
        }
        (self.acked, self.lost) = (0, 0);
    }
}

impl CongestionControl for Fillp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, ..capabilities() }
    }

    fn init(&mut self, context: InitContext) {
        self.bbr.init(context);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.bbr.on_handshake(now, rtt_sample);
    }

    fn receiver_half(&self) -> Option<Box<dyn ReceiverHalf>> {
        Some(Box::new(TackHalf::new(self.frequency)))
    }

    fn header(&self) -> u32 {
        tack::header(self.bbr.rtprop())
    }

    fn on_feedback(&mut self, _now: Timestamp, message: &[u8]) {
        self.report = Report::read(message);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        match self.report.take() {
            Some(report) if event.acked_packets > 0 => self.on_reported_ack(event, report),
            _ => self.bbr.on_ack(event),
        }
        self.watch_startup(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.bbr.on_timeout(event);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousLossEvent) {
        self.bbr.on_spurious_loss(event);
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        self.bbr.on_idle_restart(now);
    }

    fn control(&self) -> Control {
        self.bbr.control()
    }

    fn state(&self) -> &'static str {
        self.bbr.state()
    }

    fn observables(&self) -> Observables {
        let mut observables = self.bbr.observables();
        observables.push(("reported_mbps", self.reported.as_mbps()));
        observables
    }
}
