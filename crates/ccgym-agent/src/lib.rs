//! Agents that decide at intervals: their observations, actions and rewards.
//!
//! An agent is data ([`AgentSpec`]). A [`FlowAgent`] is its state for one flow: the host closes an interval at
//! [`FlowAgent::next_decision`], passes it to [`FlowAgent::observe`], reads [`FlowAgent::observation`], and passes an
//! action to [`FlowAgent::act`]. Environments and deployed policies do the same, so features, action maps and rewards
//! exist once. Nothing here allocates after [`FlowAgent::start`], unless decisions are late.
//!
//! Start with [`AgentSpec`] and [`FlowAgent`]. May import `ccgym-core`; imported by `ccgym-run` and `ccgym-schemes`, and by what
//! imports these.

mod action;
mod clock;
mod describe;
mod expert;
mod expressions;
mod features;
mod guard;
mod memory;
pub mod network;
mod observation;
mod phases;
mod plan;
#[cfg(test)]
mod refusals;
mod reward;
mod signals;
mod silence;
mod spec;
mod startup;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod truth;

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use ccgym_core::monitor::MonitorInterval;
use ccgym_core::units::{Rate, TimeSpan, Timestamp};
use ccgym_core::{schema, CongestionControl, Control, Error};

pub use action::ActionKind;
pub use describe::vocabulary;
pub use expert::Label;
pub use reward::schema as reward_terms_schema;
pub use spec::*;
pub use truth::GroundTruth;

use action::Actuator;
use clock::Clock;
use expert::Expert;
use expressions::Values;
use guard::Recovery;
use memory::Memory;
use observation::Observation;
use phases::Phases;
use plan::Plan;
use reward::Outcome;
use signals::View;
use silence::Silence;
use startup::Startup;

impl AgentSpec {
    /// Read a declaration and check it.
    ///
    /// # Errors
    /// The first error, with its place.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let spec: Self = serde_json::from_str(text)
            .map_err(|error| Error::new("agent", error.to_string(), "an agent's declaration"))?;
        spec.validate()?;
        Ok(spec)
    }

    /// Check the schema, and constraints over several values.
    ///
    /// # Errors
    /// The first error, with its place.
    pub fn validate(&self) -> Result<(), Error> {
        let whole = schema::check("", self).map_err(|error| Error { place: error.place[1..].to_owned(), ..error });
        whole.and_then(|()| Plan::new(Arc::new(self.clone())).map(|_| ()))
    }

    /// Return the numbers in an observation. Like the following functions, for a valid declaration.
    #[must_use]
    pub fn observation_size(&self) -> usize {
        self.plan().layout.size()
    }

    /// Return the form of an action.
    #[must_use]
    pub fn action_kind(&self) -> ActionKind {
        self.plan().actions.kind()
    }

    /// Return the names of the reward's terms, in order.
    #[must_use]
    pub fn term_names(&self) -> Vec<String> {
        self.plan().reward.terms.iter().map(|term| term.name.clone()).collect()
    }

    /// Describe each number of observation, action and reward by name, unit, range and formula, and the rest in words.
    #[must_use]
    pub fn describe(&self) -> Value {
        describe::describe(&self.plan())
    }

    fn plan(&self) -> Plan {
        Plan::new(Arc::new(self.clone())).expect("asked of a declaration that validate() accepts")
    }
}

/// The part of a flow's agent that decides.
enum Author<'a> {
    Startup,
    Guard(&'a Recovery),
    Agent,
}

/// Overrides of the declared start of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StartOverrides {
    /// Initial rate.
    pub rate: Option<Rate>,
    /// Initial window, packets.
    pub window: Option<u64>,
    /// Target window of an expert of kind `best_window`, packets.
    pub expert_window: Option<u64>,
}

/// The agent of one flow.
#[derive(Clone)]
pub struct FlowAgent {
    plan: Arc<Plan>,
    clock: Clock,
    memory: Memory,
    /// The host's latest value, to detect a change cheaply.
    min_rtt: TimeSpan,
    srtt: f64,
    values: Values,
    observation: Observation,
    phases: Phases,
    startup: Startup,
    guard: Option<Box<Recovery>>,
    actuator: Actuator,
    silence: Silence,
    expert: Option<Expert>,
    /// Decisions that have not taken effect.
    pending: VecDeque<(Timestamp, [f64; 2])>,
    /// The current decision, without a base scheme.
    control: Control,
    rejected: u64,
}

impl std::fmt::Debug for FlowAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, control) = (&self.plan.spec.name, &self.control);
        f.debug_struct("FlowAgent").field("name", name).field("control", control).finish_non_exhaustive()
    }
}

impl FlowAgent {
    /// Return the agent of a scheme, if it has one.
    #[must_use]
    pub fn of(scheme: &dyn CongestionControl) -> Option<&Self> {
        scheme.interval_driven()?.agent().downcast_ref()
    }

    /// Make an agent for a flow that has not started.
    ///
    /// # Panics
    /// If `spec` is not one that [`AgentSpec::validate`] accepts.
    #[must_use]
    pub fn new(spec: Arc<AgentSpec>) -> Self {
        let plan = Plan::new(spec).expect("a declaration that validate() accepts");
        Self::with_plan(Arc::new(plan), 1, StartOverrides::default())
    }

    /// Start the flow (again), whose full packets have `mss` wire bytes: all earlier state is dropped.
    pub fn start(&mut self, now: Timestamp, mss: u64, overrides: StartOverrides) {
        *self = Self::with_plan(self.plan.clone(), mss, overrides);
        self.clock.start(&self.plan.spec.clock, now);
    }

    fn with_plan(plan: Arc<Plan>, mss: u64, overrides: StartOverrides) -> Self {
        let rate = overrides.rate.map(|rate| rate.0 as f64);
        let packets = overrides.window.map(|packets| packets as f64);
        let best = overrides.expert_window.map(|packets| packets as f64);
        let memory = Memory::new(mss).with_min_rtt_of(plan.spec.min_rtt_window);
        let mut actuator = Actuator::new();
        let startup = Startup::new(&plan.spec.startup, &plan.actions, rate, packets, &mut actuator, &memory);
        let mut agent = Self {
            clock: Clock::new(),
            memory,
            min_rtt: TimeSpan::MAX,
            srtt: 0.0,
            values: Values::new(&plan.expressions),
            observation: Observation::new(&plan.layout),
            phases: Phases::new(plan.spec.phases),
            startup,
            guard: plan.spec.guard.start(),
            actuator,
            silence: Silence::default(),
            expert: plan.spec.expert.as_ref().map(|expert| Expert::new(expert, best)),
            pending: VecDeque::new(),
            control: Control::window(1),
            rejected: 0,
            plan,
        };
        agent.refresh();
        agent
    }

    /// Process an RTT sample; `min_rtt` is the min since the flow started, this one included.
    #[inline]
    pub fn on_rtt(&mut self, now: Timestamp, sample: TimeSpan, min_rtt: TimeSpan) {
        if self.clock.awaits_rtt() || min_rtt != self.min_rtt || !self.startup.is_over() {
            self.on_new_rtt(now, sample, min_rtt);
        }
    }

    fn on_new_rtt(&mut self, now: Timestamp, sample: TimeSpan, min_rtt: TimeSpan) {
        if self.clock.awaits_rtt() {
            self.clock.on_first_rtt(&self.plan.spec.clock, now, sample);
        }
        if min_rtt != self.min_rtt && min_rtt != TimeSpan::MAX {
            self.min_rtt = min_rtt;
            self.memory.on_min_rtt(min_rtt);
            self.actuator.bound(&self.plan.actions, &self.memory);
        }
        self.startup.on_rtt(sample, &mut self.actuator, &self.plan.actions, &self.memory);
        self.refresh();
    }

    /// True while acknowledgements and losses change nothing, as long as the min RTT stays.
    #[must_use]
    #[inline]
    pub fn ignores_acks(&self) -> bool {
        !self.clock.awaits_rtt() && self.startup.is_over() && !self.silence.is_on()
    }

    /// Process a loss: slow start may end. Intervals report it too, but later.
    pub fn on_loss(&mut self) {
        self.startup.on_loss();
    }

    /// Process a timeout, or persistent congestion. Until an acknowledgement arrives one packet leaves each time the
    /// timer expires, which doubles (RFC 6298, RFC 8085 §3.1); no interval ends, and no decision takes effect. If the
    /// base scheme decides rate and window it decides here, too.
    pub fn on_timeout(&mut self) {
        self.startup.on_loss();
        if self.steers() {
            self.silence.begin(&mut self.actuator);
            self.refresh();
        }
    }

    /// Process an acknowledgement: a silence ends.
    #[inline]
    pub fn on_acked(&mut self) {
        if self.silence.is_on() {
            self.silence.end();
            self.refresh();
        }
    }

    /// Return the end of the current interval; [`Timestamp::NEVER`] before the start.
    #[must_use]
    #[inline]
    pub fn next_decision(&self) -> Timestamp {
        self.clock.next()
    }

    /// True if it ends with the first acknowledgement from then on, instead of by a timer.
    #[must_use]
    pub fn on_ack_only(&self) -> bool {
        self.silence.awaits_ack() || matches!(self.plan.spec.clock, ClockSpec::Fixed { on_ack: true, .. })
    }

    /// Add interval `m`, which just ended; `inner` is the decision of the base scheme. True if the agent must decide
    /// now; false during a start-up that bypasses it.
    pub fn observe(&mut self, m: &MonitorInterval, inner: Option<&Control>) -> bool {
        let plan = &*self.plan;
        let recorded = self.clock.close(&plan.spec.clock, m);
        let memory = &mut self.memory;
        memory.digest(m, recorded);
        self.silence.on_interval(m, &self.actuator);
        (memory.rate, memory.window, memory.gain) = (self.actuator.rate, self.actuator.window, self.actuator.gain);
        if let Some(inner) = inner {
            memory.inner_window = if inner.cwnd == u64::MAX { 0.0 } else { inner.cwnd as f64 / memory.mss };
        }
        self.srtt = m.srtt.as_secs_f64();
        if plan.phased {
            memory.phase = self.phases.update(m, memory);
        }
        if let Some(expert) = &mut self.expert {
            expert.observe(m, memory);
        }
        self.values.update(&plan.expressions, &View { m, memory }, false);
        if plan.shows_reward {
            let truth = &GroundTruth::default();
            memory.reward = plan.reward.compute(&Outcome { memory, values: &self.values, truth }, &mut []);
            self.values.update(&plan.expressions, &View { m, memory }, true);
        }
        if recorded {
            self.observation.push(&plan.layout, &self.values, memory);
        }
        if !self.startup.is_over() {
            self.startup.on_interval(&plan.spec.startup, m, &mut self.actuator, &plan.actions, memory);
        } else if let Some(guard) = &mut self.guard {
            guard.on_interval(m, &mut self.actuator, &plan.actions, memory);
        }
        self.refresh();
        !self.startup.bypasses()
    }

    /// Return the observation: float32, oldest interval first, within the declared bounds.
    #[must_use]
    #[inline]
    pub fn observation(&self) -> &[f32] {
        self.observation.flat()
    }

    /// Decide. Numbers are limited to their bounds, an index is rounded; an action that is not finite, or of another
    /// size, is counted and changes nothing. Without effect before the first RTT if the start-up waits for that.
    pub fn act(&mut self, now: Timestamp, action: &[f32]) {
        self.on_timer(now);
        let numbers = self.plan.actions.read(action);
        if let Some(guard) = &mut self.guard {
            guard.on_action(numbers.is_some());
        }
        let Some(numbers) = numbers else {
            self.rejected += 1;
            return;
        };
        self.memory.action = Some(numbers);
        let latency = self.plan.spec.decision_latency;
        if latency.0 == 0 {
            self.apply(numbers);
            self.refresh();
        } else {
            self.pending.push_back((now.saturating_add(latency), numbers));
        }
    }

    /// Return when a late decision takes effect, by [`FlowAgent::on_timer`]; [`Timestamp::NEVER`] if none does.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Timestamp {
        self.pending.front().map_or(Timestamp::NEVER, |(at, _)| *at)
    }

    /// Process the timer of [`FlowAgent::next_timer`].
    pub fn on_timer(&mut self, now: Timestamp) {
        while let Some((_, numbers)) = self.pending.front().copied().filter(|(at, _)| *at <= now) {
            self.pending.pop_front();
            self.apply(numbers);
            self.refresh();
        }
    }

    /// Return the author of the current decision: the start-up until it is over, then the guard while it decides.
    fn author(&self) -> Author<'_> {
        match &self.guard {
            _ if !self.startup.is_over() => Author::Startup,
            Some(guard) if guard.decides() => Author::Guard(guard),
            _ => Author::Agent,
        }
    }

    /// True if an action takes effect. After a guard the agent continues from the guard's values.
    fn is_in_force(&self) -> bool {
        matches!(self.author(), Author::Agent) && !self.silence.is_on()
    }

    fn apply(&mut self, numbers: [f64; 2]) {
        if self.is_in_force() {
            self.actuator.apply(&self.plan.actions, numbers, &self.memory, &self.values);
        }
    }

    fn refresh(&mut self) {
        let (actions, memory) = (&self.plan.actions, &self.memory);
        let instead = match self.author() {
            Author::Startup => self.startup.control(actions, memory),
            Author::Guard(guard) => guard.control(actions, memory),
            Author::Agent => None,
        };
        let control = instead.unwrap_or_else(|| self.actuator.control(actions, memory, self.srtt, &self.values));
        self.control = self.silence.limit(control, memory);
    }

    /// Return the current decision; `inner` is that of the base scheme, required if there is one.
    #[must_use]
    #[inline]
    pub fn control(&self, inner: Option<&Control>) -> Control {
        match inner {
            Some(inner) => self.silence.limit(self.plan.actions.over(inner, &self.memory, self.srtt), &self.memory),
            None => self.control,
        }
    }

    /// Return the window from which the base scheme must continue, in wire bytes; once after each decision that takes
    /// effect, and in a start-up that multiplies it.
    #[inline]
    pub fn take_window(&mut self) -> Option<u64> {
        self.actuator.take_unwritten().map(|packets| (packets * self.memory.mss) as u64)
    }

    /// The gain to set in the base scheme, once after each decision that takes effect ([`Steered::Gain`](ccgym_core::congestion_control::Steered::Gain)).
    #[inline]
    pub fn take_gain(&mut self) -> Option<f64> {
        self.actuator.take_unwritten_gain()
    }

    /// True if rate or window are its own: over a base scheme a passive agent only measures, and one that steers the
    /// gain leaves them to the scheme.
    fn steers(&self) -> bool {
        self.plan.spec.action.inner.is_none() || self.overwrites()
    }

    /// True if the agent writes the window of a base scheme ([`FlowAgent::take_window`]).
    #[must_use]
    pub fn overwrites(&self) -> bool {
        self.plan.actions.overwrites
    }

    /// True if the agent sets the gain of a base scheme ([`FlowAgent::take_gain`]).
    #[must_use]
    pub fn sets_gain(&self) -> bool {
        self.plan.actions.sets_gain
    }

    /// Return the reward of the latest interval of [`FlowAgent::observe`]: the sum of all terms. Each, weighted and
    /// scaled, is written to `terms`, as far as that reaches. Terms of the truth are only as good as `truth`.
    pub fn reward(&self, truth: &GroundTruth, terms: &mut [f64]) -> f64 {
        self.plan.reward.compute(&Outcome { memory: &self.memory, values: &self.values, truth }, terms)
    }

    /// True if the host must take rate samples for the averages over acknowledgements.
    #[must_use]
    pub fn needs_rate_samples(&self) -> bool {
        self.plan.expressions.needs_rate_samples()
    }
    /// Return the declaration.
    #[must_use]
    pub fn spec(&self) -> &AgentSpec {
        &self.plan.spec
    }
    /// Return the decided rate, bit/s; meaningless if the agent only steers the window.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.actuator.rate
    }
    /// Return the decided window, packets with fraction; meaningless if the agent only steers the rate.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.actuator.window
    }
    /// Return the decided gain, a factor on the base scheme's packets in the queue; 1 before the first decision.
    #[must_use]
    pub fn gain(&self) -> f64 {
        self.actuator.gain
    }
    /// Return the phase of the flow; always start-up unless a feature, a term of the reward or the expert needs it.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.memory.phase
    }
    /// Return the number of actions that were not finite, or had the wrong size.
    #[must_use]
    pub fn rejected_actions(&self) -> u64 {
        self.rejected
    }
    /// Return how often the guard lifted the flow, or tried to.
    #[must_use]
    pub fn interventions(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.interventions)
    }
}
