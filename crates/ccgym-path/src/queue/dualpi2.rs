//! DualPI2 (RFC 9332 appendix A): a short queue for L4S traffic and a longer one for the rest, whose probabilities are
//! coupled so that flows of both kinds get similar shares.
//!
//! The base probability p′ comes from one PI controller. A classic packet is dropped (or marked) with p′², an L4S
//! packet marked with coupling·p′, or when it waited longer than a step. Where RFC 9332 has options (scheduler, measure
//! of delay, step in place of a ramp, overload), the choice is that of Linux (`sch_dualpi2.c`, behavior).

use ccgym_core::packet::Ecn;
use ccgym_core::rng::Rng;
use ccgym_core::units::{TimeSpan, Timestamp};

use crate::link::waiting::Limits;
use crate::queue::pi::PiController;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};
use crate::spec::LimitSpec;

/// Bytes in both queues below which no packet is chosen by probability: two packets.
const MIN_BYTES: u64 = 2 * 1500;

/// Two queues under one limit.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    l4s: Store,
    classic: Store,
    limits: Limits,
    controller: PiController,
    /// p′.
    probability: f64,
    coupling: f64,
    step: TimeSpan,
    /// Min share of the link for classic traffic.
    classic_share: f64,
    /// Bytes that classic traffic may send before L4S does; it is served while this is positive.
    credit: f64,
    rng: Rng,
}

impl DualPi2 {
    /// Make empty queues at time 0.
    pub fn new(
        limit: &LimitSpec,
        controller: PiController,
        coupling: f64,
        step: TimeSpan,
        classic_share: f64,
        (seed, index): (u64, u64),
    ) -> Self {
        Self {
            l4s: Store::default(),
            classic: Store::default(),
            limits: limit.into(),
            controller,
            probability: 0.0,
            coupling,
            step,
            classic_share,
            credit: 0.0,
            rng: Rng::stream(seed, "queue/dualpi2", index),
        }
    }

    fn queue(&mut self, l4s: bool) -> &mut Store {
        if l4s {
            &mut self.l4s
        } else {
            &mut self.classic
        }
    }

    fn is_empty(&self) -> bool {
        self.l4s.is_empty() && self.classic.is_empty()
    }

    /// Make the updates that are due.
    fn catch_up(&mut self, now: Timestamp) {
        loop {
            let at_rest = self.is_empty() && self.probability == 0.0;
            let Some(at) = self.controller.due(now, at_rest) else { return };
            // The max of both waits, so that too much L4S traffic counts as well.
            let delay = self.classic.age(at).max(self.l4s.age(at));
            self.probability = (self.probability + self.controller.change(delay)).clamp(0.0, 1.0);
        }
    }

    /// True if the next packet is an L4S packet: weighted round robin, with classic traffic's share while both wait.
    fn l4s_is_next(&mut self) -> bool {
        if self.l4s.is_empty() || self.classic.is_empty() {
            self.credit = 0.0;
            return self.classic.is_empty();
        }
        self.credit <= 0.0
    }

    /// Update the credit by a packet sent while both waited.
    fn charge(&mut self, packet: &Queued, l4s: bool) {
        let bytes = f64::from(packet.wire);
        self.credit += if l4s { self.classic_share * bytes } else { (self.classic_share - 1.0) * bytes };
    }

    /// Decide by probability; false: the packet is dropped.
    fn passes(&mut self, now: Timestamp, packet: &mut Queued, l4s: bool) -> bool {
        let p = self.probability;
        let enough = self.l4s.bytes() + self.classic.bytes() + u64::from(packet.wire) >= MIN_BYTES;
        // All L4S packets are marked: both kinds are dropped alike (RFC 9332 on saturation).
        let overload = enough && self.coupling * p > 1.0;
        let both = |rng: &mut Rng| rng.uniform().max(rng.uniform()) < p;
        if l4s {
            if overload && both(&mut self.rng) {
                return false;
            }
            let coupled = enough && self.rng.bernoulli(self.coupling * p);
            if coupled || now.since(packet.arrived) > self.step {
                self.l4s.mark(packet);
            }
            return true;
        }
        // p′², as two draws (De Schepper et al., PI², CoNEXT 2016).
        let chosen = enough && both(&mut self.rng);
        !chosen || (!overload && self.classic.mark(packet))
    }
}

impl QueueDiscipline for DualPi2 {
    fn enqueue(&mut self, now: Timestamp, packet: Queued, _dropped: &mut Vec<Queued>) -> bool {
        self.catch_up(now);
        let (packets, bytes) = self.backlog();
        let room = self.limits.hold(packets + 1, bytes + u64::from(packet.wire));
        if room {
            // RFC 9331: ECT(1) and CE.
            let l4s = matches!(packet.datagram.ecn, Ecn::Ect1 | Ecn::Ce);
            self.queue(l4s).push(packet);
        }
        room
    }

    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.catch_up(now);
        loop {
            let both = !self.l4s.is_empty() && !self.classic.is_empty();
            let l4s = self.l4s_is_next();
            let mut packet = self.queue(l4s).pop()?;
            if self.passes(now, &mut packet, l4s) {
                if both {
                    self.charge(&packet, l4s);
                }
                return Some(packet);
            }
            dropped.push(packet);
        }
    }

    fn backlog(&self) -> (u64, u64) {
        let ((packets, bytes), (more, more_bytes)) = (self.l4s.backlog(), self.classic.backlog());
        (packets + more, bytes + more_bytes)
    }

    fn marked(&self) -> u64 {
        self.l4s.marked + self.classic.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::tests::full_packet;

    const MS: TimeSpan = TimeSpan::from_millis(1);

    fn dualpi2() -> DualPi2 {
        let controller = PiController::new(TimeSpan(15 * MS.0), TimeSpan(16 * MS.0), 0.16, 3.2);
        DualPi2::new(&LimitSpec { packets: Some(10_000), bytes: None }, controller, 2.0, MS, 0.1, (1, 0))
    }

    /// RFC 9332 appendix A: Δp′ = 0.16·(delay − 15 ms) + 3.2·growth, at 16, 32 and 48 ms.
    #[test]
    fn probability_follows_the_equation() {
        let mut queue = dualpi2();
        for ms in [1, 20] {
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::NotEct), &mut vec![]);
        }
        let mut p = 0.0;
        // The head, of 1 ms, is 15, 31 and 47 ms old.
        for (at, delay, growth) in [(16, 0.015, 0.015), (32, 0.031, 0.016), (48, 0.047, 0.016)] {
            p += 0.16 * (delay - 0.015) + 3.2 * growth;
            queue.catch_up(Timestamp::from_millis(at));
            assert!((queue.probability - p).abs() < 1e-12, "{at} ms: {} instead of {p}", queue.probability);
        }
        // Both leave at 50 ms. Nothing waits at 64 ms, and from 80 ms on only the target counts, down to zero.
        queue.l4s = Store::default();
        queue.classic = Store::default();
        p += 0.16 * -0.015 + 3.2 * -0.047;
        for at in [64, 80, 96] {
            queue.catch_up(Timestamp::from_millis(at));
            p = p.max(0.0);
            assert!((queue.probability - p).abs() < 1e-12, "{at} ms: {} instead of {p}", queue.probability);
            p -= 0.16 * 0.015;
        }
        assert!(p < 0.0);
        // Updates without effect are skipped: step by step this would take hours.
        queue.catch_up(Timestamp::from_millis(1_000_000_000_000));
        assert_eq!(queue.probability, 0.0);
    }

    /// The controller uses the max of both waits, and its probability ends at one.
    #[test]
    fn the_longer_wait_counts() {
        for (l4s, classic) in [(6, 11), (11, 6)] {
            let mut queue = dualpi2();
            queue.l4s.push(full_packet(l4s, Ecn::Ect1));
            queue.classic.push(full_packet(classic, Ecn::NotEct));
            queue.catch_up(Timestamp::from_millis(16));
            // 10 ms, of packets of 6 and 11 ms: 0.16·(−0.005) + 3.2·0.01.
            assert!((queue.probability - (0.032 - 0.000_8)).abs() < 1e-12, "{}", queue.probability);
            queue.catch_up(Timestamp::from_millis(16_000));
            assert_eq!(queue.probability, 1.0);
        }
    }

    /// Return the share of packets that are marked, and dropped, at a base probability.
    fn shares(probability: f64, coupling: f64, ecn: Ecn) -> (f64, f64) {
        let mut queue = DualPi2 { coupling, ..dualpi2() };
        let (mut dropped, mut marked) = (vec![], 0.0);
        let count = 40_000;
        for id in 0..count {
            queue.queue(matches!(ecn, Ecn::Ect1)).push(full_packet(id, ecn));
        }
        queue.probability = probability;
        while let Some(packet) = queue.dequeue(Timestamp::ZERO, &mut dropped) {
            marked += f64::from(u8::from(packet.datagram.ecn == Ecn::Ce));
        }
        (marked / count as f64, dropped.len() as f64 / count as f64)
    }

    /// RFC 9332 appendix A.1: p_CL = k·p′ and p_C = p′², so that p_C = (p_CL/k)².
    #[test]
    fn probabilities_are_coupled() {
        for (p, coupling, ecn, marked, dropped) in [
            (0.1, 2.0, Ecn::Ect1, 0.2, 0.0),
            (0.3, 2.0, Ecn::Ect1, 0.6, 0.0),
            (0.1, 2.0, Ecn::NotEct, 0.0, 0.01),
            (0.3, 2.0, Ecn::NotEct, 0.0, 0.09),
            (0.3, 2.0, Ecn::Ect0, 0.09, 0.0),
            // k only changes the marks.
            (0.3, 1.0, Ecn::Ect1, 0.3, 0.0),
            (0.3, 1.0, Ecn::NotEct, 0.0, 0.09),
            // All packets are marked.
            (0.5, 2.0, Ecn::Ect1, 1.0, 0.0),
            (0.5, 2.0, Ecn::Ect0, 0.25, 0.0),
            // Overload: both kinds are dropped with p′². The other L4S packets are marked, classic ones are not.
            (0.8, 2.0, Ecn::Ect1, 0.36, 0.64),
            (0.8, 2.0, Ecn::Ect0, 0.0, 0.64),
            (0.8, 2.0, Ecn::NotEct, 0.0, 0.64),
            // With k = 1 the L4S probability stays below 1: the queue is not overloaded.
            (0.8, 1.0, Ecn::Ect1, 0.8, 0.0),
            (0.8, 1.0, Ecn::Ect0, 0.64, 0.0),
        ] {
            let (found_marked, found_dropped) = shares(p, coupling, ecn);
            assert!((found_marked - marked).abs() < 0.01, "{p} {coupling} {ecn:?}: {found_marked} marked");
            assert!((found_dropped - dropped).abs() < 0.01, "{p} {coupling} {ecn:?}: {found_dropped} dropped");
        }
    }

    /// A packet alone is not chosen by probability, of either kind; the step still applies.
    #[test]
    fn a_packet_alone_is_spared() {
        for (ecn, waited, left) in [
            (Ecn::NotEct, 0, Ecn::NotEct),
            (Ecn::Ect0, 50, Ecn::Ect0),
            (Ecn::Ect1, 1, Ecn::Ect1),
            (Ecn::Ect1, 2, Ecn::Ce),
        ] {
            let (mut queue, mut dropped) = (dualpi2(), vec![]);
            queue.enqueue(Timestamp::from_millis(1), full_packet(1, ecn), &mut dropped);
            queue.probability = 1.0;
            queue.controller.due(Timestamp::from_millis(1 + waited), true);
            let found = queue.dequeue(Timestamp::from_millis(1 + waited), &mut dropped).map(|p| p.datagram.ecn);
            assert_eq!((found, dropped.len()), (Some(left), 0), "{ecn:?} after {waited} ms");
        }
        // With a second packet behind it, it is.
        let (mut queue, mut dropped) = (dualpi2(), vec![]);
        for ms in [1, 2] {
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::NotEct), &mut dropped);
        }
        queue.probability = 1.0;
        let found = queue.dequeue(Timestamp::from_millis(2), &mut dropped).map(|p| p.arrived.as_millis());
        assert_eq!((found, dropped.len()), (Some(2), 1));
    }

    /// Packets that arrive marked go with L4S traffic (RFC 9331), and the limit is over both queues.
    #[test]
    fn packets_are_told_apart_by_their_codepoint() {
        let mut queue = dualpi2();
        queue.limits = (&LimitSpec { packets: Some(4), bytes: None }).into();
        let codepoints = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::Ect1];
        let taken = codepoints.map(|ecn| queue.enqueue(Timestamp::ZERO, full_packet(0, ecn), &mut vec![]));
        assert_eq!(taken, [true, true, true, true, false]);
        assert_eq!((queue.classic.len(), queue.l4s.len(), queue.backlog()), (2, 2, (4, 6_000)));
    }

    #[test]
    fn l4s_packets_that_waited_beyond_the_step_are_marked() {
        let mut queue = dualpi2();
        for ms in 0..2 {
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::Ect1), &mut vec![]);
            queue.enqueue(Timestamp::from_millis(ms), full_packet(ms, Ecn::Ect0), &mut vec![]);
        }
        // At 2 ms the second L4S packet is just 1 ms old. Classic packets come last, and are never marked by the step.
        let left: Vec<_> = std::iter::from_fn(|| queue.dequeue(Timestamp::from_millis(2), &mut vec![])).collect();
        let found: Vec<_> = left.iter().map(|packet| (packet.arrived.as_millis(), packet.datagram.ecn)).collect();
        assert_eq!(found, [(0, Ecn::Ce), (0, Ecn::Ect0), (1, Ecn::Ect1), (1, Ecn::Ect0)]);
    }

    /// While both wait, classic traffic has a tenth; alone, either has all.
    #[test]
    fn classic_traffic_has_its_share() {
        let mut queue = dualpi2();
        for id in 0..1_000 {
            queue.l4s.push(full_packet(id, Ecn::Ect1));
            queue.classic.push(full_packet(id, Ecn::NotEct));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(Timestamp::ZERO, &mut vec![])).collect();
        let classic = |packets: &[Queued]| packets.iter().filter(|p| p.datagram.ecn == Ecn::NotEct).count();
        assert_eq!((classic(&order[..1_000]), classic(&order[1_112..]), order.len()), (100, 888, 2_000));
    }
}
