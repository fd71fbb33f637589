//! An exported policy, and one flow's use of it.

use std::sync::{Arc, Mutex, PoisonError};

use ccgym_agent::AgentSpec;

use super::card::{Card, NetworkKind};
use super::error::PolicyError;
use super::graph;
use super::runtime::Engine;
use super::tree::Tree;

/// An exported policy: network or tree, and card. Never changes; flows and threads share it.
pub struct Policy {
    card: Card,
    discrete: bool,
    brain: Brain,
}

/// What answers.
enum Brain {
    /// A network, computed by ONNX Runtime.
    Network {
        onnx: Vec<u8>,
        /// Idle engines; at most one per thread that ever decided concurrently.
        idle: Mutex<Vec<Engine>>,
    },
    Tree(Tree),
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.card.name)
            .field("policy", &self.card.policy)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// A policy from the bytes of its ONNX file and the text of its card. Refuses what does not fit together: another
    /// file than the card's, other sizes, anything but float64 inside, weights that are not numbers.
    pub fn load(onnx: &[u8], card: &str) -> Result<Arc<Self>, PolicyError> {
        let card = Card::parse(card)?;
        card.check_digest(onnx)?;
        Self::build(onnx, card)
    }

    fn build(onnx: &[u8], card: Card) -> Result<Arc<Self>, PolicyError> {
        let brain = if card.policy.kind == NetworkKind::Tree {
            Brain::Tree(Tree::read(onnx, card.policy)?)
        } else {
            graph::check(onnx, card.policy)?;
            let engine = Engine::new(onnx, card.policy)?;
            Brain::Network { onnx: onnx.to_vec(), idle: Mutex::new(vec![engine]) }
        };
        let discrete = card.is_discrete();
        let policy = Arc::new(Self { card, discrete, brain });
        // Sizes inside the graph that do not fit show only now.
        policy.session().decide(&vec![0.0; policy.card.policy.observation_size], &mut Vec::new())?;
        Ok(policy)
    }

    /// Name on the card.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.card.name
    }

    /// The agent whose observations it answers.
    #[must_use]
    pub fn agent(&self) -> &Arc<AgentSpec> {
        &self.card.agent
    }

    /// The tree that it is, if it is one.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        match &self.brain {
            Brain::Tree(tree) => Some(tree),
            Brain::Network { .. } => None,
        }
    }

    /// A new flow's use of it.
    #[must_use]
    pub fn session(self: &Arc<Self>) -> Session {
        let state = vec![0.0; self.card.policy.state_size];
        Session { policy: self.clone(), after: state.clone(), state }
    }

    /// The action, or the scores of discrete ones, and the state after it.
    fn run(&self, o: &[f32], state: &[f32], action: &mut Vec<f32>, after: &mut Vec<f32>) -> Result<(), PolicyError> {
        let (onnx, idle) = match &self.brain {
            Brain::Network { onnx, idle } => (onnx, idle),
            Brain::Tree(tree) => {
                // NaN compares with nothing; a network would answer with its own.
                let best = if o.iter().all(|x| x.is_finite()) { Some(tree.decide(o) as usize) } else { None };
                action.clear();
                action.resize(self.card.policy.action_size, if best.is_some() { 0.0 } else { f32::NAN });
                best.into_iter().for_each(|best| action[best] = 1.0);
                return Ok(());
            }
        };
        let known = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut engine = match known {
            Some(engine) => engine,
            None => Engine::new(onnx, self.card.policy)?,
        };
        let result = engine.run(o, state, action, after);
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
        result
    }
}

/// One flow's use of a policy: the recurrent state, float32 as it crosses the graph's border.
#[derive(Clone, Debug)]
pub struct Session {
    policy: Arc<Policy>,
    state: Vec<f32>,
    /// Room for the state after a decision.
    after: Vec<f32>,
}

impl Session {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The recurrent state, layer by layer; empty without memory.
    #[must_use]
    pub fn state(&self) -> &[f32] {
        &self.state
    }

    /// Replace the recurrent state.
    pub fn set_state(&mut self, state: &[f32]) -> Result<(), PolicyError> {
        let size = self.state.len();
        if state.len() != size || !state.iter().all(|x| x.is_finite()) {
            let found = format!("{} numbers", state.len());
            return Err(PolicyError::new("state", found, format!("{size} finite ones"), "give what state() gave")
                .coded("shape-mismatch"));
        }
        self.state.copy_from_slice(state);
        Ok(())
    }

    /// Decide. `action` becomes the components of the action, or the index of a discrete one (the first of equal
    /// scores). After an error the state is what it was.
    pub fn decide(&mut self, observation: &[f32], action: &mut Vec<f32>) -> Result<(), PolicyError> {
        let size = self.policy.card.policy.observation_size;
        if observation.len() != size {
            let (found, expected) = (format!("{} numbers", observation.len()), size.to_string());
            return Err(PolicyError::new("observation", found, expected, "use the agent of the policy's card")
                .coded("shape-mismatch"));
        }
        self.policy.run(observation, &self.state, action, &mut self.after)?;
        if !action.iter().chain(&self.after).all(|x| x.is_finite()) {
            let found = if observation.iter().all(|x| x.is_finite()) { "NaN or infinity" } else { "its own NaN" };
            let hint = "look at the observation's range, and at the weights";
            return Err(PolicyError::new("answer", found, "finite numbers", hint).coded("learning-diverged"));
        }
        std::mem::swap(&mut self.state, &mut self.after);
        if self.policy.discrete {
            let best = first_maximum(action);
            action.clear();
            action.push(best as f32);
        }
        Ok(())
    }
}

fn first_maximum(scores: &[f32]) -> usize {
    scores.iter().enumerate().fold(0, |best, (i, score)| if *score > scores[best] { i } else { best })
}

#[cfg(test)]
mod tests;
