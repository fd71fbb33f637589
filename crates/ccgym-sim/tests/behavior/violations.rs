//! Violations by flows under stress, and the ones that `violations.md` expects.

use crate::common::cells;

/// The kinds of violations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// More packets in flight than expected.
    InFlight,
    /// A window of more packets than expected.
    Window,
    /// Fewer packets acknowledged than expected once the trouble is over.
    Progress,
    /// Errors that are never allowed.
    Nonsense,
}

/// A violation: its kind, the number found, and a description.
#[derive(Debug)]
pub struct Finding {
    pub about: About,
    pub found: f64,
    pub text: String,
}

impl Finding {
    pub fn nonsense(text: &str) -> Self {
        Self { about: About::Nonsense, found: 0.0, text: text.to_owned() }
    }
}

/// A finding with its flow and trouble.
#[derive(Debug)]
pub struct Violation {
    pub flow: String,
    pub trouble: String,
    pub finding: Finding,
}

const TABLES: &str = include_str!("violations.md");

/// True if a line (flow, trouble, about, bound) covers a violation.
fn covers(line: &[&str], violation: &Violation) -> bool {
    let [flow, trouble, about, bound] = line[..] else { panic!("{line:?} are not four cells") };
    let bound: f64 = bound.parse().expect(bound);
    let Finding { about: of, found, .. } = violation.finding;
    let within = match of {
        About::InFlight | About::Window => found <= bound,
        About::Progress => found >= bound,
        About::Nonsense => false,
    };
    within && about == format!("{of:?}") && flow == violation.flow && trouble == violation.trouble
}

/// Panic unless each violation is expected by a line under this heading of the tables, and each line covers one.
pub fn judge(violations: &[Violation], heading: &str) {
    let section = TABLES.split("\n## ").find_map(|text| text.strip_prefix(heading)).expect(heading);
    let known: Vec<_> = cells(section).map(|(_, line)| line).filter(|line| line[0] != "Flow").collect();
    assert!(!known.is_empty(), "no line is under {heading}");
    let new = violations.iter().filter(|violation| !known.iter().any(|line| covers(line, violation)));
    let new = new.map(|Violation { flow, trouble, finding }| format!("{flow}, {trouble}: {}", finding.text));
    let over = known.iter().filter(|line| !violations.iter().any(|violation| covers(line, violation)));
    let over = over.map(|line| format!("{line:?} covers no violation: remove it from violations.md"));
    let wrong: Vec<_> = new.chain(over).collect();
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}
