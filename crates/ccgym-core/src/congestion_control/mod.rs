//! The interface of a congestion-control algorithm (CCA).
//!
//! A CCA is a state machine: it reads no clock and draws no randomness of its own. The transport calls it with one
//! event struct per hook and reads its decision once after each event with [`CongestionControl::control`]. The same
//! object runs in the simulator and over UDP. A scheme that does more than answer events has optional views: [`Media`],
//! [`ReceiverSide`], [`Steerable`], [`IntervalDriven`].
//!
//! Order within one acknowledgement (which the conformance tests assert): losses that the acknowledgement revealed and
//! packets it acknowledged are *together* in one [`AckEvent`]; `lost` is sorted by packet number; a CCA that
//! distinguishes them handles the loss first.

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

/// Internal values of a scheme, for tests and `describe`: names are the field's, units are part of the name.
pub type Observables = Vec<(&'static str, f64)>;

/// A congestion-control algorithm.
///
/// Required are the hooks at the start, at an acknowledgement and at a timeout, and the decision; the default of every
/// other hook does nothing. Windows are wire bytes (a full packet counts [`InitContext::mss`]). Implementations must be
/// deterministic: equal events give equal decisions on every machine. They derive `Clone`, which snapshots of a flow
/// use.
pub trait CongestionControl: DynClone + Send + Sync {
    /// Return its requirements. They never change.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
    /// Start the flow. Called once before the first packet.
    fn init(&mut self, context: InitContext);
    /// Process the answer to the handshake, with this RTT sample, before the first data. Not called if the profile has
    /// no handshake, or if it was repeated (the sample is ambiguous then).
    fn on_handshake(&mut self, _now: Timestamp, _rtt_sample: TimeSpan) {}
    /// Process a sent packet. Only with [`Capabilities::packet_events`].
    fn on_packet_sent(&mut self, _event: &SentEvent) {}
    /// Process an acknowledgement, or losses that the loss timer detected.
    fn on_ack(&mut self, event: &AckEvent<'_>);
    /// Process an expired retransmission timer.
    fn on_timeout(&mut self, event: &TimeoutEvent<'_>);
    /// Process losses that proved spurious: the latest reduction was unnecessary.
    fn on_spurious_loss(&mut self, _event: &SpuriousLossEvent) {}
    /// Return the time for [`CongestionControl::on_timer`]; [`Timestamp::NEVER`] for none. Only with
    /// [`Capabilities::timers`].
    fn next_timer(&self) -> Timestamp {
        Timestamp::NEVER
    }
    /// Process the timer of [`CongestionControl::next_timer`].
    fn on_timer(&mut self, _now: Timestamp) {}
    /// Note that the application has nothing to send although window and pacing would allow it.
    fn on_app_limited(&mut self, _now: Timestamp, _in_flight: u64) {}
    /// Prepare for the first packet after an idle time with nothing in flight.
    fn on_idle_restart(&mut self, _now: Timestamp) {}
    /// Return the current decision.
    fn control(&self) -> Control;
    /// Return the bytes that may leave back to back when paced; zero means one packet. Read when a paced packet leaves.
    fn send_quantum(&self) -> u64 {
        0
    }
    /// Return ssthresh in wire bytes, if the scheme has one.
    fn ssthresh(&self) -> Option<u64> {
        None
    }
    /// Return the name of its state in its specification; empty for a scheme without states.
    fn state(&self) -> &'static str {
        ""
    }
    /// Return named internal values for tests and debugging.
    fn observables(&self) -> Observables {
        Vec::new()
    }

    /// Return its view for media, if it has one. This and the other views never appear or disappear.
    fn media(&mut self) -> Option<&mut dyn Media> {
        None
    }
    /// Return its sender and receiver, if it sends feedback of its own in place of acknowledgements.
    fn receiver_side(&mut self) -> Option<&mut dyn ReceiverSide> {
        None
    }
    /// Return its quantity that can be set from outside, if it has one.
    fn steerable(&mut self) -> Option<&mut dyn Steerable> {
        None
    }
    /// Return its view for decisions at intervals, if it has one (agents).
    fn interval_driven(&self) -> Option<&dyn IntervalDriven> {
        None
    }
    /// The same, to change it.
    fn interval_driven_mut(&mut self) -> Option<&mut dyn IntervalDriven> {
        None
    }
}

dyn_clone::clone_trait_object!(CongestionControl);
