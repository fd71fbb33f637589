//! Watching over the command: signals that reach us, its stops and its end, the terminal.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ccgym_core::units::Timestamp;
use nix::poll::PollTimeout;
use nix::sys::signal::{killpg, Signal};
use nix::unistd::{getpgid, getpgrp, getppid, getsid, tcgetpgrp, tcsetpgrp};

use crate::clock::Clock;
use crate::error::{NetError, Result};
use crate::system::signals::Signals;
use crate::system::supervise::{readable, Children, Order, Report};

/// Read here instead of ending the process: what is passed on, what the terminal does, and SIGTTOU, so that we may take
/// the terminal back from the background.
pub(super) const TAKEN: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGCONT, Signal::SIGTTOU];
/// A command that survives SIGTERM or SIGHUP is ended after this.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is checked that the path works.
const CHECK: Duration = Duration::from_secs(1);
/// `si_code` of signals that the kernel sends, as for Ctrl-C: the command has got them itself.
const FROM_KERNEL: i32 = 0x80;

/// The children, and what reaches us meanwhile.
pub(super) struct Watch<'a> {
    children: Children,
    signals: &'a Signals,
    terminal: bool,
    /// When they are ended, since they would not go.
    deadline: Option<Instant>,
    /// A signal that ended the session before the command had started.
    stopped_by: Option<i32>,
}

impl<'a> Watch<'a> {
    pub fn new(children: Children, signals: &'a Signals, terminal: bool) -> Self {
        Self { children, signals, terminal, deadline: None, stopped_by: None }
    }

    /// Until the peer runs; a status if a signal ended the session first.
    pub fn until_ready(&mut self) -> Result<Option<i32>> {
        loop {
            match self.next(None)? {
                Some(Report::Ready) => return Ok(None),
                Some(Report::Gone) => return Err(lost()),
                _ => {}
            }
            if self.stopped_by.is_some() {
                return Ok(self.stopped_by);
            }
        }
    }

    /// For a while; a status if a signal ended the session.
    pub fn pause(&mut self, time: Duration) -> Result<Option<i32>> {
        match self.next(Some(time))? {
            Some(Report::PeerEnded(status)) => {
                Err(NetError::new("waiting for the command outside", format!("it ended with status {status}"))
                    .coded("program-failed")
                    .expected("a program that listens and stays"))
            }
            Some(Report::Gone) => Err(lost()),
            _ => Ok(self.stopped_by),
        }
    }

    /// Start the command and wait for its end, or for `once`, or until the path no longer works. Everything that the
    /// command started is gone then.
    pub fn until_ended(mut self, clock: &Clock, once: Timestamp, works: &dyn Fn() -> bool) -> Result<i32> {
        self.children.order(Order::Begin);
        let mut over = false;
        let outcome = loop {
            let wait = if over { None } else { clock.until(once).map(|span| Duration::from_nanos(span.0)) };
            match self.next(Some(wait.map_or(CHECK, |wait| wait.min(CHECK)))) {
                Ok(Some(Report::Ended(status))) => break Ok(if over { 0 } else { status }),
                Ok(Some(Report::Gone)) => break if over { Ok(0) } else { Err(lost()) },
                Ok(Some(Report::Stopped)) => self.suspend(),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            if !works() {
                break Err(NetError::new("carrying packets", "the path broke"));
            }
            if !over && once.is_set() && clock.now() >= once {
                over = true;
                self.children.order(Order::End);
            }
        };
        let Self { children, terminal, .. } = self;
        match outcome {
            Ok(_) => children.wait(),
            Err(_) => drop(children),
        }
        if terminal {
            let _ = tcsetpgrp(io::stdin(), getpgrp());
        }
        outcome
    }

    /// Wait for a report or a signal within `time`, and handle the signals.
    fn next(&mut self, time: Option<Duration>) -> Result<Option<Report>> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = match (time, left) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let wait = wait.map_or(PollTimeout::NONE, |wait| {
            // Rounded up: waking a moment too early would spin.
            PollTimeout::try_from(wait + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        });
        let [report, signal] = readable([self.children.fd(), self.signals.fd.as_fd()], wait);
        if signal {
            while let Ok(Some(info)) = self.signals.fd.read_signal() {
                self.got(info.ssi_signo as i32, info.ssi_code);
            }
        }
        if left == Some(Duration::ZERO) {
            self.deadline = None;
            self.children.order(Order::End);
        }
        if !report {
            return Ok(None);
        }
        match self.children.report()? {
            Report::Failed(error) => Err(error),
            report => Ok(Some(report)),
        }
    }

    fn got(&mut self, number: i32, code: i32) {
        match Signal::try_from(number) {
            Ok(Signal::SIGCONT) => self.resume(),
            Ok(signal @ (Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)) => {
                self.stopped_by = Some(128 + number);
                // The terminal tells its whole foreground group, the command included unless that has its own.
                if code != FROM_KERNEL || self.terminal || signal == Signal::SIGHUP {
                    self.children.order(Order::Signal(number));
                }
                if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) && self.deadline.is_none() {
                    self.deadline = Some(Instant::now() + PATIENCE);
                }
            }
            _ => {}
        }
    }

    /// The command was stopped from the terminal: stop too, so that the shell around us gets the terminal.
    fn suspend(&self) {
        let group = getpgrp();
        if tcgetpgrp(io::stdin()) == Ok(group) {
            // It wanted the terminal from the background, and meanwhile we were put into the foreground.
            return self.children.order(Order::Resume);
        }
        let _ = tcsetpgrp(io::stdin(), group);
        let _ = killpg(group, Signal::SIGTSTP);
        // The kernel stops no group that no process could continue. Otherwise SIGCONT tells when to go on.
        let parent = getppid();
        if getsid(Some(parent)) != getsid(None) || getpgid(Some(parent)) == Ok(group) {
            self.children.order(Order::Resume);
        }
    }

    fn resume(&self) {
        if self.terminal && tcgetpgrp(io::stdin()) == Ok(getpgrp()) {
            self.children.order(Order::Resume);
        } else if self.terminal {
            self.children.order(Order::Signal(Signal::SIGCONT as i32));
        }
    }
}

fn lost() -> NetError {
    NetError::new("running the command", "the process that watched over it was killed, and the command with it")
}
