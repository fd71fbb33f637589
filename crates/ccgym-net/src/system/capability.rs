//! Permission to make namespaces and devices, also for an ordinary user.

use std::fs;
use std::io;

use nix::sched::{unshare, CloneFlags};
use nix::unistd::{getegid, geteuid, Gid, Uid};

use super::thread::one_thread;
use crate::error::{Context, Error, Result};

/// Role in which this process may make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// It has the capabilities in the machine's user namespace.
    Root,
    /// It has them in another user namespace: over network namespaces that it makes, not over the machine's.
    UserNamespace,
}

/// `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_SYS_ADMIN`.
const NEEDED: u64 = (1 << 12) | (1 << 13) | (1 << 21);

/// Return the role in which this thread has the capabilities; `None` without them.
pub fn present() -> Option<Capability> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let effective =
        u64::from_str_radix(status.lines().find_map(|line| line.strip_prefix("CapEff:"))?.trim(), 16).ok()?;
    if effective & NEEDED != NEEDED {
        return None;
    }
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let initial = map.split_ascii_whitespace().eq(["0", "0", "4294967295"]);
    Some(if initial { Capability::Root } else { Capability::UserNamespace })
}

/// Return the user and group that called `sudo`, if this process is root by it.
pub fn sudo_caller() -> Option<(Uid, Gid)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (geteuid().is_root() && uid != 0).then_some((Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// Get the permission to make namespaces: as this process is, or in a new user namespace, which it enters permanently.
///
/// # Errors
/// It must enter a user namespace, and has more than one thread, or the machine does not allow it.
pub fn become_capable() -> Result<Capability> {
    if let Some(capability) = present() {
        return Ok(capability);
    }
    let (uid, gid) = (geteuid(), getegid());
    let step = || format!("entering a user namespace as user {uid}");
    one_thread(&step())?;
    unshare(CloneFlags::CLONE_NEWUSER).context(step).map_err(|error| error.hint(remedy()))?;
    // Without this an ordinary user may not map a group.
    match fs::write("/proc/self/setgroups", "deny") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::of("capability-missing", "writing /proc/self/setgroups", error))
        }
        _ => {}
    }
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).context(|| "writing /proc/self/uid_map".into())?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).context(|| "writing /proc/self/gid_map".into())?;
    match present() {
        Some(capability) => Ok(capability),
        // Some security modules allow the namespace and then remove all capabilities in it.
        None => Err(Error::of("capability-missing", step(), "no capabilities in it").hint(remedy())),
    }
}

/// Return the remedy for the kernel setting that keeps an ordinary user from making user namespaces.
fn remedy() -> String {
    let reads = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    for (switch, off) in [
        ("kernel.unprivileged_userns_clone", "0"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1"),
        ("user.max_user_namespaces", "0"),
    ] {
        if reads(&format!("/proc/sys/{}", switch.replace('.', "/")), off) {
            let on = match switch {
                "user.max_user_namespaces" => "10000",
                _ if off == "0" => "1",
                _ => "0",
            };
            return format!("this machine forbids user namespaces: run as root, or `sysctl -w {switch}={on}`");
        }
    }
    "run as root, or where user namespaces are allowed (in a container: with CAP_SYS_ADMIN and CAP_NET_ADMIN)".into()
}

#[cfg(test)]
#[allow(clippy::print_stderr)] // Prints skipped checks.
mod tests {
    use super::*;

    #[test]
    fn a_capable_process_does_not_change() {
        match present() {
            Some(capability) => assert_eq!(become_capable().unwrap(), capability),
            None => eprintln!("SKIPPED: no capabilities"),
        }
    }
}
