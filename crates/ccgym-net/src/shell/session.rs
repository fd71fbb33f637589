//! `ccgym shell`: a command behind an emulated path.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_path::{Chain, DeliveryTrace, ElementSpec};
use nix::unistd::{getgid, getgrouplist, getpgrp, getuid, tcgetpgrp, User};

use super::environment::{at_end, inherited, user_shell};
use super::job::ShellJob;
use super::path_emulator::{EmulatorSpec, PathEmulator};
use super::records::Records;
use super::watch::{start, Watch, TAKEN};
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::run::plan::load_traces;
use crate::system::endpoints::BASE_VARIABLE as BASE;
use crate::system::signals::Signals;
use crate::system::supervise::{self, Group, Launch};
use crate::system::{become_capable, is_listened_on, sudo_caller, Capability, Endpoints, Namespace, Placement};

/// Max time until the command outside listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// Run a shell, and return the exit status of its command.
///
/// # Errors
/// An invalid path, missing rights on the machine, a command that cannot be started, a log that cannot be written.
/// A failure of the command itself is not an error.
pub fn run(job: &ShellJob) -> Result<i32> {
    let path = job.elements()?;
    let seed = match job.seed {
        Some(seed) => seed,
        None => random()?,
    };
    let traces = load_traces(&job.traces)?;
    let chain = |specs: &[ElementSpec], way: &str, first_index| {
        let find = |name: &str| traces.get(name).map(Arc::clone);
        Chain::new(specs, seed, first_index, &find).map_err(|error| {
            let place = format!("building {}: {way}{}", job.origin, error.place);
            Error { place, ..error.code_or("description-invalid") }
        })
    };
    // Random streams as in the simulator.
    let (up, down) = (chain(&path.uplink, "uplink", 0)?, chain(&path.downlink, "downlink", 1 << 32)?);
    let records = Records::open(job, &path, seed)?;
    let outside_log = match job.outside.as_ref().and_then(|outside| outside.log.as_ref()) {
        Some(log) => Some(File::create(log).context(|| format!("making the log {}", log.display()))?),
        None => None,
    };

    let (uid, gid) = (getuid(), getgid());
    let named = job.user.as_deref().map(find_user).transpose()?;
    let capability = become_capable()?;
    let user = match (named, capability) {
        (None, Capability::Root) => find_sudo_caller()?,
        (named, _) => named,
    };
    let placement = place(job.placement, capability, user.is_some())?;
    let ends = Endpoints::open(placement)?;
    let base = ends.outside.address;
    if let Ok(outer) = std::env::var(BASE) {
        say(&format!("note: inside another path: {BASE} is now {base}, not {outer}; one command may nest all tools\n"));
    }
    let identity = match &user {
        Some(user) => supervise::User::Other {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups(user)?.iter().map(|group| group.as_raw()).collect(),
        },
        None if getuid() != uid => supervise::User::Before(uid.as_raw(), gid.as_raw()),
        None => supervise::User::Ours,
    };
    let words = match &job.command[..] {
        [] => vec![user_shell(user.as_ref())],
        words => words.to_vec(),
    };
    let terminal = io::stdin().is_terminal() && tcgetpgrp(io::stdin()) == Ok(getpgrp());
    let signals = Signals::take(TAKEN)?;
    let launch = |words, label: Option<&str>, namespace: &Arc<Namespace>, streams, group| Launch {
        words,
        environment: at_end(inherited(), base, label, user.as_ref()),
        streams,
        kept: Vec::new(),
        network: Arc::clone(namespace),
        user: identity.clone(),
        group,
        mask: Some(signals.mask),
        prepare: None,
    };
    let group = if terminal { Group::Foreground } else { Group::Ours };
    let inherit = [Stdio::inherit(), Stdio::inherit(), Stdio::inherit()];
    let command = launch(words, Some(&job.label), &ends.inside.namespace, inherit, group);
    // Permit ping without root: no other program is in this namespace.
    let setting = "/proc/sys/net/ipv4/ping_group_range";
    let allow = || fs::write(setting, "0 2147483647").or_else(|_| fs::write(setting, "0 0"));
    let _ = ends.inside.namespace.run(allow)?;
    let peer = match &job.outside {
        Some(outside) => {
            let step = || "redirecting the output of the command outside".to_owned();
            let (out, err) = match outside_log {
                Some(log) => (log.try_clone().context(step)?.into(), log.into()),
                None => (io::stderr().as_fd().try_clone_to_owned().context(step)?.into(), Stdio::inherit()),
            };
            let words = vec!["/bin/sh".into(), "-c".into(), outside.command.clone()];
            let streams = [Stdio::null(), out, err];
            Some(start(launch(words, None, &ends.outside.namespace, streams, Group::Session))?)
        }
        None => None,
    };
    let mut watch = Watch::new(peer, &signals, terminal);
    if let Some(port) = job.outside.as_ref().and_then(|outside| outside.port) {
        if let Some(status) = wait_for_port(&mut watch, &ends.outside.namespace, port)? {
            return Ok(status);
        }
    }
    let clock = Clock::start();
    let emulator = PathEmulator::start(
        &ends,
        EmulatorSpec {
            up,
            down,
            clock,
            flows: job.flows,
            packets: records.packets(),
            link_events: records.link_events(),
            step: TimeSpan::ZERO,
            packet_memory: job.packet_memory,
        },
    )?;
    let end = ends_at(&job.ends_with, &traces);
    let outcome = watch.until_ended(command, &clock, end, &|| emulator.is_running());
    // A failure of the path ended the command: return that error first.
    let report = emulator.stop(clock.now())?;
    let status = outcome?;
    if let Some(line) = records.write(&report, &clock)? {
        say(&line);
    }
    for (way, refused) in [("uplink", report.up.refused), ("downlink", report.down.refused)] {
        if refused > 0 {
            let mib = job.packet_memory >> 20;
            say(&format!(
                "warning: {way}: {refused} packets were dropped because those under way filled {mib} MiB\n  hint: \
                 --packet-memory MIB allows more; a queue with a limit, as --{way}-queue=droptail, drops earlier\n"
            ));
        }
    }
    Ok(status)
}

/// Write to standard error; ignore errors.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn random() -> Result<u64> {
    // Short enough to type again.
    getrandom::u64().map(|seed| seed >> 32).map_err(|error| Error::of("system-call-failed", "drawing a seed", error))
}

/// Return the end of the shell: the time when all traces of one group have been played.
fn ends_at(groups: &[Vec<String>], traces: &BTreeMap<String, Arc<DeliveryTrace>>) -> Timestamp {
    let end = |group: &Vec<String>| {
        let periods = group.iter().filter_map(|name| traces.get(name)).map(|trace| trace.period());
        periods.max().map_or(Timestamp::NEVER, |period| Timestamp::ZERO.saturating_add(period))
    };
    groups.iter().map(end).min().unwrap_or(Timestamp::NEVER)
}

fn find_user(name: &str) -> Result<User> {
    let step = || format!("looking for the user {name}");
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::of("capability-missing", "ccgym shell --user", "an ordinary user").expected("root"));
    }
    User::from_name(name)
        .context(step)?
        .ok_or_else(|| Error::of("unknown-name", step(), "there is none").expected("a login name"))
}

/// Return the user who called `sudo`: programs should not run as root only because the path needs root.
fn find_sudo_caller() -> Result<Option<User>> {
    let Some((uid, gid)) = sudo_caller() else { return Ok(None) };
    let step = || format!("looking for user {uid}, who called sudo");
    let user = User::from_uid(uid).context(step)?.ok_or_else(|| {
        Error::of("unknown-name", step(), "there is none")
            .expected("a user of this machine")
            .hint("name one: --user NAME, or --user root")
    })?;
    Ok(Some(User { gid, ..user }))
}

fn groups(user: &User) -> Result<Vec<nix::unistd::Gid>> {
    let step = || format!("looking for the groups of {}", user.name);
    let name = CString::new(user.name.as_str()).map_err(|error| Error::of("run-failed", step(), error))?;
    getgrouplist(&name, user.gid).context(step)
}

fn place(wanted: Option<Placement>, capability: Capability, user: bool) -> Result<Placement> {
    let denied = |option: &str, found: &str| Error::of("capability-missing", option, found);
    match (capability, wanted) {
        (Capability::UserNamespace, Some(Placement::HostOutside)) => {
            Err(denied("ccgym shell --host", "no power over this machine's network")
                .expected("root")
                .hint("without --host both ends are apart from the machine; --outside starts a server for the command"))
        }
        (Capability::UserNamespace, _) if user => {
            Err(denied("ccgym shell --user", "a user namespace").expected("the machine's own root"))
        }
        (Capability::UserNamespace, _) => Ok(Placement::Isolated),
        (Capability::Root, wanted) => Ok(wanted.unwrap_or(Placement::HostOutside)),
    }
}

/// Wait until a program listens at the other end. Return the status if the session ends before.
fn wait_for_port(watch: &mut Watch<'_>, outside: &Namespace, port: u16) -> Result<Option<i32>> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if outside.run(|| is_listened_on(port))? {
            return Ok(None);
        }
        if let Some(status) = watch.pause(Duration::from_millis(10))? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            let found = format!("nothing listens on it after {} s", PATIENCE.as_secs());
            return Err(Error::of("no-answer", format!("waiting for port {port} of the command outside"), found)
                .hint("see what it says, with --outside-log FILE"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_ends_when_all_traces_of_a_group_have() {
        let trace = |name: &str, ms| (name.to_owned(), Arc::new(DeliveryTrace::from_ms(name, vec![ms]).unwrap()));
        let traces = BTreeMap::from([trace("a", 100), trace("b", 300), trace("c", 200), trace("d", 250)]);
        let end = |groups: &[&[&str]]| {
            let groups: Vec<Vec<String>> =
                groups.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect();
            ends_at(&groups, &traces)
        };
        assert_eq!(end(&[]), Timestamp::NEVER);
        assert_eq!(end(&[&["a", "b"]]), Timestamp::from_millis(300));
        assert_eq!(end(&[&["a", "b"], &["c", "d"]]), Timestamp::from_millis(250));
    }
}
