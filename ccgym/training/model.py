"""The learner: SB3's PPO, or sb3-contrib's RecurrentPPO, built from a configuration; seeds, threads, device, hashes.

The same seed gives the same weights, byte for byte, on the same machine and versions: torch is told to use
deterministic algorithms and a fixed number of threads, on which sums of floats depend.
"""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from typing import TYPE_CHECKING, Any, Final

import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3 import PPO
from stable_baselines3.common.utils import LinearSchedule, set_random_seed

from ccgym.errors import ConfigError, shown
from ccgym.training.config import AlgorithmConfig, Linear, Schedule
from ccgym.training.privileged_critic import PrivilegedCriticPolicy
from ccgym.training.streams import stream_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

_ACTIVATIONS: Final = {
    "tanh": torch.nn.Tanh,
    "relu": torch.nn.ReLU,
    "elu": torch.nn.ELU,
    "silu": torch.nn.SiLU,
}


def set_up_torch(threads: int) -> None:
    """Make torch reproducible: deterministic algorithms, and as many threads as were asked for."""
    torch.set_num_threads(threads)
    # What CUDA's matrix library asks for before it is deterministic; read when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # What has no deterministic form says so once instead of failing; none of our networks uses such a thing.
    torch.use_deterministic_algorithms(True, warn_only=True)


def choose_device(wanted: str, algorithm: AlgorithmConfig) -> str:
    """The device to train on.

    Args:
        wanted: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        algorithm: ``auto`` takes a GPU only for recurrent policies and for wide networks: with 64 environments and a
            layer of 64 units, moving the data takes longer than the sums.

    Raises:
        ConfigError: There is no such device.
    """
    if wanted == "auto":
        wide = max((*algorithm.net_arch.pi, *algorithm.net_arch.vf), default=0) >= 1024
        recurrent = algorithm.name == "recurrent_ppo" and algorithm.lstm.hidden_size >= 256
        return "cuda" if torch.cuda.is_available() and (wide or recurrent) else "cpu"
    try:
        torch.empty(1, device=wanted)
    except (RuntimeError, AssertionError):
        have = ["auto", "cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise ConfigError(f"no device {shown(wanted)}", expected=", ".join(have), where="--device") from None
    return wanted


def build_model(algorithm: AlgorithmConfig, env: VecEnv, seed: int, device: str) -> OnPolicyAlgorithm:
    """Build the learner. Seeds Python's, numpy's and torch's global generators; the environments are left alone.

    Args:
        algorithm: Its hyper-parameters.
        env: What it will learn in.
        seed: Root seed; initial weights come from its stream ``model``.
        device: As :func:`choose_device` says.
    """
    policy: dict[str, Any] = {
        "net_arch": algorithm.net_arch.model_dump(mode="json"),
        "activation_fn": _ACTIVATIONS[algorithm.activation],
        "ortho_init": algorithm.ortho_init,
        "log_std_init": algorithm.log_std_init,
        "optimizer_kwargs": {"eps": algorithm.adam_epsilon},
    }
    common: dict[str, Any] = {
        "env": env,
        "learning_rate": schedule(algorithm.learning_rate),
        "n_steps": algorithm.n_steps,
        "batch_size": algorithm.batch_size,
        "n_epochs": algorithm.n_epochs,
        "gamma": algorithm.gamma,
        "gae_lambda": algorithm.gae_lambda,
        "clip_range": schedule(algorithm.clip_range),
        "clip_range_vf": None if algorithm.clip_range_vf is None else schedule(algorithm.clip_range_vf),
        "normalize_advantage": algorithm.normalise_advantage,
        "ent_coef": algorithm.ent_coef,
        "vf_coef": algorithm.vf_coef,
        "max_grad_norm": algorithm.max_grad_norm,
        "target_kl": algorithm.target_kl,
        "use_sde": algorithm.use_sde,
        "sde_sample_freq": algorithm.sde_sample_freq,
        "device": device,
        "verbose": 0,
        "seed": None,
    }
    set_random_seed(stream_seed(seed, "model"))
    with warnings.catch_warnings():
        # Whoever says --device cuda has his reasons.
        warnings.filterwarnings("ignore", message="You are trying to run PPO on the GPU")
        if algorithm.name == "ppo":
            kind = PrivilegedCriticPolicy if algorithm.critic == "privileged" else "MlpPolicy"
            model: OnPolicyAlgorithm = PPO(kind, policy_kwargs=policy, **common)
        else:
            lstm = algorithm.lstm
            policy |= {
                "lstm_hidden_size": lstm.hidden_size,
                "n_lstm_layers": lstm.layers,
                "shared_lstm": lstm.critic == "shared",
                "enable_critic_lstm": lstm.critic == "own",
            }
            model = RecurrentPPO("MlpLstmPolicy", policy_kwargs=policy, **common)
    return model


def schedule(value: Schedule) -> float | Callable[[float], float]:
    """SB3's form of a schedule: a number, or a function of the share of the run that remains."""
    return LinearSchedule(value.linear[0], value.linear[1], 1.0) if isinstance(value, Linear) else value


def model_bytes(model: OnPolicyAlgorithm) -> bytes:
    """The model as SB3 saves it, optimiser included."""
    buffer = io.BytesIO()
    # The last observations and episode statistics are in the checkpoint's own state.
    model.save(buffer, exclude=["_last_obs", "_last_original_obs", "_last_episode_starts", "_last_lstm_states",
                                "ep_info_buffer", "ep_success_buffer"])  # fmt: skip
    return buffer.getvalue()


def weights_hash(model: OnPolicyAlgorithm) -> str:
    """SHA-256 of all parameters, by name: equal exactly if two runs learned the same."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def recurrent_state(model: OnPolicyAlgorithm) -> list[torch.Tensor] | None:
    """Hidden states of a recurrent policy between two updates: policy's h and c, value function's h and c."""
    states = getattr(model, "_last_lstm_states", None)
    return None if states is None else [tensor.cpu() for pair in states for tensor in pair]


def set_recurrent_state(model: OnPolicyAlgorithm, state: list[torch.Tensor] | None) -> None:
    """Give a recurrent policy the states of :func:`recurrent_state`."""
    if state is not None:
        pi_h, pi_c, vf_h, vf_c = (tensor.to(model.device) for tensor in state)
        model._last_lstm_states = RNNStates((pi_h, pi_c), (vf_h, vf_c))  # type: ignore[attr-defined]
