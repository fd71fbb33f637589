//! Parts that the versions of BBR share: the filters of bandwidth and RTT, rounds, the detector of a full pipe, the
//! excess of aggregated acknowledgements, PROBE_RTT, pacing and the movement of the window.

use ccgym_core::congestion_control::Capabilities;

use crate::registry::Parameter;

pub mod ack_excess;
pub mod bandwidth;
pub mod full_pipe;
pub mod pacing;
pub mod probe_rtt;
pub mod rounds;
pub mod window;

/// Min window, packets: enough to keep acknowledgements coming in pairs.
pub const MIN_WINDOW: u64 = 4;

pub const PACING_MARGIN: Parameter = Parameter::number(
    "pacing_margin",
    0.99,
    (0.5, 1.0),
    "",
    "Share of the modeled rate at which to pace, so that a standing queue drains.",
);

/// Return the capabilities: the model needs rate samples and pacing.
pub fn capabilities() -> Capabilities {
    Capabilities { prr: false, rate_samples: true, pacing_required: true, ..Capabilities::default() }
}
