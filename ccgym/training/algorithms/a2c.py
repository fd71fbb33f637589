"""A2C: Stable-Baselines3's."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from ccgym.training.algorithms.actor_critic import ActorCritic
from ccgym.training.algorithms.base import Schedule, policy_arguments, schedule

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class A2cConfig(ActorCritic):
    """A2C, with Stable-Baselines3's names: one gradient step per update, on all of its samples."""

    name: Literal["a2c"] = "a2c"
    """SB3's A2C."""
    n_steps: int = Field(default=8, ge=1, le=1_000_000)
    """Steps of each environment between two updates."""
    learning_rate: Schedule = 7e-4
    """The optimizer's step size."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """Bias against variance of the advantage; 1: the plain return."""
    normalize_advantage: bool = False
    """Whether advantages are standardized per update."""
    use_rms_prop: bool = True
    """RMSProp as TensorFlow has it, which A2C was published with, or else Adam."""
    rms_prop_eps: float = Field(default=1e-5, gt=0)
    """RMSProp's epsilon."""


def build(config: A2cConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`."""
    from stable_baselines3 import A2C

    from ccgym.training.privileged_critic import PrivilegedCriticPolicy

    # SB3 sets RMSProp up itself, and then takes the optimizer's arguments for RMSProp's.
    adam = {} if config.use_rms_prop else {"eps": config.adam_epsilon}
    arguments = policy_arguments(config, ortho_init=config.ortho_init, **adam)
    if config.use_rms_prop:
        del arguments["optimizer_kwargs"]
    with warnings.catch_warnings():
        # A GPU was asked for.
        warnings.filterwarnings("ignore", message="You are trying to run A2C on the GPU")
        return A2C(
            PrivilegedCriticPolicy if config.privileged else "MlpPolicy",
            env,
            learning_rate=schedule(config.learning_rate),
            n_steps=config.n_steps,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            ent_coef=config.ent_coef,
            vf_coef=config.vf_coef,
            max_grad_norm=config.max_grad_norm,
            rms_prop_eps=config.rms_prop_eps,
            use_rms_prop=config.use_rms_prop,
            normalize_advantage=config.normalize_advantage,
            policy_kwargs={**arguments, "log_std_init": config.log_std_init},
            verbose=0,
            seed=None,
            device=device,
        )
