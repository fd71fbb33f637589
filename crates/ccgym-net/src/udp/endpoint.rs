//! `ccgym sender` and `ccgym receiver`: one flow between two machines or processes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use ccgym_core::{SenderStats, TimeSpan, Timestamp};
use ccgym_run::spec::SourceSpec;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::registry::create_with;
use serde::Deserialize;
use serde_json::{json, Value};

use super::hello::Connection;
use super::receiver::{serve, Event, ReceiverResult, ReceiverTask, Served, Service};
use super::sender::{SenderResult, SenderTask};
use crate::error::{Context, Error, Result};
use crate::run::plan::{load_policies, PolicyFiles};
use crate::system::signals::{interruptible, Interruption};
use crate::Clock;

/// Job of `ccgym sender` (JSON). Times are in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderJob {
    /// Name of the flow.
    pub name: String,
    /// Receiver, `ADDRESS:PORT`; the address may be a host name.
    pub to: String,
    /// Flow description, as for the simulator.
    pub flow: FlowSpec,
    /// Files of its policy.
    #[serde(default)]
    pub policies: BTreeMap<String, PolicyFiles>,
    /// Duration of sending.
    pub duration: TimeSpan,
    /// Seed of the scheme's random numbers.
    #[serde(default)]
    pub seed: u64,
    /// Source address; by default that of the route to the receiver.
    #[serde(default)]
    pub bind: Option<std::net::IpAddr>,
    /// Max time to connect.
    pub deadline: TimeSpan,
    /// Interval between lines on standard error; 0: none.
    pub report_every: TimeSpan,
    /// True: write the summary as JSON.
    #[serde(default)]
    pub json: bool,
}

/// Job of `ccgym receiver` (JSON). Times are in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverJob {
    /// Address to listen on, `ADDRESS:PORT`.
    pub listen: String,
    /// Max flows at a time.
    pub flows: usize,
    /// True: return after `flows` flows that sent data have ended.
    #[serde(default)]
    pub once: bool,
    /// Return after this time.
    #[serde(default)]
    pub duration: Option<TimeSpan>,
    /// Time without arrivals that ends a flow.
    pub idle: TimeSpan,
    /// Interval between lines on standard error; 0: none.
    pub report_every: TimeSpan,
    /// True: write summaries as JSON.
    #[serde(default)]
    pub json: bool,
}

/// Resolve `ADDRESS:PORT`.
fn resolve(text: &str, option: &str) -> Result<SocketAddr> {
    let wrong =
        |found: String| Error::of("text-malformed", option, found).expected("ADDRESS:PORT, as in 127.0.0.1:5001");
    let mut addresses = text.to_socket_addrs().map_err(|error| wrong(format!("{text:?} ({error})")))?;
    addresses.next().ok_or_else(|| wrong(format!("{text:?}, which is not an address")))
}

/// Write to a standard stream; ignore errors, such as a closed stream.
fn print(stream: &mut dyn Write, text: &str) {
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    share(bytes as f64 * 8e-6, seconds)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// Send a flow. Return the exit status.
///
/// # Errors
/// A scheme that cannot be sent; errors of the flow.
pub fn sender(job: SenderJob) -> Result<i32> {
    interruptible(|interruption| send(job, interruption))
}

fn send(job: SenderJob, interruption: &Interruption) -> Result<i32> {
    let SenderJob { name, flow: spec, seed, bind, .. } = job;
    let to = resolve(&job.to, "sender, --to")?;
    let run = alone(&spec, seed)?;
    let finite = matches!(spec.source, SourceSpec::Bytes { .. });
    let resources = load_policies(&job.policies)?;
    let cca = create_with(&spec.scheme, &spec.params, &resources).map_err(|error| error.within("sender, --scheme"))?;
    if cca.capabilities().knows_path {
        let found = format!("{:?}, which must know the path", spec.scheme);
        return Err(Error::of("scheme-unsuitable", "sender, --scheme", found)
            .expected("a scheme that needs no more than its acknowledgements"));
    }
    let context = run.init_context(0, &*cca);
    let socket = bound(bind, to)?;
    let local = socket.local_addr().context(|| "sender".into())?;
    let connection = Connection::open(socket, to, &spec, 0, Duration::from_nanos(job.deadline.0))?;
    let clock = Clock::start();
    let task = SenderTask {
        flow: 0,
        cca,
        context,
        clock,
        start: Timestamp::ZERO,
        stop: Timestamp::ZERO + job.duration,
        step: TimeSpan::ZERO,
        seed,
        steering: None,
        halt: interruption.orderly(),
        spec,
    };
    let (mut last, mut at) = (SenderStats::default(), Timestamp::ZERO);
    let result = connection.run_to_completion(task, job.report_every, &mut |now, sender| {
        let (s, seconds) = (sender.stats(), now.since(at).as_secs_f64());
        let lost = s.lost_packets - last.lost_packets;
        let line = format!(
            "{:7.1} s  {:9.2} Mbit/s  sRTT {:8.3} ms  {}  lost {:5} ({:.2} %)\n",
            now.as_secs_f64(),
            rate(s.acked_bytes - last.acked_bytes, seconds),
            sender.rtt().smoothed().as_millis_f64(),
            window(sender.window()),
            lost,
            100.0 * share(lost as f64, (s.sent_packets - last.sent_packets) as f64),
        );
        print(&mut std::io::stderr(), &line);
        (last, at) = (*s, now);
    })?;
    let ended = result.finished.min(clock.now());
    let summary = sender_summary(&name, &result, to, local, ended);
    print_summary(&summary, job.json, |text| {
        let s = &result.stats;
        let _ = writeln!(
            text,
            "{name}: {:.2} Mbit/s acknowledged in {:.2} s, minimum RTT {}, {} of {} packets lost ({:.2} %)",
            rate(s.acked_bytes, ended.as_secs_f64()),
            ended.as_secs_f64(),
            min_rtt_ms(&result).map_or("none yet".into(), |ms| format!("{ms:.3} ms")),
            s.lost_packets,
            s.sent_packets,
            100.0 * share(s.lost_packets as f64, s.sent_packets as f64),
        );
    });
    if let Some(status) = interruption.status() {
        return Ok(status);
    }
    if finite && !result.finished.is_set() {
        let found = format!("the transfer did not finish within {} s", job.duration.as_secs_f64());
        return Err(Error::of("run-stalled", "sender", found)
            .expected("all bytes acknowledged")
            .hint("give it more time by --duration"));
    }
    Ok(0)
}

/// Return a validated run of this flow alone.
pub(super) fn alone(flow: &FlowSpec, seed: u64) -> Result<RunSpec> {
    let none = json!({"seed": seed, "duration": 1, "uplink": [], "downlink": [], "flows": []});
    let mut run: RunSpec = serde_json::from_value(none).map_err(|error| Error::of("run-failed", "sender", error))?;
    run.flows.push(flow.clone());
    run.validate().map_err(|error| error.code_or("description-invalid").within("sender"))?;
    Ok(run)
}

/// Bind a socket at `address`, or at the source address of the route to `peer`.
fn bound(address: Option<std::net::IpAddr>, peer: SocketAddr) -> Result<UdpSocket> {
    let address = match address {
        Some(address) => address,
        None => {
            let any: SocketAddr = if peer.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
            let step = || format!("finding the way to {peer}");
            // This sends nothing: it reads the routing table.
            let probe = UdpSocket::bind(any).context(step)?;
            probe.connect(peer).context(step)?;
            probe.local_addr().context(step)?.ip()
        }
    };
    UdpSocket::bind((address, 0)).context(|| format!("binding to {address}"))
}

fn min_rtt_ms(result: &SenderResult) -> Option<f64> {
    (result.min_rtt != TimeSpan::MAX).then(|| result.min_rtt.as_millis_f64())
}

fn sender_summary(name: &str, result: &SenderResult, to: SocketAddr, local: SocketAddr, ended: Timestamp) -> Value {
    let s = &result.stats;
    json!({
        "scheme": name,
        "to": to.to_string(),
        "from": local.to_string(),
        "duration_s": ended.as_secs_f64(),
        "finished": result.finished.is_set(),
        "throughput_mbps": rate(s.acked_bytes, ended.as_secs_f64()),
        "min_rtt_ms": min_rtt_ms(result),
        "loss": share(s.lost_packets as f64, s.sent_packets as f64),
        "stats": s,
        "rejected": result.rejected,
    })
}

fn print_summary(summary: &Value, json: bool, words: impl FnOnce(&mut String)) {
    let mut text = String::new();
    if json {
        let _ = writeln!(text, "{summary}");
    } else {
        words(&mut text);
    }
    print(&mut std::io::stdout(), &text);
}

/// Format the cwnd in words; schemes that only pace have none.
fn window(bytes: u64) -> String {
    if bytes == u64::MAX {
        "no window limit".into()
    } else {
        format!("window {bytes:8} bytes")
    }
}

/// Receive flows. Return the exit status.
///
/// # Errors
/// An address that cannot be listened on; errors of the socket.
pub fn receiver(job: ReceiverJob) -> Result<i32> {
    interruptible(|interruption| receive(&job, interruption))
}

fn receive(job: &ReceiverJob, interruption: &Interruption) -> Result<i32> {
    let listen = resolve(&job.listen, "receiver, --listen")?;
    let ReceiverJob { flows, once, idle, report_every: report, json, .. } = *job;
    let socket = UdpSocket::bind(listen).map_err(|error| {
        Error::of("socket-failed", format!("listening on {listen}"), error)
            .expected("an address of this machine, and a free port")
            .hint("`ip address` shows the addresses; another receiver may hold the port")
    })?;
    let local = socket.local_addr().context(|| "receiver".into())?;
    let halt = interruption.orderly();
    print(&mut std::io::stderr(), &format!("listening on {local}\n"));
    let task = ReceiverTask {
        clock: Clock::start(),
        step: TimeSpan::ZERO,
        end: job.duration.map_or(Timestamp::NEVER, |duration| Timestamp::ZERO + duration),
        halt,
        flows,
    };
    let service = Service { once, again: !once, idle, report };
    let mut before: Vec<(SocketAddr, u64)> = Vec::new();
    let mut count = 0_u64;
    let result = serve(socket, task, service, &mut |event| match event {
        Event::Began(flow) => print(&mut std::io::stderr(), &format!("{}: begins\n", flow.peer)),
        Event::Goes(now, flows) => {
            for flow in flows {
                let last = before.iter().find(|(peer, _)| *peer == flow.peer).map_or(0, |(_, bytes)| *bytes);
                let line = format!(
                    "{:7.1} s  {}  {:9.2} Mbit/s\n",
                    now.as_secs_f64(),
                    flow.peer,
                    rate(flow.received.bytes.saturating_sub(last), report.as_secs_f64())
                );
                print(&mut std::io::stderr(), &line);
            }
            before = flows.iter().map(|flow| (flow.peer, flow.received.bytes)).collect();
        }
        Event::Ended(flow) => {
            count += 1;
            print_summary(&receiver_summary(flow), json, |text| {
                let _ = writeln!(text, "{}", receiver_words(flow));
            });
        }
    })?;
    let plural = if count == 1 { "" } else { "s" };
    print(&mut std::io::stderr(), &format!("received {count} flow{plural}\n{}", refused(&result)));
    Ok(interruption.status().unwrap_or(0))
}

fn receiver_summary(flow: &Served) -> Value {
    let seconds = flow.last.since(flow.first).as_secs_f64();
    json!({
        "from": flow.peer.to_string(),
        "flow": flow.flow,
        "duration_s": seconds,
        "throughput_mbps": rate(flow.received.bytes, seconds),
        "received": flow.received,
        "sent_packets": flow.sent_packets,
        "ce_packets": flow.ce_packets,
        "refused": flow.refused,
    })
}

fn receiver_words(flow: &Served) -> String {
    let seconds = flow.last.since(flow.first).as_secs_f64();
    let refused = flow.refused.as_ref().map_or(String::new(), |why| format!("; refused: {why}"));
    let sent = flow.sent_packets.map_or(String::new(), |sent| format!(" of {sent} sent"));
    format!(
        "{}: {} packets{sent}, {:.2} Mbit/s over {seconds:.2} s{refused}",
        flow.peer,
        flow.received.packets,
        rate(flow.received.bytes, seconds)
    )
}

/// Format the numbers of datagrams that did not count, if any.
fn refused(result: &ReceiverResult) -> String {
    let mut text = String::new();
    if result.rejected > 0 {
        let _ = writeln!(text, "{} datagrams were refused: foreign, or without a known token", result.rejected);
    }
    if result.overflowed > 0 {
        let _ = writeln!(text, "{} datagrams came faster than this machine could take them", result.overflowed);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(job: Value) -> (String, String) {
        let job: SenderJob = serde_json::from_value(job).unwrap();
        let error = sender(job).unwrap_err();
        (error.code.into_owned(), error.place)
    }

    fn job(to: &str, scheme: &str) -> Value {
        json!({
            "name": scheme, "to": to, "flow": {"scheme": scheme}, "duration": 1_000_000_000_u64,
            "deadline": 150_000_000, "report_every": 0,
        })
    }

    #[test]
    fn what_cannot_be_sent_is_explained() {
        for (to, scheme, code, place) in [
            ("127.0.0.1:1", "cubci", "unknown-scheme", "sender, --scheme: scheme"),
            ("127.0.0.1", "cubic", "text-malformed", "sender, --to"),
            ("127.0.0.1:1", "oracle", "scheme-unsuitable", "sender, --scheme"),
            ("127.0.0.1:1", "cubic", "no-answer", "handshake with 127.0.0.1:1"),
        ] {
            assert_eq!(error(job(to, scheme)), (code.to_owned(), place.to_owned()));
        }
    }

    /// Limits of a simulated flow, including ns-3's own headers and sums that wrap.
    #[test]
    fn a_flow_has_the_limits_of_a_simulated_one() {
        for flow in [
            json!({"scheme": "cubic", "mss": 0}),
            json!({"scheme": "cubic", "mss": 4_294_967_290_u32}),
            json!({"scheme": "cubic", "profile": "ns3", "mss": 1, "header": 40}),
            json!({"scheme": "cubic", "ack_every": 0}),
            json!({"scheme": "cubic", "initial_window": 0}),
        ] {
            let mut job = job("127.0.0.1:1", "cubic");
            job["flow"] = flow;
            let (code, place) = error(job.clone());
            assert!(code == "description-invalid" && place.starts_with("sender: flows[0]"), "{job}: {place}");
        }
    }

    #[test]
    fn an_address_of_another_machine_is_explained() {
        let job = json!({"listen": "192.0.2.1:5001", "flows": 1, "idle": 30_000_000_000_u64, "report_every": 0});
        let error = receiver(serde_json::from_value(job).unwrap()).unwrap_err();
        assert_eq!((&*error.code, error.place.as_str()), ("socket-failed", "listening on 192.0.2.1:5001"));
    }
}
