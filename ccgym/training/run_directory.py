"""A run directory: all files of one training run, so that it can be resumed, evaluated and repeated.

======================  ============================================================================
``config.yaml``         the configuration with all defaults; ``ccgym train`` accepts it
``command.txt``         the command line
``versions.json``       ccgym, torch, SB3, Python, commit, machine
``seeds.json``          the root seed and the seeds of the streams derived from it
``baselines.json``      results of the baselines on the held-out paths
``progress.csv``        one row per update
``evaluations.csv``     one row per evaluation; ``evaluations.npz`` is the same in SB3's format
``curriculum.csv``      one row per measured point of a curriculum (``gap_search``, ``gap_bins``)
``events.out.tfevents…``  for TensorBoard
``checkpoints/``        the latest checkpoints; ``latest`` contains the name of the newest one
``best/``               the model of the best evaluation: ``model.zip``, ``vecnormalize.pkl``, ``model.json``
``final/``              the model at the end, in the same form
======================  ============================================================================

Only one process may train in a directory: it holds a lock, which the kernel releases when the process ends in any way.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from ccgym.emulation.checkout import git_summary
from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.evaluation.directory import MARKERS, lock_directory
from ccgym.evaluation.provenance import versions
from ccgym.files import UnreadableError, atomic_write, read_json

RUNS: Final = "runs"
"""Parent directory of run directories."""
PACKAGES: Final = ("torch", "stable_baselines3", "sb3_contrib", "scikit_learn", "tensorboard", "gymnasium", "pydantic")


class RunDirectory:
    """A run directory. As a context manager, it holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.checkpoints = path / "checkpoints"
        self.best = path / "best"
        self.final = path / "final"
        self.baselines = path / "baselines.json"
        self.progress = path / "progress.csv"
        self.evaluations = path / "evaluations.csv"
        self.curriculum = path / "curriculum.csv"
        self.evaluations_npz = path / "evaluations.npz"
        self._lock: TextIOWrapper | None = None

    def __enter__(self) -> RunDirectory:
        self._lock = lock_directory(self.path, "training", self.checkpoints.name, "--run-dir")
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def claim(self, config: str, seeds: dict[str, int], command: Sequence[str]) -> None:
        """Begin a new run in this directory.

        Args:
            config: The resolved configuration.
            seeds: Seeds by name.
            command: The command line, word by word.

        Raises:
            ResultsError: There is a run in the directory already.
        """
        if self.config.exists():
            raise ResultsError(
                "directory-taken",
                "there is a training run in this directory already",
                where=str(self.path),
                expected="a directory without one",
                hint=f"continue it with --resume {shlex.quote(str(self.path))}, or choose another --run-dir",
            )
        self.note_start(command)
        atomic_write(self.path / MARKERS["training"][0], _json(seeds))
        # The last file: it marks the directory as a run.
        atomic_write(self.config, config)

    def note_start(self, command: Sequence[str]) -> None:
        """Record command and versions: at the start of the run, and at each resumption."""
        with_command = self.path / "command.txt"
        before = with_command.read_text(encoding="utf-8") if with_command.exists() else ""
        atomic_write(with_command, f"{before}{shlex.join(command)}\n")
        atomic_write(self.path / "versions.json", _json(environment()))

    def read_json(self, file: Path) -> dict[str, Any]:
        """Read one of the JSON files.

        Raises:
            ResultsError: The file is missing or damaged.
        """
        try:
            content = read_json(file)
            if isinstance(content, dict):
                return content
            reason = shown(content)
        except (FileNotFoundError, UnreadableError) as error:
            reason = str(error) if isinstance(error, UnreadableError) else "is missing"
        raise ResultsError("results-damaged", reason, where=str(file), expected="a file that `ccgym train` wrote")


def new_run_directory(name: str, seed: int) -> Path:
    """Return a directory that does not exist yet: ``runs/<name>-<seed>-<n>``."""
    pattern = re.compile(re.escape(f"{name}-{seed}-") + r"(\d{1,9})")
    root = Path(RUNS)
    taken = [int(match[1]) for entry in root.glob("*") if (match := pattern.fullmatch(entry.name))]
    return root / f"{name}-{seed}-{max(taken, default=0) + 1}"


def open_run(path: Path) -> RunDirectory:
    """Return the directory of an existing run.

    Raises:
        ConfigError: There is no such run.
    """
    run = RunDirectory(path)
    if not run.config.is_file():
        found = "no such directory" if not path.exists() else "no training run: it has no config.yaml"
        newest = sorted(Path(RUNS).glob("*/config.yaml"), key=lambda file: file.stat().st_mtime)
        hint = f"the newest one here is {newest[-1].parent}" if newest else "start one with --config"
        raise ConfigError("run-missing", found, where=str(path), expected="a run directory of `ccgym train`", hint=hint)
    return run


def environment() -> dict[str, Any]:
    """Return versions and machine of this process."""
    from importlib.metadata import PackageNotFoundError, version

    found = versions()
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    branch, _, changed = git_summary().partition("\n")
    return {
        "versions": found,
        "git": branch,
        "git_changed": changed.splitlines(),
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def _processor() -> str:
    with suppress(OSError):
        if named := re.search(
            r"^model name[^:]*:(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE
        ):
            return named[1].strip()
    return platform.processor()


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
