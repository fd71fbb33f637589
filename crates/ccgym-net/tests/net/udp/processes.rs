//! Sender and receiver as processes.

use std::io::BufRead as _;
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ccgym_net::udp::codec::{decode, encode, Message, VERSION};
use ccgym_net::udp::datagram::{self, datagram::Kind};
use serde_json::{json, Value};

use super::alone;
use crate::common::{explained, heed_interrupts};
use crate::PROGRAM;

const SECOND: u64 = 1_000_000_000;

fn sender(to: &str, scheme: &str) -> Value {
    json!({
        "name": scheme, "to": to, "flow": {"scheme": scheme}, "duration": 10 * SECOND, "deadline": 5 * SECOND,
        "report_every": 0,
    })
}

fn receiver() -> Value {
    json!({"listen": "127.0.0.1:0", "flows": 1, "idle": 30 * SECOND, "report_every": 0})
}

/// Return a job with some fields changed.
fn with(mut job: Value, changes: Value) -> Value {
    job.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    job
}

fn process(kind: &str, job: Value) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg(json!({ kind: job }).to_string());
    command
}

#[test]
fn processes_carry_a_transfer() {
    let _alone = alone();
    let job = with(receiver(), json!({"once": true, "json": true, "duration": 20 * SECOND}));
    let mut receiving = process("receiver", job).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(receiving.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.strip_prefix("listening on ").unwrap();
    let flow = json!({
        "scheme": "cubic", "params": {"beta": 0.6}, "source": {"kind": "bytes", "bytes": 300_000},
    });
    let sent = process("sender", with(sender(address, "cubic"), json!({"flow": flow, "json": true}))).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!((&sent["scheme"], &sent["finished"]), (&"cubic".into(), &true.into()), "{sent}");
    let output = receiving.wait_with_output().unwrap();
    assert!(output.status.success());
    let got: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(got["received"]["unique_bytes"], 300_000, "{got}");
    // A failure ends with status 2 and an explanation.
    let lost = process("sender", with(sender(address, "cubic"), json!({"deadline": SECOND / 20}))).output().unwrap();
    assert_eq!(lost.status.code(), Some(2));
    explained(&String::from_utf8_lossy(&lost.stderr), "no-answer", address);
}

/// Start a process as from a terminal.
fn started(kind: &str, job: Value) -> Child {
    let mut command = process(kind, job);
    heed_interrupts(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: Child, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn signals_end_the_commands_with_their_summaries() {
    use nix::sys::signal::Signal::{SIGINT, SIGTERM};
    let _alone = alone();
    for signal in [SIGINT, SIGTERM] {
        let mut receiving = started("receiver", receiver());
        let mut lines = std::io::BufReader::new(receiving.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.strip_prefix("listening on ").unwrap();
        // One receiver serves two flows in turn: the first one is interrupted, the second one ends with the receiver.
        for end in [Some(signal), None] {
            let sending = started("sender", with(sender(address, "cubic"), json!({"duration": 3600 * SECOND})));
            assert!(lines.next().unwrap().unwrap().ends_with(": begins"));
            if let Some(signal) = end {
                let (status, summary) = interrupt(sending, signal);
                assert_eq!(status, Some(128 + signal as i32), "{summary}");
                assert!(summary.contains("Mbit/s acknowledged in"), "{summary}");
                continue;
            }
            let (status, summaries) = interrupt(receiving, signal);
            assert_eq!(status, Some(128 + signal as i32), "{summaries}");
            assert_eq!(summaries.matches(" packets").count(), 2, "{summaries}");
            assert_eq!(lines.next().unwrap().unwrap(), "received 2 flows");
            interrupt(sending, signal);
            break;
        }
    }
}

/// Call `work` with the address of a receiver that answers every Hello with `answer`, and no other message.
fn answering<T>(answer: datagram::HelloAck, work: impl FnOnce(&str) -> T) -> T {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (address, over) = (socket.local_addr().unwrap().to_string(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; 2048];
            while !over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut room) else { continue };
                if let Ok((token, Message::Hello(_))) = decode(&room[..length], 28) {
                    let (mut out, answer) = (Vec::new(), datagram::HelloAck { version: VERSION, ..answer.clone() });
                    encode(&mut out, token, Kind::HelloAck(answer.into()), 0);
                    socket.send_to(&out, from).unwrap();
                }
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&address)));
        over.store(true, Ordering::Relaxed);
        done.unwrap()
    })
}

#[test]
fn a_sender_handles_hostile_and_silent_receivers() {
    let run = |address: &str, more: Value| {
        let flow = json!({"scheme": "fixed_rate", "params": {"rate_mbps": 1}});
        let short = json!({"flow": flow, "duration": SECOND * 3 / 10, "deadline": SECOND * 3 / 10});
        let job = with(with(sender(address, "fixed_rate"), short), more);
        let output = started("sender", job).wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // Nothing is acknowledged.
    answering(datagram::HelloAck::default(), |address| {
        let (status, out, err) = run(address, json!({"report_every": SECOND / 10}));
        assert_eq!(status, Some(0), "{err}");
        assert!(out.starts_with("fixed_rate: 0.00 Mbit/s") && out.contains("minimum RTT none yet"), "{out}");
        assert!(err.contains("no window limit") && !err.contains(&u64::MAX.to_string()), "{err}");
        let (_, out, _) = run(address, json!({"json": true}));
        assert!(serde_json::from_str::<Value>(&out).unwrap()["min_rtt_ms"].is_null(), "{out}");
    });
    // One refusal would clear the screen; the other receiver sends cookies endlessly.
    let full = datagram::HelloAck { refusal: "\u{1b}[2Jfull".into(), ..Default::default() };
    let cookies = datagram::HelloAck { cookie: vec![1; 8], ..Default::default() };
    for (answer, code, part) in [(full, "receiver-refuses", r"\u{1b}[2Jfull"), (cookies, "no-answer", "")] {
        answering(answer, |address| {
            let (status, _, err) = run(address, json!({}));
            assert_eq!(status, Some(2));
            explained(&err, code, address);
            assert!(err.contains(part), "{err:?}");
        });
    }
}
