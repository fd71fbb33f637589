//! The command line of `ccgym shell`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::command::{self, PathCommand};
use super::spec_file;
use super::store::USUAL_LIMIT;
use super::words::{did_you_mean, refuse, shown};
use crate::error::{NetError, Result};
use crate::system::Placement;

/// What `ccgym shell --help` says.
pub const HELP: &str = "\
usage: ccgym shell [options] -- MAHIMAHI-TOOLS… [-- COMMAND…]
       ccgym shell [options] --spec FILE [-- COMMAND…]

Run COMMAND (by default your shell) behind an emulated path, as mahimahi's tools do, in one process, without setuid
programs or firewall rules. The tools are mahimahi's, with their options, the left-most outermost:

  mm-delay MS                                      one-way delay in whole milliseconds, both directions
  mm-loss uplink|downlink RATE                     independent random loss, 0 to 1
  mm-onoff uplink|downlink MEAN_ON MEAN_OFF        exponential on and off periods in seconds
  mm-intermittent uplink|downlink ON OFF           fixed on and off periods in seconds
  mm-link UP-TRACE DOWN-TRACE [options]            a bottleneck; --uplink-queue=droptail|drophead|codel|pie|infinite,
          --uplink-queue-args=packets=N,…          its arguments (bytes, packets, target, interval, qdelay_ref,
          --uplink-log=FILE --once                 max_burst), the same for the downlink; logs; end with the traces

Uplink is from COMMAND outwards. As root, the other end is this machine: servers on it are reached at $MAHIMAHI_BASE.
As an ordinary user both ends are apart from the machine, and --outside starts what COMMAND shall reach. The exit
status is COMMAND's, 128 + N if signal N ended it. Nothing is left behind, however the shell ends.

Path:
  --seed N              seed of losses and of all else that is random; by default a new one each time
  --spec FILE           the path as JSON {\"uplink\": […], \"downlink\": […], \"traces\": {name: file}} instead of tools
  --name TEXT           with --spec: what the prompt shows, by default `path`
  --trace NAME=FILE     read the trace NAME from FILE; may be repeated
  --packet-memory MIB   memory for the packets under way in each direction, by default 512; what comes when it is full
                        is dropped, and a warning at the end says how many; mahimahi's queues have no such bound

Ends:
  --outside COMMAND     run COMMAND (words for /bin/sh) at the other end; it is ended with the shell
  --outside-log FILE    its output goes there, by default to standard error
  --outside-port PORT   wait until it listens on that TCP or UDP port before the clock and COMMAND start
  --isolated            as root: both ends apart from the machine
  --host                the other end is this machine (the default as root)
  --user NAME           as root: run COMMAND and the one outside as that user; by default as who called sudo, else as
                        root with all its rights

Records:
  --uplink-log FILE     with --spec: mahimahi's log of the first link of that direction
  --downlink-log FILE
  --datalink-log FILE   every packet of the uplink with its one-way delay, as Pantheon's analysis reads it
  --acklink-log FILE    the same of the downlink
  --tunnel-log PREFIX   both: PREFIX_datalink.log and PREFIX_acklink.log
  --flows N             tell N flows apart in them, by the ports 5001 to 5000+N outside; by default all is flow 1
  --summary             one line on standard error at the end: packets, drops, how exactly the schedule was kept
  --help

Examples:
  ccgym shell -- mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace \\
      --uplink-queue=droptail --uplink-queue-args=packets=94 --uplink-log=up.log
  ccgym shell --outside 'iperf3 -s -1' --outside-port 5201 -- mm-delay 20 -- sh -c 'iperf3 -c $MAHIMAHI_BASE'
  ccgym shell --seed 7 --summary -- mm-loss uplink 0.01 mm-delay 10 -- sh -c 'ping -c 10 $MAHIMAHI_BASE'
";

const WITH_VALUE: [&str; 15] = [
    "--seed",
    "--spec",
    "--trace",
    "--packet-memory",
    "--outside",
    "--outside-log",
    "--outside-port",
    "--user",
    "--uplink-log",
    "--downlink-log",
    "--datalink-log",
    "--acklink-log",
    "--tunnel-log",
    "--flows",
    "--name",
];
const FLAGS: [&str; 4] = ["--isolated", "--host", "--summary", "--help"];

/// What `--packet-memory` may be.
const PACKET_MEMORY_MIB: std::ops::RangeInclusive<usize> = 1..=1 << 20;

/// A command line, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Only the help is wanted.
    pub help: bool,
    /// The path and what runs in it.
    pub path: PathCommand,
    /// Seed; none for a random one.
    pub seed: Option<u64>,
    /// Where traces are, by the names that the path uses; other names are files.
    pub traces: BTreeMap<String, PathBuf>,
    /// Memory for the packets under way in each direction, bytes.
    pub packet_memory: usize,
    /// What runs at the other end.
    pub outside: Option<String>,
    /// Where its output goes.
    pub outside_log: Option<PathBuf>,
    /// Port that it opens.
    pub outside_port: Option<u16>,
    /// Where the other end is; none for the default.
    pub placement: Option<Placement>,
    /// As whom the programs run.
    pub user: Option<String>,
    /// Log of the packets of the uplink.
    pub datalink_log: Option<PathBuf>,
    /// Log of the packets of the downlink.
    pub acklink_log: Option<PathBuf>,
    /// Flows to tell apart; 0 if all is one.
    pub flows: u32,
    /// Say at the end how it went.
    pub summary: bool,
}

impl Options {
    /// Read a command line, without the word `shell`.
    ///
    /// # Errors
    /// Which word cannot be, what could stand there, and what may have been meant.
    pub fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self { packet_memory: USUAL_LIMIT, ..Self::default() };
        let mut given: Vec<(String, String)> = Vec::new();
        let mut rest = words;
        while let [word, tail @ ..] = rest {
            if word == "--" {
                rest = tail;
                break;
            }
            if !word.starts_with('-') {
                break;
            }
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let name = if name == "-h" { "--help" } else { name };
            rest = tail;
            if FLAGS.contains(&name) && value.is_none() {
                given.push((name.to_owned(), String::new()));
            } else if WITH_VALUE.contains(&name) {
                let value = match (value, tail) {
                    (Some(value), _) => value.to_owned(),
                    (None, [next, after @ ..]) => {
                        rest = after;
                        next.clone()
                    }
                    (None, []) => return Err(fail("the end of the command", &format!("a value after {name}"), None)),
                };
                if name != "--trace" && given.iter().any(|(known, _)| known == name) {
                    return Err(fail(format!("{name} a second time"), "each option once", None));
                }
                given.push((name.to_owned(), value));
            } else {
                let known: Vec<&str> = WITH_VALUE.into_iter().chain(FLAGS).collect();
                let hint = did_you_mean(name, &known).or_else(|| Some("`ccgym shell --help` explains them".into()));
                return Err(fail(format!("unknown option {}", shown(word)), &known.join(", "), hint));
            }
        }
        if given.iter().any(|(name, _)| name == "--help") {
            return Ok(Self { help: true, ..Self::default() });
        }
        options.fill(given, words, rest)?;
        Ok(options)
    }

    fn fill(&mut self, given: Vec<(String, String)>, words: &[String], rest: &[String]) -> Result<()> {
        let (mut spec, mut label, mut logs) = (None, None, (None, None));
        for (name, value) in given {
            let file = || non_empty(&name, &value).map(PathBuf::from);
            match name.as_str() {
                "--seed" => self.seed = Some(integer(&name, &value)?),
                "--spec" => spec = Some(file()?),
                "--name" => label = Some(value),
                "--trace" => {
                    let Some((trace, file)) = value.split_once('=').filter(|(a, b)| !a.is_empty() && !b.is_empty())
                    else {
                        return Err(fail(format!("--trace {}", shown(&value)), "--trace NAME=FILE", None));
                    };
                    self.traces.insert(trace.to_owned(), file.into());
                }
                "--packet-memory" => {
                    let mib: usize = integer(&name, &value)?;
                    if !PACKET_MEMORY_MIB.contains(&mib) {
                        let (least, most) = (PACKET_MEMORY_MIB.start(), PACKET_MEMORY_MIB.end());
                        return Err(fail(format!("--packet-memory {value}"), &format!("{least} to {most} MiB"), None));
                    }
                    self.packet_memory = mib << 20;
                }
                "--outside" => self.outside = Some(non_empty(&name, &value)?.to_owned()),
                "--outside-log" => self.outside_log = Some(file()?),
                "--outside-port" => {
                    let port: u16 = integer(&name, &value)?;
                    self.outside_port = (port > 0).then_some(port);
                }
                "--user" => self.user = Some(non_empty(&name, &value)?.to_owned()),
                "--uplink-log" => logs.0 = Some(file()?),
                "--downlink-log" => logs.1 = Some(file()?),
                "--datalink-log" => self.datalink_log = Some(file()?),
                "--acklink-log" => self.acklink_log = Some(file()?),
                "--tunnel-log" => {
                    non_empty(&name, &value)?;
                    self.datalink_log.get_or_insert_with(|| format!("{value}_datalink.log").into());
                    self.acklink_log.get_or_insert_with(|| format!("{value}_acklink.log").into());
                }
                "--flows" => {
                    self.flows = integer(&name, &value)?;
                    if self.flows > 60_000 {
                        return Err(fail(format!("--flows {value}"), "at most 60000", None));
                    }
                }
                "--isolated" | "--host" => {
                    let wanted = if name == "--host" { Placement::HostOutside } else { Placement::Isolated };
                    if self.placement.replace(wanted).is_some_and(|other| other != wanted) {
                        return Err(fail("--isolated and --host", "one of the two, or none", None));
                    }
                }
                _ => self.summary = true,
            }
        }
        for (option, set) in
            [("--outside-log", self.outside_log.is_some()), ("--outside-port", self.outside_port.is_some())]
        {
            if set && self.outside.is_none() {
                return Err(fail(format!("{option} without --outside"), "--outside COMMAND too", None));
            }
        }
        match spec {
            Some(file) => {
                if rest.first().is_some_and(|word| command::TOOLS.contains(&word.as_str())) {
                    let found = format!("--spec together with {}", rest[0]);
                    return Err(fail(found, "the path once: as a file, or as tools", None));
                }
                let own = &words[..words.len() - rest.len()];
                self.path = spec_file::read(&file, label, logs, own, &mut self.traces)?;
                self.path.command = rest.to_vec();
            }
            None if logs != (None, None) => {
                let hint = "mm-link UP DOWN --uplink-log=FILE".to_owned();
                return Err(fail("--uplink-log or --downlink-log without --spec", "it behind mm-link", Some(hint)));
            }
            None if rest.is_empty() => {
                let hint = "`ccgym shell --help` has examples".to_owned();
                return Err(fail("no path", "mahimahi's tools, like `mm-delay 20`, or --spec FILE", Some(hint)));
            }
            None => self.path = command::parse(rest)?,
        }
        Ok(())
    }
}

fn fail(found: impl std::fmt::Display, expected: &str, hint: Option<String>) -> NetError {
    refuse("ccgym shell", found, expected, hint)
}

fn integer<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| fail(format!("{name} {}", shown(value)), "a whole number, not negative", None))
}

fn non_empty<'a>(name: &str, value: &'a str) -> Result<&'a str> {
    if value.is_empty() {
        return Err(fail(format!("{name} with nothing"), "a value", None));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_end_where_the_path_begins() {
        let options =
            parse("--seed=7 --outside cat --trace a=b --trace c=d --tunnel-log p -- mm-delay 5 -- id -u").unwrap();
        assert_eq!((options.seed, options.outside.as_deref()), (Some(7), Some("cat")));
        assert_eq!(options.traces.len(), 2);
        assert_eq!(options.datalink_log.as_deref(), Some("p_datalink.log".as_ref()));
        assert_eq!(options.acklink_log.as_deref(), Some("p_acklink.log".as_ref()));
        assert_eq!(options.path.command, ["id", "-u"]);
        let without_dashes = parse("--isolated mm-delay 5 id").unwrap();
        assert_eq!(without_dashes.placement, Some(Placement::Isolated));
        assert_eq!(without_dashes.path.command, ["id"]);
        assert!(parse("--help").unwrap().help && parse("-h --seed x").unwrap().help);
        assert_eq!(parse("mm-delay 5 -- id --help").unwrap().path.command, ["id", "--help"]);
    }

    #[test]
    fn errors_say_what_was_meant() {
        for (line, parts) in [
            ("", &["no path", "--help"][..]),
            ("--sed 5 -- mm-delay 5", &["unknown option \"--sed\"", "did you mean \"--seed\"?"]),
            ("--seed x -- mm-delay 5", &["--seed \"x\"", "a whole number"]),
            ("--seed", &["a value after --seed"]),
            ("--seed 1 --seed 2 -- mm-delay 5", &["--seed a second time"]),
            ("--host --isolated -- mm-delay 5", &["one of the two"]),
            ("--outside-port 5 -- mm-delay 5", &["--outside-port without --outside"]),
            ("--trace x -- mm-delay 5", &["NAME=FILE"]),
            ("--uplink-log f -- mm-delay 5", &["without --spec", "mm-link"]),
            ("--summary=1 -- mm-delay 5", &["unknown option"]),
            ("--packet-memory 0 -- mm-delay 5", &["--packet-memory 0", "1 to 1048576 MiB"]),
            ("--spec none.json -- mm-delay 5", &["--spec together with mm-delay"]),
            ("--spec /nonexistent.json", &["/nonexistent.json"]),
            ("-- mm-dealy 5", &["did you mean \"mm-delay\"?"]),
        ] {
            let error = parse(line).err().unwrap_or_else(|| panic!("{line} was accepted")).to_string();
            for part in parts {
                assert!(error.contains(part), "{line}: {part:?} is not in\n{error}");
            }
        }
    }
}
