//! A receiver's columns: counts per step, cumulative in the end.

use ccgym_core::{Packet, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use crate::in_order::InOrder;

/// Columns of wire bytes, payload that arrived for the first time, and payload that can be read.
pub type Columns<'a> = [&'a mut Vec<u64>; 3];

/// Series of one flow's receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceiverSeries {
    step: TimeSpan,
    bins: Vec<[u64; 3]>,
    /// The latest bin: its index, and its times after the first up to the second.
    latest: (usize, u64, u64),
    payload: InOrder,
}

impl ReceiverSeries {
    /// Make it without counts; it never counts if the step is zero.
    #[must_use]
    pub fn new(step: TimeSpan) -> Self {
        Self { step, ..Self::default() }
    }

    /// Add `packet`, which arrived at `at`, its segment for the first time if it is `new`; `header` bytes of it are not
    /// payload. Without retransmissions (not `reliable`) no segment waits for a missing one.
    #[inline]
    pub fn arrived(&mut self, at: Timestamp, packet: &Packet, new: bool, header: u32, reliable: bool) {
        let payload = if new { u64::from(packet.size - header) } else { 0 };
        let readable = if new && reliable { self.payload.arrived(packet.segment, payload) } else { payload };
        self.count(at, [u64::from(packet.size), payload, readable]);
    }

    /// Add `wire` bytes that arrived at `at`, after which `payload` bytes could be read.
    pub fn read(&mut self, at: Timestamp, wire: u64, payload: u64) {
        self.count(at, [wire, payload, payload]);
    }

    /// A sample at time t counts arrivals up to and including t.
    #[inline]
    fn count(&mut self, at: Timestamp, bytes: [u64; 3]) {
        let (_, after, to) = self.latest;
        if at.0 <= after || to < at.0 {
            if self.step.0 == 0 {
                return;
            }
            let bin = (at.0.saturating_sub(1) / self.step.0) as usize;
            if self.bins.len() <= bin {
                self.bins.resize(bin + 1, [0; 3]);
            }
            self.latest = (bin, bin as u64 * self.step.0, (bin as u64 + 1).saturating_mul(self.step.0));
        }
        for (sum, more) in self.bins[self.latest.0].iter_mut().zip(bytes) {
            *sum += more;
        }
    }

    /// Add to the cumulative `columns`, which have a sample at each step up to `end`.
    pub fn add_to(&self, end: Timestamp, columns: Columns<'_>) {
        if self.step.0 == 0 {
            return;
        }
        let samples = (end.0 / self.step.0) as usize;
        for (which, column) in columns.into_iter().enumerate() {
            column.resize(column.len().max(samples), 0);
            let mut sum = 0;
            for (i, cell) in column.iter_mut().take(samples).enumerate() {
                sum += self.bins.get(i).map_or(0, |bin| bin[which]);
                *cell += sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(series: &ReceiverSeries) -> [Vec<u64>; 3] {
        let [mut wire, mut payload, mut readable] = [const { Vec::new() }; 3];
        series.add_to(Timestamp(39), [&mut wire, &mut payload, &mut readable]);
        [wire, payload, readable]
    }

    #[test]
    fn samples_count_up_to_their_time() {
        let mut series = ReceiverSeries::new(TimeSpan(10));
        for at in [0, 10, 11, 35] {
            series.read(Timestamp(at), 100, 90);
        }
        assert_eq!(columns(&series), [vec![200, 300, 300], vec![180, 270, 270], vec![180, 270, 270]]);
        let mut both = vec![1, 2];
        series.add_to(Timestamp(39), [&mut both, &mut Vec::new(), &mut Vec::new()]);
        assert_eq!(both, [201, 302, 300]);
    }

    #[test]
    fn payload_after_a_gap_arrives_and_can_not_be_read() {
        let arrivals = [(5, 0, true), (15, 2, true), (25, 2, false), (29, 1, true)];
        let filled = |reliable| {
            let mut series = ReceiverSeries::new(TimeSpan(10));
            for (at, segment, new) in arrivals {
                let packet = Packet { segment, size: 100, ..Packet::default() };
                series.arrived(Timestamp(at), &packet, new, 10, reliable);
            }
            columns(&series)
        };
        let [wire, payload] = [vec![100, 200, 400], vec![90, 180, 270]];
        assert_eq!(filled(true), [wire.clone(), payload.clone(), vec![90, 90, 270]]);
        assert_eq!(filled(false), [wire, payload.clone(), payload]);
    }
}
