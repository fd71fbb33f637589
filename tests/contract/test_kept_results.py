"""Every kind of results keeps its runs, goes on where it stopped, and writes the same two files."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.results_file import read_results
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.request import Request
from ccgym.experiments.scorecard_spec import ScorecardSpec
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec
from ccgym.experiments.views.gap import run_gap
from ccgym.experiments.views.league import run_league
from ccgym.experiments.views.scorecard import run_scorecard
from ccgym.experiments.views.verdicts import run_experiments
from tests.refusals import refused
from tests.results_rows import document_of, rows_of
from tests.watching import Watching

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", loss=0.01, name="test")
COMMON: dict[str, Any] = {
    "title": "small", "name": "small", "path": {"rate": "$rate", "rtt": "20ms", "queue": "20p", "loss": 0.01},
    "sweep": {"rate": ["6mbps", "12mbps"]}, "duration": "1s", "metrics": {"throughput": {}},
}  # fmt: skip
LEAGUE = {**COMMON, "games": {"rule": "fair_share", "throughput": ["throughput"]}}
CARD = ScorecardSpec.model_validate(
    {
        "kind": "scorecard", "title": "small", "name": "small",
        "sections": {"links": {"title": "links", "paths": ["indigo-5mbps-10ms", "77.72mbps"]}},
    }
)  # fmt: skip


def small(spec: dict[str, Any]) -> ExperimentSet:
    return ExperimentSet(
        title="small", include=("small.yaml",), name="small", experiments=(ExperimentSpec.model_validate(spec),)
    )


def evaluation(request: Request, observer: Silent) -> Any:
    made = Experiment(PATH, request.schemes or (), runs=request.runs or 1, runtime_ns=10**9)
    return run_experiment(made, request.out, jobs=1, observer=observer, grow=True)


def gap(request: Request, observer: Silent) -> Any:
    spec = GapSpec.model_validate({"path": PATH, "backends": ["sim"], "duration": "1s"})
    return run_gap(spec, request, observer)


KINDS: dict[str, tuple[Callable[[Request, Silent], Any], int]] = {
    "evaluation": (evaluation, 1),
    "experiment": (lambda request, observer: run_experiments(small(COMMON), request, observer), 2),
    "league": (lambda request, observer: run_league(small(LEAGUE), request, observer), 2),
    "scorecard": (lambda request, observer: run_scorecard(CARD, request, observer), 2),
    "gap": (gap, 1),
}
"""What makes results of each kind, and how many runs a repetition of a scheme has."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make(kind: str, out: Path, schemes: str, runs: int, observer: Silent | None = None) -> Any:
    asked = Request(out=out, schemes=parse_contenders(schemes), runs=runs, jobs=1)
    if kind == "scorecard":
        asked = replace(asked, runtime_ns=10**9)
    return KINDS[kind][0](asked, observer or Silent())


def numbers(out: Path) -> tuple[Any, list[str]]:
    """What was measured, but for when and by which command."""
    document = {key: value for key, value in document_of(out).items() if key not in ("provenance", "results")}
    for cell in document.get("cells", ()):
        del cell["wall_s"], cell["started_epoch_s"]
    return document, sorted(map(str, rows_of(out)))


def test_runs_are_kept_and_schemes_and_repetitions_only_add(kind: str, tmp_path: Path) -> None:
    each, seen = KINDS[kind][1], []
    for schemes, runs in (("cubic", 1), ("cubic", 1), ("reno,cubic", 2), ("cubic", 1)):
        watching = Watching()
        make(kind, tmp_path / "out", schemes, runs, watching)
        seen.append((watching.ran // each, watching.kept // each))
    assert seen == [(1, 0), (0, 1), (3, 1), (0, 1)]
    make(kind, tmp_path / "alone", "cubic", 1)
    assert numbers(tmp_path / "out") == numbers(tmp_path / "alone"), "results do not depend on company"


def test_what_was_interrupted_goes_on(kind: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(kind, tmp_path / "cut", "cubic,reno", 2, Watching(stop_after=2))
    assert not (tmp_path / "cut" / "results.json").exists()
    watching = Watching()
    make(kind, tmp_path / "cut", "cubic,reno", 2, watching)
    assert watching.kept >= 2
    assert watching.kept + watching.ran == 4 * KINDS[kind][1]
    make(kind, tmp_path / "whole", "cubic,reno", 2)
    assert numbers(tmp_path / "cut") == numbers(tmp_path / "whole")


def test_a_damaged_run_is_told_of_and_made_again(kind: str, tmp_path: Path) -> None:
    make(kind, tmp_path, "cubic", 2)
    before = numbers(tmp_path)
    first, *_ = sorted(tmp_path.rglob("runs/*"))
    first.write_bytes(first.read_bytes()[:100])
    watching = Watching()
    make(kind, tmp_path, "cubic", 2, watching)
    assert watching.ran == 1
    assert any(first.name in notice for notice in watching.notices)
    assert numbers(tmp_path) == before


def test_the_files_say_it_all(kind: str, tmp_path: Path) -> None:
    made = make(kind, tmp_path, "cubic,reno", 2)
    whole = made.as_dict() if kind == "evaluation" else made.to_json()
    document = read_results(tmp_path)
    assert document == json.loads(json.dumps(whole)), "what --json prints"
    assert (document["kind"], [one["key"] for one in document["schemes"]]) == (kind, ["cubic", "reno"])
    assert {"parameters", "provenance", "failures"} <= document.keys()
    rows = rows_of(tmp_path)
    assert {(row["scheme"], row["run"]) for row in rows} == {(key, run) for key in ("cubic", "reno") for run in "12"}
    rates = {row["condition"]: float(row["value"]) for row in rows if row["metric"].startswith("throughput")}
    assert len(rates) == KINDS[kind][1]
    assert all(rate > 0.1 for rate in rates.values())
    assert {row["unit"] for row in rows if row["metric"].startswith("throughput")} == {"Mbit/s"}


def test_directories_of_others_are_left_alone(kind: str, tmp_path: Path) -> None:
    inside = {"scorecard": "paths/77.72mbps", "gap": "sim"}.get(kind, "")
    taken, busy, file = tmp_path / "taken", tmp_path / "busy" / inside, tmp_path / "file"
    (taken / inside).mkdir(parents=True)
    (taken / inside / "seeds.json").write_text("{}")
    file.write_text("")
    busy.mkdir(parents=True)
    with (busy / ".ccgym_lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for out, code in (("taken", "directory-taken"), ("busy", "directory-locked"), ("file", "file-unwritable")):
            with refused(ResultsError, code):
                make(kind, tmp_path / out, "cubic", 1)
    assert not list(tmp_path.glob("*/results.json"))
