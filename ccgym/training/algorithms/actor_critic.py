"""PPO and A2C: Stable-Baselines3's, and sb3-contrib's PPO with an LSTM."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C

from ccgym.training.algorithms.base import policy_arguments, schedule
from ccgym.training.algorithms.config import A2cConfig, PpoConfig
from ccgym.training.algorithms.ppo import NativePPO
from ccgym.training.privileged_critic import PrivilegedCriticPolicy

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


def build(config: PpoConfig | A2cConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`."""
    kind: Any = {"ppo": NativePPO, "recurrent_ppo": RecurrentPPO, "a2c": A2C}[config.name]
    # The settings have SB3's names.
    known = inspect.signature(kind).parameters.keys() & type(config).model_fields.keys()
    settings: dict[str, Any] = {name: schedule(getattr(config, name)) for name in known}
    arguments = policy_arguments(config, ortho_init=config.ortho_init, eps=config.adam_epsilon)
    parts = isinstance(config, PpoConfig) and config.gradient_threads > 1 and device == "cpu"
    if parts:
        arguments["optimizer_kwargs"]["fused"] = True
    if isinstance(config, A2cConfig) and config.use_rms_prop:
        # SB3 sets RMSProp up itself, and then takes the optimizer's arguments for RMSProp's.
        del arguments["optimizer_kwargs"]
    policy: Any = PrivilegedCriticPolicy if config.privileged else "MlpPolicy"
    with warnings.catch_warnings():
        # A GPU was asked for.
        warnings.filterwarnings("ignore", message="You are trying to run (PPO|A2C) on the GPU")
        model: OnPolicyAlgorithm = kind(
            policy if config.memory is None else "MlpLstmPolicy",
            env,
            policy_kwargs={**arguments, "log_std_init": config.log_std_init},
            device=device,
            **settings,
        )
    if isinstance(model, NativePPO) and isinstance(config, PpoConfig) and parts:
        model.gradient_threads = config.gradient_threads
    return model
