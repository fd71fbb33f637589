//! Window and rate set from outside: the body of a learning environment, whose policy decides per step.

use ccgym_core::congestion_control::{Capabilities, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, TimeoutEvent};

use crate::registry::{Parameter, ParameterKind, SchemeEntry, SchemeInfo};

/// Registry entry.
pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "external",
        label: "External",
        reference: "none: steered by an environment",
        summary: "Holds the window and the pacing rate that an environment sets.",
        color: "magenta",
        marker: "P",
        parameters: &[
            Parameter {
                name: "cwnd",
                kind: ParameterKind::Integer { min: 0, max: 10_000_000 },
                default: "10",
                unit: "packets",
                help: "The window to start with; 0: unlimited.",
            },
            Parameter {
                name: "rate_mbps",
                kind: ParameterKind::Number { min: 0.0, max: 1e6 },
                default: "0",
                unit: "Mbit/s",
                help: "The pacing rate to start with; 0: unpaced.",
            },
        ],
    },
    build: |p, _| {
        Ok(Box::new(External {
            start_packets: p.integer("cwnd"),
            mss: 1,
            control: Control { pacing_rate: Rate::from_mbps(p.number("rate_mbps")), ..Control::window(u64::MAX) },
        }))
    },
};

/// The state of one flow. Reach it through [`CongestionControl::as_any_mut`].
#[derive(Clone, Debug)]
pub struct External {
    start_packets: u64,
    mss: u64,
    control: Control,
}

impl External {
    /// Set the window in wire bytes; `u64::MAX` means unlimited. Less than a packet becomes one packet, or the flow
    /// would stop for ever.
    pub fn set_cwnd(&mut self, bytes: u64) {
        self.control.cwnd = bytes.max(self.mss);
    }
    /// Set the pacing rate in wire bits per second; zero means unpaced.
    pub fn set_pacing_rate(&mut self, rate: Rate) {
        self.control.pacing_rate = rate;
    }
    /// Set everything at once; the window as [`External::set_cwnd`] does.
    pub fn set_control(&mut self, control: Control) {
        self.control = Control { cwnd: control.cwnd.max(self.mss), ..control };
    }
    /// Bytes of a full packet; 1 before the flow starts.
    #[must_use]
    pub fn mss(&self) -> u64 {
        self.mss
    }
}

impl CongestionControl for External {
    fn name(&self) -> &'static str {
        ENTRY.info.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, bounded: true, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss;
        if self.start_packets > 0 {
            self.set_cwnd(self.start_packets * self.mss);
        }
    }

    fn on_ack(&mut self, _event: &AckEvent<'_>) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}

    fn on_mtu_change(&mut self, mss: u64) {
        self.mss = mss;
        self.set_cwnd(self.control.cwnd);
    }

    #[inline]
    fn control(&self) -> Control {
        self.control
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.control.cwnd as f64 / self.mss as f64),
            ("rate_mbps", self.control.pacing_rate.as_mbps()),
        ]
    }

    fn clone_box(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::External;
    use crate::testing::{Host, MSS};
    use ccgym_core::Rate;
    use serde_json::json;

    #[test]
    fn an_environment_steers_it() {
        let mut host = Host::of("external", &json!({"cwnd": 20, "rate_mbps": 5}));
        assert_eq!(host.scheme.control().cwnd, 20 * MSS);
        assert_eq!(host.scheme.control().pacing_rate, Rate(5_000_000));
        let external = host.scheme.as_any_mut().downcast_mut::<External>().unwrap();
        external.set_cwnd(33 * MSS);
        external.set_pacing_rate(Rate(7_000_000));
        host.lose();
        host.time_out();
        assert_eq!(host.scheme.control().cwnd, 33 * MSS);
        assert_eq!(host.scheme.control().pacing_rate, Rate(7_000_000));
    }

    #[test]
    fn the_flow_cannot_be_stopped_for_ever() {
        let mut host = Host::of("external", &json!({"cwnd": 0}));
        assert_eq!(host.scheme.control().cwnd, u64::MAX);
        host.scheme.as_any_mut().downcast_mut::<External>().unwrap().set_cwnd(1);
        assert_eq!(host.scheme.control().cwnd, MSS);
    }
}
