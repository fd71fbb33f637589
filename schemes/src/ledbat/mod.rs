//! LEDBAT: background transfers that keep the queueing delay of the path near a target and yield to other traffic.
//!
//! Two sets of rules: [`libutp`] as the uTP library behaves, which Pantheon ran, and [`rfc`] by RFC 6817. Both measure
//! one-way delay: the clocks are not synchronized, so only differences from a base count.

mod clock_drift;
mod libutp;
mod rfc;
#[cfg(test)]
mod tests;

use ccgym_core::{AckEvent, TimeSpan};

use crate::filters::slots::between;
use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};

use libutp::Libutp;
use rfc::Rfc;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "ledbat",
        label: "LEDBAT",
        reference: "RFC 6817; libutp b3465b9 for mode libutp",
        summary: "Holds the queueing delay at 100 ms by one-way delay, and gives way to other traffic.",
        parameters: parameters! {
            /// libutp: the rules of the uTP library, which Pantheon runs. rfc: those of RFC 6817.
            mode: choice(&["libutp", "rfc"]);
            /// Target of the queueing delay.
            target: number(100.0, (1.0, 1000.0), "ms");
            /// With libutp: growth of the window per round trip without a queue.
            increase: number(3000.0, (1.0, 1e6), "bytes");
            /// With rfc: growth of the window per round trip without a queue.
            gain: number(1.0, (0.01, 1.0), "packets");
            /// With rfc: max excess of the window over the data in flight.
            allowed_increase: integer(1, (1, 1000), "packets");
            /// The current delay is the minimum of so many samples; 0: the mode's default (libutp 3, rfc 4).
            current_filter: integer(0, (0, 100), "samples");
            /// The base delay is the minimum of so many minutes; 0: the mode's default (libutp 13, rfc 10).
            base_history: integer(0, (0, 1000), "minutes");
            /// With libutp: maximum window.
            send_buffer: integer(1_048_576, (1_500, 1 << 30), "bytes");
        },
        role: Role::OnRequest,
        implementation: "libutp, MIT",
        // libutp's default is 1402 bytes of UDP payload, of which its own header has 20.
        transport: Transport { mss: 1382, header: 48, initial_window: 1, ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        Ok(match p.word("mode") {
            "libutp" => Box::new(Libutp::new(p)),
            _ => Box::new(Rfc::new(p)),
        })
    },
};

/// Return the parameter called `key`, or the mode's own value if it is 0.
fn or_own(p: &Parameters, key: &str, own: usize) -> usize {
    Some(p.integer(key) as usize).filter(|&n| n > 0).unwrap_or(own)
}

/// Return the target in microseconds.
fn target_us(p: &Parameters) -> f64 {
    p.number("target") * 1e3
}

/// Delays of the two directions in an acknowledgement, microseconds. Each includes the offset of the clocks.
#[derive(Clone, Copy, Debug)]
struct OneWay {
    /// Data: arrival less departure.
    data: i64,
    /// Acknowledgement: its arrival less that of the data.
    ack: i64,
}

impl OneWay {
    fn of(event: &AckEvent<'_>) -> Option<Self> {
        let (sent, received) = event.acked.iter().find_map(|p| p.received.map(|received| (p.sent, received)))?;
        Some(Self { data: between(received, sent), ack: between(event.now, received) })
    }
}

/// Return the min RTT of the packets that an acknowledgement covers.
fn min_rtt(event: &AckEvent<'_>) -> Option<TimeSpan> {
    event.acked.iter().map(|p| event.now.since(p.sent)).min()
}
