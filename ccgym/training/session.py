"""A running training, in the form that callbacks between its updates use."""

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
    """Time of an update, or of a whole training, by part."""

    steps: int = 0
    """Number of decisions."""
    total_s: float = 0.0
    """Wall time of rollouts and learning, seconds."""
    environment_s: float = 0.0
    """Part of this time in the environments, seconds."""
    learning_s: float = 0.0
    """Part of this time in gradient steps, seconds."""

    def shares(self) -> dict[str, float]:
        """Return fractions of the wall time: ``environment``, ``learner``, and ``rest`` (choice of actions, copies)."""
        total = max(self.total_s, 1e-9)
        environment, learner = self.environment_s / total, self.learning_s / total
        return {"environment": environment, "learner": learner, "rest": max(0.0, 1.0 - environment - learner)}

    def add(self, other: Spent) -> None:
        """Add another update."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Session:
    """The parts of a training; :class:`ccgym.training.trainer.Trainer` runs it."""

    config: TrainConfig
    run: RunDirectory
    """The run directory; its lock is held."""
    display: ProgressDisplay
    environments: Environments
    """Factory of environments, for example for evaluations."""
    rollouts: TrainingEnv
    """The training environments."""
    env: VecEnv
    """The training environments with the normalizer, if there is one."""
    model: OnPolicyAlgorithm
    normalizer: VecNormalize | None
    events: SummaryWriter
    """Writer of texts and pictures for TensorBoard, which the model's logger does not support."""
    spent: Spent
    """Time of the latest update."""
    step = 0
    """Decisions so far."""
    resumed = False
    """Whether this run continues from a checkpoint."""
    is_new = True
    """Whether nothing of the run was recorded yet: the first checkpoint is written before."""

    def begin_episodes(self) -> None:
        """Begin an episode in every training environment."""
        self.model._last_obs = self.env.reset()  # type: ignore[assignment]
        self.model._last_episode_starts = np.ones(self.env.num_envs, dtype=bool)


class Callback:
    """An action between updates. Its records with ``training.model.logger`` go to CSV and TensorBoard."""

    def on_start(self, training: Session) -> None:
        """Run before the first update, or before the first update after a resumption."""

    def on_update(self, training: Session, *, last: bool) -> None:
        """Run after an update, before its row is written; ``last``: whether the training has reached its end."""
