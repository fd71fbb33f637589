//! Environment variables of the programs at the ends of a path.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::ffi::OsStrExt;

use nix::unistd::User;

use crate::system::endpoints::BASE_VARIABLE as BASE;

/// Labels of the enclosing shells, the outermost first.
pub const PREFIX: &str = "MAHIMAHI_SHELL_PREFIX";
/// A command that bash runs before its first prompt, so that the prompt shows the labels.
const PROMPT: (&str, &str) = ("PROMPT_COMMAND", "PS1=\"${MAHIMAHI_SHELL_PREFIX}${PS1}\" PROMPT_COMMAND=");

/// Environment variables of this process.
pub type Variables = Vec<(OsString, OsString)>;

/// Return the environment with which this process was started, without variables that Python sets later, such as
/// `LC_CTYPE` in the C locale.
pub fn inherited() -> Variables {
    let Ok(text) = fs::read("/proc/self/environ") else { return std::env::vars_os().collect() };
    let split = |entry: &[u8]| {
        let place = entry.iter().position(|&byte| byte == b'=')?;
        Some((OsStr::from_bytes(&entry[..place]).to_owned(), OsStr::from_bytes(&entry[place + 1..]).to_owned()))
    };
    text.split(|&byte| byte == 0).filter_map(split).collect()
}

/// Return the environment at one end: the inherited one with mahimahi's variables.
///
/// `label`: that of this path, for the inside end; `None` for the other.
pub fn at_end(inherited: Variables, base: Ipv4Addr, label: Option<&str>, user: Option<&User>) -> Variables {
    let mut variables = inherited;
    set(&mut variables, BASE, base.to_string().into());
    if let Some(label) = label {
        let mut prefix = variables.iter().find(|(name, _)| name == PREFIX).map_or(OsString::new(), |(_, v)| v.clone());
        prefix.push(label);
        set(&mut variables, PREFIX, prefix);
        set(&mut variables, PROMPT.0, PROMPT.1.into());
    }
    if let Some(user) = user {
        for name in ["USER", "LOGNAME"] {
            set(&mut variables, name, user.name.clone().into());
        }
        set(&mut variables, "HOME", user.dir.clone().into());
        set(&mut variables, "SHELL", user.shell.clone().into());
    }
    variables
}

fn set(variables: &mut Variables, name: &str, value: OsString) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.into(), value));
}

/// Return the default command: the user's shell.
pub fn user_shell(user: Option<&User>) -> String {
    match user {
        Some(user) => user.shell.to_string_lossy().into_owned(),
        None => std::env::var("SHELL").ok().filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_end_knows_the_base_and_the_labels() {
        let inherited = vec![("A".into(), "1".into()), (PREFIX.into(), "[outer] ".into()), (BASE.into(), "x".into())];
        let base = Ipv4Addr::new(100, 64, 0, 1);
        let text = |list: Variables| -> Vec<String> {
            list.into_iter()
                .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
                .collect()
        };
        let inner = text(at_end(inherited.clone(), base, Some("[link] "), None));
        let outer = text(at_end(inherited, base, None, None));
        for expected in ["A=1", "MAHIMAHI_BASE=100.64.0.1", "MAHIMAHI_SHELL_PREFIX=[outer] [link] "] {
            assert!(inner.iter().any(|entry| entry == expected), "{inner:?}");
        }
        assert!(inner.iter().any(|entry| entry.starts_with("PROMPT_COMMAND=PS1=")));
        assert!(outer.contains(&"MAHIMAHI_SHELL_PREFIX=[outer] ".to_owned()), "{outer:?}");
        assert_eq!(outer.iter().filter(|entry| entry.starts_with("MAHIMAHI_BASE=")).count(), 1);
    }
}
