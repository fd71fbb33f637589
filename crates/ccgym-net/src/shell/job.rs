//! What `ccgym shell` is told: the path, what runs at its ends, and what to write down.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ccgym_path::ElementSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::system::Placement;

/// A shell, as data (JSON).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellJob {
    /// The path, a `ShellPath`. It may come from a file of the user's, so it is read in a step of its own.
    pub path: Value,
    /// What errors call the path: a file name, for example.
    pub origin: String,
    /// Files of the traces that the path names.
    #[serde(default)]
    pub traces: BTreeMap<String, PathBuf>,
    /// Put before the prompt, as mahimahi does: `[delay 51 ms] [link] `.
    pub label: String,
    /// What runs inside; if empty, the user's shell.
    #[serde(default)]
    pub command: Vec<String>,
    /// Seed of losses and everything else that is random; by default a new one each time.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Memory for the packets under way in each direction, bytes.
    pub packet_memory: usize,
    /// What runs at the other end.
    #[serde(default)]
    pub outside: Option<OutsideJob>,
    /// Where the other end is: by default this machine where that is allowed.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// The user that the programs run as.
    #[serde(default)]
    pub user: Option<String>,
    /// Links that mahimahi's logs are written of.
    #[serde(default)]
    pub link_logs: Vec<LinkLogJob>,
    /// Log of the packets of the uplink.
    #[serde(default)]
    pub datalink_log: Option<PathBuf>,
    /// Log of the packets of the downlink.
    #[serde(default)]
    pub acklink_log: Option<PathBuf>,
    /// Flows to tell apart in them, by port; 0 if all is one.
    #[serde(default)]
    pub flows: u32,
    /// Whether to say at the end how it went, on standard error.
    #[serde(default)]
    pub summary: bool,
    /// Groups of traces. The shell ends as soon as all traces of a group have been played once.
    #[serde(default)]
    pub ends_with: Vec<Vec<String>>,
}

/// The elements of a path, in the order in which packets meet them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellPath {
    /// What a packet from the command crosses.
    pub uplink: Vec<ElementSpec>,
    /// What a packet to the command crosses.
    pub downlink: Vec<ElementSpec>,
}

impl ShellPath {
    /// The elements of one direction.
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
    /// Words for `/bin/sh`.
    pub command: String,
    /// Where its output goes; by default to standard error.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// The TCP or UDP port that it opens; the path starts then.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the command outwards.
    Uplink,
    /// To the command.
    Downlink,
}

/// mahimahi's log of one direction of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkLogJob {
    /// Which direction.
    pub direction: Direction,
    /// Which element of that direction the link is.
    pub element: usize,
    /// Where the log goes.
    pub file: PathBuf,
    /// The command line that its header quotes.
    pub command_line: String,
    /// Labels of the shells around the link; empty if there are none.
    #[serde(default)]
    pub outer: String,
}

impl ShellJob {
    /// Read the path.
    ///
    /// # Errors
    /// An element that cannot be, or a log of something that is not a link.
    pub fn elements(&self) -> Result<ShellPath> {
        let step = || format!("reading {}", self.origin);
        let path: ShellPath = serde_json::from_value(self.path.clone()).map_err(|error| {
            Error::of("file-malformed", step(), error).expected("elements as `ccgym path show PATH --spec` writes them")
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
