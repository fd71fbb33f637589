"""A student's assignment as an experiment: its figures, and what is left of it over the wrong trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccgym.evaluation.observer import Silent
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.load import load_experiment
from ccgym.experiments.request import Request
from ccgym.experiments.views.results import ExperimentResults
from ccgym.experiments.views.verdicts import run_experiments
from ccgym.report import experiment_report
from ccgym.report.experiment_report import figures_of_test

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    """One run of every scheme, profile and trace."""
    source = load_experiment("assignment", quick=True)
    request = Request(out=tmp_path_factory.mktemp("assignment"), schemes=parse_contenders("cubic,bbr,vegas"))
    return run_experiments(source, request)


def means(results: ExperimentResults, test: str, place: int, metric: str) -> dict[str, float]:
    """By scheme the mean of a metric in a condition."""
    found = next(one for one in results.tests if one.name == test)
    return {
        style.key: outcome.conditions[place].metrics[metric].mean for style, outcome in results.of_test(found)
    }  # fmt: skip


def test_on_the_profiles_all_fill_the_link_and_differ_in_delay(results: ExperimentResults) -> None:
    for place, rate in ((0, 50.0), (1, 1.0)):
        assert all(value > 0.95 * rate for value in means(results, "profiles", place, "throughput").values())
        delays = means(results, "profiles", place, "delay_p95")
        assert delays["vegas"] < delays["bbr"] < delays["cubic"]
        assert all(0.95 < value < 1.02 for value in means(results, "profiles", place, "offered").values())
        p95, mean = (means(results, "profiles", place, name) for name in ("rtt_p95", "rtt"))
        assert all(mean[key] * 0.95 < p95[key] < 1.3 * mean[key] for key in mean)


def test_the_wrong_trace_measures_its_gap(results: ExperimentResults) -> None:
    rates, delays = (means(results, "mistake", 1, name) for name in ("throughput", "delay_p95"))
    assert all(rate < 0.15 * 33 for rate in rates.values())
    assert all(delay > 1400 for delay in delays.values())


def test_every_figure_is_drawn(results: ExperimentResults, tmp_path: Path) -> None:
    experiment_report.write(results, tmp_path, Silent(), figures=True)
    names = {file.stem for file in tmp_path.glob("*.svg")}
    figures = {name for test in results.tests for name in figures_of_test(results, test)}
    assert names == figures | {"assignment_overview"}
    assert len(figures) == 6
    assert "Figure is missing" not in (tmp_path / "assignment.html").read_text()
