//! Options and queues of `mm-link`.
//!
//! As GNU getopt does it, options may stand anywhere up to `--`: also behind the traces and behind the first words of
//! the inner command. Where mahimahi ignores or cuts something silently (unknown queue arguments, decimals in them,
//! options which an inner `mm-link` was meant to have), this reader refuses it and says why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ccgym_link::{ElementSpec, LimitSpec, QueueSpec, ScheduleSpec};

use super::command::{whole, Reader, OVERHEAD, TOOLS};
use super::words::{did_you_mean, number, refuse, shown};
use crate::error::{NetError, Result};

const WITH_VALUE: [&str; 6] = [
    "--uplink-log",
    "--downlink-log",
    "--uplink-queue",
    "--downlink-queue",
    "--uplink-queue-args",
    "--downlink-queue-args",
];
const FLAGS: [&str; 6] =
    ["--once", "--meter-uplink", "--meter-downlink", "--meter-uplink-delay", "--meter-downlink-delay", "--meter-all"];
/// Kinds of queues and the names of their arguments; from the third on they are needed.
const QUEUES: [(&str, &[&str]); 5] = [
    ("infinite", &[]),
    ("droptail", &["packets", "bytes"]),
    ("drophead", &["packets", "bytes"]),
    ("codel", &["packets", "bytes", "target", "interval"]),
    ("pie", &["packets", "bytes", "qdelay_ref", "max_burst"]),
];

/// A link as written.
pub(super) struct Link {
    pub uplink: Way,
    pub downlink: Way,
    pub once: bool,
    pub notes: Option<String>,
    pub command_line: String,
    pub outer: Option<String>,
}

/// One direction of it.
pub(super) struct Way {
    pub trace: String,
    pub spec: ElementSpec,
    pub log: Option<PathBuf>,
}

impl Reader {
    /// Read what follows `mm-link`, and leave the inner command without the options that this link has taken.
    pub fn link(&mut self) -> Result<Link> {
        let first = self.at;
        let mut operands: Vec<usize> = Vec::new();
        let mut options: BTreeMap<String, String> = BTreeMap::new();
        let mut end = None;
        while self.at < self.words.len() {
            let word = self.next("a trace or an option")?;
            if word == "--" {
                end = Some(self.at);
                break;
            }
            if word.starts_with('-') && word != "-" {
                self.option(&word, &mut options, &operands)?;
            } else {
                operands.push(self.at - 1);
            }
        }
        let traces = "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE";
        let [up, down, inner @ ..] = &operands[..] else {
            let found = format!("{} trace{}", operands.len(), if operands.len() == 1 { "" } else { "s" });
            return Err(self.fail_at(first - 1, found, traces, None));
        };
        let (up, down) = (self.words[*up].text.clone(), self.words[*down].text.clone());
        for name in [&up, &down] {
            if name.is_empty() || TOOLS.contains(&name.as_str()) {
                return Err(self.fail_at(first, format!("{} as trace", shown(name)), traces, None));
            }
        }
        if end.is_none() {
            self.refuse_stolen_options(inner)?;
        }
        let link = Link {
            uplink: way("uplink", up, &options)?,
            downlink: way("downlink", down, &options)?,
            once: options.contains_key("--once"),
            notes: options
                .keys()
                .find(|name| name.starts_with("--meter"))
                .map(|name| format!("mm-link {name}: graphs are not drawn here; it has no effect")),
            command_line: String::new(),
            outer: None,
        };
        let rest = inner.iter().copied().chain(end.unwrap_or(self.words.len())..self.words.len());
        self.words = rest.map(|index| self.words[index].clone()).collect();
        self.at = 0;
        Ok(link)
    }

    /// An option behind an inner `mm-link` would go to the outer one, which nobody means.
    fn refuse_stolen_options(&self, inner: &[usize]) -> Result<()> {
        let Some(&start) = inner.first() else { return Ok(()) };
        let stray = (start..self.at).find(|index| self.words[*index].text.starts_with("--") && !inner.contains(index));
        match stray {
            Some(stray) if inner.iter().any(|&index| self.words[index].text == "mm-link") => {
                let found = format!("the option {} behind an inner mm-link", shown(&self.words[stray].text));
                let hint = "mahimahi's outer mm-link would take the option for itself".to_owned();
                Err(self.fail_at(stray, found, "it before that tool, or `--` before that tool", Some(hint)))
            }
            _ => Ok(()),
        }
    }

    fn option(&mut self, word: &str, options: &mut BTreeMap<String, String>, operands: &[usize]) -> Result<()> {
        if let Some((name, value)) = short(word) {
            let value = if value.is_empty() { self.next(&format!("a file name after {word}"))? } else { value };
            options.insert(name.to_owned(), value);
            return Ok(());
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if FLAGS.contains(&name) {
            if value.is_some() {
                return Err(self.fail(shown(word), &format!("{name} without a value"), None));
            }
            options.insert(name.to_owned(), String::new());
            return Ok(());
        }
        if !WITH_VALUE.contains(&name) {
            return Err(self.unknown_option(name, operands));
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => self.next(&format!("a value after {name}"))?,
        };
        if !name.ends_with("-log") && options.contains_key(name) {
            return Err(self.fail(format!("{name} a second time"), "each option once", None));
        }
        options.insert(name.to_owned(), value);
        Ok(())
    }

    fn unknown_option(&self, name: &str, operands: &[usize]) -> NetError {
        let command = operands.get(2).map(|&index| self.words[index].text.as_str());
        if let Some(command) = command.filter(|word| !TOOLS.contains(word)) {
            let found = format!("the option {} of the command {}", shown(name), shown(command));
            let hint =
                format!("write: mm-link UP DOWN … -- {command} …; mahimahi too would take the option for its own");
            return self.fail(found, "`--` before a command that has options", Some(hint));
        }
        let known: Vec<&str> = WITH_VALUE.into_iter().chain(FLAGS).collect();
        self.fail(format!("unknown option {}", shown(name)), &known.join(", "), did_you_mean(name, &known))
    }
}

/// `-u F` and `-d F`, also in one word.
fn short(word: &str) -> Option<(&'static str, String)> {
    let name = match word.get(..2)? {
        "-u" => "--uplink-log",
        "-d" => "--downlink-log",
        _ => return None,
    };
    Some((name, word[2..].to_owned()))
}

fn way(direction: &str, trace: String, options: &BTreeMap<String, String>) -> Result<Way> {
    let get = |what: &str| options.get(&format!("--{direction}-{what}"));
    let kind = get("queue").map_or("infinite", String::as_str);
    let queue = queue(direction, kind, get("queue-args").map(String::as_str))?;
    let schedule = ScheduleSpec::Trace { name: trace.clone(), once: options.contains_key("--once") };
    let spec = ElementSpec::Link { schedule, queue, overhead: OVERHEAD, device_packets: 0 };
    let log = get("log").map(PathBuf::from);
    if log.as_ref().is_some_and(|log| log.as_os_str().is_empty()) {
        let place = format!("mahimahi command (mm-link --{direction}-log)");
        return Err(refuse(&place, "an empty file name", "the name of a log file", None));
    }
    Ok(Way { trace, spec, log })
}

fn queue(direction: &str, kind: &str, arguments: Option<&str>) -> Result<QueueSpec> {
    let place = format!("mahimahi command (mm-link --{direction}-queue)");
    let Some((_, known)) = QUEUES.iter().find(|(name, _)| *name == kind) else {
        let kinds = QUEUES.map(|(name, _)| name);
        return Err(refuse(
            &place,
            format!("unknown queue {}", shown(kind)),
            &kinds.join(", "),
            did_you_mean(kind, &kinds),
        ));
    };
    let place = format!("mahimahi command (mm-link --{direction}-queue-args of {kind})");
    if kind == "infinite" {
        return match arguments {
            None => Ok(QueueSpec::Infinite),
            Some(text) => {
                let hint = text.contains("packets").then(|| format!("did you mean --{direction}-queue=droptail?"));
                let found = format!("arguments {}", shown(text));
                Err(refuse(&place, found, "none: the infinite queue takes none", hint))
            }
        };
    }
    let given = queue_arguments(&place, known, arguments.unwrap_or_default())?;
    let limit = LimitSpec { packets: given.get("packets").copied(), bytes: given.get("bytes").copied() };
    if limit == LimitSpec::default() {
        let hint = format!("write --{direction}-queue-args=packets=100");
        return Err(refuse(&place, format!("{kind} without a limit"), "packets=N or bytes=N", Some(hint)));
    }
    let needed = &known[2..];
    let missing: Vec<&str> = needed.iter().copied().filter(|name| !given.contains_key(name)).collect();
    if !missing.is_empty() {
        let expected = format!("{}=MS and {}=MS, both above zero", needed[0], needed[1]);
        return Err(refuse(&place, format!("{kind} without {}", missing.join(" and ")), &expected, None));
    }
    let value = |index: usize| needed.get(index).and_then(|name| given.get(name)).copied().unwrap_or_default();
    Ok(match kind {
        "droptail" => QueueSpec::Droptail { limit },
        "drophead" => QueueSpec::Drophead { limit },
        "codel" => QueueSpec::MahimahiCodel { limit, target_ms: value(0), interval_ms: value(1) },
        _ => QueueSpec::MahimahiPie { limit, qdelay_ref_ms: value(0), max_burst_ms: value(1) },
    })
}

/// `name=int, name=int`. mahimahi searches for substrings and cuts decimals; here that is an error.
fn queue_arguments<'a>(place: &str, known: &[&'a str], text: &str) -> Result<BTreeMap<&'a str, u64>> {
    let mut given = BTreeMap::new();
    for part in text.split(|c: char| c == ',' || c.is_whitespace()).filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
        let Some(&name) = known.iter().find(|&&one| one == name) else {
            let elsewhere = QUEUES.iter().any(|(_, names)| names.contains(&name));
            let ignored = if elsewhere { "it" } else { "unknown arguments" };
            let hint = did_you_mean(name, known).unwrap_or_else(|| format!("mahimahi ignores {ignored} silently"));
            let found = format!("unknown argument {}", shown(name));
            return Err(refuse(place, found, &known.join(", "), Some(hint)));
        };
        let value = value.unwrap_or_default();
        let Some(count) = whole(value).filter(|_| value.len() <= 12) else {
            let hint = number(value).map(|_| "mahimahi cuts decimals".to_owned());
            return Err(refuse(place, shown(part), &format!("{name}=N with a whole number"), hint));
        };
        if count == 0 {
            let hint = "mahimahi takes 0 for not given".to_owned();
            return Err(refuse(place, shown(part), "a number above zero", Some(hint)));
        }
        if given.insert(name, count).is_some() {
            return Err(refuse(place, format!("{name} a second time"), "each argument once", None));
        }
    }
    Ok(given)
}

/// A link's queue in the words of mahimahi's log.
pub(super) fn queue_words(spec: &ElementSpec) -> String {
    let ElementSpec::Link { queue, .. } = spec else { return String::new() };
    let (kind, limit) = match queue {
        QueueSpec::Infinite => return "infinite".into(),
        QueueSpec::Droptail { limit } => ("droptail", limit),
        QueueSpec::Drophead { limit } => ("drophead", limit),
        QueueSpec::MahimahiCodel { limit, .. } | QueueSpec::Codel { limit, .. } => ("codel", limit),
        QueueSpec::MahimahiPie { limit, .. } => ("pie", limit),
        QueueSpec::FqCodel { limit, .. } => ("fq_codel", limit),
    };
    let limits = [("bytes", limit.bytes), ("packets", limit.packets)];
    let limits = limits.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
    format!("{kind} [{}]", limits.collect::<Vec<_>>().join(", "))
}
