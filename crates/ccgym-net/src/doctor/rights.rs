//! May we make namespaces and devices?

use std::fs::OpenOptions;

use super::Finding;
use crate::error::Result;
use crate::system::{Capability, Endpoints, Placement};

pub(super) fn examine(capability: &Result<Capability>) -> Vec<Finding> {
    let mut findings = vec![match capability {
        Ok(Capability::Root) => Finding::ok("rights", "root: namespaces of our own"),
        Ok(Capability::UserNamespace) => Finding::ok("rights", "an unprivileged user namespace"),
        Err(error) => Finding::missing("rights", error.found.clone(), error.hint.clone()),
    }];
    findings.push(tun());
    if capability.is_ok() {
        findings.push(match Endpoints::open(Placement::Isolated) {
            Ok(ends) => {
                Finding::ok("path", format!("two ends made: {} and {}", ends.inside.device, ends.outside.device))
            }
            Err(error) => Finding::missing("path", format!("{}: {}", error.place, error.found), error.hint),
        });
    }
    findings
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
