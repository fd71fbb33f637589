//! The words of mahimahi's command line: which shells, where their own words end, which are files.

use crate::error::{NetError, Result};

/// Programs of mahimahi that make a path, with the number of their arguments; mm-link and mm-meter have options.
const SHELLS: [(&str, usize); 6] =
    [("mm-delay", 1), ("mm-loss", 2), ("mm-link", 2), ("mm-onoff", 3), ("mm-intermittent", 3), ("mm-meter", 0)];

/// Options of mm-link whose value may be a word of its own.
const VALUED: [&str; 8] = [
    "-u",
    "-d",
    "--uplink-log",
    "--downlink-log",
    "--uplink-queue",
    "--downlink-queue",
    "--uplink-queue-args",
    "--downlink-queue-args",
];

/// One of mahimahi's shells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shell {
    /// Program, as it was written.
    pub(super) program: String,
    /// Arguments without a dash.
    pub(super) arguments: Vec<String>,
    /// Options, each with its value in one word.
    pub(super) options: Vec<String>,
}

impl Shell {
    /// Name without a path.
    pub(super) fn name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn is_link(&self) -> bool {
        self.name() == "mm-link"
    }

    /// Whether it has an option of one of these names.
    pub(super) fn has_option(&self, names: [&str; 2]) -> bool {
        self.options.iter().any(|option| {
            names.iter().any(|name| match option.strip_prefix(name) {
                Some(rest) => rest.is_empty() || rest.starts_with('=') || !name.starts_with("--"),
                None => false,
            })
        })
    }

    /// Whether it looks for options among the words of the inner program too, unless `--` stands before them.
    fn permutes(&self) -> bool {
        matches!(self.name(), "mm-link" | "mm-meter")
    }
}

/// Read the outer shells of a command.
pub(super) fn parse(words: &[String]) -> Result<Vec<Shell>> {
    let step = || format!("reading the mahimahi command {words:?}");
    let mut rest = words.iter().peekable();
    let mut shells = Vec::new();
    while let Some(program) = rest.next() {
        let mut shell = Shell { program: program.clone(), arguments: Vec::new(), options: Vec::new() };
        let Some(&(_, count)) = SHELLS.iter().find(|(name, _)| *name == shell.name()) else {
            return Err(NetError::new(step(), format!("{program:?} where a shell should begin"))
                .expected("mm-delay, mm-loss, mm-link, mm-onoff, mm-intermittent or mm-meter with their arguments"));
        };
        while let Some(word) = rest.peek() {
            if *word == "--" {
                rest.next();
                break;
            }
            if word.starts_with('-') && shell.permutes() {
                let mut option = rest.next().cloned().unwrap_or_default();
                if VALUED.contains(&option.as_str()) {
                    let value =
                        rest.next().ok_or_else(|| NetError::new(step(), format!("{option} without a value")))?;
                    // A long option takes its value after `=`, a short one at once.
                    option = if option.starts_with("--") { format!("{option}={value}") } else { option + value };
                }
                shell.options.push(option);
            } else if shell.arguments.len() < count {
                shell.arguments.extend(rest.next().cloned());
            } else {
                break;
            }
        }
        if shell.arguments.len() < count {
            let found = format!("{} with {} arguments", shell.name(), shell.arguments.len());
            return Err(NetError::new(step(), found).expected(format!("{count} arguments")));
        }
        shells.push(shell);
    }
    if shells.is_empty() {
        return Err(NetError::new(step(), "no shell").expected("such as `mm-delay 20 mm-link UPTRACE DOWNTRACE`"));
    }
    Ok(shells)
}

/// The command line that runs `inner` inside all shells.
pub(super) fn assemble(shells: &[Shell], inner: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    for shell in shells {
        words.push(shell.program.clone());
        words.extend(shell.options.iter().cloned());
        words.extend(shell.arguments.iter().cloned());
        if shell.permutes() {
            words.push("--".into());
        }
    }
    words.extend(inner.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_ascii_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn pantheons_usual_command_is_read_and_written() {
        let line = "mm-delay 51 mm-loss uplink 0.0006 mm-link a.trace b.trace --uplink-queue=droptail \
                    --uplink-queue-args=packets=94";
        let shells = parse(&words(line)).unwrap();
        let names: Vec<_> = shells.iter().map(Shell::name).collect();
        assert_eq!(names, ["mm-delay", "mm-loss", "mm-link"]);
        assert_eq!(shells[2].arguments, ["a.trace", "b.trace"]);
        let expected = "mm-delay 51 mm-loss uplink 0.0006 mm-link --uplink-queue=droptail \
                        --uplink-queue-args=packets=94 a.trace b.trace -- sh -c true";
        assert_eq!(assemble(&shells, &words("sh -c true")), words(expected));
    }

    #[test]
    fn options_may_come_anywhere_and_with_separate_values() {
        let line = "/usr/bin/mm-link -u up.log a --once b --downlink-queue droptail -- mm-meter --meter-uplink mm-onoff up 1 2";
        let shells = parse(&words(line)).unwrap();
        assert_eq!(shells.len(), 3);
        assert_eq!(shells[0].options, ["-uup.log", "--once", "--downlink-queue=droptail"]);
        assert!(shells[0].is_link() && shells[0].has_option(["--uplink-log", "-u"]));
        assert!(!shells[0].has_option(["--downlink-log", "-d"]));
        assert_eq!(shells[2].arguments, ["up", "1", "2"]);
        let line = "mm-link a b --uplink-queue=droptail";
        assert!(!parse(&words(line)).unwrap()[0].has_option(["--uplink-log", "-u"]));
    }

    #[test]
    fn what_is_not_mahimahi_is_named() {
        for (line, part) in [
            ("mm-delay 20 sh", "\"sh\""),
            ("mm-delay", "mm-delay with 0 arguments"),
            ("mm-link a -- mm-delay 1", "mm-link with 1 arguments"),
            ("mm-link a b -u", "-u without a value"),
            ("", "no shell"),
        ] {
            let error = parse(&words(line)).unwrap_err();
            assert!(error.to_string().contains(part), "{line}: {error}");
        }
    }
}
