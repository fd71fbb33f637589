//! Runs the lines of `expectations.md`: schemes, paths, quantities and their bounds, with their sources.

use std::collections::BTreeMap;

use ccgym_core::Timestamp;
use ccgym_path::ElementSpec;
use ccgym_run::Outcome;
use rayon::prelude::*;
use serde_json::{json, Value};

use crate::common::{cells, print_expected, secs, simulator, waits, Net, Steady, MSS};

const TABLES: &str = include_str!("expectations.md");

/// A line with one of its alternatives of flows and of paths, and a seed, or those of a mean.
struct Case<'a> {
    /// The heading above it.
    name: &'a str,
    flows: &'a str,
    path: &'a str,
    from: f64,
    until: f64,
    expected: &'a str,
    seeds: Vec<u64>,
}

/// Return the tables with their names replaced.
fn expanded() -> String {
    let names = cells(TABLES).filter(|(heading, cells)| heading.is_empty() && cells[0] != "Name");
    let (names, tables) = (names.map(|(_, cells)| cells), TABLES.split_once("\n## ").expect("tables").1);
    names.fold(tables.to_owned(), |text, cells| text.replace(cells[0], cells[1]))
}

fn cases<'a>((name, cells): &(&'a str, Vec<&'a str>)) -> Vec<Case<'a>> {
    let [flows, paths, seconds, expected, ..] = cells[..] else { panic!("{name}: {cells:?} are not four cells") };
    let (from, until) = seconds.split_once('-').expect("from-until");
    let number = |text: &str| text.parse().expect("seconds");
    let alternatives = flows.split("; ").flat_map(|flows| paths.split("; ").map(move |path| (flows, path)));
    let of = |(flows, path): (&'a str, &'a str)| {
        let seeds = |key: &str| -> Option<Vec<u64>> {
            let (first, last) = path.split_whitespace().find_map(|word| word.strip_prefix(key))?.split_once('-')?;
            Some((first.parse().expect("a seed")..=last.parse().expect("a seed")).collect())
        };
        let case = move |seeds| Case { name, flows, path, from: number(from), until: number(until), expected, seeds };
        match seeds("mean_of=") {
            Some(seeds) => vec![case(seeds)],
            None => seeds("seeds=").unwrap_or(vec![1]).into_iter().map(|seed| case(vec![seed])).collect(),
        }
    };
    alternatives.flat_map(of).collect()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Parse a number, or steps in time of it, in units of `scale`.
fn steps(text: &str, scale: f64) -> Value {
    let scaled = |v: &Value| match v.as_f64().expect(text) * scale {
        whole if scale > 1.0 => json!(whole.round() as u64),
        share => json!(share),
    };
    match value(text) {
        Value::Array(all) => all.iter().map(|s| json!([secs(s[0].as_f64().expect(text)), scaled(&s[1])])).collect(),
        number => scaled(&number),
    }
}

fn flows(text: &str) -> Value {
    let mut all = Vec::new();
    for kind in text.split(" + ") {
        let (count, words) = kind.split_once('*').map_or((1, kind), |(n, rest)| (n.parse().expect("a count"), rest));
        let mut words = words.split_whitespace();
        let mut flow = json!({"scheme": words.next(), "params": {}});
        for word in words {
            match word.split_once('=') {
                None => flow["profile"] = json!(word),
                Some(("start", seconds)) => flow["start"] = steps(seconds, 1e9),
                Some(("extra_rtt", ms)) => flow["extra_rtt"] = steps(ms, 1e6),
                Some((key @ ("initial_window" | "source" | "ack_every"), word)) => flow[key] = value(word),
                Some((key, word)) => flow["params"][key] = value(word),
            }
        }
        for i in 0..count {
            if count > 1 {
                flow["start"] = json!(i * 1_000_000);
            }
            all.push(flow.clone());
        }
    }
    json!(all)
}

fn net(path: &str) -> Net {
    let mut net = Net::new(0.0, 0.0, 0);
    for word in path.split_whitespace() {
        let (key, word) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "mbps" => net.rate = steps(word, 1e6),
            "rtt" => net.delay = steps(word, 5e5),
            "queue" => match value(word) {
                Value::Number(packets) => net.queue["limit"]["packets"] = json!(packets),
                queue => net.queue = queue,
            },
            "loss" => net.loss = steps(word, 1.0),
            "ack_loss" => net.ack_loss = steps(word, 1.0),
            "jitter" => {
                let distribution = json!({"kind": "uniform", "max": steps(word, 1e6)});
                net.behind.push(json!({"kind": "jitter", "distribution": distribution}));
            }
            // Its frames have two bytes more, its device holds a packet, and losses are drawn behind the bottleneck.
            "ns3" => net.link = json!({"kind": "link", "overhead": 2, "device_packets": 1}),
            "seeds" | "mean_of" => {}
            _ => panic!("a path has no {key}"),
        }
    }
    if net.link["overhead"] == 2 {
        net.behind.push(json!({"kind": "loss", "probability": std::mem::replace(&mut net.loss, json!(0.0))}));
    }
    net
}

/// A run, and the first flow's observables each millisecond.
struct Measured {
    outcome: Outcome,
    steady: Steady,
    from: f64,
    mbps: f64,
    rtt_ms: f64,
    shown: BTreeMap<&'static str, Vec<f64>>,
}

impl Measured {
    fn of(case: &Case<'_>, seed: u64) -> Self {
        let mut net = net(case.path);
        net.record["packets"] = json!(case.expected.contains("wait"));
        let first = |steps: &Value| steps.as_f64().or_else(|| steps[0][1].as_f64()).expect("a number");
        let (mbps, rtt_ms) = (first(&net.rate) / 1e6, first(&net.delay) / 5e5);
        let mut spec = net.spec(&flows(case.flows), case.until);
        if mbps == 0.0 {
            spec.uplink.retain(|element| !matches!(element, ElementSpec::Link { .. }));
        }
        spec.seed = seed;
        let (mut sim, mut shown) = (simulator(&spec), BTreeMap::<_, Vec<f64>>::new());
        if ["mean:", "min:", "max:"].iter().any(|of| case.expected.contains(of)) {
            for ms in (1e3 * case.from) as u64..=(1e3 * case.until) as u64 {
                sim.run_until(Timestamp::from_millis(ms)).unwrap();
                let all = sim.sender(0).cca().observables();
                all.into_iter().for_each(|(name, value)| shown.entry(name).or_default().push(value));
            }
        }
        sim.run().unwrap();
        let outcome = sim.outcome();
        Self { steady: Steady::since(&outcome, case.from), outcome, from: case.from, mbps, rtt_ms, shown }
    }

    fn get(&self, name: &str) -> f64 {
        if let Some((name, less)) = name.split_once('-') {
            return self.get(name) - less.parse::<f64>().expect("a number");
        }
        let (steady, (kind, of)) = (&self.steady, name.split_once(':').unwrap_or((name, "")));
        let series = self.outcome.series.as_ref().expect("series are recorded");
        let from = series.t.iter().position(|&t| t >= secs(self.from)).expect("samples");
        let flow = || of.parse::<usize>().expect("a flow");
        let waits = || waits(&self.outcome, flow() as u32, self.rtt_ms, self.from);
        let shown = || self.shown[of].iter().copied();
        let queue = || series.links[0].queue_packets[from..].to_vec();
        let flight = || (from..series.t.len()).map(|i| series.flows.iter().map(|f| f.in_flight_bytes[i]).sum::<u64>());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        match kind {
            "rate" if of.is_empty() => steady.total(),
            "rate" => steady.rates[flow()],
            "rate_packets" => steady.total() * 125.0 * self.rtt_ms / MSS,
            "payload" => {
                self.outcome.flows[flow()].received.unique_bytes as f64 * 8e-6 / self.outcome.end.as_secs_f64()
            }
            "use" => steady.total() / self.mbps,
            "share" => steady.rates[0] / steady.total(),
            "ratio" => steady.rates[0] / steady.rates[1],
            "jain" => steady.jain(),
            "queue" => steady.mean_queue,
            "queue_max" => steady.max_queue as f64,
            "queue_p95" => {
                let mut queue = queue();
                queue.sort_unstable();
                queue[queue.len() * 95 / 100] as f64
            }
            "drops" => steady.drops as f64,
            "drop_share" => {
                let seconds = series.t[series.t.len() - 1] as f64 / 1e9 - self.from;
                let dropped = steady.drops as f64 * MSS * 8e-6 / seconds;
                dropped / (dropped + steady.total())
            }
            "marked" => self.outcome.links[0].elements[0].1.marked as f64,
            "window" => steady.windows[0],
            "flight" => flight().sum::<u64>() as f64 / flight().count() as f64 / MSS,
            "flight_max" => flight().max().expect("samples") as f64 / MSS,
            "rtt" => mean(&series.flows[0].srtt_ns[from..].iter().map(|&ns| ns as f64 / 1e6).collect::<Vec<_>>()),
            "wait" => mean(&waits()),
            "wait_p99" => waits()[((waits().len() - 1) as f64 * 0.99) as usize],
            "max_pacing" => *series.flows[0].pacing_bps.iter().max().expect("samples") as f64 / 1e6,
            "mean" => mean(&shown().collect::<Vec<_>>()),
            "min" => shown().fold(f64::INFINITY, f64::min),
            "max" => shown().fold(f64::NEG_INFINITY, f64::max),
            _ => panic!("no quantity is called {name}"),
        }
    }
}

/// Describe the error of a quantity, if any, by an expectation of the tables.
fn check(case: &Case<'_>, measured: &[Measured], expectation: &str) -> Option<String> {
    let operator = expectation.find(['<', '>', '=']).expect(expectation);
    let (name, bound) = expectation.split_at(operator);
    let found = measured.iter().map(|one| one.get(name)).sum::<f64>() / measured.len() as f64;
    let number = |text: &str| text.parse::<f64>().expect(expectation);
    let met = if let Some(bound) = bound.strip_prefix(">=") {
        found >= number(bound)
    } else if let Some(bound) = bound.strip_prefix("<=") {
        found <= number(bound)
    } else if let Some(bound) = bound.strip_prefix('>') {
        found > number(bound)
    } else if let Some(bound) = bound.strip_prefix('<') {
        found < number(bound)
    } else if let Some((min, max)) = bound[1..].split_once("..") {
        (number(min)..=number(max)).contains(&found)
    } else if let Some((expected, tolerance)) = bound[1..].split_once('±') {
        let (expected, tolerance) = (number(expected), number(tolerance));
        let what = format!("{}, {}: {name}", case.flows, case.path);
        print_expected(&format!("expectations::{}", case.name), &what, found, expected, tolerance);
        (found / expected - 1.0).abs() <= tolerance
    } else {
        found == number(&bound[1..])
    };
    let Case { name, flows, path, seeds, .. } = case;
    (!met).then(|| format!("{name}, {flows}, {path}, seeds {seeds:?}: found {found}, expected {expectation}"))
}

#[test]
fn table() {
    let text = expanded();
    let lines: Vec<_> = cells(&text).filter(|(_, cells)| cells[0] != "Flows").collect();
    let headings = text.lines().filter(|line| line.starts_with("### "));
    assert!(headings.clone().count() > 40, "the tables were not found");
    for heading in headings {
        assert!(lines.iter().any(|(name, _)| heading.ends_with(name)), "{heading} has no line");
    }
    let cases: Vec<_> = lines.iter().flat_map(cases).collect();
    let wrong = cases.par_iter().flat_map_iter(|case| {
        let measured: Vec<_> = case.seeds.iter().map(|&seed| Measured::of(case, seed)).collect();
        case.expected.split_whitespace().filter_map(|one| check(case, &measured, one)).collect::<Vec<_>>()
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} runs:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
