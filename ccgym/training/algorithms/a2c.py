"""A2C: Stable-Baselines3's."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.base import AlgorithmBase, Normalise, Schedule, policy_arguments, schedule

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class A2cConfig(AlgorithmBase):
    """A2C, with Stable-Baselines3's names: one gradient step per update, on all of its samples."""

    name: Literal["a2c"] = "a2c"
    """SB3's A2C."""
    n_steps: int = Field(default=8, ge=1, le=1_000_000)
    """Steps of each environment between two updates."""
    learning_rate: Schedule = 7e-4
    """The optimiser's step size."""
    gamma: float = Field(default=0.99, gt=0, le=1)
    """Discount per step."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """Bias against variance of the advantage; 1: the plain return."""
    normalise_advantage: bool = False
    """Whether advantages are standardised per update."""
    ent_coef: float = Field(default=0.0, ge=0)
    """Weight of the entropy."""
    vf_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    use_rms_prop: bool = True
    """RMSProp as TensorFlow has it, which A2C was published with, or else Adam."""
    rms_prop_eps: float = Field(default=1e-5, gt=0)
    """RMSProp's epsilon."""
    adam_epsilon: float = Field(default=1e-5, gt=0)
    """Adam's epsilon; of no effect with ``use_rms_prop``."""
    critic: Literal["same", "privileged"] = "same"
    """What the value function sees: the same as the policy, or the path's truth beside it
    (:mod:`ccgym.training.privileged_critic`). The policy that is exported is the same either way."""
    ortho_init: bool = True
    """Orthogonal initial weights."""
    log_std_init: float = 0.0
    """Logarithm of the initial standard deviation of a continuous action."""
    normalise: Normalise = Normalise()
    """Running normalisation."""

    @model_validator(mode="after")
    def _critic_fits(self) -> A2cConfig:
        if self.critic == "privileged" and self.normalise.observation:
            raise ConfigError(
                "critic: privileged with normalise.observation",
                expected="features that are not normalised by running statistics",
                hint="write critic: same",
            )
        return self

    @property
    @override
    def normalisation(self) -> Normalise:
        return self.normalise

    @property
    @override
    def discount(self) -> float:
        return self.gamma

    @property
    @override
    def privileged(self) -> bool:
        return self.critic == "privileged"


def build(config: A2cConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`."""
    from stable_baselines3 import A2C

    from ccgym.training.privileged_critic import PrivilegedCriticPolicy

    # SB3 sets RMSProp up itself, and then takes the optimiser's arguments for RMSProp's.
    adam = {} if config.use_rms_prop else {"eps": config.adam_epsilon}
    arguments = policy_arguments(config, ortho_init=config.ortho_init, **adam)
    if config.use_rms_prop:
        del arguments["optimizer_kwargs"]
    with warnings.catch_warnings():
        # Whoever says --device cuda has his reasons.
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
            normalize_advantage=config.normalise_advantage,
            policy_kwargs={**arguments, "log_std_init": config.log_std_init},
            verbose=0,
            seed=None,
            device=device,
        )
