"""Running a scorecard: every path is an evaluation in a directory of its own, ``paths/<name>``; the files."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ccgym.config.path import NetworkPath
from ccgym.evaluation.engine import RUNNING, SIMULATING, Observer, Silent
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.run import Contender
from ccgym.experiments.comparison import Counting, run_evaluation
from ccgym.experiments.request import Request, default_schemes
from ccgym.experiments.scorecard.scorecard import CardPath, CardScheme, Scorecard
from ccgym.experiments.scorecard.spec import ScorecardSpec
from ccgym.experiments.training import Training
from ccgym.files import atomic_write
from ccgym.schemes.registry import registry

PATHS_DIRECTORY: Final = "paths"
JSON_FILE: Final = "scorecard.json"
RESULTS_FILE: Final = "scorecard_paths.csv"
RANKING_FILE: Final = "scorecard_ranking.csv"


def run_scorecard(spec: ScorecardSpec, request: Request, observer: Observer | None = None) -> Scorecard:
    """Run what is not there yet; write ``scorecard.json`` and two CSV files.

    Raises:
        CcgymError: A directory holds another experiment's results, or the backend cannot run these paths here.
    """
    observer = observer or Silent()
    started = time.time()
    schemes = request.schemes or default_schemes(spec.schemes)
    evaluations = {name: spec.evaluation(NetworkPath.named(name), schemes, request) for name in spec.paths}
    first = next(iter(evaluations.values()))
    total = sum(len(one.planned()) for one in evaluations.values())
    counting = Counting(observer, RUNNING if first.real else SIMULATING, total)
    results = {
        name: run_evaluation(one, request.out / PATHS_DIRECTORY / name, request, counting, name)
        for name, one in evaluations.items()
    }
    parameters = {
        "experiment": spec.name,
        "ccgym": first.parameters()["ccgym"],
        "schemes": [one.text for one in schemes],
        "policies": first.parameters().get("policies", {}),
        "runs": first.runs,
        "runtime_s": first.runtime_ns / 1e9,
        "seed": first.seed,
        "backend": first.backend,
    }
    made = provenance(spec.title, request.command, started, time.time() - started, request.backend)
    card = Scorecard(
        spec=spec,
        parameters=parameters,
        provenance={**made, "run_s": round(sum(one.wall_s for one in results.values()), 3)},
        paths=tuple(_card_path(name, section) for name, section in spec.paths.items()),
        schemes=tuple(_card_scheme(one, spec) for one in schemes),
        results=results,
    )
    write_numbers(card, request.out)
    return card


def _card_path(name: str, section: str) -> CardPath:
    path = NetworkPath.named(name)
    return CardPath(name, section, path.title, path.owd_ms, path.mean_rate_mbps)


def _card_scheme(one: Contender, spec: ScorecardSpec) -> CardScheme:
    training = None if one.choice is None else Training.of(one.choice)
    knows_path = [registry().get(choice.name, {}).get("capabilities", {}).get("knows_path") for choice in one.choices]
    return CardScheme(
        style=one.style,
        reference=any(knows_path),
        trained_on=None if training is None else {name: training.draws(NetworkPath.named(name)) for name in spec.paths},
        learned=bool(one.policies),
    )


def write_numbers(card: Scorecard, directory: Path) -> None:
    """Write the scorecard as JSON, its results by path and its rankings as CSV."""
    atomic_write(directory / JSON_FILE, json.dumps(card.to_json(), indent=1, ensure_ascii=False) + "\n")
    atomic_write(directory / RESULTS_FILE, path_results_csv(card))
    atomic_write(directory / RANKING_FILE, ranking_csv(card))


def path_results_csv(card: Scorecard) -> str:
    """A row per path and scheme; units in the names, fractions as such."""
    labels = {one.key: one.style.label for one in card.schemes}
    sections = {path.name: path for path in card.paths}
    rows = [
        {
            "path": result.path,
            "section": sections[result.path].section,
            "scheme": result.scheme,
            "label": labels[result.scheme],
            "trained": {None: "", True: "train", False: "held-out"}[result.trained],
            "runs": result.runs,
            "valid_runs": result.counted,
            "limited_runs": result.limited,
            "throughput_mbps": result.throughput_mbps,
            "utilization": result.utilization,
            "delay_p95_ms": result.delay_p95_ms,
            "delay_ratio": result.delay_ratio,
            "loss": result.loss,
            "score": result.score,
            "best": int(result.best),
            "pareto_optimal": int(result.pareto_optimal),
        }
        for result in card.path_results.values()
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
            "pareto_optimal": place.pareto_optimal,
            "utilization": place.utilization,
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
