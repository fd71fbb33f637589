//! QUIC as a flow: both ends are processes of the program `ccgym-quic`, which this crate does not link.
//!
//! A process reads one line, its [`QuicJob`] as JSON, from standard input, and stops early when that closes. It writes
//! a line to standard output when it is ready, and at its end a line with its result. It writes an error to
//! standard error, as JSON.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_run::spec::SourceSpec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::system::supervise::KeptOutput;

/// Max time until a process is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Max time until it ends after its end time or after a request to stop.
const GRACE: Duration = Duration::from_secs(10);
/// Interval between checks of `halt`.
const HALT_CHECK: Duration = Duration::from_millis(50);
/// Max bytes kept of its standard error, from the end; and max bytes of its standard output.
const KEPT: usize = 1 << 16;
const MAX_OUTPUT: u64 = 1 << 28;
/// Line of a process that is ready.
pub const READY: &str = "ready";

/// Data for both ends of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ends {
    /// Index of the flow.
    pub flow: u32,
    /// The receiver's address.
    pub receiver: SocketAddrV4,
    /// Secret of a run: the receiver's private key and the public key that the sender expects are derived from it.
    pub secret: [u8; 32],
    /// IP bytes of a full packet.
    pub packet_bytes: u32,
    /// The run's clock.
    pub clock: Clock,
    /// Interval between samples; zero: none.
    pub step: TimeSpan,
}

/// Job of a QUIC sender.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuicSenderJob {
    /// Data for both ends.
    pub ends: Ends,
    /// Congestion control of the library: `cubic`, `bbr` or `reno`.
    pub algorithm: String,
    /// Application of the flow.
    pub source: SourceSpec,
    /// Seed of the application's periods.
    pub seed: u64,
    /// Bytes per write of an application with a rate.
    pub mss: u32,
    /// Time of the connection's start.
    pub start: Timestamp,
    /// Time to close the connection.
    pub stop: Timestamp,
}

/// Job of a QUIC receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuicReceiverJob {
    /// Data for both ends.
    pub ends: Ends,
    /// End of the run: later arrivals do not count.
    pub end: Timestamp,
}

/// Job of a process of `ccgym-quic`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuicJob {
    /// Send a flow; the result is a [`crate::udp::SenderResult`].
    Sender(QuicSenderJob),
    /// Receive a flow; the result is a [`crate::udp::ReceiverResult`].
    Receiver(QuicReceiverJob),
}

impl QuicJob {
    const fn ends(&self) -> &Ends {
        match self {
            Self::Sender(job) => &job.ends,
            Self::Receiver(job) => &job.ends,
        }
    }

    fn name(&self) -> String {
        let end = match self {
            Self::Sender(job) => format!("quic:{}", job.algorithm),
            Self::Receiver(_) => "the QUIC receiver".into(),
        };
        format!("flow {} ({end})", self.ends().flow)
    }

    const fn end(&self) -> Timestamp {
        match self {
            Self::Sender(job) => job.stop,
            Self::Receiver(job) => job.end,
        }
    }
}

/// Program and secret for the QUIC flows of a run.
#[derive(Clone, Debug, Default)]
pub struct Quic {
    /// Path of the program; absent if it is not installed.
    pub program: Option<PathBuf>,
    /// See [`Ends::secret`].
    pub secret: [u8; 32],
}

impl Quic {
    /// Draw a new secret if there is a program; ends on two machines replace it by a shared one.
    pub fn new(program: Option<PathBuf>) -> Result<Self> {
        let mut secret = [0; 32];
        if program.is_some() {
            getrandom::fill(&mut secret)
                .map_err(|error| Error::of("system-call-failed", "drawing the secret of QUIC flows", error))?;
        }
        Ok(Self { program, secret })
    }
}

/// Do a job in a process in this thread's network namespace. Call `ready` when it is ready. After `halt` is
/// set, stop early and return the result until then.
///
/// # Errors
/// A program that does not start, stalls, or reports an error.
pub fn carry_out<T: DeserializeOwned>(
    program: &Path,
    job: &QuicJob,
    halt: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<T> {
    let mut process = Process::start(program, job)?;
    let limit = Instant::now() + READY_TIMEOUT;
    let first = process.line(halt, |_| limit)?;
    if first.as_deref() != Some(READY) {
        return Err(process.failure(first));
    }
    ready();
    let clock = job.ends().clock;
    let over =
        Instant::now() + clock.until(job.end()).map_or(Duration::ZERO, |left| Duration::from_nanos(left.0)) + GRACE;
    let last = process.line(halt, |halted: Option<Instant>| halted.map_or(over, |at| over.min(at + GRACE)))?;
    match last.as_deref().map(serde_json::from_str) {
        Some(Ok(result)) => Ok(result),
        _ => Err(process.failure(last)),
    }
}

/// A running process; killed on drop.
struct Process {
    name: String,
    child: Child,
    /// Closed to stop the process early.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: KeptOutput,
}

impl Process {
    fn start(program: &Path, job: &QuicJob) -> Result<Self> {
        let step = || format!("starting {} for {}", program.display(), job.name());
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context(step)
            .map_err(|error| error.hint("build it again with `make setup`"))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(Error::of("run-failed", step(), "a process without pipes"));
        };
        let errors = KeptOutput::listen(errors.into(), 0, KEPT)?;
        let (line_sender, lines) = channel();
        let read = move || {
            let lines = BufReader::new(output.take(MAX_OUTPUT)).lines().map_while(std::result::Result::ok);
            lines.take_while(|line| line_sender.send(line.clone()).is_ok()).for_each(drop);
        };
        Builder::new().name("ccgym-lines".into()).spawn(read).context(step)?;
        let text = serde_json::to_string(job).map_err(|error| Error::of("run-failed", step(), error))?;
        match writeln!(input, "{text}") {
            // The process has ended and has written its error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.context(step)?,
        }
        Ok(Self { name: job.name(), child, input: Some(input), lines, errors })
    }

    /// Return the next line, or `None` if it closed its output. `limit` returns the deadline, from the time of the stop
    /// request, if any.
    fn line(&mut self, halt: &AtomicBool, limit: impl Fn(Option<Instant>) -> Instant) -> Result<Option<String>> {
        let mut halted = None;
        loop {
            if halt.load(Ordering::Relaxed) && self.input.take().is_some() {
                halted = Some(Instant::now());
            }
            match self.lines.recv_timeout(HALT_CHECK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if Instant::now() > limit(halted) => {
                    return Err(Error::of("no-answer", format!("waiting for {}", self.name), "no answer in time")
                        .expected("the process ccgym-quic at work"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Return the reason for its failure: its own error, if it wrote one.
    fn failure(&mut self, said: Option<String>) -> Error {
        self.input = None;
        let _ = self.child.kill();
        self.errors.wait(GRACE);
        let text = self.errors.text();
        let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| {
            let found =
                format!("{:?} on its standard output, {:?} on its standard error", said.unwrap_or_default(), last);
            Error::of("protocol-error", self.name.clone(), found)
                .expected("the result of a process of ccgym-quic")
                .hint("is the program of another version? Build it again with `make setup`")
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        // For a process that has ended, only wait.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::ReceiverResult;
    use std::net::Ipv4Addr;

    fn job() -> QuicJob {
        let ends = Ends {
            flow: 3,
            receiver: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            secret: [7; 32],
            packet_bytes: 1500,
            clock: Clock::start(),
            step: TimeSpan::ZERO,
        };
        QuicJob::Receiver(QuicReceiverJob { ends, end: Timestamp::from_millis(20) })
    }

    /// Write a shell script with another process: a test that forks while this process has the file open for
    /// writing would prevent its execution ("text file busy").
    fn program(name: &str, script: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ccgym-test-quic-{}-{name}", std::process::id()));
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let status = Command::new("sh").args(["-c", write, "sh"]).arg(&path).arg(script).status();
        assert!(status.unwrap().success());
        path
    }

    fn outcome(name: &str, script: &str, halt: bool) -> (Result<ReceiverResult>, bool) {
        let path = program(name, script);
        let mut ready = false;
        let result = carry_out(&path, &job(), &AtomicBool::new(halt), || ready = true);
        std::fs::remove_file(path).unwrap();
        (result, ready)
    }

    #[test]
    fn a_job_survives_its_document() {
        let text = serde_json::to_string(&job()).unwrap();
        let QuicJob::Receiver(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        assert_eq!((read.ends.flow, read.ends.secret, read.end), (3, [7; 32], Timestamp::from_millis(20)));
    }

    #[test]
    fn a_process_that_gives_up_leaves_its_result() {
        let result = serde_json::to_string(&ReceiverResult { rejected: 5, ..ReceiverResult::default() }).unwrap();
        // The script ends when its input closes.
        let (done, ready) = outcome("halted", &format!("echo ready; cat >/dev/null; echo '{result}'"), true);
        assert_eq!(done.unwrap().rejected, 5);
        assert!(ready);
    }

    /// A pipe holds only 64 KiB.
    #[test]
    fn a_process_that_complains_at_length_is_not_held_up() {
        let result = serde_json::to_string(&ReceiverResult { rejected: 5, ..ReceiverResult::default() }).unwrap();
        let flood = "yes complaint | head -c 1000000 >&2";
        let (done, _) = outcome("flood", &format!("echo ready; {flood}; echo '{result}'"), false);
        assert_eq!(done.unwrap().rejected, 5);
        let own = serde_json::to_string(&Error::of("run-failed", "sending", "it broke")).unwrap();
        let (failed, _) = outcome("complaint", &format!("{flood}; echo '{own}' >&2; exit 2"), false);
        assert_eq!(failed.unwrap_err(), Error::of("run-failed", "sending", "it broke"));
    }

    /// The error of a process that does not read its job must be reported.
    #[test]
    fn what_a_process_says_of_its_failure_is_passed_on() {
        let own = serde_json::to_string(&Error::of("run-failed", "sending", "it broke").hint("mend it")).unwrap();
        let (failed, ready) = outcome("own", &format!("echo ready; echo '{own}' >&2; exit 2"), false);
        assert!(ready, "{failed:?}");
        assert_eq!(failed.unwrap_err(), Error::of("run-failed", "sending", "it broke").hint("mend it"));
        let (failed, ready) = outcome("foreign", "echo a riddle >&2; echo what", false);
        let error = failed.unwrap_err();
        assert!(!ready && error.found.contains("a riddle"), "{error}");
        assert_eq!(error.code, "protocol-error");
        let missing =
            carry_out::<ReceiverResult>(Path::new("/nowhere/ccgym-quic"), &job(), &AtomicBool::new(false), || {});
        assert!(missing.unwrap_err().place.contains("/nowhere/ccgym-quic"));
    }
}
