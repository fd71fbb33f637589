//! Measures the path, one round trip at a time. Seconds, bit/s and packets.

use super::super::memory::Memory;
use ccgym_core::monitor::MonitorInterval;

/// Number of parts of a window of time.
const WINDOW_PARTS: usize = 6;
/// Min RTT, to keep rates finite.
pub(super) const MIN_RTT: f64 = 1e-6;
/// Min round, in RTTs: an interval meant to last one RTT is often a little shorter.
const MIN_ROUND_RTTS: f64 = 0.9;
/// Max part of a round that counts as time, in RTTs: the rest was silence.
const MAX_HEARD_RTTS: f64 = 2.0;

/// Max over a recent time; zero without values.
#[derive(Clone, Debug)]
struct Recent {
    parts: [f64; WINDOW_PARTS],
    now: usize,
    /// Time left in the current part, and the length of a part.
    left: f64,
    length: f64,
}

impl Recent {
    fn new(window: f64) -> Self {
        let length = window / WINDOW_PARTS as f64;
        Self { parts: [0.0; WINDOW_PARTS], now: 0, left: length, length }
    }

    fn add(&mut self, x: f64, seconds: f64) {
        self.left -= seconds;
        if self.left <= 0.0 {
            self.now = (self.now + 1) % WINDOW_PARTS;
            (self.parts[self.now], self.left) = (0.0, self.length);
        }
        self.parts[self.now] = self.parts[self.now].max(x);
    }

    fn get(&self) -> f64 {
        self.parts.iter().copied().fold(0.0, f64::max)
    }
}

/// About one RTT or more, up to an acknowledgement.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub seconds: f64,
    sent_bytes: u64,
    acked_bytes: u64,
    pub acked: u64,
    pub lost: u64,
    pub samples: u64,
    /// Sum of the RTT samples, by intervals, and the min.
    pub rtt_sum: f64,
    pub rtt: f64,
    pub app_limited: bool,
}

impl Round {
    pub fn new() -> Self {
        Self { rtt: f64::MAX, ..Self::default() }
    }

    /// Add another round; silence in it does not count as time.
    pub fn add(&mut self, round: &Self) {
        self.seconds += round.heard();
        self.acked += round.acked;
        self.lost += round.lost;
        self.samples += round.samples;
        self.rtt_sum += round.rtt_sum;
        self.rtt = self.rtt.min(round.rtt);
    }

    /// Return the bytes acknowledged over its length.
    pub fn delivered(&self) -> f64 {
        8.0 * self.acked_bytes as f64 / self.seconds
    }

    /// Return the bytes sent over its length.
    pub fn sent(&self) -> f64 {
        8.0 * self.sent_bytes as f64 / self.seconds
    }

    /// Return its length without silence.
    pub fn heard(&self) -> f64 {
        self.seconds.min(MAX_HEARD_RTTS * self.rtt)
    }

    /// Return lost over settled packets.
    pub fn loss(&self) -> f64 {
        fraction(self.lost, self.acked)
    }
}

/// Return lost over lost and acknowledged packets; zero if neither.
pub(super) fn fraction(lost: u64, acked: u64) -> f64 {
    lost as f64 / (lost + acked).max(1) as f64
}

/// Measurements of the path.
#[derive(Clone, Debug)]
pub(super) struct Path {
    round: Round,
    sent: Recent,
    delivered: Recent,
    /// Time with acknowledgements.
    pub heard: f64,
}

impl Path {
    pub fn new(memory: f64) -> Self {
        Self { round: Round::new(), sent: Recent::new(memory), delivered: Recent::new(memory), heard: 0.0 }
    }

    /// Add an interval that `memory` has digested; returns the round that ends with it, if one does. Rounds end with an
    /// acknowledgement, however late.
    pub fn add(&mut self, m: &MonitorInterval, memory: &Memory) -> Option<Round> {
        let round = &mut self.round;
        round.seconds += memory.seconds;
        round.sent_bytes += m.sent_bytes;
        round.acked_bytes += m.acked_bytes;
        round.acked += m.acked_packets;
        round.lost += m.lost_packets;
        round.app_limited |= m.app_limited;
        if let (Some(min), Some(mean)) = (m.interval_min_rtt(), m.mean_rtt()) {
            round.rtt = round.rtt.min(min.as_secs_f64().max(MIN_RTT));
            round.rtt_sum += mean.as_secs_f64() * m.rtt_count() as f64;
            round.samples += m.rtt_count() as u64;
        }
        if round.acked == 0 || round.samples == 0 || round.seconds < MIN_ROUND_RTTS * round.rtt {
            return None;
        }
        let round = std::mem::replace(round, Round::new());
        let heard = round.heard();
        self.heard += heard;
        self.sent.add(round.sent(), heard);
        // Delayed acknowledgements come faster than any link: the rate is at most the one sent.
        let sent = self.sent.get();
        self.delivered.add(round.delivered().min(sent), heard);
        Some(round)
    }

    pub fn cut(&mut self) {
        self.round = Round::new();
    }

    /// Return the max rate that the path is known to carry; zero if unknown.
    pub fn carries(&self) -> f64 {
        self.delivered.get()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::interval;
    use super::*;
    use ccgym_core::units::Timestamp;

    #[test]
    fn the_max_of_a_recent_time() {
        let mut recent = Recent::new(6.0);
        assert_eq!(recent.get(), 0.0);
        recent.add(5.0, 0.5);
        recent.add(3.0, 0.25);
        assert_eq!(recent.get(), 5.0);
        for second in 1..=5 {
            recent.add(1.0, 1.0);
            assert_eq!(recent.get(), 5.0, "{second}");
        }
        recent.add(2.0, 1.0);
        assert_eq!(recent.get(), 2.0);
    }

    #[test]
    fn rounds_are_as_long_as_a_round_trip_and_silence_is_not_heard() {
        let (mut path, mut memory) = (Path::new(60.0), Memory::new(1500));
        let mut now = 10_000;
        let mut step = |ms: u64, rtts: &[u64]| {
            let m = interval(Timestamp::from_millis(now), Timestamp::from_millis(now + ms), rtts);
            now += ms;
            memory.digest(&m, true);
            path.add(&m, &memory)
        };
        assert!(step(60, &[100]).is_none());
        assert!(step(30, &[]).is_none());
        let round = step(30, &[120, 120]).expect("120 ms have passed");
        // Three packets of 12,000 bits in 120 ms.
        assert!((round.delivered() - 300_000.0).abs() < 1e-6 && (round.sent() - 300_000.0).abs() < 1e-6);
        assert!((round.heard() - 0.12).abs() < 1e-12 && round.samples == 3);
        assert!(step(3000, &[]).is_none());
        let round = step(10, &[100]).expect("a late acknowledgement");
        assert!((round.heard() - 0.2).abs() < 1e-12);
        // A hundred packets at once, long in flight: the path does not count as that fast.
        let m = interval(Timestamp::from_millis(now), Timestamp::from_millis(now + 100), &[2000; 100]);
        let mut burst = m;
        (burst.sent_packets, burst.sent_bytes) = (2, 3000);
        memory.digest(&burst, true);
        path.add(&burst, &memory);
        assert!(path.round.seconds > 0.0, "a round of two seconds is under way");
        burst.end = Timestamp::from_millis(now + 2000);
        memory.digest(&burst, true);
        assert!(path.add(&burst, &memory).is_some());
        assert!((path.carries() - 300_000.0).abs() < 1e-6, "{}", path.carries());
    }
}
