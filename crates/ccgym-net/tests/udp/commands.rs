//! `ccgym-net sender` and `ccgym-net receiver` as programs.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ccgym_net::udp::codec::VERSION;
use ccgym_net::udp::datagram::{self, datagram::Kind};
use prost::Message as _;

use super::alone;

/// Sender and receiver as programs, as a user starts them.
#[test]
fn commands_carry_a_transfer() {
    use std::io::BufRead as _;
    use std::process::{Command, Stdio};
    let _alone = alone();
    let program = env!("CARGO_BIN_EXE_ccgym-net");
    let mut receiver = Command::new(program)
        .args(["receiver", "--listen", "127.0.0.1:0", "--once", "--json", "--duration", "20", "--report-every=0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(receiver.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let address = first.strip_prefix("listening on ").unwrap();
    let sender = Command::new(program)
        .args(["sender", "--to", address, "--scheme", "cubic:beta=0.6", "--bytes", "300000", "--json"])
        .output()
        .unwrap();
    assert!(sender.status.success(), "{}", String::from_utf8_lossy(&sender.stderr));
    let sent: serde_json::Value = serde_json::from_slice(&sender.stdout).unwrap();
    assert_eq!((&sent["scheme"], &sent["finished"]), (&"cubic".into(), &true.into()), "{sent}");
    let output = receiver.wait_with_output().unwrap();
    assert!(output.status.success());
    let got: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(got["received"]["unique_bytes"], 300_000, "{got}");
    // What goes wrong ends with 2 and says why.
    let lost = Command::new(program)
        .args(["sender", "--to", address, "--scheme", "cubic", "--deadline", "0.05"])
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&lost.stderr).contains("no answer to 1 hello from"));
    let help = Command::new(program).args(["receiver", "--help"]).output().unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--listen"));
}

/// A program, started as from a terminal: whoever started these tests in the background of a shell may have had SIGINT
/// ignored.
#[allow(unsafe_code)] // `pre_exec` and `signal` are unsafe: only a system call may follow, and here only such follows.
fn started(words: &[&str]) -> std::process::Child {
    use nix::sys::signal::{signal, SigHandler, Signal};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_ccgym-net"));
    let heed = || unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.map(drop).map_err(Into::into);
    unsafe { command.pre_exec(heed) };
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: std::process::Child, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn signals_end_the_commands_with_their_summaries() {
    use nix::sys::signal::Signal::{SIGINT, SIGTERM};
    use std::io::BufRead as _;
    let _alone = alone();
    for signal in [SIGINT, SIGTERM] {
        let mut receiver = started(&["receiver", "--listen", "127.0.0.1:0", "--report-every=0"]);
        let mut lines = std::io::BufReader::new(receiver.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.strip_prefix("listening on ").unwrap();
        // Two flows of one receiver, one after the other: the first is interrupted, and the second with the receiver.
        for end in [Some(signal), None] {
            let sender = started(&["sender", "--to", address, "--scheme", "cubic", "--bytes", "1000000000000"]);
            assert!(lines.next().unwrap().unwrap().ends_with(": begins"));
            if let Some(signal) = end {
                let (status, summary) = interrupt(sender, signal);
                assert_eq!(status, Some(128 + signal as i32), "{summary}");
                assert!(summary.contains("Mbit/s acknowledged in"), "{summary}");
                continue;
            }
            let (status, summaries) = interrupt(receiver, signal);
            assert_eq!(status, Some(128 + signal as i32), "{summaries}");
            assert_eq!(summaries.matches(" packets").count(), 2, "{summaries}");
            assert_eq!(lines.next().unwrap().unwrap(), "received 2 flows");
            interrupt(sender, signal);
            break;
        }
    }
}

/// A receiver that answers every Hello with `answer`, and nothing else.
fn answering(answer: datagram::HelloAck) -> (String, Arc<AtomicBool>, JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (address, over) = (socket.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
    let halt = over.clone();
    let thread = std::thread::spawn(move || {
        let mut room = [0; 2048];
        while !halt.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut room) else { continue };
            if let Ok(datagram::Datagram { kind: Some(Kind::Hello(hello)) }) =
                datagram::Datagram::decode(&room[..length])
            {
                let answer = datagram::HelloAck { token: hello.token, version: VERSION, ..answer.clone() };
                socket
                    .send_to(&datagram::Datagram { kind: Some(Kind::HelloAck(answer)) }.encode_to_vec(), from)
                    .unwrap();
            }
        }
    });
    (address, over, thread)
}

#[test]
fn a_sender_survives_what_a_receiver_says_and_what_it_does_not() {
    let run = |address: &str, more: &[&str]| {
        let words =
            ["sender", "--to", address, "--scheme", "fixed_rate:rate_mbps=1", "--duration=0.3", "--deadline=0.3"];
        let output = started(&[&words[..], more].concat()).wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // Nothing is acknowledged.
    let (address, over, thread) = answering(datagram::HelloAck::default());
    let (status, out, err) = run(&address, &["--report-every=100ms"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.starts_with("fixed_rate: 0.00 Mbit/s") && out.contains("smallest round trip none yet"), "{out}");
    assert!(err.contains("no window limit") && !err.contains(&u64::MAX.to_string()), "{err}");
    let (_, out, _) = run(&address, &["--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["min_rtt_ms"].is_null(), "{out}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // A refusal that would clear the screen.
    let (address, over, thread) =
        answering(datagram::HelloAck { refusal: "\u{1b}[2Jfull".into(), ..Default::default() });
    let (status, _, err) = run(&address, &[]);
    assert_eq!(status, Some(2));
    assert!(err.contains(r"the receiver refuses: \u{1b}[2Jfull"), "{err:?}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // Cookies for ever.
    let (address, over, thread) = answering(datagram::HelloAck { cookie: vec![1; 8], ..Default::default() });
    let (status, _, err) = run(&address, &[]);
    assert_eq!(status, Some(2));
    assert!(err.contains("no answer to"), "{err}");
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
