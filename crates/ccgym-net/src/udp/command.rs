//! `ccgym sender` and `ccgym receiver`: one flow between two machines, or two processes.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use ccgym_core::{InitContext, Rng, Sender, SenderStats, TimeSpan, Timestamp};
use ccgym_schemes::learned::{load_library, Policy};
use ccgym_schemes::registry::{create_with, registry, Resources};
use ccgym_sim::FlowSpec;
use serde_json::{json, Map, Value};

use super::hello::{printable, Connection, Hello};
use super::receiver::{serve, Event, ReceiverResult, ReceiverTask, Served, Service};
use super::sender::{SenderResult, SenderTask, Watcher};
use super::words::Words;
use crate::error::{NetError, Result, Step};
use crate::system::signals::{interruptible, Interruption};
use crate::Clock;

/// Help of the sender.
pub const SENDER_HELP: &str = "\
ccgym-net sender --to ADDRESS:PORT --scheme NAME[:KEY=VALUE,...] [options]

Sends one flow over UDP to a `ccgym-net receiver`, steered by a scheme of the registry or by an exported policy.
Control-C ends it with its summary.

  --to ADDRESS:PORT      the receiver
  --scheme NAME[:K=V,…]  the scheme and its parameters, as in cubic or fixed_rate:rate_mbps=20
  --policy FILE          an exported policy (ONNX) decides; its scheme is `learned`
  --card FILE            the policy's card (JSON); default: the policy's name with .json
  --onnx-runtime FILE    ONNX Runtime's shared library; default: $ORT_DYLIB_PATH
  --duration SECONDS     how long to send (default 10; with --bytes: 3600)
  --bytes N              send so many payload bytes, then stop; default: as much as goes
  --profile tcp|udp|ns3  transport: reliable as Linux, datagrams with receipts, or as ns-3
                         (default tcp; with --policy udp)
  --mss BYTES            payload of a packet (default 1448; 52 bytes of headers come on top)
  --ack-every N          ask for an acknowledgement of every n-th packet (default 1)
  --seed N               seed of what the scheme draws (default 0)
  --bind ADDRESS         local address (default: the one that the way to the receiver begins at)
  --deadline SECONDS     give up connecting after this (default 5)
  --report-every TIME    spacing of the lines on standard error, as in 1s or 500ms; 0: none (default 1s)
  --json                 the summary on standard output as one JSON object
";

/// Help of the receiver.
pub const RECEIVER_HELP: &str = "\
ccgym-net receiver --listen ADDRESS:PORT [options]

Receives flows of `ccgym-net sender`. To an address it sends no more bytes than came from there, until the sender has
echoed a cookie that was sent to that address; what belongs to no flow is not answered. Control-C ends it with its
summary.

  --listen ADDRESS:PORT  where to listen: an address of this machine (0.0.0.0 only if you say so)
  --flows N              serve at most so many flows at a time (default 1); a flow has a place when it sends data
  --once                 return when so many flows that sent data have come and gone
  --duration SECONDS     return after this (default: never)
  --idle SECONDS         a flow is over when nothing came for so long (default 30)
  --report-every TIME    spacing of the lines on standard error, as in 1s or 500ms; 0: none (default 1s)
  --json                 one JSON object for each flow that is over, on standard output
";

fn asks_for_help(words: &[String]) -> bool {
    words.iter().any(|word| word == "--help" || word == "-h")
}

/// Write to a standard stream; who does not read it any more misses it.
fn say(stream: &mut dyn Write, text: &str) {
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 * 8e-6 / seconds
    } else {
        0.0
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 {
        part as f64 / whole as f64
    } else {
        0.0
    }
}

/// The command `sender`; its exit status.
///
/// # Errors
/// Wrong options, and whatever the flow meets.
pub fn sender(words: &[String]) -> Result<i32> {
    if asks_for_help(words) {
        say(&mut std::io::stdout(), SENDER_HELP);
        return Ok(0);
    }
    interruptible(|interruption| send(words, interruption))
}

fn send(words: &[String], interruption: &Interruption) -> Result<i32> {
    let mut words = Words::new("sender", words, &["json"])?;
    let json = words.flag("json");
    let to = words.address("to")?;
    let (name, spec, resources) = flow(&mut words)?;
    let finite = words.parse::<u64>("bytes", "a number of payload bytes, 1 or more")?;
    let spec = match finite {
        None => spec,
        Some(0) => return Err(NetError::new("sender, --bytes", 0).expected("1 or more")),
        Some(bytes) => FlowSpec { source: ccgym_sim::spec::SourceSpec::Bytes { bytes }, ..spec },
    };
    let duration = words.seconds("duration")?.unwrap_or(if finite.is_some() { 3600.0 } else { 10.0 });
    let seed = words.parse("seed", "a whole number")?.unwrap_or(0);
    let bind: Option<std::net::IpAddr> = words.parse("bind", "an address of this machine")?;
    let deadline = words.seconds("deadline")?.unwrap_or(5.0);
    let every = words.time("report-every")?.unwrap_or(TimeSpan::from_millis(1000));
    words.done()?;

    let cca = create_with(&spec.scheme, &spec.params, &resources).map_err(|e| NetError::new("sender, --scheme", e))?;
    if cca.capabilities().knows_path {
        return Err(NetError::new("sender, --scheme", format!("{:?}, which must know the path", spec.scheme))
            .expected("a scheme that needs no more than its acknowledgements"));
    }
    let size = u64::from(spec.mss + spec.header);
    let context = InitContext {
        now: Timestamp::ZERO,
        mss: size,
        initial_window: size * u64::from(spec.initial_window),
        flow: 0,
        rng: Rng::stream(seed, "scheme", 0),
        path: None,
    };
    let socket = bound(bind, to)?;
    let local = socket.local_addr().step(|| "sender".into())?;
    let connection = Connection::open(socket, to, &Hello::of(&spec)?, Duration::from_secs_f64(deadline))?;
    let clock = Clock::start();
    let task = SenderTask {
        flow: 0,
        cca,
        context,
        clock,
        start: Timestamp::ZERO,
        stop: Timestamp::ZERO + TimeSpan::from_secs_f64(duration),
        step: TimeSpan::ZERO,
        seed,
        steering: None,
        halt: interruption.orderly(),
        spec,
    };
    let mut lines = Lines::new(every);
    let result = connection.run_watched(task, &mut lines)?;
    let ended = result.finished.min(clock.now());
    let summary = sender_summary(&name, &result, to, local, ended);
    say_summary(&summary, json, |text| {
        let s = &result.stats;
        let _ = writeln!(
            text,
            "{name}: {:.2} Mbit/s acknowledged in {:.2} s, smallest round trip {}, {} of {} packets lost ({:.2} %)",
            rate(s.acked_bytes, ended.as_secs_f64()),
            ended.as_secs_f64(),
            min_rtt_ms(&result).map_or("none yet".into(), |ms| format!("{ms:.3} ms")),
            s.lost_packets,
            s.sent_packets,
            100.0 * share(s.lost_packets, s.sent_packets),
        );
    });
    if let Some(status) = interruption.status() {
        return Ok(status);
    }
    if finite.is_some() && !result.finished.is_set() {
        return Err(NetError::new("sender", format!("the transfer did not finish within {duration} s"))
            .expected("all bytes acknowledged")
            .hint("give it more time by --duration"));
    }
    Ok(0)
}

/// What the flow is called, its scheme and transport, and the policy of the sender.
fn flow(words: &mut Words) -> Result<(String, FlowSpec, Resources)> {
    let policy: Option<PathBuf> = words.text("policy").map(Into::into);
    let card: Option<PathBuf> = words.text("card").map(Into::into);
    let library = words.text("onnx-runtime");
    let scheme = match (words.text("scheme"), &policy) {
        (Some(scheme), _) => scheme,
        (None, Some(_)) => "learned".into(),
        (None, None) => {
            let names: Vec<_> = registry().iter().map(|entry| entry.info.name).collect();
            return Err(NetError::new("sender, --scheme", "nothing").expected(format!("one of {}", names.join(", "))));
        }
    };
    let (scheme, mut params) = parse_scheme(&scheme)?;
    let mut name = scheme.clone();
    let mut resources = Resources::default();
    if let Some(onnx) = &policy {
        let card = card.unwrap_or_else(|| onnx.with_extension("json"));
        let bytes = std::fs::read(onnx).step(|| format!("reading the policy {}", onnx.display()))?;
        let text = std::fs::read_to_string(&card).step(|| format!("reading the policy's card {}", card.display()))?;
        let explain = |error| NetError::new(format!("loading the policy {}", onnx.display()), error);
        load_library(library.as_deref()).map_err(explain)?;
        let loaded = Policy::load(&bytes, &text).map_err(explain)?;
        params.insert("policy".into(), loaded.name().into());
        name = printable(loaded.name());
        resources.policies.insert(loaded.name().to_owned(), loaded);
    }
    let profile = words.text("profile").unwrap_or_else(|| if policy.is_some() { "udp" } else { "tcp" }.into());
    let mss: u32 = words.parse("mss", "payload bytes of a packet")?.unwrap_or(1448);
    let ack_every: u32 = words.parse("ack-every", "a number of packets, 1 or more")?.unwrap_or(1);
    let spec = json!({ "scheme": scheme, "params": params, "profile": profile, "mss": mss, "ack_every": ack_every });
    let spec = serde_json::from_value(spec).map_err(|error| NetError::new("sender, --profile", error))?;
    Ok((name, spec, resources))
}

/// `NAME:KEY=VALUE,KEY=VALUE`; values are JSON, or text.
fn parse_scheme(text: &str) -> Result<(String, Map<String, Value>)> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let mut params = Map::new();
    for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(NetError::new("sender, --scheme", format!("{pair:?}")).expected("KEY=VALUE"));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        params.insert(key.to_owned(), value);
    }
    Ok((name.to_owned(), params))
}

/// A socket at `address`, or at the address from which the way to `peer` begins.
fn bound(address: Option<std::net::IpAddr>, peer: SocketAddr) -> Result<UdpSocket> {
    let address = match address {
        Some(address) => address,
        None => {
            let any: SocketAddr = if peer.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
            let step = || format!("finding the way to {peer}");
            // Nothing is sent by this, and nothing heard: it asks the routing table.
            let probe = UdpSocket::bind(any).step(step)?;
            probe.connect(peer).step(step)?;
            probe.local_addr().step(step)?.ip()
        }
    };
    UdpSocket::bind((address, 0)).step(|| format!("binding to {address}"))
}

/// The smallest round trip, if there was one.
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
        "loss": share(s.lost_packets, s.sent_packets),
        "stats": s,
        "rejected": result.rejected,
    })
}

fn say_summary(summary: &Value, json: bool, words: impl FnOnce(&mut String)) {
    let mut text = String::new();
    if json {
        let _ = writeln!(text, "{summary}");
    } else {
        words(&mut text);
    }
    say(&mut std::io::stdout(), &text);
}

/// A congestion window in words; schemes that only pace have none.
fn window(bytes: u64) -> String {
    if bytes == u64::MAX {
        "no window limit".into()
    } else {
        format!("window {bytes:8} bytes")
    }
}

/// A line on standard error now and then.
struct Lines {
    every: TimeSpan,
    next: Timestamp,
    last: SenderStats,
    at: Timestamp,
}

impl Lines {
    fn new(every: TimeSpan) -> Self {
        let next = if every.0 > 0 { Timestamp::ZERO + every } else { Timestamp::NEVER };
        Self { every, next, last: SenderStats::default(), at: Timestamp::ZERO }
    }
}

impl Watcher for Lines {
    fn next(&self) -> Timestamp {
        self.next
    }

    fn look(&mut self, now: Timestamp, sender: &Sender, finished: bool) -> ControlFlow<()> {
        if finished {
            return ControlFlow::Break(());
        }
        let (s, seconds) = (sender.stats(), now.since(self.at).as_secs_f64());
        let lost = s.lost_packets - self.last.lost_packets;
        let line = format!(
            "{:7.1} s  {:9.2} Mbit/s  sRTT {:8.3} ms  {}  lost {:5} ({:.2} %)\n",
            now.as_secs_f64(),
            rate(s.acked_bytes - self.last.acked_bytes, seconds),
            sender.rtt().smoothed().as_millis_f64(),
            window(sender.window()),
            lost,
            100.0 * share(lost, s.sent_packets - self.last.sent_packets),
        );
        say(&mut std::io::stderr(), &line);
        (self.last, self.at) = (*s, now);
        while self.next <= now {
            self.next += self.every;
        }
        ControlFlow::Continue(())
    }
}

/// The command `receiver`; its exit status.
///
/// # Errors
/// Wrong options, and whatever the socket meets.
pub fn receiver(words: &[String]) -> Result<i32> {
    if asks_for_help(words) {
        say(&mut std::io::stdout(), RECEIVER_HELP);
        return Ok(0);
    }
    interruptible(|interruption| receive(words, interruption))
}

fn receive(words: &[String], interruption: &Interruption) -> Result<i32> {
    let mut words = Words::new("receiver", words, &["json", "once"])?;
    let (json, once) = (words.flag("json"), words.flag("once"));
    let listen = words.address("listen")?;
    let flows = words.parse("flows", "a number of flows, 1 or more")?.unwrap_or(1_usize);
    let duration = words.seconds("duration")?;
    let idle = TimeSpan::from_secs_f64(words.seconds("idle")?.unwrap_or(30.0));
    let report = words.time("report-every")?.unwrap_or(TimeSpan::from_millis(1000));
    words.done()?;
    if flows == 0 {
        return Err(NetError::new("receiver, --flows", 0).expected("1 or more"));
    }

    let socket = UdpSocket::bind(listen).map_err(|error| {
        NetError::new(format!("listening on {listen}"), error)
            .expected("an address of this machine, and a free port")
            .hint("`ip address` shows the addresses; another receiver may hold the port")
    })?;
    let local = socket.local_addr().step(|| "receiver".into())?;
    let halt = interruption.orderly();
    say(&mut std::io::stderr(), &format!("listening on {local}\n"));
    let task = ReceiverTask {
        clock: Clock::start(),
        step: TimeSpan::ZERO,
        end: duration.map_or(Timestamp::NEVER, |s| Timestamp::ZERO + TimeSpan::from_secs_f64(s)),
        halt,
        flows,
    };
    let service = Service { once, again: !once, idle, report };
    let mut before: Vec<(SocketAddr, u64)> = Vec::new();
    let mut count = 0_u64;
    let result = serve(socket, task, service, &mut |event| match event {
        Event::Began(flow) => say(&mut std::io::stderr(), &format!("{}: begins\n", flow.peer)),
        Event::Goes(now, flows) => {
            for flow in flows {
                let last = before.iter().find(|(peer, _)| *peer == flow.peer).map_or(0, |(_, bytes)| *bytes);
                let line = format!(
                    "{:7.1} s  {}  {:9.2} Mbit/s\n",
                    now.as_secs_f64(),
                    flow.peer,
                    rate(flow.received.bytes.saturating_sub(last), report.as_secs_f64())
                );
                say(&mut std::io::stderr(), &line);
            }
            before = flows.iter().map(|flow| (flow.peer, flow.received.bytes)).collect();
        }
        Event::Ended(flow) => {
            count += 1;
            say_summary(&receiver_summary(flow), json, |text| {
                let _ = writeln!(text, "{}", receiver_words(flow));
            });
        }
    })?;
    let plural = if count == 1 { "" } else { "s" };
    say(&mut std::io::stderr(), &format!("received {count} flow{plural}\n{}", refused(&result)));
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

/// What did not count, if anything.
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

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn wrong_words_are_explained() {
        let error = |command: fn(&[String]) -> Result<i32>, text: &str| command(&words(text)).unwrap_err().to_string();
        assert!(error(sender, "--to 127.0.0.1:1").contains("one of reno, cubic"));
        assert!(error(sender, "--to 127.0.0.1:1 --scheme cubci").contains("did you mean \"cubic\""));
        assert!(error(sender, "--to 127.0.0.1 --scheme cubic").contains("ADDRESS:PORT"));
        assert!(error(sender, "--to 127.0.0.1:1 --scheme cubic --bytes 0").contains("1 or more"));
        assert!(error(sender, "--to 127.0.0.1:1 --scheme cubic --speed 3").contains("--speed"));
        assert!(error(sender, "--to 127.0.0.1:1 --scheme oracle").contains("know the path"));
        assert!(error(sender, "--to 127.0.0.1:1 --scheme cubic --report-every 3x").contains("500ms"));
        assert!(error(receiver, "").contains("--listen ADDRESS:PORT"));
        assert!(error(receiver, "--listen").contains("no value"));
        assert!(error(receiver, "--listen 192.0.2.1:5001").contains("an address of this machine"));
        let stalled = error(sender, "--to 127.0.0.1:1 --scheme cubic --deadline 0.15");
        assert!(stalled.contains("no answer to 2 hellos from 127.0.0.1:1 within 0.150 s"), "{stalled}");
        assert!(stalled.contains("nobody listens on that port"), "{stalled}");
    }

    #[test]
    fn schemes_take_parameters() {
        let (name, params) = parse_scheme("cubic:beta=0.5,mode=linux,fast_convergence=true").unwrap();
        assert_eq!(name, "cubic");
        assert_eq!(Value::Object(params), json!({"beta": 0.5, "mode": "linux", "fast_convergence": true}));
    }
}
