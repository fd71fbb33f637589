//! A chain driven packet by packet, at any pace: what is under way, and when it comes out.
//!
//! The same elements fed with the same arrivals give the same exits as in the simulator, whether [`Pipeline::advance`]
//! is called at every event or late. Where every element answers at arrival, a packet crosses the whole chain when it
//! enters and waits in a FIFO for its exit; where an element reorders or holds packets, it is carried from stage to
//! stage in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::units::Timestamp;

use crate::chain::Chain;
use crate::element::{Fate, PathElement, Release};

/// How a packet's way through the chain ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit<T> {
    /// It came out.
    Left {
        /// When.
        at: Timestamp,
        /// What had entered.
        packet: T,
        /// Its ECN bits, which a queue may have set.
        ecn: Ecn,
    },
    /// An element dropped it.
    Dropped {
        /// When.
        at: Timestamp,
        /// What had entered.
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

/// A packet and the stage before which it waits.
type AtStage<T> = (usize, Item<T>);

/// Something that happens at a time; of equal times the one that was filed first comes first.
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

/// A chain and all that is under way in it. `T` is whatever the driver knows a packet by.
#[derive(Clone)]
pub struct Pipeline<T> {
    chain: Chain,
    /// Everything up to here has been worked out.
    now: Timestamp,
    sequence: u64,
    /// Packets that have crossed every element, in order of their exit.
    exits: VecDeque<Timed<(T, Ecn)>>,
    /// Dropped packets: an element may know of a drop before its time.
    drops: BinaryHeap<Reverse<Timed<T>>>,
    /// Packets that must wait for their time before the stage given.
    deferred: BinaryHeap<Reverse<Timed<AtStage<T>>>>,
    /// Packets in elements that hold them, by handle.
    held: Held<Item<T>>,
    released: Vec<Release>,
}

impl<T> Pipeline<T> {
    /// Nothing under way in `chain`.
    pub fn new(chain: Chain) -> Self {
        Self {
            chain,
            now: Timestamp::ZERO,
            sequence: 0,
            exits: VecDeque::new(),
            drops: BinaryHeap::new(),
            deferred: BinaryHeap::new(),
            held: Held::default(),
            released: Vec::new(),
        }
    }

    /// A packet of `size` wire bytes enters at `now`, which is not before any earlier call's.
    #[inline]
    pub fn enter(&mut self, now: Timestamp, flow: u32, size: u32, ecn: Ecn, packet: T) {
        debug_assert!(now >= self.now, "{now:?} after {:?}", self.now);
        self.settle(now);
        let item = Item { packet, flow, size, ecn };
        if self.chain.eager {
            self.cross(now, item);
        } else {
            self.carry(now, 0, item);
        }
    }

    /// When [`Pipeline::advance`] has something to do; [`Timestamp::NEVER`] if nothing is under way.
    #[inline]
    pub fn next_event(&self) -> Timestamp {
        let mut due = self.inner_due();
        if let Some(exit) = self.exits.front() {
            due = due.min(exit.at);
        }
        if let Some(Reverse(drop)) = self.drops.peek() {
            due = due.min(drop.at);
        }
        due
    }

    /// Append everything that leaves or is dropped up to and including `now` to `out`, in order of time.
    #[inline]
    pub fn advance(&mut self, now: Timestamp, out: &mut Vec<Exit<T>>) {
        self.settle(now);
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

    /// Packets and wire bytes waiting in the bottleneck at `now`, which is not before any earlier call's.
    pub fn backlog(&mut self, now: Timestamp) -> (u64, u64) {
        self.settle(now);
        let Some(bottleneck) = self.chain.bottleneck else { return (0, 0) };
        let backlog = self.chain.elements[bottleneck].backlog(now);
        if self.chain.holds[bottleneck] {
            self.chain.refresh_due();
        }
        backlog
    }

    /// The elements.
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The elements, to record and take events. Packets are offered by [`Pipeline::enter`] alone.
    pub fn chain_mut(&mut self) -> &mut Chain {
        &mut self.chain
    }

    #[inline]
    fn inner_due(&self) -> Timestamp {
        let deferred = self.deferred.peek().map_or(Timestamp::NEVER, |Reverse(deferred)| deferred.at);
        deferred.min(self.chain.due)
    }

    /// Let everything happen inside that happens up to and including `now`.
    #[inline]
    fn settle(&mut self, now: Timestamp) {
        if !self.chain.eager {
            self.settle_events(now);
        }
        self.now = self.now.max(now);
    }

    fn settle_events(&mut self, now: Timestamp) {
        loop {
            let due = self.inner_due();
            if due > now || !due.is_set() {
                return;
            }
            self.now = self.now.max(due);
            if self.chain.due <= due {
                self.poll();
            } else if let Some(Reverse(Timed { at, value: (stage, item), .. })) = self.deferred.pop() {
                self.carry(at, stage, item);
            }
        }
    }

    /// Take out what the elements that hold packets release now.
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
                            self.carry(at, stage + 1, Item { ecn: datagram.ecn, ..item });
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
        self.chain.refresh_due();
    }

    /// Through a chain whose elements all answer at arrival.
    #[inline]
    fn cross(&mut self, mut at: Timestamp, item: Item<T>) {
        let mut datagram = item.datagram(0);
        for element in &mut self.chain.elements {
            match element.offer(at, &mut datagram) {
                Fate::Forward(t) => at = t,
                Fate::Drop | Fate::Hold => return self.drop(at, item.packet),
            }
        }
        self.leave(at, Item { ecn: datagram.ecn, ..item });
    }

    /// Carry a packet on from `stage`, where it arrives at `at`.
    fn carry(&mut self, mut at: Timestamp, mut stage: usize, mut item: Item<T>) {
        loop {
            if self.chain.synchronise[stage] && at > self.now {
                self.sequence += 1;
                self.deferred.push(Reverse(Timed { at, sequence: self.sequence, value: (stage, item) }));
                return;
            }
            if stage == self.chain.elements.len() {
                return self.leave(at, item);
            }
            let fate = if self.chain.holds[stage] {
                let mut datagram = item.datagram(self.held.next_handle());
                let fate = self.chain.elements[stage].offer(at, &mut datagram);
                self.chain.refresh_due();
                if fate == Fate::Hold {
                    return self.held.insert(item);
                }
                item.ecn = datagram.ecn;
                fate
            } else {
                let mut datagram = item.datagram(0);
                let fate = self.chain.elements[stage].offer(at, &mut datagram);
                item.ecn = datagram.ecn;
                fate
            };
            match fate {
                Fate::Forward(t) => at = t,
                Fate::Drop | Fate::Hold => return self.drop(at, item.packet),
            }
            stage += 1;
        }
    }

    #[inline]
    fn leave(&mut self, at: Timestamp, item: Item<T>) {
        let at = self.chain.leave(at, item.size);
        debug_assert!(self.exits.back().is_none_or(|last| last.at <= at), "the last stage does not keep order");
        self.sequence += 1;
        self.exits.push_back(Timed { at, sequence: self.sequence, value: (item.packet, item.ecn) });
    }

    #[cold]
    fn drop(&mut self, at: Timestamp, packet: T) {
        self.sequence += 1;
        self.drops.push(Reverse(Timed { at, sequence: self.sequence, value: packet }));
    }
}

impl<T> Item<T> {
    /// What an element sees of it.
    const fn datagram(&self, handle: u64) -> Datagram {
        Datagram { id: handle, flow: self.flow, size: self.size, ecn: self.ecn }
    }
}

/// Things by handle; freed handles are used again.
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
    /// The handle that [`Held::insert`] will use next.
    fn next_handle(&self) -> u64 {
        self.free.last().copied().unwrap_or(self.slots.len() as u64)
    }

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
