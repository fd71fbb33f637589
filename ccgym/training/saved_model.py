"""A model on disk, to be evaluated or exported: ``best/`` and ``final/`` of a run directory.

``model.zip`` is SB3's, ``vecnormalize.pkl`` (where features or rewards are normalized) too; ``model.json`` says
which step it is, what it reached, and the statistics of the features. Reading a model back unpickles nothing.
"""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stable_baselines3.common.vec_env import VecNormalize

from ccgym.errors import ConfigError, ResultsError
from ccgym.files import MAX_MODEL_BYTES, UnreadableError, read_bytes, write_directory
from ccgym.training import normalizer as normalizers
from ccgym.training.config import TrainConfig
from ccgym.training.model import DAMAGE, build_model, model_bytes, weights_hash, what_is_damaged
from ccgym.training.run_directory import RunDirectory, open_run
from ccgym.training.streams import generators_kept

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

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
    """How features are normalized: see :func:`ccgym.training.normalizer.observation_statistics`."""
    card: dict[str, Any]
    """Step, reward, fraction of the oracle's reward, network metrics, hash of the weights."""


def write_model(
    directory: Path, model: OnPolicyAlgorithm, normalizer: VecNormalize | None, facts: dict[str, Any]
) -> None:
    """Write a model in place of the one that is there.

    Args:
        directory: ``best/`` or ``final/``.
        model: The learner.
        normalizer: Its normalizer, if it has one.
        facts: What to say of it in ``model.json``.

    Raises:
        PlatformError: The disk is full. The old model is untouched.
    """
    card = {
        **facts,
        "weights_sha256": weights_hash(model),
        "observation": normalizers.observation_statistics(normalizer),
    }
    files = {MODEL: model_bytes(model), CARD: (json.dumps(card, indent=1, allow_nan=False) + "\n").encode()}
    if normalizer is not None:
        files[NORMALIZER] = pickle.dumps(normalizer)  # as SB3's ``VecNormalize.save`` writes it
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
    except FileNotFoundError:
        raise _damaged(directory / MODEL, "no such file") from None
    except UnreadableError as error:
        raise _damaged(directory / MODEL, str(error)) from None
    except DAMAGE as error:
        raise _damaged(directory / MODEL, what_is_damaged(error)) from None
    if weights_hash(model) != card.get("weights_sha256"):
        raise _damaged(directory / MODEL, f"does not match its hash in {CARD}")
    return TrainedModel(config, model, card.get("observation"), card)


def start_from(model: OnPolicyAlgorithm, run_dir: Path) -> None:
    """Give a new model the networks, and the features' statistics, of the best one of another run.

    The optimizer and the normalizer of rewards start fresh: theirs belonged to the other run's environments.

    Args:
        model: The learner; its normalizer, if it has one, is changed too.
        run_dir: The other run.

    Raises:
        ConfigError: There is no such run, or its networks differ.
        ResultsError: It has no model, or a damaged one.
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
            hint=f"--config {run_dir}/config.yaml has them",
        ) from None
    normalizers.start_from(model.get_vec_normalize_env(), known.statistics, int(known.card.get("step", 0)))


def read_card(run: RunDirectory, which: str = "best") -> dict[str, Any]:
    """What ``model.json`` says of a model."""
    file = run.path / which / CARD
    if not file.is_file():
        raise ResultsError(
            "results-unfinished",
            "there is no trained model yet",
            where=str(file.parent),
            expected=f"{CARD}, which the first evaluation writes",
            hint=f"train on with --resume {run.path}",
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
