"""Generalized advantage estimation over samples that several learners take in turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def advantages(
    rewards: Floats,
    values: Floats,
    dones: npt.NDArray[np.bool_],
    learners: npt.NDArray[np.integer[Any]],
    last_values: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """The advantage of every sample (Schulman et al., 2016), over later samples of the same learner and episode only.

    Where each environment has one learner this is Stable-Baselines3's ``compute_returns_and_advantage``, to the bit.

    Args:
        rewards: Environments × samples; that of an episode's last includes what would have followed.
        values: Of what each decision was taken on, of the same shape.
        dones: Which samples were the last of their learner's episode, of the same shape.
        learners: Whose each sample is, from 0, of the same shape.
        last_values: Of what every learner decides on next, environments × learners.
        gamma: Discount.
        gae_lambda: Weight of longer estimates.

    Returns:
        Environments × samples.
    """
    found = np.zeros_like(rewards)
    following = last_values.copy()
    running = np.zeros_like(following)
    count = np.arange(len(rewards))
    for place in range(rewards.shape[1] - 1, -1, -1):
        own = count, learners[:, place]
        goes_on = 1.0 - dones[:, place].astype(np.float32)
        delta = rewards[:, place] + gamma * following[own] * goes_on - values[:, place]
        found[:, place] = running[own] = delta + gamma * gae_lambda * goes_on * running[own]
        following[own] = values[:, place]
    return found
