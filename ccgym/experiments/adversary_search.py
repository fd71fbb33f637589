"""The search of an adversary for paths on which a scheme is far from the oracle, and the simplification of paths.

MAP-Elites (Mouret and Clune, 2015): of every kind of path (:attr:`Candidate.kind`), the path with the largest gap is
kept. New candidates are changed or crossed from these paths. So the search finds different weaknesses, not the same
weakness many times. Parameters are of mixed types and may be absent (such as loss): this suits evolution better than a
covariance or a surrogate model. Candidates are drawn from a seed, batch by batch; a batch does not depend on the speed
of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from ccgym.config.path import NetworkPath
from ccgym.config.quantities import PeriodField
from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.observer import Observer
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.run import Contender, Run, contender
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import RunStore
from ccgym.experiments.adversary_space import RANGES, Candidate, changed, crossed, drawn
from ccgym.experiments.comparison import Comparison
from ccgym.experiments.request import Request
from ccgym.experiments.views.path_result import record_score

NAME: Final = "adversary"
ORACLE: Final = "oracle"

ORACLE_FLOOR: Final = -0.5
"""The oracle's min score on a path that counts: 70 % of the power that is physically possible."""
CEILING: Final = 0.1
"""The oracle's max score; the score of a run may slightly exceed 0, by Pantheon's rule for the throughput."""

BATCH: Final = 16
"""Candidates per batch; independent of the number of processors."""
DRAWN_BATCHES: Final = 6
"""Number of batches that are drawn before candidates are made from elites."""
DRAWN_LATER: Final = 0.2
"""Fraction of candidates that are drawn in later batches."""
TOURNAMENT: Final = 3
MAX_TRIALS: Final = 50
"""Max number of candidates in the minimization of a find."""
NOTED: Final = 0.3
"""Min growth of the gap for a line of progress."""


class AdversarySpec(Comparison):
    """The options of the search."""

    kind: Literal["adversary"] = "adversary"
    title: str = "Paths on which a scheme is far from the oracle"
    name: str = NAME
    runs: int = Field(default=5, ge=1, le=1000)
    """Runs of every scheme on a find."""
    duration: PeriodField = 20_000_000_000
    evaluations: int | None = Field(default=None, ge=1, le=10_000_000)
    """Number of candidates for a scheme; None: as many as the budget allows."""
    budget_s: float = Field(default=180.0, gt=0)
    """Time of the search for a scheme, seconds, if :attr:`evaluations` is None."""
    finds: int = Field(default=3, ge=1, le=100)
    """Max number of finds for a scheme."""
    max_rate_mbps: float = Field(default=RANGES["rate_mbps"][1], ge=RANGES["rate_mbps"][0], le=RANGES["rate_mbps"][1])


@dataclass(frozen=True)
class Numbers:
    """The result of a run."""

    score: float
    throughput_mbps: float | None
    delay_p95_ms: float | None
    loss: float | None
    """Loss, a fraction."""
    utilization: float | None


def _numbers(run: Run, record: RunRecord) -> dict[str, Any]:
    assert record.metrics is not None
    total = record.total
    invalid = record.metrics.invalid_reason(run.duration_ns / 1e9)
    numbers = Numbers(
        record_score(record, invalid, run.path.one_way_delay_ms),
        total.throughput_mbps, total.delay_p95_ms, total.loss, record.link.utilization,
    )  # fmt: skip
    return asdict(numbers)


_REDUCTION: Final = Reduction("adversary", 1, _numbers)


@dataclass(frozen=True)
class Judged:
    """A candidate with the gap of the scheme."""

    candidate: Candidate
    gap: float
    oracle: float
    """The oracle's score."""


class Judge:
    """Runs contenders over candidates, and stores their results.

    Args:
        spec: Length of runs.
        request: Seed, and number of parallel runs.
        store: Store of the runs; None: runs are not stored.
        scheme: The scheme whose gap is measured.
    """

    def __init__(self, spec: AdversarySpec, request: Request, store: RunStore | None, scheme: Contender) -> None:
        self._spec = spec
        self._request = request
        self._store = store
        self.scheme = scheme
        self.oracle = contender(ORACLE)
        self.spent_s = 0.0
        """Time of the runs when they were made, divided by the number of parallel runs, seconds."""
        self.failures: list[str] = []

    def numbers(self, paths: Sequence[NetworkPath], one: Contender, runs: int) -> list[list[Numbers] | None]:
        """Return the results of the runs of a contender, path by path; None for a path with a failed run."""
        planned = [
            [replace(run, record=Record(series=0)) for run in self._experiment(path, one, runs).planned()]
            for path in paths
        ]
        flat = [run for ones in planned for run in ones]
        outcomes = measure(flat, reduce=_REDUCTION, store=self._store, jobs=self._request.jobs)
        jobs = self._request.jobs or os.cpu_count() or 1
        self.spent_s += sum(each.stored.wall_s for each in outcomes if each.stored is not None) / jobs
        for outcome in outcomes:
            if outcome.data is None:
                why = outcome.error or outcome.unavailable
                self.failures.append(f"{outcome.run.name} over {outcome.run.path.title}: {why}")
        found = iter([None if each.data is None else Numbers(**each.data) for each in outcomes])
        each_path = [[next(found) for _ in ones] for ones in planned]
        return [None if None in ones else [one for one in ones if one is not None] for ones in each_path]

    def _experiment(self, path: NetworkPath, one: Contender, runs: int) -> Experiment:
        return self._spec.evaluation(path, (one,), self._request, runs=runs)

    def path(self, candidate: Candidate, name: str | None = None) -> NetworkPath:
        """Return a candidate as a path."""
        return candidate.path(self._spec.duration, name, candidate.sentence(self._spec.duration))

    def scores(self, candidates: Sequence[Candidate], one: Contender, runs: int = 1) -> list[float | None]:
        """Return the mean scores of a contender, by candidate."""
        found = self.numbers([self.path(candidate) for candidate in candidates], one, runs)
        return [None if ones is None else fmean(each.score for each in ones) for ones in found]

    def judged(
        self, candidates: Sequence[Candidate], runs: int = 1, at_least: Callable[[Candidate], float] = lambda _: -1e9
    ) -> list[Judged]:
        """Return the candidates that count, with their gaps.

        Args:
            candidates: The candidates.
            runs: Number of runs of each contender.
            at_least: Only larger gaps are returned; the oracle is not run if no larger gap is possible.
        """
        scores = zip(candidates, self.scores(candidates, self.scheme, runs), strict=True)
        hopeful = {one: score for one, score in scores if score is not None and CEILING - score > at_least(one)}
        oracles = zip(hopeful, self.scores(list(hopeful), self.oracle, runs), strict=True)
        return [
            Judged(one, oracle - hopeful[one], oracle)
            for one, oracle in oracles
            if oracle is not None and oracle >= ORACLE_FLOOR and oracle - hopeful[one] > at_least(one)
        ]


@dataclass(frozen=True)
class Searched:
    """The result of a search."""

    elites: tuple[Judged, ...]
    """The best candidate of each kind, the largest gap first."""
    evaluations: int
    spent_s: float
    history: tuple[tuple[int, float], ...]
    """Number of the candidate, and the gap, each time the largest gap grew."""


def search(spec: AdversarySpec, seed: int, judge: Judge, observer: Observer) -> Searched:
    """Search for candidates with large gaps, one of every kind."""
    stage = f"searching, {judge.scheme.label}"
    total = spec.evaluations or max(1, round(spec.budget_s))
    observer.begin(stage, total)
    elites: dict[tuple[str, str, str], Judged] = {}
    history: list[tuple[int, float]] = []
    began_s, tried, told, shown = judge.spent_s, 0, 0.0, 0

    def worth(one: Candidate) -> float:
        return elites[one.kind].gap if one.kind in elites else 0.0

    batch = 0
    while tried < spec.evaluations if spec.evaluations is not None else judge.spent_s - began_s < spec.budget_s:
        rng = np.random.default_rng([seed, batch])
        size = BATCH if spec.evaluations is None else min(BATCH, spec.evaluations - tried)
        born = [_born(rng, batch, list(elites.values()), spec.max_rate_mbps) for _ in range(size)]
        for one in judge.judged(list(dict.fromkeys(born)), at_least=worth):
            if one.gap > worth(one.candidate):
                elites[one.candidate.kind] = one
            if not history or one.gap > history[-1][1]:
                history.append((tried + 1, one.gap))
        tried += size
        batch += 1
        now = tried if spec.evaluations is not None else min(total, round(judge.spent_s - began_s))
        best = max(elites.values(), key=lambda one: one.gap, default=None)
        observer.advance(stage, now - shown, f"{tried} candidates" + (f", gap {best.gap:.1f}" if best else ""))
        shown = now
        if best is not None and best.gap >= told + NOTED:
            told = best.gap
            where = best.candidate.sentence(spec.duration)
            observer.notice(f"{judge.scheme.label}: {tried} candidates, gap {best.gap:.1f}: {where}")
    order = sorted(elites.values(), key=lambda one: (-one.gap, one.candidate.kind))
    return Searched(tuple(order), tried, judge.spent_s - began_s, tuple(history))


def _born(rng: np.random.Generator, batch: int, elites: Sequence[Judged], max_rate_mbps: float) -> Candidate:
    """Return a new candidate, drawn or made from elites."""
    if not elites or batch < DRAWN_BATCHES or rng.random() < DRAWN_LATER:
        return drawn(rng, max_rate_mbps)
    one = _chosen(rng, elites)
    if rng.random() < 0.3:
        one = crossed(one, _chosen(rng, elites), rng)
    return changed(one, rng, max_rate_mbps)


def _chosen(rng: np.random.Generator, elites: Sequence[Judged]) -> Candidate:
    """Return the best of a few drawn elites."""
    some = [elites[int(place)] for place in rng.integers(len(elites), size=TOURNAMENT)]
    return max(some, key=lambda one: one.gap).candidate


def minimized(one: Candidate, holds: Callable[[Candidate], bool], most: int = MAX_TRIALS) -> tuple[Candidate, int]:
    """Return a candidate as simple as possible, and the number of trials.

    Args:
        one: The first candidate.
        holds: Whether a candidate still has the required property.
        most: Max number of trials.
    """
    tried = {one}
    at = 0
    while True:
        moves = list(one.simpler())
        # Continue after the last success: changes that were refused before are mostly refused again.
        for place in range(len(moves)):
            move = moves[(at + place) % len(moves)]
            if move in tried:
                continue
            if len(tried) > most:
                return one, most
            tried.add(move)
            if holds(move):
                one, at = move, (at + place) % len(moves)
                break
        else:
            return one, len(tried) - 1
