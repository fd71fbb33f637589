//! The decisions of one learning flow and their results: reward, terms, statistics. The same for a simulated flow and
//! for one on a real path.

use ccgym_agent::{FlowAgent, GroundTruth};
use ccgym_core::{Sender, Timestamp};

use crate::columns::write_stats;
use crate::episode::{EpisodeStats, Summary};

/// Results of a learning flow since its first decision.
#[derive(Clone, Debug, Default)]
pub struct DecisionLog {
    episode: EpisodeStats,
    begun: bool,
}

impl DecisionLog {
    /// Note the first decision: intervals that close from now on are results of decisions.
    pub const fn begin(&mut self) {
        self.begun = true;
    }

    /// True after the first decision.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Return the number of decisions whose interval has closed.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.episode.steps
    }

    /// Add the latest closed interval of `sender`, at `now`, with its ground truth. Returns the reward, and writes its
    /// terms and the interval's statistics ([`crate::columns::COLUMNS`]). Before the first decision the reward is zero.
    /// `None` for a sender without an agent.
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

    /// Return the summary so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.episode.summary()
    }
}
