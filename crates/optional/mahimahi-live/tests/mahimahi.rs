//! Real mahimahi as a path, if it is installed.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::print_stderr)] // Prints skipped checks and findings.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use ccgym_mahimahi::doctor;
use ccgym_mahimahi::{match_ends, Session, SessionSpec, Shell, Watch, INGRESS};
use ccgym_net::doctor::Status;
use ccgym_net::system::Side;
use ccgym_net::Clock;
use ccgym_path::LinkEvent;
use nix::sys::signal::{kill, Signal};
use nix::unistd::{geteuid, Pid};

const PORT: u16 = 5001;
/// Variable that is set for the copy of this program that the test of SIGKILL starts.
const HOLD: &str = "CCGYM_TEST_HOLDS_A_SESSION";

fn usable() -> bool {
    let there = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(name).exists())
    };
    let usable = geteuid().is_root() && there("mm-delay") && there("mm-link");
    if !usable {
        eprintln!("SKIPPED: not root, or mahimahi is not installed");
    }
    usable
}

/// End a test that cannot run here.
macro_rules! needs_mahimahi {
    () => {
        if !usable() {
            return;
        }
    };
}

fn words(line: &str) -> Vec<String> {
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Split a line into shells, separated by `|`.
fn shells(line: &str) -> Vec<Shell> {
    line.split('|').map(words).collect()
}

/// Make a trace of 12 Mbit/s, in a folder that only root can read.
fn trace(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ccgym-test-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let path = folder.join("12mbps.trace");
    fs::write(&path, "1\n").unwrap();
    path
}

/// Send datagrams through the path, and answer each.
fn ping(session: &Session, count: u32) {
    let outside = session.outside.run(|| UdpSocket::bind(SocketAddrV4::new(session.base, PORT)).unwrap()).unwrap();
    let inside = session.inside.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    for socket in [&inside, &outside] {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    }
    let mut buffer = [0; 100];
    for i in 0..count {
        inside.send_to(&i.to_be_bytes(), (session.base, PORT)).unwrap();
        let (length, from) = outside.recv_from(&mut buffer).unwrap();
        assert_eq!(buffer[..length], i.to_be_bytes());
        outside.send_to(&buffer[..length], from).unwrap();
        inside.recv_from(&mut buffer).unwrap();
    }
}

#[test]
fn packets_are_seen_at_both_ends_and_links_log() {
    needs_mahimahi!();
    let trace = trace("ends");
    let line = format!(
        "mm-delay 10 | mm-link {0} {0} --uplink-queue=droptail --uplink-queue-args=packets=94",
        trace.display()
    );
    let mut spec = SessionSpec::new(shells(&line));
    spec.logs = true;
    let began = Instant::now();
    let session = Session::start(&spec).unwrap();
    eprintln!("two shells start within {:?}", began.elapsed());
    fs::remove_dir_all(trace.parent().unwrap()).unwrap();
    ping(&session, 1);
    let inside = Watch::start(&session.inside, INGRESS, Side::Inside, PORT, 1).unwrap();
    let outside = Watch::start(&session.outside, &session.outside_device, Side::Outside, PORT, 1).unwrap();
    let clock = Clock::start();
    ping(&session, 20);
    let end = clock.now();
    let matched = match_ends(&inside.stop().unwrap(), &outside.stop().unwrap(), &clock, end);
    assert_eq!(matched.notes, [""; 0]);
    for (log, what) in [(&matched.data, "data"), (&matched.acks, "answers")] {
        assert_eq!((log.entered.len(), log.size[0], log.flow[0]), (20, 32, 0), "{what}");
        let mut delays: Vec<f64> =
            log.entered.iter().zip(&log.left).map(|(&entered, &left)| (left as f64 - entered as f64) / 1e6).collect();
        delays.sort_by(f64::total_cmp);
        eprintln!("{what}: one-way delays in ms: {delays:.2?}");
        // Rounding adds or removes one millisecond, and waiting for the link adds one. On a busy machine many are late.
        assert!(delays[0] > 8.5 && delays[5] < 13.0, "{what}: {delays:?}");
    }
    let first = session.first_pid();
    let logs = session.stop(&clock, end).unwrap();
    assert!(fs::metadata(format!("/proc/{first}")).is_err());
    assert_eq!(logs.len(), 1);
    for log in [&logs[0].up, &logs[0].down] {
        let small = |event: &LinkEvent| matches!(event, LinkEvent::Departure(_, 36, u32::MAX, _));
        // At the edges of the run, one millisecond may be missing.
        let departures = log.iter().filter(|event| small(event)).count();
        assert!((19..=20).contains(&departures), "{departures}");
        let chances = log.iter().filter(|event| matches!(event, LinkEvent::Opportunity(..))).count();
        assert!((chances as f64 - end.as_secs_f64() * 1000.0).abs() < 60.0, "{chances} in {end:?}");
    }
}

#[test]
fn parallel_sessions_are_independent() {
    needs_mahimahi!();
    let line = shells("mm-delay 5 | mm-loss uplink 0.0");
    let sessions: Vec<Session> = thread::scope(|scope| {
        let start = || Session::start(&SessionSpec::new(line.clone())).unwrap();
        let starting: Vec<_> = (0..2).map(|_| scope.spawn(start)).collect();
        starting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(sessions[0].base, sessions[1].base, "each has its own addresses");
    thread::scope(|scope| {
        for session in &sessions {
            scope.spawn(|| ping(session, 5));
        }
    });
    for session in sessions {
        session.check().unwrap();
        assert_eq!(session.stop(&Clock::start(), Timestamp::NEVER).unwrap(), []);
    }
}

/// Return the processes in this namespace that started before `until` (clock ticks since boot): a later process may
/// be in a namespace that reuses the number of one that is gone.
fn processes_in(kind: &str, namespace: &PathBuf, until: u64) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Field 22; field 2, in parentheses, may contain spaces.
        let started = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).and_then(|t| t.parse().ok());
        let inside = fs::read_link(entry.path().join("ns").join(kind)).is_ok_and(|link| link == *namespace);
        if inside && started.is_some_and(|started: u64| started <= until) {
            found.push(fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned());
        }
    }
    found
}

fn now_in_ticks() -> u64 {
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    (uptime.split(' ').next().unwrap().parse::<f64>().unwrap() * 100.0) as u64
}

fn namespace_of(pid: i32, kind: &str) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/{kind}")).unwrap()
}

#[test]
fn nothing_remains_when_the_starter_is_killed() {
    if std::env::var_os(HOLD).is_some() {
        let session = Session::start(&SessionSpec::new(shells("mm-delay 5 | mm-delay 6"))).unwrap();
        eprintln!("HOLDS {} {}", session.first_pid(), session.inner_pid);
        thread::sleep(Duration::from_secs(60));
        return;
    }
    needs_mahimahi!();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_remains_when_the_starter_is_killed", "--nocapture"])
        .env(HOLD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.contains("HOLDS ")).unwrap();
    let numbers: Vec<i32> =
        line.split("HOLDS ").nth(1).unwrap().split_whitespace().map(|number| number.parse().unwrap()).collect();
    let (first, inner) = (numbers[0], numbers[1]);
    let processes = namespace_of(first, "pid");
    let networks = [namespace_of(first, "net"), namespace_of(inner, "net")];
    assert_ne!(networks[0], networks[1]);
    let killed = now_in_ticks();
    let running = processes_in("pid", &processes, killed);
    assert!(running.len() >= 8 && running.contains(&"dnsmasq".to_owned()), "{running:?}");
    kill(Pid::from_raw(holder.id() as i32), Signal::SIGKILL).unwrap();
    holder.wait().unwrap();
    // Devices and rules end with the last process of their network namespace, files with the mounts.
    let rest = || {
        let networks = networks.iter().flat_map(|network| processes_in("net", network, killed));
        processes_in("pid", &processes, killed).into_iter().chain(networks).collect::<Vec<_>>()
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    while !rest().is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(rest(), [""; 0]);
}

#[test]
fn failures_are_explained() {
    needs_mahimahi!();
    let trace = trace("wrong");
    fs::write(&trace, "3\n2\n").unwrap();
    let start = |line: &str| Session::start(&SessionSpec::new(shells(line))).unwrap_err();
    let error = start(&format!("mm-link {0} {0}", trace.display()));
    assert_eq!(error.code, "trace-unsorted", "{error}");
    assert!(error.place.ends_with(&format!("{}:2", trace.display())), "{error}");
    // A queue without its limit: the shell starts, and fails.
    fs::write(&trace, "1\n").unwrap();
    let error = start(&format!("mm-link {0} {0} --uplink-queue=droptail", trace.display()));
    assert_eq!(error.code, "program-failed", "{error}");
    fs::remove_dir_all(trace.parent().unwrap()).unwrap();
    let error = start("mm-link /nowhere/a /nowhere/b");
    assert!(error.place.contains("/nowhere/a"), "{error}");
    let error = start("mm-delay soon");
    assert_eq!((&*error.code, error.place.as_str()), ("program-failed", "starting mahimahi"), "{error}");
    let mut spec = SessionSpec::new(shells("mm-delay 1"));
    spec.patience = Duration::from_millis(1);
    let error = Session::start(&spec).unwrap_err();
    assert_eq!(error.code, "no-answer", "{error}");
}

#[test]
fn the_doctor_starts_three_nested_shells() {
    needs_mahimahi!();
    let findings = doctor::examine();
    let shells = findings.iter().find(|finding| finding.name == "mahimahi shells").unwrap();
    assert!(shells.status == Status::Ok && shells.found.starts_with("three nested ones start"), "{findings:?}");
}
