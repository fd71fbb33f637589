//! External programs as a flow: a sender inside the path and a receiver outside.
//!
//! One of the two listens on the port of its flow and is started first; the other gets address and port, and is
//! started when the flow starts. Each runs in its own PID namespace, which is removed with all processes at the end.
//! The size of their stored output is limited. The path counts their packets.

mod process;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ccgym_core::{TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use self::process::Process;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::system::{is_listened_on, Namespace};

/// Max time until a program listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(8);
/// Interval between checks of a program.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Seconds to add to the duration given to a program, so that it does not end by itself.
const SPARE_SECONDS: u64 = 60;

/// One of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The sender, inside the path.
    Sender,
    /// The receiver, outside.
    Receiver,
}

impl End {
    /// Return its name in errors and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// Command lines of two programs (JSON). In their words, `{port}` is the port of the one that listens, `{address}` its
/// address, `{seconds}` a time longer than the flow's, in whole seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// The end that listens.
    pub listens: End,
    /// Words of the sender's command line.
    pub sender: Vec<String>,
    /// Words of the receiver's command line.
    pub receiver: Vec<String>,
}

impl ProgramSpec {
    /// Return the command line of an end, for a flow of this duration.
    fn words(&self, end: End, address: Ipv4Addr, port: u16, span: TimeSpan) -> Vec<String> {
        let words = match end {
            End::Sender => &self.sender,
            End::Receiver => &self.receiver,
        };
        let seconds = span.0.div_ceil(1_000_000_000) + SPARE_SECONDS;
        let filled = |word: &String| {
            word.replace("{port}", &port.to_string())
                .replace("{address}", &address.to_string())
                .replace("{seconds}", &seconds.to_string())
        };
        words.iter().map(filled).collect()
    }
}

/// Task of one end of a flow.
pub struct ProgramTask {
    /// Index of the flow.
    pub flow: usize,
    /// Scheme of the flow.
    pub scheme: String,
    /// Both programs.
    pub program: ProgramSpec,
    /// The end to run.
    pub end: End,
    /// Network namespace of this end.
    pub namespace: Arc<Namespace>,
    /// Address of the end that listens.
    pub address: Ipv4Addr,
    /// Port of that end.
    pub port: u16,
    /// The run's clock.
    pub clock: Clock,
    /// Start of the flow.
    pub start: Timestamp,
    /// End of the flow: the program must not end by itself before.
    pub stop: Timestamp,
    /// Time to end this program.
    pub until: Timestamp,
    /// True: end it now.
    pub halt: Arc<AtomicBool>,
}

/// In a thread of the task's namespace, run a program until its end time. Return its output. `ready`: the flow can start.
///
/// # Errors
/// A program that cannot be started, does not listen, or ends by itself too early.
pub fn carry_out(task: &ProgramTask, ready: &dyn Fn()) -> Result<String> {
    let span = task.stop.since(task.start);
    let words = task.program.words(task.end, task.address, task.port, span);
    let step = format!("flow {}, the {} of {}", task.flow, task.end.name(), task.scheme);
    let start = || Process::start(&step, &words, &task.namespace);
    let process = if task.end == task.program.listens {
        let process = start()?;
        task.wait_until_it_listens(&process)?;
        ready();
        process
    } else {
        ready();
        while !task.clock.has_started() || task.clock.now() < task.start {
            if task.halted() {
                return Ok(String::new());
            }
            let left = task.clock.until(task.start).unwrap_or(TimeSpan::ZERO);
            thread::sleep(Duration::from_nanos(left.0).min(CHECK_INTERVAL));
        }
        start()?
    };
    while !task.halted() {
        let left = task.clock.until(task.until).unwrap_or(TimeSpan::MAX);
        if left == TimeSpan::ZERO {
            break;
        }
        if let Some(status) = process.ended(Duration::from_nanos(left.0).min(CHECK_INTERVAL)) {
            let now = task.clock.now();
            // It can end by itself after its partner.
            if now >= task.stop || task.halted() {
                break;
            }
            let found = format!("it ended by itself {:.1} s after the start of the run, with {status}", seconds(now));
            return Err(process
                .failure(&found)
                .expected(format!("a program that runs until it is ended, at {:.1} s", seconds(task.stop))));
        }
    }
    Ok(process.end())
}

fn seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1e9
}

impl ProgramTask {
    fn halted(&self) -> bool {
        self.halt.load(Ordering::Relaxed)
    }

    fn wait_until_it_listens(&self, process: &Process) -> Result<()> {
        let limit = Instant::now() + LISTEN_TIMEOUT;
        loop {
            if is_listened_on(self.port) {
                return Ok(());
            }
            if let Some(status) = process.ended(CHECK_INTERVAL) {
                let found = format!("it ended before it listened, with {status}");
                return Err(process.failure(&found).expected(format!("a program that listens at port {}", self.port)));
            }
            if self.halted() || Instant::now() > limit {
                let found = format!("it did not listen at port {} within {} s", self.port, LISTEN_TIMEOUT.as_secs());
                return Err(process.failure(&found).expected("a TCP or UDP socket bound to that port"));
            }
        }
    }
}

/// Output of a program in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramLog {
    /// Index of the flow.
    pub flow: usize,
    /// End of the flow that the program ran.
    pub end: End,
    /// Standard output and standard error; if too long, the beginning and the end.
    pub text: String,
}

/// Return the error for a flow without packets on the path.
#[must_use]
pub fn sent_nothing(flow: usize, scheme: &str, logs: &[ProgramLog]) -> Error {
    let said = logs.iter().filter(|log| log.flow == flow && !log.text.trim().is_empty());
    let said = said.map(|log| format!("\nthe {} said: {}", log.end.name(), process::last_lines(&log.text)));
    let found = format!("it sent no packet{}", said.collect::<String>());
    Error::of("no-answer", format!("flow {flow} ({scheme})"), found)
        .expected("a sender that sends at once, through the port that it is given")
        .hint("run both programs by hand inside `ccgym shell`, which shows what they do")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let spec = ProgramSpec {
            listens: End::Receiver,
            sender: words("send {address}:{port} -t {seconds} {else}"),
            receiver: words("receive {port}"),
        };
        let at = Ipv4Addr::new(10, 0, 0, 1);
        let span = TimeSpan::from_millis(1500);
        assert_eq!(spec.words(End::Sender, at, 5001, span), words("send 10.0.0.1:5001 -t 62 {else}"));
        assert_eq!(spec.words(End::Receiver, at, 5001, span), words("receive 5001"));
    }
}
