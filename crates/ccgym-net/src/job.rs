//! A job: one JSON document for a process with real packets.
//!
//! Python has the command lines and help; `ccgym/emulation/job.py` writes these documents. The fields of each job are
//! in its module: [`ShellJob`], [`SenderJob`], [`ReceiverJob`], [`Plan`], [`DoctorJob`].

use std::io::Write;

use serde::Deserialize;

use crate::doctor::{self, DoctorJob};
use crate::error::{Error, Result};
use crate::run::{self, Host, Plan};
use crate::shell::{self, ShellJob};
use crate::udp::{self, ReceiverJob, SenderJob};

/// Exit status of an explained error, as in all commands of ccgym.
pub const STATUS_ERROR: i32 = 2;

/// One job: an object with one key, the kind of job.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// A command behind an emulated path.
    Shell(Box<ShellJob>),
    /// Send one flow over UDP.
    Sender(Box<SenderJob>),
    /// Receive flows over UDP.
    Receiver(ReceiverJob),
    /// A whole run. The process ends when its standard input closes.
    Run(Box<Plan>),
    /// Check this machine.
    Doctor(DoctorJob),
}

impl Job {
    /// Do the job and return the exit status. The process must have one thread: a job may enter
    /// namespaces, fork, and change signal handling.
    fn carry_out(self, host: &Host<'_>) -> Result<i32> {
        match self {
            Self::Shell(job) => shell::session::run(&job),
            Self::Sender(job) => udp::endpoint::sender(*job),
            Self::Receiver(job) => udp::endpoint::receiver(job),
            Self::Run(plan) => run::carry_out(*plan, host),
            Self::Doctor(job) => doctor::run(&job, host),
        }
    }

    /// True if programs start the job (runs, the doctor) and read its errors as JSON; people start the others.
    const fn is_for_programs(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Doctor(_))
    }
}

/// Do the job of a document with this host. Write errors to standard error. Return the exit status.
#[must_use]
pub fn run(document: &str, host: &Host<'_>) -> i32 {
    match serde_json::from_str::<Job>(document) {
        Ok(job) => {
            let as_json = job.is_for_programs();
            job.carry_out(host).unwrap_or_else(|error| report(&error, as_json))
        }
        Err(error) => report(&Error::of("protocol-error", "reading the job", error), false),
    }
}

/// Write an error to standard error: as JSON for programs, or as text. Return the exit status.
pub fn report(error: &Error, as_json: bool) -> i32 {
    let text = match serde_json::to_string(error) {
        Ok(text) if as_json => text,
        _ => format!("error[{}]: {error}", error.code),
    };
    // If standard error is closed, the exit status still shows the error.
    let _ = writeln!(std::io::stderr(), "{text}");
    STATUS_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_describes_no_job_is_an_error() {
        for text in ["", "{}", r#"{"shel": {}}"#, r#"{"doctor": {"quick": true}}"#, r#"{"shell": {}}"#] {
            assert!(serde_json::from_str::<Job>(text).is_err(), "{text}");
            assert_eq!(run(text, &Host::ALONE), STATUS_ERROR, "{text}");
        }
    }
}
