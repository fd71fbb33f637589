"""Export of a training run, a plain Stable-Baselines3 model or an external network as a scheme: ``NAME.onnx``, and its
card ``NAME.json``.

The graph contains everything between the features and the action (:mod:`ccgym.training.onnx_graph`), the card all other
data (:mod:`ccgym.schemes.policy_card`). Before files are written, the export is compared with the policy in torch
(:mod:`ccgym.training.parity`); if they differ, nothing is written. Equal runs give equal files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.files import atomic_write, disk_error
from ccgym.schemes import policies
from ccgym.schemes.groups import descriptions
from ccgym.schemes.policy_card import NAME_PATTERN, NOT_TRAINED_HERE, PolicyCard
from ccgym.schemes.registry import registry
from ccgym.training.config import PolicyStyle, TrainConfig
from ccgym.training.logs import read_rows, wall_clock
from ccgym.training.model import MODEL, load_model
from ccgym.training.parity import EPISODES, Parity, check_parity
from ccgym.training.run_directory import RunDirectory, environment
from ccgym.training.torch_policy import Exportable, exportable

MODELS: Final = ("best", "final")
"""Models of a run that can be exported."""

CURVE_COLUMNS: Final = ("step", "eval/mean_reward", "eval/fraction_of_oracle")
"""Columns of ``evaluations.csv`` in the card's learning curve."""


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    onnx: Path
    card: PolicyCard
    parity: Parity

    @property
    def card_file(self) -> Path:
        """The file of the card."""
        return policies.card_file(self.onnx)


def export_policy(
    run_dir: Path,
    out: Path | None = None,
    *,
    which: str = "best",
    name: str | None = None,
    episodes: int = EPISODES,
) -> Exported:
    """Export a run's policy as ``NAME.onnx`` with its card, if it decides like the trained policy.

    Args:
        run_dir: The run directory.
        out: The ``.onnx`` file, or a directory for it; by default ``RUN_DIR/export``.
        which: ``best``, the model of the best evaluation, or ``final``.
        name: Name of the policy; by default the name of the file ``out`` (except ``policy.onnx``), else the name in the
            configuration.
        episodes: Number of held-out episodes in the comparison.

    Raises:
        ConfigError: An argument is wrong, or the policy has parts that cannot be exported.
        ResultsError: The run has no such model, or it is damaged.
        ParityError: The exported policy would decide differently. Nothing was written.
        PlatformError: The files cannot be written.
    """
    if which not in MODELS:
        raise ConfigError("unknown-choice", f"model {shown(which)}", expected=f"one of {', '.join(MODELS)}")
    trained = load_model(run_dir, which)
    target = target_of(run_dir / policies.EXPORT_DIRECTORY, out, name, trained.config.name.lower())
    training = _training(RunDirectory(run_dir), trained.config, trained.card, which)
    policy = exportable(trained.model.policy, trained.statistics)
    return export_checked(policy, trained.config, target, training, where=run_dir, episodes=episodes)


def export_checked(
    policy: Exportable,
    config: TrainConfig,
    target: tuple[Path, str],
    training: Mapping[str, Any],
    *,
    where: Path,
    episodes: int,
) -> Exported:
    """Write the policy of the agent that ``config`` deploys, if it passes the comparison."""
    if episodes < 1:
        raise ConfigError("out-of-range", f"{episodes} episodes", where="episodes", expected="at least one")
    file, name = target
    deployed = config.deployment.applied_to(config.agent)
    agent = deployed.native()
    _require_bounds(policy, agent)
    network = policy.onnx(name)
    style = policy_style(config, name)
    card = PolicyCard(
        name=name,
        label=style.label or name[:1].upper() + name[1:],
        color=style.color,
        marker=style.marker,
        summary=style.summary
        or (f"Learned in {training['steps']:,} decisions." if training else "Not trained by ccgym."),
        reference=style.reference or ("trained by ccgym" if training else NOT_TRAINED_HERE),
        agent=agent,
        policy=policy.shape,
        onnx_sha256=hashlib.sha256(network).hexdigest(),
        profile=config.environment.learner.profile,
        ack_every=config.environment.learner.ack_every,
        versions={**environment()["versions"], "onnx": version("onnx")},
        training=training,
    )
    parity = check_parity(
        policy,
        policies.from_parts(network, card, file),
        Settings.of(config.environment, deployed).at(1.0),
        config.evaluation.seed,
        episodes,
    )
    parity.require(str(where))
    card = card.model_copy(update={"parity": parity.as_dict()})
    _write(file, network, card)
    return Exported(onnx=file, card=card, parity=parity)


def policy_style(config: TrainConfig, name: str) -> PolicyStyle:
    """Return the style of a policy: the configuration's, unless this belongs to a scheme with another name."""
    label = config.style.label
    of_another = any(row["label"] == label and row["name"] != name for row in descriptions())
    return PolicyStyle() if of_another or name != config.name.lower() else config.style


def target_of(usual: Path, out: Path | None, name: str | None, default: str) -> tuple[Path, str]:
    """Return the ``.onnx`` file to write, and the policy's name; ``usual`` is the default folder."""
    is_file = out is not None and out.suffix == ".onnx"
    if name is None:
        name = out.stem if is_file and out is not None and out.name != policies.POLICY_FILE else default
    folder = usual if out is None else out
    file = folder if is_file else folder / f"{name}.onnx"
    is_valid = NAME_PATTERN.fullmatch(name)
    if not is_valid or name in registry():
        raise ConfigError(
            "name-taken",
            f"a policy called {shown(name)}",
            expected="a name that no scheme has" if is_valid else "small letters, digits, . _ and -",
            hint="set another name with --name",
        )
    return file, name


def _require_bounds(policy: Exportable, agent: Mapping[str, Any]) -> None:
    """Raise :class:`ConfigError` unless the network's actions have the same limits as the flow agent's."""
    if policy.bounds is None:
        return
    low, high = agent["action"].get("bounds") or (-1.0, 1.0)
    # Spaces contain float32.
    if not (np.all(policy.bounds[0] == np.float32(low)) and np.all(policy.bounds[1] == np.float32(high))):
        found = ", ".join(f"{a:g} … {b:g}" for a, b in zip(*policy.bounds, strict=True))
        raise ConfigError(
            "action-out-of-range",
            f"the policy's actions are in {found}",
            expected=f"{low:g} … {high:g}, as in the agent's configuration",
            hint="the configuration was changed after training: train again, or change it back",
        )


def _training(run: RunDirectory, config: TrainConfig, model: Mapping[str, Any], which: str) -> dict[str, Any]:
    """Return the card's entries on the training; entries that the run directory does not contain are left out."""
    checkpoint = run.path / which / MODEL
    made: dict[str, Any] = {
        "config": yaml.safe_load(run.config.read_text(encoding="utf-8")),
        "seed": config.training.seed,
        "steps": model.get("step"),
        "mean_reward": model.get("mean_reward"),
        "fraction_of_oracle": model.get("fraction_of_oracle"),
        "wall_s": None,
        "curve": None,
        "checkpoint": {
            "file": f"{which}/{MODEL}",
            "sha256": hashlib.sha256(checkpoint.read_bytes()).hexdigest(),
        },
    }
    # Copies of a run directory may be incomplete.
    with suppress(ResultsError):
        made["wall_s"] = max(wall_clock(run.progress).values(), default=None)
    with suppress(ResultsError):
        rows = read_rows(run.evaluations)
        made["curve"] = [[_number(row.get(column)) for column in CURVE_COLUMNS] for row in rows] or None
    with suppress(ResultsError, KeyError):
        maker = run.read_json(run.path / "versions.json")
        made |= {"machine": maker["machine"], "commit": maker["git"], "versions": maker["versions"]}
    return {name: value for name, value in made.items() if value is not None}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return int(value) if value.is_integer() else value if np.isfinite(value) else None


def _write(file: Path, network: bytes, card: PolicyCard) -> None:
    """Write both files, each atomically; the hash in the card shows if the files are from different exports."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, file.parent) from None
    atomic_write(file, network)
    atomic_write(policies.card_file(file), card.to_json())
