"""An adversary: it looks for paths on which a scheme is far from the oracle, and makes them as simple as they can be.

Far is measured by the scorecard's score: the *gap* on a path is the oracle's score less the scheme's. Only paths count
on which the oracle itself does well (:data:`ORACLE_FLOOR`), so that the gap is the scheme's fault.

1. **Search.** MAP-Elites (Mouret and Clune, 2015): of every kind of path (:attr:`Candidate.kind`) the one with the
   largest gap is kept, and new ones are made by changing and crossing those. So what comes out are different
   weaknesses, not one of them many times. Parameters are mixed and partly absent (there may be no loss), which suits an
   evolution, and neither a covariance nor a surrogate model. It draws from a seed, batch by batch, and a batch does not
   depend on how fast the machine is.
2. **Minimization.** As property testing shrinks a counterexample: toward the plain path, as long as :data:`KEPT` of the
   gap remains.
3. **Measurement** with several seeds, beside the oracle and classic schemes, and with real packets.

Runs are kept by their digest. What is searched follows from what they came to, so the same command, interrupted, goes
on, and, finished, finds the same again from what is kept. The budget counts the time that runs took when they were
made.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

import numpy as np
import yaml
from pydantic import Field

from ccgym.config.path import NetworkPath
from ccgym.config.quantities import PeriodField
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.engine import Observer, Reduction, Silent, measure
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results import Spread
from ccgym.evaluation.run import Contender, Run, contender
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.store import RunStore
from ccgym.experiments.adversary_space import RANGES, Candidate, changed, crossed, drawn
from ccgym.experiments.comparison import Comparison
from ccgym.experiments.gap import GapSpec, run_gap
from ccgym.experiments.request import Request
from ccgym.experiments.scorecard import record_score, run_score
from ccgym.experiments.training import Training
from ccgym.files import atomic_write
from ccgym.units import Nanoseconds

NAME: Final = "adversary"
ORACLE: Final = "oracle"
CLASSICS: Final = ("bbr", "bbr3", "copa", "cubic", "reno", "vegas")
"""Who else is measured on a find: where one of them does well, so could the scheme."""

ORACLE_FLOOR: Final = -0.5
"""The oracle's minimum score on a path that counts: seven tenths of the power that is physically possible."""
CEILING: Final = 0.1
"""The oracle's maximum score; that of a run may exceed 0 a little, by Pantheon's rule for the throughput."""
FAR: Final = 1.0
"""The minimum gap of a find: the scheme has half of the oracle's power."""
LEAD: Final = 0.5
"""By how much a classic scheme must be better on a find for it to be fair."""
KEPT: Final = 0.8
"""Fraction of the gap that remains of a find when it is minimized, and that real packets must show to confirm it."""

BATCH: Final = 16
"""Candidates at a time; no matter how many processors there are."""
DRAWN_BATCHES: Final = 6
"""Batches that are drawn before any is made from others."""
DRAWN_LATER: Final = 0.2
"""Fraction that is drawn later on."""
TOURNAMENT: Final = 3
SHRINK_RUNS: Final = 2
"""Runs of each scheme while a find is minimized."""
MAX_TRIALS: Final = 50
"""Candidates that are tried to minimize a find."""
NOTED: Final = 0.3
"""Growth of the gap that is worth a line."""

JSON_FILE: Final = "adversary.json"
CATALOG_FILE: Final = "adversary_paths.yaml"
DISTRIBUTION_FILE: Final = "adversary_distribution.yaml"
PATHS_DIRECTORY: Final = "paths"
REAL_DIRECTORY: Final = "real"
FORMAT: Final = "ccgym-adversary"
FORMAT_VERSION: Final = 1


class AdversarySpec(Comparison):
    """What to search, for how long."""

    kind: Literal["adversary"] = "adversary"
    title: str = "Paths on which a scheme is far from the oracle"
    name: str = NAME
    runs: int = Field(default=5, ge=1, le=1000)
    """Runs of every scheme on a find."""
    duration: PeriodField = 20_000_000_000
    evaluations: int | None = Field(default=None, ge=1, le=10_000_000)
    """Candidates that are tried for a scheme; None: as many as the budget allows."""
    budget_s: float = Field(default=180.0, gt=0)
    """Time of the search for a scheme, seconds, where :attr:`evaluations` is None."""
    finds: int = Field(default=3, ge=1, le=100)
    """How many finds for a scheme at most."""
    max_rate_mbps: float = Field(default=RANGES["rate_mbps"][1], ge=RANGES["rate_mbps"][0], le=RANGES["rate_mbps"][1])


@dataclass(frozen=True)
class Numbers:
    """What a run came to."""

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
        record_score(record, invalid, run.path.owd_ms),
        total.throughput_mbps, total.delay_p95_ms, total.loss, record.link.utilization,
    )  # fmt: skip
    return asdict(numbers)


_REDUCTION: Final = Reduction("adversary", 1, _numbers)


@dataclass(frozen=True)
class Judged:
    """A candidate and how far the scheme is from the oracle on it."""

    candidate: Candidate
    gap: float
    oracle: float
    """The oracle's score."""


class Judge:
    """Runs contenders over candidates, and knows what they came to.

    Args:
        spec: Length of runs.
        request: Seed, and runs at a time.
        store: Where runs are kept; None: nowhere.
        scheme: Whose gap is measured.
    """

    def __init__(self, spec: AdversarySpec, request: Request, store: RunStore | None, scheme: Contender) -> None:
        self._spec = spec
        self._request = request
        self._store = store
        self.scheme = scheme
        self.oracle = contender(ORACLE)
        self.spent_s = 0.0
        """Time that the runs took when they were made, divided by how many are made at a time."""
        self.failures: list[str] = []

    def numbers(self, paths: Sequence[NetworkPath], one: Contender, runs: int) -> list[list[Numbers] | None]:
        """What the runs of a contender came to, path by path; None where one failed."""
        planned = [
            [replace(run, record=Record(series=0, acks=False)) for run in self._experiment(path, one, runs).planned()]
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
        """A candidate as a path."""
        return candidate.path(self._spec.duration, name, candidate.sentence(self._spec.duration))

    def scores(self, candidates: Sequence[Candidate], one: Contender, runs: int = 1) -> list[float | None]:
        """Mean scores of a contender."""
        found = self.numbers([self.path(candidate) for candidate in candidates], one, runs)
        return [None if ones is None else fmean(each.score for each in ones) for ones in found]

    def judged(
        self, candidates: Sequence[Candidate], runs: int = 1, at_least: Callable[[Candidate], float] = lambda _: -1e9
    ) -> list[Judged]:
        """The candidates that count, with their gaps.

        Args:
            candidates: The candidates.
            runs: Runs of each contender.
            at_least: Gaps that are no larger are of no interest; the oracle is not run where one cannot be.
        """
        scores = zip(candidates, self.scores(candidates, self.scheme, runs), strict=True)
        hopeful = {one: score for one, score in scores if score is not None and CEILING - score > at_least(one)}
        oracles = zip(hopeful, self.scores(list(hopeful), self.oracle, runs), strict=True)
        return [
            Judged(one, oracle - hopeful[one], oracle)
            for one, oracle in oracles
            if oracle is not None and oracle >= ORACLE_FLOOR and oracle - hopeful[one] > at_least(one)
        ]


# --- Search ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Searched:
    """How a search went."""

    elites: tuple[Judged, ...]
    """The best of each kind, the largest gap first."""
    evaluations: int
    spent_s: float
    history: tuple[tuple[int, float], ...]
    """Number of the candidate and gap, whenever it became larger."""


def search(spec: AdversarySpec, seed: int, judge: Judge, observer: Observer) -> Searched:
    """Look for candidates with large gaps, of every kind one."""
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
    """A candidate that is drawn, or made of elites."""
    if not elites or batch < DRAWN_BATCHES or rng.random() < DRAWN_LATER:
        return drawn(rng, max_rate_mbps)
    one = _chosen(rng, elites)
    if rng.random() < 0.3:
        one = crossed(one, _chosen(rng, elites), rng)
    return changed(one, rng, max_rate_mbps)


def _chosen(rng: np.random.Generator, elites: Sequence[Judged]) -> Candidate:
    """The best of a few that are drawn."""
    some = [elites[int(place)] for place in rng.integers(len(elites), size=TOURNAMENT)]
    return max(some, key=lambda one: one.gap).candidate


# --- Minimization ----------------------------------------------------------------------------------------------------


def minimized(one: Candidate, holds: Callable[[Candidate], bool], most: int = MAX_TRIALS) -> tuple[Candidate, int]:
    """A candidate as simple as possible, and how many were tried.

    Args:
        one: Where to begin.
        holds: Whether a candidate still shows what it is to show.
        most: How many to try at most.
    """
    tried = {one}
    at = 0
    while True:
        moves = list(one.simpler())
        # On from where the last one was found: what was refused before is mostly refused again.
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


# --- Finds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A contender on a find: means over runs."""

    key: str
    label: str
    score: Spread
    throughput_mbps: float | None
    delay_p95_ms: float | None
    loss: float | None
    utilization: float | None


@dataclass(frozen=True)
class Real:
    """A find with real packets."""

    gap: float | None
    """The gap there; None where nothing was measured."""
    note: str
    """Why not, or what is to be known of it; mostly empty."""
    confirmed: bool
    """Whether :data:`KEPT` of the simulated gap was there."""
    score: float | None = None
    """The scheme's score there."""
    oracle: float | None = None
    """The oracle's: that of a machine which is late is worse, and the gap smaller."""


@dataclass(frozen=True)
class Find:
    """A path on which a scheme is far from the oracle."""

    name: str
    scheme: str
    """Key of the scheme."""
    candidate: Candidate
    sentence: str
    path: Mapping[str, Any]
    """Arguments of :class:`~ccgym.config.path.NetworkPath`."""
    gap: Spread
    """The oracle's score less the scheme's, run by run."""
    original: Candidate
    """What the search had found."""
    original_gap: float
    trials: int
    """Candidates that were tried to minimize it."""
    measured: tuple[Measured, ...]
    """The scheme, the oracle, then classic schemes from best to worst."""
    fair: bool
    """Whether a classic scheme does better by :data:`LEAD` or more."""
    trained: bool | None
    """Whether the scheme's training could have drawn it; None of schemes that were not learned or do not say."""
    replay: str
    """The command that runs it again."""
    real: Real | None = None
    """With real packets; None where it was not tried."""

    @property
    def own(self) -> Measured:
        """The scheme's numbers."""
        return self.measured[0]

    @property
    def oracle(self) -> Measured:
        """The oracle's."""
        return self.measured[1]

    @property
    def classic(self) -> Measured:
        """Those of the best classic scheme."""
        return self.measured[2]

    def network_path(self) -> NetworkPath:
        """The path."""
        return NetworkPath(name=self.name, title=self.sentence, **self.path)


@dataclass(frozen=True)
class SchemeFinds:
    """What was found of a scheme."""

    scheme: Contender
    searched: Searched
    spent_s: float
    """Time of the runs of search, minimization and measurement."""
    finds: tuple[Find, ...]


@dataclass(frozen=True)
class AdversaryResults:
    """What was found."""

    spec: AdversarySpec = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    schemes: tuple[SchemeFinds, ...]
    failures: tuple[str, ...]
    """Runs that ended in an error."""
    unconfirmed: str = ""
    """Why finds were not tried with real packets; empty where they were, or it was not asked for."""

    @property
    def finds(self) -> tuple[Find, ...]:
        """All finds."""
        return tuple(find for one in self.schemes for find in one.finds)

    def to_json(self) -> dict[str, Any]:
        """Plain data, documented in ``docs/adversary.md``."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "parameters": dict(self.parameters),
            "provenance": dict(self.provenance),
            "schemes": [
                {
                    "scheme": one.scheme.text,
                    "key": one.scheme.key,
                    "evaluations": one.searched.evaluations,
                    "search_s": round(one.searched.spent_s, 1),
                    "spent_s": round(one.spent_s, 1),
                    "history": [list(place) for place in one.searched.history],
                    "elites": [asdict(elite) | {"kind": elite.candidate.kind} for elite in one.searched.elites],
                    "finds": [asdict(find) for find in one.finds],
                }
                for one in self.schemes
            ],
            "unconfirmed": self.unconfirmed,
            "failures": list(self.failures),
        }


def run_adversary(spec: AdversarySpec, request: Request, observer: Observer | None = None) -> AdversaryResults:
    """Search, minimize and measure for each scheme; write the finds as paths, and ``adversary.json``.

    Raises:
        CcgymError: A scheme cannot be simulated, or the directory is another experiment's.
    """
    observer = observer or Silent()
    started = time.time()
    schemes = request.schemes or ()
    for one in schemes:
        if one.knows_path:
            raise ConfigError(one.text, where="SCHEME", expected="a scheme that does not know its path")
        one.refuse("simulator", "SCHEME")
    done, failures = [], []
    with RunStore(request.out) as store:
        for one in schemes:
            judge = Judge(spec, request, store, one)
            searched = search(spec, request.seed, judge, observer)
            finds = _finds(spec, request, judge, searched, observer)
            done.append(SchemeFinds(one, searched, judge.spent_s, finds))
            failures += judge.failures
    why = ""
    if request.confirm:
        done, why = _confirmed(spec, request, done, observer)
    parameters = {
        "schemes": [one.text for one in schemes],
        "seed": request.seed,
        "runtime_s": spec.duration / 1e9,
        "evaluations": spec.evaluations,
        "budget_s": None if spec.evaluations is not None else spec.budget_s,
        "runs": spec.runs,
        "finds": spec.finds,
        "max_rate_mbps": spec.max_rate_mbps,
        "jobs": request.jobs or os.cpu_count() or 1,
    }
    made = provenance(spec.title, request.command, started, time.time() - started)
    results = AdversaryResults(spec, parameters, made, tuple(done), tuple(dict.fromkeys(failures)), why)
    write_finds(results, request.out)
    return results


def _finds(
    spec: AdversarySpec, request: Request, judge: Judge, searched: Searched, observer: Observer
) -> tuple[Find, ...]:
    """The elites with the largest gaps, minimized, each of another kind; fair ones before others."""
    stage = f"minimizing, {judge.scheme.label}"
    observer.begin(stage, spec.finds)
    classics = [one for name in CLASSICS if (one := contender(name)).key != judge.scheme.key]
    finds: list[Find] = []
    unfair: list[Judged] = []
    kinds: set[tuple[str, str, str]] = set()

    def take(elite: Judged, rival: Contender | None) -> None:
        one, trials = _minimized(elite, judge, rival)
        if one is None or one.kind in kinds:
            return
        kinds.add(one.kind)
        finds.append(_find(spec, request, judge, elite, one, trials, classics, len(finds) + 1))
        observer.advance(stage, 1, finds[-1].sentence)

    for elite in searched.elites:
        if len(finds) == spec.finds or elite.gap < FAR:
            break
        rival = _rival(judge, elite, classics)
        if rival is None:
            unfair.append(elite)
        else:
            take(elite, rival)
    if not finds:
        for elite in unfair[: spec.finds]:
            take(elite, None)
    finds.sort(key=lambda find: -find.gap.mean)
    return tuple(
        replace(find, name=name, replay=find.replay.replace(find.name, name))
        for place, find in enumerate(finds, start=1)
        for name in [f"{NAME}-{judge.scheme.key}-{place}"]
    )


def _rival(judge: Judge, elite: Judged, classics: Sequence[Contender]) -> Contender | None:
    """The classic scheme that is best on a candidate, if it is better than the scheme by :data:`LEAD`."""
    scores = [(judge.scores([elite.candidate], one)[0], one) for one in classics]
    best, rival = max(((score, one) for score, one in scores if score is not None), key=lambda pair: pair[0])
    return rival if best - (elite.oracle - elite.gap) >= LEAD else None


def _minimized(elite: Judged, judge: Judge, rival: Contender | None) -> tuple[Candidate | None, int]:
    """A candidate with most of an elite's gap, where the rival still does better; None where it was chance."""
    began = judge.judged([elite.candidate], SHRINK_RUNS)
    if not began or began[0].gap < FAR:
        return None, 0
    goal = max(FAR, KEPT * began[0].gap)

    def holds(one: Candidate) -> bool:
        found = judge.judged([one], SHRINK_RUNS, at_least=lambda _: goal)
        if not found or rival is None:
            return bool(found)
        score = judge.scores([one], rival, SHRINK_RUNS)[0]
        return score is not None and score - (found[0].oracle - found[0].gap) >= LEAD

    return minimized(elite.candidate, holds)


def _find(
    spec: AdversarySpec, request: Request, judge: Judge, elite: Judged, one: Candidate, trials: int,
    classics: Sequence[Contender], number: int,
) -> Find:  # fmt: skip
    scheme, sentence = judge.scheme, one.sentence(spec.duration)
    name = f"{NAME}-{scheme.key}-{number}"
    path = judge.path(one, name)
    ran = [(each, judge.numbers([path], each, spec.runs)[0]) for each in (scheme, judge.oracle, *classics)]
    measured = [_measured(each, numbers) for each, numbers in ran if numbers is not None]
    others = sorted(measured[2:], key=lambda each: -each.score.mean)
    (_, own), (_, oracle) = ran[:2]
    assert own is not None
    assert oracle is not None
    gap = Spread.of(best.score - mine.score for best, mine in zip(oracle, own, strict=True))
    assert gap is not None
    training = None if scheme.choice is None else Training.of(scheme.choice)
    words = [
        "ccgym", "evaluate", "--trace", str(request.out / PATHS_DIRECTORY / f"{name}.yaml"),
        "--schemes", f"{scheme.text},{ORACLE},{others[0].key}", "--runs", str(spec.runs),
        "--runtime", f"{spec.duration / 1e9:g}", "--seed", str(request.seed),
    ]  # fmt: skip
    return Find(
        name=name,
        scheme=scheme.key,
        candidate=one,
        sentence=sentence,
        path=one.arguments(spec.duration),
        gap=gap,
        original=elite.candidate,
        original_gap=elite.gap,
        trials=trials,
        measured=(*measured[:2], *others),
        fair=others[0].score.mean - measured[0].score.mean >= LEAD,
        trained=None if training is None else training.draws(path),
        replay=shlex.join(words),
    )


def _measured(one: Contender, numbers: Sequence[Numbers]) -> Measured:
    def mean(values: Iterable[float | None]) -> float | None:
        spread = Spread.of(values)
        return None if spread is None else spread.mean

    score = Spread.of(each.score for each in numbers)
    assert score is not None
    return Measured(
        one.key, one.label, score,
        mean(each.throughput_mbps for each in numbers), mean(each.delay_p95_ms for each in numbers),
        mean(each.loss for each in numbers), mean(each.utilization for each in numbers),
    )  # fmt: skip


# --- Real packets ----------------------------------------------------------------------------------------------------


def _confirmed(
    spec: AdversarySpec, request: Request, done: Sequence[SchemeFinds], observer: Observer
) -> tuple[list[SchemeFinds], str]:
    """The first finds of each scheme with real packets, and why that was not possible."""
    chosen = {find.name for one in done for find in one.finds[: request.confirm]}
    observer.begin("real packets", len(chosen))
    made: list[SchemeFinds] = []
    why = ""
    for one in done:
        finds = []
        for find in one.finds:
            if find.name in chosen:
                find = replace(find, real=_real(spec, request, find, one.scheme))
                assert find.real is not None
                why = why or (find.real.note if find.real.gap is None else "")
                observer.advance("real packets", 1, find.name)
            finds.append(find)
        made.append(replace(one, finds=tuple(finds)))
    return made, why


def _real(spec: AdversarySpec, request: Request, find: Find, scheme: Contender) -> Real:
    """Run a find with real packets, as ``ccgym gap`` does."""
    path = find.network_path()
    gap = GapSpec(
        name=find.name, path=path, schemes=(scheme.text, ORACLE), backends=("sim", "emulated"), runs=1,
        duration=Nanoseconds(spec.duration),
    )  # fmt: skip
    asked = Request(
        out=request.out / REAL_DIRECTORY / find.name, schemes=(scheme, contender(ORACLE)), seed=request.seed,
        repeat_limited=1, command=request.command,
    )  # fmt: skip
    try:
        found = run_gap(gap, asked)
    except (ConfigError, PlatformError, RealPathError) as error:
        return Real(None, str(error), confirmed=False)
    if "emulated" not in found.results:
        return Real(None, {**found.left_out, **found.without_runs}.get("emulated", "nothing ran"), confirmed=False)
    cells = {cell.scheme: cell for cell in found.results["emulated"].cells}
    if len(cells) < 2:
        return Real(None, "; ".join(found.failures), confirmed=False)
    scores = {key: run_score(cell, path.owd_ms) for key, cell in cells.items()}
    measured = scores[ORACLE] - scores[scheme.key]
    limited = next((f"{cell.name}: {cell.limited}" for cell in cells.values() if cell.limited), "")
    confirmed = not limited and measured >= KEPT * find.gap.mean
    return Real(measured, limited, confirmed, scores[scheme.key], scores[ORACLE])


# --- Files -----------------------------------------------------------------------------------------------------------


def write_finds(results: AdversaryResults, directory: Path) -> None:
    """Write ``adversary.json``; every find as a path; all of them as a catalog, and as a distribution."""
    (directory / PATHS_DIRECTORY).mkdir(parents=True, exist_ok=True)
    for find in results.finds:
        said = {"name": find.name, "title": find.sentence, "source": source_text(results, find)}
        text = as_yaml({**said, **find.path})
        atomic_write(directory / PATHS_DIRECTORY / f"{find.name}.yaml", text)
    entries = {
        find.name: {"title": find.sentence, "source": source_text(results, find), "path": dict(find.path)}
        for find in results.finds
    }
    atomic_write(directory / CATALOG_FILE, as_yaml({"paths": entries}))
    files = [str(directory / PATHS_DIRECTORY / f"{find.name}.yaml") for find in results.finds]
    if files:
        atomic_write(directory / DISTRIBUTION_FILE, as_yaml({"paths": {"kind": "named", "names": files}}))
    document = json.dumps(results.to_json(), indent=1, ensure_ascii=False)
    atomic_write(directory / JSON_FILE, document + "\n")


def source_text(results: AdversaryResults, find: Find) -> str:
    """Where a find is from."""
    real = find.real
    confirmed = "" if real is None or real.gap is None else f"; gap with real packets {real.gap:.1f}"
    return (
        f"ccgym adversary {find.scheme}, seed {results.parameters['seed']}: gap {find.gap.mean:.1f}, oracle's score "
        f"{find.oracle.score.mean:.2f}, {find.classic.label}'s {find.classic.score.mean:.2f}{confirmed}"
    )


def as_yaml(data: Mapping[str, Any]) -> str:
    """The data as YAML in its order, short lists in one line."""
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True))
