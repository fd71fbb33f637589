//! The card of an exported network: which agent computes its inputs and how its output is used.

use std::fmt::Write;
use std::sync::Arc;

use ccgym_agent::{ActionKind, AgentSpec};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::unreadable;
use ccgym_core::Error;

/// Version of the card that this build reads.
pub const FORMAT: u64 = 1;
/// Max size of observation, state and action.
pub const MAX_SIZE: usize = 65_536;

/// The parts of a card that decisions need. The rest is for users, and for Python (`ccgym/schemes/policy_card.py`).
#[derive(Clone, Debug, Deserialize)]
pub struct Card {
    /// Name, as in a flow's `policy` parameter.
    pub name: String,
    /// The flow agent: clock, observation, action, reward, start-up, guard.
    #[serde(deserialize_with = "shared")]
    pub agent: Arc<AgentSpec>,
    /// Sizes of the network.
    pub policy: NetworkShape,
    /// SHA-256 of the ONNX file, in hexadecimal.
    pub onnx_sha256: String,
}

/// The sizes of the network's inputs and outputs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct NetworkShape {
    /// MLP, LSTM or tree.
    pub kind: NetworkKind,
    /// Number of inputs.
    pub observation_size: usize,
    /// Size of the state; 0 without memory.
    pub state_size: usize,
    /// Number of outputs: components of the action, or one score per operation of a discrete action.
    pub action_size: usize,
}

/// Kind of network.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum NetworkKind {
    /// Answers from the observation alone.
    Mlp,
    /// Carries a state from decision to decision.
    Lstm,
    /// A decision tree over the observation; its actions are discrete.
    Tree,
}

impl Card {
    /// Read the text of a card and check it; the network is not read.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let value: Value =
            serde_json::from_str(text).map_err(|e| unreadable("card", format!("no JSON ({e})"), "a JSON object"))?;
        let format = &value["format"];
        if format.as_u64() != Some(FORMAT) {
            let error = unreadable("card.format", format, FORMAT).coded("policy-version");
            let newer = format.as_u64().is_some_and(|f| f > FORMAT);
            return Err(if newer { error.hint("a newer ccgym wrote it: install that version") } else { error });
        }
        let card: Self = serde_json::from_value(value).map_err(|e| unreadable("card", e, "the fields of format 1"))?;
        card.check()?;
        Ok(card)
    }

    /// True if the network's output is one score per operation, not the action itself.
    #[must_use]
    pub fn is_discrete(&self) -> bool {
        matches!(self.agent.action_kind(), ActionKind::Discrete(_))
    }

    fn check(&self) -> Result<(), Error> {
        let NetworkShape { observation_size, state_size, action_size, .. } = self.policy;
        for (key, size) in [("observation", observation_size), ("state", state_size), ("action", action_size)] {
            if size > MAX_SIZE {
                let place = format!("card.policy.{key}_size");
                return Err(unreadable(place, size.to_string(), format!("{MAX_SIZE} at most")).coded("too-large"));
            }
        }
        self.agent.validate().map_err(|e| {
            unreadable(format!("card.agent.{}", e.place), e.found.clone(), e.expected.clone()).coded("agent-invalid")
        })?;
        let actions = match self.agent.action_kind() {
            ActionKind::Discrete(n) | ActionKind::Box { size: n, .. } => n,
        };
        self.agree("observation_size", self.policy.observation_size, self.agent.observation_size())?;
        self.agree("action_size", self.policy.action_size, actions)?;
        let memory = self.policy.kind == NetworkKind::Lstm;
        if memory != (self.policy.state_size > 0) {
            let (found, expected) = (self.policy.state_size.to_string(), if memory { "more than 0" } else { "0" });
            return Err(unreadable("card.policy.state_size", found, expected).coded("shape-mismatch"));
        }
        if self.policy.kind == NetworkKind::Tree && !self.is_discrete() {
            let expected = "a list of operations, of which a tree chooses one";
            return Err(unreadable("card.agent.action", "real numbers", expected).coded("policy-unsuitable"));
        }
        Ok(())
    }

    fn agree(&self, size: &str, found: usize, expected: usize) -> Result<(), Error> {
        if found == expected {
            return Ok(());
        }
        let expected = format!("{expected}, as the agent \"{}\" has it", self.agent.name);
        Err(unreadable(format!("card.policy.{size}"), found.to_string(), expected).coded("shape-mismatch"))
    }

    /// Check that `onnx` has the digest on the card.
    pub(super) fn check_digest(&self, onnx: &[u8]) -> Result<(), Error> {
        let found = sha256(onnx);
        if found.eq_ignore_ascii_case(&self.onnx_sha256) {
            return Ok(());
        }
        let hint = "the two files do not belong together, or one is damaged: fetch or export both again";
        Err(unreadable("SHA-256 of the ONNX file", found, format!("{}, as on the card", self.onnx_sha256))
            .hint(hint)
            .coded("policy-changed"))
    }
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<AgentSpec>, D::Error> {
    AgentSpec::deserialize(deserializer).map(Arc::new)
}

/// Return the SHA-256 in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
