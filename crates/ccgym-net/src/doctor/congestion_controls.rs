//! Which congestion controls the kernel has, and who may use them.

use std::fs;

use super::Finding;

/// Those that reports compare with.
const WANTED: [&str; 3] = ["cubic", "bbr", "reno"];

pub(super) fn examine() -> Vec<Finding> {
    let available = crate::tcp::available();
    let missing: Vec<&str> = WANTED.into_iter().filter(|name| !available.iter().any(|a| a == name)).collect();
    let found = available.join(" ");
    let mut findings = vec![if missing.is_empty() {
        Finding::ok("congestion controls", found)
    } else {
        let modules: Vec<String> = missing.iter().map(|name| format!("tcp_{name}")).collect();
        let remedy = format!("sudo modprobe {}", modules.join(" "));
        Finding::warn("congestion controls", format!("{found}; not {}", missing.join(", ")), remedy)
    }];
    if let Ok(text) = fs::read_to_string("/proc/sys/net/ipv4/ip_forward") {
        findings.push(if text.trim() == "1" {
            Finding::ok("ip_forward", "on")
        } else {
            Finding::ok("ip_forward", "off; only mahimahi started by an ordinary user needs it")
        });
    }
    findings
}
