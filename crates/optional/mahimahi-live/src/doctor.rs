//! Check that the mahimahi backend works on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ccgym_core::Timestamp;
use nix::unistd::geteuid;

use ccgym_net::doctor::{Finding, Status};
use ccgym_net::Clock;

use crate::diagnosis::understand;
use crate::remedy::{DNSMASQ, IPTABLES};
use crate::{Session, SessionSpec};

/// Shells of release 0.98 that the backend knows.
const PROGRAMS: [&str; 4] = ["mm-delay", "mm-loss", "mm-link", "mm-onoff"];
/// Found only in mahimahi's master: its programs mention this variable, and call iptables in a way that 1.8.8 accepts.
const MASTERS_MARK: &[u8] = b"MAHIMAHI_PASSTHROUGH_UNTIL_SIGNAL";
/// Three nested shells: the second and third need more than the first, such as forwarding in a namespace that mahimahi
/// made.
const NESTED: [&[&str]; 3] = [&["mm-delay", "1"], &["mm-loss", "uplink", "0"], &["mm-delay", "1"]];

/// Name of the finding with the reason why the backend does not start.
const BACKEND: &str = "mahimahi";

/// Check all that the mahimahi backend needs. Takes about a second.
#[must_use]
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![programs()];
    if findings[0].status == Status::Ok {
        findings.extend([iptables(), dnsmasq(), start()]);
    }
    let bad = findings.iter().find(|one| !one.remedy.is_empty() && one.name != BACKEND).cloned();
    if let (Some(bad), Some(backend)) = (bad, findings.first_mut()) {
        *backend = Finding::missing(BACKEND, format!("{}, but {} is wrong", backend.found, bad.name), bad.remedy);
    }
    findings
}

/// Make a finding of a failure, with the diagnosis of `said`.
fn diagnosed(name: &str, found: &str, said: &str) -> Finding {
    match understand(said) {
        Some(known) => Finding::missing(name, format!("{found}: {}", known.problem), known.remedy),
        None => Finding::missing(name, found, ""),
    }
}

fn which(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn programs() -> Finding {
    let paths: Vec<_> = PROGRAMS.iter().map(|name| (*name, which(name))).collect();
    let missing: Vec<_> = paths.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let found = format!("not installed: {}; only `--backend mahimahi` needs it", missing.join(", "));
        return Finding::missing(
            BACKEND,
            found,
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
        let found = format!("not setuid: {}", not_setuid.join(", "));
        return diagnosed(BACKEND, &found, "installed setuid root");
    }
    if !geteuid().is_root() {
        return Finding::missing(
            BACKEND,
            "installed, but this is not root: the backend watches packets at both ends of the path",
            "run it with sudo; `--backend emulated` takes the same paths without",
        );
    }
    let master = which("mm-link")
        .and_then(|path| fs::read(path).ok())
        .is_some_and(|program| program.windows(MASTERS_MARK.len()).any(|window| window == MASTERS_MARK));
    Finding::ok(BACKEND, if master { "master: mm-link logs drops" } else { "release 0.98: mm-link logs no drops" })
}

fn iptables() -> Finding {
    let name = "iptables for mahimahi";
    let said = Command::new(IPTABLES).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let Ok(said) = said else {
        return Finding::missing(name, format!("no {IPTABLES}, which mahimahi calls"), "install the package iptables");
    };
    let version = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    Finding::ok(name, format!("{version}; ccgym stands in for it during a run"))
}

fn dnsmasq() -> Finding {
    if Path::new(DNSMASQ).exists() {
        Finding::ok("dnsmasq", DNSMASQ)
    } else {
        diagnosed("dnsmasq", &format!("no {DNSMASQ}"), "dnsmasq")
    }
}

/// Check that shells start.
fn start() -> Finding {
    let name = "mahimahi shells";
    let words = |shell: &[&str]| shell.iter().map(|&word| word.to_owned()).collect();
    let mut spec = SessionSpec::new(NESTED.into_iter().map(words).collect());
    spec.patience = Duration::from_secs(10);
    let began = Instant::now();
    match Session::start(&spec) {
        Ok(session) => {
            let took = began.elapsed().as_millis();
            let found = format!("three nested ones start within {took} ms, outside address {}", session.base);
            // This session has no logs that could be unreadable.
            let _ = session.stop(&Clock::start(), Timestamp::ZERO);
            Finding::ok(name, found)
        }
        Err(error) => {
            let found = format!("three nested ones: {}: {}", error.place, error.found);
            match understand(&found) {
                Some(_) => diagnosed(name, &found, &found),
                None => Finding::missing(name, format!("{found}: expected {}", error.expected), error.hint),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks and findings.
mod tests {
    use super::*;

    #[test]
    fn every_bad_finding_has_a_remedy() {
        let findings = examine();
        assert!(!findings.is_empty());
        for finding in &findings {
            eprintln!("{finding:?}");
            assert!(finding.status == Status::Ok || !finding.remedy.is_empty(), "{finding:?}");
        }
    }
}
