//! One program: start, watch, and end it with all processes that it started.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::error::{Context, Error, Result};
use crate::system::capability::present;
use crate::system::supervise::{Group, Isolated, KeptOutput, Launch, User};
use crate::system::{sudo_caller, Capability, Namespace};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Max wait for the rest of the output.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);
/// Max bytes of output to keep: from the beginning, and from the end.
const KEPT: usize = 32 * 1024;
/// Max lines in an error, and max characters of each.
const SHOWN_LINES: usize = 6;
const SHOWN_CHARACTERS: usize = 300;

/// A running program. Drop kills it with all processes that it started.
pub(super) struct Process {
    step: String,
    isolated: Isolated,
    output: KeptOutput,
}

impl Process {
    /// Start a program in a network namespace: as the user who called `sudo`, if any.
    pub fn start(step: &str, words: &[String], network: &Arc<Namespace>) -> Result<Self> {
        let context = || format!("starting {step}");
        let (reading, stdout) = pipe2(OFlag::O_CLOEXEC).context(context)?;
        let stderr = stdout.try_clone().context(context)?;
        let output = KeptOutput::listen(reading, KEPT, KEPT)?;
        // A user namespace has no other user to switch to.
        let caller = sudo_caller().filter(|_| present() == Some(Capability::Root));
        let launch = Launch {
            words: words.to_vec(),
            environment: std::env::vars_os().collect(),
            streams: [Stdio::null(), stdout.into(), stderr.into()],
            kept: Vec::new(),
            network: Arc::clone(network),
            user: caller.map_or(User::Ours, |(uid, gid)| User::Other {
                uid: uid.as_raw(),
                gid: gid.as_raw(),
                groups: Vec::new(),
            }),
            group: Group::Session,
            mask: None,
            prepare: None,
        };
        let isolated = Isolated::start(launch).map_err(|error| {
            Error::of("program-unstartable", format!("{}: {}", context(), error.place), error.found)
                .expected("a program that can be executed")
                .hint(format!("as it would be started: {}", words.join(" ")))
        })?;
        Ok(Self { step: step.to_owned(), isolated, output })
    }

    /// Return its exit status; `None` if it does not end within `patience`.
    pub fn ended(&self, patience: Duration) -> Option<ExitStatus> {
        self.isolated.wait(patience)
    }

    /// Return an error that shows the last lines of output.
    pub fn failure(&self, found: &str) -> Error {
        // After the program's end, wait for the rest of its output.
        if self.ended(Duration::ZERO).is_some() {
            self.output.wait(OUTPUT_WAIT);
        }
        let text = self.output.text();
        let said = last_lines(&text);
        let said = if said.is_empty() { "it said nothing".to_owned() } else { format!("it said last: {said}") };
        Error::of("program-failed", self.step.clone(), format!("{found}; {said}"))
            .hint("try it by hand, both ends inside `ccgym shell`")
    }

    /// End it with all processes that it started. Return its output.
    pub fn end(mut self) -> String {
        self.isolated.terminate();
        let _ = self.isolated.wait(GRACE);
        self.isolated.kill();
        self.output.wait(OUTPUT_WAIT);
        self.output.text()
    }
}

/// Join the last lines of a text in one line.
pub(super) fn last_lines(text: &str) -> String {
    let shorten = |line: &str| line.chars().take(SHOWN_CHARACTERS).collect::<String>();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev().take(SHOWN_LINES);
    let mut lines: Vec<_> = lines.map(shorten).collect();
    lines.reverse();
    lines.join(" | ")
}
