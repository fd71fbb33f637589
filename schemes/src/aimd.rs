//! Additive increase, multiplicative decrease: the smallest scheme that shares a path, and the template for new ones.
//!
//! A window without slow start, pacing or timers. [`ccgym_core::congestion_control::Capabilities`] lists what a scheme
//! may ask of the transport.

use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, TimeoutEvent};

use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "aimd",
        label: "AIMD",
        reference: "Chiu and Jain, Computer Networks and ISDN Systems 17(1), 1989",
        summary: "Adds a constant to the window per round trip, and multiplies it by a factor at a loss.",
        parameters: parameters! {
            /// Growth of the window per round trip.
            increase: number(1.0, (0.01, 1000.0), "packets");
            /// Factor on the window at a loss.
            decrease: number(0.5, (0.1, 0.99), "");
        },
        role: Role::Tool,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        Ok(Box::new(Aimd { increase: p.number("increase"), decrease: p.number("decrease"), mss: 0, cwnd: 0.0 }))
    },
};

#[derive(Clone, Debug)]
pub struct Aimd {
    increase: f64,
    decrease: f64,
    /// Wire bytes of a full packet.
    mss: u64,
    /// Window, packets.
    cwnd: f64,
}

impl CongestionControl for Aimd {
    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        self.cwnd = (context.initial_window / context.mss) as f64;
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.entered_recovery {
            self.cwnd = (self.cwnd * self.decrease).max(2.0);
        } else if event.cwnd_limited && !event.in_recovery {
            self.cwnd += self.increase * event.acked_packets as f64 / self.cwnd;
        }
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        self.cwnd = (self.cwnd * self.decrease).max(1.0);
    }

    fn control(&self) -> Control {
        Control::window((self.cwnd * self.mss as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::json;

    const RTT: TimeSpan = TimeSpan::from_millis(40);

    #[test]
    fn a_round_trip_adds_and_a_loss_multiplies() {
        let mut transport = MockTransport::of("aimd", &json!({"increase": 2, "decrease": 0.75}));
        transport.ack_round(RTT, TimeSpan::ZERO);
        let grown = transport.window();
        assert!((11.8..12.0).contains(&grown), "{grown}");
        transport.lose();
        assert!((transport.window() - 0.75 * grown).abs() < 1e-3);
    }

    #[test]
    fn one_packet_remains_after_timeouts() {
        let mut transport = MockTransport::of("aimd", &json!({}));
        for _ in 0..10 {
            transport.time_out();
        }
        assert_eq!(transport.window(), 1.0);
    }
}
