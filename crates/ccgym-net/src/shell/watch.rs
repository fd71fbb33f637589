//! Supervision of the command: signals to this process, the command's stops and end, the terminal.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ccgym_core::units::Timestamp;
use nix::poll::PollTimeout;
use nix::sys::signal::{killpg, Signal};
use nix::unistd::{getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::system::signals::{readable, Signals};
use crate::system::supervise::{Isolated, Launch};

/// Signals read here instead of ending the process: those to forward, those of the terminal, and SIGTTOU, so that this
/// process can get the terminal back from the background.
pub(super) const TAKEN: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCONT, Signal::SIGTTOU];
/// Time after SIGTERM or SIGHUP until a command that still runs is ended.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Interval between checks of the path.
const CHECK: Duration = Duration::from_secs(1);
/// `si_code` of signals from the kernel, as for Ctrl-C: the command received them too.
const FROM_KERNEL: i32 = 0x80;

/// Programs at both ends, and signals to this process.
pub(super) struct Watch<'a> {
    command: Option<Isolated>,
    peer: Option<Isolated>,
    signals: &'a Signals,
    terminal: bool,
    /// Time to end a command that ignores a signal.
    deadline: Option<Instant>,
    /// Exit status of a signal that ended the session.
    stopped_by: Option<i32>,
}

impl<'a> Watch<'a> {
    pub fn new(peer: Option<Isolated>, signals: &'a Signals, terminal: bool) -> Self {
        Self { command: None, peer, signals, terminal, deadline: None, stopped_by: None }
    }

    /// Wait for `time`. Return a status if a signal ended the session.
    pub fn pause(&mut self, time: Duration) -> Result<Option<i32>> {
        self.next(time);
        match self.peer.as_ref().and_then(|peer| peer.wait(Duration::ZERO)) {
            Some(status) => {
                Err(Error::of("program-failed", "waiting for the command outside", format!("it ended with {status}"))
                    .expected("a program that listens and stays"))
            }
            None => Ok(self.stopped_by),
        }
    }

    /// Start the command and wait for its end, or for `once`, or until the path fails. Then end all that the command
    /// started.
    pub fn until_ended(
        mut self,
        command: Launch,
        clock: &Clock,
        once: Timestamp,
        works: &dyn Fn() -> bool,
    ) -> Result<i32> {
        self.command = Some(start(command)?);
        let outcome = self.watch(clock, once, works);
        for program in [&self.command, &self.peer].into_iter().flatten().filter(|_| outcome.is_ok()) {
            program.terminate();
            let _ = program.wait(GRACE);
        }
        let terminal = self.terminal;
        // Kill the remaining processes.
        drop(self);
        if terminal {
            let _ = tcsetpgrp(io::stdin(), getpgrp());
        }
        outcome
    }

    fn watch(&mut self, clock: &Clock, once: Timestamp, works: &dyn Fn() -> bool) -> Result<i32> {
        let (mut over, mut kill_at) = (false, None);
        loop {
            let until_once = if over { None } else { clock.until(once).map(|span| Duration::from_nanos(span.0)) };
            let left = [self.deadline, kill_at].into_iter().flatten().min();
            let left = left.map(|at| at.saturating_duration_since(Instant::now()));
            let changed = self.next([until_once, left].into_iter().flatten().fold(CHECK, Duration::min));
            let Some(command) = &self.command else { return Err(lost()) };
            if changed && command.has_stopped() {
                self.suspend(command);
            } else if let Some(status) = command.wait(if changed { GRACE } else { Duration::ZERO }) {
                return if over { Ok(0) } else { status.code().ok_or_else(lost) };
            }
            if !works() {
                return Err(Error::of("run-failed", "carrying packets", "the path broke"));
            }
            let late = self.deadline.is_some_and(|at| at <= Instant::now());
            if late || (!over && once.is_set() && clock.now() >= once) {
                over |= !late;
                self.deadline = None;
                command.terminate();
                kill_at = Some(Instant::now() + GRACE);
            }
            if kill_at.is_some_and(|at| at <= Instant::now()) {
                command.signal(Signal::SIGKILL);
            }
        }
    }

    /// Wait up to `time` for a signal or the command, and handle signals. True if the command stopped or ended.
    fn next(&mut self, time: Duration) -> bool {
        // Round up: a timeout that is too short would spin.
        let wait = PollTimeout::try_from(time + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
        let signals = self.signals.fd.as_fd();
        let [signal, command] =
            readable([signals, self.command.as_ref().map_or(signals, |command| command.fd())], wait);
        if signal {
            while let Ok(Some(info)) = self.signals.fd.read_signal() {
                self.on_signal(info.ssi_signo as i32, info.ssi_code);
            }
        }
        command && self.command.is_some()
    }

    fn on_signal(&mut self, number: i32, code: i32) {
        match Signal::try_from(number) {
            Ok(Signal::SIGCONT) => self.resume(),
            Ok(signal @ (Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)) => {
                self.stopped_by = Some(128 + number);
                // The terminal sends signals to its foreground group, with the command unless that has its own group.
                if code != FROM_KERNEL || self.terminal || signal == Signal::SIGHUP {
                    self.send_signal(signal);
                }
                if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) && self.deadline.is_none() {
                    self.deadline = Some(Instant::now() + PATIENCE);
                }
            }
            _ => {}
        }
    }

    /// Stop after the terminal stopped the command, so that the shell around this process gets the terminal.
    fn suspend(&self, command: &Isolated) {
        let group = getpgrp();
        if tcgetpgrp(io::stdin()) == Ok(group) {
            // The command needed the terminal from the background; this process is now in the foreground.
            return command.resume();
        }
        let _ = tcsetpgrp(io::stdin(), group);
        let _ = killpg(group, Signal::SIGTSTP);
        // The kernel does not stop an orphaned group: resume at once. Otherwise SIGCONT resumes later.
        let parent = getppid();
        if getsid(Some(parent)) != getsid(None) || getpgid(Some(parent)) == Ok(group) {
            command.resume();
        }
    }

    fn resume(&self) {
        match &self.command {
            Some(command) if self.terminal && tcgetpgrp(io::stdin()) == Ok(getpgrp()) => command.resume(),
            _ if self.terminal => self.send_signal(Signal::SIGCONT),
            _ => {}
        }
    }

    fn send_signal(&self, signal: Signal) {
        if let Some(command) = &self.command {
            command.signal(signal);
        }
    }
}

/// Start a program at one end of the path.
pub(super) fn start(launch: Launch) -> Result<Isolated> {
    let step = format!("starting {:?}", launch.words.first().map_or("", String::as_str));
    Isolated::start(launch).map_err(|error| {
        let missing = error.code == "program-missing";
        let hint = if missing { "give the name of a program in PATH, or its full path" } else { "" };
        Error { hint: hint.to_owned() + &error.hint, ..error.within(step) }
    })
}

fn lost() -> Error {
    Error::of(
        "run-failed",
        "running the command",
        "the process that watched over it was killed, and the command with it",
    )
}
