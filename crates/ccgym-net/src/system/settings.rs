//! Kernel settings of buffers and queues in the namespace of flows.

use std::fs;

use super::Namespace;
use crate::error::Result;

/// Settings that Pantheon's report has, in its order.
const REPORTED: [&str; 7] = [
    "net.core.default_qdisc",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// Return kernel and settings of a namespace, one line each. Settings that a kernel has only for the whole machine are
/// read outside.
///
/// # Errors
/// This process has no privileges over the namespace.
pub fn system_info(namespace: &Namespace) -> Result<Vec<String>> {
    let kernel = ["kernel.ostype", "kernel.osrelease"].map(|name| read(name).unwrap_or_default()).join(" ");
    let inside = namespace.run(|| REPORTED.map(read))?;
    let settings = REPORTED.into_iter().zip(inside).filter_map(|(name, found)| {
        let value = found.or_else(|| read(name))?;
        Some(format!("{name} = {value}"))
    });
    Ok([kernel].into_iter().chain(settings).collect())
}

/// Return the value of a setting, its words separated by one blank; `None` if this namespace does not have it.
fn read(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks.
mod tests {
    use super::*;
    use crate::system::capability::present;

    #[test]
    fn settings_of_a_namespace_are_complete() {
        if present().is_none() {
            return eprintln!("SKIPPED: may not enter namespaces");
        }
        let lines = system_info(&Namespace::current().unwrap()).unwrap();
        assert!(lines[0].starts_with("Linux "), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("net.ipv4.tcp_rmem = ")), "{lines:?}");
        assert!(read("net.ipv4.no_such_setting").is_none());
    }
}
