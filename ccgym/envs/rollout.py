"""Samples of many decisions of a policy in training, made in one native call."""

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
    """Index of the environment."""
    step: int
    """Index of the learner's last sample of the episode in the rollout; -1 if all were in earlier rollouts."""
    observation: Floats
    """The learner's observation after the interval of its last sample."""
    privileged: npt.NDArray[np.float64]
    """Ground truth at this observation, in the order of ``EpisodeBatch.privileged_names``."""
    info: Mapping[str, Any]
    """The ``info`` of the last step."""


@dataclass
class Rollout:
    """The same number of samples from every environment; most arrays are (environments × samples × …).

    A sample is a decision whose interval has closed. If several flows learn in an environment, their samples are in the
    order in which the intervals closed. If the interval of a decision is open when the rollout is full, the decision is
    a sample of the next rollout.
    """

    noise: Floats
    """Standard normal numbers for the distance of each action from the policy's mean: environments × (samples +
    learners − 1) × action size."""
    learners: npt.NDArray[np.uint32]
    """The learner of each sample: its index in its environment."""
    observations: Floats
    """Observations of the decisions, × features."""
    privileged: npt.NDArray[np.float64]
    """Ground truth at the decisions, × names."""
    actions: Floats
    """Drawn actions, before they were clipped to the box, × action size."""
    rewards: Floats
    last_observations: Floats
    """Observations of the next decisions, or of the open decision if a learner has one: rows of learners ×
    features."""
    last_privileged: npt.NDArray[np.float64]
    """Ground truth at these decisions, × names."""
    last_actions: Floats
    """Actions of the open decisions before clipping: rows of learners × action size."""
    open: npt.NDArray[np.bool_]
    """Whether a learner has an open decision (rows of learners)."""
    taken: npt.NDArray[np.uint64]
    """Samples so far, per environment."""
    decided: npt.NDArray[np.uint64]
    """Decisions so far, per environment."""
    ends: list[EpisodeEnd] = field(default_factory=list)

    @classmethod
    def of(cls, noise: Floats, learners: int, features: int, names: int) -> Rollout:
        """Return an empty rollout.

        Args:
            noise: See :attr:`noise`.
            learners: Rows of learners per environment.
            features: Numbers in an observation.
            names: Numbers in a row of ground truth.
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
        """Return a mask of the samples that ended an episode of their learner, environments × samples."""
        dones = np.zeros(self.rewards.shape, dtype=np.bool_)
        for end in self.ends:
            if end.step >= 0:
                dones[end.index, end.step] = True
        return dones
