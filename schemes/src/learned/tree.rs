//! A decision tree. Its ONNX file has one node, `TreeEnsembleClassifier` of the standard domain `ai.onnx.ml`, so that any
//! tool of ONNX reads it.
//!
//! A leaf has one action. Features and thresholds are float32: `x ≤ threshold` goes to the first child.

use prost::bytes::Bytes;
use serde::Serialize;

use super::card::NetworkShape;
use super::compile::compare;
use super::error::unreadable;
use super::graph::{Attribute, Graph};
use ccgym_core::Error;

/// Max nodes of a tree: ten times as many as the largest published one for congestion control.
pub(super) const MAX_NODES: usize = 200_000;
/// Max comparisons of a decision.
pub(super) const MAX_DEPTH: usize = 64;
const KIND: &str = "TreeEnsembleClassifier";
const DOMAIN: &str = "ai.onnx.ml";
/// Versions of `ai.onnx.ml` in which the node has the same meaning.
const OPSETS: std::ops::RangeInclusive<u64> = 1..=4;

/// A checked tree: it decides on any observation of the right size.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<TreeNode>,
    visits: Vec<f32>,
}

/// A node of a tree. The first is the root; children come after their parents.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeNode {
    /// Compares a feature, and continues at one of two nodes.
    Split {
        /// Index into the observation.
        feature: u32,
        /// Threshold of the feature.
        threshold: f32,
        /// Next node if the feature does not exceed the threshold.
        at_most: u32,
        /// Next node otherwise.
        above: u32,
    },
    /// Returns the index of an action.
    Leaf(u32),
}

impl Tree {
    /// Read the tree in an ONNX file.
    pub(super) fn read(onnx: &[u8], sizes: NetworkShape) -> Result<Self, Error> {
        let graph = Graph::read(onnx)?;
        graph.require_opset("opset ai.onnx.ml", &[DOMAIN], &OPSETS)?;
        let ([node], true) = (graph.nodes.as_slice(), graph.constants.is_empty()) else {
            let found = format!("{} nodes and {} initializers", graph.nodes.len(), graph.constants.len());
            return Err(unreadable("graph", found, format!("one {KIND} alone")));
        };
        compare("inputs", &graph.inputs, &[("observation", sizes.observation_size)])?;
        compare("outputs", &graph.outputs, &[("action", sizes.action_size)])?;
        if node.kind != KIND || node.domain != DOMAIN {
            let found = format!("operation {:?} of {:?}", node.kind, node.domain);
            let expected = format!("{KIND} of {DOMAIN}");
            return Err(unreadable("graph", found, expected));
        }
        if node.inputs != ["observation"] || !matches!(node.outputs.as_slice(), [_, action] if action == "action") {
            let found = "other inputs and outputs of the node";
            return Err(unreadable("graph", found, "observation; a label, and action"));
        }
        Self::build(&Columns::of(&node.attributes), sizes)
    }

    /// Return the action for an observation.
    #[inline]
    pub(super) fn decide(&self, observation: &[f32]) -> u32 {
        let mut at = 0;
        loop {
            match self.nodes[at as usize] {
                TreeNode::Leaf(action) => return action,
                TreeNode::Split { feature, threshold, at_most, above } => {
                    at = if observation[feature as usize] <= threshold { at_most } else { above };
                }
            }
        }
    }

    /// Return the nodes.
    #[must_use]
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// Return the number of training decisions that reached each node; empty if the file does not have it.
    #[must_use]
    pub fn visits(&self) -> &[f32] {
        &self.visits
    }

    fn build(columns: &Columns<'_>, sizes: NetworkShape) -> Result<Self, Error> {
        let count = columns.ids.len();
        if count == 0 || count > MAX_NODES {
            return Err(refused("nodes", count, format!("1 to {MAX_NODES}")));
        }
        columns.check_lengths(count, sizes)?;
        let mut depths = vec![None; count];
        depths[0] = Some(0);
        let mut nodes = Vec::with_capacity(count);
        for i in 0..count {
            let at = |field: &str| format!("node {i}, {field}");
            if columns.ids[i] != i as i64 || columns.trees[i] != 0 {
                let found = format!("number {} of tree {}", columns.ids[i], columns.trees[i]);
                return Err(refused(
                    &at("number"),
                    found,
                    format!("number {i} of tree 0: one tree, numbered in order"),
                ));
            }
            let depth = depths[i].ok_or_else(|| refused(&at("parent"), "none", "one that comes before it"))?;
            if columns.modes[i] == "LEAF" {
                nodes.push(TreeNode::Leaf(0));
                continue;
            }
            if columns.modes[i] != "BRANCH_LEQ" {
                let found = format!("{:?}", String::from_utf8_lossy(&columns.modes[i]));
                return Err(refused(&at("mode"), found, "LEAF or BRANCH_LEQ"));
            }
            if depth == MAX_DEPTH {
                return Err(refused(
                    &at("depth"),
                    format!("a split below {depth} others"),
                    format!("{MAX_DEPTH} at most"),
                ));
            }
            let (feature, threshold) = (columns.features[i], columns.thresholds[i]);
            let Some(feature) = u32::try_from(feature).ok().filter(|f| (*f as usize) < sizes.observation_size) else {
                return Err(refused(&at("feature"), feature, format!("0 to {}", sizes.observation_size - 1)));
            };
            if !threshold.is_finite() {
                return Err(refused(&at("threshold"), threshold, "a number"));
            }
            let mut child = |field: &str, number: i64| {
                let place = usize::try_from(number).ok().filter(|n| *n > i && *n < count);
                let place = place.ok_or_else(|| refused(&at(field), number, format!("{} to {}", i + 1, count - 1)))?;
                if depths[place].replace(depth + 1).is_some() {
                    return Err(refused(&at(field), format!("{number}, which has a parent"), "a node of its own"));
                }
                Ok(place as u32)
            };
            let (at_most, above) =
                (child("true branch", columns.at_most[i])?, child("false branch", columns.above[i])?);
            nodes.push(TreeNode::Split { feature, threshold, at_most, above });
        }
        columns.answer(&mut nodes, sizes)?;
        Ok(Self { nodes, visits: columns.visits.to_vec() })
    }
}

/// The node's attributes, one entry per node of the tree, or per leaf's action.
#[derive(Default)]
struct Columns<'a> {
    trees: &'a [i64],
    ids: &'a [i64],
    modes: &'a [Bytes],
    features: &'a [i64],
    thresholds: &'a [f32],
    visits: &'a [f32],
    at_most: &'a [i64],
    above: &'a [i64],
    answer_trees: &'a [i64],
    answer_nodes: &'a [i64],
    answers: &'a [i64],
    weights: &'a [f32],
    classes: &'a [i64],
    transform: &'a [u8],
}

impl<'a> Columns<'a> {
    fn of(attributes: &'a [Attribute]) -> Self {
        let mut columns = Self { transform: b"NONE", ..Self::default() };
        for one in attributes {
            match one.name.as_str() {
                "nodes_treeids" => columns.trees = &one.ints,
                "nodes_nodeids" => columns.ids = &one.ints,
                "nodes_modes" => columns.modes = &one.strings,
                "nodes_featureids" => columns.features = &one.ints,
                "nodes_values" => columns.thresholds = &one.floats,
                "nodes_hitrates" => columns.visits = &one.floats,
                "nodes_truenodeids" => columns.at_most = &one.ints,
                "nodes_falsenodeids" => columns.above = &one.ints,
                "class_treeids" => columns.answer_trees = &one.ints,
                "class_nodeids" => columns.answer_nodes = &one.ints,
                "class_ids" => columns.answers = &one.ints,
                "class_weights" => columns.weights = &one.floats,
                "classlabels_int64s" => columns.classes = &one.ints,
                "post_transform" => columns.transform = &one.text,
                _ => {}
            }
        }
        columns
    }

    fn check_lengths(&self, count: usize, sizes: NetworkShape) -> Result<(), Error> {
        let answers = self.answers.len();
        for (field, found, expected) in [
            ("nodes_treeids", self.trees.len(), count),
            ("nodes_modes", self.modes.len(), count),
            ("nodes_featureids", self.features.len(), count),
            ("nodes_values", self.thresholds.len(), count),
            ("nodes_truenodeids", self.at_most.len(), count),
            ("nodes_falsenodeids", self.above.len(), count),
            ("class_treeids", self.answer_trees.len(), answers),
            ("class_nodeids", self.answer_nodes.len(), answers),
            ("class_weights", self.weights.len(), answers),
            ("classlabels_int64s", self.classes.len(), sizes.action_size),
        ] {
            if found != expected {
                return Err(refused(field, format!("{found} entries"), format!("{expected}")));
            }
        }
        if !self.visits.is_empty()
            && (self.visits.len() != count || self.visits.iter().any(|n| !(n.is_finite() && *n >= 0.0)))
        {
            let found = format!("{} entries, or one that is negative or no number", self.visits.len());
            return Err(refused("nodes_hitrates", found, format!("none, or {count} numbers")));
        }
        if self.transform != b"NONE" {
            let found = format!("{:?}", String::from_utf8_lossy(self.transform));
            return Err(refused("post_transform", found, "NONE"));
        }
        if !self.classes.iter().copied().eq(0..sizes.action_size as i64) {
            return Err(refused(
                "classlabels_int64s",
                format!("{:?}", self.classes),
                "0, 1, 2 …, the actions in order",
            ));
        }
        Ok(())
    }

    /// Set the action of each leaf.
    fn answer(&self, nodes: &mut [TreeNode], sizes: NetworkShape) -> Result<(), Error> {
        let mut answered = vec![false; nodes.len()];
        for (i, (node, action)) in self.answer_nodes.iter().zip(self.answers).enumerate() {
            let at = |field: &str| format!("answer {i}, {field}");
            let place = usize::try_from(*node).ok().filter(|n| *n < nodes.len() && self.answer_trees[i] == 0);
            let Some(place) = place.filter(|n| matches!(nodes[*n], TreeNode::Leaf(_))) else {
                return Err(refused(&at("node"), node, "a leaf of tree 0"));
            };
            if std::mem::replace(&mut answered[place], true) {
                return Err(refused(&at("node"), format!("leaf {node} again"), "one answer for each leaf"));
            }
            let Some(action) = u32::try_from(*action).ok().filter(|a| (*a as usize) < sizes.action_size) else {
                return Err(refused(&at("action"), action, format!("0 to {}", sizes.action_size - 1)));
            };
            let weight = self.weights[i];
            if !(weight.is_finite() && weight > 0.0) {
                return Err(refused(&at("weight"), weight, "a number above 0"));
            }
            nodes[place] = TreeNode::Leaf(action);
        }
        let silent = nodes.iter().zip(&answered).position(|(node, done)| matches!(node, TreeNode::Leaf(_)) && !done);
        silent.map_or(Ok(()), |leaf| Err(refused(&format!("node {leaf}, answer"), "none", "one for each leaf")))
    }
}

fn refused(place: &str, found: impl ToString, expected: impl ToString) -> Error {
    unreadable(format!("tree, {place}"), found, expected)
}

#[cfg(test)]
mod tests;
