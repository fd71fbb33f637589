//! Which congestion controls the kernel has, and who may use them.

use super::Finding;

/// Those that reports compare with.
const WANTED: [&str; 3] = ["cubic", "bbr", "reno"];

pub(super) fn examine() -> Vec<Finding> {
    let available = crate::tcp::available();
    let missing: Vec<&str> = WANTED.into_iter().filter(|name| !available.iter().any(|a| a == name)).collect();
    let found = available.join(" ");
    vec![if missing.is_empty() {
        Finding::ok("congestion controls", found)
    } else {
        let modules: Vec<String> = missing.iter().map(|name| format!("tcp_{name}")).collect();
        let remedy = format!("sudo modprobe {}", modules.join(" "));
        Finding::warn("congestion controls", format!("{found}; not {}", missing.join(", ")), remedy)
    }]
}
