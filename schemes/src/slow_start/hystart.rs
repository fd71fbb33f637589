//! Hybrid slow start (Ha and Rhee, 2011) with the constants of Linux `net/ipv4/tcp_cubic.c`, of ns-3.37
//! `tcp-cubic.cc` or of Chromium's `hybrid_slow_start.cc`, which differ enough to change results.

use ccgym_core::{PacketNumber, TimeSpan, Timestamp};

use super::{Input, Step};

/// Min window for the search, packets.
const LOW_WINDOW: u64 = 16;
/// Max gap between acknowledgements of one train.
const TRAIN_SPACING: TimeSpan = TimeSpan::from_millis(2);
/// Samples of a round before its min counts.
const SAMPLES: u32 = 8;
/// Four full segmentation-offload bursts: Linux allows their time at the pacing rate, up to [`ACK_DELAY_MAX`], for
/// delays of acknowledgements on the path.
const OFFLOAD_BURST_BYTES: f64 = 4.0 * 65536.0;
/// Max of that time.
const ACK_DELAY_MAX: TimeSpan = TimeSpan::from_millis(1);

/// Set of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// Train: half of (minimum delay + hold-back), all of it when paced. Delay: minimum + clamp(min/8, 4, 16 ms).
    Linux { paced: bool },
    /// Train: the minimum delay. Delay: minimum + clamp(min, 4 ms, 1 s), over the first eight samples only.
    Ns3,
    /// No train. Delay: as Linux, once per round, over its first eight samples.
    Chromium,
}

/// State of the search.
#[derive(Clone, Debug)]
pub struct HyStart {
    rules: Rules,
    found: bool,
    round_start: Timestamp,
    last_ack: Timestamp,
    /// Packet number whose acknowledgement ends the round.
    round_end: PacketNumber,
    round_min: TimeSpan,
    samples: u32,
}

impl HyStart {
    /// Make it with Linux's rules.
    pub fn linux(paced: bool) -> Self {
        Self::new(Rules::Linux { paced })
    }
    /// Make it with the rules of ns-3.37.
    pub fn ns3() -> Self {
        Self::new(Rules::Ns3)
    }

    /// Make it with the rules of Chromium's QUIC.
    pub fn chromium() -> Self {
        Self::new(Rules::Chromium)
    }

    fn new(rules: Rules) -> Self {
        Self {
            rules,
            found: false,
            round_start: Timestamp::ZERO,
            last_ack: Timestamp::ZERO,
            round_end: 0,
            round_min: TimeSpan::MAX,
            samples: 0,
        }
    }

    /// True if the search ended slow start.
    pub fn has_found(&self) -> bool {
        self.found
    }

    /// Restart the search with the next acknowledgement.
    pub fn reset(&mut self) {
        *self = Self::new(self.rules);
    }

    #[inline]
    pub(super) fn on_ack(&mut self, input: &Input<'_>) -> Step {
        let event = input.event;
        let round_ends = event.largest_acked >= self.round_end;
        // ns-3 judges the acknowledgement that ends a round before it resets the old round: the train may then have
        // lasted for a whole RTT.
        let judged_before_reset = self.rules == Rules::Ns3;
        if round_ends && !judged_before_reset {
            self.begin_round(event.now, event.next_packet_number);
        }
        let mut exit = false;
        if let Some(delay) = input.delay {
            if !self.found && input.cwnd >= LOW_WINDOW * input.mss {
                exit = self.train_spans_path(input) | self.delay_rose(delay, input.delay_min);
                self.found = exit;
            }
        }
        if round_ends && judged_before_reset {
            self.begin_round(event.now, event.next_packet_number);
        }
        Step { growth: event.counted_bytes, exit }
    }

    fn begin_round(&mut self, now: Timestamp, end: PacketNumber) {
        self.round_end = end;
        self.round_start = now;
        self.last_ack = now;
        self.round_min = TimeSpan::MAX;
        self.samples = 0;
    }

    /// First test: a train of acknowledgements as long as the one-way delay means that the window fills the path. A
    /// wider gap ends the train for the rest of the round.
    #[inline]
    fn train_spans_path(&mut self, input: &Input<'_>) -> bool {
        let now = input.event.now;
        if now.since(self.last_ack) > TRAIN_SPACING {
            return false;
        }
        self.last_ack = now;
        let span = now.since(self.round_start);
        match self.rules {
            Rules::Linux { paced } => {
                let whole = input.delay_min + hold_back(input.cwnd, input.event.rtt.smoothed());
                span > if paced { whole } else { TimeSpan(whole.0 / 2) }
            }
            Rules::Ns3 => span > input.delay_min,
            Rules::Chromium => false,
        }
    }

    /// Second test: the min delay of the round is well above the smallest known.
    #[inline]
    fn delay_rose(&mut self, delay: TimeSpan, delay_min: TimeSpan) -> bool {
        let ms = TimeSpan::from_millis;
        match self.rules {
            Rules::Linux { .. } => {
                self.round_min = self.round_min.min(delay);
                if self.samples < SAMPLES {
                    self.samples += 1;
                    return false;
                }
                self.round_min > delay_min + TimeSpan(delay_min.0 / 8).clamp(ms(4), ms(16))
            }
            Rules::Ns3 => {
                if self.samples < SAMPLES {
                    self.round_min = self.round_min.min(delay);
                    self.samples += 1;
                    return false;
                }
                self.round_min > delay_min + delay_min.clamp(ms(4), ms(1000))
            }
            Rules::Chromium => {
                self.samples += 1;
                if self.samples <= SAMPLES {
                    self.round_min = self.round_min.min(delay);
                }
                self.samples == SAMPLES && self.round_min > delay_min + TimeSpan(delay_min.0 / 8).clamp(ms(4), ms(16))
            }
        }
    }
}

/// Return the time for which the path may delay acknowledgements, from the rate 2·W/sRTT.
fn hold_back(cwnd: u64, srtt: TimeSpan) -> TimeSpan {
    let span = OFFLOAD_BURST_BYTES * srtt.0 as f64 / (2.0 * cwnd as f64);
    TimeSpan(span as u64).min(ACK_DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::{json, Value};

    const SEARCHING: f64 = 3.0;
    const FOUND: f64 = 4.0;
    /// Wider than the gap of a train, so that only the delay counts.
    const APART: TimeSpan = TimeSpan::from_millis(3);

    fn ms(value: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(value / 1e3)
    }
    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("cubic", packets, params)
    }
    fn phase(host: &MockTransport) -> f64 {
        host.observable("slow_start_phase")
    }
    /// Run a round of 20 packets that sets the min delay, then nine or more samples of a round at `rise` more.
    fn after_rise(params: &Value, base: f64, rise: f64) -> f64 {
        let mut host = host(20, params);
        host.advance(APART);
        host.ack_after(ms(base));
        for _ in 1..20 {
            host.advance(APART);
            host.ack_after(ms(base));
        }
        assert_eq!(phase(&host), SEARCHING);
        // The second round begins with its first packet's acknowledgement.
        for _ in 0..9 {
            let wait = host.now + APART;
            host.ack_after(ms(base + rise));
            host.advance(wait.since(host.now));
        }
        phase(&host)
    }

    /// Linux: the round's minimum above the minimum delay by clamp(delay/8, 4 ms, 16 ms).
    #[test]
    fn delay_in_linux() {
        for (base, threshold) in [(100.0, 12.5), (400.0, 16.0)] {
            assert_eq!(after_rise(&json!({"mode": "linux"}), base, threshold - 0.1), SEARCHING, "{base}");
            assert_eq!(after_rise(&json!({"mode": "linux"}), base, threshold + 0.1), FOUND, "{base}");
        }
    }

    /// A train must last longer than half of (minimum delay + 1 ms), all of it when paced; in ns-3 longer than the
    /// minimum delay. A gap of more than 2 ms ends it.
    #[test]
    fn train() {
        // The first window's acknowledgements follow the first, at 100 ms, at this spacing.
        let found_after = |params: Value, spacing: f64| {
            let mut host = host(150, &params);
            host.ack_after(ms(100.0));
            (1..150).find(|_| {
                host.advance(ms(spacing));
                host.ack(1);
                phase(&host) == FOUND
            })
        };
        assert_eq!(found_after(json!({"mode": "linux"}), 1.0), Some(51));
        assert_eq!(found_after(json!({"mode": "linux"}), 2.0), Some(26));
        assert_eq!(found_after(json!({"mode": "linux"}), 2.1), None);
        assert_eq!(found_after(json!({"mode": "linux", "pacing": true}), 1.0), Some(102));
        assert_eq!(found_after(json!({"mode": "ns3"}), 1.0), Some(101));
    }

    #[test]
    fn ssthresh_is_the_window_when_the_search_ends() {
        let mut host = host(150, &json!({"mode": "linux"}));
        host.ack_after(ms(100.0));
        while phase(&host) == SEARCHING {
            host.advance(ms(1.0));
            host.ack(1);
        }
        // 50 packets grew the window; the 51st ended slow start.
        assert_eq!(host.observable("ssthresh_packets"), 201.0);
    }

    #[test]
    fn small_windows_are_not_searched() {
        let mut host = host(4, &json!({"mode": "linux"}));
        host.ack_round(ms(10.0), TimeSpan::ZERO);
        assert_eq!(host.window(), 8.0);
        host.ack_round(ms(100.0), APART);
        assert_eq!(phase(&host), SEARCHING);
    }
}
