//! Path elements other than links. One per file.

mod bleach;
mod delay;
mod duplicate;
mod gilbert_elliott;
mod intermittent;
mod jitter;
mod loss;
mod on_off;

pub use bleach::Bleach;
pub use delay::Delay;
pub use duplicate::Duplicate;
pub use gilbert_elliott::GilbertElliott;
pub use intermittent::Intermittent;
pub use jitter::Jitter;
pub use loss::Loss;
pub use on_off::OnOff;

use ccgym_core::packet::Datagram;
use ccgym_core::units::Timestamp;

use crate::element::{Counters, Fate};

#[cfg(test)]
mod tests;

/// Count the decision of an element without a queue.
#[inline]
fn settle(counters: &mut Counters, datagram: &Datagram, dropped: bool, leaves: Timestamp) -> Fate {
    counters.arrived += 1;
    if dropped {
        counters.dropped += 1;
        return Fate::Drop;
    }
    counters.forwarded += 1;
    counters.forwarded_bytes += u64::from(datagram.size);
    Fate::Forward(leaves)
}
