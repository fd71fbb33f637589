//! A job: what a process that meets real packets is told, as one JSON document.
//!
//! Python owns command lines and help; `ccgym/emulation/job.py` writes these documents. The fields of each job are
//! where its work is: [`ShellJob`], [`SenderJob`], [`ReceiverJob`], [`Plan`], [`DoctorJob`].

use std::io::Write;

use serde::Deserialize;

use crate::doctor::{self, DoctorJob};
use crate::error::{Error, Result};
use crate::run::{self, Host, Plan};
use crate::shell::{self, ShellJob};
use crate::udp::{self, ReceiverJob, SenderJob};

/// Exit status of an explained error, as of every command of ccgym.
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
    /// What this machine can do.
    Doctor(DoctorJob),
}

impl Job {
    /// Do the job; the answer is the exit status. For a process of its own with a single thread: a job may enter
    /// namespaces, fork, and take over signals.
    fn carry_out(self, host: &Host<'_>) -> Result<i32> {
        match self {
            Self::Shell(job) => shell::session::run(&job),
            Self::Sender(job) => udp::endpoint::sender(*job),
            Self::Receiver(job) => udp::endpoint::receiver(job),
            Self::Run(plan) => run::carry_out(*plan, host),
            Self::Doctor(job) => doctor::run(&job, host),
        }
    }

    /// Programs start runs and the doctor, and read their errors as JSON; people start the others.
    const fn is_for_programs(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Doctor(_))
    }
}

/// Do the job that a document describes, with what this process has. Errors go to standard error. The exit status.
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

/// Say on standard error what went wrong: as JSON to programs, or to people. The exit status.
pub fn report(error: &Error, as_json: bool) -> i32 {
    let text = match serde_json::to_string(error) {
        Ok(text) if as_json => text,
        _ => format!("error[{}]: {error}", error.code),
    };
    // If standard error is closed, the exit status still says it.
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
