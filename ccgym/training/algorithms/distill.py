"""DAgger of a decision tree: the tree acts, an expert labels the states that it comes into, and CART grows a new one.

An expert of kind ``policy``, such as an exported LSTM, makes it a distillation (Bastani, Pu and Solar-Lezama,
*Verifiable reinforcement learning via policy extraction*, NeurIPS 2018, without its weights). The tree is
scikit-learn's, by Gini impurity, of all decisions that are held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from ccgym.training.algorithms.config import DistillConfig
from ccgym.training.algorithms.imitation import ImitationLearner
from ccgym.training.tree_policy import TreePolicy

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv


class DistillLearner(ImitationLearner):
    """Distills the agent's expert into a tree.

    Args:
        config: Its settings.
        env: What it learns in; ``env.labels()`` is what the expert would do.
        device: Of no effect.

    Raises:
        ConfigError: The agent's actions are real numbers.
    """

    def __init__(self, config: DistillConfig, env: VecEnv, device: str) -> None:
        super().__init__(config, env, "cpu")
        self.config = config

    @override
    def train(self) -> None:
        """Grow a tree from all that is held."""
        from sklearn.tree import DecisionTreeClassifier

        log = self.logger.record
        log("distill/rounds", self.rounds)
        log("distill/buffered_decisions", self.buffer.decisions)
        if not self.buffer.episodes:
            return
        known = np.concatenate([episode.weights for episode in self.buffer.episodes]) > 0
        if not known.any():
            return
        seen = np.concatenate([episode.observations for episode in self.buffer.episodes])[known]
        labels = np.concatenate([episode.actions for episode in self.buffer.episodes])[known]
        config = self.config
        grown = DecisionTreeClassifier(
            criterion="gini",
            max_depth=config.max_depth,
            max_leaf_nodes=config.max_leaves,
            min_samples_leaf=config.min_leaf,
            min_samples_split=config.min_split,
            random_state=np.random.randint(2**31),  # noqa: NPY002 (checkpoints hold numpy's global generator)
        ).fit(seen, labels)
        policy = self.policy
        assert isinstance(policy, TreePolicy)
        policy.become(grown)
        self._n_updates += 1
        log("train/agreement", float((policy.choose(seen) == labels).mean()))
        log("distill/leaves", policy.leaves)
        log("distill/depth", policy.depth)
        for place, importance in enumerate(grown.feature_importances_):
            log(f"importance/{place}", float(importance), exclude="csv")

    @override
    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "config"]
