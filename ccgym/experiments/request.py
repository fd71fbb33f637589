"""Options of an experiment's command, the directory of the results, and the files of a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccgym import __version__
from ccgym.evaluation.backends import SIMULATED, check_name
from ccgym.evaluation.directory import claim, held_parameters
from ccgym.evaluation.engine import RemoteExecutor
from ccgym.evaluation.experiment import MAX_RUNS, MAX_SEED, check_range
from ccgym.evaluation.run import Contender, digest


@dataclass(frozen=True)
class Request:
    """Options of the command."""

    out: Path
    """The results directory; it is created if it is missing."""
    schemes: tuple[Contender, ...] | None = None
    """The tested schemes, in the order of the command; None: the schemes of the experiment."""
    runs: int | None = None
    """Number of repetitions; None: the number of the experiment."""
    runtime_ns: int | None = None
    """Length of a run, nanoseconds; None: the length of the experiment."""
    seed: int = 1
    backend: str = SIMULATED
    jobs: int | None = None
    """Number of parallel runs; None: :func:`~ccgym.evaluation.engine.measure` decides."""
    repeat_limited: int = 0
    """As in :func:`~ccgym.evaluation.engine.measure`."""
    retries: int = 0
    """As in :func:`~ccgym.evaluation.engine.measure`."""
    budget_s: float | None = None
    """Max time for runs, seconds; further runs are left for the next call. None: no limit."""
    quick: bool = False
    """Whether to apply the experiment's ``quick``: a rough result in a fraction of the time."""
    confirm: int = 0
    """For a report on requirements: number of simulated runs that are repeated with real packets."""
    command: tuple[str, ...] = ()
    cluster: RemoteExecutor | None = None
    """Cluster for the runs; None: this machine."""

    def __post_init__(self) -> None:
        check_name(self.backend, "backend")
        if self.runs is not None:
            check_range("runs", self.runs, 1, MAX_RUNS)
        check_range("seed", self.seed, 0, MAX_SEED)


@dataclass(frozen=True)
class Written:
    """A file for the user."""

    title: str
    """Kind of the file: ``report``, ``figure``, ``table``, ``results``."""
    file: Path


def identity(name: str, request: Request) -> dict[str, Any]:
    """Return the fields that must be equal for two requests to share a directory. Schemes and repetitions may differ:
    every run is stored separately."""
    return {
        "experiment": name,
        "ccgym": __version__,
        "seed": request.seed,
        "runtime_s": None if request.runtime_ns is None else request.runtime_ns / 1e9,
        "quick": request.quick,
        "backend": request.backend,
    }


def default_directory(name: str, request: Request) -> Path:
    """Return ``results/<experiment>``, with a digest if another experiment uses it; ``request.out`` is ignored."""
    mine = identity(name, request)
    words = [name, *(["quick"] if request.quick else [])]
    words += [request.backend] if request.backend != "sim" else []
    plain = Path("results", "-".join(words))
    if held_parameters(plain) is None and held_parameters(plain, "experiment") in (None, mine):
        return plain
    return plain.with_name(f"{plain.name}-{digest(mine)[:8]}")


def claim_directory(name: str, request: Request) -> None:
    """Reserve ``request.out`` for this experiment.

    Raises:
        ResultsError: The directory contains something else, or cannot be written.
    """
    claim(request.out, identity(name, request), "experiment")
