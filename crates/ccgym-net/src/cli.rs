//! The commands that run natively.

use std::io::Write;

use crate::error::{NetError, Result};

/// Option before a command: an error is one line of JSON, for programs.
const JSON_ERRORS: &str = "--json-errors";

/// Exit status of an explained mistake, as of every command of ccgym.
pub const STATUS_ERROR: i32 = 2;

/// Run a command line; an error goes to standard error. The exit status.
#[must_use]
pub fn run(words: &[String]) -> i32 {
    let (json, words) = match words.split_first() {
        Some((first, rest)) if first == JSON_ERRORS => (true, rest),
        _ => (false, words),
    };
    main(words).unwrap_or_else(|error| {
        let text = match serde_json::to_string(&error) {
            Ok(text) if json => text,
            _ => format!("error: {error}"),
        };
        // Nobody to tell if this fails; the status says it, too.
        let _ = writeln!(std::io::stderr(), "{text}");
        STATUS_ERROR
    })
}

/// Run a command and return its exit status.
///
/// # Errors
/// An unknown command, and whatever the command meets.
pub fn main(words: &[String]) -> Result<i32> {
    let Some((command, rest)) = words.split_first() else { return Err(unknown("no command".into())) };
    match command.as_str() {
        "shell" => crate::shell::session::main(rest),
        "sender" => crate::udp::command::sender(rest),
        "receiver" => crate::udp::command::receiver(rest),
        "run" => crate::run::command::main(rest),
        "doctor" => crate::doctor::main(rest),
        other => Err(unknown(format!("{other:?}"))),
    }
}

fn unknown(found: String) -> NetError {
    NetError::new("command", found).expected("shell, sender, receiver, run or doctor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_an_explained_mistake() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(main(&[]).unwrap_err().to_string().contains("no command"));
        assert!(main(&words("shel")).unwrap_err().to_string().contains("\"shel\""));
        assert_eq!(run(&words("--json-errors nothing")), STATUS_ERROR);
    }
}
