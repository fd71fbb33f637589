//! Which schemes the library can run.

use std::fmt;

use ccgym_core::CongestionControl;

/// How a scheme is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// By its window, which is all that the library asks for.
    Window,
    /// By the window that its rate fills in a round trip, or by its own where that is smaller.
    Rate,
}

/// Why a scheme is not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What the scheme needs.
    pub needs: &'static str,
    /// What the library has instead.
    pub has: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}", self.needs)
    }
}

/// How `scheme` is run, or why it is not.
///
/// # Errors
/// It needs what quinn does not tell a controller or do for it.
pub fn offer(scheme: &mut dyn CongestionControl) -> Result<Offer, Refusal> {
    let needs = scheme.capabilities();
    let marks = "ECT(0) on all packets, and whether any was marked";
    let outside = scheme.interval_driven().is_some_and(|agent| agent.decided_outside());
    let refusals = [
        (needs.knows_path, "ground truth of the path", "acknowledgements and losses"),
        (scheme.receiver_side().is_some(), "a part at the receiver", "the acknowledgements of QUIC"),
        (needs.packet_events, "each packet's number and arrival", "counts of packets and when they left"),
        (needs.ecn.is_capable(), "an ECN codepoint and counts of marks", marks),
        (outside, "decisions from outside", "a controller that decides by itself"),
    ];
    match refusals.into_iter().find(|(applies, ..)| *applies) {
        Some((_, needs, has)) => Err(Refusal { needs, has }),
        None => Ok(if needs.pacing_required { Offer::Rate } else { Offer::Window }),
    }
}
