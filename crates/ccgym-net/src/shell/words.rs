//! Words of a command line, and what is said about a wrong one.

use crate::error::NetError;

/// A word and its number on the command line, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As written.
    pub text: String,
    /// Which word it is.
    pub place: usize,
}

impl Word {
    /// Number the words of a command line.
    pub fn number(words: &[String]) -> Vec<Self> {
        words.iter().enumerate().map(|(i, text)| Self { text: text.clone(), place: i + 1 }).collect()
    }
}

/// A foreign text in a message: quoted, on one line, not longer than is useful.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let quoted = format!("{text:?}");
    if quoted.chars().count() <= MOST {
        quoted
    } else {
        quoted.chars().take(MOST - 1).chain(['…']).collect()
    }
}

/// `did you mean "x"?` for the nearest known name, nothing if none is near.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    let limit = name.chars().count().max(3) / 3;
    let nearest = known.iter().map(|&one| (distance(name, one), one)).min()?;
    (nearest.0 <= limit).then(|| format!("did you mean {:?}?", nearest.1))
}

/// Insertions, deletions, substitutions and swaps of neighbors that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let border = |i: usize, j: usize| if i == 0 { j } else { i };
    let row = |i| (0..=b.len()).map(|j| border(i, j)).collect::<Vec<_>>();
    let mut rows: Vec<Vec<usize>> = (0..=a.len()).map(row).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut least = (rows[i - 1][j - 1] + same).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

/// A decimal number as C reads it, without the hexadecimal, infinite and nameless ones.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let value: f64 = if plain && text.len() <= 60 { text.parse().ok()? } else { return None };
    value.is_finite().then_some(value)
}

/// Quote a word for a POSIX shell, always, as mm-link does in its logs.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Collects what is to be said about a word.
pub(super) fn refuse(place: &str, found: impl std::fmt::Display, expected: &str, hint: Option<String>) -> NetError {
    NetError::new(place, found).expected(expected).hint(hint.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = ["mm-delay", "mm-loss", "mm-link"];
        assert_eq!(did_you_mean("mm-dealy", &known).as_deref(), Some("did you mean \"mm-delay\"?"));
        assert_eq!(did_you_mean("mm-lin", &known).as_deref(), Some("did you mean \"mm-link\"?"));
        assert_eq!(did_you_mean("iperf3", &known), None);
        assert_eq!(did_you_mean("", &known), None);
    }

    #[test]
    fn numbers_are_those_of_c_without_its_oddities() {
        for (text, value) in [("0.5", Some(0.5)), (".5", Some(0.5)), ("1e-3", Some(1e-3)), ("5.", Some(5.0))] {
            assert_eq!(number(text), value, "{text}");
        }
        for text in ["", "inf", "nan", "0x10", "1s", "1e999", "--1", " 1"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn quotes_survive_a_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        assert!(shown(&"x".repeat(500)).chars().count() <= 80);
    }
}
