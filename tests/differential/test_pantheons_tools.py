"""Our results directories, as Pantheon's and mahimahi's own programs read them (how: record/README.md)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.evaluation.results import ResultSet
from ccgym.report.evaluation_table import PUBLISHED_COLUMNS, evaluation_table
from tests.differential.pantheon_cases import CASES, link_log, statistics

RECORDED = Path(__file__).parent / "recorded" / "pantheon"


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ResultSet, Any]:
    """A directory of ours, its results, and what the programs said about an equal one."""
    directory = tmp_path_factory.mktemp(request.param)
    results = CASES[request.param].run(directory)
    return directory, results, json.loads((RECORDED / f"{request.param}.json").read_text())


def test_these_are_the_runs_that_were_recorded(case: tuple[Path, ResultSet, Any]) -> None:
    _, results, recorded = case
    assert results.trajectory_hash == recorded["trajectory_hash"], "record_pantheon.py must be run again"


def test_statistics_files_are_those_that_plot_py_writes(case: tuple[Path, ResultSet, Any]) -> None:
    directory, _, recorded = case
    assert statistics(directory) == recorded["pantheon"]["statistics"]


def test_perf_is_that_of_plot_py(case: tuple[Path, ResultSet, Any]) -> None:
    directory, _, recorded = case
    ours, theirs = json.loads((directory / "pantheon_perf.json").read_text()), recorded["pantheon"]["perf"]
    assert {scheme: list(runs) for scheme, runs in ours.items()} == {s: sorted(runs) for s, runs in theirs.items()}
    for scheme, runs in theirs.items():
        for run, flows in runs.items():
            assert set(ours[scheme][run]) == set(flows)
            for flow, numbers in flows.items():
                # Pantheon reads logs, which have microseconds; the simulator has nanoseconds.
                assert ours[scheme][run][flow] == pytest.approx(numbers, rel=1e-6, abs=5.01e-4)


def test_the_table_is_that_of_report_py(case: tuple[Path, ResultSet, Any]) -> None:
    _, results, recorded = case
    theirs = {row[0]: row[1:] for row in recorded["pantheon"]["table"]}
    table = evaluation_table(results)
    assert set(theirs) == {table.text(row, "scheme") for row in table.rows}
    for row in table.rows:
        runs, *means = theirs[table.text(row, "scheme")]
        assert table.text(row, "runs").split(" ")[0] == runs
        if results.parameters["flows"] == 1:  # Pantheon has columns per flow, ours are of all flows together.
            assert [table.text(row, name).split(" ± ")[0] for name in PUBLISHED_COLUMNS] == means


def test_plot_py_draws_the_directory(case: tuple[Path, ResultSet, Any]) -> None:
    _, _, recorded = case
    names = ["pantheon_summary.pdf", "pantheon_summary.svg", "pantheon_summary_mean.pdf", "pantheon_summary_mean.svg"]
    assert recorded["pantheon"]["figures"] == names


def test_mahimahis_scripts_read_our_link_log(case: tuple[Path, ResultSet, Any]) -> None:
    directory, _, recorded = case
    if "mahimahi" not in recorded:
        return
    events = link_log(directory)
    assert hashlib.sha256("\n".join(events).encode()).hexdigest() == recorded["mahimahi"]["events_sha256"]
    assert any(line.startswith("# ") for line in events), "a drop among them"
    lines = [line.split() for line in events if not line.startswith("# ")]
    seconds = (int(lines[-1][0]) - int(lines[0][0])) / 1000
    capacity, throughput = (sum(int(b) * 8e-6 for _, k, b, *_ in lines if k == kind) / seconds for kind in "#-")
    assert recorded["mahimahi"]["mm-throughput-graph 500"] == [
        f"Average capacity: {capacity:.2f} Mbits/s",  # 12.03 of 12: with mahimahi's prefix of 4 bytes
        f"Average throughput: {throughput:.2f} Mbits/s ({100 * throughput / capacity:.1f}% utilization)",
        *recorded["mahimahi"]["mm-delay-graph"],
    ]
