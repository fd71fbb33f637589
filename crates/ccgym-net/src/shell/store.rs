//! Packets under way, as they were read, until the last of their segments has left or was dropped.

use super::offload::Layout;
use crate::system::port::{Offload, LARGEST_PACKET};

/// Room of the buffers. Small packets are copied out of the buffer in which they were read, so that many of them can be
/// under way; one that nearly fills it keeps it.
const SIZES: [usize; 3] = [2048, 16_384, LARGEST_PACKET];
/// Free buffers kept of each size, so that memory is not asked for in the middle of a run.
const SPARE: [usize; 3] = [4096, 256, 64];
/// Memory that the path needs for each segment under way, in addition to the packet itself.
const NOTED: usize = 128;
/// What a path holds in each direction unless it is told otherwise: 237,000 packets of 1500 bytes, which are 0.28 s at
/// 10 Gbit/s and 4 minutes at 12 Mbit/s.
pub const USUAL_LIMIT: usize = 512 << 20;

/// A packet as it was read.
#[derive(Debug)]
pub struct Stored {
    bytes: Vec<u8>,
    length: usize,
    /// What the kernel left undone.
    pub offload: Offload,
    /// Its headers and segments.
    pub layout: Layout,
    /// Segments still under way.
    pending: u32,
}

impl Stored {
    /// From the IP header on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// All packets under way in one direction, in a bounded amount of memory.
#[derive(Debug)]
pub struct Store {
    /// Bytes of memory that packets under way take, and the max that they may take.
    held: usize,
    limit: usize,
    slots: Vec<Option<Stored>>,
    free: Vec<u32>,
    spare: [Vec<Vec<u8>>; 3],
    /// Where the next packet is read.
    scratch: Vec<u8>,
}

impl Store {
    /// An empty one, for packets that take up to `limit` bytes of memory.
    pub fn new(limit: usize) -> Self {
        let (slots, free, spare) = Default::default();
        Self { held: 0, limit, slots, free, spare, scratch: vec![0; LARGEST_PACKET] }
    }

    /// Memory for a packet of this length in this number of segments: its buffer, and what the path notes of each segment.
    fn cost(class: usize, segments: u16) -> usize {
        SIZES[class] + size_of::<Stored>() + usize::from(segments) * NOTED
    }

    /// Where the next packet is to be read.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Keep the packet that was read into the scratch buffer until all `layout.count()` segments are settled; none if
    /// there is no room.
    pub fn keep(&mut self, length: usize, offload: Offload, layout: Layout) -> Option<u32> {
        let class = SIZES.iter().position(|&size| length <= size).unwrap_or(SIZES.len() - 1);
        let held = self.held + Self::cost(class, layout.count());
        if held > self.limit {
            return None;
        }
        self.held = held;
        let mut bytes = self.spare[class].pop().unwrap_or_else(|| vec![0; SIZES[class]]);
        if class == SIZES.len() - 1 {
            std::mem::swap(&mut bytes, &mut self.scratch);
        } else {
            bytes[..length].copy_from_slice(&self.scratch[..length]);
        }
        let stored = Stored { bytes, length, offload, layout, pending: layout.count().into() };
        Some(match self.free.pop() {
            Some(handle) => {
                self.slots[handle as usize] = Some(stored);
                handle
            }
            None => {
                self.slots.push(Some(stored));
                (self.slots.len() - 1) as u32
            }
        })
    }

    /// A packet that is kept.
    pub fn get(&self, handle: u32) -> Option<&Stored> {
        self.slots.get(handle as usize)?.as_ref()
    }

    /// One more segment of a packet is under way: a copy.
    pub fn retain(&mut self, handle: u32) {
        if let Some(Some(stored)) = self.slots.get_mut(handle as usize) {
            stored.pending += 1;
        }
    }

    /// This number of segments of a packet have left or were dropped.
    pub fn settle(&mut self, handle: u32, segments: u32) {
        let Some(slot) = self.slots.get_mut(handle as usize) else { return };
        let Some(stored) = slot else { return };
        stored.pending = stored.pending.saturating_sub(segments);
        if stored.pending > 0 {
            return;
        }
        if let Some(Stored { bytes, layout, .. }) = slot.take() {
            self.free.push(handle);
            let class = SIZES.iter().position(|&size| bytes.len() == size).unwrap_or(0);
            self.held -= Self::cost(class, layout.count());
            if self.spare[class].len() < SPARE[class] {
                self.spare[class].push(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_and_room_comes_back() {
        let mut store = Store::new(1 << 20);
        let offload = Offload::default();
        let keep = |store: &mut Store, length: usize| {
            let layout = Layout::of(&store.scratch()[..length], &offload);
            store.keep(length, offload, layout)
        };
        let held = |store: &Store| store.slots.len() - store.free.len();
        let small: Vec<u32> = std::iter::from_fn(|| keep(&mut store, 1500)).take(10_000).collect();
        assert!((400..512).contains(&small.len()), "{}", small.len());
        assert_eq!((held(&store), keep(&mut store, 40)), (small.len(), None), "a small one takes a buffer, too");
        for &handle in &small[..40] {
            store.settle(handle, 1);
        }
        assert!(keep(&mut store, 60_000).is_some(), "as large as 40 small ones");
        for &handle in &small[40..] {
            store.settle(handle, 1);
        }
        assert_eq!((held(&store), store.held), (1, Store::cost(2, 1)));
    }
}
