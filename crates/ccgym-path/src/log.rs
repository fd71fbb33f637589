//! mm-link's log file, written and read (mahimahi `link_queue.cc`, `linkshell.cc`).
//!
//! Reads the logs of release 0.98, which have no drops, and of mahimahi's master, which has them as `d` lines. Its
//! scripts `mm-throughput-graph` and `mm-delay-graph` do not know these and stop there, so a drop is written as
//! master's line after a `#`, which every reader skips. A drop at dequeue, which mahimahi does not log at all, is
//! written at its time.

use std::fmt;
use std::io;

use ccgym_core::units::Timestamp;
use ccgym_core::Error;

use crate::element::LinkEvent;

/// The comment lines at the top.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogHeader {
    /// Mahimahi's text after `# mahimahi`, such as `mm-link (Uplink) [up.trace] > up.log`.
    pub title: String,
    /// The command line.
    pub command: String,
    /// The queue, such as `droptail [packets=2]`.
    pub queue: String,
    /// Start of the shell, milliseconds since the Unix epoch.
    pub init_ms: u64,
    /// Start of the trace, milliseconds after `init_ms`: trace time = log time − base.
    pub base_ms: u64,
    /// Outer shells, such as `[delay 20 ms] `; none if not nested.
    pub config: Option<String>,
}

/// One event line. Times in milliseconds after init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// `T # N`: an opportunity of N bytes.
    Opportunity {
        /// Time in milliseconds.
        ms: u64,
        /// Bytes.
        bytes: u32,
    },
    /// `T + N`: an arrival.
    Arrival {
        /// Time in milliseconds.
        ms: u64,
        /// IP length + 4 bytes.
        bytes: u32,
    },
    /// `T - N D`: a departure.
    Departure {
        /// Time in milliseconds.
        ms: u64,
        /// IP length + 4 bytes.
        bytes: u32,
        /// Time in this link, milliseconds.
        delay_ms: u64,
    },
    /// `T d P B`, or the same after `# `: a loss.
    Drop {
        /// Time in milliseconds.
        ms: u64,
        /// Packets lost.
        packets: u64,
        /// Bytes of the packets.
        bytes: u64,
    },
}

impl fmt::Display for LogHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# mahimahi {}", self.title)?;
        writeln!(f, "# command line: {}", self.command)?;
        writeln!(f, "# queue: {}", self.queue)?;
        writeln!(f, "# init timestamp: {}", self.init_ms)?;
        writeln!(f, "# base timestamp: {}", self.base_ms)?;
        match &self.config {
            Some(config) => writeln!(f, "# mahimahi config: {config}"),
            None => Ok(()),
        }
    }
}

/// Write the lines below the header: whole milliseconds, `base_ms` after the events', in order of processing. Events
/// are those of [`crate::PathElement::take_events`], with time 0 at the start of the trace.
///
/// # Errors
/// Errors of the writer.
pub fn write_events(out: &mut impl io::Write, base_ms: u64, events: &[LinkEvent]) -> io::Result<()> {
    let ms = |at: Timestamp| at.as_millis() + base_ms;
    for event in events {
        match *event {
            LinkEvent::Opportunity(at, bytes) => writeln!(out, "{} # {bytes}", ms(at))?,
            LinkEvent::Arrival(at, bytes, _) => writeln!(out, "{} + {bytes}", ms(at))?,
            LinkEvent::Departure(at, bytes, _, arrived) => {
                writeln!(out, "{} - {bytes} {}", ms(at), at.as_millis() - arrived.as_millis())?;
            }
            LinkEvent::Drop(at, bytes, _) => writeln!(out, "# {} d 1 {bytes}", ms(at))?,
        }
    }
    Ok(())
}

/// Read a log.
///
/// # Errors
/// The first line that is not of a mm-link log.
pub fn parse_log(text: &[u8]) -> Result<(LogHeader, Vec<LogLine>), Error> {
    let mut header = LogHeader::default();
    let mut lines = Vec::new();
    for (index, raw) in text.split(|&b| b == b'\n').enumerate() {
        let line = String::from_utf8_lossy(raw);
        let fail = |expected| {
            let expected = format!("{expected}; is this the log of one direction of mm-link?");
            Error::new(format!("line {}", index + 1), format!("{line:.60?}"), expected)
        };
        if let Some(comment) = line.strip_prefix("# ") {
            match read_event(comment) {
                Some(drop @ LogLine::Drop { .. }) => lines.push(drop),
                _ => read_header(&mut header, comment).map_err(fail)?,
            }
        } else if !line.is_empty() && line != "#" {
            lines.push(read_event(&line).ok_or_else(|| fail("`T # N`, `T + N`, `T - N D` or `T d P B`"))?);
        }
    }
    Ok((header, lines))
}

fn read_header(header: &mut LogHeader, comment: &str) -> Result<(), &'static str> {
    let number = |value: &str| value.trim().parse().map_err(|_| "a number of milliseconds");
    if let Some(value) = comment.strip_prefix("mahimahi config: ") {
        header.config = Some(value.to_owned());
    } else if let Some(value) = comment.strip_prefix("mahimahi ") {
        header.title = value.to_owned();
    } else if let Some(value) = comment.strip_prefix("command line: ") {
        header.command = value.to_owned();
    } else if let Some(value) = comment.strip_prefix("queue: ") {
        header.queue = value.to_owned();
    } else if let Some(value) = comment.strip_prefix("init timestamp: ") {
        header.init_ms = number(value)?;
    } else if let Some(value) = comment.strip_prefix("base timestamp: ") {
        header.base_ms = number(value)?;
    }
    Ok(())
}

fn read_event(line: &str) -> Option<LogLine> {
    let mut fields = line.split_ascii_whitespace();
    let ms = fields.next()?.parse().ok()?;
    let event = match fields.next()? {
        "#" => LogLine::Opportunity { ms, bytes: fields.next()?.parse().ok()? },
        "+" => LogLine::Arrival { ms, bytes: fields.next()?.parse().ok()? },
        "-" => LogLine::Departure { ms, bytes: fields.next()?.parse().ok()?, delay_ms: fields.next()?.parse().ok()? },
        "d" => LogLine::Drop { ms, packets: fields.next()?.parse().ok()?, bytes: fields.next()?.parse().ok()? },
        _ => return None,
    };
    fields.next().is_none().then_some(event)
}
