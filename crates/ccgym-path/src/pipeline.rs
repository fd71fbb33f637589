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

/// A packet between two elements.
#[derive(Clone, Copy, Debug)]
struct Item<T> {
    packet: T,
    flow: u32,
    size: u32,
    ecn: Ecn,
}

/// A packet that has crossed the chain: time, packet, ECN bits.
pub type Crossed<T> = (Timestamp, T, Ecn);

/// A packet and the stage before which it waits.
type AtStage<T> = (usize, Item<T>);

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
    /// Packets that have crossed every element, in order of their exit.
    exits: VecDeque<Timed<(T, Ecn)>>,
    /// Dropped packets: an element may report a drop before its time.
    drops: BinaryHeap<Reverse<Timed<T>>>,
    /// Packets that were copied, until the driver gets them.
    duplicated: Vec<T>,
    /// Packets that must wait for their time before the given stage.
    deferred: BinaryHeap<Reverse<Timed<AtStage<T>>>>,
    /// Packets in elements that hold them, by handle.
    held: Held<Item<T>>,
    /// Next event of an element that holds packets.
    held_due: Timestamp,
    /// Time of the next event inside: the same, or the first deferred packet's.
    due: Timestamp,
    released: Vec<Release>,
}

impl<T: Clone> Pipeline<T> {
    /// Make it without packets.
    pub fn new(chain: Chain) -> Self {
        Self {
            chain,
            now: Timestamp::ZERO,
            sequence: 0,
            exits: VecDeque::new(),
            drops: BinaryHeap::new(),
            duplicated: Vec::new(),
            deferred: BinaryHeap::new(),
            held: Held::default(),
            held_due: Timestamp::NEVER,
            due: Timestamp::NEVER,
            released: Vec::new(),
        }
    }

    /// Let a packet of `size` wire bytes enter at `now`, which is not before any earlier call's.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, flow: u32, size: u32, ecn: Ecn, packet: T) {
        debug_assert!(now >= self.now, "{now:?} after {:?}", self.now);
        self.settle(now);
        let left = self.enter_ahead(now, now, flow, size, ecn, packet);
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
        let item = Item { packet, flow, size, ecn };
        if self.chain.eager {
            let mut datagram = item.datagram(0);
            match self.chain.cross(at, &mut datagram) {
                Ok(at) => Some((at, item.packet, datagram.ecn)),
                Err(at) => self.drop(at, item.packet),
            }
        } else {
            self.carry(at, 0, item)
        }
    }

    /// Return the next time for [`Pipeline::step`]; [`Timestamp::NEVER`] if nothing waits inside.
    #[inline]
    pub const fn due(&self) -> Timestamp {
        self.due
    }

    /// Process the next event inside.
    pub fn step(&mut self) {
        self.now = self.now.max(self.due);
        if self.held_due <= self.due {
            self.poll();
        } else if let Some(Reverse(Timed { at, value: (stage, item), .. })) = self.deferred.pop() {
            let left = self.carry(at, stage, item);
            self.leave(left);
        }
        self.refresh();
    }

    /// True if [`Pipeline::pop_exit`] has a packet.
    #[inline]
    pub fn has_exits(&self) -> bool {
        !self.exits.is_empty()
    }

    /// Return the next packet that has crossed the chain, perhaps ahead of the clock, but no drops or copies.
    #[inline]
    pub fn pop_exit(&mut self) -> Option<Crossed<T>> {
        let Some(Timed { at, value: (packet, ecn), .. }) = self.exits.pop_front() else {
            self.drops.clear();
            self.duplicated.clear();
            return None;
        };
        Some((at, packet, ecn))
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
                    if let Some(Timed { at, value: (packet, ecn), .. }) = self.exits.pop_front() {
                        out.push(Exit::Left { at, packet, ecn });
                    }
                }
            }
        }
    }

    fn hand_out_drop(&mut self, out: &mut Vec<Exit<T>>) {
        if let Some(Reverse(Timed { at, value: packet, .. })) = self.drops.pop() {
            out.push(Exit::Dropped { at, packet });
        }
    }

    /// Return packets and wire bytes waiting in the bottleneck at `now`, which is not before any earlier call's.
    pub fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        self.settle(now);
        let Some(bottleneck) = self.chain.bottleneck else { return (0, 0) };
        let backlog = self.chain.elements[bottleneck].backlog(now);
        if self.chain.holds[bottleneck] {
            self.refresh_held();
        }
        backlog
    }

    /// Return the bytes of packets inside, and of recorded events.
    pub fn held_bytes(&self) -> (usize, usize) {
        let (waiting, events) = self.chain.held_bytes();
        let under_way = self.exits.capacity() * std::mem::size_of::<Timed<(T, Ecn)>>()
            + self.deferred.capacity() * std::mem::size_of::<Timed<AtStage<T>>>()
            + self.held.slots.capacity() * std::mem::size_of::<Option<Item<T>>>()
            + self.held.free.capacity() * std::mem::size_of::<u64>()
            + self.drops.capacity() * std::mem::size_of::<Timed<T>>()
            + self.duplicated.capacity() * std::mem::size_of::<T>();
        (waiting + under_way, events)
    }

    /// Return the number of packets inside; the driver must count their memory elsewhere.
    pub fn under_way(&self) -> usize {
        let held = self.held.slots.len() - self.held.free.len();
        self.exits.len() + self.deferred.len() + held + self.drops.len() + self.duplicated.len()
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
    #[inline]
    fn refresh_held(&mut self) {
        self.held_due = self.chain.next_event();
        self.refresh();
    }

    #[inline]
    fn refresh(&mut self) {
        let deferred = self.deferred.peek().map_or(Timestamp::NEVER, |Reverse(deferred)| deferred.at);
        self.due = deferred.min(self.held_due);
    }

    /// Process all events inside up to and including `now`.
    #[inline]
    fn settle(&mut self, now: Timestamp) {
        while self.due <= now && self.due.is_set() {
            self.step();
        }
        self.now = self.now.max(now);
    }

    /// Take the packets that the elements release now.
    fn poll(&mut self) {
        let now = self.now;
        for stage in 0..self.chain.elements.len() {
            if !self.chain.holds[stage] || self.chain.elements[stage].next_event() > now {
                continue;
            }
            let mut released = std::mem::take(&mut self.released);
            self.chain.elements[stage].poll(now, &mut released);
            for release in released.drain(..) {
                match release {
                    Release::Forward(datagram, at) => {
                        if let Some(item) = self.held.take(datagram.id) {
                            let left = self.carry(at, stage + 1, Item { ecn: datagram.ecn, ..item });
                            self.leave(left);
                        }
                    }
                    Release::Drop(datagram, at) => {
                        if let Some(item) = self.held.take(datagram.id) {
                            self.drop(at, item.packet);
                        }
                    }
                }
            }
            self.released = released;
        }
        self.held_due = self.chain.next_event();
    }

    /// Carry a packet on from `stage`, where it arrives at `at`; returns it if it leaves the chain.
    #[inline(always)]
    fn carry(&mut self, mut at: Timestamp, mut stage: usize, mut item: Item<T>) -> Option<Crossed<T>> {
        loop {
            if self.chain.synchronise[stage] && at > self.now {
                self.sequence += 1;
                self.deferred.push(Reverse(Timed { at, sequence: self.sequence, value: (stage, item) }));
                self.due = self.due.min(at);
                return None;
            }
            if stage == self.chain.elements.len() {
                let at = self.chain.leave(at, item.size);
                return Some((at, item.packet, item.ecn));
            }
            let holds = self.chain.holds[stage];
            let mut datagram = item.datagram(if holds { self.held.next_handle() } else { 0 });
            let fate = self.chain.elements[stage].offer(at, &mut datagram);
            if holds {
                self.refresh_held();
                if fate == Fate::Hold {
                    self.held.insert(item);
                    return None;
                }
            }
            item.ecn = datagram.ecn;
            match fate {
                Fate::Forward(t) => at = t,
                Fate::Duplicate(t) => return self.duplicate(t, stage + 1, item),
                Fate::Drop | Fate::Hold => return self.drop(at, item.packet),
            }
            stage += 1;
        }
    }

    /// Carry a packet and its copy on from `stage`; both wait among the exits if they leave the chain.
    #[cold]
    fn duplicate(&mut self, at: Timestamp, stage: usize, item: Item<T>) -> Option<Crossed<T>> {
        self.duplicated.push(item.packet.clone());
        for item in [item.clone(), item] {
            let left = self.carry(at, stage, item);
            self.leave(left);
        }
        None
    }

    /// Store a packet that has crossed the chain until its time.
    #[inline]
    fn leave(&mut self, crossed: Option<Crossed<T>>) {
        let Some((at, packet, ecn)) = crossed else { return };
        debug_assert!(self.exits.back().is_none_or(|last| last.at <= at), "the last stage does not keep order");
        self.sequence += 1;
        self.exits.push_back(Timed { at, sequence: self.sequence, value: (packet, ecn) });
    }

    #[cold]
    fn drop(&mut self, at: Timestamp, packet: T) -> Option<Crossed<T>> {
        self.sequence += 1;
        self.drops.push(Reverse(Timed { at, sequence: self.sequence, value: packet }));
        None
    }
}

impl<T> Item<T> {
    /// Return the fields that an element reads.
    const fn datagram(&self, handle: u64) -> Datagram {
        Datagram { id: handle, flow: self.flow, size: self.size, ecn: self.ecn }
    }
}

/// Values by handle; free handles are used again.
#[derive(Clone)]
struct Held<V> {
    slots: Vec<Option<V>>,
    free: Vec<u64>,
}

impl<V> Default for Held<V> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<V> Held<V> {
    /// Return the handle that [`Held::insert`] will use next.
    fn next_handle(&self) -> u64 {
        self.free.last().copied().unwrap_or(self.slots.len() as u64)
    }

    #[inline(always)]
    fn insert(&mut self, value: V) {
        match self.free.pop() {
            Some(handle) => self.slots[handle as usize] = Some(value),
            None => self.slots.push(Some(value)),
        }
    }

    fn take(&mut self, handle: u64) -> Option<V> {
        let value = self.slots.get_mut(handle as usize)?.take();
        if value.is_some() {
            self.free.push(handle);
        }
        value
    }
}
