"""A decision tree as a policy: grown by scikit-learn, stored and evaluated as plain arrays.

Features are float32. Thresholds are rounded down to float32: for every float32 x, ``x <= threshold`` has the same
result as with scikit-learn's float64 threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.schemes.policy_card import NetworkShape
from ccgym.training.onnx_graph import ML_OPSET, OPSET, Graph, content

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

Floats = npt.NDArray[np.float32]

COLUMNS: Final[Mapping[str, torch.dtype]] = {
    "feature": torch.int64,
    "threshold": torch.float32,
    "at_most": torch.int64,
    "above": torch.int64,
    "action": torch.int64,
    "share": torch.float32,
    "decisions": torch.int64,
}
"""Arrays with one entry per node, parents before their children: compared feature (−1: a leaf), threshold, the next
nodes; the most frequent action among the labeled decisions at the node, its share, and the number of decisions."""


class TreePolicy(BasePolicy):
    """A tree in SB3's form: evaluation, checkpoints and hashes work without changes. At first the tree is one leaf with
    the action in the middle of the list.

    Args:
        observation_space: A vector of features.
        action_space: A list of operations.
        lr_schedule: Without effect, like ``use_sde``: an argument of SB3's policies.

    Raises:
        ConfigError: The actions are real numbers.
    """

    feature: torch.Tensor
    threshold: torch.Tensor
    at_most: torch.Tensor
    above: torch.Tensor
    action: torch.Tensor
    share: torch.Tensor
    decisions: torch.Tensor
    bounds = None

    def __init__(
        self, observation_space: spaces.Box, action_space: spaces.Space[Any], lr_schedule: Any = None, **_: Any
    ) -> None:
        if not isinstance(action_space, spaces.Discrete):
            raise ConfigError(
                "agent-unsuitable",
                f"actions {action_space}",
                where="algorithm.name: distill",
                expected="an agent whose actions are a list of operations, from which a tree chooses one",
                hint="set operations in agent.action.map",
            )
        super().__init__(observation_space, action_space)
        first = {"feature": -1, "action": int(action_space.n) // 2}
        for name, kind in COLUMNS.items():
            self.register_buffer(name, torch.tensor([first.get(name, 0)], dtype=kind))

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature < 0).sum())

    @property
    def depth(self) -> int:
        """Max number of comparisons of a decision."""
        depths = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature.numpy() >= 0):
            depths[[self.at_most[node], self.above[node]]] = depths[node] + 1
        return int(depths.max())

    def become(self, grown: DecisionTreeClassifier) -> None:
        """Copy a tree that scikit-learn has grown; leaves with the same action as their sibling are merged.

        Args:
            grown: A fitted tree whose classes are indices of actions.
        """
        columns = _columns(grown)
        for name, kind in COLUMNS.items():
            setattr(self, name, torch.as_tensor(columns[name], dtype=kind))

    def choose(self, observations: Floats) -> npt.NDArray[np.int64]:
        """Return the actions for these observations, one row each."""
        feature, threshold = self.feature.numpy(), self.threshold.numpy()
        at_most, above = self.at_most.numpy(), self.above.numpy()
        rows = np.arange(len(observations))
        at = np.zeros(len(observations), dtype=np.int64)
        while True:
            split = feature[at]
            if (split < 0).all():
                chosen: npt.NDArray[np.int64] = self.action.numpy()[at]
                return chosen
            further = np.where(observations[rows, split] <= threshold[at], at_most[at], above[at])
            at = np.where(split < 0, at, further)

    @override
    def _predict(self, observation: Any, deterministic: bool = False) -> torch.Tensor:
        return torch.from_numpy(self.choose(observation.cpu().numpy().astype(np.float32)))

    @override
    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *arguments: Any) -> None:
        for name in COLUMNS:
            if prefix + name in state_dict:  # a tree of another size
                setattr(self, name, torch.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    # --- Methods for exports; see :class:`ccgym.training.torch_policy.Exportable` -------------------------------------

    @property
    def shape(self) -> NetworkShape:
        """Sizes of inputs and outputs."""
        size, count = int(np.prod(self.observation_space.shape or (0,))), int(self.action_space.n)  # type: ignore[attr-defined]
        return NetworkShape(kind="tree", observation_size=size, state_size=0, action_size=count)

    def decide(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Return scores of the actions, one row per flow: 1 for the chosen action."""
        return np.eye(self.shape.action_size, dtype=np.float32)[self.choose(observations)], None

    decide_as_trained = decide

    def onnx(self, name: str) -> bytes:
        """Return the file ``NAME.onnx``; equal trees give equal bytes."""
        tree, shape = self, self.shape
        graph = Graph()
        count, leaf = len(tree.feature), (tree.feature < 0).numpy()
        leaves = np.flatnonzero(leaf)
        graph.add_many(
            "TreeEnsembleClassifier",
            "observation",
            outputs=["label", "action"],
            domain="ai.onnx.ml",
            nodes_treeids=[0] * count,
            nodes_nodeids=list(range(count)),
            nodes_modes=["LEAF" if one else "BRANCH_LEQ" for one in leaf],
            nodes_featureids=tree.feature.clamp(min=0).tolist(),
            nodes_values=tree.threshold.tolist(),
            nodes_hitrates=tree.decisions.float().tolist(),
            nodes_truenodeids=tree.at_most.tolist(),
            nodes_falsenodeids=tree.above.tolist(),
            class_treeids=[0] * len(leaves),
            class_nodeids=leaves.tolist(),
            class_ids=tree.action[leaves].tolist(),
            class_weights=tree.share[leaves].clamp(min=1e-6).tolist(),
            classlabels_int64s=list(range(shape.action_size)),
            post_transform="NONE",
        )
        return content(graph.finished(name, shape, [("", OPSET), ("ai.onnx.ml", ML_OPSET)]))


def _columns(grown: DecisionTreeClassifier) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of :data:`COLUMNS` for the nodes that are left after merging."""
    tree = grown.tree_
    winners = tree.value[:, 0].argmax(axis=1)
    left, right = np.array(tree.children_left), np.array(tree.children_right)
    for node in range(tree.node_count - 1, -1, -1):  # children come after their parents
        below = (left[node], right[node])
        if below[0] >= 0 and left[below[0]] < 0 and left[below[1]] < 0 and winners[below[0]] == winners[below[1]]:
            left[node] = right[node] = -1
    kept = [0]
    for node in kept:
        kept += [int(child) for child in (left[node], right[node]) if child >= 0]
    places = np.zeros(tree.node_count + 1, dtype=np.int64)  # the last is for −1, which a leaf has instead of children
    places[kept] = np.arange(len(kept))
    split = left[kept] >= 0
    shares = tree.value[kept, 0]
    return {
        "feature": np.where(split, tree.feature[kept], -1),
        "threshold": np.where(split, rounded_down(tree.threshold[kept]), np.float32(0)),
        "at_most": places[left[kept]],
        "above": places[right[kept]],
        "action": np.asarray(grown.classes_, dtype=np.int64)[winners[kept]],
        "share": shares.max(axis=1) / shares.sum(axis=1),
        "decisions": tree.n_node_samples[kept],
    }


def rounded_down(thresholds: npt.NDArray[np.float64]) -> Floats:
    """Return the largest float32 that does not exceed each threshold."""
    near = thresholds.astype(np.float32)
    return np.where(near.astype(np.float64) > thresholds, np.nextafter(near, np.float32(-np.inf)), near)
