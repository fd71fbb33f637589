//! A path from a file: the elements that `NetworkPath.spec()` in Python compiles to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ccgym_link::{ElementSpec, ScheduleSpec};
use serde::Deserialize;
use serde_json::Value;

use super::command::{LinkDirection, LinkUse, PathCommand};
use super::link_options::queue_words;
use super::words::quoted;
use crate::error::{NetError, Result, Step};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    uplink: Vec<ElementSpec>,
    downlink: Vec<ElementSpec>,
    #[serde(default)]
    traces: BTreeMap<String, PathBuf>,
    /// What Python adds for other readers.
    #[serde(default, rename = "facts")]
    _facts: Value,
}

/// Read a path. `logs` are those of the first links, `words` is the command line for their headers. The file's traces
/// are added to `traces` where these do not have them.
///
/// # Errors
/// If the file cannot be read, or is no path.
pub(super) fn read(
    file: &Path,
    label: Option<String>,
    logs: (Option<PathBuf>, Option<PathBuf>),
    words: &[String],
    traces: &mut BTreeMap<String, PathBuf>,
) -> Result<PathCommand> {
    let step = || format!("reading the path {}", file.display());
    let text = fs::read(file).step(step)?;
    let spec: SpecFile = serde_json::from_slice(&text).map_err(|error| {
        NetError::new(step(), error)
            .expected("JSON {\"uplink\": […], \"downlink\": […], \"traces\": {name: file}}")
            .hint("`ccgym path show PATH --spec` writes one")
    })?;
    for (name, at) in spec.traces {
        traces.entry(name).or_insert(at);
    }
    let words: Vec<String> =
        ["ccgym", "shell"].into_iter().map(quoted).chain(words.iter().map(|w| quoted(w))).collect();
    let mut path = PathCommand {
        label: format!("[{}] ", label.as_deref().unwrap_or("path")),
        uplink: spec.uplink,
        downlink: spec.downlink,
        ..PathCommand::default()
    };
    // Links that repeat have one direction each here; those that end, end the shell when all have ended.
    let mut ending = LinkUse { once: true, command_line: words.join(" "), ..LinkUse::default() };
    for (up, mut log) in [(true, logs.0), (false, logs.1)] {
        let elements = if up { &path.uplink } else { &path.downlink };
        for (element, spec) in elements.iter().enumerate() {
            let ElementSpec::Link { schedule, .. } = spec else { continue };
            let (trace, once) = match schedule {
                ScheduleSpec::Trace { name, once } => (name.clone(), *once),
                ScheduleSpec::Rate { .. } => (String::new(), false),
            };
            let direction = LinkDirection { up, element, trace, queue: queue_words(spec), log: log.take() };
            if once {
                ending.directions.push(direction);
            } else {
                path.links.push(LinkUse { directions: vec![direction], once, ..ending.without_directions() });
            }
        }
        if log.is_some() {
            let option = if up { "--uplink-log" } else { "--downlink-log" };
            return Err(NetError::new(format!("ccgym shell {option}"), "no link in that direction")
                .expected("a path with a link, whose log that is"));
        }
    }
    if !ending.directions.is_empty() {
        path.links.push(ending);
    }
    Ok(path)
}

impl LinkUse {
    fn without_directions(&self) -> Self {
        Self { directions: Vec::new(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_path() {
        let file = std::env::temp_dir().join(format!("ccgym-spec-{}.json", std::process::id()));
        let link = |once| {
            format!(
                r#"{{"kind":"link","schedule":{{"kind":"trace","name":"t","once":{once}}},"queue":{{"kind":"infinite"}}}}"#
            )
        };
        let delay = r#"{"kind":"delay","delay":5000000}"#;
        let text = format!(
            r#"{{"uplink":[{},{delay}],"downlink":[{delay},{}],"traces":{{"t":"t.trace","u":"u.trace"}},"facts":{{"base_rtt":1}}}}"#,
            link(false),
            link(true)
        );
        fs::write(&file, text).unwrap();
        let mut traces = BTreeMap::from([("t".to_owned(), PathBuf::from("mine.trace"))]);
        let words = ["--spec".to_owned(), "x y".to_owned()];
        let path = read(&file, None, (Some("u.log".into()), None), &words, &mut traces).unwrap();
        assert_eq!((path.uplink.len(), path.downlink.len()), (2, 2));
        assert_eq!(traces["t"], PathBuf::from("mine.trace"));
        assert_eq!(traces["u"], PathBuf::from("u.trace"));
        let [repeating, ending] = &path.links[..] else { panic!("{:?}", path.links) };
        assert_eq!(repeating.directions[0].log.as_deref(), Some("u.log".as_ref()));
        assert_eq!((ending.directions[0].element, ending.once), (1, true));
        assert_eq!(repeating.command_line, "'ccgym' 'shell' '--spec' 'x y'");
        fs::write(&file, format!(r#"{{"uplink":[],"downlink":[{delay}]}}"#)).unwrap();
        let error = read(&file, None, (Some("u.log".into()), None), &[], &mut traces).unwrap_err().to_string();
        assert!(error.contains("no link in that direction"), "{error}");
        fs::write(&file, r#"{"uplink":[],"downlinks":[]}"#).unwrap();
        let error = read(&file, None, (None, None), &[], &mut traces).unwrap_err().to_string();
        assert!(error.contains("downlinks"), "{error}");
        fs::remove_file(&file).unwrap();
    }
}
