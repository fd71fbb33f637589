//! Decisions from outside, over a Unix socket: an environment steers a flow on a real path.
//!
//! | file | content |
//! |---|---|
//! | `agent_connection` | the flow's end of the socket: sends intervals, receives actions, without waiting |
//! | `episode_tracker` | the result of an interval: observation, reward, statistics, truth, sums of the episode |
//! | [`messages`] | the messages (`proto/control.proto`) and their framing |

mod agent_connection;
mod episode_tracker;
pub mod messages;

pub use agent_connection::{AgentConnection, Steering};
pub use episode_tracker::LiveGroundTruth;
