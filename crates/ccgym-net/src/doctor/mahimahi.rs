//! Does the mahimahi backend work here?

use super::Finding;
use crate::mahimahi::probe;

/// The finding that stands for all others: what the backend needs in order to start.
const WHOLE: &str = "mahimahi";

pub(super) fn examine() -> Vec<Finding> {
    let probed = probe();
    let mut findings: Vec<Finding> = probed
        .iter()
        .map(|one| match (&one.diagnosis, one.good) {
            (_, true) => Finding::ok(&one.subject, one.found.clone()),
            (Some(known), false) => {
                Finding::missing(&one.subject, format!("{}: {}", one.found, known.problem), known.remedy.clone())
            }
            (None, false) => Finding::missing(&one.subject, one.found.clone(), ""),
        })
        .collect();
    let Some(bad) = findings.iter().find(|one| !one.remedy.is_empty() && one.name != WHOLE).cloned() else {
        return findings;
    };
    if let Some(whole) = findings.iter_mut().find(|one| one.name == WHOLE) {
        *whole = Finding::missing(WHOLE, format!("{}, but {} is wrong", whole.found, bad.name), bad.remedy);
    }
    findings
}
