//! A sender paced at the rate that its controller chooses for each interval.

use ccgym_core::congestion_control::{Capabilities, Observables, SentEvent};
use ccgym_core::packet::PacketNumber;
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, Rng, TimeSpan, TimeoutEvent, Timestamp};

use super::{Interval, Intervals, Length};

/// Assumed RTT before the first sample (UDT: ten of its intervals of 10 ms).
const NOMINAL_RTT: TimeSpan = TimeSpan::from_millis(100);
/// Max packets in flight: UDT's flow window less the margin that all of the authors' programs keep (`core.cpp`).
const MAX_IN_FLIGHT: u64 = 100_000 - 1000;
/// Bounds of all rates, bits per second. Ours: one packet in 120 ms, and above every link.
const MIN_RATE: f64 = 1e5;
const MAX_RATE: f64 = 1e11;

/// Clamp `rate` to the bounds of all rates.
#[must_use]
pub fn bounded(rate: f64) -> f64 {
    rate.clamp(MIN_RATE, MAX_RATE)
}

/// State of the sender that a controller can read.
#[derive(Debug)]
pub struct View<'a> {
    /// Bytes on the wire of a full packet.
    pub mss: u64,
    /// Smoothed RTT, seconds.
    pub rtt: f64,
    /// Number of the next interval.
    pub next_id: u64,
    /// True if the application had nothing to send in the interval that has just ended.
    pub app_limited: bool,
    /// Mean RTT around the packet whose acknowledgement ended an interval, seconds.
    pub rtt_at_end: Option<f64>,
    /// The flow's random stream.
    pub rng: &'a mut Rng,
}

impl View<'_> {
    /// Return the time of one full packet at `rate` bits per second, seconds.
    #[must_use]
    pub fn packet_time(&self, rate: f64) -> f64 {
        self.mss as f64 * 8.0 / rate.max(1.0)
    }
}

/// Next step of the current interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It continues.
    GoOn,
    /// The next one begins at once.
    Begin,
    /// The next one begins at once, and all before it are removed.
    Forget,
}

/// Time at which the result of an interval is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    /// All packets are acknowledged or declared lost.
    Settled,
    /// A packet of a later interval is acknowledged; missing packets then count as lost.
    AtLaterAck,
    /// The same, or its own last packet is acknowledged.
    AtLastAck,
}

/// Chooses rates from the results of intervals. Rates are bits per second.
pub trait Controller: Clone + Send + Sync + 'static {
    /// Time at which it takes results.
    const TAKE: Take;
    /// Initialize before the first packet.
    fn init(&mut self, _view: &mut View<'_>) {}
    /// Begin interval `id`; returns its rate and length.
    fn begin(&mut self, id: u64, view: &mut View<'_>) -> (f64, Length);
    /// Process the result of an interval.
    fn end(&mut self, interval: &Interval, view: &mut View<'_>) -> Next;
    /// Return the number of packets that the receiver reports together; results and RTT samples come with the last.
    fn report(&self) -> usize {
        1
    }
    /// Return the time after its departure for which a lost packet is awaited. [`TimeSpan::MAX`]: until later ones
    /// arrive, at any timeout.
    fn patience(&self) -> TimeSpan {
        TimeSpan::ZERO
    }
    /// Process an RTT sample, seconds.
    fn on_rtt(&mut self, _now: Timestamp, _sample: f64) -> Next {
        Next::GoOn
    }
    /// Process an expired retransmission timer.
    fn on_timeout(&mut self) -> Next {
        Next::GoOn
    }
    fn pacing_rate(&self) -> f64;
    /// Return further values for time series.
    fn observables(&self) -> Observables;
}

/// A [`Controller`] as a scheme.
#[derive(Clone, Debug)]
pub struct PccSender<C> {
    controller: C,
    intervals: Intervals,
    /// Packets acknowledged, but not reported yet.
    unreported: Vec<PacketNumber>,
    mss: u64,
    rtt: Option<TimeSpan>,
    rng: Rng,
}

impl<C: Controller> PccSender<C> {
    /// Make a sender with this controller.
    pub fn new(controller: C) -> Self {
        Self {
            controller,
            intervals: Intervals::default(),
            unreported: Vec::new(),
            mss: 0,
            rtt: None,
            rng: Rng::stream(0, "monitor_interval", 0),
        }
    }

    /// Call the controller with a view of the state.
    fn ask<T>(&mut self, rtt_at_end: Option<f64>, question: impl FnOnce(&mut C, &mut View<'_>) -> T) -> T {
        let mut view = View {
            mss: self.mss,
            rtt: self.rtt.unwrap_or(NOMINAL_RTT).as_secs_f64(),
            next_id: self.intervals.next_id(),
            app_limited: self.intervals.filling().is_some_and(|i| i.app_limited),
            rtt_at_end,
            rng: &mut self.rng,
        };
        question(&mut self.controller, &mut view)
    }

    fn begin(&mut self, now: Timestamp) {
        let id = self.intervals.next_id();
        let (rate, length) = self.ask(None, |c, view| c.begin(id, view));
        self.intervals.begin(now, rate, length);
    }

    fn follow(&mut self, now: Timestamp, next: Next) {
        if next == Next::Forget {
            self.intervals.clear();
        }
        if next != Next::GoOn {
            self.begin(now);
        }
    }

    fn end(&mut self, now: Timestamp, interval: &Interval, rtt_at_end: Option<f64>) {
        let next = self.ask(rtt_at_end, |c, view| c.end(interval, view));
        self.follow(now, next);
    }

    fn end_reported(&mut self, now: Timestamp) {
        let mut reported = std::mem::take(&mut self.unreported);
        let rtt = reported.last().and_then(|&newest| self.intervals.mean_rtt_around(newest));
        for number in reported.drain(..) {
            while let Some(interval) = self.intervals.take_before(number, C::TAKE == Take::AtLastAck) {
                self.end(now, &interval, rtt);
            }
        }
        self.unreported = reported;
    }

    fn end_settled(&mut self, now: Timestamp) {
        while let Some(interval) = self.intervals.take_settled(now, self.controller.patience()) {
            self.end(now, &interval, None);
        }
    }
}

impl<C: Controller> CongestionControl for PccSender<C> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, prr: false, pacing_required: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.rng = context.rng;
        self.ask(None, |c, view| c.init(view));
        self.begin(context.now);
    }

    fn on_handshake(&mut self, now: Timestamp, rtt_sample: TimeSpan) {
        self.rtt = Some(rtt_sample);
        self.intervals = Intervals::default();
        self.unreported.clear();
        self.ask(None, |c, view| c.init(view));
        self.begin(now);
    }

    fn on_packet_sent(&mut self, event: &SentEvent) {
        if self.intervals.on_sent(event) {
            self.begin(event.now);
        }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.unreported.extend(event.acked.iter().map(|packet| packet.number));
        let due = self.unreported.len() >= self.controller.report();
        self.intervals.on_ack(event, due);
        if let Some(sample) = event.rtt_sample {
            self.rtt = Some(event.rtt.smoothed());
            let next = self.controller.on_rtt(event.now, sample.as_secs_f64());
            self.follow(event.now, next);
        }
        if C::TAKE == Take::Settled {
            self.unreported.clear();
            self.end_settled(event.now);
        } else if due {
            self.end_reported(event.now);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.intervals.on_lost(event.lost);
        let next = self.controller.on_timeout();
        self.follow(event.now, next);
        // No acknowledgement may come for the packets sent so far: do not wait for one.
        self.end_settled(event.now);
    }

    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {
        self.intervals.mark_app_limited();
    }

    fn on_idle_restart(&mut self, _now: Timestamp) {
        self.intervals.mark_app_limited();
    }

    fn control(&self) -> Control {
        let rate = self.controller.pacing_rate().clamp(1.0, MAX_RATE);
        Control { pacing_rate: Rate(rate as u64), ..Control::window(MAX_IN_FLIGHT * self.mss) }
    }

    fn observables(&self) -> Observables {
        let mut all = self.controller.observables();
        all.insert(0, ("rate_mbps", self.controller.pacing_rate() / 1e6));
        all
    }
}
