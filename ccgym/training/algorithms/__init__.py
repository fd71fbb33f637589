"""The algorithms.

=================  =============================================================================================
``config``         the settings of all of them; does not import torch
``actor_critic``   SB3's PPO and A2C, and sb3-contrib's PPO with an LSTM
``ppo``            PPO with rollouts in the native core and gradients in parts
``ppo_gradient``   the gradient of its loss, written out
``advantages``     advantages of samples that several learners take in turns
``dagger``         an expert labels the states that the learner comes into, and a network imitates it
``distill``        the same with a decision tree
``cross_entropy``  the best episodes of a group are imitated, and for a while an expert, too
``base``           what they share
``supervised``     what those that imitate share
``imitation``      what the two share that learn from labels in rounds
=================  =============================================================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.algorithms.config import AlgorithmBase

_LEARNERS: Final = {
    "ppo": ("actor_critic", "build"),
    "recurrent_ppo": ("actor_critic", "build"),
    "a2c": ("actor_critic", "build"),
    "dagger": ("dagger", "DaggerLearner"),
    "distill": ("distill", "DistillLearner"),
    "cross_entropy": ("cross_entropy", "CrossEntropyLearner"),
}
"""File of this folder, and what makes a learner there from configuration, environments and device."""


def build(config: AlgorithmBase, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner that a configuration means; draws its initial weights from torch's global generator.

    Args:
        config: The section ``algorithm``.
        env: What it will learn in.
        device: Where its networks are: ``cpu``, ``cuda`` …

    Raises:
        ConfigError: The algorithm cannot learn such actions.
    """
    file, name = _LEARNERS[config.name]
    made: OnPolicyAlgorithm = getattr(import_module(f"{__name__}.{file}"), name)(config, env, device)
    return made
