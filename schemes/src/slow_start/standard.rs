//! Plain slow start (RFC 5681 §3.1, RFC 9002 §7.3.1): the window grows by the acknowledged bytes.

use super::{Input, Step};

/// Grow by the acknowledged bytes. RFC 3465 §2.3 would limit this to two packets per acknowledgement; with
/// acknowledgements per packet, or aggregated on the path, the limit only slows the flow down (RFC 9002 has none).
#[inline]
pub(super) fn on_ack(input: &Input<'_>) -> Step {
    Step { growth: input.event.acked_bytes, exit: false }
}
