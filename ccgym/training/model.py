"""The learner from a configuration, and models on disk; threads, device, hashes.

The same seed gives the same weights, byte for byte, on the same machine with the same versions: torch must use
deterministic algorithms and a fixed number of threads, since sums of floats depend on it.

A model on disk, ``best/`` or ``final/`` of a run directory, can be evaluated or exported. ``model.zip`` has SB3's
format, and so has ``vecnormalize.pkl`` (if features or rewards are normalized). ``model.json`` contains the step, the
results, and the statistics of the features. Models are read without unpickling.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import pickle
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3 import A2C
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize

from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.files import MAX_MODEL_BYTES, UnreadableError, read_bytes, write_directory
from ccgym.training import normalizer as normalizers
from ccgym.training.algorithms.config import A2cConfig, AlgorithmBase, NetworkAlgorithm, PpoConfig
from ccgym.training.algorithms.cross_entropy import CrossEntropyLearner
from ccgym.training.algorithms.dagger import DaggerLearner, DistillLearner
from ccgym.training.algorithms.supervised import policy_arguments, schedule
from ccgym.training.checkpoint import plain, with_arrays
from ccgym.training.config import TrainConfig
from ccgym.training.ppo import NativePPO
from ccgym.training.privileged_critic import PrivilegedCriticPolicy
from ccgym.training.run_directory import RunDirectory, open_run
from ccgym.training.streams import generators_kept, stream_seed

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


def set_up_torch(threads: int) -> None:
    """Make torch reproducible: set deterministic algorithms and the number of threads."""
    torch.set_num_threads(threads)
    # CUDA's matrix library needs this to be deterministic; it is read on first use.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # Operations without a deterministic form warn once instead of failing; ccgym's networks use no such operation.
    torch.use_deterministic_algorithms(True, warn_only=True)


DAMAGE: Final = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, EOFError, pickle.UnpicklingError,
    zipfile.BadZipFile,
)  # fmt: skip
"""Errors of torch, SB3 and zipfile for a file that does not contain weights. Files are never unpickled."""


def what_is_damaged(error: Exception) -> str:
    """Return one line that describes the damage of a file of weights."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, UnreadableError):
        return str(error)
    if isinstance(error, pickle.UnpicklingError):
        return "contains more than weights, and is not unpickled"
    return f"is damaged: {(str(error).splitlines() or [type(error).__name__])[0]}"


def choose_device(wanted: str, algorithm: AlgorithmBase) -> str:
    """Return the device of the training.

    Args:
        wanted: ``auto``, ``cpu``, ``cuda``, ``cuda:1`` …
        algorithm: ``auto`` uses a GPU only for recurrent policies and for wide networks: with 64 environments and a
            layer of 64 units, moving the data takes longer than the computation.

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
"""Classes of learners, by ``algorithm.name``."""


def build_model(algorithm: AlgorithmBase, env: VecEnv, seed: int, device: str) -> OnPolicyAlgorithm:
    """Build the learner. Seeds Python's, numpy's and torch's global generators, but not the environments.

    Args:
        algorithm: The section ``algorithm``.
        env: The training environments.
        seed: Root seed; initial weights come from its stream ``model``.
        device: Device of its networks: ``cpu``, ``cuda`` …

    Raises:
        ConfigError: The algorithm cannot learn the agent's kind of actions.
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
        # SB3 creates RMSProp itself, and then uses the optimizer's arguments for RMSProp.
        del arguments["optimizer_kwargs"]
    policy: Any = PrivilegedCriticPolicy if algorithm.privileged else "MlpPolicy"
    with warnings.catch_warnings():
        # The user chose a GPU.
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
    """Return the model in SB3's format, including the optimizer."""
    buffer = io.BytesIO()
    # The last observations and episode statistics are in the checkpoint's ``state.pt``.
    model.save(buffer, exclude=["_last_obs", "_last_original_obs", "_last_episode_starts", "_last_lstm_states",
                                "ep_info_buffer", "ep_success_buffer"])  # fmt: skip
    return buffer.getvalue()


def weights_hash(model: OnPolicyAlgorithm) -> str:
    """Return the SHA-256 of all parameters, by name: equal exactly if two runs have the same weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.policy.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def learner_state(model: OnPolicyAlgorithm) -> dict[str, Any]:
    """Return all that the next update needs, except weights and optimizer: numbers, text, tensors, containers."""
    recurrent = getattr(model, "_last_lstm_states", None)
    extra = getattr(model, "extra_state", dict)
    return {
        "gradient_updates": model._n_updates,
        "progress_remaining": model._current_progress_remaining,
        "observations": plain(model._last_obs),
        "starts": plain(model._last_episode_starts),
        # The policy's h and c, then the value function's.
        "recurrent": None if recurrent is None else [tensor.cpu() for pair in recurrent for tensor in pair],
        "learner": plain(extra()),
        "episodes": [(float(one["r"]), int(one["l"])) for one in model.ep_info_buffer or ()],
    }


def set_learner_state(model: Any, state: Mapping[str, Any]) -> None:
    """Continue from the result of :func:`learner_state`."""
    model._n_updates = state["gradient_updates"]
    model._current_progress_remaining = state["progress_remaining"]
    model._last_obs, model._last_episode_starts = (with_arrays(state[name]) for name in ("observations", "starts"))
    if state["recurrent"] is not None:
        pi_h, pi_c, vf_h, vf_c = (tensor.to(model.device) for tensor in state["recurrent"])
        model._last_lstm_states = RNNStates((pi_h, pi_c), (vf_h, vf_c))
    if state["learner"]:
        model.set_extra_state(with_arrays(state["learner"]))
    model.ep_info_buffer.extend({"r": reward, "l": length} for reward, length in state["episodes"])


MODEL: Final = "model.zip"
NORMALIZER: Final = "vecnormalize.pkl"
CARD: Final = "model.json"


@dataclass(frozen=True)
class TrainedModel:
    """A model of a run, ready to act."""

    config: TrainConfig
    model: OnPolicyAlgorithm
    """SB3's model, on the CPU; ``model.policy`` takes normalized features."""
    statistics: dict[str, Any] | None
    """Normalization of features: see :func:`ccgym.training.normalizer.observation_statistics`."""
    card: dict[str, Any]
    """Step, reward, fraction of the oracle's reward, network metrics, hash of the weights."""


def write_model(
    directory: Path, model: OnPolicyAlgorithm, normalizer: VecNormalize | None, facts: dict[str, Any]
) -> None:
    """Write a model and replace the existing one.

    Args:
        directory: ``best/`` or ``final/``.
        model: The learner.
        normalizer: Its normalizer, if it has one.
        facts: Entries of ``model.json``.

    Raises:
        PlatformError: The disk is full. The old model stays unchanged.
    """
    card = {
        **facts,
        "weights_sha256": weights_hash(model),
        "observation": normalizers.observation_statistics(normalizer),
    }
    files = {MODEL: model_bytes(model), CARD: (json.dumps(card, indent=1, allow_nan=False) + "\n").encode()}
    if normalizer is not None:
        files[NORMALIZER] = pickle.dumps(normalizer)  # the format of SB3's ``VecNormalize.save``
    write_directory(directory, files)


def load_model(run_dir: Path, which: str = "best") -> TrainedModel:
    """Read a model of a run.

    Args:
        run_dir: The run directory.
        which: ``best`` or ``final``.

    Raises:
        ConfigError: There is no such run.
        ResultsError: There is no such model, or it is damaged.
    """
    from ccgym.training.environments import Environments

    run = open_run(run_dir)
    directory = run.path / which
    config = TrainConfig.load(run.config)
    card = read_card(run, which)
    try:
        with generators_kept():
            env = Environments(config).training()
            model = build_model(config.algorithm, env, config.training.seed, "cpu")
            model.set_parameters(io.BytesIO(read_bytes(directory / MODEL, MAX_MODEL_BYTES)), device="cpu")  # type: ignore[arg-type]
            env.close()
    except DAMAGE as error:
        raise _damaged(directory / MODEL, what_is_damaged(error)) from None
    if weights_hash(model) != card.get("weights_sha256"):
        raise _damaged(directory / MODEL, f"does not match its hash in {CARD}")
    return TrainedModel(config, model, card.get("observation"), card)


def start_from(model: OnPolicyAlgorithm, run_dir: Path) -> None:
    """Copy the networks, and the statistics of the features, of another run's best model into a new model.

    The optimizer and the normalizer of rewards start new: their state depends on the other run's environments.

    Args:
        model: The learner; its normalizer, if it has one, is changed too.
        run_dir: The other run.

    Raises:
        ConfigError: There is no such run, or its networks differ.
        ResultsError: The run has no model, or its model is damaged.
    """
    known = load_model(run_dir)
    try:
        model.policy.load_state_dict(known.model.policy.state_dict())
    except RuntimeError as error:
        raise ConfigError(
            "shape-mismatch",
            f"the networks of {run_dir} do not fit: {str(error).splitlines()[-1].strip()}",
            where="training.start_from",
            expected="the same agent, algorithm.name, net_arch and critic in both runs",
            hint=f"see {run_dir}/config.yaml",
        ) from None
    normalizer, statistics = model.get_vec_normalize_env(), known.statistics
    if normalizer is not None and normalizer.norm_obs and statistics is not None:
        moments: Any = normalizer.obs_rms
        moments.mean, moments.var = np.array(statistics["mean"]), np.array(statistics["variance"])
        moments.count = float(max(int(known.card.get("step", 0)), 1))  # the weight of the other run's observations


def read_card(run: RunDirectory, which: str = "best") -> dict[str, Any]:
    """Return the contents of a model's ``model.json``."""
    file = run.path / which / CARD
    if not file.is_file():
        raise ResultsError(
            "results-unfinished",
            "there is no trained model yet",
            where=str(file.parent),
            expected=f"{CARD}, which the first evaluation writes",
            hint=f"continue the training with --resume {run.path}",
        )
    return run.read_json(file)


def _damaged(file: Path, reason: str) -> ResultsError:
    return ResultsError(
        "results-damaged",
        reason,
        where=str(file),
        expected="a model that `ccgym train` wrote",
        hint="`ccgym train --resume` writes it again at the next best evaluation",
    )
