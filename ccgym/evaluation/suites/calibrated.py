"""The suite ``calibrated``: every scheme on Pantheon's 18 emulators and Indigo's 24 synthetic links.

Each path is an ordinary experiment in a directory of its own, ``paths/<name>``, with Pantheon's files and the runs that
are kept. So a suite that was interrupted goes on, and schemes or runs that are asked for later are added to those that
are there.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.run import contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.evaluation.suites.paths import SuitePath, calibrated_paths
from ccgym.evaluation.suites.protocol import SuiteProgress, SuiteRequest
from ccgym.evaluation.suites.scorecard import CardPath, Contestant, Scorecard
from ccgym.evaluation.suites.trained import trained_on
from ccgym.files import atomic_write
from ccgym.schemes import policies
from ccgym.schemes.registry import SchemeChoice, parse_scheme, registry, styles

RUNS: Final = 3
"""Runs per scheme and path."""
RUNTIME_NS: Final = 30_000_000_000
"""Length of a run, nanoseconds: Pantheon's."""
QUICK_RUNS: Final = 1
"""Runs of a quick suite."""
QUICK_RUNTIME_NS: Final = 10_000_000_000
"""Length of a run of a quick suite, nanoseconds."""

CLASSIC: Final = ("oracle", "bbr", "synthesized_bbr", "cubic", "copa", "vegas", "reno")
"""Schemes that take part beside the pretrained policies where none are named."""

PATHS_DIRECTORY: Final = "paths"
JSON_FILE: Final = "scorecard.json"
MARKS_FILE: Final = "scorecard_paths.csv"
RANKING_FILE: Final = "scorecard_ranking.csv"

_SIMULATING: Final = "simulating"
_RUNNING: Final = "running"


@dataclass(frozen=True)
class CalibratedSuite:
    """See the module; a :class:`~ccgym.evaluation.suites.protocol.Suite`."""

    name: str = "calibrated"
    """What one types."""
    title: str = "Pantheon's 18 emulators and Indigo's 24 synthetic links: scores, ranking, heat map"
    """For headings."""
    paths: tuple[SuitePath, ...] = ()
    """The paths; by default all 42."""

    def schemes(self, *, real: bool = False) -> tuple[SchemeChoice, ...]:
        """The oracle, classic schemes and all pretrained policies; on real backends without schemes that only the
        simulator can have."""
        del real  # An oracle on a real path is told what the path is made of.
        classic = [SchemeChoice(name) for name in CLASSIC if name in registry()]
        return (*classic, *(parse_scheme(name) for name in policies.pretrained()))

    def run(self, request: SuiteRequest, progress: SuiteProgress) -> Scorecard:
        """Run what is not there yet; write ``scorecard.json`` and two CSV files.

        Raises:
            CcgymError: A directory holds another experiment's results, or the backend cannot run these paths here.
        """
        started = time.time()
        paths = self.paths or calibrated_paths()
        experiments = {path: _experiment(request, path) for path in paths}
        first = next(iter(experiments.values()))
        counting = _Counting(progress, _RUNNING if first.real else _SIMULATING)
        progress.begin(counting.what, sum(len(one.planned()) for one in experiments.values()))
        results = {}
        for path, experiment in experiments.items():
            counting.next_path(path.name)
            results[path.name] = run_experiment(
                experiment,
                request.out / PATHS_DIRECTORY / path.name,
                jobs=request.jobs,
                repeat_limited=request.repeat_limited,
                observer=counting,
                command=request.command,
                grow=True,
            )
        parameters = {
            "suite": self.name,
            "ccgym": first.parameters()["ccgym"],
            "schemes": [choice.text for choice in first.schemes],
            "policies": first.parameters().get("policies", {}),
            "runs": first.runs,
            "runtime_s": first.runtime_ns / 1e9,
            "seed": first.seed,
            "backend": first.backend,
        }
        made = provenance(self.title, request.command, started, time.time() - started, request.backend)
        card = Scorecard(
            parameters=parameters,
            provenance={**made, "run_s": round(sum(one.wall_s for one in results.values()), 3)},
            paths=tuple(_card_path(path) for path in paths),
            schemes=_contestants(request.schemes, paths),
            results=results,
        )
        write_numbers(card, request.out)
        return card


def _experiment(request: SuiteRequest, path: SuitePath) -> Experiment:
    runs, runtime_ns = (QUICK_RUNS, QUICK_RUNTIME_NS) if request.quick else (RUNS, RUNTIME_NS)
    return Experiment(
        path=path.path,
        schemes=contenders(request.schemes, "schemes"),
        runs=runs if request.runs is None else request.runs,
        runtime_ns=runtime_ns if request.runtime_ns is None else request.runtime_ns,
        seed=request.seed,
        backend=request.backend,
    )


def _card_path(path: SuitePath) -> CardPath:
    known = path.path
    return CardPath(path.name, path.section, known.title, known.owd_ms, known.mean_rate_mbps)


def _contestants(schemes: Sequence[SchemeChoice], paths: Sequence[SuitePath]) -> tuple[Contestant, ...]:
    return tuple(_contestant(choice, paths, look) for choice, look in zip(schemes, styles(schemes), strict=True))


def _contestant(choice: SchemeChoice, paths: Sequence[SuitePath], look: Any) -> Contestant:
    policy = choice.policy
    seen = {} if policy is None else {path.name: trained_on(policy.card, path.path) for path in paths}
    known = {name: answer for name, answer in seen.items() if answer is not None}
    return Contestant(
        style=look,
        reference=bool(registry().get(choice.name, {}).get("capabilities", {}).get("knows_path")),
        trained_on=known if policy is not None and len(known) == len(paths) else None,
        learned=policy is not None,
    )


class _Counting:
    """Adds up the progress of many experiments; an :class:`~ccgym.evaluation.engine.Observer`."""

    def __init__(self, progress: SuiteProgress, what: str) -> None:
        self._progress = progress
        self.what = what
        self._path = ""

    def next_path(self, name: str) -> None:
        """The experiment on another path begins."""
        self._path = name

    def notice(self, text: str) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        self._progress.notice(f"{self._path}: {text}")

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        del what, total
        if done:
            self._progress.advance(self.what, done, self._path, kept=True)

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """See :class:`~ccgym.evaluation.engine.Observer`."""
        del what
        self._progress.advance(self.what, by, f"{note} · {self._path}", kept=kept)


def write_numbers(card: Scorecard, directory: Path) -> None:
    """Write the scorecard as JSON, its marks and its rankings as CSV."""
    atomic_write(directory / JSON_FILE, json.dumps(card.to_json(), indent=1, ensure_ascii=False) + "\n")
    atomic_write(directory / MARKS_FILE, marks_csv(card))
    atomic_write(directory / RANKING_FILE, ranking_csv(card))


def marks_csv(card: Scorecard) -> str:
    """A row per path and scheme; units in the names, fractions as such."""
    labels = {one.key: one.style.label for one in card.schemes}
    sections = {path.name: path for path in card.paths}
    rows = [
        {
            "path": mark.path,
            "section": sections[mark.path].section,
            "scheme": mark.scheme,
            "label": labels[mark.scheme],
            "trained": {None: "", True: "train", False: "held-out"}[mark.trained],
            "runs": mark.runs,
            "valid_runs": mark.counted,
            "limited_runs": mark.limited,
            "throughput_mbps": mark.throughput_mbps,
            "throughput_share": mark.share,
            "delay_p95_ms": mark.delay_p95_ms,
            "delay_ratio": mark.delay_ratio,
            "loss": mark.loss,
            "score": mark.score,
            "best": int(mark.best),
            "undominated": int(mark.undominated),
        }
        for mark in card.marks.values()
    ]
    return _csv(rows)


def ranking_csv(card: Scorecard) -> str:
    """A row per group and scheme."""
    rows = [
        {
            "group": group.name,
            "paths": len(card.ranked_paths(group)),
            "rank": place.rank,
            "scheme": place.scheme,
            "label": place.label,
            "score": place.score.mean,
            "score_low": place.score.low,
            "score_high": place.score.high,
            "behind": place.behind.mean,
            "behind_low": place.behind.low,
            "behind_high": place.behind.high,
            "first": place.first,
            "wins": place.wins,
            "undominated": place.undominated,
            "throughput_share": place.share,
            "delay_ratio": place.delay_ratio,
            "loss": place.loss,
        }
        for group in card.groups
        for place in card.rankings[group.name]
    ]
    return _csv(rows)


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else ["path"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in rows)
    return buffer.getvalue()


SUITE: Final = CalibratedSuite()
