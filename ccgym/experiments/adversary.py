"""An adversary: a search for paths on which a scheme is far from the oracle, and the simplification of these paths.

The *gap* on a path is the oracle's score (as in scorecards) minus the scheme's score. Only paths count on which the
oracle has a good score (:data:`~ccgym.experiments.adversary_search.ORACLE_FLOOR`), so that the scheme causes the gap.

1. **Search** (:func:`~ccgym.experiments.adversary_search.search`).
2. **Minimization**, as property testing shrinks a counterexample: toward the plain path, as long as
   :data:`~ccgym.experiments.adversary_finds.KEPT` of the gap remains.
3. **Measurement** with several seeds, of the oracle and classic schemes, too, and with real packets.

Runs are stored by their digest, and their results determine the search. So the same command continues an interrupted
search, and repeats a finished search from the stored runs. The budget counts the time that runs took at first.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.run import Contender, contender
from ccgym.evaluation.spread import Spread
from ccgym.evaluation.store import RunStore
from ccgym.experiments.adversary_finds import (
    FAR,
    KEPT,
    LEAD,
    PATHS_DIRECTORY,
    AdversaryResults,
    Find,
    Real,
    SchemeFinds,
    SchemeOnPath,
    write_finds,
)
from ccgym.experiments.adversary_search import (
    NAME,
    ORACLE,
    AdversarySpec,
    Judge,
    Judged,
    Numbers,
    Searched,
    minimized,
    search,
)
from ccgym.experiments.adversary_space import Candidate
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.request import Request
from ccgym.experiments.training import Training
from ccgym.experiments.views.gap import run_gap
from ccgym.experiments.views.path_result import run_score
from ccgym.units import Nanoseconds

CLASSICS: Final = ("bbr", "bbr3", "copa:mode=paper", "cubic", "reno", "vegas")
"""Other schemes that are measured on a find: if one of them has a good score, so could the scheme."""
SHRINK_RUNS: Final = 2
"""Runs of each scheme while a find is minimized."""
REAL_DIRECTORY: Final = "real"


def run_adversary(spec: AdversarySpec, request: Request, observer: Observer | None = None) -> AdversaryResults:
    """Search, minimize and measure for each scheme; write the results, and the finds as paths.

    Raises:
        CcgymError: A scheme cannot be simulated, or the directory belongs to another experiment.
    """
    observer = observer or Silent()
    started = time.time()
    schemes = request.schemes or ()
    for one in schemes:
        if one.knows_path:
            raise ConfigError(
                "scheme-unsuitable", one.text, where="SCHEME", expected="a scheme that does not know its path"
            )
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
    """Return the elites with the largest gaps, minimized, each of a different kind; fair finds first."""
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
    """Return the best classic scheme on a candidate, if it is better than the scheme by at least :data:`LEAD`."""
    scores = [(judge.scores([elite.candidate], one)[0], one) for one in classics]
    best, rival = max(((score, one) for score, one in scores if score is not None), key=lambda pair: pair[0])
    return rival if best - (elite.oracle - elite.gap) >= LEAD else None


def _minimized(elite: Judged, judge: Judge, rival: Contender | None) -> tuple[Candidate | None, int]:
    """Return a candidate with most of an elite's gap, on which the rival is still better; None if it was chance."""
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
    (best,) = (each for each in classics if each.key == others[0].key)
    words = [
        "ccgym", "evaluate", "--trace", str(request.out / PATHS_DIRECTORY / f"{name}.yaml"),
        "--schemes", f"{scheme.text},{ORACLE},{best.text}", "--runs", str(spec.runs),
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


def _measured(one: Contender, numbers: Sequence[Numbers]) -> SchemeOnPath:
    def mean(values: Iterable[float | None]) -> float | None:
        spread = Spread.of(values)
        return None if spread is None else spread.mean

    score = Spread.of(each.score for each in numbers)
    assert score is not None
    return SchemeOnPath(
        one.key, one.label, tuple(numbers), score,
        mean(each.throughput_mbps for each in numbers), mean(each.delay_p95_ms for each in numbers),
        mean(each.loss for each in numbers), mean(each.utilization for each in numbers),
    )  # fmt: skip


def _confirmed(
    spec: AdversarySpec, request: Request, done: Sequence[SchemeFinds], observer: Observer
) -> tuple[list[SchemeFinds], str]:
    """Measure the first finds of each scheme with real packets; return them, and the reason if this is impossible."""
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
    """Run a find with real packets, as ``ccgym compare backends`` does."""
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
    scores = {key: run_score(cell, path.one_way_delay_ms) for key, cell in cells.items()}
    measured = scores[ORACLE] - scores[scheme.key]
    limited = next((f"{cell.name}: {cell.limited}" for cell in cells.values() if cell.limited), "")
    confirmed = not limited and measured >= KEPT * find.gap.mean
    return Real(measured, limited, confirmed, scores[scheme.key], scores[ORACLE])
