//! Plain slow start (RFC 5681 §3.1, RFC 9002 §7.3.1): the window grows by what was acknowledged.

use super::{Input, Step};

/// Grow by the acknowledged bytes. RFC 3465 §2.3 would cap this at two packets per acknowledgement; with receipts
/// per packet, or aggregated on the way, the cap only slows the flow down (RFC 9002 has none).
#[inline]
pub(super) fn on_ack(input: &Input<'_>) -> Step {
    Step { growth: input.event.acked_bytes, exit: false }
}
