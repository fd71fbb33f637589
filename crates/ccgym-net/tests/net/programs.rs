//! External programs as flows: start, measurement, and end together with all their processes.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::Child;

use crate::common::programs::{becoming, PACKET};
use crate::common::{all_tests, root, tell, Ran, Sandbox};
use crate::PROGRAM;
use ccgym_net::error::Error;
use ccgym_net::program::End;
use ccgym_net::run::RunResult;
use nix::sys::signal::Signal;
use serde_json::{json, Value};

// --- Runs ----------------------------------------------------------------------------------------------------------

/// Make the plan of one flow over a delay of 5 ms. Both ends are scripts.
fn plan(place: &Sandbox, listens: &str, sender: &str, receiver: &str) -> Value {
    let script = |text: &str| json!(["/bin/sh", "-c", text]);
    let delay = json!([{"kind": "delay", "delay": 5_000_000}]);
    json!({
        "spec": {
            "duration": 1_500_000_000u64, "uplink": delay, "downlink": delay,
            "record": {"packets": true, "series": 100_000_000},
            "flows": [{"scheme": "program:test", "start": 200_000_000, "stop": 1_200_000_000}],
        },
        "programs": {"0": {"listens": listens, "sender": script(sender), "receiver": script(receiver)}},
        "result": place.folder.join("result"),
    })
}

fn start(place: &Sandbox, plan: &Value) -> Child {
    place.spawn(place.plan(&[PROGRAM], plan))
}

fn run(place: &Sandbox, plan: &Value) -> Ran {
    Ran::of(start(place, plan))
}

fn result(place: &Sandbox, plan: &Value) -> RunResult {
    run(place, plan).ok();
    let result = RunResult::read(&place.folder.join("result")).unwrap();
    place.assert_clean(&["result"], "a run");
    result
}

/// Return the error of a run, which leaves nothing behind.
fn failure(sender: &str, receiver: &str) -> Error {
    let place = Sandbox::new();
    let ran = run(&place, &plan(&place, "receiver", sender, receiver));
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    place.assert_clean(&[], "a run that failed");
    let error: Error = serde_json::from_str(ran.err.trim()).unwrap_or_else(|_| panic!("{}", ran.err));
    assert!([&error.place, &error.expected, &error.hint].iter().all(|part| !part.is_empty()), "{error:?}");
    error
}

fn said(result: &RunResult, end: End) -> &str {
    &result.report.programs.iter().find(|log| log.end == end).unwrap().text
}

// --- Data ----------------------------------------------------------------------------------------------------------

fn check_measured(result: &RunResult) {
    let log = result.outcome.data.as_ref().unwrap();
    let packets: Vec<_> = (0..log.flow.len()).filter(|&i| log.size[i] == PACKET).collect();
    // In one second, one packet per millisecond, less the time to start.
    assert!(packets.len() > 200 && packets.len() <= 1001, "{}", packets.len());
    for &i in &packets {
        assert_eq!(log.flow[i], 0);
        assert!(log.entered[i] >= 200_000_000 && log.entered[i] < 1_400_000_000, "{}", log.entered[i]);
        assert!(log.left[i] - log.entered[i] >= 5_000_000);
    }
    let flow = &result.outcome.flows[0];
    assert_eq!(flow.sender.sent_packets, log.flow.len() as u64);
    assert_eq!(flow.received.bytes, log.size.iter().map(|&size| u64::from(size)).sum::<u64>());
    let series = &result.outcome.series.as_ref().unwrap().flows[0];
    assert_eq!((series.sent_bytes.len(), series.sent_bytes[0]), (15, 0));
    assert_eq!(series.received_bytes.last(), Some(&flow.received.bytes));
    assert_eq!(series.sent_packets.last(), Some(&flow.sender.sent_packets));
}

#[test]
fn a_flow_is_measured_on_the_path() {
    let Some(place) = Sandbox::open() else { return };
    let result = result(&place, &plan(&place, "receiver", &becoming("source"), &becoming("sink")));
    check_measured(&result);
    assert!(said(&result, End::Sender).contains("sending"));
    assert!(said(&result, End::Receiver).contains("listening"));
}

#[test]
fn the_sender_may_listen() {
    let Some(place) = Sandbox::open() else { return };
    check_measured(&result(
        &place,
        &plan(&place, "sender", &becoming("source_that_listens"), &becoming("sink_that_asks")),
    ));
}

#[test]
fn packets_are_kept_on_request_only() {
    let Some(place) = Sandbox::open() else { return };
    let mut plan = plan(&place, "receiver", &becoming("source"), &becoming("sink"));
    plan["spec"]["record"]["packets"] = false.into();
    let result = result(&place, &plan);
    assert!(result.outcome.data.is_none() && result.outcome.acks.is_none());
    assert!(result.outcome.flows[0].received.packets > 200);
}

// --- End -----------------------------------------------------------------------------------------------------------

#[test]
fn a_program_is_asked_to_end_with_its_group() {
    let Some(place) = Sandbox::open() else { return };
    let child = "(trap 'echo child asked; exit' TERM; while :; do sleep 0.01; done) &";
    let sender = format!("trap 'echo parent asked; exit' TERM; {child} ({}) & wait", becoming("source"));
    let result = result(&place, &plan(&place, "receiver", &sender, &becoming("sink")));
    let said = said(&result, End::Sender);
    assert!(said.contains("parent asked"), "{said}");
    assert!(said.contains("child asked"), "{said}");
}

#[test]
fn processes_that_ignore_the_request_are_killed() {
    let Some(place) = Sandbox::open() else { return };
    let stubborn = "trap '' TERM HUP; setsid sleep 300 & (setsid sh -c \"trap '' TERM; sleep 301\" &)";
    let both = |name| format!("{stubborn}; ({}) & wait", becoming(name));
    // `result` checks that nothing is left.
    let result = result(&place, &plan(&place, "receiver", &both("source"), &both("sink")));
    assert!(result.outcome.flows[0].received.packets > 200);
}

#[test]
fn a_killed_run_leaves_no_processes() {
    let Some(place) = Sandbox::open() else { return };
    let sender = format!("trap '' TERM; setsid sleep 300 & echo > ready; ({}) & wait", becoming("source"));
    let child = start(&place, &plan(&place, "receiver", &sender, &becoming("sink")));
    place.wait_for("ready");
    tell(child.id(), Signal::SIGKILL);
    assert_eq!(Ran::of(child).status, None);
    place.assert_clean(&["ready"], "SIGKILL");
}

#[test]
fn a_flood_of_output_uses_bounded_memory() {
    let Some(place) = Sandbox::open() else { return };
    let sender = format!("echo first words; yes flood & ({}) & wait", becoming("source"));
    let result = result(&place, &plan(&place, "receiver", &sender, &becoming("sink")));
    let said = said(&result, End::Sender);
    assert!(said.starts_with("first words\n") && said.contains("bytes left out"), "{}", said.len());
    assert!(said.len() < 70_000, "{}", said.len());
    assert!(result.outcome.flows[0].received.packets > 100);
}

// --- Failures ------------------------------------------------------------------------------------------------------

#[test]
fn failures_are_explained() {
    if !root() {
        return;
    }
    let (source, sink) = (becoming("source"), becoming("sink"));
    let quits = failure("echo no such host; exit 3", &sink);
    assert!(quits.code == "program-failed" && quits.place.contains("flow 0, the sender"), "{quits}");
    assert!(quits.found.contains("no such host"), "{quits}");
    let deaf = failure(&source, "echo usage >&2; exit 1");
    assert!(deaf.code == "program-failed" && deaf.found.contains("usage"), "{deaf}");
    if !all_tests() {
        return;
    }
    let silent = failure("sleep 100", &sink);
    assert!(silent.code == "no-answer" && silent.found.contains("listening"), "{silent}");
    let hangs = failure(&source, "echo still at it; sleep 100");
    assert!(hangs.code == "program-failed" && hangs.found.contains("still at it"), "{hangs}");
}

#[test]
fn a_missing_program_is_named() {
    let Some(place) = Sandbox::open() else { return };
    let mut plan = plan(&place, "receiver", "", &becoming("sink"));
    plan["programs"]["0"]["sender"] = json!(["/nowhere/program", "{port}"]);
    let ran = run(&place, &plan);
    ran.refused("program-unstartable", "/nowhere/program");
    place.assert_clean(&[], "a program that is not there");
}

#[test]
fn a_plan_needs_programs_and_no_sources() {
    let Some(place) = Sandbox::open() else { return };
    let whole = plan(&place, "receiver", "", "");
    let mut without = whole.clone();
    without["programs"] = json!({});
    let ran = run(&place, &without);
    ran.refused("argument-missing", "flows[0]");
    let mut limited = whole;
    limited["spec"]["flows"][0]["source"] = json!({"kind": "bytes", "bytes": 1000});
    let ran = run(&place, &limited);
    ran.refused("scheme-unsuitable", "flows[0]");
}
