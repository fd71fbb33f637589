//! A store of things on their way, by handle.

/// Values by index; freed indices are used again, last freed first.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keep `value`; the answer is its handle.
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(i) = self.free.pop() {
            self.items[i as usize] = Some(value);
            return i;
        }
        self.items.push(Some(value));
        (self.items.len() - 1) as u32
    }

    /// Take the value of a handle out. A handle that was never given out, or was taken already, is a bug.
    pub fn take(&mut self, handle: u32) -> T {
        let value = self.items[handle as usize].take();
        self.free.push(handle);
        value.unwrap_or_else(|| unreachable!("handle {handle} was taken twice"))
    }

    /// Bytes that it takes.
    pub fn held_bytes(&self) -> usize {
        self.items.capacity() * std::mem::size_of::<Option<T>>() + self.free.capacity() * std::mem::size_of::<u32>()
    }
}
