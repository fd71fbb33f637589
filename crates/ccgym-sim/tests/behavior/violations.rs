//! What is wrong with a flow under stress, and which of it is expected.

/// What a violation is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// More packets in flight than expected.
    InFlight,
    /// A window of more packets than expected.
    Window,
    /// Fewer packets acknowledged than expected once the trouble is over.
    Progress,
    /// What no scheme may do.
    Nonsense,
}

/// Something wrong: what about, the number found, and the whole in words.
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

/// A finding with its flow and the trouble that it was in.
#[derive(Debug)]
pub struct Violation {
    pub flow: String,
    pub trouble: String,
    pub finding: Finding,
}

/// A violation that is expected of one flow in one trouble: by its source the scheme is so. `bound` is the largest number
/// accepted, and the smallest one where the violation is about progress.
#[derive(Debug)]
pub struct Known {
    pub flow: &'static str,
    pub trouble: &'static str,
    pub about: About,
    pub bound: f64,
}

pub const fn known(flow: &'static str, trouble: &'static str, about: About, bound: f64) -> Known {
    Known { flow, trouble, about, bound }
}

impl Known {
    fn covers(&self, violation: &Violation) -> bool {
        let Finding { about, found, .. } = violation.finding;
        let within = match about {
            About::InFlight | About::Window => found <= self.bound,
            About::Progress => found >= self.bound,
            About::Nonsense => false,
        };
        within && about == self.about && self.flow == violation.flow && self.trouble == violation.trouble
    }
}

/// Panics unless each violation is known, and each known one was made.
pub fn judge(violations: &[Violation], known: &[Known]) {
    let new = violations.iter().filter(|violation| !known.iter().any(|k| k.covers(violation)));
    let new = new.map(|Violation { flow, trouble, finding }| format!("{flow}, {trouble}: {}", finding.text));
    let over = known.iter().filter(|k| !violations.iter().any(|violation| k.covers(violation)));
    let over =
        over.map(|k| format!("KNOWN: {k:?} is no longer needed, expected a violation that it covers; remove it"));
    let wrong: Vec<_> = new.chain(over).collect();
    assert!(wrong.is_empty(), "{} violations:\n{}", wrong.len(), wrong.join("\n"));
}
