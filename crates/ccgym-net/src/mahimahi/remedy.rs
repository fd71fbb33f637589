//! What mahimahi 0.98 needs on a machine of today, done for one environment alone.
//!
//! Its setuid programs call `/usr/sbin/iptables`, which since 1.8.8 refuses to run for a caller whose real user is not
//! the effective one, and which fails at once while another iptables runs. In a mount namespace of our own a script
//! stands in its place that becomes root entirely and lets it wait.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::mount::{mount, umount, MsFlags};

use super::Diagnosis;
use crate::error::{NetError, Result, Step};

/// The path that mahimahi's programs have compiled in.
pub(super) const IPTABLES: &str = "/usr/sbin/iptables";
/// Variants that a machine may have beside the one it uses.
const VARIANTS: [&str; 3] = [IPTABLES, "/usr/sbin/iptables-legacy", "/usr/sbin/iptables-nft"];
/// Where the program may be that changes user ids.
const SETPRIV: [&str; 2] = ["/usr/bin/setpriv", "/bin/setpriv"];

/// Put the script in the place of iptables, for this thread's mounts and network, which must be its own: to be called in
/// the `prepare` of [`crate::system::isolation::Surroundings::Own`]. `directory` is a private one.
///
/// # Errors
/// If iptables or setpriv is not installed, or no variant of iptables can translate addresses here.
pub fn stand_in_for_iptables(directory: &Path) -> Result<()> {
    let step = || "preparing iptables for mahimahi".to_owned();
    let target = fs::canonicalize(IPTABLES).map_err(|error| {
        NetError::new(step(), format!("{IPTABLES}: {error}")).hint("install iptables, which mahimahi needs")
    })?;
    let setpriv = SETPRIV
        .into_iter()
        .find(|path| Path::new(path).exists())
        .ok_or_else(|| NetError::new(step(), "no setpriv on this machine").hint("install util-linux 2.31 or later"))?;
    // A file of that name, because the variants are one program that looks at the name it is called by.
    let real = directory.join("real").join("iptables");
    fs::create_dir(directory.join("real")).and_then(|()| fs::write(&real, "")).step(step)?;
    let mut complaints = String::new();
    for variant in VARIANTS.iter().filter_map(|path| fs::canonicalize(path).ok()) {
        mount(Some(&variant), &real, None::<&Path>, MsFlags::MS_BIND, None::<&Path>).step(step)?;
        match translates(&real) {
            Ok(()) => {
                let script = directory.join("iptables");
                let line = format!(
                    "#!/bin/sh -p\nexec {setpriv} --reuid 0 --regid 0 --clear-groups {} -w 20 \"$@\"\n",
                    real.display()
                );
                fs::write(&script, line).step(step)?;
                fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).step(step)?;
                return mount(Some(&script), &target, None::<&Path>, MsFlags::MS_BIND, None::<&Path>).step(step);
            }
            Err(complaint) => complaints.push_str(&complaint),
        }
        umount(&real).step(step)?;
    }
    let diagnosis = super::diagnosis::understand("iptables");
    let Diagnosis { remedy, .. } =
        diagnosis.unwrap_or_else(|| Diagnosis { problem: String::new(), remedy: String::new() });
    Err(NetError::new(step(), complaints.trim_end()).expected("a working address translation").hint(remedy))
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
