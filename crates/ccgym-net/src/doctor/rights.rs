//! May we make namespaces and devices?

use std::fs::{self, OpenOptions};

use super::Finding;
use crate::error::Result;
use crate::system::{Capability, Ends, Placement};

pub(super) fn examine(capability: &Result<Capability>) -> Vec<Finding> {
    let mut findings = vec![match capability {
        Ok(Capability::Root) => Finding::ok("rights", "root: namespaces of our own"),
        Ok(Capability::UserNamespace) => Finding::ok("rights", "an unprivileged user namespace"),
        Err(error) => Finding::missing("rights", error.found.clone(), userns_remedy()),
    }];
    findings.push(tun());
    if capability.is_ok() {
        findings.push(match Ends::open(Placement::Isolated) {
            Ok(ends) => {
                Finding::ok("path", format!("two ends made: {} and {}", ends.inside.device, ends.outside.device))
            }
            Err(error) => Finding::missing("path", format!("{}: {}", error.step, error.found), error.hint),
        });
    }
    findings
}

/// What usually forbids user namespaces.
fn userns_remedy() -> String {
    let setting = |file: &str| fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    let off = |file: &str, bad: &str| setting(file).is_some_and(|value| value == bad);
    if off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "run as root, or: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".into();
    }
    if off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "run as root, or: sudo sysctl -w kernel.unprivileged_userns_clone=1".into();
    }
    if off("/proc/sys/user/max_user_namespaces", "0") {
        return "run as root, or: sudo sysctl -w user.max_user_namespaces=10000".into();
    }
    "run as root; in a container, start it with --privileged or with CAP_SYS_ADMIN and CAP_NET_ADMIN".into()
}

fn tun() -> Finding {
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Finding::ok("tun", "/dev/net/tun can be opened"),
        Err(error) => Finding::warn(
            "tun",
            format!("/dev/net/tun: {error}; veth pairs serve instead"),
            "more throughput with TUN: sudo modprobe tun; sudo chmod 666 /dev/net/tun",
        ),
    }
}
