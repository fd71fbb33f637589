"""Several trainings of one configuration on a Ray cluster: seeds and varied settings.

Ray Tune gives each training a processor, and restarts a training that lost its machine. Each training is a
``ccgym train`` in an ordinary run directory: it continues from its newest checkpoint to the same weights. So results
do not depend on the machine, and the same command continues after the driver was killed. Run directories must be on a
disk that all machines share, with the same path on all machines.
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
"""Log of a training on a cluster, in its run directory."""
GIVEN: Final = "given.yaml"
"""Configuration of the training, written before it begins."""
TUNE: Final = ".ray_tune"
"""Ray Tune's files, next to the run directories; ccgym does not read them."""
MAX_LOST: Final = 3
"""Maximum number of failures, or lost machines, of a training before it is abandoned."""

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True)
class Member:
    """One training of several."""

    directory: Path
    config: TrainConfig
    changed: str
    """Its difference from the other trainings: ``seed 1, algorithm.gamma=0.9``."""

    @property
    def card(self) -> dict[str, Any] | None:
        """The card that is written with its model at the end; None before the end."""
        try:
            found = dict(read_json(RunDirectory(self.directory).final / CARD))
        except (FileNotFoundError, UnreadableError):
            return None
        return found if found.get("step", 0) >= self.config.training.steps else None


def members(
    config: str, overrides: Sequence[str], seeds: Sequence[int], grid: Mapping[str, Sequence[str]], runs: Path
) -> list[Member]:
    """Return every seed with every combination of settings, in ``RUNS/NAME-SEED`` or ``RUNS/NAME-KEY=VALUE-SEED``.

    Args:
        config: File or name of the configuration.
        overrides: Settings of all trainings, ``key=value``.
        seeds: The seeds.
        grid: Values of varied settings, by key.
        runs: Folder of the run directories.

    Raises:
        ConfigError: A setting is wrong, or a seed is given twice.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError("wrong-count", f"seeds {list(seeds)}", where="--seeds", expected="at least one, each once")
    made = []
    for values in product(*grid.values()):
        settings = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        for seed in seeds:
            loaded = TrainConfig.load(config, [*overrides, *settings, f"training.seed={seed}"])
            name = "-".join([loaded.name, *(one.replace(os.sep, "_") for one in settings), str(seed)])
            made.append(Member((runs / name).absolute(), loaded, ", ".join([f"seed {seed}", *settings])))
    return made


def train_all(asked: Sequence[Member], device: str = "auto") -> list[str]:
    """Train all unfinished trainings on the connected cluster, and return the errors as texts.

    Args:
        asked: The trainings.
        device: As in ``ccgym train``.
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
            raise PlatformError("version-mismatch", found, expected=f"ccgym {wanted}, as on the driver")
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
    """Complete the training in a directory, on this machine, with ``ccgym train``.

    Args:
        directory: The run directory.
        working: The driver's working directory; files in the configuration are relative to it.
        device: As in ``ccgym train``.

    Raises:
        ConfigError: The directory does not exist on this machine.
        SimulationError: The training failed; its log contains the reason.
    """
    run = RunDirectory(directory)
    if not directory.is_dir() or not Path(working).is_dir():
        raise ConfigError(
            "folder-missing",
            f"{directory if not directory.is_dir() else working} does not exist",
            expected="run directories on a disk that all machines of the cluster share, with the same path",
            hint="name a folder on such a disk with --runs, and start the command on that disk",
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
    """Make the kernel end this process if the worker is killed: otherwise it would keep the lock of its directory."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
