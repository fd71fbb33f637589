//! A constant window: the simplest scheme, for calibration and as a template.

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, TimeoutEvent};

use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fixed_window",
        label: "Fixed window",
        reference: "none: a calibration tool",
        summary: "Keeps a constant number of packets in flight, regardless of loss and delay.",
        parameters: parameters! {
            /// The window.
            cwnd: integer(10, (1, 10_000_000), "packets");
        },
        role: Role::Tool,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(FixedWindow { packets: p.integer("cwnd"), mss: 0 })),
};

#[derive(Clone, Debug)]
pub struct FixedWindow {
    packets: u64,
    mss: u64,
}

impl CongestionControl for FixedWindow {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, bounded: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
    }

    fn on_ack(&mut self, _event: &AckEvent<'_>) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}

    #[inline]
    fn control(&self) -> Control {
        Control::window(self.packets * self.mss)
    }

    fn observables(&self) -> Observables {
        vec![("cwnd_packets", self.packets as f64)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::MockTransport;
    use ccgym_core::TimeSpan;
    use serde_json::json;

    #[test]
    fn nothing_moves_the_window() {
        let mut host = MockTransport::of("fixed_window", &json!({"cwnd": 25}));
        assert_eq!(host.packets_in_flight(), 25);
        host.ack_round(TimeSpan::from_millis(40), TimeSpan::ZERO);
        host.lose();
        host.time_out();
        assert_eq!((host.window(), host.packets_in_flight()), (25.0, 25));
    }
}
