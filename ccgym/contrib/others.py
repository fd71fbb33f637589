"""Export policies that ccgym did not train as schemes: models from Stable-Baselines3, and networks from any program.

The steps are the same as for every export: the graph, its card, the comparison (:mod:`ccgym.training.export`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from ccgym.contrib.foreign_network import load_foreign
from ccgym.contrib.sb3_model import load_sb3
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.export import Exported, export_checked, export_policy, target_of
from ccgym.training.parity import EPISODES
from ccgym.training.torch_policy import Exportable


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
    """Export a policy as ``NAME.onnx`` with its card, if the scheme decides as the given policy does.

    Args:
        source: A run directory; ``MODEL.zip``, a file from SB3's ``model.save``; or ``NETWORK.onnx``, a network in
            float32 from another program, as ``torch.onnx.export`` writes it.
        out: The ``.onnx`` file, or a directory for it; by default ``RUN_DIR/export``, or the file's folder.
        config: For a file: its agent describes the network's inputs and outputs, its environment is for the comparison.
        which: For a run: ``best`` or ``final``.
        algorithm: For a model: ``ppo``, ``a2c``, ``sac`` or ``td3``; by default as in the file.
        normalize: For a model: the file of ``VecNormalize.save``, if the model was trained with ``VecNormalize``.
        name: Name of the scheme; by default the name of ``out`` if this is a file, otherwise of the configuration, or
            of the model's file.
        episodes: Number of held-out episodes for the comparison.

    Raises:
        As :func:`ccgym.training.export.export_policy`; and ConfigError if an argument does not fit the source.
    """
    takes = {".zip": ("config", "algorithm", "normalize"), ".onnx": ("config",)}.get(source.suffix, ("which",))
    given = {"config": config, "which": which, "algorithm": algorithm, "normalize": normalize}
    for option, value in given.items():
        if value is not None and option not in takes:
            raise ConfigError(
                "options-conflict",
                f"--{option.replace('which', 'model')} with {source}",
                expected="a run directory" if option == "which" else "a file, MODEL.zip or NETWORK.onnx",
                hint="leave it out",
            )
    if "config" not in takes:
        return export_policy(source, out, which=which or "best", name=name, episodes=episodes)
    if config is None:
        raise ConfigError(
            "option-needed",
            f"{source} without a configuration",
            where="--config",
            expected="the configuration with its agent: clock, features, action",
            hint=f"name it, as in ccgym train export {source} --config aurora.yaml",
        )
    policy: Exportable
    training: dict[str, Any] = {}
    if source.suffix == ".zip":
        plain = load_sb3(source, config, algorithm=algorithm, normalize=normalize)
        policy, target = plain.exportable(), target_of(source.parent, out, name, source.stem.lower())
        described = yaml.safe_load(config.as_yaml())
        training = {
            # Entries for training by `ccgym train` are left out.
            "config": {key: described[key] for key in ("name", "agent", "environment") if key in described},
            "algorithm": plain.algorithm,
            "steps": int(plain.model.num_timesteps),
            "checkpoint": {"file": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest()},
        }
    else:
        target = target_of(source.parent, out, name, config.name.lower())
        if target[0].resolve() == source.resolve():
            raise ConfigError(
                "name-taken",
                f"{target[0]} is the given network",
                expected="another name for the exported file",
                hint="give another name with --name or -o, or rename the configuration",
            )
        rows = config.agent.describe()
        policy = load_foreign(source, len(rows["observation"]), len(rows["action"]))
    return export_checked(policy, config, target, training, where=source, episodes=episodes)
