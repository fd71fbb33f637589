"""Execution of experiments: every condition with every scheme, in threads; each run is stored."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ccgym.errors import ConfigError
from ccgym.evaluation.backends import is_real
from ccgym.evaluation.budget import Budget
from ccgym.evaluation.engine import RUNNING, SIMULATING, RunOutcome, measure
from ccgym.evaluation.observer import Observer
from ccgym.evaluation.progress_file import ProgressFile
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results_file import Measurement
from ccgym.evaluation.run import Contender, Run, contenders
from ccgym.evaluation.store import RunStore
from ccgym.experiments.comparison import Counting
from ccgym.experiments.outcome import RunResult, Test
from ccgym.experiments.plan import PlannedRun, planned, reduction
from ccgym.experiments.request import Request
from ccgym.experiments.spec import ExperimentSet


@dataclass(frozen=True)
class Executed:
    """The finished runs of experiments, before their evaluation."""

    source: ExperimentSet
    request: Request
    schemes: tuple[Contender, ...]
    """The tested schemes."""
    tests: tuple[Test, ...]
    plans: Mapping[str, Sequence[PlannedRun]] = field(repr=False)
    """Planned runs by experiment."""
    found: Mapping[str, Mapping[str, RunOutcome]] = field(repr=False)
    """Outcomes by experiment and digest of the run."""
    started: float
    """Start of the command, seconds since the epoch."""

    def ran(self, test: Test) -> dict[str, list[RunResult]]:
        """Return the runs that ended well, by scheme."""
        return ran_of(self.plans[test.name], self.found[test.name])

    def rows(self) -> Iterator[Measurement]:
        """Yield every metric of every run; fractions stay fractions."""
        for test in self.tests:
            units = {one.key: "fraction" if one.unit == "%" else one.unit for one in test.metrics}
            for scheme, runs in self.ran(test).items():
                for run in runs:
                    for metric, value in run.values.items():
                        yield Measurement(test.name, run.condition, scheme, None, run.run, metric, value, units[metric])

    @property
    def _ended(self) -> list[RunOutcome]:
        return [one for outcomes in self.found.values() for one in outcomes.values()]

    @property
    def parameters(self) -> dict[str, Any]:
        """Options of the command."""
        request = self.request
        return {
            "experiment": self.source.name,
            "schemes": [one.text for one in self.schemes],
            "seed": request.seed,
            "runs": request.runs,
            "quick": request.quick,
            **({"backend": request.backend} if is_real(request.backend) else {}),
        }

    @property
    def provenance(self) -> dict[str, Any]:
        """Versions, machine, command line, time, policies."""
        took = time.time() - self.started
        made = provenance(self.source.title, self.request.command, self.started, took, self.request.backend)
        return {
            **made,
            "policies": {key: found for one in self.schemes for key, found in one.provenance.items()},
            "runs_s": round(sum(one.stored.wall_s for one in self._ended if one.stored is not None), 1),
        }

    @property
    def failures(self) -> tuple[str, ...]:
        """Runs that ended in an error."""
        failed = (one for one in self._ended if one.error is not None)
        return tuple(sorted(f"{one.run.name}, seed {one.run.seed}: {one.error}" for one in failed))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was left out; with real packets: schemes that cannot run here, and emulator-limited runs."""
        notes = (note for one in self._ended if (note := _note(one)) is not None)
        left = self.left
        up = (f"time was up: {left} of {len(self._ended)} runs are left; the same command continues",) if left else ()
        return (*up, *self.source.left_out, *dict.fromkeys(notes))

    @property
    def left(self) -> int:
        """Number of runs that were left because time was up."""
        return sum(one.left for one in self._ended)


def execute(source: ExperimentSet, request: Request, store: RunStore, observer: Observer) -> Executed:
    """Make all runs that are not in the store yet.

    After an interruption, the same request continues; further schemes and repetitions are added to existing runs.

    Raises:
        ConfigError: The request is not possible: a length of runs, kernel TCP in the simulator.
        PlatformError: This machine does not have all that the backend needs.
    """
    started = time.time()
    schemes = checked(source, request)
    tests = tuple(Test(one) for one in source.experiments)
    plans = {
        test.name: planned(test, schemes, runs=request.runs, seed=request.seed, backend=request.backend)
        for test in tests
    }
    # The run of a single flow is the same for many schemes, and made once.
    needed = {
        name: list({run.digest: run for one in plan for run in one.runs}.values()) for name, plan in plans.items()
    }
    stage = RUNNING if is_real(request.backend) else SIMULATING
    counting = Counting(observer, stage, sum(map(len, needed.values())))
    found: dict[str, dict[str, RunOutcome]] = {test.name: {} for test in tests}
    # The runs of a condition's repetition share their seed.
    budget = None if request.budget_s is None else Budget(request.budget_s, lambda run: (run.number, run.seed))
    with ProgressFile(store.directory, sum(map(len, needed.values()))) as progress:
        for test, runs in _batches(tests, needed, balanced=budget is not None):
            counting.part = test.title
            outcomes = measure(
                runs,
                reduce=reduction(test, plans[test.name]),
                store=store,
                jobs=request.jobs,
                observer=counting,
                repeat_limited=request.repeat_limited,
                retries=request.retries,
                budget=budget,
                progress=progress,
                cluster=request.cluster,
            )
            found[test.name] |= {one.run.digest: one for one in outcomes}
    return Executed(source, request, schemes, tests, plans, found, started)


def _batches(
    tests: Sequence[Test], needed: Mapping[str, Sequence[Run]], *, balanced: bool
) -> Iterator[tuple[Test, Sequence[Run]]]:
    """Yield the runs in batches: by experiment; with a budget by repetition, with conditions in random order, so that
    an unfinished repetition has conditions from all parts of a sweep."""
    if not balanced:
        yield from ((test, needed[test.name]) for test in tests)
        return
    for number in sorted({run.number for runs in needed.values() for run in runs}):
        for test in tests:
            groups: dict[int, list[Run]] = {}
            for run in needed[test.name]:
                if run.number == number:
                    groups.setdefault(run.seed, []).append(run)
            order = list(groups)
            random.Random(f"ccgym budget {number}").shuffle(order)
            yield test, [run for seed in order for run in groups[seed]]


def checked(source: ExperimentSet, request: Request) -> tuple[Contender, ...]:
    """Return the schemes, if the request is possible."""
    if request.runtime_ns is not None:
        raise ConfigError(
            "options-conflict",
            f"runs of {request.runtime_ns / 1e9:g} s",
            where="runtime",
            expected="no length: the experiment sets the length of runs",
            hint="use --quick for fewer conditions and repetitions",
        )
    schemes = request.schemes or contenders(source.schemes, "schemes")
    for one in schemes:
        one.refuse("real path" if is_real(request.backend) else "simulator", "schemes")
    return schemes


def _note(ended: RunOutcome) -> str | None:
    """Return a note on a run with real packets; None if there is nothing to note."""
    if ended.unavailable is not None:
        return f"{ended.run.contender.label} cannot run here: {ended.unavailable}"
    if ended.stored is not None and ended.stored.limited is not None:
        return f"emulator-limited: {ended.run.name}: {ended.stored.limited}"
    return None


def ran_of(plan: Sequence[PlannedRun], outcomes: Mapping[str, RunOutcome]) -> dict[str, list[RunResult]]:
    """Return the runs that ended well, including runs of single flows, by scheme."""
    runs: dict[str, list[RunResult]] = {}
    for one in plan:
        outcome = outcomes[one.run.digest]
        alone = {number: outcomes[run.digest] for number, run in one.alone.items()}
        if outcome.stored is not None and all(known.stored is not None for known in alone.values()):
            values = outcome.data["values"]
            compared = {
                metric.key: metric.compared(values[metric.key], alone[metric.alone].data["values"][metric.key])
                for metric in one.scenario.metrics
                if metric.alone is not None
            }
            result = RunResult(
                condition=one.condition.key,
                run=one.number,
                seed=one.run.seed,
                values={**values, **compared},
                trajectory=outcome.stored.trajectory_hash,
                series=outcome.data["series"],
                backlog=outcome.data["backlog"],
                kept=outcome.file if outcome.data["detail"] is not None else "",
            )
            runs.setdefault(one.tested.key, []).append(result)
    return runs
