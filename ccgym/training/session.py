"""A training under way, as what happens between its updates sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.progress import ProgressDisplay
from ccgym.training.run_directory import RunDirectory

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize
    from torch.utils.tensorboard import SummaryWriter

    from ccgym.training.training_env import TrainingEnv


@dataclass
class Spent:
    """Where the time of an update went, or that of a whole training."""

    steps: int = 0
    """Decisions taken."""
    total_s: float = 0.0
    """Wall time of rollouts and learning."""
    environment_s: float = 0.0
    """Of that, inside the environments."""
    learning_s: float = 0.0
    """Of that, in gradient steps."""

    def shares(self) -> dict[str, float]:
        """Fractions of the wall time: ``environment``, ``learner``, and ``rest``: choosing actions and copying."""
        total = max(self.total_s, 1e-9)
        environment, learner = self.environment_s / total, self.learning_s / total
        return {"environment": environment, "learner": learner, "rest": max(0.0, 1.0 - environment - learner)}

    def add(self, other: Spent) -> None:
        """Count another update."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Session:
    """What a training consists of; :class:`ccgym.training.trainer.Trainer` moves it on."""

    config: TrainConfig
    run: RunDirectory
    """Where; its lock is held."""
    display: ProgressDisplay
    environments: Environments
    """Where environments come from, such as those of evaluations."""
    rollouts: TrainingEnv
    """The environments that are learned in."""
    env: VecEnv
    """The same behind the normalizer, if there is one."""
    model: OnPolicyAlgorithm
    normalizer: VecNormalize | None
    events: SummaryWriter
    """Takes what the model's logger does not: text and pictures, for TensorBoard."""
    spent: Spent
    """By the latest update."""
    step = 0
    """Decisions so far."""
    resumed = False
    """Whether this run continues from a checkpoint."""
    is_new = True
    """Whether nothing was recorded of it yet: the first checkpoint is from before that."""

    def begin_episodes(self) -> None:
        """Begin an episode in every environment that is learned in."""
        self.model._last_obs = self.env.reset()  # type: ignore[assignment]
        self.model._last_episode_starts = np.ones(self.env.num_envs, dtype=bool)


class Callback:
    """Does something between updates. What it records with ``training.model.logger`` goes to CSV and TensorBoard."""

    def on_start(self, training: Session) -> None:
        """Before the first update, or the first one after a resume."""

    def on_update(self, training: Session, *, last: bool) -> None:
        """After an update, before its row is written; ``last``: whether training has reached its end."""
