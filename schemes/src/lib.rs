//! Congestion-control algorithms, one per file.
//!
//! To add one: write `src/<name>.rs` with a type that implements [`ccgym_core::CongestionControl`] and a `pub const
//! ENTRY`, declare the module here, and add the entry to `SCHEMES`. Name look-up, the command line, the contract tests
//! and the documentation row follow from the entry.
//!
//! Start with `aimd.rs` and `reno.rs`. May import `ccgym-agent` and `ccgym-core`; imported by `ccgym-net`, `ccgym-quinn`
//! and `ccgym-py`.

mod aimd;
mod bbr;
mod bbr3;
mod bic;
mod copa;
mod cubic;
mod dctcp;
mod fillp;
mod fillp_sheep;
mod fixed_rate;
mod fixed_window;
mod htcp;
mod hybla;
mod illinois;
mod kestrel;
pub mod learned;
mod ledbat;
mod oracle;
mod pcc;
mod pcc_experimental;
mod prague;
mod quic;
mod reno;
mod scream;
mod sprout;
mod synthesized_bbr;
mod taova;
mod vegas;
mod verus;
mod webrtc;
mod westwood;
mod yeah;

mod bbr_model;
mod filters;
mod loss_based;
mod vivace;

mod monitor_interval;
mod ns3_delay;
mod pacing;
pub mod registry;
mod send_gate;
mod slow_start;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod wire;

pub use registry::{
    create, create_with, registry, Guest, Parameter, ParameterKind, Parameters, Resources, SchemeEntry, SchemeInfo,
};

/// All schemes, in the order of the documentation; `tests/contract.rs` compares the list with the folder.
static SCHEMES: &[SchemeEntry] = &[
    reno::ENTRY,
    cubic::ENTRY,
    vegas::ENTRY,
    bbr::ENTRY,
    copa::ENTRY,
    synthesized_bbr::ENTRY,
    bbr3::ENTRY,
    kestrel::ENTRY,
    quic::ENTRY,
    ledbat::ENTRY,
    taova::ENTRY,
    westwood::ENTRY,
    hybla::ENTRY,
    illinois::ENTRY,
    htcp::ENTRY,
    bic::ENTRY,
    yeah::ENTRY,
    verus::ENTRY,
    pcc::ENTRY,
    vivace::ENTRY,
    pcc_experimental::ENTRY,
    dctcp::ENTRY,
    prague::ENTRY,
    sprout::ENTRY,
    webrtc::ENTRY,
    fillp::ENTRY,
    fillp_sheep::ENTRY,
    scream::ENTRY,
    aimd::ENTRY,
    fixed_window::ENTRY,
    fixed_rate::ENTRY,
    oracle::ENTRY,
    learned::ENTRY,
];
