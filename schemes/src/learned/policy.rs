//! An exported policy, and one flow's use of it.

use std::sync::Arc;

use ccgym_agent::AgentSpec;

use super::card::{Card, NetworkKind};
use super::compile::PolicyNetwork;
use super::error::unreadable;
use super::tree::Tree;
use ccgym_core::SpecError;

/// An exported policy: network or tree, and card. Never changes; flows and threads share it.
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
    /// A policy from the bytes of its ONNX file and the text of its card. Refuses what does not fit together: another
    /// file than the card's, other sizes, anything but float64 inside, weights that are not numbers.
    pub fn load(onnx: &[u8], card: &str) -> Result<Arc<Self>, SpecError> {
        let card = Card::parse(card)?;
        card.check_digest(onnx)?;
        Self::build(onnx, card)
    }

    fn build(onnx: &[u8], card: Card) -> Result<Arc<Self>, SpecError> {
        let model = if card.policy.kind == NetworkKind::Tree {
            Model::Tree(Tree::read(onnx, card.policy)?)
        } else {
            Model::Network(PolicyNetwork::read(onnx, card.policy)?)
        };
        let discrete = card.is_discrete();
        let policy = Arc::new(Self { card, discrete, model });
        // Weights whose sums are not finite show only now.
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
        match &self.model {
            Model::Tree(tree) => Some(tree),
            Model::Network(_) => None,
        }
    }

    /// A new flow's use of it.
    #[must_use]
    pub fn session(self: &Arc<Self>) -> Session {
        let state = vec![0.0; self.card.policy.state_size];
        Session { policy: self.clone(), after: state.clone(), state, values: Vec::new() }
    }
}

/// One flow's use of a policy: the recurrent state, float32 as it crosses the graph's border.
#[derive(Clone, Debug)]
pub struct Session {
    policy: Arc<Policy>,
    state: Vec<f32>,
    /// Room for the state after a decision.
    after: Vec<f32>,
    /// Room for the numbers of a decision.
    values: Vec<f64>,
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
    pub fn set_state(&mut self, state: &[f32]) -> Result<(), SpecError> {
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
    /// scores). After an error the state is what it was.
    pub fn decide(&mut self, observation: &[f32], action: &mut Vec<f32>) -> Result<(), SpecError> {
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
                // NaN compares with nothing; a network would answer with its own.
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
