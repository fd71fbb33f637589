//! Kernel TCP over an emulated path.
#![allow(clippy::print_stderr)] // Prints skipped checks and findings.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{delay, link, loss, root, spec};
use ccgym_core::{Rate, TimeSpan, Timestamp};
use ccgym_net::shell::PathEmulator;
use ccgym_net::system::{Endpoints, Placement};
use ccgym_net::tcp::{available, run_receiver, run_sender, ReceiverResult, ReceiverTask, SenderResult, TcpSenderTask};
use ccgym_net::{Clock, Error};
use ccgym_path::ElementSpec;
use ccgym_run::spec::SourceSpec;

const STEP: TimeSpan = TimeSpan::from_millis(100);

/// Make a path with these elements from the inside, and this delay in each direction.
fn path(delay_ms: u64, uplink: &[ElementSpec]) -> Option<(Endpoints, PathEmulator)> {
    let ends = root().then(|| Endpoints::open(Placement::Isolated).unwrap())?;
    let delay = delay(1000 * delay_ms);
    let up = [uplink, std::slice::from_ref(&delay)].concat();
    let emulator = PathEmulator::start(&ends, spec(Clock::start(), &up, &[delay])).unwrap();
    Some((ends, emulator))
}

fn task(algorithm: &str, port: u16, seconds: f64) -> TcpSenderTask {
    TcpSenderTask {
        flow: 0,
        algorithm: algorithm.into(),
        peer: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        source: SourceSpec::Greedy,
        seed: 1,
        mss: 1448,
        header: 52,
        clock: Clock::starting_in(Duration::from_millis(20)),
        start: Timestamp::from_millis(50),
        stop: Timestamp((seconds * 1e9) as u64),
        step: STEP,
        halt: Arc::new(AtomicBool::new(false)),
    }
}

/// Run both ends of a flow.
fn run(ends: &Endpoints, mut task: TcpSenderTask) -> (SenderResult, ReceiverResult) {
    let receiver = ReceiverTask {
        clock: task.clock,
        step: STEP,
        end: task.stop.saturating_add(TimeSpan::from_millis(100)),
        halt: Arc::clone(&task.halt),
        flows: 1,
    };
    let (inside, outside) = (&ends.inside, &ends.outside);
    task.peer.set_ip(outside.address);
    let listener = outside.namespace.run(|| TcpListener::bind(task.peer).unwrap()).unwrap();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| run_receiver(listener, receiver).unwrap());
        let sent = inside.namespace.run(|| run_sender(task)).unwrap().unwrap();
        (sent, receiving.join().unwrap())
    })
}

fn bulk(algorithm: &str) {
    if !available().iter().any(|name| name == algorithm) {
        eprintln!("SKIPPED: this kernel has no {algorithm}");
        return;
    }
    // 40 Mbit/s with an RTT of 10 ms and a buffer of twice that.
    let Some((ends, _path)) = path(5, &[link(40.0, 66)]) else { return };
    let begun = Instant::now();
    let (sent, received) = run(&ends, task(algorithm, 5001, 1.5));
    let in_time = begun.elapsed() < Duration::from_millis(1700);
    let sender = &sent;
    eprintln!("{algorithm}: {:?} {:?} min rtt {:?}", sender.stats, received.received, sender.min_rtt);
    assert_eq!(sender.name, format!("tcp:{algorithm}"));
    let rate = received.received.unique_bytes as f64 * 8e-6 / 1.4;
    assert!(rate > 10.0 && rate < 42.0, "{rate} Mbit/s");
    assert!(sender.min_rtt >= TimeSpan::from_millis(9) && sender.min_rtt < TimeSpan::from_millis(40));
    // Series: samples at 100 ms (number 0) to 1500 ms; the last one may be after the end.
    let series = &sender.series;
    let n = series.cwnd_bytes.len();
    assert!(sender.first_sample == 0 && (14..=15).contains(&n), "{n}");
    let columns =
        [&series.in_flight_bytes, &series.srtt_ns, &series.pacing_bps, &series.sent_bytes, &series.acked_bytes];
    assert!(columns.iter().all(|column| column.len() == n));
    assert!(sent.extra.values().all(|column| column.len() == n), "{:?}", sent.extra.keys());
    assert!(series.srtt_ns[5] >= 9_000_000 && series.cwnd_bytes[5] >= 10 * 1500);
    assert!(series.sent_bytes.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(series.pacing_bps[5] > 0, algorithm == "bbr");
    assert_eq!(sent.extra.contains_key("bbr_bw_bps"), algorithm == "bbr");
    if algorithm == "bbr" {
        let bandwidth = sent.extra["bbr_bw_bps"][9];
        assert!(bandwidth > 2e7 && bandwidth < 6e7, "{bandwidth}");
        assert!(sent.extra["bbr_pacing_gain"][9] >= 0.25);
    }
    // Packets that arrived were sent, and acknowledged packets arrived.
    let stats = sender.stats;
    assert!(received.received.packets <= stats.sent_packets);
    if in_time {
        assert!(stats.acked_packets <= received.received.packets + 1);
    } else {
        eprintln!("NOT COMPARED: acknowledged with received; a stalled sender counted after the receiver had stopped");
    }
    assert!(stats.acked_bytes <= stats.sent_bytes && stats.sent_bytes >= stats.sent_packets * 1000);
    assert_eq!(received.received_bytes.len(), 16);
    assert_eq!(*received.received_unique_bytes.last().unwrap(), received.received.unique_bytes);
    assert!(received.received_unique_bytes[3] > 0 && received.received_bytes[3] > received.received_unique_bytes[3]);
}

#[test]
fn cubic_fills_a_path() {
    bulk("cubic");
}

#[test]
fn bbr_fills_a_path_and_reports_its_state() {
    bulk("bbr");
}

#[test]
fn a_finite_transfer_reports_its_end() {
    let Some((ends, _path)) = path(10, &[]) else { return };
    let mut task = task("cubic", 5002, 0.6);
    task.source = SourceSpec::Bytes { bytes: 100_000 };
    let (sent, received) = run(&ends, task);
    assert_eq!(received.received.unique_bytes, 100_000);
    // A handshake, then 10, 20 and 40 segments: four RTTs of 20 ms from 50 ms on.
    let finished = sent.finished;
    assert!(finished > Timestamp::from_millis(120) && finished < Timestamp::from_millis(400), "{finished:?}");
}

#[test]
fn an_application_limits_the_rate() {
    let Some((ends, _path)) = path(0, &[]) else { return };
    let mut task = task("cubic", 5003, 1.05);
    task.mss = 1000;
    task.source = SourceSpec::Rate { rate: ccgym_path::Param::Constant(Rate::from_mbps(4.0)), bytes: None };
    let (sent, received) = run(&ends, task);
    let bytes = received.received.unique_bytes;
    assert!(bytes.abs_diff(500_000) <= 25_000, "{bytes}");
    let payload = sent.stats.sent_bytes - 52 * sent.stats.sent_packets;
    assert!(payload / sent.stats.sent_packets <= 1000, "{:?}", sent.stats);
}

#[test]
fn an_unavailable_algorithm_has_its_own_error() {
    let mut task = task("nosuchcc", 1, 1.0);
    let error = run_sender(task.clone()).unwrap_err();
    assert!(error.code == "scheme-unavailable" && error.place.contains("nosuchcc"), "{error}");
    task.algorithm = "a-name-that-is-much-too-long-for-the-kernel".into();
    assert_eq!(run_sender(task.clone()).unwrap_err().code, "scheme-unavailable");
    task.algorithm = "reno".into();
    let error: Error = run_sender(task).unwrap_err();
    assert!(error.place.contains("connecting flow 0 (tcp:reno)"), "{error}");
}

#[test]
fn no_answer_or_a_halt_ends_a_flow() {
    let Some((ends, _path)) = path(0, &[loss(1.0)]) else { return };
    // No answer comes before the flow's end: it sent nothing.
    let (sent, received) = run(&ends, task("reno", 5005, 0.32));
    assert_eq!((sent.stats.sent_packets, received.received.packets), (0, 0));
    assert_eq!(sent.series.cwnd_bytes.len(), 3);
    let task = task("reno", 5006, 60.0);
    let halt = Arc::clone(&task.halt);
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            halt.store(true, Ordering::Relaxed);
        });
        run(&ends, task)
    });
    assert!(began.elapsed() < Duration::from_secs(2));
}
