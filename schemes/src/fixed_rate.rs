//! A constant sending rate, as a constant-bit-rate source or a calibration tool.

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, TimeSpan, TimeoutEvent};

use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fixed_rate",
        label: "Fixed rate",
        reference: "none: a calibration tool",
        summary: "Sends at a constant rate, regardless of loss and delay.",
        parameters: parameters! {
            /// The rate, counted in bytes on the wire.
            rate_mbps: number(10.0, (0.001, 1e6), "Mbit/s");
            /// Limit on the data in flight, in rate times min RTT; 0: none.
            cap_bdp: number(0.0, (0.0, 1e3), "bandwidth-delay products");
        },
        role: Role::Tool,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        Ok(Box::new(FixedRate {
            rate: Rate::from_mbps(p.number("rate_mbps")),
            cap_bdp: p.number("cap_bdp"),
            mss: 0,
            min_rtt: TimeSpan::MAX,
            cwnd: u64::MAX,
        }))
    },
};

/// Min cap, packets.
const MIN_WINDOW: u64 = 4;

#[derive(Clone, Debug)]
pub struct FixedRate {
    rate: Rate,
    cap_bdp: f64,
    mss: u64,
    min_rtt: TimeSpan,
    cwnd: u64,
}

impl CongestionControl for FixedRate {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, bounded: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if self.cap_bdp > 0.0 && event.rtt.min() < self.min_rtt {
            self.min_rtt = event.rtt.min();
            let bdp = self.rate.bytes_in(self.min_rtt) as f64;
            self.cwnd = ((bdp * self.cap_bdp) as u64).max(MIN_WINDOW * self.mss);
        }
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}

    #[inline]
    fn control(&self) -> Control {
        Control { pacing_rate: self.rate, ..Control::window(self.cwnd) }
    }

    fn observables(&self) -> Observables {
        vec![("rate_mbps", self.rate.as_mbps())]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MockTransport, MSS};
    use ccgym_core::{Rate, TimeSpan};
    use serde_json::json;

    #[test]
    fn rate_stays_and_window_is_open() {
        let mut host = MockTransport::of("fixed_rate", &json!({"rate_mbps": 12}));
        host.ack_after(TimeSpan::from_millis(40));
        host.lose();
        host.time_out();
        let control = host.scheme.control();
        assert_eq!((control.pacing_rate, control.cwnd), (Rate(12_000_000), u64::MAX));
    }

    #[test]
    fn cap_is_in_bandwidth_delay_products() {
        // 12 Mbit/s · 40 ms = 40 packets.
        let mut host = MockTransport::of("fixed_rate", &json!({"rate_mbps": 12, "cap_bdp": 2}));
        host.ack_after(TimeSpan::from_millis(40));
        assert_eq!(host.scheme.control().cwnd, 80 * MSS);
    }
}
