//! FillP-Sheep (github.com/fillthepipe/fillp-sheep 0e5bb72, "a latency-aware fillp"; its rules were derived from the
//! program): [`crate::fillp`] with means of two reports, another back-off, and PROBE_RTT every ten seconds.

use crate::fillp::{self, Fillp, Rules};
use crate::registry::{SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "fillp_sheep",
        label: "FillP-Sheep",
        reference: "fillthepipe/fillp-sheep 0e5bb72; Li et al., SIGCOMM 2020 (TACK)",
        summary: "Works as FillP, but backs off at heavy loss and empties the queue every ten seconds.",
        ..fillp::ENTRY.info
    },
    build: |_, _| Ok(Box::new(Fillp::new(Rules::SHEEP))),
};
