"""Running experiments: every condition with every scheme, run in threads, kept run by run."""

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
    """Experiments that were run, before anything is made of their runs."""

    source: ExperimentSet
    request: Request
    schemes: tuple[Contender, ...]
    """The tested schemes."""
    tests: tuple[Test, ...]
    plans: Mapping[str, Sequence[PlannedRun]] = field(repr=False)
    """By experiment."""
    found: Mapping[str, Mapping[str, RunOutcome]] = field(repr=False)
    """By experiment and digest of the run."""
    started: float
    """Seconds since the epoch."""

    def ran(self, test: Test) -> dict[str, list[RunResult]]:
        """The runs that ended well, by scheme."""
        return ran_of(self.plans[test.name], self.found[test.name])

    def rows(self) -> Iterator[Measurement]:
        """Every metric of every run; fractions stay fractions."""
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
        """What was asked for."""
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
        """What was left out; of real packets: schemes that cannot run here, runs that the machine could not hold."""
        notes = (note for one in self._ended if (note := _note(one)) is not None)
        left = self.left
        up = (f"time was up: {left} of {len(self._ended)} runs are left; the same command goes on",) if left else ()
        return (*up, *self.source.left_out, *dict.fromkeys(notes))

    @property
    def left(self) -> int:
        """How many runs were left because time was up."""
        return sum(one.left for one in self._ended)


def execute(source: ExperimentSet, request: Request, store: RunStore, observer: Observer) -> Executed:
    """Run what is not in the store yet.

    Interrupted, the same request goes on where it stopped; further schemes and repetitions are added to what is there.

    Raises:
        ConfigError: The request makes no sense: a length of runs, kernel TCP in the simulator.
        PlatformError: This machine lacks something that the backend needs.
    """
    started = time.time()
    schemes = checked(source, request)
    tests = tuple(Test(one) for one in source.experiments)
    plans = {
        test.name: planned(test, schemes, runs=request.runs, seed=request.seed, backend=request.backend)
        for test in tests
    }
    # A flow alone is the same for many schemes, and run once.
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
    """What is measured one after the other: experiment by experiment; or repetition by repetition, and within one the
    conditions in random order, so that those of an unfinished repetition are from all parts of a sweep."""
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
    """The schemes, if the request can be met."""
    if request.runtime_ns is not None:
        raise ConfigError(
            "options-conflict",
            f"runs of {request.runtime_ns / 1e9:g} s",
            where="runtime",
            expected="nothing: the experiment says how long runs are",
            hint="a quick look takes fewer conditions and repetitions",
        )
    schemes = request.schemes or contenders(source.schemes, "schemes")
    for one in schemes:
        one.refuse("real path" if is_real(request.backend) else "simulator", "schemes")
    return schemes


def _note(ended: RunOutcome) -> str | None:
    """What to know of a run with real packets."""
    if ended.unavailable is not None:
        return f"{ended.run.contender.label} cannot run here: {ended.unavailable}"
    if ended.stored is not None and ended.stored.limited is not None:
        return f"emulator-limited: {ended.run.name}: {ended.stored.limited}"
    return None


def ran_of(plan: Sequence[PlannedRun], outcomes: Mapping[str, RunOutcome]) -> dict[str, list[RunResult]]:
    """The runs that ended well, those of flows alone included, by scheme."""
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
