//! The path between two ends: one thread per direction.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_path::{Chain, PathElement, Pipeline};
use ccgym_run::recorder::PacketLog;

use super::direction::{Direction, End, Work};
use super::report::{DirectionReport, EmulatorReport};
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::system::port::{Drops, Port};
use crate::system::Endpoints;

/// Elements of a path, and settings of its records.
pub struct EmulatorSpec {
    /// Elements from inside to outside.
    pub up: Chain,
    /// Elements from outside to inside.
    pub down: Chain,
    /// Clock of the path. Before time zero, packets bypass the elements and the logs.
    pub clock: Clock,
    /// Number of flows: ports from [`super::FIRST_PORT`] on. 0: all packets are of flow 0, with any ports.
    pub flows: u32,
    /// True: record each packet of a flow.
    pub packets: bool,
    /// True: record the events of the links of each direction.
    pub link_events: bool,
    /// Interval between samples of the queues; zero: none.
    pub step: TimeSpan,
    /// Max memory for packets under way in each direction, bytes; further arrivals are dropped.
    pub packet_memory: usize,
}

/// A running path. Drop ends it.
pub struct PathEmulator {
    inside: Arc<Port>,
    outside: Arc<Port>,
    lost_before: [Drops; 2],
    backlog: Arc<AtomicU64>,
    end: Arc<End>,
    threads: Vec<JoinHandle<Result<DirectionReport>>>,
}

impl PathEmulator {
    /// Connect both ends.
    ///
    /// # Errors
    /// Threads that cannot be started; counters of the devices that cannot be read.
    pub fn start(ends: &Endpoints, spec: EmulatorSpec) -> Result<Self> {
        let (inside, outside) = (Arc::clone(&ends.inside.port), Arc::clone(&ends.outside.port));
        let lost_before = [inside.drops()?, outside.drops()?];
        let backlog = Arc::new(AtomicU64::new(0));
        let end = Arc::new(End::open()?);
        let mut emulator = Self { inside, outside, lost_before, backlog, end, threads: Vec::new() };
        for (uplink, mut chain) in [(true, spec.up), (false, spec.down)] {
            if spec.link_events {
                chain.elements.iter_mut().for_each(PathElement::record_events);
            }
            let (from, to) =
                if uplink { (&emulator.inside, &emulator.outside) } else { (&emulator.outside, &emulator.inside) };
            let direction = Direction {
                from: Arc::clone(from),
                to: Arc::clone(to),
                pipeline: Pipeline::new(chain),
                clock: spec.clock,
                flows: spec.flows,
                uplink,
                log: spec.packets.then(PacketLog::default),
                step: spec.step,
                backlog: if uplink { Arc::clone(&emulator.backlog) } else { Arc::default() },
                end: Arc::clone(&emulator.end),
                work: Work::new(spec.packet_memory),
            };
            let name = if uplink { "ccgym-up" } else { "ccgym-down" };
            let thread = thread::Builder::new().name(name.into()).spawn(move || direction.run());
            emulator.threads.push(thread.context(|| format!("starting thread {name}"))?);
        }
        Ok(emulator)
    }

    /// Return the number of packets in the uplink's bottleneck, which the path updates.
    pub fn backlog(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.backlog)
    }

    /// True if both directions run; one that failed has ended, and [`PathEmulator::stop`] returns its error.
    pub fn is_running(&self) -> bool {
        self.threads.iter().all(|thread| !thread.is_finished())
    }

    /// Run until `at`, or stop now if `at` has passed. Later events are not reported, but counters
    /// are exact only if this is called before `at`: use [`PathEmulator::end_at`] to set it early.
    pub fn stop(mut self, at: Timestamp) -> Result<EmulatorReport> {
        // A direction that failed has ended the other: do not move the end.
        if self.is_running() {
            self.end.set(at);
        }
        let mut reports = Vec::new();
        for thread in self.threads.drain(..) {
            let joined =
                thread.join().map_err(|_| Error::of("run-failed", "carrying packets", "a path's thread panicked"))?;
            reports.push(joined?);
        }
        let mut reports = reports.into_iter();
        let (Some(mut up), Some(mut down)) = (reports.next(), reports.next()) else {
            return Err(Error::of("run-failed", "stopping the path", "it had stopped already"));
        };
        let [inside, outside] = [self.inside.drops()?, self.outside.drops()?];
        let [inside_before, outside_before] = self.lost_before;
        let since = |now: u64, before: u64| now.saturating_sub(before);
        up.device_drops +=
            since(inside.outgoing, inside_before.outgoing) + since(outside.incoming, outside_before.incoming);
        down.device_drops +=
            since(outside.outgoing, outside_before.outgoing) + since(inside.incoming, inside_before.incoming);
        Ok(EmulatorReport { up, down })
    }

    /// Set `at` as the end of both directions; [`PathEmulator::stop`] then collects the report.
    pub fn end_at(&self, at: Timestamp) {
        self.end.set(at);
    }
}

impl Drop for PathEmulator {
    fn drop(&mut self) {
        self.end.set(Timestamp::ZERO);
        for thread in self.threads.drain(..) {
            // Errors can no longer be reported.
            let _ = thread.join();
        }
    }
}
