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
use super::remedy::IPTABLES;
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
/// Without it mahimahi does not start.
const DNSMASQ: &str = "/usr/sbin/dnsmasq";

/// Look at everything that the mahimahi backend needs. Takes under a second.
#[must_use]
pub fn probe() -> Vec<Finding> {
    let mut findings = vec![programs()];
    if !findings[0].good {
        return findings;
    }
    findings.push(iptables());
    if !geteuid().is_root() {
        findings.push(forwarding());
    }
    findings.push(dnsmasq());
    findings.push(start());
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
    let diverted = fs::canonicalize(IPTABLES)
        .ok()
        .and_then(|path| path.file_name().map(|name| !name.to_string_lossy().starts_with("xtables")))
        .unwrap_or(false);
    if geteuid().is_root() {
        return finding(subject, true, format!("{version}; as root ccgym stands in for it during a run"));
    }
    if refuses_setuid(&version) && !diverted {
        let mut bad = finding(subject, false, version);
        bad.diagnosis = understand("iptables failure status 111");
        return bad;
    }
    finding(subject, true, version)
}

/// Whether a version of iptables, such as `iptables v1.8.9 (nf_tables)`, is 1.8.8 or later.
fn refuses_setuid(version: &str) -> bool {
    let number = version.split_whitespace().find_map(|word| word.strip_prefix('v')).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    (part(), part(), part()) >= (1, 8, 8)
}

fn forwarding() -> Finding {
    let value = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap_or_default();
    let mut finding = finding("net.ipv4.ip_forward", value.trim() == "1", value.trim());
    if !finding.good {
        finding.diagnosis = understand("net.ipv4.ip_forward");
    }
    finding
}

fn dnsmasq() -> Finding {
    let there = Path::new(DNSMASQ).exists();
    let mut finding = finding("dnsmasq", there, if there { DNSMASQ.to_owned() } else { format!("no {DNSMASQ}") });
    if !there {
        finding.diagnosis = understand("dnsmasq");
    }
    finding
}

/// Whether a shell really comes up.
fn start() -> Finding {
    let subject = "a mahimahi shell";
    let mut spec = SessionSpec::new(vec!["mm-delay".into(), "1".into()]);
    spec.patience = Duration::from_secs(5);
    let began = Instant::now();
    match Session::start(&spec) {
        Ok(session) => {
            let took = began.elapsed().as_millis();
            let found = format!("starts within {took} ms, outside address {}", session.base());
            // It has no logs that could be unreadable.
            let _ = session.stop(&Clock::start(), Timestamp::ZERO);
            finding(subject, true, found)
        }
        Err(error) => {
            let diagnosis = Diagnosis { problem: error.expected, remedy: error.hint };
            let mut bad = finding(subject, false, format!("{}: {}", error.step, error.found));
            bad.diagnosis = Some(understand(&bad.found).unwrap_or(diagnosis));
            bad
        }
    }
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Says what is skipped or found.
mod tests {
    use super::*;

    #[test]
    fn versions_of_iptables_are_compared() {
        assert!(refuses_setuid("iptables v1.8.9 (nf_tables)"));
        assert!(refuses_setuid("iptables v1.8.10 (legacy)"));
        assert!(refuses_setuid("iptables v2.0"));
        assert!(!refuses_setuid("iptables v1.8.7 (nf_tables)"));
        assert!(!refuses_setuid(""));
    }

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
