"""The learner, built from a configuration; seeds, threads, device, hashes, and what it keeps between updates.

The same seed gives the same weights, byte for byte, on the same machine and versions: torch is told to use
deterministic algorithms and a fixed number of threads, on which sums of floats depend.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3 import A2C
from stable_baselines3.common.utils import set_random_seed

from ccgym.errors import ConfigError, shown
from ccgym.training.algorithms.base import policy_arguments, schedule
from ccgym.training.algorithms.config import A2cConfig, AlgorithmBase, NetworkAlgorithm, PpoConfig
from ccgym.training.algorithms.cross_entropy import CrossEntropyLearner
from ccgym.training.algorithms.dagger import DaggerLearner
from ccgym.training.algorithms.distill import DistillLearner
from ccgym.training.checkpoint import plain, with_arrays
from ccgym.training.ppo import NativePPO
from ccgym.training.privileged_critic import PrivilegedCriticPolicy
from ccgym.training.streams import stream_seed

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


def set_up_torch(threads: int) -> None:
    """Make torch reproducible: deterministic algorithms, and as many threads as were asked for."""
    torch.set_num_threads(threads)
    # What CUDA's matrix library asks for before it is deterministic; read when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # What has no deterministic form says so once instead of failing; none of our networks uses such a thing.
    torch.use_deterministic_algorithms(True, warn_only=True)


DAMAGE: Final = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, EOFError, pickle.UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip
"""What torch, SB3 and zipfile raise for a file that does not hold weights. Nothing in it is ever unpickled."""


NO_WEIGHTS: Final = (OSError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)
"""Those of a file of something else; weights of other networks raise the others, too."""


def what_is_damaged(error: Exception) -> str:
    """One line that says what is wrong with a file of weights."""
    if isinstance(error, pickle.UnpicklingError):
        return "holds more than weights, and is not unpickled"
    return f"is damaged: {(str(error).splitlines() or [type(error).__name__])[0]}"


def choose_device(wanted: str, algorithm: AlgorithmBase) -> str:
    """The device to train on.

    Args:
        wanted: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        algorithm: ``auto`` takes a GPU only for recurrent policies and for wide networks: with 64 environments and a
            layer of 64 units, moving the data takes longer than the sums.

    Raises:
        ConfigError: There is no such device.
    """
    if wanted == "auto":
        layers = (*algorithm.net_arch.pi, *algorithm.net_arch.vf) if isinstance(algorithm, NetworkAlgorithm) else ()
        wide = max(layers, default=0) >= 1024
        recurrent = algorithm.memory is not None and algorithm.memory.hidden_size >= 256
        return "cuda" if torch.cuda.is_available() and (wide or recurrent) else "cpu"
    try:
        torch.empty(1, device=wanted)
    except (RuntimeError, AssertionError):
        have = ["auto", "cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise ConfigError(
            "unknown-device", f"no device {shown(wanted)}", expected=", ".join(have), where="--device"
        ) from None
    return wanted


LEARNERS: Final[Mapping[str, Any]] = {
    "ppo": NativePPO,
    "recurrent_ppo": RecurrentPPO,
    "a2c": A2C,
    "dagger": DaggerLearner,
    "distill": DistillLearner,
    "cross_entropy": CrossEntropyLearner,
}
"""What learns, by ``algorithm.name``."""


def build_model(algorithm: AlgorithmBase, env: VecEnv, seed: int, device: str) -> OnPolicyAlgorithm:
    """Build the learner. Seeds Python's, numpy's and torch's global generators; the environments are left alone.

    Args:
        algorithm: The section ``algorithm``.
        env: What it will learn in.
        seed: Root seed; initial weights come from its stream ``model``.
        device: Where its networks are: ``cpu``, ``cuda`` …

    Raises:
        ConfigError: The algorithm cannot learn such actions.
    """
    set_random_seed(stream_seed(seed, "model"))
    kind = LEARNERS[algorithm.name]
    made: OnPolicyAlgorithm
    if not isinstance(algorithm, (PpoConfig, A2cConfig)):
        made = kind(algorithm, env, device)
        return made
    # The settings have SB3's names.
    known = inspect.signature(kind).parameters.keys() & type(algorithm).model_fields.keys()
    settings: dict[str, Any] = {name: schedule(getattr(algorithm, name)) for name in known}
    arguments = policy_arguments(algorithm, ortho_init=algorithm.ortho_init, eps=algorithm.adam_epsilon)
    parts = algorithm.gradient_threads if isinstance(algorithm, PpoConfig) and device == "cpu" else 1
    if parts > 1:
        arguments["optimizer_kwargs"]["fused"] = True
    if isinstance(algorithm, A2cConfig) and algorithm.use_rms_prop:
        # SB3 sets RMSProp up itself, and then takes the optimizer's arguments for RMSProp's.
        del arguments["optimizer_kwargs"]
    policy: Any = PrivilegedCriticPolicy if algorithm.privileged else "MlpPolicy"
    with warnings.catch_warnings():
        # A GPU was asked for.
        warnings.filterwarnings("ignore", message="You are trying to run (PPO|A2C) on the GPU")
        made = kind(
            policy if algorithm.memory is None else "MlpLstmPolicy",
            env,
            policy_kwargs={**arguments, "log_std_init": algorithm.log_std_init},
            device=device,
            **settings,
        )
    if isinstance(made, NativePPO):
        made.gradient_threads = parts
    return made


def model_bytes(model: OnPolicyAlgorithm) -> bytes:
    """The model as SB3 saves it, optimizer included."""
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


def extra_state(model: OnPolicyAlgorithm) -> dict[str, Any]:
    """What else the next update of one of our learners depends on: numbers, text, tensors, and containers of them."""
    keep = getattr(model, "extra_state", None)
    return {} if keep is None else plain(keep())


def set_extra_state(model: OnPolicyAlgorithm, state: Mapping[str, Any]) -> None:
    """Give a learner what :func:`extra_state` took; tensors come back as arrays."""
    if state:
        model.set_extra_state(with_arrays(state))  # type: ignore[attr-defined]
