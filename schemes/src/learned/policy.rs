//! An exported policy, and its session in one flow.

use std::sync::Arc;

use ccgym_agent::AgentSpec;

use super::card::{Card, NetworkKind};
use super::compile::PolicyNetwork;
use super::error::unreadable;
use super::tree::Tree;
use ccgym_core::Error;

/// An exported policy: network or tree, and card. Immutable; flows and threads share it.
pub struct Policy {
    card: Card,
    discrete: bool,
    model: Model,
}

/// Computes the answers.
#[derive(Debug)]
enum Model {
    Network(PolicyNetwork),
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
    /// Load a policy from the bytes of its ONNX file and the text of its card. Fails if they do not fit together:
    /// another digest, other sizes, other types than float64 inside, weights that are not finite.
    pub fn load(onnx: &[u8], card: &str) -> Result<Arc<Self>, Error> {
        let card = Card::parse(card)?;
        card.check_digest(onnx)?;
        Self::build(onnx, card)
    }

    fn build(onnx: &[u8], card: Card) -> Result<Arc<Self>, Error> {
        let model = if card.policy.kind == NetworkKind::Tree {
            Model::Tree(Tree::read(onnx, card.policy)?)
        } else {
            Model::Network(PolicyNetwork::read(onnx, card.policy)?)
        };
        let discrete = card.is_discrete();
        let policy = Arc::new(Self { card, discrete, model });
        // This finds weights whose sums are not finite.
        policy.session().decide(&vec![0.0; policy.card.policy.observation_size], &mut Vec::new())?;
        Ok(policy)
    }

    /// Return the name on the card.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.card.name
    }

    /// Return the agent whose observations it answers.
    #[must_use]
    pub fn agent(&self) -> &Arc<AgentSpec> {
        &self.card.agent
    }

    /// Return the tree, if the policy is one.
    #[must_use]
    pub fn tree(&self) -> Option<&Tree> {
        match &self.model {
            Model::Tree(tree) => Some(tree),
            Model::Network(_) => None,
        }
    }

    /// Make a session for a new flow.
    #[must_use]
    pub fn session(self: &Arc<Self>) -> Session {
        let state = vec![0.0; self.card.policy.state_size];
        Session { policy: self.clone(), after: state.clone(), state, values: Vec::new() }
    }
}

/// A policy in one flow: the recurrent state is float32, as at the inputs and outputs of the graph.
#[derive(Clone, Debug)]
pub struct Session {
    policy: Arc<Policy>,
    state: Vec<f32>,
    /// Buffer for the state after a decision.
    after: Vec<f32>,
    /// Buffer for the numbers of a decision.
    values: Vec<f64>,
}

impl Session {
    /// Return the policy.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Return the recurrent state, layer by layer; empty without memory.
    #[must_use]
    pub fn state(&self) -> &[f32] {
        &self.state
    }

    /// Set the recurrent state.
    pub fn set_state(&mut self, state: &[f32]) -> Result<(), Error> {
        let size = self.state.len();
        if state.len() != size || !state.iter().all(|x| x.is_finite()) {
            let found = format!("{} numbers", state.len());
            return Err(unreadable("state", found, format!("{size} finite ones"))
                .hint("give what state() gave")
                .coded("shape-mismatch"));
        }
        self.state.copy_from_slice(state);
        Ok(())
    }

    /// Decide. `action` becomes the components of the action, or the index of a discrete one (the first of equal
    /// scores). An error leaves the state unchanged.
    pub fn decide(&mut self, observation: &[f32], action: &mut Vec<f32>) -> Result<(), Error> {
        let size = self.policy.card.policy.observation_size;
        if observation.len() != size {
            let (found, expected) = (format!("{} numbers", observation.len()), size.to_string());
            return Err(unreadable("observation", found, expected)
                .hint("use the agent of the policy's card")
                .coded("shape-mismatch"));
        }
        match &self.policy.model {
            Model::Network(network) => {
                network.run(observation, &self.state, &mut self.after, action, &mut self.values);
            }
            Model::Tree(tree) => {
                action.clear();
                action.resize(self.policy.card.policy.action_size, 0.0);
                // NaN compares with nothing: a network could still answer.
                if observation.iter().all(|x| x.is_finite()) {
                    action[tree.decide(observation) as usize] = 1.0;
                } else {
                    action.fill(f32::NAN);
                }
            }
        }
        if !action.iter().chain(&self.after).all(|x| x.is_finite()) {
            let found = if observation.iter().all(|x| x.is_finite()) { "NaN or infinity" } else { "its own NaN" };
            let hint = "look at the observation's range, and at the weights";
            return Err(unreadable("answer", found, "finite numbers").hint(hint).coded("learning-diverged"));
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
