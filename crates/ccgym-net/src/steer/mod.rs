//! Decisions from outside, over a Unix socket: an environment steers a flow on a real path.
//!
//! | file | what |
//! |---|---|
//! | [`agent_connection`] | the flow's end of the socket: intervals out, actions in, neither end waits |
//! | [`episode_tracker`] | what an interval came to: observation, reward, statistics, truth, sums of the episode |
//! | [`messages`] | the messages (`proto/control.proto`) and their framing |

pub mod agent_connection;
pub mod episode_tracker;
pub mod messages;

use std::os::fd::BorrowedFd;

use ccgym_core::{Sender, Timestamp};

use crate::error::Result;

pub use agent_connection::{AgentConnection, SocketSteering};
pub use episode_tracker::LiveGroundTruth;

/// A process outside that decides for a learning flow (scheme `learned` without a policy, which says
/// `decided_outside`).
///
/// The sender asks after each event whether its scheme awaits a decision. If so it calls
/// [`Steering::interval_closed`], then `sender.hold_decision()`, and goes on under its last decision.
pub trait Steering: Send {
    /// The file descriptor to poll in addition to the sender's own socket; `None` if there is nothing to wait for any more.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// An interval closed at `now`, and the agent is to be asked.
    ///
    /// # Errors
    /// The agent cannot be told.
    fn interval_closed(&mut self, now: Timestamp, sender: &Sender) -> Result<()>;

    /// The file descriptor is readable: write the newest action to `action` if a whole one has come, and say whether.
    /// The sender applies it at once with `sender.decide(now, &action)`, and transmits.
    ///
    /// # Errors
    /// What came is not an action.
    fn take_action(&mut self, now: Timestamp, action: &mut Vec<f32>) -> Result<bool>;

    /// The flow ended at `now`: its last interval is closed and told.
    ///
    /// # Errors
    /// As for [`Steering::interval_closed`].
    fn flow_ended(&mut self, now: Timestamp, sender: &mut Sender) -> Result<()>;
}
