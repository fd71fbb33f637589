//! What mahimahi 0.98 needs on a machine of today, done for one environment alone.
//!
//! Its setuid programs call `/usr/sbin/iptables`, which since 1.8.8 refuses to run for a caller whose real user is not
//! the effective one, and which fails at once while another iptables runs. In a mount namespace of our own a script
//! stands in its place that becomes root entirely and lets it wait.
//!
//! They also refuse to start where IP forwarding is off. A new network namespace takes that setting from the machine,
//! not from the namespace around it, so on a machine that does not forward, a shell inside a shell would not start.
//! Each shell starts dnsmasq as root in its new namespace, before the program inside: a script in dnsmasq's place turns
//! forwarding on there first. The machine's own setting stays as it is.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{mount, umount, MsFlags};

use crate::diagnosis::understand;
use ccgym_net::error::{Context, Error, Result};

/// The path that mahimahi's programs have compiled in.
pub const IPTABLES: &str = "/usr/sbin/iptables";
/// Likewise.
pub const DNSMASQ: &str = "/usr/sbin/dnsmasq";
/// Variants that a machine may have in addition to the one it uses.
const VARIANTS: [&str; 3] = [IPTABLES, "/usr/sbin/iptables-legacy", "/usr/sbin/iptables-nft"];
/// Where the program may be that changes user ids.
const SETPRIV: [&str; 2] = ["/usr/bin/setpriv", "/bin/setpriv"];

/// Put the script in the place of iptables, for this thread's mounts and network, which must be its own: to be called by
/// [`ccgym_net::system::supervise::Launch::prepare`]. `directory` is a private one.
///
/// # Errors
/// If iptables or setpriv is not installed, or no variant of iptables can translate addresses here.
pub fn stand_in_for_iptables(directory: &Path) -> Result<()> {
    let step = || "preparing iptables for mahimahi".to_owned();
    let target = installed(IPTABLES, "iptables", step)?;
    let setpriv = SETPRIV.into_iter().find(|path| Path::new(path).exists()).ok_or_else(|| {
        Error::of("program-missing", step(), "no setpriv on this machine").hint("install util-linux 2.31 or later")
    })?;
    let real = real_place(directory, "iptables", step)?;
    let mut complaints = String::new();
    for variant in VARIANTS.iter().filter_map(|path| fs::canonicalize(path).ok()) {
        bind(&variant, &real).context(step)?;
        match translates(&real) {
            Ok(()) => {
                let line =
                    format!("exec {setpriv} --reuid 0 --regid 0 --clear-groups {} -w 20 \"$@\"\n", real.display());
                return put_in_place(directory, &target, "iptables", &line).context(step);
            }
            Err(complaint) => complaints.push_str(&complaint),
        }
        umount(&real).context(step)?;
    }
    let remedy = understand("iptables").map_or("", |known| known.remedy);
    Err(Error::of("capability-missing", step(), complaints.trim_end())
        .expected("a working address translation")
        .hint(remedy))
}

/// Put the script in the place of dnsmasq; to be called where [`stand_in_for_iptables`] is.
pub fn forward_in_every_shell(directory: &Path) -> Result<()> {
    let step = || "letting mahimahi's shells forward packets".to_owned();
    let target = installed(DNSMASQ, "dnsmasq-base", step)?;
    let real = real_place(directory, "dnsmasq", step)?;
    bind(&target, &real).context(step)?;
    // If the setting cannot be written, the next shell says so better than this one could.
    let lines = format!("echo 1 >/proc/sys/net/ipv4/ip_forward\nexec {} \"$@\"\n", real.display());
    put_in_place(directory, &target, "dnsmasq", &lines).context(step)
}

/// Where a program really lies.
fn installed(program: &str, package: &str, step: impl FnOnce() -> String) -> Result<PathBuf> {
    fs::canonicalize(program).map_err(|error| {
        Error::of("program-missing", step(), format!("{program}: {error}"))
            .hint(format!("install {package}, which mahimahi needs"))
    })
}

/// A file to mount the real program on. It has the program's name, because the variants of iptables are one program
/// that looks at the name it is called by.
fn real_place(directory: &Path, name: &str, step: impl FnOnce() -> String) -> Result<PathBuf> {
    let folder = directory.join("real");
    let place = folder.join(name);
    fs::create_dir_all(folder).and_then(|()| fs::write(&place, "")).context(step)?;
    Ok(place)
}

/// Have a script of these lines run instead of `target`. `-p` keeps the rights of a setuid program.
fn put_in_place(directory: &Path, target: &Path, name: &str, lines: &str) -> io::Result<()> {
    let script = directory.join(name);
    fs::write(&script, format!("#!/bin/sh -p\n{lines}"))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(bind(&script, target)?)
}

fn bind(source: &Path, target: &Path) -> nix::Result<()> {
    mount(Some(source), target, None::<&Path>, MsFlags::MS_BIND, None::<&Path>)
}

/// Whether this iptables can translate addresses in the network namespace of this thread, in the way of mahimahi.
fn translates(program: &Path) -> Result<(), String> {
    for change in ["-A", "-D"] {
        let rule = ["POSTROUTING", "-m", "connmark", "--mark", "1", "-j", "MASQUERADE"];
        let done = Command::new(program)
            .args(["-w", "20", "-t", "nat", change])
            .args(rule)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(|error| format!("{error}\n"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
    }
    Ok(())
}
