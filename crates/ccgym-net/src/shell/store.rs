//! Packets under way, as they were read, until the last of their segments has left or was dropped.

use super::offload::Layout;
use crate::system::port::{Offload, LARGEST_PACKET};

/// Room of the buffers. Small packets are copied out of the buffer in which they were read, so that many of them can be
/// under way; one that nearly fills it keeps it.
const SIZES: [usize; 3] = [2048, 16_384, LARGEST_PACKET];
/// Free buffers kept of each size, so that memory is not asked for in the middle of a run.
const SPARE: [usize; 3] = [4096, 256, 64];

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
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// All packets under way in one direction.
#[derive(Debug)]
pub struct Store {
    slots: Vec<Option<Stored>>,
    free: Vec<u32>,
    spare: [Vec<Vec<u8>>; 3],
    /// Where the next packet is read.
    scratch: Vec<u8>,
}

impl Default for Store {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), spare: Default::default(), scratch: vec![0; LARGEST_PACKET] }
    }
}

impl Store {
    /// Where the next packet is to be read.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Keep the packet that was read into the scratch buffer until all `layout.count()` segments are settled.
    pub fn keep(&mut self, length: usize, offload: Offload, layout: Layout) -> u32 {
        let class = SIZES.iter().position(|&size| length <= size).unwrap_or(SIZES.len() - 1);
        let mut bytes = self.spare[class].pop().unwrap_or_else(|| vec![0; SIZES[class]]);
        if class == SIZES.len() - 1 {
            std::mem::swap(&mut bytes, &mut self.scratch);
        } else {
            bytes[..length].copy_from_slice(&self.scratch[..length]);
        }
        let stored = Stored { bytes, length, offload, layout, pending: layout.count().into() };
        match self.free.pop() {
            Some(handle) => {
                self.slots[handle as usize] = Some(stored);
                handle
            }
            None => {
                self.slots.push(Some(stored));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// A packet that is kept.
    #[must_use]
    pub fn get(&self, handle: u32) -> Option<&Stored> {
        self.slots.get(handle as usize)?.as_ref()
    }

    /// So many segments of a packet have left or were dropped.
    pub fn settle(&mut self, handle: u32, segments: u32) {
        let Some(slot) = self.slots.get_mut(handle as usize) else { return };
        let Some(stored) = slot else { return };
        stored.pending = stored.pending.saturating_sub(segments);
        if stored.pending > 0 {
            return;
        }
        if let Some(Stored { bytes, .. }) = slot.take() {
            self.free.push(handle);
            let class = SIZES.iter().position(|&size| bytes.len() == size).unwrap_or(0);
            if self.spare[class].len() < SPARE[class] {
                self.spare[class].push(bytes);
            }
        }
    }

    /// Packets under way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
