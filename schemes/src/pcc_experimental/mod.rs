//! PCC-Expr: the rules of PCC-Uspace at commit cd43e34 (April 2018), which Pantheon calls "PCC-Expr": Vivace's
//! gradient steps on Allegro's states.

mod experimental;
mod utility;

use crate::monitor_interval::sender::PccSender;
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo, Transport};

use experimental::Experimental;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "pcc_experimental",
        label: "PCC-Expr",
        reference: "PCC-Uspace cd43e34, src/pcc",
        summary:
            "Moves its rate along the slope of a utility that collapses when the RTT grows by 2 % within an interval.",
        parameters: parameters! {
            /// Weight of growing round trips in the utility.
            latency_weight: number(1.0, (0.0, 1e3), "");
            /// Weight of the share of lost packets.
            loss_weight: number(11.35, (0.0, 1e4), "");
            /// Distance of a trial from the rate, as a share of the rate.
            probe_step: number(0.05, (0.001, 0.5), "");
            /// Minimum rate at any loss.
            min_rate_mbps: number(2.097_152, (0.1, 1000.0), "Mbit/s");
        },
        role: Role::OnRequest,
        implementation: "PCC-Uspace cd43e34, BSD-3-Clause",
        transport: Transport::UDP,
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let weights = utility::Weights { latency: p.number("latency_weight"), loss: p.number("loss_weight") };
        let experimental = Experimental::new(weights, p.number("probe_step"), p.number("min_rate_mbps") * 1e6);
        Ok(Box::new(PccSender::new(experimental)))
    },
};
