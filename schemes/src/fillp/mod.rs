//! FillP (github.com/fillthepipe/fill-the-pipe d6da145; its rules were derived from the program, which has no source):
//! the receiver measures the rate of each 20 ms, and the sender paces at the max of its latest 21 reports. In flight is
//! limited to that rate times the min RTT and one interval. FillP-Sheep (`fillp_sheep`) backs off sooner.

pub mod tack;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use ccgym_core::congestion_control::{Capabilities, Observables, ReceiverSide};
use ccgym_core::{
    AckEvent, CongestionControl, Control, FeedbackReceiver, InitContext, Rate, Rng, TimeSpan, TimeoutEvent, Timestamp,
};

use crate::filters::windowed::WindowedMin;
use crate::registry::{Role, SchemeEntry, SchemeInfo, Status, Transport};
use tack::{interval, Report, TackReceiver};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fillp",
        label: "FillP",
        reference: "fillthepipe/fill-the-pipe d6da145; Li et al., SIGCOMM 2020 (TACK)",
        summary: "Paces at the largest of its receiver's latest rate reports, and limits the data in flight.",
        role: Role::OnRequest,
        status: Status::Reconstructed,
        implementation: "",
        // The mean of `FILLED`, with 12 bytes of its own and 28 of UDP and IP.
        transport: Transport { mss: 1143, header: 40, ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |_, _| Ok(Box::new(Fillp::new(Rules::FILLP))),
};

/// Differences of FillP and FillP-Sheep.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Smoothed RTT, in min RTTs, above which the rate backs off.
    backoff_rtt: f64,
    /// Share of lost packets in an interval above which the rate backs off.
    backoff_loss: f64,
    /// True if a report in PROBE_BW counts as the mean of it and the one before.
    averaged: bool,
    /// Time between two PROBE_RTT.
    probe_rtt_interval: TimeSpan,
}

impl Rules {
    pub const FILLP: Self = Self {
        backoff_rtt: 3.0,
        backoff_loss: f64::INFINITY,
        averaged: false,
        probe_rtt_interval: TimeSpan::from_millis(60_000),
    };
    pub const SHEEP: Self =
        Self { backoff_rtt: 5.0, backoff_loss: 0.3, averaged: true, probe_rtt_interval: TimeSpan::from_millis(10_000) };
}

/// Initial and min rate, bits per second.
const INITIAL_RATE: f64 = 2e6;
const MIN_RATE: f64 = 350e3;
/// Rate in STARTUP, as a multiple of the largest report.
const STARTUP_GAIN: f64 = 3.0;
/// Ratio of two successive means of reports above which the rate is growing.
const GROWTH: f64 = 1.25;
/// Number of reports without growth, and smoothed RTT in RTTs of the handshake, above which STARTUP ends.
const FLAT_REPORTS: u32 = 6;
const STARTUP_RTT: f64 = 5.0;
/// Max reports in DRAIN, and its gain.
const DRAIN_REPORTS: u32 = 3;
const DRAIN_GAIN: f64 = 0.25;
/// Number of reports for the max, and rank of the middle one, from the largest.
const REPORTS: usize = 21;
const MIDDLE: usize = 13;
/// If the rate backs off and the middle report is less than this part of the max, the max counts, else the middle one.
const OUTLIER: f64 = 0.2;
const BACKOFF_GAIN: f64 = 0.9;
/// Gains of PROBE_BW, one per report, from a random place.
const SLOTS: usize = 16;
const GAINS: [f64; 3] = [1.25, 1.25, 0.5];
/// Length of the filter for the min RTT.
const MIN_RTT_WINDOW: TimeSpan = TimeSpan::from_millis(10_000);
const MIN_PROBE_RTT: TimeSpan = TimeSpan::from_millis(200);
/// Min packets that may be in flight.
const MIN_FLIGHT: u64 = 5;
/// The program counts packets. Its client writes 8000 bytes at a time, which leave in six packets of 1300 and one of
/// 200: the mean packet is this part of a full one.
const FILLED: f64 = 8000.0 / (7.0 * 1300.0);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The sender. Rates are bits per second, RTTs seconds.
#[derive(Clone)]
pub struct Fillp {
    rules: Rules,
    mss: u64,
    state: State,
    /// Start of the state.
    since: Timestamp,
    rate: f64,
    /// Report that came with the acknowledgement that follows.
    report: Option<Report>,
    /// The latest report, and the latest mean of two.
    reported: f64,
    mean: f64,
    /// The largest report of STARTUP, and number of reports without growth.
    best: f64,
    flat: u32,
    lossy: bool,
    drained: u32,
    /// The latest reports, the newest last.
    reports: VecDeque<f64>,
    /// Place in the gains; true after one full cycle.
    slot: usize,
    first_slot: usize,
    cycled: bool,
    /// RTT of the handshake or else the first one, smoothed, and min.
    first_rtt: f64,
    srtt: f64,
    min_rtt: f64,
    min_filter: WindowedMin,
    in_flight: u64,
    /// Packets acknowledged and lost since the latest report.
    acked: u64,
    lost: u64,
    /// Time until which nothing leaves, since more was in flight than the cap.
    paused_until: Timestamp,
    /// True if the retransmission timer expired, and nothing has arrived since.
    silent: bool,
    /// True if the application had nothing to send since the latest report.
    app_limited: bool,
}

impl Fillp {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            mss: 0,
            state: State::Startup,
            since: Timestamp::ZERO,
            rate: INITIAL_RATE,
            report: None,
            reported: 0.0,
            mean: 0.0,
            best: 0.0,
            flat: 0,
            lossy: false,
            drained: 0,
            reports: VecDeque::with_capacity(REPORTS),
            slot: 0,
            first_slot: 0,
            cycled: false,
            first_rtt: 0.0,
            srtt: 0.0,
            min_rtt: 0.0,
            min_filter: WindowedMin::default(),
            in_flight: 0,
            acked: 0,
            lost: 0,
            paused_until: Timestamp::NEVER,
            silent: false,
            app_limited: false,
        }
    }

    fn pace(&mut self, rate: f64) {
        self.rate = rate.clamp(MIN_RATE, 1e11);
    }

    fn enter(&mut self, state: State, now: Timestamp) {
        self.state = state;
        self.since = now;
    }

    /// Return the largest of the latest reports.
    fn largest(&self) -> f64 {
        self.reports.iter().copied().fold(0.0, f64::max)
    }

    /// Return the max bytes in flight.
    fn cap(&self) -> u64 {
        let rate = match self.state {
            State::Startup => self.rate.max(STARTUP_GAIN * self.reported),
            _ => self.largest(),
        };
        let time = self.min_rtt + interval(TimeSpan::from_secs_f64(self.first_rtt)).as_secs_f64();
        ((rate.max(INITIAL_RATE) * time / 8.0) as u64).max(MIN_FLIGHT * self.mss)
    }

    /// Return the bytes beyond the cap, as full packets.
    fn excess(&self) -> u64 {
        ((self.in_flight as f64 / FILLED) as u64).saturating_sub(self.cap())
    }

    fn on_rtt(&mut self, now: Timestamp, sample: TimeSpan) {
        let rtt = sample.as_secs_f64();
        if self.first_rtt == 0.0 {
            (self.first_rtt, self.srtt) = (rtt, rtt);
        }
        self.srtt += (rtt - self.srtt) / 8.0;
        if self.state != State::Drain {
            // Each report has the handshake's RTT, which limits the min: a queue never becomes part of it.
            let lately = TimeSpan(self.min_filter.update(now, sample.0, MIN_RTT_WINDOW)).as_secs_f64();
            self.min_rtt = lately.min(self.first_rtt);
        }
    }

    /// Process a rate report.
    fn on_report(&mut self, now: Timestamp, reported: f64) {
        let excess = self.excess();
        let holds = match self.state {
            State::Startup => !self.grow(now, reported),
            State::Drain => {
                self.drain(now, reported, excess > 0);
                false
            }
            State::ProbeBw | State::ProbeRtt => {
                self.probe(now, reported);
                true
            }
        };
        self.reported = reported;
        (self.acked, self.lost) = (0, 0);
        // A pause removes the excess.
        self.paused_until = if holds && excess > 0 {
            now + TimeSpan::from_secs_f64(excess as f64 * 8.0 / self.rate)
        } else {
            Timestamp::NEVER
        };
    }

    /// Run STARTUP; returns true if the rate grew.
    fn grow(&mut self, now: Timestamp, reported: f64) -> bool {
        self.best = self.best.max(reported);
        let floor = if self.reported == 0.0 { INITIAL_RATE } else { MIN_RATE };
        self.pace(STARTUP_GAIN * self.best.max(floor));
        let mut grew = true;
        if self.reported > 0.0 {
            let mean = f64::midpoint(reported, self.reported);
            grew = mean > GROWTH * self.mean;
            self.flat = if grew { 1 } else { self.flat + 1 };
            self.mean = mean;
        }
        if self.flat > FLAT_REPORTS || self.lossy || self.srtt > STARTUP_RTT * self.first_rtt {
            self.reports.push_back(self.best);
            self.enter(State::Drain, now);
            self.drained = 1;
            self.pace(DRAIN_GAIN * self.best);
        }
        grew
    }

    fn drain(&mut self, now: Timestamp, reported: f64, full: bool) {
        if reported > self.largest() {
            self.remember(reported);
        }
        self.drained += 1;
        if self.drained >= DRAIN_REPORTS || !full {
            self.enter(State::ProbeBw, now);
        }
    }

    fn remember(&mut self, reported: f64) {
        if self.reports.len() == REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(reported);
    }

    fn probe(&mut self, now: Timestamp, reported: f64) {
        let stay = now.since(self.since);
        match self.state {
            State::ProbeRtt if stay > MIN_PROBE_RTT.max(TimeSpan::from_secs_f64(self.srtt)) => {
                self.enter(State::ProbeBw, now);
                self.pace(self.largest());
            }
            State::ProbeRtt => self.pace(MIN_RATE),
            _ if stay > self.rules.probe_rtt_interval => {
                self.enter(State::ProbeRtt, now);
                self.pace(MIN_RATE);
            }
            _ => self.probe_bandwidth(reported),
        }
    }

    fn probe_bandwidth(&mut self, reported: f64) {
        let mut rate =
            if self.rules.averaged { f64::midpoint(reported, self.reported).max(MIN_RATE) } else { reported };
        if rate < MIN_RATE {
            return;
        }
        if self.cycled {
            rate = rate.min(GROWTH * self.largest());
        }
        self.remember(rate);
        let largest = self.largest();
        let loss = self.lost as f64 / (self.acked + self.lost).max(1) as f64;
        let base = if self.srtt > self.rules.backoff_rtt * self.min_rtt || loss >= self.rules.backoff_loss {
            let mut sorted: Vec<f64> = self.reports.iter().copied().collect();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let middle = sorted.get(MIDDLE).copied().unwrap_or(0.0);
            if middle < OUTLIER * largest {
                BACKOFF_GAIN * largest
            } else {
                middle
            }
        } else {
            largest
        };
        let gain = GAINS.get((self.slot + SLOTS - self.first_slot) % SLOTS).copied().unwrap_or(1.0);
        self.pace(gain * base);
        self.slot = (self.slot + 1) % SLOTS;
        self.cycled |= self.slot == 0;
    }
}

impl CongestionControl for Fillp {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, timers: true, prr: false, pacing_required: true, ..Capabilities::default() }
    }

    fn init(&mut self, mut context: InitContext) {
        self.mss = context.mss;
        self.first_slot = first_slot(&mut context.rng);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.on_rtt(now, rtt_sample);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.in_flight = event.in_flight;
        self.silent &= event.acked_packets == 0;
        self.acked += event.acked_packets;
        self.lost += event.lost.len() as u64;
        self.lossy |= !event.lost.is_empty();
        let report = self.report.take().filter(|_| event.acked_packets > 0);
        if let Some(sample) = report.and_then(|report| report.round_trip(event)).or(event.rtt_sample) {
            self.on_rtt(event.now, sample);
        }
        if let Some(report) = report.filter(|report| report.delivered > 0) {
            if !std::mem::take(&mut self.app_limited) {
                self.on_report(event.now, report.rate());
            }
        }
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        self.in_flight = 0;
        self.silent = true;
    }

    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {
        self.app_limited = true;
    }

    fn next_timer(&self) -> Timestamp {
        self.paused_until
    }

    fn on_timer(&mut self, now: Timestamp) {
        if self.paused_until <= now {
            self.paused_until = Timestamp::NEVER;
        }
    }

    fn control(&self) -> Control {
        let cwnd = if self.paused_until != Timestamp::NEVER {
            self.mss
        } else if self.silent {
            MIN_FLIGHT * self.mss
        } else {
            u64::MAX
        };
        Control { pacing_rate: Rate(self.rate as u64), ..Control::window(cwnd) }
    }

    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        Some(self)
    }

    fn state(&self) -> &'static str {
        match self.state {
            State::Startup => "STARTUP",
            State::Drain => "DRAIN",
            State::ProbeBw => "PROBE_BW",
            State::ProbeRtt => "PROBE_RTT",
        }
    }

    fn observables(&self) -> Observables {
        vec![
            ("reported_mbps", self.reported / 1e6),
            ("largest_mbps", self.largest() / 1e6),
            ("min_rtt_ms", self.min_rtt * 1e3),
            ("cap_packets", self.cap() as f64 / self.mss.max(1) as f64),
        ]
    }
}

impl ReceiverSide for Fillp {
    fn receiver(&self) -> Box<dyn FeedbackReceiver> {
        Box::new(TackReceiver::default())
    }

    fn header(&self) -> u32 {
        tack::header(self.first_rtt)
    }

    fn on_message(&mut self, _now: Timestamp, message: &[u8]) {
        self.report = Report::read(message);
    }
}

/// Draw the place of the gains that are not 1.
fn first_slot(rng: &mut Rng) -> usize {
    rng.below(SLOTS as u64 - 2) as usize
}
