"""The algorithms: one file each, with its configuration and ``build(config, env, device)``.

=================  =============================================================================================
``ppo``            SB3's PPO (``ppo``) and sb3-contrib's with an LSTM (``recurrent_ppo``)
``a2c``            SB3's A2C
``dagger``         an expert labels the states that the learner comes into, and the learner imitates it
``cross_entropy``  the best episodes of a group are imitated, and for a while an expert, too
``base``           what they share
``supervised``     what the two that imitate share
=================  =============================================================================================

The section ``algorithm`` of a configuration is one of the classes in :data:`ALGORITHMS`, by its ``name``. torch is
imported by ``build`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, get_args

from pydantic import BeforeValidator, Field, TypeAdapter

from ccgym.training.algorithms.a2c import A2cConfig
from ccgym.training.algorithms.base import AlgorithmBase
from ccgym.training.algorithms.cross_entropy import CrossEntropyConfig
from ccgym.training.algorithms.dagger import DaggerConfig
from ccgym.training.algorithms.ppo import PpoConfig

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

ALGORITHMS: Final = (PpoConfig, A2cConfig, DaggerConfig, CrossEntropyConfig)
"""Configurations, in the order of the documentation."""

DEFAULT: Final = "ppo"
"""The algorithm of a configuration that names none."""


def _named(value: object) -> object:
    return {"name": DEFAULT, **value} if isinstance(value, Mapping) and "name" not in value else value


AnyAlgorithm: TypeAlias = PpoConfig | A2cConfig | DaggerConfig | CrossEntropyConfig

AlgorithmField: TypeAlias = Annotated[AnyAlgorithm, Field(discriminator="name"), BeforeValidator(_named)]
"""The section ``algorithm``."""


def read_algorithm(content: Mapping[str, Any]) -> AnyAlgorithm:
    """An algorithm's configuration from its keys.

    Raises:
        pydantic.ValidationError: They are wrong.
    """
    read: AnyAlgorithm = TypeAdapter(AlgorithmField).validate_python(dict(content))
    return read


def build(config: AlgorithmBase, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner that a configuration means; draws its initial weights from torch's global generator.

    Args:
        config: One of :data:`ALGORITHMS`.
        env: What it will learn in.
        device: Where its networks are: ``cpu``, ``cuda`` …
    """
    made: OnPolicyAlgorithm = import_module(type(config).__module__).build(config, env, device)
    return made


def names() -> tuple[str, ...]:
    """Of all algorithms."""
    return tuple(name for kind in ALGORITHMS for name in get_args(kind.model_fields["name"].annotation))
