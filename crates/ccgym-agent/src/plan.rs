//! A checked declaration, ready for use.

use std::sync::Arc;

use super::action::Actions;
use super::expressions::Expressions;
use super::observation::Layout;
use super::reward::Reward;
use super::spec::{AgentSpec, ExpertSpec, Target};
use ccgym_core::Error;

/// The constant parts of an agent.
#[derive(Clone)]
pub(crate) struct Plan {
    pub spec: Arc<AgentSpec>,
    pub expressions: Expressions,
    pub layout: Layout,
    pub actions: Actions,
    pub reward: Reward,
    /// True if a feature shows the reward.
    pub shows_reward: bool,
    /// True if any part needs the phase.
    pub phased: bool,
}

impl Plan {
    pub(crate) fn new(spec: Arc<AgentSpec>) -> Result<Self, Error> {
        Error::ensure(!spec.name.is_empty(), "name", "\"\"", "a name")?;
        spec.clock.check()?;
        spec.action.check_target()?;
        spec.startup.check(&spec.action)?;
        spec.guard.check(spec.action.inner.is_some())?;
        for (name, x) in [("growth", spec.phases.growth), ("reenter_growth", spec.phases.reenter_growth)] {
            Error::ensure(x > 0.0, &format!("phases.{name}"), x, "a number above 0")?;
        }
        spec.expert.as_ref().map_or(Ok(()), ExpertSpec::check)?;
        let aims = spec.expert.is_none() || spec.action.target != Target::Gain;
        Error::ensure(aims, "expert", "one, for a gain", "none: experts aim at a rate or a window")?;

        let mut expressions = Expressions::default();
        let reward = Reward::new(&spec.reward, &mut expressions)?;
        let actions = Actions::new(&spec.action, &mut expressions)?;
        let layout = Layout::new(&spec.observation, &actions.kind(), &mut expressions)?;
        let shows_reward = expressions.uses("reward");
        if let Some(term) = reward.terms.iter().find(|term| shows_reward && term.needs_truth) {
            let found = format!("the signal reward, with the term {} of the path's ground truth", term.name);
            let expected = "no reward in the observation: a deployed agent does not know the truth";
            return Err(Error::new("observation.features", found, expected));
        }
        let named = ["phase_startup", "phase_drain", "phase_probe"].iter().any(|name| expressions.uses(name));
        let taught = spec.expert.as_ref().is_some_and(ExpertSpec::is_phased);
        let capped = spec.action.cwnd_cap.as_ref().is_some_and(|cap| cap.startup.is_some());
        let phased = named || taught || capped || reward.terms.iter().any(|term| term.phases.is_some());
        Ok(Self { spec, expressions, layout, actions, reward, shows_reward, phased })
    }
}
