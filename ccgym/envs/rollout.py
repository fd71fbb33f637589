"""Many decisions of a policy in training, taken in one native call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EpisodeEnd:
    """The end of a learner's episode within a rollout."""

    index: int
    """Environment."""
    step: int
    """Its sample of the rollout that was the learner's last of the episode; -1 if all were in earlier rollouts."""
    observation: Floats
    """What it saw after the last interval that is a sample."""
    privileged: npt.NDArray[np.float64]
    """Ground truth then, in the order of ``EpisodeBatch.privileged_names``."""
    info: Mapping[str, Any]
    """As a step's info says it."""


@dataclass
class Rollout:
    """The same number of samples from every environment; most arrays are (environments × samples × …).

    A sample is a decision whose interval has closed. Where several flows learn in an environment, their samples are in
    the order in which the intervals closed. A decision whose interval is open when the rollout is full is a sample of
    the next one.
    """

    noise: Floats
    """Numbers of a standard normal distribution, environments × (samples + learners − 1) × action size: how far each
    action is drawn from the policy's mean."""
    learners: npt.NDArray[np.uint32]
    """Whose each sample is: the learner's place in its environment."""
    observations: Floats
    """What each decision was taken on, × features."""
    privileged: npt.NDArray[np.float64]
    """Ground truth then, × names."""
    actions: Floats
    """As they were drawn, before they were clipped to the box."""
    rewards: Floats
    last_observations: Floats
    """What the next decisions will be taken on, and where one is open, what it was taken on: rows of learners ×
    features."""
    last_privileged: npt.NDArray[np.float64]
    """Ground truth then, × names."""
    last_actions: Floats
    """Actions of the open decisions, as they were drawn, rows of learners × action size."""
    open: npt.NDArray[np.bool_]
    """Which learners have an open decision."""
    taken: npt.NDArray[np.uint64]
    """Samples so far, per environment."""
    decided: npt.NDArray[np.uint64]
    """Decisions so far, per environment."""
    ends: list[EpisodeEnd] = field(default_factory=list)

    @classmethod
    def of(cls, noise: Floats, learners: int, features: int, names: int) -> Rollout:
        """An empty one.

        Args:
            noise: See :attr:`noise`.
            learners: Rows of learners per environment.
            features: Numbers of an observation.
            names: Numbers of ground truth.
        """
        count, decisions, numbers = noise.shape
        samples, rows = decisions - learners + 1, count * learners
        return cls(
            noise=noise,
            learners=np.zeros((count, samples), dtype=np.uint32),
            observations=np.zeros((count, samples, features), dtype=np.float32),
            privileged=np.zeros((count, samples, names)),
            actions=np.zeros((count, samples, numbers), dtype=np.float32),
            rewards=np.zeros((count, samples), dtype=np.float32),
            last_observations=np.zeros((rows, features), dtype=np.float32),
            last_privileged=np.zeros((rows, names)),
            last_actions=np.zeros((rows, numbers), dtype=np.float32),
            open=np.zeros(rows, dtype=np.bool_),
            taken=np.zeros(count, dtype=np.uint64),
            decided=np.zeros(count, dtype=np.uint64),
        )

    def dones(self) -> npt.NDArray[np.bool_]:
        """Which samples were the last of their learner's episode, environments × samples."""
        dones = np.zeros(self.rewards.shape, dtype=np.bool_)
        for end in self.ends:
            if end.step >= 0:
                dones[end.index, end.step] = True
        return dones
