//! Formulas of the state machine, and its transitions with hand-made events, on a path of 12 Mbit/s and 40 ms (40
//! packets). Its behavior on paths is in `crates/ccgym-sim/tests/behavior/expectations_bbr3.rs`.

use std::collections::BTreeSet;

use ccgym_core::{CongestionControl, Rate, Rng, TimeSpan, Timestamp};
use serde_json::json;

use super::congestion::UNBOUNDED;
use super::state::State;
use super::{Bbr3, Bbr3Parameters, ENTRY};
use crate::registry::Parameters;
use crate::testing::{context, MockTransport, TestEvent, MSS};

const RTT: TimeSpan = TimeSpan::from_millis(40);
/// Time of one packet at the bottleneck.
const SERVICE: TimeSpan = TimeSpan::from_millis(1);
const STATES: [State; 7] = [
    State::Startup,
    State::Drain,
    State::ProbeDown,
    State::ProbeCruise,
    State::ProbeRefill,
    State::ProbeUp,
    State::ProbeRtt,
];

/// Make a flow that knows 12 Mbit/s and 40 ms, a BDP of 40 packets, and has filled its pipe.
fn model() -> Bbr3 {
    let parameters = Parameters::resolve(&ENTRY.info, &serde_json::Map::new()).unwrap();
    let mut flow = Bbr3::new(Bbr3Parameters::from(&parameters));
    flow.init(context());
    flow.on_handshake(Timestamp::ZERO, RTT);
    flow.max_bandwidth.update(0, Rate(12_000_000), false);
    flow.bandwidth = Rate(12_000_000);
    flow.full_pipe_once = true;
    flow.cwnd = 80 * MSS;
    flow
}

fn host() -> MockTransport {
    MockTransport::of("bbr3", &json!({}))
}

/// Acknowledge at the path's rate until `state` is reached. The host ignores pacing: the test empties queues.
fn until(h: &mut MockTransport, state: State) {
    let start = h.now;
    while h.scheme.state() != state.name() {
        h.advance(SERVICE);
        let queued = h.packets_in_flight().saturating_sub(40);
        if h.observable("pacing_gain") < 1.0 && queued > 1 {
            h.play(TestEvent { acked: queued, ..TestEvent::default() });
        } else {
            h.ack_after(RTT);
        }
        assert!(h.now.since(start).as_secs_f64() < 12.0, "{state:?} must come: {:?}", h.scheme.observables());
    }
}

/// At random events the states of both versions follow their diagrams: `transition_to` asserts that.
#[test]
fn states_follow_each_other_as_allowed() {
    for (scheme, states) in [("bbr", 4), ("bbr3", STATES.len())] {
        let mut seen = BTreeSet::new();
        for seed in 0..40 {
            let mut rng = Rng::stream(seed, "transitions", 0);
            let mut h = MockTransport::of(scheme, &json!({}));
            let ordinary = rng.bernoulli(0.3);
            for _ in 0..15_000 {
                h.advance(SERVICE);
                match if ordinary { 99 } else { rng.below(400) } {
                    0 => h.time_out(),
                    1 => h.spurious(),
                    2 => h.idle(RTT),
                    3 => h.app_limit(),
                    4..=30 => h.lose(),
                    _ if h.observable("pacing_gain") < 1.0 && h.packets_in_flight() > 40 => h.ack(20),
                    _ => h.ack_after(RTT),
                }
                seen.insert(h.scheme.state());
            }
        }
        assert_eq!(seen.len(), states, "{scheme}: {seen:?}");
    }
}

#[test]
fn a_transition_that_is_not_in_the_draft_panics() {
    for state in [State::ProbeUp, State::Drain, State::ProbeRefill] {
        let mut flow = model();
        flow.state = State::ProbeRtt;
        let went = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| flow.transition_to(state)));
        assert!(went.is_err(), "{state:?}");
    }
}

#[test]
fn gains_of_each_state() {
    let mut flow = model();
    let expected = [(2.77, 2.0), (0.5, 2.0), (0.9, 2.0), (1.0, 2.0), (1.0, 2.0), (1.25, 2.25), (1.0, 0.5)];
    for (state, gains) in STATES.into_iter().zip(expected) {
        flow.state = state;
        assert_eq!(flow.gains(), gains, "{state:?}");
        flow.pace(gains.0);
        assert_eq!(flow.pacing.rate(), Rate(12_000_000).scaled(gains.0 * 0.99), "{state:?}");
    }
}

#[test]
fn window_caps_of_each_state() {
    // With a long-term bound of 50 packets and a short-term bound of 60 or 45: the cap in packets.
    let expected = [
        (State::Startup, 60, 45),
        (State::Drain, 60, 45),
        (State::ProbeDown, 50, 45),
        (State::ProbeCruise, 42, 42), // Less 15 %, rounded down to bytes.
        (State::ProbeRefill, 50, 45),
        (State::ProbeUp, 50, 45),
        (State::ProbeRtt, 20, 20), // Half a product is less.
    ];
    for (state, loose, tight) in expected {
        for (short_term, cap) in [(60, loose), (45, tight)] {
            let mut host = MockTransport::of("bbr3", &json!({}));
            host.advance(RTT);
            let mut flow = model();
            flow.state = state;
            flow.long_term.bound = 50 * MSS;
            flow.short_term.in_flight = short_term * MSS;
            // An acknowledgement that keeps the state.
            flow.set_cwnd(&acknowledgement(&host));
            assert_eq!(flow.cwnd / MSS, cap, "{state:?}, {short_term}");
        }
    }
}

/// Return an acknowledgement of one packet.
fn acknowledgement(host: &MockTransport) -> ccgym_core::AckEvent<'_> {
    let of = crate::testing::acknowledgement(host.now, 1, &host.rtt);
    ccgym_core::AckEvent { prior_in_flight: 40 * MSS, in_flight: 39 * MSS, delivered: 1_000 * MSS, ..of }
}

#[test]
fn inflight_targets() {
    let mut flow = model();
    flow.pace(1.0);
    assert_eq!(flow.products(1.0), 40 * MSS);
    assert_eq!(flow.with_budget(40 * MSS), 40 * MSS);
    assert_eq!(flow.with_budget(MSS), 6 * MSS, "three quanta of two packets");
    flow.state = State::ProbeUp;
    assert_eq!(flow.with_budget(40 * MSS), 42 * MSS);
    assert_eq!(flow.probe_rtt_window(), 20 * MSS);
    flow.bandwidth = Rate(1_200_000);
    assert_eq!(flow.probe_rtt_window(), 4 * MSS, "four packets at least");
    flow.cwnd = 3 * MSS;
    assert_eq!(flow.target_in_flight(), 3 * MSS, "congestion cut the window below a product");
    assert_eq!(flow.headroom_bound(), UNBOUNDED);
}

#[test]
fn the_wait_before_a_probe_is_two_to_three_seconds_and_none_or_one_round() {
    let mut flow = model();
    let (mut waits, mut rounds) = (Vec::new(), [0; 2]);
    for _ in 0..200 {
        flow.state = State::ProbeUp;
        flow.start_down(Timestamp::ZERO);
        waits.push(flow.probe_wait.as_secs_f64());
        rounds[flow.rounds_since_probe as usize] += 1;
    }
    assert!(waits.iter().all(|wait| (2.0..=3.0).contains(wait)));
    let mean = waits.iter().sum::<f64>() / 200.0;
    assert!((mean - 2.5).abs() < 0.1, "{mean}");
    assert!(rounds.iter().all(|&n| n > 70), "{rounds:?}");
}

#[test]
fn a_probe_that_was_too_high_sets_the_bound() {
    // In flight at the loss, whether application-limited, and the bound in packets.
    for (in_flight, app_limited, bound) in [(50, false, Some(50)), (10, false, Some(28)), (50, true, None)] {
        let mut flow = model();
        flow.state = State::ProbeUp;
        flow.on_probe_too_high(Timestamp::ZERO, in_flight * MSS, app_limited);
        assert_eq!(flow.state, State::ProbeDown);
        assert_eq!(flow.long_term.bound, bound.map_or(UNBOUNDED, |packets| packets * MSS));
        assert_eq!(flow.undo.state, Some(State::ProbeUp));
    }
    // In REFILL the bound is set, but the state stays.
    let mut flow = model();
    flow.state = State::ProbeRefill;
    flow.on_probe_too_high(Timestamp::ZERO, 50 * MSS, false);
    assert_eq!((flow.state, flow.long_term.bound), (State::ProbeRefill, 50 * MSS));
}

#[test]
fn a_spurious_episode_is_undone() {
    // State before the losses, current state, and the state after.
    for (ended, now, after) in [
        (Some(State::Startup), State::Drain, State::Startup),
        (Some(State::Startup), State::ProbeRtt, State::ProbeRtt),
        (Some(State::ProbeUp), State::ProbeDown, State::ProbeRefill),
        (Some(State::ProbeUp), State::ProbeRtt, State::ProbeRtt),
        (None, State::ProbeCruise, State::ProbeCruise),
    ] {
        let mut flow = model();
        flow.save_for_undo();
        flow.state = now;
        flow.undo.state = ended;
        flow.cwnd = 30 * MSS;
        flow.long_term.bound = 30 * MSS;
        flow.short_term.tighten(Rate(12_000_000), 80 * MSS, 0.7);
        flow.undo_losses();
        assert_eq!(flow.state, after);
        assert_eq!(flow.cwnd, 80 * MSS);
        assert_eq!((flow.long_term.bound, flow.short_term.in_flight), (UNBOUNDED, UNBOUNDED));
        assert_eq!(flow.full_pipe_once, ended != Some(State::Startup));
        assert_eq!(flow.undo.state, None);
    }
}

#[test]
fn paces_the_first_window_over_a_millisecond_then_over_the_round_trip() {
    let mut h = host();
    assert_eq!(h.scheme.control().pacing_rate, Rate::from_mbps(2.77 * 120.0));
    h.ack_after(RTT);
    assert_eq!(h.scheme.control().pacing_rate, Rate::from_mbps(2.77 * 3.0));
}

#[test]
fn the_cycle_in_order() {
    let mut h = host();
    let mut seen = Vec::new();
    for state in [State::Drain, State::ProbeCruise, State::ProbeRefill, State::ProbeUp, State::ProbeCruise] {
        until(&mut h, state);
        seen.push(h.now);
    }
    // The wait began with the PROBE_DOWN, which ended at once; rounds are short without pacing.
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]));
    // PROBE_REFILL lasts one round.
    let refill = seen[3].since(seen[2]).as_millis_f64();
    assert!((20.0..140.0).contains(&refill), "{refill}");
}

#[test]
fn loss_outside_a_probe_tightens_the_short_term_bounds_until_the_next() {
    let mut h = host();
    until(&mut h, State::ProbeCruise);
    h.ack_round(RTT, SERVICE);
    assert_eq!(h.scheme.state(), State::ProbeCruise.name());
    assert!(h.observable("bw_shortterm_mbps").is_nan());
    h.lose();
    assert!(h.observable("bw_shortterm_mbps").is_nan(), "not before the round is over");
    h.ack_round(RTT, SERVICE);
    h.ack_round(RTT, SERVICE);
    let bound = h.observable("bw_shortterm_mbps");
    let most = h.observable("max_bw_mbps");
    assert!(bound >= 0.7 * most && bound <= most, "{bound} {most}");
    assert!(!h.observable("inflight_shortterm_packets").is_nan());
    until(&mut h, State::ProbeRefill);
    assert!(h.observable("bw_shortterm_mbps").is_nan());
}

#[test]
fn timeout_leaves_one_packet_and_the_window_returns() {
    let mut h = host();
    until(&mut h, State::ProbeCruise);
    h.ack_round(RTT, SERVICE);
    let before = h.window();
    h.time_out();
    assert_eq!(h.window(), 1.0);
    h.ack_after(RTT);
    assert_eq!(h.window(), 4.0, "the minimum");
    while h.in_recovery() {
        h.ack_after(RTT);
    }
    h.ack_after(RTT);
    assert!(h.window() > 0.65 * before, "{} {before}", h.window());
}

#[test]
fn idle_restart_paces_at_the_bandwidth_and_skips_probe_rtt() {
    let mut h = host();
    until(&mut h, State::ProbeCruise);
    h.ack_round(RTT, SERVICE);
    h.idle(TimeSpan::from_millis(12_000));
    let rate = h.scheme.control().pacing_rate.as_mbps();
    assert!((rate - 0.99 * h.observable("max_bw_mbps")).abs() < 1e-3, "{rate}");
    assert_eq!(h.observable("idle_restart"), 1.0);
    h.ack_after(RTT);
    assert_ne!(h.scheme.state(), State::ProbeRtt.name());
    assert_eq!(h.observable("idle_restart"), 0.0);
}
