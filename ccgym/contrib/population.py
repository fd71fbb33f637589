"""Several trainings of one configuration on a Ray cluster: seeds, and settings that are varied.

Ray Tune gives each its processor, and begins one again that lost its machine. What runs there is ``ccgym train``, in an
ordinary run directory: it continues from its newest checkpoint and has the same weights. So nothing depends on
where a training ran, and the same command goes on after the driver was killed. Run directories have to be on a disk
that all machines share, under one path.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from ccgym.errors import ConfigError, PlatformError, SimulationError
from ccgym.evaluation.run_bundle import code, difference
from ccgym.files import UnreadableError, atomic_write, read_json
from ccgym.training.config import TrainConfig
from ccgym.training.model import CARD
from ccgym.training.run_directory import RunDirectory

LOG: Final = "train.log"
"""What a training on a cluster says, in its run directory."""
GIVEN: Final = "given.yaml"
"""Its configuration, before the training has begun."""
TUNE: Final = ".ray_tune"
"""Ray Tune's notes, next to the run directories; nothing of ours reads them."""
MAX_LOST: Final = 3
"""How often a training may fail, or lose its machine, before it is given up."""

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Member:
    """One of the trainings."""

    directory: Path
    config: TrainConfig
    changed: str
    """What tells it from the others: ``seed 1, algorithm.gamma=0.9``."""

    @property
    def card(self) -> dict[str, Any] | None:
        """What is written with its model at the end; None before that."""
        try:
            found = dict(read_json(RunDirectory(self.directory).final / CARD))
        except (FileNotFoundError, UnreadableError):
            return None
        return found if found.get("step", 0) >= self.config.training.steps else None


def members(
    config: str, overrides: Sequence[str], seeds: Sequence[int], grid: Mapping[str, Sequence[str]], runs: Path
) -> list[Member]:
    """Every seed with every combination of settings, in ``RUNS/NAME-SEED`` or ``RUNS/NAME-KEY=VALUE-SEED``.

    Args:
        config: File or name.
        overrides: Settings of all, ``key=value``.
        seeds: The seeds.
        grid: Values of settings that are varied, by key.
        runs: Where run directories are.

    Raises:
        ConfigError: A setting is wrong, or a seed is there twice.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError("wrong-count", f"seeds {list(seeds)}", where="--seeds", expected="one or more, each once")
    made = []
    for values in product(*grid.values()):
        settings = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        for seed in seeds:
            loaded = TrainConfig.load(config, [*overrides, *settings, f"training.seed={seed}"])
            name = "-".join([loaded.name, *(one.replace(os.sep, "_") for one in settings), str(seed)])
            made.append(Member((runs / name).absolute(), loaded, ", ".join([f"seed {seed}", *settings])))
    return made


def train_all(asked: Sequence[Member], device: str = "auto") -> list[str]:
    """Train those that are not finished on the cluster that is connected; returns what went wrong, a text each.

    Args:
        asked: The trainings.
        device: As of ``ccgym train``.
    """
    left = [one for one in asked if one.card is None]
    if not left:
        return []
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    from ray import tune

    for one in left:
        if not RunDirectory(one.directory).config.exists():
            atomic_write(one.directory / GIVEN, one.config.as_yaml(), parents=True)
    wanted, here, runs = code(), str(Path.cwd()), left[0].directory.parent

    def trial(given: dict[str, Any]) -> dict[str, Any]:
        found = difference(wanted)
        if found is not None:
            raise PlatformError("version-mismatch", found, expected=f"ccgym {wanted}, as the driver has")
        train_there(Path(given["directory"]), here, device)
        return {"finished": 1}

    tuner = tune.Tuner(
        tune.with_resources(trial, {"cpu": 1, **({"gpu": 1} if device.startswith("cuda") else {})}),
        param_space={"directory": tune.grid_search([str(one.directory) for one in left])},
        run_config=tune.RunConfig(
            storage_path=str(runs / TUNE), failure_config=tune.FailureConfig(max_failures=MAX_LOST), verbose=0
        ),
    )
    results = tuner.fit()
    trials = [results[place] for place in range(len(results))]
    return [f"{(one.config or {}).get('directory')}: {one.error}" for one in trials if one.error is not None]


def train_there(directory: Path, working: str, device: str) -> None:
    """Bring the training in a directory to its end, on this machine, by ``ccgym train``.

    Args:
        directory: The run directory.
        working: The driver's working directory, from which files in the configuration are named.
        device: As of ``ccgym train``.

    Raises:
        ConfigError: The directory is not on this machine.
        SimulationError: It failed; its log says how.
    """
    run = RunDirectory(directory)
    if not directory.is_dir() or not Path(working).is_dir():
        raise ConfigError(
            "folder-missing",
            f"{directory if not directory.is_dir() else working} is not there",
            expected="run directories on a disk that all machines of the cluster share, under one path",
            hint="name such a place with --runs, and start the command on that disk",
        )
    words = ["--resume", str(directory)] if run.config.exists() else ["--config", str(directory / GIVEN)]
    words += [] if run.config.exists() else ["--run-dir", str(directory)]
    command = [sys.executable, "-m", "ccgym", "train", *words, "--device", device, "--no-export"]
    end = _end_with_parent if sys.platform == "linux" else None
    with (directory / LOG).open("ab") as log:
        done = subprocess.run(command, stdout=log, stderr=log, cwd=working, preexec_fn=end, check=False)
    if done.returncode != 0:
        said = (directory / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise SimulationError(
            "run-failed", f"ended with status {done.returncode}: {' '.join(said[-3:])}", where=str(directory / LOG)
        )


def _end_with_parent() -> None:
    """Make the kernel end this process when the worker is killed: else it would hold the lock of its directory."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
