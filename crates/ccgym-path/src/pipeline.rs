//! A chain driven packet by packet: packets inside it, and their exits.
//!
//! The same elements with the same arrivals give the same exits, at any pace. A driver in real time calls
//! [`Pipeline::advance`], at every event or late; a driver in virtual time calls [`Pipeline::step`] at every event, and
//! carries on the packets of [`Pipeline::pop_exit`], even ahead of its clock. If every element answers at arrival, a
//! packet crosses the whole chain when it enters and waits in a FIFO for its exit; if an element reorders or holds
//! packets, they are carried from stage to stage in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::Timestamp;

use crate::chain::Chain;
use crate::element::{Fate, PathElement, Release};

/// End of a packet's way through the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit<T> {
    /// It left the chain.
    Left {
        /// Time.
        at: Timestamp,
        /// The packet that had entered.
        packet: T,
        /// Its ECN bits, which a queue may have set.
        ecn: Ecn,
    },
    /// An element dropped it.
    Dropped {
        /// Time.
        at: Timestamp,
        /// The packet that had entered.
        packet: T,
    },
    /// An element made a copy of it, so that it exits once more. Reported before either exit.
    Duplicated {
        /// The packet that had entered.
        packet: T,
    },
}

/// A packet that has crossed the chain: time, packet, ECN bits.
pub type Crossed<T> = (Timestamp, T, Ecn);

/// An event with its time; equal times keep the order of insertion.
#[derive(Clone, Copy, Debug)]
struct Timed<V> {
    at: Timestamp,
    sequence: u64,
    value: V,
}

impl<V> PartialEq for Timed<V> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<V> Eq for Timed<V> {}

impl<V> PartialOrd for Timed<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V> Ord for Timed<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// A chain and all packets in it. `T` identifies a packet for the driver.
#[derive(Clone)]
pub struct Pipeline<T> {
    chain: Chain,
    /// All events up to this time are processed.
    now: Timestamp,
    sequence: u64,
    /// All packets inside, by the `id` of their datagrams: the rest of this struct says where these are.
    packets: Slab<T>,
    /// Packets that have crossed every element, in order of their exit.
    exits: VecDeque<Timed<Datagram>>,
    /// Dropped packets: an element may report a drop before its time.
    drops: BinaryHeap<Reverse<Timed<Datagram>>>,
    /// Packets that were copied, until the driver gets them.
    duplicated: Vec<T>,
    /// True for a driver that gets drops and copies: [`Pipeline::advance`] reports them, not [`Pipeline::step`].
    reports: bool,
    /// Packets that must wait for their time before the given stage.
    deferred: BinaryHeap<Reverse<Timed<(usize, Datagram)>>>,
    /// Next event of an element that holds packets.
    held_due: Timestamp,
    /// Time of the next event inside: the same, or the first deferred packet's.
    due: Timestamp,
}

impl<T: Clone> Pipeline<T> {
    /// Make it without packets.
    pub fn new(chain: Chain) -> Self {
        Self {
            chain,
            now: Timestamp::ZERO,
            sequence: 0,
            packets: Slab::default(),
            exits: VecDeque::new(),
            drops: BinaryHeap::new(),
            duplicated: Vec::new(),
            reports: false,
            deferred: BinaryHeap::new(),
            held_due: Timestamp::NEVER,
            due: Timestamp::NEVER,
        }
    }

    /// Let a packet of `size` wire bytes enter at `now`, which is not before any earlier call's.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, flow: u32, size: u32, ecn: Ecn, packet: T) {
        debug_assert!(now >= self.now, "{now:?} after {:?}", self.now);
        self.reports = true;
        self.settle(now);
        let datagram = Datagram { id: self.packets.insert(packet), flow, size, ecn };
        let left = self.carry(now, 0, datagram);
        self.leave(left);
    }

    /// As [`Pipeline::enter`], at `at`, which may be ahead of the clock at `now`; returns the packet if it crosses the
    /// whole chain at once; all exits of a copied packet wait for [`Pipeline::pop_exit`]. For a driver that calls
    /// [`Pipeline::step`]: all events due by `now` are processed.
    #[inline]
    pub fn enter_ahead(
        &mut self,
        now: Timestamp,
        at: Timestamp,
        flow: u32,
        size: u32,
        ecn: Ecn,
        packet: T,
    ) -> Option<Crossed<T>> {
        self.now = self.now.max(now);
        let datagram = Datagram { id: self.packets.insert(packet), flow, size, ecn };
        let left = self.carry(at, 0, datagram);
        self.crossed(left)
    }

    /// Return the next time for [`Pipeline::step`]; [`Timestamp::NEVER`] if nothing waits inside.
    #[inline]
    pub const fn due(&self) -> Timestamp {
        self.due
    }

    /// Process the next event inside; returns a packet that crosses the chain by it. All exits of a copied packet wait
    /// for [`Pipeline::pop_exit`].
    #[inline]
    pub fn step(&mut self) -> Option<Crossed<T>> {
        let left = self.process();
        self.crossed(left)
    }

    /// Return the next waiting packet that has crossed the chain, perhaps ahead of the clock.
    #[inline]
    pub fn pop_exit(&mut self) -> Option<Crossed<T>> {
        let first = self.exits.pop_front();
        self.crossed(first.map(|exit| (exit.at, exit.value)))
    }

    /// Return the next time for [`Pipeline::advance`]; [`Timestamp::NEVER`] if the chain is empty.
    #[inline]
    pub fn next_event(&self) -> Timestamp {
        let mut due = self.due;
        if let Some(exit) = self.exits.front() {
            due = due.min(exit.at);
        }
        if let Some(Reverse(drop)) = self.drops.peek() {
            due = due.min(drop.at);
        }
        due
    }

    /// Append all packets that leave or are dropped up to and including `now` to `out`, in order of time.
    #[inline]
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Exit<T>>) {
        self.settle(now);
        out.extend(self.duplicated.drain(..).map(|packet| Exit::Duplicated { packet }));
        loop {
            let exit = self.exits.front().filter(|exit| exit.at <= now).map(|exit| (exit.at, exit.sequence));
            let drop = self.drops.peek().filter(|drop| drop.0.at <= now).map(|drop| (drop.0.at, drop.0.sequence));
            match (exit, drop) {
                (None, None) => return,
                (Some(exit), Some(drop)) if drop < exit => self.hand_out_drop(out),
                (None, Some(_)) => self.hand_out_drop(out),
                (Some(_), _) => {
                    let Some(Timed { at, value: Datagram { id, ecn, .. }, .. }) = self.exits.pop_front() else {
                        return;
                    };
                    out.extend(self.packets.remove(id).map(|packet| Exit::Left { at, packet, ecn }));
                }
            }
        }
    }

    fn hand_out_drop(&mut self, out: &mut Vec<Exit<T>>) {
        let Some(Reverse(Timed { at, value: datagram, .. })) = self.drops.pop() else { return };
        out.extend(self.packets.remove(datagram.id).map(|packet| Exit::Dropped { at, packet }));
    }

    /// Return packets and wire bytes waiting in the bottleneck at `now`, which is not before any earlier call's.
    pub fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        self.settle(now);
        let Some(bottleneck) = self.chain.bottleneck else { return (0, 0) };
        let backlog = self.chain.elements[bottleneck].backlog(now);
        if self.chain.elements[bottleneck].may_hold() {
            self.refresh_held();
        }
        backlog
    }

    /// Return the bytes of packets inside, and of recorded events.
    pub fn held_bytes(&self) -> (usize, usize) {
        let (waiting, events) = self.chain.held_bytes();
        let under_way = self.exits.capacity() * std::mem::size_of::<Timed<Datagram>>()
            + self.deferred.capacity() * std::mem::size_of::<Timed<(usize, Datagram)>>()
            + self.packets.slots.capacity() * std::mem::size_of::<Option<T>>()
            + self.packets.free.capacity() * std::mem::size_of::<u64>()
            + self.drops.capacity() * std::mem::size_of::<Timed<Datagram>>()
            + self.duplicated.capacity() * std::mem::size_of::<T>();
        (waiting + under_way, events)
    }

    /// Return the number of packets inside; the driver must count their memory elsewhere.
    pub fn under_way(&self) -> usize {
        self.packets.slots.len() - self.packets.free.len() + self.duplicated.len()
    }

    /// Return the elements.
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Return the elements, to record and take events. Only [`Pipeline::enter`] offers packets.
    pub fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    /// Update the next event of the elements that hold packets, after a change of one.
    #[inline(always)]
    fn refresh_held(&mut self) {
        self.held_due = self.chain.next_event();
        self.refresh();
    }

    #[inline(always)]
    fn refresh(&mut self) {
        let deferred = self.deferred.peek().map_or(Timestamp::NEVER, |Reverse(deferred)| deferred.at);
        self.due = deferred.min(self.held_due);
    }

    /// Process all events inside up to and including `now`.
    #[inline]
    fn settle(&mut self, now: Timestamp) {
        while self.due <= now && self.due.is_set() {
            let left = self.process();
            self.leave(left);
        }
        self.now = self.now.max(now);
    }

    /// Process the next event inside: a packet that an element releases, or one that was deferred.
    #[inline(always)]
    fn process(&mut self) -> Option<(Timestamp, Datagram)> {
        self.now = self.now.max(self.due);
        let left = if self.held_due <= self.due {
            let release = self.chain.release(self.now);
            let left = match release {
                Some((stage, Release::Forward(datagram, at))) => self.carry(at, stage + 1, datagram),
                Some((_, Release::Drop(datagram, at))) => self.drop(at, datagram),
                None => None,
            };
            self.held_due = self.chain.next_event();
            left
        } else {
            let Reverse(Timed { at, value: (stage, datagram), .. }) = self.deferred.pop()?;
            self.carry(at, stage, datagram)
        };
        self.refresh();
        left
    }

    /// Return a packet that has crossed the chain to the driver.
    #[inline(always)]
    fn crossed(&mut self, left: Option<(Timestamp, Datagram)>) -> Option<Crossed<T>> {
        let (at, datagram) = left?;
        Some((at, self.packets.remove(datagram.id)?, datagram.ecn))
    }

    /// Carry a packet on from `stage`, where it arrives at `at`; returns it if it leaves the chain.
    #[inline(always)]
    fn carry(&mut self, mut at: Timestamp, mut stage: usize, mut datagram: Datagram) -> Option<(Timestamp, Datagram)> {
        loop {
            if self.chain.synchronise[stage] && at > self.now {
                self.sequence += 1;
                self.deferred.push(Reverse(Timed { at, sequence: self.sequence, value: (stage, datagram) }));
                self.due = self.due.min(at);
                return None;
            }
            let Some(element) = self.chain.elements.get_mut(stage) else {
                return Some((self.chain.leave(at, datagram.size), datagram));
            };
            match element.offer(at, &mut datagram) {
                Fate::Forward(t) => at = t,
                Fate::Duplicate(t) => return self.duplicate(t, stage + 1, datagram),
                Fate::Drop => {
                    // A queue may drop others with it.
                    self.refresh_held();
                    return self.drop(at, datagram);
                }
                Fate::Hold => {
                    self.refresh_held();
                    return None;
                }
            }
            stage += 1;
        }
    }

    /// Carry a packet and its copy on from `stage`; both wait among the exits if they leave the chain.
    #[cold]
    fn duplicate(&mut self, at: Timestamp, stage: usize, datagram: Datagram) -> Option<(Timestamp, Datagram)> {
        let packet = self.packets.slots[datagram.id as usize].clone()?;
        if self.reports {
            self.duplicated.push(packet.clone());
        }
        let copy = Datagram { id: self.packets.insert(packet), ..datagram };
        for datagram in [copy, datagram] {
            let left = self.carry(at, stage, datagram);
            self.leave(left);
        }
        None
    }

    /// Store a packet that has crossed the chain until its time.
    #[inline]
    fn leave(&mut self, crossed: Option<(Timestamp, Datagram)>) {
        let Some((at, datagram)) = crossed else { return };
        debug_assert!(self.exits.back().is_none_or(|last| last.at <= at), "the last stage does not keep order");
        self.sequence += 1;
        self.exits.push_back(Timed { at, sequence: self.sequence, value: datagram });
    }

    #[cold]
    fn drop(&mut self, at: Timestamp, datagram: Datagram) -> Option<(Timestamp, Datagram)> {
        if self.reports {
            self.sequence += 1;
            self.drops.push(Reverse(Timed { at, sequence: self.sequence, value: datagram }));
        } else {
            self.packets.remove(datagram.id);
        }
        None
    }
}

/// Values by handle; free handles are used again.
#[derive(Clone)]
struct Slab<V> {
    slots: Vec<Option<V>>,
    free: Vec<u64>,
}

impl<V> Default for Slab<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<V> Slab<V> {
    /// Store a value; returns its handle.
    #[inline(always)]
    fn insert(&mut self, value: V) -> u64 {
        if let Some(handle) = self.free.pop() {
            // Nothing is in it to be dropped.
            std::mem::forget(self.slots[handle as usize].replace(value));
            return handle;
        }
        self.slots.push(Some(value));
        self.slots.len() as u64 - 1
    }

    #[inline(always)]
    fn remove(&mut self, handle: u64) -> Option<V> {
        self.free.push(handle);
        self.slots[handle as usize].take()
    }
}
