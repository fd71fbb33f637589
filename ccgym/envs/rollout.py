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
    """The end of an episode within a rollout."""

    index: int
    """Environment."""
    step: int
    """Its decision of the rollout that was the episode's last."""
    observation: Floats
    """After it."""
    privileged: npt.NDArray[np.float64]
    """Ground truth then, in the order of ``EpisodeBatch.privileged_names``."""
    info: Mapping[str, Any]
    """As a step's info says it."""


@dataclass
class Rollout:
    """The same number of decisions in every environment; all arrays are (environments × decisions × …)."""

    noise: Floats
    """Numbers of a standard normal distribution, × action size: how far each action is drawn from the policy's mean."""
    observations: Floats
    """What each decision was taken on, × features."""
    privileged: npt.NDArray[np.float64]
    """Ground truth then, × names."""
    actions: Floats
    """As they were drawn, before they were clipped to the box."""
    rewards: Floats
    last_observations: Floats
    """What the next decisions will be taken on, environments × features."""
    taken: npt.NDArray[np.uint64]
    """Decisions so far, per environment."""
    ends: list[EpisodeEnd] = field(default_factory=list)

    @classmethod
    def of(cls, noise: Floats, features: int, names: int) -> Rollout:
        """An empty one.

        Args:
            noise: Environments × decisions × action size.
            features: Numbers of an observation.
            names: Numbers of ground truth.
        """
        count, steps, _ = noise.shape
        return cls(
            noise=noise,
            observations=np.zeros((count, steps, features), dtype=np.float32),
            privileged=np.zeros((count, steps, names)),
            actions=np.zeros_like(noise),
            rewards=np.zeros((count, steps), dtype=np.float32),
            last_observations=np.zeros((count, features), dtype=np.float32),
            taken=np.zeros(count, dtype=np.uint64),
        )

    def dones(self) -> npt.NDArray[np.bool_]:
        """Which decisions were their episode's last, environments × decisions."""
        dones = np.zeros(self.rewards.shape, dtype=np.bool_)
        for end in self.ends:
            dones[end.index, end.step] = True
        return dones
