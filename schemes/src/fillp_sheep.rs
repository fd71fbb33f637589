//! FillP-Sheep, reconstructed (github.com/fillthepipe/fillp-sheep: "complete BBR"): [`crate::fillp`] with BBR's window and
//! PROBE_RTT.

use crate::bbr::{BW_WINDOW, CWND_GAIN, PROBE_RTT_INTERVAL, STARTUP_GAIN};
use crate::bbr_model::PACING_MARGIN;
use crate::fillp::{self, Fillp, ACKS_PER_RTT, ACK_PACKETS, STARTUP_LOSS};
use crate::registry::{SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fillp_sheep",
        label: "FillP-Sheep",
        reference: "fillthepipe/fillp-sheep 0e5bb72; Li et al., SIGCOMM 2020 (TACK)",
        summary: "BBR on rates that the receiver measures, with thin acknowledgements.",
        parameters: &[
            ACK_PACKETS,
            ACKS_PER_RTT,
            STARTUP_LOSS,
            STARTUP_GAIN,
            CWND_GAIN,
            BW_WINDOW,
            PROBE_RTT_INTERVAL,
            PACING_MARGIN,
        ],
        ..fillp::ENTRY.info
    },
    build: |p, _| Ok(Box::new(Fillp::new(ENTRY.info.name, p, None, Some(p.number(CWND_GAIN.name))))),
};
