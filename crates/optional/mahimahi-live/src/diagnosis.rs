//! Reasons why mahimahi does not start, and remedies.

/// Known problem and its remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Problem.
    pub problem: &'static str,
    /// Remedy.
    pub remedy: &'static str,
}

/// Parts of mahimahi's output, the problem, the remedy. The first match is taken.
const KNOWN: [(&[&str], &str, &str); 12] = [
    (
        &["iptables", "failure status 111"],
        "this machine's iptables (1.8.8 or later) refuses to run under mahimahi 0.98, whose programs are setuid root",
        "run as root: ccgym then helps mahimahi out for the run alone. For good: build mahimahi's master, or put a \
         program before iptables (update-alternatives) that sets all user ids to 0 and executes iptables-legacy",
    ),
    (
        &["iptables"],
        "iptables cannot set up address translation",
        "load the kernel's NAT (`modprobe iptable_nat` or `modprobe nft_masq`); in a container it needs --privileged",
    ),
    (
        &["net.ipv4.ip_forward"],
        "the machine does not forward packets between its devices",
        "as root: `sysctl -w net.ipv4.ip_forward=1`, or run ccgym as root, which needs no such setting",
    ),
    (
        &["installed setuid root"],
        "mahimahi's programs do not get root's rights",
        "`chmod u+s` on the mm-* programs; not on a file system mounted nosuid, nor where privileges may not grow (a \
         container with no-new-privileges)",
    ),
    (
        &["dnsmasq"],
        "dnsmasq, which mahimahi starts for names inside the path, did not start",
        "install dnsmasq-base; if it is there: the machine may be busy, so run fewer paths at a time",
    ),
    (
        &["/dev/net/tun"],
        "there is no /dev/net/tun to make devices with",
        "`modprobe tun`; in a container: --device /dev/net/tun",
    ),
    (
        &["free interface address"],
        "mahimahi finds no free address in its range",
        "end other mahimahi shells, or a network (such as an overlay) that owns 100.64.0.0/24",
    ),
    (
        &["error opening for reading"],
        "a trace file cannot be read by the user that mahimahi runs as",
        "give a path that exists, absolute, readable for all",
    ),
    (
        &["error opening for writing"],
        "a log cannot be written by the user that mahimahi runs as",
        "leave out --uplink-log and --downlink-log: ccgym keeps the logs by itself",
    ),
    (&["must last for a nonzero"], "a trace has no duration", "a trace needs at least one time above 0 ms"),
    (&["monotonically nondecreasing"], "a trace goes back in time", "sort its lines, one number of milliseconds each"),
    (
        &["Operation not permitted"],
        "the machine does not let mahimahi make devices or namespaces",
        "in a container it needs --privileged and --device /dev/net/tun",
    ),
];

/// Find the problem in mahimahi's output.
pub fn understand(said: &str) -> Option<Diagnosis> {
    let fits = |parts: &[&str]| parts.iter().all(|part| said.contains(part));
    KNOWN.iter().find(|(parts, _, _)| fits(parts)).map(|&(_, problem, remedy)| Diagnosis { problem, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_problems_are_found() {
        let said = "Died on std::runtime_error: `/usr/sbin/iptables -w -t nat': process exited with failure status 111";
        assert!(understand(said).unwrap().problem.contains("setuid"));
        let said = "Died on std::runtime_error: `/usr/sbin/iptables': process exited with failure status 4";
        assert!(understand(said).unwrap().remedy.contains("modprobe"));
        let said =
            "Died on std::runtime_error: mm-delay: Please run \"sudo sysctl -w net.ipv4.ip_forward=1\" to enable";
        assert!(understand(said).unwrap().remedy.contains("sysctl -w"));
        assert_eq!(understand("Segmentation fault"), None);
    }
}
