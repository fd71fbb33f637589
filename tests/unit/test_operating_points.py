"""Mean operating points, and the figures that show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ccgym.errors import ConfigError
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.load import load_experiment
from ccgym.experiments.operating_points import OperatingPoint, operating_points
from ccgym.experiments.request import Request
from ccgym.experiments.views.results import ExperimentResults
from ccgym.experiments.views.verdicts import run_experiments
from ccgym.report.experiment_report import compared_table
from ccgym.report.figures import chosen_figure
from ccgym.report.operating_figures import OperatingOptions, Runs
from ccgym.report.style import house_style
from tests.refusals import refused

EXPERIMENT = """
title: Two flows
sweep: {buffer: [0.5bdp, 2bdp]}
path: {rate: 10mbps, rtt: 40ms, queue: $buffer}
flows: [{scheme: $scheme}, {scheme: reno, start: 1s}]
duration: 4s
runs: 1
metrics:
  goodput: {flows: [1]}
  srtt: {metric: mean_srtt_l4, scope: flow_2}
  bdp: {metric: mean_agg_utilization_bdp_l4}
"""
FIGURES = (
    "operating_point_over_time", "operating_point_distribution", "in_flight", "operating_point_plane",
    "operating_point_comparison",
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    place = tmp_path_factory.mktemp("operating")
    file = place / "two.yaml"
    file.write_text(EXPERIMENT)
    request = Request(out=place / "out", schemes=parse_contenders("cubic,vegas"), jobs=1)
    return run_experiments(load_experiment(str(file)), request)


def test_joint_point_and_optimum() -> None:
    def table(*values: float | None) -> dict[str, list[object]]:
        names = ("mean_throughput_l4", "mean_srtt_l4", "mean_in_flight_l4")
        return {name: [value, "", None] for name, value in zip(names, values, strict=True)}

    def best(srtt_ms: float, rate: float = 9.0) -> dict[str, dict[str, float]]:
        return {"optimum": {"throughput_mbps": rate, "srtt_ms": srtt_ms, "in_flight": srtt_ms / 2}}

    numbers = {"flows": [best(20), best(40)], "tables": {"flow_1": table(3, 50, 10), "flow_2": table(5, None, 20)}}
    found = operating_points(numbers)
    assert found.flows[1] == OperatingPoint(5, None, 20)
    assert found.joint == OperatingPoint(8, 50, 30), "what is not known does not count"
    assert found.optimum == OperatingPoint(9.0, 30, 15)
    assert operating_points({**numbers, "flows": [best(20), best(40, 4.0)]}).optimum is None, "two bottlenecks"
    assert operating_points({**numbers, "flows": [{"optimum": None}] * 2}).optimum is None


@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_every_scheme_in_the_condition(results: ExperimentResults, name: str) -> None:
    (test,) = results.tests
    with house_style():
        drawn = chosen_figure({name: {"where": {"buffer_bdp": "2bdp"}}}).draw(results, test)
    texts = [axes.get_title() for axes in drawn.axes] + [one.get_text() for one in drawn.legends[0].get_texts()]
    assert {style.label for style in results.styles} <= set(texts)
    if name != FIGURES[-1]:
        assert {"flow 1", "flow 2: reno"} <= set(texts)
    for axes in drawn.axes:
        for line in axes.lines:
            if axes.get_ylim()[1] > 1.1:
                assert np.nanmax(line.get_ydata()) <= axes.get_ylim()[1], "nothing is cut off"


def test_what_is_shown(results: ExperimentResults) -> None:
    (test,) = results.tests
    runs = Runs.of(results, test, OperatingOptions())
    assert (runs.condition, len(runs.shown), runs.most_flows) == ("buffer 0.5 BDP", 2, 2)
    first = runs.shown[0]
    assert first.points.optimum is not None
    assert (first.points.optimum.throughput_mbps or 0) == pytest.approx(10 * 1448 / 1500, rel=1e-3)
    assert first.finite(1, "throughput_mbps").size < first.finite(0, "throughput_mbps").size, "it came later"
    with refused(ConfigError, "unknown-name at figures of two: where"):
        Runs.of(results, test, OperatingOptions(where={"buffer_bdp": 3}))
    assert Runs.of(replace(results, directory=None), test, OperatingOptions()).shown == []


def test_the_best_of_a_condition_are_bold(results: ExperimentResults) -> None:
    (test,) = results.tests
    table = compared_table(results, test)
    assert len(table.rows) == 4
    for key, merit in (("goodput", 1), ("srtt", -1)):
        for rows in (table.rows[:2], table.rows[2:]):
            tones = [row.values[key].tone for row in rows]
            means = [merit * row.values[key].value.mean for row in rows]
            assert tones[means.index(max(means))] == "best"
            assert tones[means.index(min(means))] == ""
    distances = [abs(row.values["bdp"].value.mean - 1) for row in table.rows[:2]]
    assert table.rows[distances.index(min(distances))].values["bdp"].tone == "best"
