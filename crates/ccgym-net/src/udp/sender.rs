//! The sending endpoint: the transport machine of the simulator over a socket.
//!
//! Acknowledgements are handled at the times at which the kernel received them, all that have come before anything is
//! sent; then timers; then everything that window and pacing allow leaves in one call. What the kernel does not take
//! at once waits, and the machine sends nothing more until it has: that wait looks to it like delay on the path.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use ccgym_core::sender::{SenderStats, HANDSHAKE};
use ccgym_core::{Ack, CongestionControl, Ecn, InitContext, Packet, Sender, TimeSpan, Timestamp};
use ccgym_sim::recorder::FlowSeries;
use ccgym_sim::source::Source;
use ccgym_sim::spec::SourceSpec;
use ccgym_sim::FlowSpec;

use super::codec::{decode, encode_packet, encode_rare, Message};
use super::datagram::{self, datagram::Kind};
use super::hello::{check, Connection};
use super::series::SenderSeries;
use super::socket::{precise_timers, wait, Arrivals, Departures};
use super::syscalls::set_option;
use crate::error::{Result, Step};
use crate::steer::Steering;
use crate::Clock;

/// Longest wait, so that a request to halt is seen.
const ATTENTION: TimeSpan = TimeSpan::from_millis(20);
/// Wait for a socket that takes nothing, if it does not report that it does again.
const RETRY: TimeSpan = TimeSpan::from_millis(1);
/// A pacing release this near is waited for awake: the kernel wakes a sleeper tens of microseconds late.
const AWAKE: TimeSpan = TimeSpan::from_micros(20);

/// One flow to run.
pub struct SenderTask {
    /// Index of the flow.
    pub flow: u32,
    /// Its description; `start` and `stop` of it are not looked at.
    pub spec: FlowSpec,
    /// Its scheme.
    pub cca: Box<dyn CongestionControl>,
    /// What the scheme is told; the time in it is overwritten.
    pub context: InitContext,
    /// The run's clock.
    pub clock: Clock,
    /// When the flow starts.
    pub start: Timestamp,
    /// When it stops sending, which ends the task.
    pub stop: Timestamp,
    /// Spacing of the series; zero: none.
    pub step: TimeSpan,
    /// Collect statistics of monitor intervals.
    pub monitor: bool,
    /// The run's seed, for an application that draws.
    pub seed: u64,
    /// Who decides, if the scheme does not.
    pub steering: Option<Box<dyn Steering>>,
    /// Set to give up now.
    pub halt: Arc<AtomicBool>,
}

/// What a flow's sender leaves behind.
#[derive(Clone, Debug)]
pub struct SenderResult {
    /// Name of the scheme.
    pub name: String,
    /// The machine's counters.
    pub stats: SenderStats,
    /// Smallest round trip.
    pub min_rtt: TimeSpan,
    /// When a finite transfer was acknowledged in full; [`Timestamp::NEVER`] else.
    pub finished: Timestamp,
    /// The sender's columns, one sample every step since the run's start …
    pub series: FlowSeries,
    /// … but only from this one on: the first that is not before the flow's start.
    pub first_sample: usize,
    /// Datagrams that did not decode or carried another token.
    pub rejected: u64,
    /// Hash over the times and numbers of all acknowledgements, as the simulator's.
    pub hash: u64,
}

/// Looks at a flow while it runs.
pub trait Watcher {
    /// When it wants to look next.
    fn next(&self) -> Timestamp;
    /// Look: then, and when a finite transfer is complete. `finished` says whether it is. Breaking ends the flow.
    fn look(&mut self, now: Timestamp, sender: &Sender, finished: bool) -> ControlFlow<()>;
}

/// Nobody looks.
struct Nobody;

impl Watcher for Nobody {
    fn next(&self) -> Timestamp {
        Timestamp::NEVER
    }
    fn look(&mut self, _now: Timestamp, _sender: &Sender, _finished: bool) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Connection {
    /// Run a flow until it stops.
    ///
    /// # Errors
    /// The socket fails, the path cannot carry the flow's packets, or who steers fails.
    pub fn run(self, task: SenderTask) -> Result<SenderResult> {
        self.run_watched(task, &mut Nobody)
    }

    /// The same, with somebody looking on.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn run_watched(self, task: SenderTask, watcher: &mut dyn Watcher) -> Result<SenderResult> {
        check(&task.spec)?;
        precise_timers();
        while task.clock.now() < task.start.min(task.stop) && !task.halt.load(Ordering::Relaxed) {
            task.clock.sleep_until(task.start.min(task.clock.now() + ATTENTION));
        }
        let mut driver = Driver::new(self, task);
        driver.run(watcher)?;
        driver.finish()
    }
}

struct Driver {
    connection: Connection,
    sender: Sender,
    source: Source,
    clock: Clock,
    stop: Timestamp,
    /// The machine's clock: no event is earlier.
    now: Timestamp,
    departures: Departures,
    /// Whether the kernel has taken all that was sent.
    clear: bool,
    /// ECN bits that the socket sets.
    marking: Ecn,
    steering: Option<Box<dyn Steering>>,
    action: Vec<f32>,
    series: SenderSeries,
    finite: bool,
    finished: Timestamp,
    hash: u64,
    halt: Arc<AtomicBool>,
}

impl Driver {
    fn new(connection: Connection, task: SenderTask) -> Self {
        let SenderTask { flow, spec, cca, context, clock, start, stop, step, monitor, seed, steering, halt } = task;
        let now = clock.now().max(start);
        let mut sender = Sender::new(spec.sender_config(flow, monitor), cca, InitContext { now, ..context });
        let mut source = Source::new(&spec.source, spec.mss, seed, u64::from(flow));
        source.start(start, &mut sender, spec.mss, spec.header);
        Self {
            connection,
            sender,
            source,
            clock,
            stop,
            now,
            departures: Departures::new(),
            clear: true,
            marking: Ecn::NotEct,
            steering,
            action: Vec::new(),
            series: SenderSeries::new(step, start),
            finite: matches!(spec.source, SourceSpec::Bytes { .. }),
            finished: Timestamp::NEVER,
            hash: 0xcbf2_9ce4_8422_2325,
            halt,
        }
    }

    fn run(&mut self, watcher: &mut dyn Watcher) -> Result<()> {
        let mut arrivals = Arrivals::new();
        let mut told = false;
        while !self.halt.load(Ordering::Relaxed) {
            let came = arrivals.receive(self.connection.socket.as_fd(), &self.clock)?;
            for index in 0..came {
                self.take_arrival(&arrivals, index)?;
            }
            let now = arrivals.now().max(self.now);
            if now >= self.stop {
                return Ok(());
            }
            self.now = now;
            self.series.catch_up(now, &self.sender);
            self.fire_timers()?;
            let more = self.send()?;
            let finished = self.finished.is_set();
            if watcher.next() <= now || finished != told {
                told = finished;
                if watcher.look(now, &self.sender, finished).is_break() {
                    return Ok(());
                }
            }
            self.wait(came > 0 || more, watcher.next())?;
        }
        Ok(())
    }

    /// Handle what came `index`-th, at its own time.
    #[inline]
    fn take_arrival(&mut self, arrivals: &Arrivals, index: usize) -> Result<()> {
        let Some((incoming, at)) = arrivals.get(index, self.now) else { return Ok(()) };
        if at > self.stop {
            return Ok(());
        }
        for bytes in incoming.bytes.chunks(incoming.segment) {
            match decode(bytes, self.connection.overhead) {
                Ok(Message::Ack(token, ack, feedback)) if token == self.connection.token => {
                    self.take_ack(at, &ack, feedback)?;
                }
                // A Hello may be answered more than once.
                Ok(Message::HelloAck(token, _)) if token == self.connection.token => {}
                _ => self.connection.rejected += 1,
            }
        }
        Ok(())
    }

    #[inline]
    fn take_ack(&mut self, at: Timestamp, ack: &Ack, feedback: Option<&[u8]>) -> Result<()> {
        self.series.catch_up(at, &self.sender);
        self.now = at;
        self.hash = (self.hash ^ at.0 ^ ack.trigger.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
        if let Some(message) = feedback {
            self.sender.on_feedback(at, message);
        }
        self.sender.on_ack(at, ack);
        if self.finite && !self.finished.is_set() && self.sender.is_finished() {
            self.finished = at;
        }
        self.ask(at)
    }

    fn fire_timers(&mut self) -> Result<()> {
        let now = self.now;
        while self.source.next_event() <= now {
            let due = self.source.next_event();
            self.source.on_event(due, &mut self.sender);
        }
        if self.sender.next_timeout() <= now && !self.sender.is_release_due(now) {
            self.sender.on_timeout(now);
            self.ask(now)?;
        }
        Ok(())
    }

    /// If the scheme waits for a decision, tell whoever decides, and go on with the last one meanwhile.
    #[inline]
    fn ask(&mut self, now: Timestamp) -> Result<()> {
        if self.sender.awaits_decision() {
            if let Some(steering) = &mut self.steering {
                steering.interval_closed(now, &self.sender)?;
            }
            self.sender.with_cca(|_| ());
        }
        Ok(())
    }

    /// Send what window and pacing allow now. Whether there may be more to send at once.
    fn send(&mut self) -> Result<bool> {
        let socket = self.connection.socket.as_fd();
        if !self.clear {
            self.clear = self.departures.flush(socket)?;
            if !self.clear {
                return Ok(false);
            }
        }
        let (token, overhead) = (self.connection.token, self.connection.overhead);
        let mut packet = Packet::default();
        while !self.departures.is_full() && self.sender.poll_transmit_into(self.now, &mut packet) {
            if packet.ecn != self.marking && packet.number != HANDSHAKE {
                self.clear = self.departures.flush(socket)?;
                mark(&self.connection, packet.ecn)?;
                self.marking = packet.ecn;
            }
            self.departures.add(None, |out| encode_packet(out, token, &packet, overhead));
        }
        let full = self.departures.is_full();
        if !self.departures.is_empty() {
            self.clear = self.departures.flush(socket)?;
        }
        Ok(full && self.clear)
    }

    /// Wait for an arrival, a timer, or an action; not at all if `busy`.
    fn wait(&mut self, busy: bool, look: Timestamp) -> Result<()> {
        let now = self.clock.now();
        let due = if busy {
            now
        } else if self.clear {
            let machine = self.sender.next_timeout().min(self.source.next_event());
            machine.min(look).min(self.stop).min(now + ATTENTION)
        } else {
            now + RETRY
        };
        let Some(steering) = &mut self.steering else {
            if due > now + AWAKE {
                wait(self.connection.socket.as_fd(), !self.clear, None, &self.clock, due)?;
            }
            return Ok(());
        };
        let woken = wait(self.connection.socket.as_fd(), !self.clear, steering.fd(), &self.clock, due)?;
        if woken.other {
            let now = self.clock.now().max(self.now);
            if steering.take_action(now, &mut self.action)? {
                self.series.catch_up(now, &self.sender);
                self.now = now;
                let action = &self.action;
                self.sender.with_cca(|cca| cca.decide(now, action));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<SenderResult> {
        let end = self.clock.now().max(self.now).min(self.stop);
        self.series.catch_up(end, &self.sender);
        if let Some(steering) = &mut self.steering {
            steering.flow_ended(end, &mut self.sender)?;
        }
        let stats = *self.sender.stats();
        let close = datagram::Close {
            token: self.connection.token.0.to_vec(),
            sent_packets: stats.sent_packets,
            sent_bytes: stats.sent_bytes,
        };
        let mut farewell = Vec::new();
        encode_rare(&mut farewell, Kind::Close(close));
        // A courtesy: the receiver would notice by itself.
        let _ = self.connection.socket.send(&farewell);
        let (series, first_sample) = self.series.finish();
        Ok(SenderResult {
            name: self.sender.cca().name().to_owned(),
            stats,
            min_rtt: self.sender.rtt().min(),
            finished: self.finished,
            series,
            first_sample,
            rejected: self.connection.rejected,
            hash: self.hash,
        })
    }
}

/// Set the ECN bits of what the socket sends.
#[cold]
fn mark(connection: &Connection, ecn: Ecn) -> Result<()> {
    let bits = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let (level, option) = if connection.peer().is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    set_option(connection.socket.as_fd(), level, option, bits).step(|| "marking packets as ECN-capable".into())
}
