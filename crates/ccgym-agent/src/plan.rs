//! A declaration, checked and made ready for use.

use std::sync::Arc;

use super::action::Actions;
use super::expressions::Expressions;
use super::observation::Layout;
use super::reward::Reward;
use super::spec::{AgentSpec, ExpertSpec, PhasesSpec, Target};
use ccgym_core::units::TimeSpan;
use ccgym_core::SpecError;

/// Max decision latency: beyond it the unit is surely a mistake.
const MAX_LATENCY: TimeSpan = TimeSpan::from_millis(60_000);

/// Everything about an agent that does not change.
#[derive(Clone)]
pub(crate) struct Plan {
    pub spec: Arc<AgentSpec>,
    pub expressions: Expressions,
    pub layout: Layout,
    pub actions: Actions,
    pub reward: Reward,
    /// Whether a feature shows the reward.
    pub shows_reward: bool,
    /// Whether anything asks for the phase.
    pub phased: bool,
}

impl Plan {
    pub(crate) fn new(spec: Arc<AgentSpec>) -> Result<Self, SpecError> {
        SpecError::ensure(!spec.name.is_empty(), "name", "\"\"", "a name")?;
        spec.clock.check()?;
        let latency = spec.decision_latency;
        SpecError::ensure(latency <= MAX_LATENCY, "decision_latency", latency.0, "at most a minute, in ns")?;
        spec.action.check_target()?;
        spec.startup.check(&spec.action)?;
        spec.guard.check(spec.action.inner.is_some())?;
        spec.phases.check()?;
        let window = spec.min_rtt_window.unwrap_or(1);
        SpecError::ensure((1..=100_000).contains(&window), "min_rtt_window", window, "1 to 100000 intervals")?;
        spec.expert.as_ref().map_or(Ok(()), ExpertSpec::check)?;
        let aims = spec.expert.is_none() || spec.action.target != Target::Gain;
        SpecError::ensure(aims, "expert", "one, for a gain", "none: experts aim at a rate or a window")?;

        let mut expressions = Expressions::default();
        let reward = Reward::new(&spec.reward, &mut expressions)?;
        let actions = Actions::new(&spec.action, &mut expressions)?;
        let layout = Layout::new(&spec.observation, &actions.kind(), &mut expressions)?;
        let shows_reward = expressions.uses("reward");
        if let Some(term) = reward.terms.iter().find(|term| shows_reward && term.needs_truth) {
            let found = format!("the signal reward, with the term {} of the path's ground truth", term.name);
            let expected = "no reward in the observation: a deployed agent does not know the truth";
            return Err(SpecError::new("observation.features", found, expected));
        }
        let named = ["phase_startup", "phase_drain", "phase_probe"].iter().any(|name| expressions.uses(name));
        let taught = spec.expert.as_ref().is_some_and(ExpertSpec::is_phased);
        let capped = spec.action.cwnd_cap.as_ref().is_some_and(|cap| cap.startup.is_some());
        let phased = named || taught || capped || reward.terms.iter().any(|term| term.phases.is_some());
        Ok(Self { spec, expressions, layout, actions, reward, shows_reward, phased })
    }
}

impl PhasesSpec {
    fn check(&self) -> Result<(), SpecError> {
        let window = (1..=1000).contains(&self.window);
        SpecError::ensure(window, "phases.window", self.window, "1 to 1000 intervals")?;
        for (name, x) in [("growth", self.growth), ("reenter_growth", self.reenter_growth)] {
            let good = x.is_finite() && x > 0.0;
            SpecError::ensure(good, &format!("phases.{name}"), x, "a number above 0")?;
        }
        for (name, n) in [("plateau_steps", self.plateau_steps), ("reenter_steps", self.reenter_steps)] {
            SpecError::ensure(n >= 1, &format!("phases.{name}"), n, "at least 1")?;
        }
        if let Some(x) = self.exit_queue {
            SpecError::ensure(x.is_finite() && x >= 0.0, "phases.exit_queue", x, "a number from 0 on")?;
        }
        Ok(())
    }
}
