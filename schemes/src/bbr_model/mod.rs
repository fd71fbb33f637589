//! What the versions of BBR share: filters, the detector of a full pipe, the excess of aggregated acknowledgements, the
//! progress of PROBE_RTT, and the first pacing rate.

pub mod ack_excess;
pub mod full_pipe;
pub mod pacing;
pub mod probe_rtt;
pub mod windowed_max;
