//! What is wrong with an agent's declaration, and where.

use thiserror::Error;

/// A declaration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: found {found}, expected {expected}")]
pub struct AgentError {
    /// Path of the value, such as `observation.features[2].signal`.
    pub place: String,
    /// What stands there.
    pub found: String,
    /// What may stand there; ends with the nearest known name where one is near.
    pub expected: String,
}

impl AgentError {
    pub(crate) fn new(place: impl Into<String>, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { place: place.into(), found: found.into(), expected: expected.into() }
    }

    /// `found` is none of the names in `known`.
    pub(crate) fn unknown<'a>(place: &str, what: &str, found: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<_> = known.collect();
        let limit = found.len() / 3 + 1;
        let nearest = known.iter().map(|name| (strsim::levenshtein(found, name), name)).min();
        let expected = match nearest.filter(|(distance, _)| *distance <= limit) {
            Some((_, name)) => format!("{what}; did you mean \"{name}\"?"),
            None => format!("{what}: {}", known.join(", ")),
        };
        Self::new(place, format!("\"{found}\""), expected)
    }

    /// `Ok` if `ok`, otherwise an error at `place`.
    pub(crate) fn ensure(ok: bool, place: &str, found: impl ToString, expected: &str) -> Result<(), Self> {
        if ok {
            Ok(())
        } else {
            Err(Self::new(place, found.to_string(), expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let known = ["mean_rtt", "min_rtt"];
        let near = AgentError::unknown("a", "a signal", "mean_rt", known.into_iter()).to_string();
        assert_eq!(near, "a: found \"mean_rt\", expected a signal; did you mean \"mean_rtt\"?");
        let far = AgentError::unknown("a", "a signal", "zzz", known.into_iter()).to_string();
        assert_eq!(far, "a: found \"zzz\", expected a signal: mean_rtt, min_rtt");
    }
}
