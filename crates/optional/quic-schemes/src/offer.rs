//! Check that the library can run a scheme.

use std::fmt;

use ccgym_core::CongestionControl;

/// Quantity by which a scheme is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Its window, the only quantity that the library reads.
    Window,
    /// The window that its rate fills in one RTT, or its own window if that is smaller.
    Rate,
}

/// Reason why a scheme is not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Need of the scheme.
    pub needs: &'static str,
    /// Replacement in the library.
    pub has: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs {}", self.needs)
    }
}

/// Choose the quantity by which `scheme` is run.
///
/// # Errors
/// It needs something that quinn does not report to a controller or do for it.
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
