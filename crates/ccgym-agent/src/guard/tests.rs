//! The guard `recovery` on a path of whole round trips: what is sent in one is acknowledged in the next.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{json, Value};

use super::super::action::Actions;
use super::super::expressions::Expressions;
use super::super::memory::Memory;
use super::super::spec::RecoverySpec;
use super::super::testing::{agent, at, interval, ms, plain, with, MSS};
use super::super::{AgentSpec, Author, FlowAgent, GuardSpec, StartOverrides};
use super::round::Path;
use super::search::{Before, Search};
use ccgym_core::units::{Rate, Timestamp};

const DOWN: f32 = 0.0;
const KEEP: f32 = 1.0;
const UP: f32 = 2.0;

fn spec(target: &str, guard: &Value) -> AgentSpec {
    let operations = json!({"kind": "discrete", "operations": ["/4", "*1", "*2"]});
    let limits = json!({"rate": [1e4, 1e9], "packets_per_min_rtt": 2});
    let action = json!({"map": operations, "target": target, "limits": limits});
    let startup = json!({"kind": "window", "packets": 100});
    let clock = json!({"interval": 100_000_000});
    agent(&with(plain(), json!({"clock": clock, "action": action, "startup": startup, "guard": guard})))
}

/// A path that carries `capacity` packets per RTT of 100 ms, with a queue of the same size, and a flow on it.
struct Toy {
    flow: FlowAgent,
    capacity: f64,
    /// One packet in this many is lost; 0: none.
    lose_every: u64,
    /// Milliseconds more.
    extra: u64,
    now: u64,
    queue: f64,
    sent: u64,
    acked: u64,
}

impl Toy {
    fn new(spec: &AgentSpec, capacity: f64) -> Self {
        let mut flow = FlowAgent::new(Arc::new(spec.clone()));
        let overrides = StartOverrides { rate: Some(Rate(12_000_000)), ..StartOverrides::default() };
        flow.start(Timestamp::ZERO, MSS, if rated(spec) { overrides } else { StartOverrides::default() });
        Self { flow, capacity, lose_every: 0, extra: 0, now: 0, queue: 0.0, sent: 0, acked: 0 }
    }

    /// Run one RTT, then take an action, if there is one.
    fn step(&mut self, action: Option<f32>) {
        let control = self.flow.control(None);
        let window = (control.cwnd / MSS) as f64;
        let paced = if control.pacing_rate.0 > 0 { control.pacing_rate.0 as f64 * 0.1 / 12_000.0 } else { window };
        let sent = window.min(paced).max(1.0).floor();
        self.queue += sent;
        let through = self.queue.min(self.capacity).floor();
        self.queue -= through;
        let dropped = (self.queue - self.capacity).max(0.0).floor();
        self.queue -= dropped;
        let delay = if self.capacity > 0.0 { 100.0 * (self.queue / self.capacity) } else { 0.0 };
        let lost_of = |packets: u64| packets.checked_div(self.lose_every).unwrap_or(0);
        let unlucky = lost_of(self.sent + sent as u64) - lost_of(self.sent);
        let acked = (through as u64).saturating_sub(unlucky);
        let rtts = vec![100 + self.extra + delay as u64; (acked as usize).min(50)];
        let (from, to) = (at(self.now), at(self.now + 100));
        let mut m = interval(from, to, &rtts);
        (m.sent_packets, m.sent_bytes) = (sent as u64, sent as u64 * MSS);
        (m.acked_packets, m.acked_bytes) = (acked, acked * MSS);
        (m.lost_packets, m.lost_bytes) = (dropped as u64 + unlucky, (dropped as u64 + unlucky) * MSS);
        m.min_rtt = ms(100);
        self.flow.on_rtt(to, ms(100), ms(100));
        (self.now, self.sent, self.acked) = (self.now + 100, self.sent + sent as u64, acked);
        self.flow.observe(&m, None);
        if let Some(action) = action {
            self.flow.act(to, &[action]);
        }
    }

    /// Run an interval without acknowledgements in which the retransmission timer expires.
    fn time_out(&mut self) {
        let mut m = interval(at(self.now), at(self.now + 100), &[]);
        m.timeouts = 1;
        self.now += 100;
        self.flow.observe(&m, None);
    }

    fn steps(&mut self, n: usize, action: f32) {
        for _ in 0..n {
            self.step(Some(action));
        }
    }

    /// Run steps until `done`; returns their number.
    fn until(&mut self, most: usize, action: f32, done: impl Fn(&Self) -> bool) -> usize {
        for i in 0..=most {
            if done(self) {
                return i;
            }
            self.step(Some(action));
        }
        panic!("not within {most} round trips: {:?}", self.flow);
    }

    fn is_guarded(&self) -> bool {
        matches!(self.flow.author(), Author::Guard(_))
    }

    fn lifted(&self) -> bool {
        self.acked as f64 >= 0.5 * self.capacity
    }
}

fn rated(spec: &AgentSpec) -> bool {
    spec.action.target.has_rate()
}

fn recovery() -> Value {
    json!({"kind": "recovery"})
}

#[test]
fn from_the_floor_to_the_path_and_on_from_there() {
    for target in ["cwnd", "rate"] {
        let spec = spec(target, &recovery());
        let mut toy = Toy::new(&spec, 400.0);
        toy.steps(4, DOWN);
        let floor = if rated(&spec) { 240_000.0 } else { 2.0 };
        let value = |toy: &Toy| if rated(&spec) { toy.flow.rate() } else { toy.flow.window() };
        assert_eq!(value(&toy), floor);
        // Half a second, part of which has gone by.
        let waited = toy.until(10, KEEP, |toy| toy.flow.interventions() == 1);
        assert!((2..=3).contains(&waited), "{target}: {waited}");
        // The first window is twice the floor, and is not exceeded before something is known of it.
        assert_eq!((toy.flow.control(None).cwnd / MSS, value(&toy)), (4, 2.0 * floor));
        // The agent's actions have no effect meanwhile.
        let took = toy.until(25, DOWN, Toy::lifted);
        assert!((8..=14).contains(&took), "{target}: {took}");
        // Queue drained, searched once more, held for a second, then over: nine tenths of the path, and the agent goes on.
        toy.until(40, KEEP, |toy| !toy.is_guarded());
        toy.steps(5, KEEP);
        assert!((340..=400).contains(&toy.acked), "{target}: {}", toy.acked);
        assert_eq!((toy.flow.interventions(), toy.queue as u64), (1, 0), "{target}");
        let before = value(&toy);
        toy.step(Some(DOWN));
        assert_eq!(value(&toy), before / 4.0, "{target}");
    }
}

#[test]
fn nothing_happens_while_nothing_is_wrong() {
    for target in ["cwnd", "rate"] {
        let (guarded, plain) = (spec(target, &recovery()), spec(target, &json!({"kind": "none"})));
        let (mut a, mut b) = (Toy::new(&guarded, 400.0), Toy::new(&plain, 400.0));
        for i in 0..2000 {
            // Between a quarter and twice of the path, with a queue at times.
            let action = [UP, UP, DOWN, UP, UP, UP, DOWN, KEEP][i % 8];
            a.step(Some(action));
            b.step(Some(action));
            assert_eq!(a.flow.control(None), b.flow.control(None), "{target} {i}");
        }
        assert_eq!(a.flow.interventions(), 0);
    }
}

#[test]
fn where_the_low_rate_is_right_the_waits_double() {
    // Three packets per round trip: twice the floor is more than the path carries.
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 3.0);
    let mut found = Vec::new();
    for i in 0..1500 {
        let before = toy.flow.interventions();
        toy.step(Some(DOWN));
        if toy.flow.interventions() > before {
            found.push(i);
        }
    }
    let gaps: Vec<i32> = found.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.windows(2).all(|w| w[1] >= w[0]), "{gaps:?}");
    // At the end sixteen seconds, and a few round trips to search in.
    assert!(gaps.last().is_some_and(|gap| (160..180).contains(gap)), "{gaps:?}");
    assert!(toy.flow.window() <= 4.0);
}

#[test]
fn low_is_also_a_small_part_of_what_the_path_carried_lately() {
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.until(10, UP, Toy::lifted);
    toy.steps(2, KEEP);
    toy.steps(2, DOWN);
    // 25 packets of 400 that it has carried.
    assert_eq!(toy.flow.window(), 25.0);
    toy.until(12, KEEP, |toy| toy.flow.interventions() == 1);
    toy.until(25, KEEP, Toy::lifted);
    // Also on a path that has really become slow, but not forever.
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.until(10, UP, Toy::lifted);
    toy.steps(2, DOWN);
    toy.capacity = 30.0;
    toy.steps(700, KEEP);
    let tried = toy.flow.interventions();
    assert!((3..=8).contains(&tried), "{tried}");
    toy.steps(1000, KEEP);
    assert_eq!((toy.flow.interventions(), toy.flow.window()), (tried, 25.0));
}

#[test]
fn four_low_rounds_are_enough_and_none_less_where_patience_is_short() {
    let mut toy = Toy::new(&spec("cwnd", &json!({"kind": "recovery", "patience": 100_000_000})), 400.0);
    toy.until(10, UP, Toy::lifted);
    toy.steps(2, KEEP);
    toy.steps(2, DOWN);
    assert_eq!((toy.flow.window(), toy.flow.interventions()), (25.0, 0));
    assert_eq!(toy.until(12, KEEP, |toy| toy.flow.interventions() == 1), 4);
}

#[test]
fn a_path_that_is_not_clear_is_searched_late() {
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(4, DOWN);
    toy.lose_every = 3;
    assert!((155..175).contains(&toy.until(200, KEEP, |toy| toy.flow.interventions() == 1)));
    // The path became longer: to this flow that looks like a queue.
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(4, DOWN);
    toy.extra = 100;
    assert!((75..175).contains(&toy.until(200, KEEP, |toy| toy.flow.interventions() == 1)));
    toy.until(60, KEEP, Toy::lifted);
}

#[test]
fn who_falls_back_at_once_is_held_for_longer() {
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(4, DOWN);
    let mut held = Vec::new();
    for _ in 0..6 {
        toy.until(60, DOWN, |toy| toy.is_guarded());
        held.push(toy.until(300, DOWN, |toy| !toy.is_guarded()));
    }
    assert!(held.windows(2).all(|w| w[1] >= w[0]) && held[5] > 150, "{held:?}");
}

#[test]
fn the_agent_gives_nothing_readable() {
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(1, DOWN);
    toy.steps(20, f32::NAN);
    assert_eq!(toy.flow.rejected_actions(), 20);
    toy.until(20, f32::NAN, Toy::lifted);
    // An agent without decisions to make does not count as silent.
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(1, DOWN);
    for _ in 0..200 {
        toy.step(None);
    }
    assert_eq!(toy.flow.interventions(), 0);
}

#[test]
fn silence_is_not_time_and_a_timeout_ends_a_search() {
    let mut toy = Toy::new(&spec("cwnd", &recovery()), 400.0);
    toy.steps(4, DOWN);
    toy.capacity = 0.0;
    toy.steps(300, DOWN);
    assert_eq!(toy.flow.interventions(), 0);
    (toy.capacity, toy.queue) = (400.0, 0.0);
    toy.until(20, DOWN, |toy| toy.is_guarded());
    toy.time_out();
    assert_eq!((toy.is_guarded(), toy.flow.window()), (false, 2.0));
    toy.until(12, DOWN, |toy| toy.flow.interventions() == 2);
}

#[test]
fn declarations() {
    let default: GuardSpec = serde_json::from_value(recovery()).expect("a guard");
    let text = serde_json::to_string(&default).expect("serializes");
    assert_eq!(serde_json::from_str::<GuardSpec>(&text).expect("reads its own writing"), default);
    let words = spec("cwnd", &recovery()).describe();
    assert!(words["guard"].as_str().expect("text").contains("0.125 of the max delivery rate of the latest 60 s"));
}

/// Events of a flow.
#[derive(Clone, Debug)]
enum Event {
    Action(f32),
    Silence(u8),
    Timeout,
    Capacity(f64),
    Loss(u64),
    Longer(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => prop_oneof![Just(DOWN), Just(KEEP), Just(UP), Just(f32::NAN)].prop_map(Event::Action),
        1 => (1u8..20).prop_map(Event::Silence),
        1 => Just(Event::Timeout),
        1 => (1.0f64..2000.0).prop_map(Event::Capacity),
        1 => (0u64..50).prop_map(Event::Loss),
        1 => (0u64..300).prop_map(Event::Longer),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_happened_a_flow_at_its_floor_is_lifted(
        events in prop::collection::vec(event(), 0..200),
        target in prop_oneof![Just("cwnd"), Just("rate"), Just("both")],
        capacity in 50.0f64..2000.0,
    ) {
        let spec = spec(target, &recovery());
        let spec = if target == "both" {
            AgentSpec { startup: serde_json::from_value(json!({"kind": "rate", "rate": 12e6})).expect("a start"), ..spec }
        } else {
            spec
        };
        let limits = spec.action.limits;
        let mut toy = Toy::new(&spec, capacity);
        for event in events {
            match event {
                Event::Action(action) => toy.step(Some(action)),
                Event::Silence(n) => {
                    let usual = std::mem::take(&mut toy.capacity);
                    toy.steps(usize::from(n), DOWN);
                    (toy.capacity, toy.queue) = (usual, 0.0);
                }
                Event::Timeout => toy.time_out(),
                Event::Capacity(packets) => toy.capacity = packets,
                Event::Loss(every) => toy.lose_every = every,
                Event::Longer(extra) => toy.extra = extra,
            }
            let control = toy.flow.control(None);
            let (rate, window) = (toy.flow.rate(), toy.flow.window());
            prop_assert!((limits.rate[0]..=limits.rate[1]).contains(&rate), "{rate}");
            prop_assert!((limits.window[0]..=limits.window[1]).contains(&window), "{window}");
            prop_assert!(control.cwnd >= 2 * MSS);
            prop_assert!(control.pacing_rate.0 as f64 <= 2.0 * limits.rate[1]);
        }
        // The path is clear again, the agent at its floor, where it stays.
        (toy.capacity, toy.queue, toy.lose_every, toy.extra) = (capacity, 0.0, 0, 0);
        let (window, rate) = (target != "rate", target != "cwnd");
        let at_floor = |toy: &Toy| (window && toy.flow.window() <= 2.0) || (rate && toy.flow.rate() <= 240_000.0);
        let low = |toy: &Toy| !toy.is_guarded() && at_floor(toy);
        toy.until(500, DOWN, low);
        toy.step(Some(KEEP));
        // At most the max wait, and a search of ten doublings.
        toy.until(165 + 60, KEEP, Toy::lifted);
        // A hold that began on another path ends where the flow was; the next search then finds this one.
        toy.until(300, KEEP, |toy| !toy.is_guarded() && toy.lifted());
        toy.steps(20, KEEP);
        prop_assert!(toy.lifted(), "{} of {capacity}", toy.acked);
    }
}

/// Return the windows of a search in packets, from 20, as rounds of 100 ms with these RTTs in ms end.
fn windows(search: &mut Search, rounds: &[&[u64]]) -> Vec<f64> {
    let (any, spec) = (spec("rate", &recovery()), RecoverySpec::default());
    let actions = Actions::new(&any.action, &mut Expressions::default()).expect("valid actions");
    let (mut path, mut memory) = (Path::new(60.0), Memory::new(MSS));
    let mut now = 10_000;
    let mut step = |rtts: &&[u64]| {
        let m = interval(at(now), at(now + 100), rtts);
        now += 100;
        memory.digest(&m, true);
        let round = path.add(&m, &memory);
        search.on_interval(&spec, &m, round.as_ref(), &actions, &memory);
        search.window
    };
    rounds.iter().map(&mut step).collect()
}

#[test]
fn a_search_doubles_and_a_second_one_goes_on_by_a_quarter() {
    let before = Before { values: [1e5, 2.0], delivered: 1e5, loss: 0.0 };
    let clear: &[u64] = &[100; 20];
    let mut search = Search::new(20.0, 0.1, before);
    assert_eq!(windows(&mut search, &[clear, clear, &[100; 40], &[100; 80]]), [20.0, 40.0, 80.0, 160.0]);
    let spec = RecoverySpec { lift: 1.0, ..RecoverySpec::default() };
    let mut again = search.found(&spec).expect("eighty times as much").search(MSS as f64);
    assert_eq!(again.window, 80.0);
    assert_eq!(windows(&mut again, &[&[100; 80], &[100; 80], &[100; 100]]), [80.0, 100.0, 125.0]);
}

#[test]
fn a_queue_is_seen_while_it_grows() {
    let before = Before { values: [1e5, 2.0], delivered: 1e5, loss: 0.0 };
    let ramp = |end: u64| -> Vec<u64> { (0..40).map(|i| 100 + (end - 100) * i / 39).collect() };
    let (short, long) = (ramp(130), ramp(140));
    let clear: &[u64] = &[100; 20];
    // Its min delay is that without a queue; the mean of its second half is 123 or 130 ms.
    assert_eq!(
        windows(&mut Search::new(20.0, 0.1, before), &[clear, clear, &short, &short]),
        [20.0, 40.0, 80.0, 120.0]
    );
    assert_eq!(windows(&mut Search::new(20.0, 0.1, before), &[clear, clear, &long, &long]), [20.0, 40.0, 40.0, 40.0]);
}
