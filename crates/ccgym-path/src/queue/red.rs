//! RED (Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993), gentle as an option, with ECN as in RFC 3168 §7.
//!
//! While the queue is empty its average decays by the packets that could have left meanwhile. The time per packet is
//! measured while packets wait, since a queue does not know its link's rate.

use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::queue::fifo::Rule;
use crate::queue::store::Store;
use crate::queue::Queued;

/// Weight of one measurement of the time per packet.
const SERVICE_WEIGHT: f64 = 1.0 / 8.0;

/// Parameters of RED.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Thresholds of the average, in packets.
    pub min: f64,
    /// See `min`.
    pub max: f64,
    /// Probability when the average reaches `max`.
    pub max_probability: f64,
    /// Weight of the queue in its average.
    pub weight: f64,
    /// True if above `max` the probability grows to one at twice that, instead of being one.
    pub gentle: bool,
    /// True if ECN-capable packets are marked instead of dropped, below the average at which all are dropped.
    pub ecn: bool,
}

/// Decision about an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Pass,
    /// Marked if possible.
    Chosen,
    Drop,
}

/// RED of one queue.
#[derive(Clone, Debug)]
pub struct Red {
    settings: Settings,
    /// Average queue in packets.
    average: f64,
    /// Packets since the last one chosen; `None`: the average was below the lower threshold.
    since_chosen: Option<u32>,
    /// Time of the last departure, and true if others were waiting then.
    last_departure: Timestamp,
    was_waiting: bool,
    /// Time per packet, seconds; zero until it is measured.
    service_s: f64,
    rng: Rng,
}

impl Red {
    /// Start with an average of zero.
    pub fn new(settings: Settings, seed: u64, index: u64) -> Self {
        Self {
            settings,
            average: 0.0,
            since_chosen: None,
            last_departure: Timestamp::ZERO,
            was_waiting: false,
            service_s: 0.0,
            rng: Rng::stream(seed, "queue/red", index),
        }
    }

    /// Update the average at an arrival.
    fn average(&mut self, now: Timestamp, store: &Store) {
        let weight = self.settings.weight;
        if store.is_empty() {
            let idle = now.since(self.last_departure).as_secs_f64();
            if self.service_s > 0.0 {
                self.average *= (1.0 - weight).powf(idle / self.service_s);
            }
        } else {
            self.average += weight * (store.len() as f64 - self.average);
        }
    }

    /// Decide by the average.
    fn judge(&mut self) -> Verdict {
        let Settings { min, max, max_probability, gentle, .. } = self.settings;
        let probability = if self.average < min {
            self.since_chosen = None;
            return Verdict::Pass;
        } else if self.average < max {
            max_probability * (self.average - min) / (max - min)
        } else if gentle && self.average < 2.0 * max {
            max_probability + (1.0 - max_probability) * (self.average - max) / max
        } else {
            self.since_chosen = Some(0);
            return Verdict::Drop;
        };
        // The wait between two choices is uniform, up to 1/probability packets.
        let count = self.since_chosen.map_or(0, |count| count.saturating_add(1));
        let spaced = probability / (1.0 - f64::from(count) * probability).max(probability);
        let chosen = self.rng.bernoulli(spaced);
        self.since_chosen = if chosen { Some(0) } else { Some(count) };
        if chosen {
            Verdict::Chosen
        } else {
            Verdict::Pass
        }
    }
}

impl Rule for Red {
    fn admit(&mut self, now: Timestamp, packet: &mut Queued, store: &mut Store, _room: bool) -> bool {
        self.average(now, store);
        match self.judge() {
            Verdict::Pass => true,
            Verdict::Chosen => self.settings.ecn && store.mark(packet),
            Verdict::Drop => false,
        }
    }

    fn dequeue(&mut self, now: Timestamp, store: &mut Store, _dropped: &mut Vec<Queued>) -> Option<Queued> {
        let packet = store.pop()?;
        if self.was_waiting {
            let took = now.since(self.last_departure).as_secs_f64();
            let weight = if self.service_s == 0.0 { 1.0 } else { SERVICE_WEIGHT };
            self.service_s += weight * (took - self.service_s);
        }
        self.last_departure = now;
        self.was_waiting = !store.is_empty();
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
    use crate::spec::LimitSpec;

    fn red(gentle: bool, ecn: bool) -> Fifo<Red> {
        let limit = LimitSpec { packets: Some(10_000), bytes: None };
        let settings = Settings { min: 5.0, max: 15.0, max_probability: 0.02, weight: 0.002, gentle, ecn };
        Fifo::new(&limit, Red::new(settings, 1, 0))
    }

    /// §VI, equation 2: after L arrivals that each find one packet more, the average is L + 1 + (((1−w)^(L+1) − 1)/w).
    #[test]
    fn average_of_a_burst() {
        let mut queue = red(true, false);
        let burst = 50;
        for _ in 0..=burst {
            queue.rule.average(Timestamp::ZERO, &queue.store);
            queue.store.push(full_packet(0, Ecn::NotEct));
        }
        // Arrival k + 1 finds k packets; the first finds an empty queue of average zero.
        let l = f64::from(burst);
        let expected = l + 1.0 + (0.998f64.powf(l + 1.0) - 1.0) / 0.002;
        assert!((queue.rule.average - expected).abs() < 1e-9, "{} instead of {expected}", queue.rule.average);
    }

    /// While the queue is empty for the time of m packets, the average decays by (1−w)^m.
    #[test]
    fn average_decays_while_idle() {
        let mut queue = red(true, false);
        for _ in 0..3 {
            queue.store.push(full_packet(0, Ecn::NotEct));
        }
        for ms in [10, 12, 14] {
            queue.dequeue(Timestamp::from_millis(ms), &mut vec![]);
        }
        queue.rule.average = 10.0;
        queue.rule.average(Timestamp::from_millis(14 + 2 * 300), &queue.store);
        assert!((queue.rule.average - 10.0 * 0.998f64.powi(300)).abs() < 1e-9, "{}", queue.rule.average);
    }

    /// Waits of 1 … 1/p packets, uniform: with p = 0.01 their mean is 50 (§VII; independent draws have 100).
    #[test]
    fn choices_are_spaced_evenly() {
        let mut queue = red(true, false);
        queue.rule.average = 10.0;
        let (mut waits, mut wait) = (vec![], 0);
        for _ in 0..100_000 {
            wait += 1;
            if queue.rule.judge() == Verdict::Chosen {
                waits.push(wait);
                wait = 0;
            }
        }
        let mean = waits.iter().sum::<i32>() as f64 / waits.len() as f64;
        assert!((mean - 50.0).abs() < 2.0, "{mean}");
        assert!(waits.iter().max() <= Some(&100), "{:?}", waits.iter().max());
        let early = waits.iter().filter(|&&wait| wait <= 25).count() as f64 / waits.len() as f64;
        assert!((early - 0.25).abs() < 0.03, "{early}");
    }

    /// Return the share of arrivals that are chosen, or dropped, at an average.
    #[test]
    fn probability_by_average() {
        for (average, gentle, chosen, dropped) in [
            (4.9, true, 0.0, 0.0),
            // 0.02 at the upper threshold: every 25th, since the waits are uniform.
            (14.999, true, 0.04, 0.0),
            (15.0, false, 0.0, 1.0),
            // Halfway from 0.02 to 1: the next one or the one after.
            (22.5, true, 1.0, 0.0),
            (30.0, true, 0.0, 1.0),
        ] {
            let mut queue = red(gentle, false);
            queue.rule.average = average;
            let verdicts: Vec<_> = (0..20_000).map(|_| queue.rule.judge()).collect();
            let share = |of| verdicts.iter().filter(|&&verdict| verdict == of).count() as f64 / 20_000.0;
            let (found_chosen, found_dropped) = (share(Verdict::Chosen), share(Verdict::Drop));
            assert!((found_chosen - chosen).abs() < 0.003, "{average}: {found_chosen} chosen");
            assert!((found_dropped - dropped).abs() < 1e-9, "{average}: {found_dropped} dropped");
        }
    }

    /// RFC 3168 §7: marks in place of drops, but not if all are dropped.
    #[test]
    fn marks_what_it_would_drop() {
        for (average, ecn, accepted) in
            [(29.0, Ecn::Ect0, true), (29.0, Ecn::NotEct, false), (40.0, Ecn::Ect0, false), (4.0, Ecn::Ect0, true)]
        {
            let mut queue = red(true, true);
            queue.rule.average = average;
            queue.rule.since_chosen = Some(1_000);
            assert_eq!(queue.enqueue(Timestamp::ZERO, full_packet(0, ecn), &mut vec![]), accepted, "{average} {ecn:?}");
            assert_eq!(queue.marked(), u64::from(accepted && average > 5.0), "{average} {ecn:?}");
        }
    }
}
