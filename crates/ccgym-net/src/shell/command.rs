//! mahimahi's command line, and the command that runs inside.
//!
//! `mm-delay 51 mm-loss uplink 0.0006 mm-link UP DOWN --uplink-queue=droptail --uplink-queue-args=packets=94 -- iperf3 …`
//!
//! The left-most tool is the outermost: a packet from the command meets the right-most first. Tools may be repeated
//! and nested in any order; what follows the last one is the command. Delays count in mahimahi's milliseconds and a
//! packet costs its 4 bytes more. The same text gives the same elements as `NetworkPath.from_mahimahi` in Python.

use std::path::PathBuf;

use ccgym_core::units::TimeSpan;
use ccgym_link::{ElementSpec, Param};

use super::link_options;
use super::words::{did_you_mean, number, quoted, refuse, shown, Word};
use crate::error::{NetError, Result};

/// The shells that describe a path.
pub const TOOLS: [&str; 6] = ["mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter"];

/// mahimahi's clock counts whole milliseconds.
pub(super) const TICK: TimeSpan = TimeSpan::from_millis(1);
/// Bytes that mahimahi charges per packet beside its IP length: the prefix of its TUN device.
pub(super) const OVERHEAD: u32 = 4;
const MAX_MS: u64 = 10_000_000_000;
/// Longer chains are refused.
const MAX_TOOLS: usize = 100;

/// A path, and what runs in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathCommand {
    /// What a packet from the command crosses, in that order.
    pub uplink: Vec<ElementSpec>,
    /// What a packet to the command crosses, in that order.
    pub downlink: Vec<ElementSpec>,
    /// Every `mm-link`, the outermost first.
    pub links: Vec<LinkUse>,
    /// The labels of all shells, as mahimahi puts them before the prompt: `[delay 51 ms] [link] `.
    pub label: String,
    /// What runs inside; none for the user's shell.
    pub command: Vec<String>,
    /// What the user should know about words that have no effect here.
    pub notes: Vec<String>,
}

/// One `mm-link` of a command line: where it stands in the path, and its logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Its two directions.
    pub directions: Vec<LinkDirection>,
    /// Whether it ends with its traces (`--once`), and the command with it.
    pub once: bool,
    /// Its words and all that follow, quoted, as its log shows them.
    pub command_line: String,
    /// Labels of the shells around it; none if there are none.
    pub outer: Option<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// From the command outwards.
    pub up: bool,
    /// Which element of that direction it is.
    pub element: usize,
    /// Its trace, as written; empty for a rate.
    pub trace: String,
    /// Its queue in the words of mahimahi's log: `droptail [packets=94]`.
    pub queue: String,
    /// Where its log goes.
    pub log: Option<PathBuf>,
}

/// Read a chain of mahimahi shells and the command in it.
///
/// # Errors
/// Which word cannot be, what could stand there, and what may have been meant.
pub fn parse(words: &[String]) -> Result<PathCommand> {
    let mut reader = Reader { words: Word::number(words), at: 0, tool: String::new() };
    reader.read()
}

/// An element with its direction: both where `up` is none.
enum Stage {
    Both(ElementSpec),
    One { up: bool, spec: ElementSpec },
    Link(Box<link_options::Link>),
}

pub(super) struct Reader {
    pub words: Vec<Word>,
    pub at: usize,
    pub tool: String,
}

impl Reader {
    fn read(&mut self) -> Result<PathCommand> {
        if self.words.is_empty() {
            return Err(NetError::new("mahimahi command", "no words")
                .expected("a chain of mahimahi shells, like `mm-delay 51 mm-link up.trace down.trace`"));
        }
        let mut path = PathCommand::default();
        let mut stages = Vec::new();
        while let Some(word) = self.words.get(self.at) {
            let tool = word.text.clone();
            if !TOOLS.contains(&tool.as_str()) {
                self.check_command(&tool, !stages.is_empty() || !path.label.is_empty())?;
                path.command = self.words[self.at..].iter().map(|w| w.text.clone()).collect();
                break;
            }
            self.tool = tool;
            if stages.len() == MAX_TOOLS {
                let expected = format!("at most {MAX_TOOLS}");
                return Err(self.fail_at(self.at, "more tools than anybody needs", &expected, None));
            }
            let command_line = if self.tool == "mm-link" { self.rest_quoted() } else { String::new() };
            self.at += 1;
            match self.tool.as_str() {
                "mm-link" => {
                    let mut link = self.link()?;
                    link.command_line = command_line;
                    link.outer = (!path.label.is_empty()).then(|| path.label.clone());
                    path.label += "[link] ";
                    path.notes.extend(link.notes.take());
                    stages.push(Stage::Link(Box::new(link)));
                }
                "mm-meter" => {
                    self.meter()?;
                    path.label += "[meter] ";
                    path.notes.push("mm-meter draws no graphs here: it has no effect".into());
                }
                _ => {
                    let (stage, label) = self.simple()?;
                    path.label += &label;
                    stages.push(stage);
                }
            }
            self.tool.clear();
        }
        arrange(&mut path, stages);
        Ok(path)
    }

    /// The word before the current one, or the end.
    pub fn fail(&self, found: impl std::fmt::Display, expected: &str, hint: Option<String>) -> NetError {
        self.fail_at(self.at.saturating_sub(1), found, expected, hint)
    }

    pub fn fail_at(&self, at: usize, found: impl std::fmt::Display, expected: &str, hint: Option<String>) -> NetError {
        let position = self.words.get(at).map_or("after the last".to_owned(), |w| w.place.to_string());
        let tool = if self.tool.is_empty() { String::new() } else { format!(" ({})", self.tool) };
        refuse(&format!("mahimahi command, word {position}{tool}"), found, expected, hint)
    }

    pub fn next(&mut self, what: &str) -> Result<String> {
        self.at += 1;
        match self.words.get(self.at - 1) {
            Some(word) => Ok(word.text.clone()),
            None => Err(self.fail("the end of the command", what, None)),
        }
    }

    /// What is no tool is the command, unless it looks like a slip.
    fn check_command(&self, word: &str, inside: bool) -> Result<()> {
        let hint = did_you_mean(word, &TOOLS);
        let slip = word.is_empty() || word.starts_with('-') || (word.starts_with("mm-") && hint.is_some());
        if inside && !slip {
            return Ok(());
        }
        let expected = if inside { "a further tool, or the command to run" } else { "a first tool" };
        let found = if word.starts_with('-') {
            format!("the option {}", shown(word))
        } else {
            format!("unknown tool {}", shown(word))
        };
        Err(self.fail_at(self.at, found, &format!("{expected}; tools are {}", TOOLS.join(", ")), hint))
    }

    fn rest_quoted(&self) -> String {
        self.words[self.at..].iter().map(|w| quoted(&w.text)).collect::<Vec<_>>().join(" ")
    }

    /// A tool with operands only; mahimahi reads no options there.
    fn simple(&mut self) -> Result<(Stage, String)> {
        let made = match self.tool.as_str() {
            "mm-delay" => {
                let ms = self.milliseconds()?;
                let delay = Param::Constant(TimeSpan::from_millis(ms));
                (Stage::Both(ElementSpec::Delay { delay, tick: TICK }), format!("[delay {ms} ms] "))
            }
            "mm-loss" => {
                let up = self.direction()?;
                let (value, text) = self.probability()?;
                let spec = ElementSpec::Loss { probability: Param::Constant(value) };
                (Stage::One { up, spec }, format!("[loss {}={text}] ", if up { "up" } else { "down" }))
            }
            tool => {
                let fixed = tool == "mm-intermittent";
                let up = self.direction()?;
                let (on, on_text) = self.seconds(if fixed { "ON" } else { "MEAN_ON" })?;
                let (off, off_text) = self.seconds(if fixed { "OFF" } else { "MEAN_OFF" })?;
                let spec = if fixed {
                    ElementSpec::Intermittent { on, off }
                } else {
                    ElementSpec::OnOff { mean_on: on, mean_off: off, hold: false }
                };
                let name = if fixed { "intermittent" } else { "onoff" };
                let way = if up { "up" } else { "down" };
                (Stage::One { up, spec }, format!("[{name} ({way}) on={on_text}s off={off_text}s] "))
            }
        };
        self.skip_dashes();
        Ok(made)
    }

    /// `--` may stand before what is inside.
    fn skip_dashes(&mut self) {
        if self.words.get(self.at).is_some_and(|w| w.text == "--") {
            self.at += 1;
        }
    }

    fn milliseconds(&mut self) -> Result<u64> {
        let word = self.next("a delay in whole milliseconds")?;
        if let Some(ms) = whole(&word) {
            if ms <= MAX_MS {
                return Ok(ms);
            }
            let expected = format!("at most {MAX_MS} milliseconds");
            return Err(self.fail(format!("the delay {}", shown(&word)), &expected, None));
        }
        let hint = match word.strip_suffix("ms").and_then(whole) {
            Some(ms) => format!("write it without unit: mm-delay {ms}"),
            None if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                "mahimahi knows whole milliseconds only; a path of your own takes any time".into()
            }
            None => "mm-delay adds so much in each direction, so the RTT grows by twice as much".into(),
        };
        Err(self.fail(format!("the delay {}", shown(&word)), "whole milliseconds, like 51", Some(hint)))
    }

    /// Whether it is the uplink.
    fn direction(&mut self) -> Result<bool> {
        let word = self.next("uplink or downlink")?;
        match word.as_str() {
            "uplink" => Ok(true),
            "downlink" => Ok(false),
            _ => {
                let hint = did_you_mean(&word, &["uplink", "downlink"]);
                Err(self.fail(format!("the direction {}", shown(&word)), "uplink or downlink", hint))
            }
        }
    }

    fn probability(&mut self) -> Result<(f64, String)> {
        let word = self.next("a loss rate from 0 to 1")?;
        if let Some(value) = number(&word).filter(|value| (0.0..=1.0).contains(value)) {
            return Ok((value, word));
        }
        let per_cent = number(word.trim_end_matches('%')).filter(|value| (0.0..=100.0).contains(value));
        let hint = per_cent.map(|p| format!("if you mean {p} per cent, write {}", p / 100.0));
        Err(self.fail(format!("the loss rate {}", shown(&word)), "a fraction from 0 to 1", hint))
    }

    fn seconds(&mut self, what: &str) -> Result<(TimeSpan, String)> {
        let word = self.next(&format!("{what} in seconds"))?;
        match number(&word).filter(|value| (1e-9..=1e9).contains(value)) {
            Some(value) => Ok((TimeSpan(((value * 1e9).round_ties_even() as u64).max(1)), word)),
            None => {
                let unit = word.ends_with(char::is_alphabetic);
                let hint = unit.then(|| "times of this tool are in seconds, without unit".to_owned());
                Err(self.fail(format!("{what} {}", shown(&word)), "a number of seconds above zero", hint))
            }
        }
    }

    fn meter(&mut self) -> Result<()> {
        while self.words.get(self.at).is_some_and(|w| w.text.starts_with('-')) {
            let word = self.next("an option")?;
            match word.as_str() {
                "--" => break,
                "--meter-uplink" | "--meter-downlink" | "-u" | "-d" => {}
                _ => {
                    let found = format!("unknown option {}", shown(&word));
                    return Err(self.fail(found, "--meter-uplink or --meter-downlink", None));
                }
            }
        }
        Ok(())
    }
}

/// Put the stages, outermost first, into the order in which packets meet them.
fn arrange(path: &mut PathCommand, stages: Vec<Stage>) {
    // Where an uplink element stands is known when the last is in: count from the end first.
    for stage in stages {
        match stage {
            Stage::Both(spec) => {
                path.uplink.push(spec.clone());
                path.downlink.push(spec);
            }
            Stage::One { up: true, spec } => path.uplink.push(spec),
            Stage::One { up: false, spec } => path.downlink.push(spec),
            Stage::Link(link) => {
                let mut used = LinkUse {
                    directions: Vec::new(),
                    once: link.once,
                    command_line: link.command_line,
                    outer: link.outer,
                };
                for (up, way) in [(true, link.uplink), (false, link.downlink)] {
                    let elements = if up { &mut path.uplink } else { &mut path.downlink };
                    let queue = link_options::queue_words(&way.spec);
                    let (element, trace, log) = (elements.len(), way.trace, way.log);
                    used.directions.push(LinkDirection { up, element, trace, queue, log });
                    elements.push(way.spec);
                }
                path.links.push(used);
            }
        }
    }
    path.uplink.reverse();
    let last = path.uplink.len();
    for way in path.links.iter_mut().flat_map(|link| &mut link.directions).filter(|way| way.up) {
        way.element = last - 1 - way.element;
    }
}

pub(super) fn whole(word: &str) -> Option<u64> {
    (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
