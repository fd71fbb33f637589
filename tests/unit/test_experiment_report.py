"""The report of experiments: tables, figures and pages of invented numbers."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

from ccgym.evaluation.observer import Silent
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.load import load_experiment
from ccgym.experiments.outcome import Outcome, RunResult, Test
from ccgym.experiments.plan import planned
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.views.results import ExperimentResults
from ccgym.experiments.views.verdicts import judge
from ccgym.report import experiment_report, style
from ccgym.report.experiment_report import WORDS, figures_of_test, quantity
from tests.watching import Watching

QUICK = load_experiment("weaknesses", quick=True)


TESTS = tuple(Test(one) for one in QUICK.experiments)


BY_NAME = {test.name: test for test in TESTS}


def invented(schemes: str = "cubic,aurora", *, empty: bool = False) -> ExperimentResults:
    """Results of all stress tests with invented numbers, or without any."""
    tested = parse_contenders(schemes)
    random = np.random.Generator(np.random.PCG64(0))
    outcomes: dict[tuple[str, str], Outcome] = {}
    for test in TESTS:
        plan = planned(test, tested, runs=2, seed=1)
        runs: dict[str, list[RunResult]] = {}
        for one in plan if not empty else []:
            values = {metric.key: float(random.random()) for metric in test.metrics}
            series = {
                "t_s": [1.0, 2.0, 3.0], "rate_mbps": [1.0, 2.0, 3.0], "capacity_mbps": [4.0, 4.0, 4.0],
                "loss": [0.1, 0.0, 0.0], "rtt_ms": [40.0, 50.0, 60.0],
            }  # fmt: skip
            kept = series if one.number == 1 and test.spec.series is not None else None
            result = RunResult(one.condition.key, one.number, one.run.seed, values, "00", kept)
            runs.setdefault(one.tested.key, []).append(result)
        outcomes |= {(test.name, key): found for key, found in judge(test, tested, plan, runs).items()}
    assert isinstance(QUICK, ExperimentSet)
    return ExperimentResults(
        source=QUICK,
        parameters={"seed": 1, "runs": 2, "quick": True, "schemes": []},
        provenance={
            "path": "p", "command": "c", "started": "now", "versions": {"a": "1"}, "system": "s", "runs_s": 1,
            "backend": "sim",
        },
        styles=tuple(one.style for one in tested),
        trained_on={"aurora": "slow paths"},
        tests=TESTS,
        outcomes=outcomes,
        failures=("intra_rtt_fairness · cubic: <broken>",),
    )  # fmt: skip


@pytest.fixture(scope="module")
def results() -> ExperimentResults:
    return invented()


@pytest.mark.long
def test_the_report_has_the_figures_of_the_yaml(results: ExperimentResults, tmp_path: Path) -> None:
    progress = Watching()
    written = experiment_report.write(results, tmp_path, progress, figures=True)
    assert [file.file.name for file in written][:2] == ["weaknesses.html", "weakness_overview.svg"]
    figures = [name for test in TESTS for name in figures_of_test(results, test)]
    assert figures[0] == "weakness_intra_rtt_fairness"
    for name in ("weakness_overview", *figures):
        for suffix in ("svg", "pdf", "png"):
            assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000
    assert (progress.begun, progress.ran) == ([len(figures) + 2], len(figures) + 2)
    page = (tmp_path / "weaknesses.html").read_text(encoding="utf-8")
    assert page.count('data-type="image/svg+xml"') == len(figures) + 1
    assert "Figure is missing" not in page
    assert "&lt;broken&gt;" in page
    assert "Aurora was trained on slow paths" in page
    assert "a quick look: fewer conditions" in page
    for test in TESTS:
        assert f'id="{test.name}"' in page
        for scheme, outcome in results.of_test(test):
            cell = re.escape(f"{outcome.headline}") + r"\s+" + WORDS[outcome.verdict]
            assert re.search(cell, page), f"{scheme.label} in the table of the overview"


def test_tables_without_figures(results: ExperimentResults, tmp_path: Path) -> None:
    from rich.console import Console

    written = experiment_report.write(results, tmp_path, Silent(), figures=False)
    assert [file.file.name for file in written] == ["weaknesses.md", "results.json", "results.csv"]
    table = (tmp_path / "weaknesses.md").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("|") for line in table) >= 2 + len(TESTS)
    for width in (60, 80, 160):
        console = Console(width=width, record=True, file=io.StringIO())
        for part in experiment_report.terminal(results):
            console.print(part)
        text = " ".join(console.export_text().split())
        assert "FAIL" in text
        assert all(test.brief in text for test in TESTS), "when it passes"
        outcomes = [outcome for test in TESTS for _, outcome in results.of_test(test)]
        digits = [number for outcome in outcomes for number in re.findall(r"[\d.]+", outcome.headline)]
        assert set(digits) <= set(re.findall(r"[\d.]+", text)), "no digit is cut"
    assert quantity(results, BY_NAME["responsiveness"]) == "utilization, queueing delay"


def test_figures_say_what_was_measured(results: ExperimentResults) -> None:
    from ccgym.report.figures.verdicts import verdicts_figure

    with style.house_style():
        texts = {text.get_text() for text in verdicts_figure(results).axes[0].texts}
        for test in TESTS:
            for scheme, outcome in results.of_test(test):
                assert outcome.headline in texts
                assert scheme.label in texts
        test = BY_NAME["intra_rtt_fairness"]
        fairness = figures_of_test(results, test)["weakness_intra_rtt_fairness"].draw(results, test)
        assert len(fairness.axes) == 3
        for axes, buffer in zip(fairness.axes, (0.2, 1.0, 4.0), strict=True):
            cubic = axes.lines[0]
            rows = results.outcomes["intra_rtt_fairness", "cubic"].conditions
            own = [one for one in rows if one.at["buffer_bdp"] == buffer]
            assert np.asarray(cubic.get_xdata()).tolist() == [one.at["owd_ms"] for one in own]
            assert np.asarray(cubic.get_ydata()).tolist() == [one.metrics["ratio"].mean for one in own]


@pytest.mark.long
def test_an_experiment_without_runs_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything failed: the report says so instead of falling over."""
    monkeypatch.setattr(style, "FORMATS", (".svg",))
    empty = invented(empty=True)
    verdicts = {name: outcome.verdict for name, outcome in empty.outcomes.items()}
    assert verdicts.pop(("decision_latency", "cubic")) == "none", "only of learned policies"
    assert set(verdicts.values()) == {"incomplete"}
    experiment_report.write(empty, tmp_path, Silent(), figures=True)
    assert "incomplete" in (tmp_path / "weaknesses.md").read_text(encoding="utf-8")
