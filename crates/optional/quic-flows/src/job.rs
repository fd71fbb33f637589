//! The program `ccgym-quic`: runs the jobs that [`ccgym_net::quic`] describes.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use ccgym_net::error::{Context, Error, Result};
use ccgym_net::job::report;
use ccgym_net::quic::{QuicJob, READY};
use ccgym_net::system::{precise_timers, when_parent_ends};
use serde_json::{to_value, Value};

use crate::{receiver, sender};

/// Read a job from standard input, run it, and write its result to standard output. Errors go to standard error, as
/// JSON. Return the exit status.
#[must_use]
pub fn run() -> i32 {
    carry_out().map_or_else(|error| report(&error, true), |()| 0)
}

fn carry_out() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context(|| "reading a job".into())?;
    let job: QuicJob = serde_json::from_str(&line).map_err(|error| {
        Error::of("protocol-error", "reading a job of ccgym-quic", error)
            .expected("a line of JSON on standard input, as ccgym writes it")
            .hint("`ccgym evaluate --schemes quic:cubic --backend emulated` starts this program")
    })?;
    let halt = Arc::new(AtomicBool::new(false));
    let set = halt.clone();
    when_parent_ends(move || set.store(true, Ordering::Relaxed))?;
    precise_timers();
    let ready = || drop(say(READY));
    let result = match &job {
        QuicJob::Sender(job) => to_value(sender::run(job, &halt, ready)?),
        QuicJob::Receiver(job) => to_value(receiver::run(job, &halt, ready)?),
    };
    let result: Value = result.map_err(|error| Error::of("run-failed", "writing the result", error))?;
    say(&result.to_string()).context(|| "writing the result".into())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
