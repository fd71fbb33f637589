"""Our results directories, as Pantheon's and mahimahi's own programs read them (how: record/README.md)."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ccgym.evaluation.metrics import run_metrics
from ccgym.evaluation.pantheon import statistics_text
from ccgym.evaluation.pantheon.logs import read_log
from ccgym.evaluation.results import ResultSet
from ccgym.report.evaluation_table import PUBLISHED_COLUMNS, evaluation_table
from ccgym.report.pantheon_words import flow_table
from tests.differential.pantheon_cases import CASES, PARAMETERS, REAL, link_log, statistics

RECORDED = Path(__file__).parent / "recorded" / "pantheon"


def recorded_of(name: str) -> Any:
    return json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))


@pytest.fixture(scope="module", params=PARAMETERS)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, ResultSet, Any]]:
    """A directory of ours, its results, and what the programs said about an equal one."""
    directory = tmp_path_factory.mktemp(request.param)
    results = CASES[request.param].run(directory)
    yield directory, results, recorded_of(request.param)
    shutil.rmtree(directory)  # packet logs of up to 150 MB


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
                assert ours[scheme][run][flow] == pytest.approx(numbers, rel=1e-12, abs=1e-12)


def test_the_table_is_that_of_report_py(case: tuple[Path, ResultSet, Any]) -> None:
    _, results, recorded = case
    theirs = {row[0]: row[1:] for row in recorded["pantheon"]["table"]}
    per_flow = flow_table(results)
    assert {per_flow.text(row, "scheme"): [per_flow.text(row, c.name) for c in per_flow.columns[1:]]
            for row in per_flow.rows} == theirs  # fmt: skip
    if results.parameters["flows"] == 1:  # The table on the terminal is of all flows together.
        table = evaluation_table(results)
        for row in table.rows:
            runs, *means = theirs[table.text(row, "scheme")]
            assert table.text(row, "runs").split(" ")[0] == runs
            assert [table.text(row, name).split(" ± ")[0] for name in PUBLISHED_COLUMNS] == means


def test_acknowledgements_are_those_of_tunnel_graph_py(case: tuple[Path, ResultSet, Any]) -> None:
    directory, _, recorded = case
    theirs = recorded["pantheon"]["acknowledgements"]
    assert {log.name for log in directory.glob("*_acklink_run*.log")} == set(theirs), "mm-link's logs, too"
    for name, said in theirs.items():
        assert statistics_text(run_metrics(read_log(directory / name))).splitlines() == said


def test_pantheons_merge_of_our_raw_logs_gives_the_same_numbers(case: tuple[Path, ResultSet, Any]) -> None:
    directory, _, recorded = case
    otherwise = recorded["pantheon"]["merged_otherwise"]
    if (directory / f"{next(iter(recorded['pantheon']['perf']))}_mm_datalink_run1.log").exists():
        assert otherwise == {}
    for name, lines in otherwise.items():  # Without a log of mm-link the merge knows no delivery opportunities.
        known = [line.split(" (")[0] for line in recorded["pantheon"]["statistics"][name] if "capacity" not in line]
        assert lines == known


def test_all_programs_draw_the_directory(case: tuple[Path, ResultSet, Any]) -> None:
    _, results, recorded = case
    theirs = recorded["pantheon"]
    assert set(theirs["drawn"]) == figures({(cell.scheme, cell.run) for cell in results.cells})
    assert theirs["report_pages"] >= 3 + 3 * len(results.cells), "a run has its numbers, and a page of each direction"


def figures(runs: set[tuple[str, int]]) -> set[str]:
    """All that plot.py, plot_over_time.py and report.py add to a directory of ours without figures."""
    whole = ("pantheon_summary", "pantheon_summary_mean", "pantheon_throughput_time")
    return {"pantheon_report.pdf"} | {f"{name}.{kind}" for name in whole for kind in ("pdf", "svg")} | {
        f"{scheme}_{link}_{kind}_run{run}.png"
        for scheme, run in runs
        for link in ("datalink", "acklink")
        for kind in ("throughput", "delay")
    }  # fmt: skip


def test_of_real_packets_the_numbers_were_the_same() -> None:
    recorded = recorded_of("real")
    theirs = recorded["pantheon"]
    assert len(recorded["ours"]) == 2 * REAL.runs
    assert recorded["ours"] == theirs["statistics"]
    assert theirs["merged_otherwise"] == {}
    assert set(theirs["drawn"]) == figures({(s, n) for s in ("bbr", "cubic") for n in range(1, REAL.runs + 1)})


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
