//! Nothing remains after the end of a shell, by any cause.
#![allow(clippy::print_stderr)]

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{all_tests, tell, Job, Ran, Sandbox};
use ccgym_core::rng::Rng;
use nix::sys::signal::Signal;
use serde_json::json;

/// Script inside, which leaves children, a daemon in a session of its own, and a process that ignores SIGTERM.
const BUSY: &str = "readlink /proc/self/ns/net > netns; setsid sleep 300 & (trap '' TERM INT HUP; sleep 301) & \
                    setsid sh -c 'trap \"\" TERM; sleep 302 & wait' & echo > ready";

fn job() -> Job {
    let job = Job::new().delay(2).link("12mbps.trace", false).log("uplink", "up.log");
    job.set("datalink_log", "t_datalink.log").set("acklink_log", "t_acklink.log")
}

fn cycle(place: &Sandbox, number: u64) {
    let script = format!("{BUSY}; exit {}", number % 3);
    let ran = place.run(job().script(&script));
    assert_eq!(ran.status, Some((number % 3) as i32), "cycle {number}: {}", ran.err);
    assert_namespace_gone(place, number);
    place.assert_clean(&["netns", "ready", "t_acklink.log", "t_datalink.log", "up.log"], "a shell that ended");
}

/// Check that no process is in the namespace of the inside, and no descriptor holds it.
fn assert_namespace_gone(place: &Sandbox, number: u64) {
    let name = fs::read_to_string(place.folder.join("netns")).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        return;
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let is_it = |path: &std::path::Path| fs::read_link(path).is_ok_and(|target| target.to_str() == Some(name));
        let holders: Vec<_> = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|process| {
                let mut held = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
                is_it(&process.join("ns/net")) || held.any(|fd| is_it(&fd.path()))
            })
            .collect();
        if holders.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "cycle {number}: {name} is still held by {holders:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Start a shell, and kill it by SIGKILL after `wait`.
fn kill(place: &Sandbox, wait: Duration, running: usize) {
    for name in ["ready", "netns"] {
        let _ = fs::remove_file(place.folder.join(name));
    }
    let outside = json!({"command": "trap '' TERM; setsid sleep 303 & sleep 304"});
    let job = job().script(&format!("{BUSY}; sleep 305")).set("outside", outside);
    let child = place.spawn(place.shell(job));
    std::thread::sleep(wait);
    let processes = place.processes();
    assert!(processes.len() >= running, "{processes:?}");
    tell(child.id(), Signal::SIGKILL);
    assert_eq!(Ran::of(child).status, None);
    assert_namespace_gone(place, wait.as_millis() as u64);
    for name in ["ready", "netns"] {
        let _ = fs::remove_file(place.folder.join(name));
    }
    place.assert_clean(&[], &format!("SIGKILL after {wait:?}"));
}

#[test]
fn shells_leave_nothing_behind() {
    let Some(place) = Sandbox::open() else { return };
    for number in 0..if all_tests() { 200 } else { 20 } {
        cycle(&place, number);
    }
}

#[test]
fn killed_shells_leave_nothing_behind() {
    let Some(place) = Sandbox::open() else { return };
    let mut random = Rng::stream(0xc1ea, "kill", 0);
    for _ in 0..if all_tests() { 20 } else { 5 } {
        kill(&place, Duration::from_micros(random.below(400_000)), 0);
    }
    // Also kill it when all its processes run.
    kill(&place, Duration::from_millis(700), 8);
}

#[test]
fn killing_the_supervisor_inside_ends_the_shell_with_an_explanation() {
    let Some(place) = Sandbox::open() else { return };
    let child = place.spawn(place.shell(Job::new().delay(1).script("echo > ready; sleep 300")));
    place.wait_for("ready");
    // It is a child of the thread that started it, which is unknown.
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    let init: String = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap()).collect();
    tell(init.trim().parse().unwrap(), Signal::SIGKILL);
    let ran = Ran::of(child);
    ran.refused("run-failed", "running the command");
    place.assert_clean(&["ready"], "a killed supervisor");
}
