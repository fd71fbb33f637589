//! FIFO that marks above a threshold, as DCTCP (RFC 8257 §3.1) requires of a switch.

use ccgym_core::units::{TimeSpan, Timestamp};

use crate::link::waiting::Limits;
use crate::queue::fifo::Rule;
use crate::queue::store::Store;
use crate::queue::Queued;
use crate::spec::LimitSpec;

/// Marks ECN-capable packets.
#[derive(Clone)]
pub struct Step {
    /// Size above which arrivals are marked.
    threshold: Limits,
    /// Delay above which packets are marked as they leave.
    delay: TimeSpan,
}

impl Step {
    /// Make it with `threshold`, `delay` or both.
    pub fn new(threshold: Option<&LimitSpec>, delay: Option<TimeSpan>) -> Self {
        Self { threshold: threshold.map_or(Limits::NONE, Limits::from), delay: delay.unwrap_or(TimeSpan::MAX) }
    }
}

impl Rule for Step {
    fn admit(&mut self, _now: Timestamp, packet: &mut Queued, store: &mut Store, room: bool) -> bool {
        if room && !store.admits(&self.threshold, packet.wire) {
            store.mark(packet);
        }
        room
    }

    fn dequeue(&mut self, now: Timestamp, store: &mut Store, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        let mut packet = store.pop()?;
        if now.since(packet.arrived) > self.delay {
            store.mark(&mut packet);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::packet::Ecn;

    use super::*;
    use crate::queue::fifo::Fifo;
    use crate::queue::tests::full_packet;
    use crate::queue::QueueDiscipline;

    const ROOMY: LimitSpec = LimitSpec { packets: Some(100), bytes: None };

    #[test]
    fn marks_arrivals_above_a_size() {
        let packets = LimitSpec { packets: Some(3), bytes: None };
        let bytes = LimitSpec { packets: None, bytes: Some(4500) };
        for threshold in [packets, bytes] {
            let mut queue = Fifo::new(&ROOMY, Step::new(Some(&threshold), None));
            for ms in 0..5 {
                queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::Ect1), &mut vec![]);
            }
            let left: Vec<_> = std::iter::from_fn(|| queue.dequeue(Timestamp::from_millis(5), &mut vec![])).collect();
            let marked: Vec<_> = left.iter().map(|packet| packet.datagram.ecn == Ecn::Ce).collect();
            assert_eq!((marked, queue.marked()), (vec![false, false, false, true, true], 2));
        }
    }

    #[test]
    fn marks_departures_that_waited() {
        let mut queue = Fifo::new(&ROOMY, Step::new(None, Some(TimeSpan::from_millis(2))));
        for ms in 0..3 {
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::Ect0), &mut vec![]);
        }
        let mut leaves = |ms| queue.dequeue(Timestamp::from_millis(ms), &mut vec![]).map(|p| p.datagram.ecn);
        assert_eq!([2, 4, 5].map(&mut leaves), [Some(Ecn::Ect0), Some(Ecn::Ce), Some(Ecn::Ce)]);
    }

    #[test]
    fn drops_beyond_its_limit_and_marks_no_other_flows() {
        let one = LimitSpec { packets: Some(1), bytes: None };
        let mut queue = Fifo::new(&LimitSpec { packets: Some(2), bytes: None }, Step::new(Some(&one), None));
        let taken = [0, 1, 2].map(|ms| queue.enqueue(Timestamp::ZERO, full_packet(ms, Ecn::NotEct), &mut vec![]));
        assert_eq!((taken, queue.marked()), ([true, true, false], 0));
    }
}
