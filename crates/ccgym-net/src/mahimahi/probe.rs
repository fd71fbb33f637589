//! What this machine offers of mahimahi, for `ccgym doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::diagnosis::{understand, Diagnosis};
use super::remedy::{DNSMASQ, IPTABLES};
use super::session::{Session, SessionSpec};
use crate::clock::Clock;

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: String,
    /// Whether it is as it should be.
    pub good: bool,
    /// What was found.
    pub found: String,
    /// What is wrong, and what helps; absent if nothing need be done.
    pub diagnosis: Option<Diagnosis>,
}

/// The shells of release 0.98 that the backend knows.
const PROGRAMS: [&str; 4] = ["mm-delay", "mm-loss", "mm-link", "mm-onoff"];
/// Only in mahimahi's master: it mentions this variable, and it calls iptables in a way that 1.8.8 accepts.
const MASTERS_MARK: &[u8] = b"MAHIMAHI_PASSTHROUGH_UNTIL_SIGNAL";
/// Three shells, one in the other: the second and third need what the first does not, such as forwarding in a namespace
/// that mahimahi made.
const NESTED: [&[&str]; 3] = [&["mm-delay", "1"], &["mm-loss", "uplink", "0"], &["mm-delay", "1"]];

/// Look at everything that the mahimahi backend needs. Takes about a second.
#[must_use]
pub fn probe() -> Vec<Finding> {
    let mut findings = vec![programs()];
    if findings[0].good {
        findings.extend([iptables(), dnsmasq(), start()]);
    }
    findings
}

fn finding(subject: &str, good: bool, found: impl Into<String>) -> Finding {
    Finding { subject: subject.into(), good, found: found.into(), diagnosis: None }
}

impl Finding {
    fn because(mut self, problem: &str, remedy: &str) -> Self {
        self.diagnosis = Some(Diagnosis { problem: problem.into(), remedy: remedy.into() });
        self
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn programs() -> Finding {
    let subject = "mahimahi";
    let paths: Vec<_> = PROGRAMS.iter().map(|name| (*name, which(name))).collect();
    let missing: Vec<_> = paths.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        return finding(subject, false, format!("not installed: {}", missing.join(", "))).because(
            "mahimahi is not installed; only `--backend mahimahi` needs it",
            "Debian 11, Ubuntu: the package mahimahi; Debian 12: tests/differential/record/setup.sh of the source tree; \
             elsewhere build github.com/ravinet/mahimahi",
        );
    }
    let not_setuid: Vec<_> = paths
        .iter()
        .filter_map(|(name, path)| path.as_ref().map(|path| (name, path)))
        .filter(|(_, path)| fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o4000 == 0))
        .map(|(name, _)| *name)
        .collect();
    if !not_setuid.is_empty() {
        let mut bad = finding(subject, false, format!("not setuid: {}", not_setuid.join(", ")));
        bad.diagnosis = understand("installed setuid root");
        return bad;
    }
    if !geteuid().is_root() {
        return finding(subject, false, "installed, but this is not root").because(
            "the backend watches packets at both ends of the path, which takes root",
            "run it with sudo; `--backend emulated` takes the same paths without",
        );
    }
    let master = which("mm-link")
        .and_then(|path| fs::read(path).ok())
        .is_some_and(|program| program.windows(MASTERS_MARK.len()).any(|window| window == MASTERS_MARK));
    finding(subject, true, if master { "master: mm-link logs drops" } else { "release 0.98: mm-link logs no drops" })
}

fn iptables() -> Finding {
    let subject = "iptables for mahimahi";
    let said = Command::new(IPTABLES).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(said) = said else {
        return finding(subject, false, format!("no {IPTABLES}"))
            .because("mahimahi calls iptables, which is not installed", "install the package iptables");
    };
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    finding(subject, true, format!("{version}; ccgym stands in for it during a run"))
}

fn dnsmasq() -> Finding {
    let there = Path::new(DNSMASQ).exists();
    let mut finding = finding("dnsmasq", there, if there { DNSMASQ.to_owned() } else { format!("no {DNSMASQ}") });
    if !there {
        finding.diagnosis = understand("dnsmasq");
    }
    finding
}

/// Whether shells really come up.
fn start() -> Finding {
    let subject = "mahimahi shells";
    let words = |shell: &[&str]| shell.iter().map(|&word| word.to_owned()).collect();
    let mut spec = SessionSpec::new(NESTED.into_iter().map(words).collect());
    spec.patience = Duration::from_secs(10);
    let began = Instant::now();
    match Session::start(&spec) {
        Ok(session) => {
            let took = began.elapsed().as_millis();
            let found = format!("three nested ones start within {took} ms, outside address {}", session.base());
            // It has no logs that could be unreadable.
            let _ = session.stop(&Clock::start(), Timestamp::ZERO);
            finding(subject, true, found)
        }
        Err(error) => {
            let found = format!("three nested ones: {}: {}", error.place, error.found);
            let unknown = || Diagnosis { problem: format!("expected {}", error.expected), remedy: error.hint };
            let diagnosis = understand(&found).unwrap_or_else(unknown);
            Finding { subject: subject.into(), good: false, found, diagnosis: Some(diagnosis) }
        }
    }
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Says what is skipped or found.
mod tests {
    use super::*;

    #[test]
    fn every_bad_finding_has_a_remedy() {
        let findings = probe();
        assert!(!findings.is_empty());
        for finding in &findings {
            eprintln!("{finding:?}");
            assert!(finding.good || finding.diagnosis.is_some(), "{finding:?}");
        }
    }
}
