//! Writes schemes/tests/recorded/str0m_*.csv: the results of str0m's delay-based estimator, modeled on the one deployed
//! in libwebrtc, for arrivals generated here. Not part of the build.
//!
//!     cargo init --bin str0m_gcc && cd str0m_gcc && cp ../str0m_gcc.rs src/main.rs
//!     cargo add str0m@=0.25.0 --no-default-features && cargo add str0m-proto@=0.8.0
//!     STR0M=$(echo ~/.cargo/registry/src/*/str0m-0.25.0/src) cargo run
//!
//! The estimator's modules are private: they are compiled here from the package's source. Their log has the trend.
#![allow(dead_code, unused)]

use std::cell::RefCell;
use std::time::{Duration, Instant};

pub use rtp_::Bitrate;

thread_local!(static LOGGED: RefCell<Vec<(&'static str, f64)>> = const { RefCell::new(Vec::new()) });

macro_rules! log_stat {
    ("TRENDLINE_MODIFIED_TREND", $modified:expr, $threshold:expr) => {
        crate::LOGGED.with_borrow_mut(|all| all.extend([("modified", $modified), ("threshold", $threshold)]))
    };
    ("TRENDLINE_ESTIMATE", $trend:expr) => {
        crate::LOGGED.with_borrow_mut(|all| all.push(("trend", $trend)))
    };
    ($($other:expr),+) => {{ $(let _ = &$other;)+ }};
}
pub(crate) use log_stat;

macro_rules! trace {
    ($($any:tt)*) => {};
}

mod rtp_ {
    pub use str0m_proto::{Bitrate, DataSize};
    pub type TwccSeq = u64;
}

mod util {
    include!(concat!(env!("STR0M"), "/util/average.rs"));

    pub fn already_happened() -> std::time::Instant {
        std::time::Instant::now() - std::time::Duration::from_secs(3600)
    }
}

mod bwe {
    pub use crate::rtp_::Bitrate;
    use crate::rtp_::{DataSize, TwccSeq};
    use std::time::{Duration, Instant};

    pub mod macros {
        include!(concat!(env!("STR0M"), "/bwe/macros.rs"));
    }
    pub mod time {
        include!(concat!(env!("STR0M"), "/bwe/time.rs"));
    }
    pub mod received {
        include!(concat!(env!("STR0M"), "/bwe/acked_bitrate_estimator.rs"));

        pub fn new() -> AckedBitrateEstimator {
            AckedBitrateEstimator::new(Duration::from_millis(500), Duration::from_millis(150))
        }

        pub fn add(one: &mut AckedBitrateEstimator, at: Instant, bytes: i64) -> Option<f64> {
            one.update(at, DataSize::bytes(bytes));
            one.current_estimate().map(|rate| rate.as_f64())
        }

        pub fn rate(one: &AckedBitrateEstimator) -> Option<Bitrate> {
            one.current_estimate()
        }
    }
    pub mod delay {
        pub mod arrival_group {
            include!(concat!(env!("STR0M"), "/bwe/delay/arrival_group.rs"));
        }
        pub mod trendline {
            include!(concat!(env!("STR0M"), "/bwe/delay/trendline.rs"));
        }
        pub mod rate_control {
            include!(concat!(env!("STR0M"), "/bwe/delay/rate_control.rs"));
        }
        pub mod control {
            include!(concat!(env!("STR0M"), "/bwe/delay/control.rs"));

            /// Return the usage as in the tables: 0 normal, 1 under, 2 over.
            pub fn usage(one: &DelayController) -> u32 {
                match one.trendline_estimator.hypothesis() {
                    BandwidthUsage::Normal => 0,
                    BandwidthUsage::Underuse => 1,
                    BandwidthUsage::Overuse => 2,
                }
            }
        }
    }

    // Two types that these modules use from a file that is not compiled here.
    #[derive(Debug, Copy, Clone)]
    pub struct AckedPacket {
        pub seq_no: TwccSeq,
        pub size: DataSize,
        pub local_send_time: Instant,
        pub remote_recv_time: Instant,
        pub local_recv_time: Instant,
    }

    impl AckedPacket {
        pub fn rtt(&self) -> Duration {
            self.local_recv_time - self.local_send_time
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BandwidthUsage {
        Overuse,
        Normal,
        Underuse,
    }

    impl std::fmt::Display for BandwidthUsage {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{self:?}")
        }
    }
}

struct Random(u64);

impl Random {
    /// Return a pseudo-random number from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as f64 / 2147483648.0
    }
}

/// Return the queueing delay in addition to the path's 50 ms, ms, at a time of sending.
fn queue(pattern: &str, sent: u64, random: &mut Random) -> f64 {
    let at = (sent - 1000) as f64;
    match pattern {
        "STEADY" => 2.0 * random.uniform(),
        // From the first second on 6 ms more per 100 ms, for a second and a half; then it stays.
        "GROWING" => 0.06 * (at - 1000.0).clamp(0.0, 1500.0) + 2.0 * random.uniform(),
        // It grows until the first second and is zero at the end of the next one and a half.
        "DRAINING" => (0.12 * at.min(1000.0) - 0.08 * (at - 1000.0).max(0.0)).max(0.0) + 2.0 * random.uniform(),
        _ => 25.0 * random.uniform() * random.uniform(),
    }
}

fn record(pattern: &str, seed: u64) {
    let origin = Instant::now();
    let time = |ms: u64| origin + Duration::from_millis(ms);
    let mut random = Random(seed);
    let mut delay = bwe::delay::control::DelayController::new(Bitrate::kbps(500));
    let mut received = bwe::received::new();
    let (mut groups, mut rates) = (Vec::new(), Vec::new());
    let (mut sent, mut arrived, mut feedback) = (1000, 0, 1150);
    for seq in 0..170 {
        // A frame of one or two packets.
        sent += if random.uniform() < 0.2 { 1 } else { 17 + (8.0 * random.uniform()) as u64 };
        // No packet overtakes another.
        arrived = (arrived + 1).max(sent + 50 + queue(pattern, sent, &mut random) as u64);
        // Update the rate with the packets of the previous interval before the first of the next one.
        while arrived >= feedback {
            let rate = delay.update(&[], bwe::received::rate(&received), None, time(feedback)).unwrap();
            let known = bwe::received::rate(&received).map_or(0, |rate| rate.as_u64());
            rates.push(format!("{},{known},{:?}", bwe::delay::control::usage(&delay), rate.as_f64()));
            feedback += 100;
        }
        bwe::received::add(&mut received, time(arrived), 1200);
        LOGGED.take();
        let packet = bwe::AckedPacket {
            seq_no: seq,
            size: rtp_::DataSize::bytes(1200),
            local_send_time: time(sent),
            remote_recv_time: time(arrived),
            // The RTT is always 150 ms.
            local_recv_time: time(sent + 150),
        };
        delay.update(&[packet], None, None, time(arrived));
        let logged = LOGGED.take();
        let find = |name| logged.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        let seen = find("trend").map_or_else(
            || ",,,".to_owned(),
            |trend| {
                let (modified, threshold) = (find("modified").unwrap(), find("threshold").unwrap());
                format!("{trend:?},{modified:?},{threshold:?},{}", bwe::delay::control::usage(&delay))
            },
        );
        groups.push(format!("{sent},{arrived},{seen}"));
    }
    table(pattern, "packets", "sent_ms,arrived_ms,trend,compared_ms,threshold_ms,usage", &groups);
    table(pattern, "rates", "usage,received_bps,rate_bps", &rates);
}

/// Write the rows to a file.
fn table(pattern: &str, what: &str, heading: &str, rows: &[String]) {
    let text = format!("{heading}\n{}\n", rows.join("\n"));
    std::fs::write(format!("str0m_{}_{what}.csv", pattern.to_lowercase()), text).unwrap();
}

fn main() {
    for (seed, pattern) in ["STEADY", "GROWING", "DRAINING", "NOISY"].into_iter().enumerate() {
        record(pattern, seed as u64 + 1);
    }
}
