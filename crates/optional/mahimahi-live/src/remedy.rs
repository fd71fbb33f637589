//! Changes that mahimahi 0.98 needs on current systems, made in one environment only.
//!
//! mahimahi's setuid programs call `/usr/sbin/iptables`. Since 1.8.8 it refuses callers whose real user is not the
//! effective one, and it fails at once while another iptables runs. In our mount namespace, a script replaces it: it
//! becomes root with both ids and makes iptables wait.
//!
//! The programs also refuse to start without IP forwarding. A new network namespace takes this setting from the machine
//! and not from the namespace around it: without forwarding on the machine, a shell in a shell would not start. Each
//! shell starts dnsmasq as root in its new namespace, before the program inside: a script in place of dnsmasq first
//! enables forwarding there. The setting of the machine does not change.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::mount::{mount, umount, MsFlags};

use crate::diagnosis::understand;
use ccgym_net::error::{Context, Error, Result};

/// Path of iptables that is compiled into mahimahi's programs.
pub const IPTABLES: &str = "/usr/sbin/iptables";
/// Path of dnsmasq that is compiled into mahimahi's programs.
pub const DNSMASQ: &str = "/usr/sbin/dnsmasq";
/// Variants of iptables that a machine may have in addition to the one in use.
const VARIANTS: [&str; 3] = [IPTABLES, "/usr/sbin/iptables-legacy", "/usr/sbin/iptables-nft"];
/// Possible paths of the program that changes user ids.
const SETPRIV: [&str; 2] = ["/usr/bin/setpriv", "/bin/setpriv"];

/// Replace iptables by the script, in this thread's mount and network namespaces, which must be its own: call it from
/// [`ccgym_net::system::supervise::Launch::prepare`]. `directory` is a private one.
///
/// # Errors
/// iptables or setpriv is not installed, or no variant of iptables can translate addresses here.
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

/// Replace dnsmasq by the script; call it where [`stand_in_for_iptables`] is called.
pub fn forward_in_every_shell(directory: &Path) -> Result<()> {
    let step = || "letting mahimahi's shells forward packets".to_owned();
    let target = installed(DNSMASQ, "dnsmasq-base", step)?;
    let real = real_place(directory, "dnsmasq", step)?;
    bind(&target, &real).context(step)?;
    // If writing the setting fails, the error of the next shell is the better message.
    let lines = format!("echo 1 >/proc/sys/net/ipv4/ip_forward\nexec {} \"$@\"\n", real.display());
    put_in_place(directory, &target, "dnsmasq", &lines).context(step)
}

/// Return the real path of a program.
fn installed(program: &str, package: &str, step: impl FnOnce() -> String) -> Result<PathBuf> {
    fs::canonicalize(program).map_err(|error| {
        Error::of("program-missing", step(), format!("{program}: {error}"))
            .hint(format!("install {package}, which mahimahi needs"))
    })
}

/// Make a file on which the real program is mounted. It has the program's name, because all variants of iptables are
/// one program that chooses the variant by this name.
fn real_place(directory: &Path, name: &str, step: impl FnOnce() -> String) -> Result<PathBuf> {
    let folder = directory.join("real");
    let place = folder.join(name);
    fs::create_dir_all(folder).and_then(|()| fs::write(&place, "")).context(step)?;
    Ok(place)
}

/// Mount a script of these lines over `target`. `-p` keeps the rights of a setuid program.
fn put_in_place(directory: &Path, target: &Path, name: &str, lines: &str) -> io::Result<()> {
    let script = directory.join(name);
    fs::write(&script, format!("#!/bin/sh -p\n{lines}"))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(bind(&script, target)?)
}

fn bind(source: &Path, target: &Path) -> nix::Result<()> {
    mount(Some(source), target, None::<&Path>, MsFlags::MS_BIND, None::<&Path>)
}

/// Check that this iptables can translate addresses in this thread's network namespace as mahimahi does.
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
