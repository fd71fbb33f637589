"""Evaluations side by side: one per path in a scorecard, one per backend in a gap.

Each evaluation has its own directory with Pantheon's files and the stored runs. So an interrupted comparison
continues, and schemes or runs that are requested later are added to the existing results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from ccgym.config.declared import Strict
from ccgym.config.path import NetworkPath
from ccgym.config.quantities import PeriodField
from ccgym.evaluation.experiment import MAX_RUNS, Experiment
from ccgym.evaluation.observer import Observer
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import Contender
from ccgym.evaluation.runner import run_experiment
from ccgym.experiments.request import Request


class Comparison(Strict):
    """Fields in the YAML of every comparison."""

    kind: str
    """Kind of the comparison; each subclass allows one word."""
    title: str
    """Title for headings."""
    schemes: Sequence[Any] = ("cubic", "bbr", "copa:mode=paper", "learned")
    """Schemes if the command names none, as in other experiments."""
    runs: int = Field(default=3, ge=1, le=MAX_RUNS)
    """Number of runs per scheme and path, or per scheme and backend."""
    duration: PeriodField = 30_000_000_000
    """Length of a run."""
    quick: Mapping[str, Any] = Field(default_factory=dict)
    """Fields that ``--quick`` changes."""
    name: str = ""
    """Name in files: the name of the YAML file."""

    def evaluation(
        self, path: NetworkPath, schemes: Sequence[Contender], request: Request, **changes: Any
    ) -> Experiment:
        """Return one of the evaluations; ``changes`` are fields that differ from the other evaluations."""
        settings = {
            "runs": self.runs if request.runs is None else request.runs,
            "runtime_ns": self.duration if request.runtime_ns is None else request.runtime_ns,
            "seed": request.seed,
            "backend": request.backend,
            **changes,
        }
        return Experiment(path, tuple(schemes), **settings)


class Counting:
    """Progress over several calls of :func:`~ccgym.evaluation.engine.measure` as one stage.

    An :class:`~ccgym.evaluation.observer.Observer`.

    Args:
        observer: Gets the sum.
        stage: Name of the stage.
        total: Number of runs of all parts.
    """

    def __init__(self, observer: Observer, stage: str, total: int) -> None:
        self._observer = observer
        self._stage = stage
        self.part = ""
        """The current part, for notes."""
        observer.begin(stage, total)

    def notice(self, text: str) -> None:
        """Pass the text on, with the name of the part."""
        self._observer.notice(f"{self.part}: {text}")

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Count the stored runs of a part that begins; the stage has started before."""
        if done:
            self.advance(what, done, kept=True)

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Add finished runs of the part to the progress of the stage."""
        self._observer.advance(self._stage, by, self.part, kept=kept)


def run_evaluation(experiment: Experiment, out: Path, request: Request, observer: Counting, part: str) -> ResultSet:
    """Run one of the evaluations in its own directory; schemes and runs may be added later."""
    observer.part = part
    return run_experiment(
        experiment,
        out,
        jobs=request.jobs,
        repeat_limited=request.repeat_limited,
        retries=request.retries,
        observer=observer,
        command=request.command,
        cluster=request.cluster,
        grow=True,
    )
