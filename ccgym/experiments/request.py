"""What is asked of an experiment besides its YAML, the directory of its results, and the files of a report."""

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
    """What was asked for."""

    out: Path
    """The results directory; it is made where it is missing."""
    schemes: tuple[Contender, ...] | None = None
    """The tested schemes, in the order in which they were named; None: those of the experiment."""
    runs: int | None = None
    """Repetitions; None: those of the experiment."""
    runtime_ns: int | None = None
    """Length of a run, nanoseconds; None: that of the experiment."""
    seed: int = 1
    backend: str = SIMULATED
    jobs: int | None = None
    """Runs at a time; None: as :func:`~ccgym.evaluation.engine.measure` decides."""
    repeat_limited: int = 0
    """As in :func:`~ccgym.evaluation.engine.measure`."""
    retries: int = 0
    """The same."""
    budget_s: float | None = None
    """Time for runs, seconds; what does not fit is left for the next call. None: as much as it takes."""
    quick: bool = False
    """A coarse answer in a fraction of the time: what the experiment's ``quick`` says."""
    confirm: int = 0
    """Of a report on requirements: how many simulated runs are made once more with real packets."""
    command: tuple[str, ...] = ()
    cluster: RemoteExecutor | None = None
    """Where runs are made; None: here."""

    def __post_init__(self) -> None:
        check_name(self.backend, "backend")
        if self.runs is not None:
            check_range("runs", self.runs, 1, MAX_RUNS)
        check_range("seed", self.seed, 0, MAX_SEED)


@dataclass(frozen=True)
class Written:
    """A file for the reader."""

    title: str
    """What it is, in a word: ``report``, ``figure``, ``table``, ``results``."""
    file: Path


def identity(name: str, request: Request) -> dict[str, Any]:
    """What must be the same for two requests to share a directory. Schemes and repetitions may differ: every run is
    stored by itself."""
    return {
        "experiment": name,
        "ccgym": __version__,
        "seed": request.seed,
        "runtime_s": None if request.runtime_ns is None else request.runtime_ns / 1e9,
        "quick": request.quick,
        "backend": request.backend,
    }


def default_directory(name: str, request: Request) -> Path:
    """``results/<experiment>``, with a digest where another experiment has that; ``request.out`` is ignored."""
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
        ResultsError: It holds something else, or cannot be written.
    """
    claim(request.out, identity(name, request), "experiment")
