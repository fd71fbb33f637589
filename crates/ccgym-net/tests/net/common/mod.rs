//! Shared code of tests with real packets, also in `crates/optional`: a private namespace, paths, and small programs
//! for the ends. `crate::PROGRAM` is the program that runs jobs.
#![allow(dead_code, clippy::print_stdout, clippy::print_stderr)]

pub mod programs;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::PROGRAM;
use ccgym_core::{Rate, TimeSpan};
use ccgym_net::error::Error;
use ccgym_net::shell::{EmulatorSpec, USUAL_PACKET_MEMORY};
use ccgym_net::system::Namespace;
use ccgym_net::Clock;
use ccgym_path::{Chain, DeliveryTrace, ElementSpec, LimitSpec, Param, QueueSpec, ScheduleSpec};
use nix::sys::signal::{kill, signal, SigHandler, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};

/// Return true in `make test-all`: then the tests have more repetitions.
pub fn all_tests() -> bool {
    std::env::var_os("CCGYM_TEST_ALL").is_some()
}

/// Return true if this process may do all that the tests need; otherwise print that they are skipped.
pub fn root() -> bool {
    let root = nix::unistd::geteuid().is_root() && Namespace::new().is_ok();
    if !root {
        eprintln!("SKIPPED: needs root, to make network namespaces");
    }
    root
}

/// Restore SIGINT, as from a terminal: a parent that runs these tests in the background may ignore it.
#[allow(unsafe_code)] // `pre_exec` and `signal` are unsafe: only a system call may follow, and only one follows here.
pub fn heed_interrupts(command: &mut Command) {
    let heed = || unsafe { signal(Signal::SIGINT, SigHandler::SigDfl) }.map(drop).map_err(Into::into);
    unsafe { command.pre_exec(heed) };
}

/// Sandbox of one test: a directory, a network namespace in place of the machine's, and a mark in the environment of
/// all processes that are started here.
pub struct Sandbox {
    pub folder: PathBuf,
    pub namespace: Namespace,
    pub mark: String,
}

impl Sandbox {
    /// Open a sandbox; `None`, with a message, if this process may not make network namespaces.
    pub fn open() -> Option<Self> {
        root().then(Self::new)
    }

    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // No mark is a prefix of another.
        let mark = format!("ccgym-test-{}-{number:04}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("12mbps.trace"), "1\n").unwrap();
        fs::write(folder.join("short.trace"), "100\n200\n300\n").unwrap();
        Self { folder, namespace: Namespace::new().unwrap(), mark }
    }

    /// Make the command of a shell.
    pub fn shell(&self, job: Job) -> Command {
        let mut shell = Command::new(PROGRAM);
        shell.arg(job.document()).current_dir(&self.folder).stdin(Stdio::null());
        shell.env("CCGYM_TEST_MARK", &self.mark).env_remove("MAHIMAHI_BASE").env_remove("MAHIMAHI_SHELL_PREFIX");
        shell
    }

    /// Start a command in the namespace of this sandbox, as from a terminal.
    pub fn spawn(&self, mut command: Command) -> Child {
        heed_interrupts(&mut command);
        self.namespace.run(|| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()).unwrap().unwrap()
    }

    /// Make the command of a run, by this program and its words; it ends with its input.
    pub fn plan(&self, words: &[&str], plan: &Value) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(json!({"run": plan}).to_string()).env("CCGYM_TEST_MARK", &self.mark);
        command.current_dir(&self.folder).stdin(Stdio::piped());
        command
    }

    /// Run a shell to its end; no shell of these tests takes longer than a minute.
    pub fn run(&self, job: Job) -> Ran {
        Ran::of(self.spawn(self.shell(job)))
    }

    /// Wait until a process of this sandbox has made this file.
    pub fn wait_for(&self, name: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.folder.join(name).exists() {
            assert!(Instant::now() < deadline, "no file {name} appeared");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Return the names of the files here, without the traces.
    pub fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.ends_with(".trace")).collect();
        names.sort();
        names
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Return the network devices in the namespace of this sandbox, without loopback.
    pub fn devices(&self) -> Vec<String> {
        let table = self.namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        let names = table.lines().skip(2).filter_map(|line| line.split(':').next()).map(|name| name.trim().to_owned());
        // Some kernels put these devices into every namespace.
        let own = ["lo", "tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip_vti0", "ip6_vti0", "ip6gre0"];
        names.filter(|name| !own.contains(&name.as_str())).collect()
    }

    /// Return the command lines of processes that were started here, directly or indirectly.
    pub fn processes(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            if environment.windows(self.mark.len()).any(|window| window == self.mark.as_bytes()) {
                let words = fs::read(path.join("cmdline")).unwrap_or_default();
                found.push(format!("{}: {}", path.display(), String::from_utf8_lossy(&words).replace('\0', " ")));
            }
        }
        found
    }

    /// Check that within some seconds nothing remains except these files.
    pub fn assert_clean(&self, files: &[&str], what: &str) {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let (processes, devices) = (self.processes(), self.devices());
            if processes.is_empty() && devices.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "left behind after {what}: {processes:?}, {devices:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.files(), files, "files after {what}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Job of a shell. Elements are added from the outermost to the innermost, in the order of mahimahi's shells.
#[derive(Clone)]
pub struct Job(Value);

impl Job {
    pub fn new() -> Self {
        Self(json!({
            "path": {"uplink": [], "downlink": []}, "origin": "the path", "label": "", "packet_memory": 512 << 20,
            "link_logs": [],
        }))
    }

    pub fn delay(self, ms: u64) -> Self {
        let delay = json!({"kind": "delay", "delay": ms * 1_000_000, "tick": 1_000_000});
        self.up(delay.clone()).down(delay)
    }

    /// Add random loss to the uplink.
    pub fn loss(self, probability: f64) -> Self {
        self.up(json!({"kind": "loss", "probability": probability}))
    }

    /// Add a link with this trace in both directions.
    pub fn link(self, trace: &str, once: bool) -> Self {
        self.limited_link(trace, once, json!({"kind": "infinite"}))
    }

    /// Add a link with a queue in the uplink.
    pub fn limited_link(mut self, trace: &str, once: bool, queue: Value) -> Self {
        let link = |queue| {
            let schedule = json!({"kind": "trace", "name": trace, "once": once});
            json!({"kind": "link", "schedule": schedule, "queue": queue, "overhead": 4})
        };
        self.0["traces"][trace] = trace.into();
        if once {
            self.0["ends_with"] = json!([[trace]]);
        }
        self.up(link(queue)).down(link(json!({"kind": "infinite"})))
    }

    pub fn up(mut self, element: Value) -> Self {
        // A packet of the command reaches the innermost element first.
        for log in self.0["link_logs"].as_array_mut().into_iter().flatten().filter(|log| log["direction"] == "uplink") {
            log["element"] = (log["element"].as_u64().unwrap() + 1).into();
        }
        self.0["path"]["uplink"].as_array_mut().unwrap().insert(0, element);
        self
    }

    pub fn down(mut self, element: Value) -> Self {
        self.0["path"]["downlink"].as_array_mut().unwrap().push(element);
        self
    }

    /// Log a direction of the link that was added last.
    pub fn log(mut self, direction: &str, file: &str) -> Self {
        let element = match direction {
            "uplink" => 0,
            _ => self.0["path"]["downlink"].as_array().unwrap().len() - 1,
        };
        let log = json!({
            "direction": direction, "element": element, "file": file, "command_line": "'mm-link' …",
            "outer": self.0["label"],
        });
        self.0["link_logs"].as_array_mut().unwrap().push(log);
        self
    }

    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0[key] = value.into();
        self
    }

    pub fn command<S: AsRef<str>>(self, words: &[S]) -> Self {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        self.set("command", json!(words))
    }

    /// Run a script inside.
    pub fn script(self, text: &str) -> Self {
        self.command(&["sh", "-c", text])
    }

    pub fn document(&self) -> String {
        json!({"shell": self.0}).to_string()
    }
}

/// Send a signal to a process. Some machines have no program `kill`.
pub fn tell(process: u32, what: Signal) {
    kill(Pid::from_raw(process as i32), what).unwrap();
}

/// Result of a command.
pub struct Ran {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Ran {
    pub fn of(mut child: Child) -> Self {
        let start = Instant::now();
        // The command would end with its input.
        let _input = child.stdin.take();
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { status: status.code(), out: text(stdout), err: text(stderr), took: start.elapsed() }
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{}\n{}", self.out, self.err);
        self
    }

    /// Check that an error with this code ended it; programs print it as JSON, commands as text.
    pub fn refused(&self, code: &str, place: &str) {
        assert_eq!(self.status, Some(2), "{}\n{}", self.out, self.err);
        explained(&self.err, code, place);
    }
}

/// Check that `printed` ends with one error of this code and place, as JSON for programs or as text.
pub fn explained(printed: &str, code: &str, place: &str) {
    let error = serde_json::from_str::<Error>(printed.trim_end().rsplit('\n').next().unwrap_or_default());
    let text = error.map_or_else(|_| printed.to_owned(), |error| format!("error[{}]: {error}", error.code));
    let said = text.lines().find_map(|line| line.strip_prefix(&format!("error[{code}]: ")));
    assert!(said.is_some_and(|said| said.contains(place)), "no {code} at {place}: {text}");
}

/// Return the words that run a helper below as a program: this test binary.
pub fn helper(name: &str) -> Vec<String> {
    helper_in(&std::env::current_exe().unwrap(), name)
}

pub fn helper_in(binary: &Path, name: &str) -> Vec<String> {
    [binary.to_str().unwrap(), name, "--exact", "--include-ignored", "--nocapture", "-q"].map(str::to_owned).to_vec()
}

/// Answer every datagram at `port` of this namespace, until the process is killed.
pub fn echo_server(port: u16) {
    let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    let mut buffer = [0; 2000];
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(&buffer[..length], from);
    }
}

/// Send numbered datagrams to `$MAHIMAHI_BASE`, and print `RTT number microseconds` for each answer.
pub fn echo_client(port: u16, count: u32, size: usize, gap: Duration) {
    let base: std::net::Ipv4Addr = std::env::var("MAHIMAHI_BASE").unwrap().parse().unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((base, port)).unwrap();
    let start = Instant::now();
    let reader = socket.try_clone().unwrap();
    reader.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let answers = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        while let Ok(length) = reader.recv(&mut buffer) {
            let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
            let sent = u64::from_be_bytes(buffer[4..12].try_into().unwrap());
            assert_eq!(length, size);
            println!("RTT {number} {}", start.elapsed().as_micros() as u64 - sent);
        }
    });
    let mut packet = vec![0; size];
    for number in 0..count {
        packet[..4].copy_from_slice(&number.to_be_bytes());
        packet[4..12].copy_from_slice(&(start.elapsed().as_micros() as u64).to_be_bytes());
        let _ = socket.send(&packet);
        std::thread::sleep(gap);
    }
    answers.join().unwrap();
}

/// Read the output of [`echo_client`]: (number, microseconds).
pub fn round_trips(out: &str) -> Vec<(u32, u64)> {
    let lines = out.lines().filter_map(|line| line.split_once("RTT ").map(|(_, rest)| rest));
    lines
        .filter_map(|rest| rest.split_once(' '))
        .map(|(a, b)| (a.parse().unwrap(), b.trim().parse().unwrap()))
        .collect()
}

/// Join words to one command for `sh -c`.
pub fn joined(words: &[String]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

pub fn chain(specs: &[ElementSpec], first: u64) -> Chain {
    // Ten gigabits per second.
    let trace = Arc::new(DeliveryTrace::from_ms("t", vec![1; 833]).unwrap());
    Chain::new(specs, 5, first, &|_| Some(Arc::clone(&trace))).unwrap()
}

pub fn delay(us: u64) -> ElementSpec {
    ElementSpec::Delay { delay: Param::Constant(TimeSpan::from_micros(us)), tick: TimeSpan::ZERO }
}

pub fn loss(probability: f64) -> ElementSpec {
    ElementSpec::Loss { probability: Param::Constant(probability) }
}

pub fn link(mbps: f64, packets: u64) -> ElementSpec {
    let schedule = ScheduleSpec::Rate { rate: Param::Constant(Rate::from_mbps(mbps)) };
    let queue = QueueSpec::Droptail { limit: LimitSpec { packets: Some(packets), bytes: None } };
    ElementSpec::Link { schedule, queue, overhead: 4, device_packets: 0 }
}

/// Make an emulator of these elements for one flow, with all logs.
pub fn spec(clock: Clock, up: &[ElementSpec], down: &[ElementSpec]) -> EmulatorSpec {
    let step = TimeSpan::from_millis(100);
    EmulatorSpec {
        up: chain(up, 0),
        down: chain(down, 100),
        clock,
        flows: 1,
        packets: true,
        link_events: true,
        step,
        packet_memory: USUAL_PACKET_MEMORY,
    }
}
