"""PPO: Stable-Baselines3's, or sb3-contrib's with an LSTM."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.actor_critic import ActorCritic
from ccgym.training.algorithms.base import (
    Lstm,
    Schedule,
    policy_arguments,
    schedule,
)

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class PpoConfig(ActorCritic):
    """PPO, with Stable-Baselines3's names."""

    name: Literal["ppo", "recurrent_ppo"] = "ppo"
    """SB3's PPO, or sb3-contrib's RecurrentPPO."""
    batch_size: int = Field(default=2048, ge=2)
    """Samples per gradient step."""
    n_epochs: int = Field(default=4, ge=1, le=1000)
    """Passes over the samples per update."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Bias against variance of the advantage."""
    clip_range: Schedule = 0.2
    """Limit of the probability ratio."""
    clip_range_vf: Schedule | None = None
    """Limit of the value function's change; none by default. In units of the reward."""
    normalize_advantage: bool = True
    """Whether advantages are standardized per batch."""
    target_kl: float | None = Field(default=None, gt=0)
    """Divergence at which an update stops early."""
    use_sde: bool = False
    """State-dependent exploration."""
    sde_sample_freq: int = Field(default=-1, ge=-1)
    """Steps between two samples of its noise; -1: once per update."""
    lstm: Lstm = Lstm()
    """The recurrent part; of no effect with ``ppo``."""

    @model_validator(mode="after")
    def _batches(self) -> PpoConfig:
        if self.n_envs * self.n_steps % self.batch_size:
            samples = self.n_envs * self.n_steps
            raise ConfigError(
                f"batch_size {self.batch_size} does not divide the {samples} samples of an update "
                f"(n_envs {self.n_envs} × n_steps {self.n_steps})",
                expected="equal batches",
                hint=f"batch_size {_nearest_divisor(samples, self.batch_size)} would do",
            )
        return self

    @property
    @override
    def memory(self) -> Lstm | None:
        return self.lstm if self.name == "recurrent_ppo" else None


def build(config: PpoConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import PPO

    from ccgym.training.privileged_critic import PrivilegedCriticPolicy

    common: dict[str, Any] = {
        "env": env,
        "learning_rate": schedule(config.learning_rate),
        "n_steps": config.n_steps,
        "batch_size": config.batch_size,
        "n_epochs": config.n_epochs,
        "gamma": config.gamma,
        "gae_lambda": config.gae_lambda,
        "clip_range": schedule(config.clip_range),
        "clip_range_vf": None if config.clip_range_vf is None else schedule(config.clip_range_vf),
        "normalize_advantage": config.normalize_advantage,
        "ent_coef": config.ent_coef,
        "vf_coef": config.vf_coef,
        "max_grad_norm": config.max_grad_norm,
        "target_kl": config.target_kl,
        "use_sde": config.use_sde,
        "sde_sample_freq": config.sde_sample_freq,
        "device": device,
        "verbose": 0,
        "seed": None,
        "policy_kwargs": {
            **policy_arguments(config, ortho_init=config.ortho_init, eps=config.adam_epsilon),
            "log_std_init": config.log_std_init,
        },
    }
    with warnings.catch_warnings():
        # A GPU was asked for.
        warnings.filterwarnings("ignore", message="You are trying to run PPO on the GPU")
        if config.name == "recurrent_ppo":
            return RecurrentPPO("MlpLstmPolicy", **common)
        return PPO(PrivilegedCriticPolicy if config.privileged else "MlpPolicy", **common)


def _nearest_divisor(number: int, wanted: int) -> int:
    divisors = [d for d in range(2, min(number, 10**6) + 1) if number % d == 0] or [number]
    return min(divisors, key=lambda d: abs(d - wanted))
