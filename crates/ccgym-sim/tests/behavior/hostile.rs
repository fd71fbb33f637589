//! Every registered scheme, in each of its variants, on difficult paths and with difficult applications. Asserted: no
//! panic, no NaN observable, a window and a flight in proportion to the path, and progress after the trouble.
//!
//! The bounds are ours: wide enough for every scheme that follows its paper, and narrow enough to detect a window that
//! grows without end, or a flow that never recovers.
#![allow(clippy::print_stderr)] // Says what is skipped.

use crate::common::{create, secs, spec, Seen, Watched, MSS};
use crate::violations::{judge, About, Finding, Violation};
use ccgym_core::{CongestionControl, Error, Timestamp};
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::registry::Role;
use ccgym_schemes::{registry, SchemeInfo};
use ccgym_sim::Simulator;
use serde_json::{json, Value};
use std::sync::{Arc, Mutex};

/// The path without trouble: rate, queue, and propagation of each way.
const RATE: u64 = 4_000_000;
const QUEUE: u64 = 40;
const ONE_WAY_MS: u64 = 20;
/// Start and end of temporary trouble.
const FROM_S: f64 = 3.0;
const UNTIL_S: f64 = 13.0;

/// A scheme in one of its variants.
pub struct Contender {
    pub info: &'static SchemeInfo,
    pub params: Value,
}

impl Contender {
    /// Return its name, and the parameters that are not defaults.
    pub fn name(&self) -> String {
        let params = self.params.as_object().unwrap();
        let words: Vec<_> = params.iter().map(|(key, word)| format!(" {key}={}", word.as_str().unwrap())).collect();
        format!("{}{}", self.info.name, words.concat())
    }

    /// True for a measuring aid, which keeps its parameters on any path.
    pub fn is_tool(&self) -> bool {
        self.info.role == Role::Tool
    }
}

/// Return all schemes: with their defaults, and with each other word of each choice.
pub fn contenders() -> Vec<Contender> {
    let variants = registry().iter().flat_map(|entry| {
        let words = entry.info.parameters.iter().flat_map(|p| p.choices().iter().skip(1).map(|word| (p.name, word)));
        let others = words.map(|(name, word)| json!({name: word}));
        std::iter::once(json!({})).chain(others).map(|params| Contender { info: &entry.info, params })
    });
    variants.collect()
}

/// One kind of trouble.
struct Trouble {
    name: &'static str,
    /// Elements before the link, right behind it, and after the delay of the way back.
    up: Vec<Value>,
    behind: Vec<Value>,
    down: Vec<Value>,
    /// Rate (or its steps), queue, and delay of each way.
    rate: Value,
    queue: Value,
    delay: Value,
    /// Differences from an ordinary flow.
    flow: Value,
    /// Max packets that the path can hold: BDP and queue.
    holds: f64,
    /// Length of the run, and the packets that must be acknowledged in its last part, in packets and seconds.
    seconds: f64,
    least: u64,
    last: f64,
}

impl Trouble {
    /// Make it without trouble. A tenth of its capacity must be used at the end.
    fn new(name: &'static str) -> Self {
        let bdp = RATE as f64 * 2e-3 * ONE_WAY_MS as f64 / 8.0 / MSS;
        Self {
            name,
            up: Vec::new(),
            behind: Vec::new(),
            down: Vec::new(),
            rate: json!(RATE),
            queue: droptail(QUEUE),
            delay: json!(ONE_WAY_MS * 1_000_000),
            flow: json!({}),
            holds: bdp + QUEUE as f64,
            seconds: 40.0,
            least: (RATE as f64 / 8.0 / MSS) as u64,
            last: 10.0,
        }
    }

    fn up(mut self, element: Value) -> Self {
        self.up.push(element);
        self
    }

    fn behind(mut self, element: Value) -> Self {
        self.behind.push(element);
        self
    }

    fn down(mut self, element: Value) -> Self {
        self.down.push(element);
        self
    }

    fn flow(self, flow: Value) -> Self {
        Self { flow, ..self }
    }

    fn queue(self, queue: Value) -> Self {
        Self { queue, ..self }
    }

    fn least(self, least: u64) -> Self {
        Self { least, ..self }
    }

    /// Set another rate between the given times, in Mbit/s; a tenth of the slowest must be used.
    fn rates(mut self, usual: f64, meanwhile: f64) -> Self {
        let bps = |mbps: f64| (mbps * 1e6) as u64;
        self.rate = json!([[0, bps(usual)], [secs(FROM_S), bps(meanwhile)], [secs(FROM_S + 4.0), bps(usual)]]);
        self.holds = usual.max(meanwhile) * 1e6 * 2e-3 * ONE_WAY_MS as f64 / 8.0 / MSS + QUEUE as f64;
        self.least = (usual * 1e6 / 8.0 / MSS) as u64;
        self
    }

    /// Set another RTT in milliseconds, from 3 s to 13 s or throughout.
    fn rtt(mut self, ms: f64, throughout: bool) -> Self {
        let one_way = (ms * 5e5) as u64;
        self.delay = match throughout {
            true => json!(one_way),
            false => json!([[0, self.delay], [secs(FROM_S), one_way], [secs(UNTIL_S), self.delay]]),
        };
        self.holds = RATE as f64 * ms.max(2.0 * ONE_WAY_MS as f64) / 1e3 / 8.0 / MSS + QUEUE as f64;
        self
    }

    fn spec(&self, contender: &Contender, profile: &str) -> RunSpec {
        let transport = &contender.info.transport;
        let mut flow = json!({
            "scheme": contender.info.name, "params": contender.params, "profile": profile, "mss": transport.mss,
            "header": transport.header, "initial_window": transport.initial_window,
        });
        for (key, value) in self.flow.as_object().unwrap() {
            flow[key] = value.clone();
        }
        let link = json!({"kind": "link", "schedule": {"kind": "rate", "rate": self.rate}, "queue": self.queue});
        let delay = json!({"kind": "delay", "delay": self.delay});
        let uplink = [&self.up[..], &[link], &self.behind[..], std::slice::from_ref(&delay)].concat();
        let downlink = [&[delay], &self.down[..]].concat();
        let capacity = if self.rate.is_u64() { json!([[0, self.rate]]) } else { self.rate.clone() };
        spec(json!({
            "seed": 5,
            "duration": secs(self.seconds),
            "uplink": uplink,
            "downlink": downlink,
            "flows": [flow],
            "facts": {"capacity": capacity, "base_rtt": 2 * ONE_WAY_MS * 1_000_000},
        }))
    }
}

fn droptail(packets: u64) -> Value {
    json!({"kind": "droptail", "limit": {"packets": packets}})
}

/// Make a queue that marks ECN-capable packets from 10 packets on.
fn step() -> Value {
    json!({"kind": "step", "limit": {"packets": QUEUE}, "threshold": {"packets": 10}})
}

fn codel() -> Value {
    json!({"kind": "codel", "limit": {"packets": QUEUE}, "ecn": true})
}

/// Make an element that clears ECN, as some routers do.
fn bleach() -> Value {
    json!({"kind": "bleach"})
}

fn loss(probability: f64) -> Value {
    json!({"kind": "loss", "probability": probability})
}

fn reordering(max_ms: u64) -> Value {
    json!({"kind": "jitter", "distribution": {"kind": "uniform", "max": max_ms * 1_000_000}, "reorder": true})
}

fn copies(probability: f64) -> Value {
    json!({"kind": "duplicate", "probability": probability})
}

/// Make an element that holds packets while it is off and then releases all at once.
fn bunching(on_ms: u64, off_ms: u64) -> Value {
    json!({"kind": "on_off", "mean_on": on_ms * 1_000_000, "mean_off": off_ms * 1_000_000, "hold": true})
}

/// Make an element through which nothing passes for ten seconds.
fn blackout() -> Value {
    json!({"kind": "loss", "probability": [[0, 0.0], [secs(FROM_S), 1.0], [secs(UNTIL_S), 0.0]]})
}

fn troubles() -> Vec<Trouble> {
    let new = Trouble::new;
    // After a blackout of 10 s TCP's timer has backed off to 26 s after its begin; 20 s later a flow has recovered.
    let after = |trouble: Trouble| Trouble { seconds: 60.0, ..trouble };
    // With heavy loss throughout, a flow depends on timeouts: some packets in ten seconds.
    vec![
        new("1 % loss").up(loss(0.01)).least(100),
        new("10 % loss").up(loss(0.1)).least(30),
        new("30 % loss").up(loss(0.3)).least(5),
        new("30 % of the acknowledgements lost").down(loss(0.3)),
        // Half of all tries fail here, and a timer backs off six times in a row now and then.
        Trouble { seconds: 120.0, last: 100.0, ..new("30 % loss both ways").up(loss(0.3)).down(loss(0.3)) }.least(20),
        new("reordered data").up(reordering(30)).least(30),
        new("reordered acknowledgements").down(reordering(30)),
        new("every packet twice").up(copies(1.0)).least(100),
        new("a third of all packets twice").up(copies(0.3)).down(copies(0.3)),
        new("every acknowledgement twice").down(copies(1.0)),
        new("an acknowledgement of 2").flow(json!({"ack_every": 2})),
        new("an acknowledgement of 16").flow(json!({"ack_every": 16})),
        new("a host that wakes late").flow(json!({"host": {"wakeup": 1_000_000, "busy": 120_000}})),
        new("a host that sends two at once").flow(json!({"host": {"wakeup": 50_000, "batch": 2}})),
        new("a host that sends ten at once").flow(json!({"host": {"wakeup": 1_000_000, "batch": 10}})),
        new("a busy host").flow(json!({"host": {"busy": 30_000_000}})),
        new("acknowledgements in bunches").down(bunching(20, 100)),
        new("data in bunches").up(bunching(20, 100)).least(100),
        after(new("no data for 10 s").up(blackout())),
        after(new("no acknowledgement for 10 s").down(blackout())),
        after(new("30 % of the acknowledgements lost for 5 s, then all for 5 s").down(json!({
            "kind": "loss", "probability": [[0, 0.0], [secs(FROM_S), 0.3], [secs(FROM_S + 5.0), 1.0], [secs(UNTIL_S), 0.0]],
        }))),
        after(new("nothing for 10 s").up(blackout()).down(blackout())),
        after(Trouble {
            rate: json!([[0, RATE], [secs(FROM_S), 0], [secs(UNTIL_S), RATE]]),
            ..new("a link that stands still for 10 s")
        }),
        new("a rate 100 times as high for 4 s").rates(0.5, 50.0),
        after(new("a rate 100 times as low for 4 s").rates(8.0, 0.08)),
        new("a round trip of 1 ms").rtt(1.0, true),
        Trouble { seconds: 80.0, ..new("a round trip of 2 s").rtt(2000.0, true) }.least(40),
        after(new("a round trip of 2 s for 10 s").rtt(2000.0, false)),
        after(new("a round trip of 1 ms for 10 s").rtt(1.0, false)),
        Trouble { queue: droptail(1), holds: 14.3, ..new("a queue of one packet") }.least(50),
        // Packets that the queue would mark are dropped, or stay until it is full.
        new("ECN cleared before CoDel").queue(codel()).up(bleach()),
        new("ECN cleared before a threshold").queue(step()).up(bleach()),
        // The queue marks packets instead of dropping them, and no sender learns of it.
        new("ECN cleared behind CoDel").queue(codel()).behind(bleach()),
        new("ECN cleared behind a threshold").queue(step()).behind(bleach()),
        new("ECN cleared behind a threshold for 10 s").queue(step()).behind(json!({
            "kind": "bleach", "probability": [[0, 0.0], [secs(FROM_S), 1.0], [secs(UNTIL_S), 0.0]],
        })),
        new("an application at 0.4 Mbit/s").flow(json!({"source": {"kind": "rate", "rate": 400_000}})).least(300),
        new("an application that pauses")
            .flow(json!({"source": {"kind": "on_off", "mean_on": secs(0.7), "mean_off": secs(1.5)}}))
            .least(50),
        new("a path that is gone half of the time")
            .up(json!({"kind": "intermittent", "on": 730_000_000, "off": 611_000_000}))
            .least(20),
    ]
}

/// Return the violations of a run.
fn violations(trouble: &Trouble, contender: &Contender, profile: &str) -> Vec<Violation> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let factory = |f: &FlowSpec| -> Result<Box<dyn CongestionControl>, Error> {
        Ok(Box::new(Watched::new(create(f)?, Arc::clone(&seen))))
    };
    let spec = trouble.spec(contender, profile);
    let mut sim = Simulator::new(&spec, &|_| None, &factory).unwrap_or_else(|e| panic!("{}: {e}", contender.name()));
    let mut acked_by = |seconds: f64| {
        sim.run_until(Timestamp(secs(seconds))).unwrap();
        sim.sender(0).stats().acked_packets
    };
    let before = acked_by(trouble.seconds - trouble.last);
    let progress = acked_by(trouble.seconds) - before;
    let seen = seen.lock().unwrap();
    let mut findings = beyond_bounds(&seen, contender, trouble.holds);
    if progress < trouble.least && !contender.is_tool() {
        let Trouble { last, least, .. } = trouble;
        let text = format!("{progress} packets acknowledged in the last {last} s, expected {least} or more");
        findings.push(Finding { about: About::Progress, found: progress as f64, text });
    }
    let flow = format!("{} ({profile})", contender.name());
    let place = |finding| Violation { flow: flow.clone(), trouble: trouble.name.to_owned(), finding };
    findings.into_iter().map(place).collect()
}

/// Return violations of the bounds: in flight at most four times the path's capacity and 100 packets; with an unlimited
/// window, the packets at the pacing rate until the retransmission timer has backed off to 6 s: three times in a
/// silence of 10 s. A window of at most four times the max in flight, and 40 packets.
pub fn beyond_bounds(seen: &Seen, contender: &Contender, holds: f64) -> Vec<Finding> {
    let mut findings: Vec<_> = seen.nonsense.iter().map(|text| Finding::nonsense(text)).collect();
    if contender.is_tool() {
        return findings;
    }
    let size = f64::from(contender.info.transport.mss + contender.info.transport.header);
    let most = if seen.unlimited {
        seen.max_pacing_bps as f64 / 8.0 * 6.5 + 100.0 * size
    } else {
        (4.0 * holds + 100.0) * MSS
    };
    let widest = 4.0 * seen.max_in_flight as f64 + 40.0 * size;
    let mut compare = |about, found: u64, most: f64, what: &dyn Fn(f64) -> String| {
        if found as f64 > most {
            let found = found as f64 / size;
            let text = format!("{}, expected {:.0} or fewer", what(found), most / size);
            findings.push(Finding { about, found, text });
        }
    };
    compare(About::InFlight, seen.max_in_flight, most, &|found| format!("{found:.0} packets in flight"));
    compare(About::Window, seen.max_window, widest, &|found| format!("a window of {found:.0} packets"));
    findings
}

/// Return the violations of each contender in each trouble, with the profile that `profile` returns, if any.
fn all_violations(profile: impl Fn(&Contender) -> Option<&'static str>) -> Vec<Violation> {
    let troubles = troubles();
    let mut all = Vec::new();
    for contender in contenders() {
        let Some(profile) = profile(&contender) else { continue };
        all.extend(troubles.iter().flat_map(|trouble| violations(trouble, &contender, profile)));
    }
    all
}

#[test]
fn every_scheme_survives_every_trouble() {
    judge(&all_violations(|contender| Some(contender.info.transport.profile)), "in their own transport");
}

/// The same over the other transport: schemes of TCP as datagrams, without retransmissions and with other timers, and
/// schemes of datagrams over TCP.
#[test]
fn every_scheme_survives_every_trouble_elsewhere() {
    if !crate::common::all_tests() {
        return eprintln!("SKIPPED: `make test-all` runs it");
    }
    let other = |contender: &Contender| match contender.info.transport.profile {
        "tcp" => Some("udp"),
        "udp" => Some("tcp"),
        _ => None,
    };
    judge(&all_violations(other), "over the other transport");
}

/// A transfer of one byte, of a packet and a byte, and of a hundred thousand bytes ends, also over a bad path.
#[test]
fn every_scheme_ends_a_transfer() {
    let mut wrong = Vec::new();
    for contender in contenders().iter().filter(|c| !c.is_tool()) {
        for bytes in [1, u64::from(contender.info.transport.mss) + 1, 100_000] {
            for (lossy, up) in [(false, Vec::new()), (true, vec![loss(0.1), copies(0.1), reordering(10)])] {
                let flow = json!({"source": {"kind": "bytes", "bytes": bytes}});
                let trouble = Trouble { up, seconds: 60.0, flow, ..Trouble::new("") };
                let profile = contender.info.transport.profile;
                let outcome = crate::common::run(&trouble.spec(contender, profile));
                let flow = &outcome.flows[0];
                let name = format!("{}, {bytes} bytes, lossy {lossy}", contender.name());
                if !flow.finished.is_set() {
                    wrong.push(format!("{name}: it did not end: {flow:?}"));
                } else if flow.received.unique_bytes > bytes || (profile != "udp" && flow.received.unique_bytes < bytes)
                {
                    wrong.push(format!("{name}: {flow:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}
