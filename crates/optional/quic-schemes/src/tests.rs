use ccgym_core::congestion_control::{Capabilities, IntervalDriven, IntervalEnd, SentEvent};
use ccgym_core::{AckEvent, Control, Ecn, MonitorInterval, Rate, TimeSpan, TimeoutEvent};

use super::*;

const MTU: u64 = 1000;

/// Call to a scheme.
#[derive(Clone, PartialEq, Debug)]
enum Told {
    Ack {
        acked: (u64, u64),
        lost: Vec<u64>,
        entered: bool,
        recovering: bool,
        marks: u64,
        rtt_ms: Option<u64>,
        largest: u64,
    },
    Timeout {
        lost: u64,
        in_flight: u64,
    },
    Timer(u64),
    Interval {
        ms: (u64, u64),
        sent: u64,
        acked: u64,
        lost: u64,
        samples: usize,
    },
    AppLimited,
    Idle,
}

/// Scheme that records its calls.
#[derive(Clone)]
struct Listener {
    told: Arc<Mutex<Vec<Told>>>,
    capabilities: Capabilities,
    control: Control,
    timer: Timestamp,
    /// Length of its intervals.
    interval: Option<TimeSpan>,
    interval_end: Timestamp,
}

impl Listener {
    fn new() -> Self {
        Self {
            told: Arc::default(),
            capabilities: Capabilities::default(),
            control: Control::window(10 * MTU),
            timer: Timestamp::NEVER,
            interval: None,
            interval_end: Timestamp::NEVER,
        }
    }

    fn note(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }

    fn host(&self) -> Host {
        let (rng, path) = (Rng::stream(0, "test", 0), None);
        let context = InitContext { now: Timestamp::ZERO, mss: MTU, initial_window: 10 * MTU, flow: 0, rng, path };
        Host::new(Box::new(self.clone()), context)
    }

    /// Return the calls since the last one of this function.
    fn told(&self) -> Vec<Told> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

impl CongestionControl for Listener {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    fn init(&mut self, context: InitContext) {
        self.interval_end = self.interval.map_or(Timestamp::NEVER, |length| context.now + length);
    }
    fn on_packet_sent(&mut self, _event: &SentEvent) {
        unreachable!("it did not ask for this");
    }
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        assert_eq!(event.lost_bytes, event.lost.iter().map(|one| one.bytes).sum::<u64>());
        self.note(Told::Ack {
            acked: (event.acked_packets, event.acked_bytes),
            lost: event.lost.iter().map(|one| one.number).collect(),
            entered: event.entered_recovery,
            recovering: event.in_recovery,
            marks: event.ce_packets,
            rtt_ms: event.rtt_sample.map(TimeSpan::as_millis),
            largest: event.largest_acked,
        });
    }
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>) {
        self.note(Told::Timeout { lost: event.lost.len() as u64, in_flight: event.prior_in_flight });
    }
    fn next_timer(&self) -> Timestamp {
        self.timer
    }
    fn on_timer(&mut self, now: Timestamp) {
        self.timer += TimeSpan::from_millis(10);
        self.note(Told::Timer(now.as_millis()));
    }
    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {
        self.note(Told::AppLimited);
    }
    fn on_idle_restart(&mut self, _now: Timestamp) {
        self.note(Told::Idle);
    }
    fn control(&self) -> Control {
        self.control
    }
    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        self.interval.map(|_| self as &dyn IntervalDriven)
    }
    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        self.interval.map(|_| self as &mut dyn IntervalDriven)
    }
}

impl IntervalDriven for Listener {
    fn on_interval(&mut self, interval: &MonitorInterval) {
        self.interval_end = interval.end + self.interval.unwrap();
        self.note(Told::Interval {
            ms: (interval.start.as_millis(), interval.end.as_millis()),
            sent: interval.sent_packets,
            acked: interval.acked_packets,
            lost: interval.lost_packets,
            samples: interval.rtt_count(),
        });
    }
    fn interval_end(&self) -> IntervalEnd {
        IntervalEnd { at: self.interval_end, acks: 0 }
    }
    fn agent(&self) -> &dyn Any {
        self
    }
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// Send one packet per millisecond at these times, ms.
fn send(host: &mut Host, times: std::ops::Range<u64>) {
    times.for_each(|ms| host.on_sent(at(ms), MTU));
}

/// Receive at `now` an ACK of the packet that was sent at `sent`, ms; `left` bytes remain in flight.
fn receive(host: &mut Host, now: u64, sent: u64, left: u64) {
    host.on_acked(at(now), at(sent), MTU, false);
    host.on_end_acks(at(now), left, false);
}

fn ack(acked: u64, lost: &[u64], (entered, recovering): (bool, bool), rtt_ms: Option<u64>, largest: u64) -> Told {
    Told::Ack { acked: (acked, acked * MTU), lost: lost.to_vec(), entered, recovering, marks: 0, rtt_ms, largest }
}

#[test]
fn an_acknowledgement_and_its_losses_are_one_event_and_a_period_has_one_reduction() {
    let scheme = Listener::new();
    let mut host = scheme.host();
    send(&mut host, 0..8);
    // Packets 3 and 4 arrived, 0 to 2 did not.
    host.on_acked(at(50), at(3), MTU, false);
    receive(&mut host, 50, 4, 6 * MTU);
    host.on_congestion(at(50), at(1), false, 2 * MTU);
    assert_eq!(scheme.told(), [], "more may follow until the window is asked for");
    host.window();
    assert_eq!(scheme.told(), [ack(2, &[0, 1], (true, true), Some(46), 4)]);
    // The timer finds the third loss; that packet was sent before the period started.
    host.on_congestion(at(60), at(2), false, MTU);
    host.window();
    assert_eq!(scheme.told(), [ack(0, &[2], (false, true), None, 4)]);
    // An ACK of a packet sent since then ends the period. Two ACKs that arrive at once are two events.
    send(&mut host, 61..63);
    for (ms, left) in [(61, 4), (62, 3)] {
        receive(&mut host, 110, ms, left * MTU);
    }
    host.window();
    assert_eq!(scheme.told(), [ack(1, &[], (false, false), Some(49), 8), ack(1, &[], (false, false), Some(48), 9)]);
}

#[test]
fn marks_are_reported_once_per_period_like_losses() {
    let scheme = Listener::new();
    let mut host = scheme.host();
    send(&mut host, 0..4);
    for (ms, entered) in [(0, true), (1, false)] {
        receive(&mut host, 50 + ms, ms, (3 - ms) * MTU);
        host.on_congestion(at(50 + ms), at(ms), false, 0);
        host.window();
        let marked = Told::Ack {
            acked: (1, MTU),
            lost: vec![],
            entered,
            recovering: true,
            marks: 1,
            rtt_ms: Some(50),
            largest: ms,
        };
        assert_eq!(scheme.told(), [marked]);
    }
}

#[test]
fn persistent_congestion_is_a_timeout() {
    let scheme = Listener::new();
    let mut host = scheme.host();
    send(&mut host, 0..3);
    send(&mut host, 900..901);
    receive(&mut host, 950, 900, 3 * MTU);
    host.on_congestion(at(950), at(2), true, 3 * MTU);
    host.window();
    let told = scheme.told();
    assert_eq!(told, [Told::Timeout { lost: 3, in_flight: 4 * MTU }, ack(1, &[], (false, true), Some(50), 3)]);
}

#[test]
fn a_rate_becomes_a_window_of_one_rtt() {
    let mut scheme = Listener::new();
    scheme.control = Control { cwnd: 100 * MTU, pacing_rate: Rate::from_mbps(8.0) };
    let mut host = scheme.host();
    // Before the first sample the RTT is assumed to be 333 ms.
    assert_eq!(host.window(), 100 * MTU + 1);
    send(&mut host, 0..1);
    receive(&mut host, 50, 0, 0);
    // 8 Mbit/s for 50 ms.
    assert_eq!((host.window(), host.pacing_rate()), (50_000 + 1, Some(Rate::from_mbps(8.0))));
    scheme.control = Control { cwnd: 100 * MTU, pacing_rate: Rate(8000) };
    assert_eq!(scheme.host().window(), 2 * MTU + 1, "no rate and no window is below two packets");
    scheme.control = Control::window(0);
    let mut host = scheme.host();
    assert_eq!(host.window(), 2 * MTU + 1);
    host.set_mtu(1400);
    assert_eq!(host.window(), 2 * 1400 + 1);
    scheme.control = Control::window(u64::MAX);
    assert_eq!(scheme.host().window(), u64::MAX);
}

#[test]
fn timers_wait_for_the_next_call() {
    let mut scheme = Listener::new();
    scheme.capabilities.timers = true;
    scheme.timer = at(10);
    let mut host = scheme.host();
    send(&mut host, 0..1);
    assert_eq!(scheme.told(), []);
    host.on_acked(at(35), at(0), MTU, true);
    host.on_end_acks(at(35), 0, true);
    host.window();
    let late = [Told::Timer(35), Told::Timer(35), Told::Timer(35)];
    assert_eq!(scheme.told(), [&late[..], &[ack(1, &[], (false, false), Some(35), 0), Told::AppLimited]].concat());
    send(&mut host, 39..41);
    assert_eq!(scheme.told(), [Told::Idle, Told::Timer(40)]);
}

#[test]
fn intervals_count_events_and_end_with_the_next_call() {
    let mut scheme = Listener::new();
    scheme.interval = Some(TimeSpan::from_millis(10));
    let mut host = scheme.host();
    send(&mut host, 0..12);
    assert_eq!(scheme.told(), [Told::Interval { ms: (0, 10), sent: 10, acked: 0, lost: 0, samples: 0 }]);
    // An ACK that arrives at the end of an interval belongs to the next one.
    receive(&mut host, 22, 4, 11 * MTU);
    host.on_congestion(at(22), at(1), false, 2 * MTU);
    host.window();
    let first = Told::Interval { ms: (10, 22), sent: 2, acked: 0, lost: 0, samples: 0 };
    assert_eq!(scheme.told(), [first, ack(1, &[0, 1], (true, true), Some(18), 4)]);
    send(&mut host, 32..33);
    assert_eq!(scheme.told(), [Told::Interval { ms: (22, 32), sent: 0, acked: 1, lost: 2, samples: 1 }]);
}

#[test]
fn packets_without_data_leave_no_gap() {
    let scheme = Listener::new();
    let mut host = scheme.host();
    send(&mut host, 0..2);
    host.on_sent(at(2), 40);
    send(&mut host, 3..4);
    for (ms, left, largest) in [(0, 2, 0), (1, 1, 1), (3, 0, 2)] {
        receive(&mut host, 50 + ms, ms, left * MTU);
        host.window();
        assert_eq!(scheme.told(), [ack(1, &[], (false, false), Some(50), largest)]);
    }
    // A receiver that only acknowledges holds max one window of ACKs.
    (100..10_000).for_each(|ms| host.on_sent(at(ms), 40));
    host.on_acked(at(10_050), at(9_999), 40, false);
    host.on_end_acks(at(10_050), 0, false);
    host.window();
    assert!(matches!(scheme.told().last(), Some(Told::Ack { acked: (1, 40), largest: 3.., .. })));
}

#[test]
fn a_copy_is_independent() {
    let scheme = Listener::new();
    let mut host = scheme.host();
    send(&mut host, 0..2);
    let mut copy = host.clone();
    receive(&mut host, 50, 0, MTU);
    host.window();
    assert_eq!(scheme.told().len(), 1);
    copy.window();
    assert_eq!(scheme.told(), []);
}

#[test]
fn schemes_that_the_library_cannot_run_are_refused() {
    let mut scheme = Listener::new();
    assert_eq!(offer(&mut scheme), Ok(Offer::Window));
    scheme.capabilities.pacing_required = true;
    assert_eq!(offer(&mut scheme), Ok(Offer::Rate));
    let base = Capabilities::default();
    let cases = [
        Capabilities { knows_path: true, ..base },
        Capabilities { packet_events: true, ..base },
        Capabilities { ecn: Ecn::Ect1, ..base },
    ];
    let refusals = cases.map(|capabilities| {
        scheme.capabilities = capabilities;
        offer(&mut scheme).unwrap_err().needs
    });
    assert_eq!(std::collections::BTreeSet::from(refusals).len(), 3, "each has a reason of its own: {refusals:?}");
    let refused = |name: &str| SchemeFactory::new(name, &Map::new()).err().unwrap();
    let error = refused("oracle");
    assert!(error.code == "scheme-unsuitable" && error.place.contains("\"oracle\""), "{error}");
    assert_eq!(refused("learned").code, "scheme-unsuitable");
    assert_eq!(refused("copper").code, "unknown-scheme");
    let error = SchemeFactory::policy(Path::new("/nowhere")).err().unwrap();
    assert!(error.place.ends_with("/nowhere/policy.onnx"), "{error}");
}
