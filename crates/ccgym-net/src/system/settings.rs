//! What the kernel was told about buffers and queues, where flows run.

use std::fs;

use super::Namespace;
use crate::error::Result;

/// The settings that Pantheon's report names, in its order.
const REPORTED: [&str; 7] = [
    "net.core.default_qdisc",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Kernel and settings, one line each, as a namespace has them. Settings that a kernel keeps for the whole machine are
/// read outside.
///
/// # Errors
/// If this process has no power over the namespace.
pub fn system_info(namespace: &Namespace) -> Result<Vec<String>> {
    let kernel = ["kernel.ostype", "kernel.osrelease"].map(|name| read(name).unwrap_or_default()).join(" ");
    let inside = namespace.run(|| REPORTED.map(read))?;
    let settings = REPORTED.into_iter().zip(inside).filter_map(|(name, found)| {
        let value = found.or_else(|| read(name))?;
        Some(format!("{name} = {value}"))
    });
    Ok([kernel].into_iter().chain(settings).collect())
}

/// The value of a setting, its words separated by one blank; none where this namespace does not have it.
fn read(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // what is skipped must be seen
mod tests {
    use super::*;
    use crate::system::capability::present;

    #[test]
    fn a_namespace_says_what_it_has_and_the_machine_the_rest() {
        if present().is_none() {
            return eprintln!("SKIPPED: may not enter namespaces");
        }
        let lines = system_info(&Namespace::current().unwrap()).unwrap();
        assert!(lines[0].starts_with("Linux "), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("net.ipv4.tcp_rmem = ")), "{lines:?}");
        assert!(read("net.ipv4.no_such_setting").is_none());
    }
}
