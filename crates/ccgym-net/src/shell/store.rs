//! Packets under way, stored until the last of their segments was sent or dropped.

use super::offload::Layout;
use crate::system::port::{Offload, LARGEST_PACKET};

/// Sizes of the buffers. Small packets are copied to smaller buffers, so that many of them can be under way; one that
/// nearly fills the read buffer stays in it.
const SIZES: [usize; 3] = [2048, 16_384, LARGEST_PACKET];
/// Max free buffers to keep of each size, so that a running path rarely allocates memory.
const SPARE: [usize; 3] = [4096, 256, 64];
/// Bytes of memory for each segment under way, in addition to the packet itself.
const SEGMENT_MEMORY: usize = 128;
/// Default limit of a path in each direction: 237,000 packets of 1500 bytes, which are 0.28 s at 10 Gbit/s and 4 minutes
/// at 12 Mbit/s.
pub const USUAL_LIMIT: usize = 512 << 20;

/// A stored packet.
#[derive(Debug)]
pub struct Stored {
    bytes: Vec<u8>,
    length: usize,
    /// Segmentation and checksum that the kernel left to do.
    pub offload: Offload,
    /// Layout of its headers and segments.
    pub layout: Layout,
    /// Segments still under way.
    pending: u32,
}

impl Stored {
    /// Return the packet, from the IP header on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// All packets under way in one direction, in limited memory.
#[derive(Debug)]
pub struct Store {
    /// Bytes of memory used by packets under way; `limit`: their max.
    held: usize,
    limit: usize,
    slots: Vec<Option<Stored>>,
    free: Vec<u32>,
    spare: [Vec<Vec<u8>>; 3],
    /// Buffer for the next packet.
    scratch: Vec<u8>,
}

impl Store {
    /// Make an empty store with `limit` bytes of memory.
    pub fn new(limit: usize) -> Self {
        let (slots, free, spare) = Default::default();
        Self { held: 0, limit, slots, free, spare, scratch: vec![0; LARGEST_PACKET] }
    }

    /// Return the memory for a packet of this size class and number of segments: its buffer and the records of its segments.
    fn cost(class: usize, segments: u16) -> usize {
        SIZES[class] + size_of::<Stored>() + usize::from(segments) * SEGMENT_MEMORY
    }

    /// Return the buffer for the next packet.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Store the packet in the scratch buffer until all `layout.count()` segments are settled; `None` if memory is full.
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

    /// Return a stored packet.
    pub fn get(&self, handle: u32) -> Option<&Stored> {
        self.slots.get(handle as usize)?.as_ref()
    }

    /// Count one more segment of a packet as under way: a copy.
    pub fn retain(&mut self, handle: u32) {
        if let Some(Some(stored)) = self.slots.get_mut(handle as usize) {
            stored.pending += 1;
        }
    }

    /// Count this number of segments of a packet as sent or dropped.
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
