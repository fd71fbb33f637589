"""Policies that ccgym did not train, as schemes: models that Stable-Baselines3 saved, and networks of anyone's.

They take the road of every export: the graph, its card, the comparison (:mod:`ccgym.training.export`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ccgym.contrib.foreign_network import load_foreign
from ccgym.contrib.sb3_model import load_sb3
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.export import Exported, export_checked, export_policy, target_of
from ccgym.training.parity import EPISODES


def export_any(
    source: Path,
    out: Path | None = None,
    *,
    config: TrainConfig | None = None,
    which: str | None = None,
    algorithm: str | None = None,
    normalize: Path | None = None,
    name: str | None = None,
    episodes: int = EPISODES,
) -> Exported:
    """Export a policy as ``NAME.onnx`` with its card, if the scheme does what the given policy does.

    Args:
        source: A run directory; ``MODEL.zip``, what SB3's ``model.save`` wrote; or ``NETWORK.onnx``, a network in
            float32 that was made outside ccgym, as ``torch.onnx.export`` writes one.
        out: The ``.onnx`` file, or a directory to put it into; by default ``RUN_DIR/export``, or the file's folder.
        config: Of a file: its agent says what the network's numbers mean, its environment where the two are compared.
        which: Of a run: ``best`` or ``final``.
        algorithm: Of a model: ``ppo``, ``a2c``, ``sac`` or ``td3``; by default what the file says.
        normalize: Of a model: what ``VecNormalize.save`` wrote, if it was trained behind one.
        name: What to call it; by default as ``out`` if that is a file, else as the configuration, or as the model's
            file.
        episodes: Held-out episodes of the comparison.

    Raises:
        As :func:`ccgym.training.export.export_policy`; and ConfigError where an argument does not go with the source.
    """
    export: Any = {".zip": _export_model, ".onnx": _export_network}.get(source.suffix, _export_run)
    given = {"config": config, "which": which, "algorithm": algorithm, "normalize": normalize}
    for option, value in given.items():
        if value is not None and option not in _OPTIONS[export]:
            raise ConfigError(
                "options-conflict",
                f"--{option.replace('which', 'model')} with {source}",
                expected="a run directory" if option == "which" else "a file, MODEL.zip or NETWORK.onnx",
                hint="leave it out",
            )
    if "config" in _OPTIONS[export] and config is None:
        raise ConfigError(
            "option-needed",
            f"{source} without a configuration",
            where="--config",
            expected="the configuration with its agent: clock, features, action",
            hint=f"ccgym train export {source} --config aurora.yaml, for example",
        )
    made: Exported = export(source, out, name, episodes, **{option: given[option] for option in _OPTIONS[export]})
    return made


def _export_run(run_dir: Path, out: Path | None, name: str | None, episodes: int, which: str | None) -> Exported:
    return export_policy(run_dir, out, which=which or "best", name=name, episodes=episodes)


def _export_model(
    file: Path,
    out: Path | None,
    name: str | None,
    episodes: int,
    config: TrainConfig,
    algorithm: str | None,
    normalize: Path | None,
) -> Exported:
    plain = load_sb3(file, config, algorithm=algorithm, normalize=normalize)
    target = target_of(file.parent, out, name, file.stem.lower())
    described = yaml.safe_load(config.as_yaml())
    training = {
        # Those that say how `ccgym train` would have trained it are left out.
        "config": {key: described[key] for key in ("name", "agent", "environment") if key in described},
        "algorithm": plain.algorithm,
        "steps": int(plain.model.num_timesteps),
        "checkpoint": {"file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
    }
    return export_checked(plain.exportable(), config, target, training, where=file, episodes=episodes)


def _export_network(file: Path, out: Path | None, name: str | None, episodes: int, config: TrainConfig) -> Exported:
    target = target_of(file.parent, out, name, config.name.lower())
    if target[0].resolve() == file.resolve():
        raise ConfigError(
            "name-taken",
            f"{target[0]} is the given network",
            expected="another name for what is made of it",
            hint="name the configuration otherwise, or say --name or -o",
        )
    described = config.agent.describe()
    policy = load_foreign(file, len(described["observation"]), len(described["action"]))
    return export_checked(policy, config, target, {}, where=file, episodes=episodes)


_OPTIONS: Final[Mapping[Any, tuple[str, ...]]] = {
    _export_run: ("which",),
    _export_model: ("config", "algorithm", "normalize"),
    _export_network: ("config",),
}
"""What else each of them takes."""
