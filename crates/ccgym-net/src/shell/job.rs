//! Job of `ccgym shell`: the path, the programs at its ends, and the logs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ccgym_path::ElementSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::system::Placement;

/// Job of `ccgym shell` (JSON).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellJob {
    /// The path, a `ShellPath`. It can come from a user's file, so it is parsed in a separate step.
    pub path: Value,
    /// Name of the path in errors, such as a file name.
    pub origin: String,
    /// Trace files of the path.
    #[serde(default)]
    pub traces: BTreeMap<String, PathBuf>,
    /// Prefix of the prompt, as in mahimahi: `[delay 51 ms] [link] `.
    pub label: String,
    /// Command inside; if empty, the user's shell.
    #[serde(default)]
    pub command: Vec<String>,
    /// Seed of all random numbers; by default a new one each time.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Max memory for packets under way in each direction, bytes.
    pub packet_memory: usize,
    /// Command at the other end.
    #[serde(default)]
    pub outside: Option<OutsideJob>,
    /// Location of the other end: by default this machine if permitted.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// User that runs the programs.
    #[serde(default)]
    pub user: Option<String>,
    /// Links with a mahimahi log.
    #[serde(default)]
    pub link_logs: Vec<LinkLogJob>,
    /// Packet log of the uplink.
    #[serde(default)]
    pub datalink_log: Option<PathBuf>,
    /// Packet log of the downlink.
    #[serde(default)]
    pub acklink_log: Option<PathBuf>,
    /// Number of flows in these logs, by port; 0: all packets are one flow.
    #[serde(default)]
    pub flows: u32,
    /// True: write a summary to standard error at the end.
    #[serde(default)]
    pub summary: bool,
    /// Groups of traces. The shell ends when all traces of one group have been played once.
    #[serde(default)]
    pub ends_with: Vec<Vec<String>>,
}

/// Elements of a path, in the order in which packets cross them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellPath {
    /// Elements for packets from the command.
    pub uplink: Vec<ElementSpec>,
    /// Elements for packets to the command.
    pub downlink: Vec<ElementSpec>,
}

impl ShellPath {
    /// Return the elements of one direction.
    pub fn elements(&self, direction: Direction) -> &[ElementSpec] {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }
}

/// The command at the other end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideJob {
    /// Command line for `/bin/sh`.
    pub command: String,
    /// File for its output; by default standard error.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// TCP or UDP port that it opens; the path starts then.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the command to the outside.
    Uplink,
    /// From the outside to the command.
    Downlink,
}

/// Mahimahi log of one direction of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLogJob {
    /// Direction of the packets.
    pub direction: Direction,
    /// Index of the link among the elements of that direction.
    pub element: usize,
    /// Path of the log.
    pub file: PathBuf,
    /// Command line in its header.
    pub command_line: String,
    /// Labels of the shells around the link; empty if there are none.
    #[serde(default)]
    pub outer: String,
}

impl ShellJob {
    /// Parse the path.
    ///
    /// # Errors
    /// An invalid element; a log of an element that is not a link.
    pub fn elements(&self) -> Result<ShellPath> {
        let step = || format!("reading {}", self.origin);
        let path: ShellPath = serde_json::from_value(self.path.clone()).map_err(|error| {
            Error::of("file-malformed", step(), error)
                .expected("elements as `ccgym paths show PATH --spec` writes them")
        })?;
        for log in &self.link_logs {
            if !matches!(path.elements(log.direction).get(log.element), Some(ElementSpec::Link { .. })) {
                return Err(
                    Error::of("wrong-type", step(), format!("a log of element {}", log.element)).expected("a link")
                );
            }
        }
        Ok(path)
    }
}
