//! The words of a command line.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use ccgym_core::TimeSpan;

use crate::error::{NetError, Result};

/// The words of a command, `--key value` or `--key=value`.
pub(super) struct Words {
    command: &'static str,
    given: Vec<(String, Option<String>)>,
}

impl Words {
    /// Sort the words; `flags` take no value.
    pub fn new(command: &'static str, words: &[String], flags: &[&str]) -> Result<Self> {
        let mut given = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(key) = word.strip_prefix("--") else {
                return Err(NetError::new(command, format!("{word:?}"))
                    .expected("options that begin with --")
                    .hint(format!("ccgym {command} --help lists them")));
            };
            if flags.contains(&key) {
                given.push((key.to_owned(), None));
            } else if let Some((key, value)) = key.split_once('=') {
                given.push((key.to_owned(), Some(value.to_owned())));
            } else {
                let value = words.next().ok_or_else(|| {
                    NetError::new(format!("{command}, --{key}"), "no value").expected(format!("--{key} VALUE"))
                })?;
                given.push((key.to_owned(), Some(value.clone())));
            }
        }
        Ok(Self { command, given })
    }

    pub fn flag(&mut self, key: &str) -> bool {
        let before = self.given.len();
        self.given.retain(|(k, v)| k != key || v.is_some());
        self.given.len() < before
    }

    /// The value of an option; the last one given.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let mut found = None;
        self.given.retain_mut(|(k, v)| {
            let ours = k == key && v.is_some();
            if ours {
                found = v.take();
            }
            !ours
        });
        found
    }

    pub fn parse<T: FromStr>(&mut self, key: &str, expected: &str) -> Result<Option<T>> {
        let command = self.command;
        self.text(key)
            .map(|text| {
                text.parse()
                    .map_err(|_| NetError::new(format!("{command}, --{key}"), format!("{text:?}")).expected(expected))
            })
            .transpose()
    }

    pub fn seconds(&mut self, key: &str) -> Result<Option<f64>> {
        let expected = "a number of seconds, zero or more";
        match self.parse::<f64>(key, expected)? {
            Some(value) if !(0.0..=1e9).contains(&value) => {
                Err(NetError::new(format!("{}, --{key}", self.command), value).expected(expected))
            }
            other => Ok(other),
        }
    }

    /// A time with a unit, or seconds.
    pub fn time(&mut self, key: &str) -> Result<Option<TimeSpan>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
            (Some(number), _) => (number, 1e-3),
            (None, Some(number)) => (number, 1.0),
            (None, None) => (text.as_str(), 1.0),
        };
        match number.trim().parse::<f64>() {
            Ok(value) if (0.0..=1e9).contains(&value) => Ok(Some(TimeSpan::from_secs_f64(value * factor))),
            _ => Err(NetError::new(format!("{}, --{key}", self.command), format!("{text:?}"))
                .expected("a time, as in 1s or 500ms")),
        }
    }

    pub fn address(&mut self, key: &str) -> Result<SocketAddr> {
        let step = format!("{}, --{key}", self.command);
        let text = self.text(key).ok_or_else(|| {
            NetError::new(step.clone(), "nothing")
                .expected(format!("--{key} ADDRESS:PORT, as in 127.0.0.1:5001"))
                .hint(format!("ccgym {} --help lists the options", self.command))
        })?;
        let wrong = |found: String| NetError::new(step.clone(), found).expected("ADDRESS:PORT, as in 127.0.0.1:5001");
        let mut addresses = text.to_socket_addrs().map_err(|error| wrong(format!("{text:?} ({error})")))?;
        addresses.next().ok_or_else(|| wrong(format!("{text:?}, which is no address")))
    }

    /// Refuse what is left over.
    pub fn done(self) -> Result<()> {
        match self.given.first() {
            None => Ok(()),
            Some((key, _)) => Err(NetError::new(self.command, format!("--{key}"))
                .expected("one of its options, each as often as it makes sense")
                .hint(format!("ccgym {} --help lists them", self.command))),
        }
    }
}
