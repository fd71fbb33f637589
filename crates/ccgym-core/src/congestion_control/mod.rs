//! The interface of a congestion-control algorithm (CCA).
//!
//! A CCA is a state machine: it reads no clock and draws no randomness of its own. The transport calls it with one
//! event struct per hook and reads its decision once after each event with [`CongestionControl::control`]. The same
//! object runs in the simulator and over UDP. A scheme that does more than to answer events offers optional views:
//! [`Media`], [`ReceiverSide`], [`Steerable`], [`IntervalDriven`].
//!
//! Order within one acknowledgement (which the conformance tests assert): losses that the acknowledgement revealed
//! and packets it acknowledged arrive *together* in one [`AckEvent`]; `lost` is sorted by packet number; a CCA that
//! distinguishes handles the loss first.

mod capabilities;
mod control;
mod events;
mod forward;
mod interval_driven;
mod media;
mod receiver_side;
mod steerable;

use dyn_clone::DynClone;

use crate::units::{TimeSpan, Timestamp};

pub use capabilities::Capabilities;
pub use control::Control;
pub use events::{
    AckEvent, AckedPacket, InitContext, KnownPath, LostPacket, SentEvent, SpuriousLossEvent, TimeoutEvent,
};
pub use interval_driven::{IntervalDriven, IntervalEnd};
pub use media::{FrameEvent, Media};
pub use receiver_side::{FeedbackHost, FeedbackReceiver, ReceivedEvent, ReceiverSide, MAX_SILENCE};
pub use steerable::{Steerable, Steered};

/// What a scheme shows of itself, for tests and `describe`: names are the field's, units in the name.
pub type Observables = Vec<(&'static str, f64)>;

/// A congestion-control algorithm.
///
/// Required is what to do at the start, at an acknowledgement and at a timeout, and the resulting decision; every other
/// hook does nothing unless it is written. Windows are wire bytes (a full packet counts [`InitContext::mss`]).
/// Implementations must be deterministic: equal events give equal decisions on every machine. They derive `Clone`, which
/// snapshots of a flow use.
pub trait CongestionControl: DynClone + Send + Sync {
    /// What it needs. Constant over the flow's life.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    /// Called once before the first packet.
    fn init(&mut self, context: InitContext);
    /// The handshake was answered, with this round-trip sample, before the first data. Not called if the profile has no
    /// handshake, or if it had to be repeated (the answer is ambiguous then).
    fn on_handshake(&mut self, _now: Timestamp, _rtt_sample: TimeSpan) {}
    /// A packet left. Only with [`Capabilities::packet_events`].
    fn on_packet_sent(&mut self, _event: &SentEvent) {}
    /// An acknowledgement arrived, or the loss timer found losses.
    fn on_ack(&mut self, event: &AckEvent<'_>);
    /// The retransmission timer expired.
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>);
    /// The latest reduction proved unnecessary.
    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {}
    /// When [`CongestionControl::on_timer`] wants to be called; [`Timestamp::NEVER`] if not. Only with
    /// [`Capabilities::timers`].
    fn next_timer(&self) -> Timestamp {
        Timestamp::NEVER
    }
    /// The time asked for by [`CongestionControl::next_timer`] has come.
    fn on_timer(&mut self, _now: Timestamp) {}
    /// The application has nothing to send although window and pacing would allow it.
    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {}
    /// The first packet after an idle time with nothing in flight is about to leave.
    fn on_idle_restart(&mut self, _now: Timestamp) {}
    /// The decision in force.
    fn control(&self) -> Control;
    /// Bytes that may leave back to back when paced; zero means one packet. Read when a paced packet leaves.
    fn send_quantum(&self) -> u64 {
        0
    }
    /// Slow-start threshold in wire bytes, where the scheme has one.
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    /// The state that it is in, by the name that its specification gives it; empty for a scheme without states.
    fn state(&self) -> &'static str {
        ""
    }
    /// Named internals for tests and debugging.
    fn observables(&self) -> Observables {
        Vec::new()
    }

    /// Its side that paces an encoder, if it has one. This and the other views are constant over the flow's life.
    fn media(&mut self) -> Option<&mut dyn Media> {
        None
    }
    /// Its two ends, if it sends feedback of its own in place of acknowledgements.
    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        None
    }
    /// What can be set in it from outside, if anything.
    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        None
    }
    /// Its side that decides at intervals, if it has one (agents).
    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        None
    }
    /// The same, to change it.
    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        None
    }
}

dyn_clone::clone_trait_object!(CongestionControl);
