//! Flows of QUIC over loopback, each end a process of the program.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use ccgym_core::{Rate, TimeSpan, Timestamp};
use ccgym_net::error::Result;
use ccgym_net::quic::{carry_out, Ends, QuicJob, QuicReceiverJob, QuicSenderJob};
use ccgym_net::udp::{ReceiverResult, SenderResult};
use ccgym_net::Clock;
use ccgym_run::spec::SourceSpec;

const STEP: TimeSpan = TimeSpan::from_millis(100);

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ccgym-quic"))
}

#[test]
fn help_and_lists_need_no_job() {
    let ask = |arguments: &[&str]| {
        let answer = Command::new(program()).args(arguments).stdin(Stdio::null()).output().unwrap();
        (answer.status.code(), String::from_utf8(answer.stdout).unwrap(), answer.stderr.len())
    };
    for help in ["--help", "-h", "--version"] {
        let (status, text, errors) = ask(&[help]);
        assert_eq!((status, errors), (Some(0), 0), "{help}");
        assert!(!text.is_empty(), "{help}");
    }
    assert_eq!(ask(&["--controllers"]), (Some(0), "cubic Cubic\nbbr BBR\nreno Reno\n".to_owned(), 0));
    let (status, text, errors) = ask(&["--hlep"]);
    assert_eq!((status, text.len()), (Some(2), 0));
    assert!(errors > 0);
    assert_eq!(ask(&["--help", "me"]).0, Some(2));
}

fn job(algorithm: &str, source: SourceSpec, stop_ms: u64) -> QuicSenderJob {
    // This port was free a moment ago.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ends = Ends {
        flow: 2,
        receiver: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        secret: [42; 32],
        packet_bytes: 1500,
        clock: Clock::starting_in(Duration::from_millis(300)),
        step: STEP,
    };
    let stop = Timestamp::from_millis(stop_ms);
    QuicSenderJob {
        ends,
        algorithm: algorithm.into(),
        source,
        seed: 1,
        mss: 1448,
        start: Timestamp::from_millis(50),
        stop,
    }
}

/// Run both ends of a flow; `change` modifies the receiver's settings.
fn run(job: QuicSenderJob, change: impl FnOnce(&mut Ends)) -> (Result<SenderResult>, Result<ReceiverResult>) {
    let mut ends = job.ends.clone();
    change(&mut ends);
    let receiver = QuicJob::Receiver(QuicReceiverJob { ends, end: job.stop.saturating_add(STEP) });
    let halt = AtomicBool::new(false);
    thread::scope(|scope| {
        let (tell, ready) = sync_channel(1);
        let receiving = scope.spawn(|| carry_out(program(), &receiver, &halt, move || tell.send(()).unwrap()));
        ready.recv().unwrap();
        let sent = carry_out(program(), &QuicJob::Sender(job), &halt, || {});
        (sent, receiving.join().unwrap())
    })
}

#[test]
fn each_controller_carries_an_application_of_fixed_rate() {
    for algorithm in ["cubic", "bbr", "reno"] {
        let source = SourceSpec::Rate { rate: ccgym_path::Param::Constant(Rate::from_mbps(8.0)), bytes: None };
        let (sent, received) = run(job(algorithm, source, 1050), |_| {});
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(sent.name, format!("quic:{algorithm}"));
        // One second at 8 Mbit/s.
        let payload = received.received.unique_bytes;
        assert!(payload.abs_diff(1_000_000) < 100_000, "{algorithm}: {payload}");
        let stats = sent.stats;
        assert!(received.received.packets <= stats.sent_packets && received.received.bytes > payload);
        assert!(stats.acked_packets <= stats.sent_packets && stats.acked_bytes <= stats.sent_bytes, "{stats:?}");
        assert!(sent.min_rtt < TimeSpan::from_millis(100), "{:?}", sent.min_rtt);
        // Samples at 100 ms to 1000 ms.
        let series = &sent.series;
        assert_eq!((sent.first_sample, series.cwnd_bytes.len()), (0, 10));
        assert!(series.srtt_ns[9] > 0 && series.cwnd_bytes[9] >= 2 * 1500 && series.pacing_bps[9] > 0);
        assert!(series.sent_bytes.windows(2).all(|pair| pair[0] <= pair[1]) && series.acked_bytes[9] > 800_000);
        assert_eq!(received.received_unique_bytes.last(), Some(&payload));
        assert_eq!(received.received_unique_bytes.len(), 11);
    }
}

#[test]
fn a_finite_transfer_arrives_once_and_reports_its_end() {
    let (sent, received) = run(job("cubic", SourceSpec::Bytes { bytes: 3_000_000 }, 3000), |_| {});
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(received.received.unique_bytes, 3_000_000);
    assert!(sent.finished > Timestamp::from_millis(50) && sent.finished.is_set(), "{:?}", sent.finished);
}

#[test]
fn a_receiver_with_another_key_is_refused() {
    let (sent, _) = run(job("cubic", SourceSpec::Greedy, 1000), |ends| ends.secret = [1; 32]);
    let error = sent.unwrap_err();
    assert!(error.place.contains("flow 2 (quic:cubic)") && error.found.contains("certificate"), "{error}");
}

#[test]
fn impossible_jobs_are_explained() {
    let error = run(job("vegas", SourceSpec::Greedy, 100), |_| {}).0.unwrap_err();
    assert_eq!(error.code, "unknown-choice", "{error}");
    let mut small = job("cubic", SourceSpec::Greedy, 100);
    small.ends.packet_bytes = 1000;
    let error = run(small, |ends| ends.packet_bytes = 1500).0.unwrap_err();
    assert_eq!(error.code, "out-of-range", "{error}");
}

#[test]
fn no_answer_is_not_an_error_and_halting_ends_a_flow() {
    let halt = AtomicBool::new(false);
    let silent = QuicJob::Sender(job("bbr", SourceSpec::Greedy, 300));
    let sent: SenderResult = carry_out(program(), &silent, &halt, || {}).unwrap();
    assert_eq!((sent.stats.acked_packets, sent.min_rtt), (0, TimeSpan::MAX));
    let long = QuicJob::Sender(job("bbr", SourceSpec::Greedy, 60_000));
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            halt.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        carry_out::<SenderResult>(program(), &long, &halt, || {}).unwrap();
    });
    assert!(began.elapsed() < Duration::from_secs(20));
}
