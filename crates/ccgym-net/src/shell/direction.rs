//! One direction of the path: a thread that reads packets at one end and releases them at the other.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_path::{Exit, PathElement, Pipeline};
use ccgym_run::recorder::{LinkSeries, PacketLog, UNLOGGED};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::flow_of;
use super::offload::{ecn_of, Layout, Part};
use super::release::ReleaseErrors;
use super::report::DirectionReport;
use super::store::Store;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::system::act_on_time;
use crate::system::port::Port;
use crate::system::signals::wait_for;

/// Max packets read before due packets are released.
const READ_AT_ONCE: usize = 32;
/// Packets per millisecond (770 Mbit/s) above which releases are coalesced: neighbors are sent as one, not at the time of
/// each packet. A receiver's network card would coalesce them too, and the machine must be fast enough. Below it, each
/// packet is sent at its own time.
const COALESCE_ABOVE: usize = 64;
/// Interval of coalesced releases, nanoseconds.
const COALESCE_INTERVAL: u64 = 50_000;
/// Flow index of a packet without flow.
const NO_FLOW: u32 = u32::MAX;

/// Decides if packets are sent so fast that their releases are coalesced.
#[derive(Clone, Copy, Default)]
struct Coalescing {
    /// Start of the millisecond; `left` counts the packets sent in it.
    since: Timestamp,
    left: usize,
    active: bool,
    released: Timestamp,
}

impl Coalescing {
    /// Count `due` packets that are sent now.
    fn count(&mut self, now: Timestamp, due: usize) {
        let elapsed = now.since(self.since).0;
        if elapsed >= 1_000_000 {
            self.active = self.left as u64 * 1_000_000 > COALESCE_ABOVE as u64 * elapsed;
            (self.since, self.left) = (now, 0);
        }
        self.left += due;
        self.active |= self.left > COALESCE_ABOVE;
        self.released = now;
    }

    /// Return the release time of packets due at `due`.
    fn release_time(&self, due: Timestamp) -> Timestamp {
        if self.active {
            due.max(self.released.saturating_add(TimeSpan(COALESCE_INTERVAL)))
        } else {
            due
        }
    }
}

/// End of both directions.
pub(super) struct End {
    at: AtomicU64,
    event: EventFd,
}

impl End {
    /// Make an end that is not yet set.
    pub(super) fn open() -> Result<Self> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .context(|| "making an event descriptor".into())?;
        Ok(Self { at: AtomicU64::new(Timestamp::NEVER.0), event })
    }

    /// End at `at`, or now if `at` has passed.
    pub(super) fn set(&self, at: Timestamp) {
        self.at.store(at.0, Relaxed);
        // The counter cannot overflow: there are only one or two calls.
        let _ = self.event.write(1);
    }

    fn get(&self) -> Timestamp {
        Timestamp(self.at.load(Relaxed))
    }
}

/// Identity of a packet under way.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// Handle of the packet in the store.
    stored: u32,
    /// Its line in the log.
    record: u32,
    /// Index of the segment in the packet.
    index: u16,
}

pub(super) struct Direction {
    pub(super) from: Arc<Port>,
    pub(super) to: Arc<Port>,
    pub(super) pipeline: Pipeline<Segment>,
    pub(super) clock: Clock,
    /// Number of flows; 0: all packets are of flow 0.
    pub(super) flows: u32,
    /// True if packets travel to the receivers.
    pub(super) uplink: bool,
    pub(super) log: Option<PacketLog>,
    /// Interval between samples; zero: none.
    pub(super) step: TimeSpan,
    /// Packets in the bottleneck, published for other threads.
    pub(super) backlog: Arc<AtomicU64>,
    pub(super) end: Arc<End>,
    pub(super) work: Work,
}

/// State of a running direction.
pub(super) struct Work {
    store: Store,
    out: Vec<Exit<Segment>>,
    queue: LinkSeries,
    samples: u64,
    release: ReleaseErrors,
    coalescing: Coalescing,
    lost: u64,
    refused: u64,
}

impl Work {
    /// Make an empty state; `packet_memory`: max bytes of packets under way.
    pub(super) fn new(packet_memory: usize) -> Self {
        let (out, queue, samples, release, coalescing, lost, refused) = Default::default();
        Self { store: Store::new(packet_memory), out, queue, samples, release, coalescing, lost, refused }
    }
}

impl Direction {
    /// Run until the end and return the records. If this direction fails, the other ends too.
    pub(super) fn run(self) -> Result<DirectionReport> {
        act_on_time();
        let end = Arc::clone(&self.end);
        self.carry().inspect_err(|_| end.set(Timestamp::ZERO))
    }

    fn carry(mut self) -> Result<DirectionReport> {
        loop {
            let now = self.clock.now();
            let end = self.end.get();
            if now >= end {
                return self.finish(end);
            }
            self.sample_before(now);
            self.pipeline.advance(now, &mut self.work.out);
            self.release()?;
            let more = self.read()?;
            self.publish();
            if !more {
                self.wait(end)?;
            }
        }
    }

    /// Wait for a packet, a due release, or the end.
    fn wait(&self, end: Timestamp) -> Result<()> {
        let due = self.work.coalescing.release_time(self.pipeline.next_event()).min(end);
        let timeout = self.clock.timeout(due);
        let readable = PollFlags::POLLIN;
        let mut fds = [PollFd::new(self.from.fd(), readable), PollFd::new(self.end.event.as_fd(), readable)];
        // Once the end is set, the timeout covers it.
        let watched = if end.is_set() { 1 } else { 2 };
        wait_for(&mut fds[..watched], timeout, "packets")
    }

    /// Read arrivals. True if more may be waiting.
    fn read(&mut self) -> Result<bool> {
        for _ in 0..READ_AT_ONCE {
            let received = self.from.receive(self.work.store.scratch()).context(|| "reading from a device".into())?;
            let Some((length, offload)) = received else { return Ok(false) };
            let packet = &self.work.store.scratch()[..length];
            let layout = Layout::of(packet, &offload);
            if !self.clock.has_started() {
                let ecn = ecn_of(packet);
                let part = layout.part(packet, &offload, 0, layout.count(), ecn);
                // Packets before the start are not counted.
                let _ = send(&self.to, &part)?;
                continue;
            }
            let now = self.clock.now();
            if now > self.end.get() {
                return Ok(true);
            }
            let (ports, ecn) = (layout.ports(packet), ecn_of(packet));
            let flow = self.flow(ports);
            self.sample_before(now);
            let stored = self.work.store.keep(length, offload, layout);
            for index in 0..layout.count() {
                let size = layout.size(index);
                let record = match &mut self.log {
                    Some(log) if flow != NO_FLOW => log.enter(now, size, flow),
                    _ => UNLOGGED,
                };
                match stored {
                    Some(stored) => self.pipeline.enter(now, flow, size, ecn, Segment { stored, record, index }),
                    // Logged as an arrival without departure.
                    None => self.work.refused += 1,
                }
            }
        }
        Ok(true)
    }

    fn flow(&self, ports: Option<(u16, u16)>) -> u32 {
        if self.flows == 0 {
            return 0;
        }
        flow_of(ports, self.uplink, self.flows).unwrap_or(NO_FLOW)
    }

    /// Release due packets.
    fn release(&mut self) -> Result<()> {
        let out = std::mem::take(&mut self.work.out);
        self.work.coalescing.count(self.clock.now(), out.len());
        let coalesced = self.work.coalescing.active;
        let mut rest = &out[..];
        while let Some(exit) = rest.first() {
            let count = match *exit {
                Exit::Duplicated { packet } => {
                    self.work.store.retain(packet.stored);
                    1
                }
                Exit::Dropped { packet, .. } => {
                    self.work.store.settle(packet.stored, 1);
                    1
                }
                Exit::Left { packet, ecn, .. } => {
                    let together = |(next, i): (&Exit<Segment>, u16)| {
                        matches!(*next, Exit::Left { packet: p, ecn: e, .. }
                        if p.stored == packet.stored && p.index == packet.index + i && e == ecn)
                    };
                    let limit = if coalesced { rest.len() } else { 1 };
                    let run = rest[..limit].iter().zip(0u16..).take_while(|pair| together(*pair)).count();
                    self.send(&rest[..run], packet, run, ecn)?;
                    run
                }
            };
            rest = &rest[count..];
        }
        self.work.out = out;
        self.work.out.clear();
        Ok(())
    }

    /// Write `count` neighboring segments from `first` on, and record their departure.
    fn send(&mut self, exits: &[Exit<Segment>], first: Segment, count: usize, ecn: ccgym_core::Ecn) -> Result<()> {
        let Some(stored) = self.work.store.get(first.stored) else { return Ok(()) };
        let part = stored.layout.part(stored.bytes(), &stored.offload, first.index, count as u16, ecn);
        let now = self.clock.now();
        let sent = send(&self.to, &part)?;
        self.work.store.settle(first.stored, count as u32);
        if !sent {
            self.work.lost += count as u64;
            return Ok(());
        }
        for exit in exits {
            let Exit::Left { at, packet, .. } = *exit else { continue };
            self.work.release.record(now.since(at).0);
            if let Some(log) = self.log.as_mut().filter(|_| packet.record != UNLOGGED) {
                log.leave(packet.record, now);
            }
        }
        Ok(())
    }

    /// Take the samples that are due by `now`. No packet has entered since then, so late samples are correct.
    fn sample_before(&mut self, now: Timestamp) {
        if self.step == TimeSpan::ZERO {
            return;
        }
        loop {
            let at = Timestamp((self.work.samples + 1).saturating_mul(self.step.0));
            if at > now {
                return;
            }
            let (packets, bytes) = self.pipeline.backlog(at);
            let chain = self.pipeline.chain();
            let drops = chain.bottleneck.map_or(0, |b| chain.elements[b].counters().dropped);
            self.work.queue.queue_packets.push(packets);
            self.work.queue.queue_bytes.push(bytes);
            self.work.queue.drops.push(drops);
            self.work.samples += 1;
        }
    }

    /// Publish the number of waiting packets to other threads.
    fn publish(&mut self) {
        if self.pipeline.chain().bottleneck.is_some() && self.clock.has_started() {
            let (packets, _) = self.pipeline.backlog(self.clock.now());
            self.backlog.store(packets, Relaxed);
        }
    }

    fn finish(mut self, end: Timestamp) -> Result<DirectionReport> {
        self.sample_before(end);
        self.pipeline.advance(end, &mut self.work.out);
        self.release()?;
        if let Some(log) = &mut self.log {
            log.cut(end);
        }
        let chain = self.pipeline.chain_mut();
        Ok(DirectionReport {
            log: self.log,
            events: chain.elements.iter_mut().map(|element| element.take_events(end)).collect(),
            counters: chain.counters(),
            bottleneck: chain.bottleneck,
            queue: self.work.queue,
            release: self.work.release,
            device_drops: self.work.lost,
            refused: self.work.refused,
        })
    }
}

/// Write a packet. False if it was lost; one that the kernel rejects is lost, too.
fn send(to: &Port, part: &Part<'_>) -> Result<bool> {
    match to.send(&part.offload, part.headers(), part.payload) {
        Ok(sent) => Ok(sent),
        Err(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EBADFD | Errno::EBADF | Errno::ENXIO | Errno::ENODEV) => {
                Err(Error::of("unknown-device", "writing to a device", error).hint("the device was removed"))
            }
            _ => Ok(false),
        },
    }
}
