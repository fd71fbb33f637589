//! `ccgym shell` as users run it: the built program, with real namespaces, devices and packets.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{echo_client, echo_server, helper, helper_in, joined, root, round_trips, tell, Job, Ran, Sandbox};
use crate::PROGRAM;
use ccgym_path::log::{parse_log, LogLine};
use nix::sys::signal::Signal;
use serde_json::json;

const PORT: u16 = 5001;

/// Program for the ends of a path, not a test.
#[test]
#[ignore = "a program that other tests start"]
fn serve_echoes() {
    if std::env::var("CCGYM_TEST_MARK").is_ok() {
        echo_server(PORT);
    }
}

/// Program for the ends of a path, not a test.
#[test]
#[ignore = "a program that other tests start"]
fn ask_for_echoes() {
    if std::env::var("CCGYM_TEST_MARK").is_ok() {
        let number = |name: &str, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
        let gap = Duration::from_micros(number("ECHO_GAP_US", 5000));
        echo_client(PORT, number("ECHO_COUNT", 20) as u32, number("ECHO_SIZE", 200) as usize, gap);
    }
}

/// Add a server outside that answers a client inside.
fn with_server(job: Job, binary: &Path) -> Job {
    let server = joined(&helper_in(binary, "shell::serve_echoes"));
    let outside = json!({"command": server, "log": "/dev/null", "port": PORT});
    job.set("outside", outside).command(&helper_in(binary, "shell::ask_for_echoes"))
}

/// Run a client inside with a server outside; return the RTTs, too.
fn echo(place: &Sandbox, job: Job, variables: &[(&str, &str)]) -> (Ran, Vec<(u32, u64)>) {
    let mut shell = place.shell(with_server(job, &std::env::current_exe().unwrap()));
    shell.envs(variables.iter().copied());
    let ran = Ran::of(place.spawn(shell)).ok();
    let trips = round_trips(&ran.out);
    (ran, trips)
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let Some(place) = Sandbox::open() else { return };
    for (script, status) in [("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let ran = place.run(Job::new().delay(1).script(script));
        assert_eq!(ran.status, Some(status), "{script}: {}", ran.err);
        assert_eq!(ran.err, "", "{script}");
    }
    let missing = place.run(Job::new().delay(1).command(&["no-such-program"]));
    assert_eq!(missing.status, Some(2));
    for part in ["starting \"no-such-program\"", "No such file", "hint: give the name of a program in PATH"] {
        assert!(missing.err.contains(part), "{part:?} is not in {}", missing.err);
    }
    place.assert_clean(&[], "five shells");
}

#[test]
fn input_output_and_errors_are_those_of_the_command() {
    let Some(place) = Sandbox::open() else { return };
    let mut shell = place.shell(Job::new().delay(1).script("cat; echo bad >&2; exit 4"));
    shell.stdin(Stdio::piped());
    let mut child = place.spawn(shell);
    child.stdin.take().unwrap().write_all(b"some input").unwrap();
    let ran = Ran::of(child);
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (Some(4), "some input", "bad\n"));
}

#[test]
fn the_command_gets_the_variables_of_the_shell() {
    let Some(place) = Sandbox::open() else { return };
    let script = "echo $MAHIMAHI_BASE; echo \"$MAHIMAHI_SHELL_PREFIX|\"; echo $PROMPT_COMMAND; id -u; echo $$; ls /proc | grep -c '^[0-9]'";
    let ran = place.run(Job::new().delay(20).set("label", "[delay 20 ms] ").script(script)).ok();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].parse::<std::net::Ipv4Addr>().is_ok(), "{lines:?}");
    assert_eq!(lines[1], "[delay 20 ms] |");
    assert!(lines[2].contains("MAHIMAHI_SHELL_PREFIX"), "{lines:?}");
    assert_eq!(lines[3], "0");
    // In a PID namespace of its own, the number is small, and few processes are visible.
    assert!(lines[4].parse::<u32>().unwrap() < 20 && lines[5].parse::<u32>().unwrap() < 10, "{lines:?}");
    let as_nobody = place.run(Job::new().delay(1).set("user", "nobody").script("id -un; echo $USER")).ok();
    assert_eq!(as_nobody.out, "nobody\nnobody\n");
}

/// Prints all that a program may inherit besides its arguments: directory, files, limits, signals, priorities.
const INHERITED: &str = "env | sort | grep -v -e ^MAHIMAHI_ -e ^PROMPT_COMMAND -e ^_=; pwd; umask; ulimit -a; \
     echo fds /proc/self/fd/*; cat /proc/self/oom_score_adj /proc/self/timerslack_ns; \
     grep -e Sig[^Q] -e ShdPnd -e NoNewPrivs -e Seccomp: -e Cpus_allowed: -e Groups -e ^Cap -e ^Uid -e ^Gid /proc/self/status; \
     cut -d' ' -f18,19,41 /proc/self/stat";

#[test]
fn the_command_inherits_only_the_callers_state() {
    let Some(place) = Sandbox::open() else { return };
    let mut plain = Command::new("sh");
    let shell = place.shell(Job::new().delay(1).link("12mbps.trace", false).set("summary", true).script(INHERITED));
    let kept = shell.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    plain.args(["-c", INHERITED]).current_dir(&place.folder).stdin(Stdio::null()).envs(kept);
    let expected = Ran::of(place.spawn(plain)).ok().out;
    assert!(expected.contains("SigIgn") && expected.contains("CCGYM_TEST_MARK"), "{expected}");
    assert_eq!(Ran::of(place.spawn(shell)).ok().out, expected);
}

#[test]
fn under_sudo_the_command_runs_as_the_caller() {
    let Some(place) = Sandbox::open() else { return };
    fs::set_permissions(&place.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let who = "id -u; id -g; id -G; grep CapEff /proc/self/status; echo $USER $LOGNAME $HOME";
    let job = || Job::new().delay(1);
    let run = |job: Job| {
        let mut shell = place.shell(job.script(who));
        shell.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534"), ("SUDO_USER", "nobody")]);
        Ran::of(place.spawn(shell)).ok().out
    };
    let nobody = "65534\n65534\n65534\nCapEff:\t0000000000000000\nnobody nobody /nonexistent\n";
    assert_eq!(run(job()), nobody);
    let outside = format!("({who}) >outside; echo >ready; exec sleep 50");
    let waiting = job().script("until [ -e ready ]; do sleep 0.01; done");
    let mut shell = place.shell(waiting.set("outside", json!({"command": outside})));
    shell.envs([("SUDO_UID", "65534"), ("SUDO_GID", "65534")]);
    Ran::of(place.spawn(shell)).ok();
    assert_eq!(place.read("outside"), nobody.as_bytes(), "the command outside is, too");
    assert!(run(job().set("user", "root")).starts_with("0\n0\n"), "unless root is asked for");
    let mut shell = place.shell(job().command(&["true"]));
    shell.envs([("SUDO_UID", "4294000000"), ("SUDO_GID", "5")]);
    let ran = Ran::of(place.spawn(shell));
    ran.refused("unknown-name", "user 4294000000");
}

#[test]
fn a_flood_is_dropped_and_reported() {
    let Some(place) = Sandbox::open() else { return };
    // A thousand packets of 1400 bytes are in flight for ten seconds: twice the size of the memory of 1 MiB.
    let variables = [("ECHO_COUNT", "1000"), ("ECHO_SIZE", "1400"), ("ECHO_GAP_US", "0")];
    let flooded = Job::new().delay(10_000).set("packet_memory", 1 << 20).set("summary", true);
    let flooded = flooded.set("datalink_log", "t_datalink.log");
    let (ran, _) = echo(&place, flooded, &variables);
    let dropped: u64 = ran
        .err
        .split_once("warning: uplink: ")
        .and_then(|(_, rest)| rest.split_once(" packets were dropped because those under way filled 1 MiB"))
        .unwrap_or_else(|| panic!("{}", ran.err))
        .0
        .parse()
        .unwrap();
    assert!((500..1000).contains(&dropped), "{dropped}");
    let data = String::from_utf8(place.read("t_datalink.log")).unwrap();
    assert_eq!(data.lines().filter(|line| line.contains(" + ")).count(), 1000, "what was dropped has come");
    assert_eq!(echo(&place, Job::new().delay(1), &variables).0.err, "");
}

#[test]
fn delays_add_up_through_nested_shells() {
    let Some(place) = Sandbox::open() else { return };
    for (job, min_ms) in [
        (Job::new().delay(20), 38),
        (Job::new().delay(10).link("12mbps.trace", false).delay(15), 46),
        (Job::new().delay(20).set("placement", "isolated"), 38),
    ] {
        let what = job.document();
        let (_, trips) = echo(&place, job, &[]);
        assert_eq!(trips.len(), 20, "{what}");
        let best = trips.iter().map(|(_, us)| *us).min().unwrap();
        assert!(best >= min_ms * 1000, "{what}: {best} µs");
        assert!(best < (min_ms + 200) * 1000, "{what}: {best} µs");
    }
    place.assert_clean(&[], "three shells");
}

#[test]
fn losses_follow_the_seed() {
    let Some(place) = Sandbox::open() else { return };
    let lost = |seed: u64| {
        let (_, trips) =
            echo(&place, Job::new().loss(0.3).set("seed", seed), &[("ECHO_COUNT", "100"), ("ECHO_GAP_US", "500")]);
        let mut numbers: Vec<u32> = trips.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    };
    let (first, second, other) = (lost(7), lost(7), lost(8));
    assert!((50..90).contains(&first.len()), "{}", first.len());
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[test]
fn logs_have_all_events() {
    let Some(place) = Sandbox::open() else { return };
    let queue = json!({"kind": "droptail", "limit": {"packets": 3}});
    let job = Job::new().delay(10).set("label", "[delay 10 ms] ").limited_link("12mbps.trace", false, queue);
    let job = job.log("uplink", "up.log").log("downlink", "down.log").link("12mbps.trace", false);
    let job = job.log("uplink", "inner.log").set("seed", 9).set("flows", 1);
    let job = job.set("datalink_log", "t_datalink.log").set("acklink_log", "t_acklink.log");
    // Two packets per millisecond through a link for one of 1400 bytes per millisecond: some are dropped.
    let variables = [("ECHO_COUNT", "200"), ("ECHO_SIZE", "1400"), ("ECHO_GAP_US", "200")];
    let (_, trips) = echo(&place, job, &variables);
    place.assert_clean(&["down.log", "inner.log", "t_acklink.log", "t_datalink.log", "up.log"], "a shell");

    let (header, lines) = parse_log(&place.read("up.log")).unwrap();
    assert_eq!(header.title, "mm-link (Uplink) [12mbps.trace] > up.log");
    assert_eq!(header.command, "'mm-link' …");
    assert_eq!(header.queue, "droptail [packets=3]");
    assert_eq!(header.config.as_deref(), Some("[delay 10 ms] "));
    let now_ms = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    assert!(header.init_ms < now_ms && header.init_ms + 60_000 > now_ms && header.base_ms < 10_000, "{header:?}");
    assert!(String::from_utf8_lossy(&place.read("up.log")).contains("\n# seed: 9\n"));
    let count = |lines: &[LogLine], wanted: fn(&LogLine) -> bool| lines.iter().filter(|line| wanted(line)).count();
    let arrivals = |line: &LogLine| matches!(line, LogLine::Arrival { bytes: 1432, .. });
    let departures = |line: &LogLine| matches!(line, LogLine::Departure { bytes: 1432, .. });
    let drops = |line: &LogLine| matches!(line, LogLine::Drop { bytes: 1432, packets: 1, .. });
    let [arrived, left, dropped] = [count(&lines, arrivals), count(&lines, departures), count(&lines, drops)];
    let (_, inner) = parse_log(&place.read("inner.log")).unwrap();
    // The inner link comes first and has no limit.
    assert_eq!((count(&inner, arrivals), count(&inner, departures), count(&inner, drops)), (200, 200, 0));
    assert_eq!((arrived, left, left), (200, 200 - dropped, trips.len()));
    let opportunities = count(&lines, |line| matches!(line, LogLine::Opportunity { bytes: 1504, .. }));
    assert!(opportunities > 400, "{opportunities}");
    let time = |line: &LogLine| match *line {
        LogLine::Opportunity { ms, .. } | LogLine::Arrival { ms, .. } => ms,
        LogLine::Departure { ms, .. } | LogLine::Drop { ms, .. } => ms,
    };
    assert!(lines.windows(2).all(|pair| time(&pair[0]) <= time(&pair[1])));
    assert!(lines.iter().all(|line| time(line) >= header.base_ms));
    let (down, _) = parse_log(&place.read("down.log")).unwrap();
    assert_eq!(
        (down.title.as_str(), down.queue.as_str()),
        ("mm-link (Downlink) [12mbps.trace] > down.log", "infinite")
    );

    let data = String::from_utf8(place.read("t_datalink.log")).unwrap();
    assert!(data.starts_with("# init timestamp: "), "{}", &data[..60]);
    let fields: Vec<Vec<&str>> = data.lines().skip(1).map(|line| line.split(' ').collect()).collect();
    let entered = fields.iter().filter(|f| f[1] == "+" && f[2] == "1428" && f[3] == "1").count();
    let delays: Vec<f64> =
        fields.iter().filter(|f| f[1] == "-" && f[2] == "1428").map(|f| f[3].parse().unwrap()).collect();
    assert_eq!((entered, delays.len()), (200, left));
    assert!(delays.iter().all(|delay| *delay > 9.0 && *delay < 200.0), "{delays:?}");
    assert!(fields.iter().any(|f| f[1] == "#" && f[2] == "1500"));
    assert!(String::from_utf8(place.read("t_acklink.log")).unwrap().lines().count() > 2 * left);
}

#[test]
fn logs_are_written_after_a_signal() {
    if !root() {
        return;
    }
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Sandbox::new();
        let job = Job::new().link("12mbps.trace", false).log("uplink", "up.log").set("summary", true);
        let child = place.spawn(place.shell(job.script("echo > ready; exec sleep 50")));
        place.wait_for("ready");
        std::thread::sleep(Duration::from_millis(100));
        tell(child.id(), signal);
        let ran = Ran::of(child);
        assert_eq!(ran.status, Some(128 + signal as i32), "{}", ran.err);
        assert!(ran.took < Duration::from_secs(5));
        for part in ["ccgym shell: uplink 0 packets, 0 dropped", "p99", "seed "] {
            assert!(ran.err.contains(part), "{}", ran.err);
        }
        assert!(parse_log(&place.read("up.log")).unwrap().1.len() > 50);
        place.assert_clean(&["ready", "up.log"], signal.as_str());
    }
}

#[test]
fn a_shell_ends_with_its_traces() {
    let Some(place) = Sandbox::open() else { return };
    let job = || Job::new().link("short.trace", true);
    let ran = place.run(job().log("uplink", "up.log").command(&["sleep", "60"])).ok();
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    let lines = parse_log(&place.read("up.log")).unwrap().1;
    assert_eq!(lines.iter().filter(|line| matches!(line, LogLine::Opportunity { .. })).count(), 3);
    // A command that ends earlier keeps its status.
    let before = place.run(job().script("exit 5"));
    assert_eq!(before.status, Some(5));
    place.assert_clean(&["up.log"], "--once");
}

#[test]
fn the_command_outside_starts_and_ends_with_the_shell() {
    let Some(place) = Sandbox::open() else { return };
    let outside = "echo at $MAHIMAHI_BASE; trap 'echo told; exit' TERM; while :; do sleep 0.05; done";
    let job = |outside| Job::new().delay(1).set("outside", outside);
    let ran = place.run(job(json!({"command": outside, "log": "out.log"})).command(&["sleep", "0.3"])).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    let said = String::from_utf8(place.read("out.log")).unwrap();
    assert!(said.starts_with("at 1") && said.ends_with("told\n"), "{said}");
    // The session continues after the end of the command outside.
    let ran = place.run(job(json!({"command": "false"})).script("sleep 0.2; exit 6"));
    assert_eq!(ran.status, Some(6));
    // This command should listen and does not.
    let ran = place.run(job(json!({"command": "false", "port": 77})).command(&["true"]));
    ran.refused("program-failed", "the command outside");
    place.assert_clean(&["out.log"], "commands outside");
}

#[test]
fn four_parallel_shells_are_independent() {
    let Some(place) = Sandbox::open() else { return };
    let client = joined(&helper("shell::ask_for_echoes"));
    // All four in one namespace: each needs its own addresses, and the server of the first serves all.
    let first = with_server(Job::new().delay(1), &std::env::current_exe().unwrap());
    let mut first = place.spawn(place.shell(first.script("echo > ready; exec sleep 50")));
    place.wait_for("ready");
    let others = [5, 10, 15, 20].map(|ms| {
        let script = format!("echo $MAHIMAHI_BASE; {client}");
        (ms, place.spawn(place.shell(Job::new().delay(ms).script(&script))))
    });
    let mut bases = Vec::new();
    for (ms, child) in others {
        let ran = Ran::of(child).ok();
        let trips = round_trips(&ran.out);
        assert_eq!(trips.len(), 20, "{ms} ms: {}{}", ran.out, ran.err);
        let best = trips.iter().map(|(_, us)| *us).min().unwrap();
        assert!(best >= (2 * ms - 2) * 1000 && best < (2 * ms + 200) * 1000, "{ms} ms: {best} µs");
        bases.push(ran.out.lines().next().unwrap().to_owned());
    }
    bases.sort();
    bases.dedup();
    assert_eq!(bases.len(), 4);
    tell(first.id(), Signal::SIGTERM);
    first.wait().unwrap();
    place.assert_clean(&["ready"], "five shells");
}

#[test]
fn an_ordinary_user_can_start_shells() {
    let Some(place) = Sandbox::open() else { return };
    // Use a folder that this user may read: the build directory may be closed.
    fs::set_permissions(&place.folder, fs::Permissions::from_mode(0o777)).unwrap();
    let [shell, helpers] = ["shell-binary.trace", "helpers.trace"].map(|name| place.folder.join(name));
    fs::copy(PROGRAM, &shell).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &helpers).unwrap();
    let probe = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    let allowed = Command::new("setpriv").args(probe).args(["unshare", "-Urn", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: this machine gives ordinary users no namespaces");
        return;
    }
    let run = |job: Job| {
        let mut command = Command::new("setpriv");
        command.args(probe).arg(&shell).arg(job.document()).current_dir(&place.folder);
        command.env("CCGYM_TEST_MARK", &place.mark).stdin(Stdio::null());
        Ran::of(place.spawn(command))
    };
    let job = Job::new().delay(20).link("12mbps.trace", false).log("uplink", "up.log");
    let trips = round_trips(&run(with_server(job, &helpers)).ok().out);
    assert!(trips.len() == 20 && trips.iter().all(|(_, us)| *us >= 38_000), "{trips:?}");
    assert_eq!(parse_log(&place.read("up.log")).unwrap().0.title, "mm-link (Uplink) [12mbps.trace] > up.log");
    // The command keeps its user, without privileges over its environment.
    let ran = run(Job::new().delay(1).script("id -u; id -g; cat /proc/self/status | grep CapEff; exit 7"));
    assert_eq!(ran.status, Some(7), "{}", ran.err);
    assert_eq!(ran.out, "65534\n65534\nCapEff:\t0000000000000000\n");
    let refused = run(Job::new().delay(1).set("placement", "host_outside"));
    refused.refused("capability-missing", "--host");
    place.assert_clean(&["up.log"], "shells of an ordinary user");
}

#[test]
fn an_interactive_shell_has_the_terminal() {
    if !root() {
        return;
    }
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: needs script, of util-linux");
        return;
    }
    let place = Sandbox::new();
    let job = Job::new().delay(5).set("label", "[delay 5 ms] ");
    let shell = place.shell(job.command(&["bash", "--norc", "--noprofile", "-i"]));
    let words = [shell.get_program()].into_iter().chain(shell.get_args());
    let line = joined(&words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(&place.folder).env("CCGYM_TEST_MARK", &place.mark);
    script.stdin(Stdio::piped());
    let mut child = place.spawn(script);
    let mut input = child.stdin.take().unwrap();
    let mut type_in = |text: &str| {
        std::thread::sleep(Duration::from_millis(250));
        input.write_all(text.as_bytes()).unwrap();
    };
    type_in("sleep 40\n");
    type_in("\u{1a}"); // Ctrl-Z: the job stops, the shell continues
    type_in("jobs; echo j$((40+2))\n");
    type_in("kill %1; sleep 41\n");
    type_in("\u{3}"); // Ctrl-C: the job ends, the shell continues
    type_in("echo k$((40+3)); exit 9\n");
    let ran = Ran::of(child);
    assert_eq!(ran.status, Some(9), "{}\n{}", ran.out, ran.err);
    for part in ["[delay 5 ms] ", "Stopped", "j42", "k43"] {
        assert!(ran.out.contains(part), "{part:?} is not in {}", ran.out);
    }
    assert!(!ran.out.contains("no job control"), "{}", ran.out);
    place.assert_clean(&[], "an interactive shell");
}

#[test]
fn errors_are_explained_before_the_start() {
    let job = || Job::new().command(&["true"]);
    let on_off = json!({"kind": "on_off", "mean_on": 0, "mean_off": 1});
    for (job, part) in [
        (job().up(json!({"kind": "dealy"})), "reading the path: unknown variant `dealy`"),
        (job().link("no.trace", false), "reading the trace no.trace"),
        (job().up(on_off), "building the path: uplink[0]"),
        (job().delay(1).log("uplink", "up.log"), "expected: a link"),
        (job().set("user", "no-such-user-here"), if root() { "looking for the user" } else { "ccgym shell --user" }),
    ] {
        let output = Command::new(PROGRAM).arg(job.document()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{part}: {err}");
        assert!(err.contains(part), "{part}: {err}");
    }
}
