//! The window under which each packet left. Verus writes it into the packet; here the sender stores it.

use std::collections::VecDeque;

use ccgym_core::PacketNumber;

#[derive(Clone, Debug, Default)]
pub struct Departures {
    /// Number of the oldest stored packet.
    first: PacketNumber,
    /// Windows by number; `None` once the packet is acknowledged or lost.
    windows: VecDeque<Option<u32>>,
}

impl Departures {
    /// Add a packet; packets leave in order of their numbers.
    pub fn push(&mut self, number: PacketNumber, window: u32) {
        if self.windows.is_empty() {
            self.first = number;
        }
        self.windows.push_back(Some(window));
    }

    /// Return the window of a packet that is acknowledged or lost now; `None` if it was before.
    pub fn settle(&mut self, number: PacketNumber) -> Option<u32> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let window = self.windows.get_mut(place)?.take();
        while matches!(self.windows.front(), Some(None)) {
            self.windows.pop_front();
            self.first += 1;
        }
        window
    }

    /// Return the number of the next packet.
    pub fn next(&self) -> PacketNumber {
        self.first + self.windows.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_settled_once() {
        let mut departures = Departures::default();
        for number in 0..4 {
            departures.push(number, 10 + number as u32);
        }
        for (number, expected) in [(2, Some(12)), (2, None), (0, Some(10)), (1, Some(11)), (1, None), (7, None)] {
            assert_eq!(departures.settle(number), expected, "{number}");
        }
        assert_eq!((departures.windows.len(), departures.next()), (1, 4));
    }
}
