//! The decisions of one learning flow and what became of them: reward, terms, statistics. The same for a simulated flow
//! and for one on a real path.

use ccgym_agent::{FlowAgent, GroundTruth};
use ccgym_core::{Sender, Timestamp};

use crate::columns::write_stats;
use crate::episode::{EpisodeStats, Summary};

/// What a learning flow has come to since its first decision.
#[derive(Clone, Debug, Default)]
pub struct DecisionLog {
    episode: EpisodeStats,
    begun: bool,
}

impl DecisionLog {
    /// The first decision: intervals that close from now on are results of decisions.
    pub const fn begin(&mut self) {
        self.begun = true;
    }

    /// Whether there was a decision.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Decisions whose interval has closed.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.episode.steps
    }

    /// Take in the interval of `sender` that closed last, at `now`, over which `truth` held. Returns the reward, and writes
    /// its terms and the interval's statistics ([`crate::columns::COLUMNS`]). What a flow saw before its first decision is
    /// not rewarded: zeros. `None` for a sender without an agent.
    pub fn close(
        &mut self,
        now: Timestamp,
        sender: &Sender,
        truth: &GroundTruth,
        terms: &mut [f64],
        statistics: &mut [f64],
    ) -> Option<f64> {
        let agent = FlowAgent::of(sender.cca())?;
        let interval = sender.last_interval();
        let reward = agent.reward(truth, terms);
        write_stats(now, interval, agent.rejected_actions(), statistics);
        if !self.begun {
            terms.fill(0.0);
            return Some(0.0);
        }
        self.episode.add(interval, truth);
        Some(reward)
    }

    /// The summary so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.episode.summary()
    }
}
