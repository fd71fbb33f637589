"""What notebooks and prompts show of objects."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import ccgym
from ccgym import NetworkPath, RunRecord
from ccgym.config.display import html_table
from ccgym.errors import ConfigError
from ccgym.report.run_plot import plot_results
from tests.refusals import refused
from tests.unit.made_up_results import cell, result_set
from tests.unit.test_experiment_report import invented

PATH = NetworkPath(rate="32mbps", rtt="15ms", queue="40p", loss=0.01)


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return ccgym.simulate(PATH, ["cubic", {"scheme": "reno", "start": "2s"}], duration=5)


def cells(html: str) -> list[list[str]]:
    """The table of an object, row by row; what is no XML fails."""
    return [["".join(cell.itertext()) for cell in row] for row in ET.fromstring(html).iter("tr")]


def test_paths_and_elements_are_in_users_units() -> None:
    assert repr(PATH.chain[0]) == "Delay(delay='7.5ms')"
    assert type(PATH.chain[0])(delay="7.5ms") == PATH.chain[0]
    assert "\n" not in repr(PATH)
    assert dict(cells(PATH._repr_html_()))["base RTT"].startswith("15 ms")


def test_a_run_is_a_table_with_a_curve_per_flow(run: RunRecord) -> None:
    head, *rows = cells(run._repr_html_())
    assert [re.findall(r"\((.*)\)", one) for one in head] == [[], ["Mbit/s"], ["ms"], ["%"]]
    assert [row[0] for row in rows] == ["1 cubic", "2 reno", "total"]
    assert float(rows[2][1]) == pytest.approx(run.total.throughput_mbps, abs=0.005)
    assert float(rows[1][3]) == pytest.approx(100 * run.flows[1].loss, abs=0.005)
    assert run._repr_html_().count("<polyline") == 2
    assert "<svg" not in RunRecord.from_json(run.to_json())._repr_html_()
    assert len(repr(run).splitlines()) == 5


def test_an_evaluation_is_a_table_of_means() -> None:
    head, *rows = cells(result_set()._repr_html_())
    assert len(head) == 5
    assert rows[0] == ["TCP BBR", "3", "72.70 ± 0.10", "65.92 ± 0.01", "3.40 ± 0.00"]


def test_an_experiment_is_a_table_of_schemes() -> None:
    results = invented("cubic,bbr")
    head, *rows = cells(results._repr_html_())
    assert head[1:] == ["TCP Cubic", "TCP BBR"]
    assert [row[0] for row in rows] == [test.title for test in results.tests]
    assert results.outcome(results.tests[0], "bbr").headline in rows[0][2]
    assert "\n" not in repr(results)


def test_text_is_escaped() -> None:
    assert cells(html_table("<a>", ["&"], [["<script>"]])) == [["&"], ["<script>"]]


def test_results_are_plotted_and_saved(tmp_path: Path) -> None:
    figure = plot_results(result_set(), tmp_path / "means.pdf")
    assert {text.get_text() for text in figure.axes[0].texts} >= {"TCP BBR", "TCP Cubic", "SCReAM"}
    with refused(ConfigError, "unknown-suffix at file"):
        result_set().plot("means.bmp")


def test_two_results_are_compared() -> None:
    ours = result_set()
    faster = tuple(cell(one.scheme, one.run, one.record.total.throughput_mbps + 5, 66, 0.01) for one in ours.cells)
    theirs = replace(ours, cells=tuple(one for one in faster if one.scheme != "scream"))
    found = ccgym.compare(theirs, ours)
    assert {scheme for scheme, _ in found.found} == {"bbr", "cubic"}
    first = found.rows()[0]
    assert (first["scheme"], first["quantity"], first["verdict"]) == ("bbr", "throughput_mbps", "better")
    assert first["mean"] == pytest.approx(5)
    assert first["low"] < 5 < first["high"]
    assert len(cells(found._repr_html_())) == 1 + len(found.rows()) == 7
    assert len(repr(found).splitlines()) == 7


def test_single_runs_are_compared_without_an_interval(run: RunRecord) -> None:
    (throughput, *_) = ccgym.compare(run, [run]).rows()
    assert (throughput["mean"], throughput["low"], throughput["verdict"]) == (0, None, "undecided")
    with refused(ConfigError, "unknown-scheme at compare"):
        ccgym.compare(run, result_set())
    with refused(ConfigError, "wrong-type at compare"):
        ccgym.compare(run, 3)  # type: ignore[arg-type]
