"""Directories that Pantheon's own test.py filled through its tunnel: its numbers, and ours (how: record/README.md)."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.evaluation.metrics import run_metrics
from ccgym.evaluation.pantheon import statistics_text
from ccgym.evaluation.pantheon.directory import PantheonDirectory
from ccgym.evaluation.pantheon.logs import read_log
from ccgym.evaluation.pantheon.raw_logs import merged, raw_flows
from ccgym.evaluation.results import ResultSet
from ccgym.report.pantheon_words import flow_table
from tests.commands import analyze
from tests.differential.pantheon_cases import statistics

RECORDED = Path(__file__).parent / "recorded" / "pantheon_tunnel"

SMALL = ("local", "remote", "without_tunnel")
"""Directories with all logs: two flows over mahimahi, a test between two hosts with clock offsets, one with -f 0."""

LARGE = ("published", "three", "cellular")
"""Directories of megabytes, of which numbers are kept."""


def recorded_of(name: str) -> Any:
    return json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))


def unpacked(name: str, place: Path) -> Path:
    with tarfile.open(RECORDED / f"{name}.tar.gz") as archive:
        # Extracts no links and no devices; Python before 3.11.4 has no such filter.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(place / name)
    return place / name


@pytest.fixture(params=SMALL)
def small(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A directory with all its logs, and what Pantheon's programs said of it."""
    return unpacked(request.param, tmp_path), recorded_of(request.param)


def read(directory: Path, out: Path) -> ResultSet:
    assert analyze([str(directory), "--out", str(out), "--no-figures", "--include-acklink"]) == 0
    return ResultSet.load(out)


def same_numbers(out: Path, theirs: Any) -> None:
    assert statistics(out) == theirs["statistics"]
    ours = json.loads((out / "pantheon_perf.json").read_text())
    assert set(ours) == set(theirs["perf"])
    for scheme, runs in theirs["perf"].items():
        assert set(ours[scheme]) == set(runs)
        for run, flows in runs.items():
            assert set(ours[scheme][run]) == set(flows)
            for flow, numbers in flows.items():
                assert ours[scheme][run][flow] == pytest.approx(numbers, rel=1e-12, abs=1e-12)


def table(results: ResultSet) -> list[list[str]]:
    made = flow_table(results)
    return [[made.text(row, column.name) for column in made.columns] for row in made.rows]


def test_numbers_are_those_of_plot_py(small: tuple[Path, Any], tmp_path: Path) -> None:
    directory, recorded = small
    results = read(directory, tmp_path / "out")
    same_numbers(tmp_path / "out", recorded["pantheon"])
    if "table" in recorded["pantheon"]:  # report.py has none for -f 0
        assert table(results) == recorded["pantheon"]["table"]


def test_acknowledgements_are_those_of_tunnel_graph_py(small: tuple[Path, Any]) -> None:
    directory, recorded = small
    theirs = recorded["pantheon"]["acknowledgements"]
    assert {log.name for log in directory.glob("*_acklink_run*.log")} == set(theirs)
    for name, said in theirs.items():
        assert statistics_text(run_metrics(read_log(directory / name))).splitlines() == said


def test_raw_logs_of_the_tunnel_give_the_packets_of_the_merge(small: tuple[Path, Any]) -> None:
    directory, recorded = small
    raw, alone = raw_flows(directory)
    assert not alone
    assert bool(raw) == (recorded["metadata"]["flows"] > 0)
    runs = {(run.scheme, run.run): run for run in PantheonDirectory.open(directory).runs}
    for (scheme, number, link), flows in raw.items():
        assert [one.flow for one in flows] == list(range(1, recorded["metadata"]["flows"] + 1))
        theirs = read_log(directory / f"{scheme}_{link}_run{number}.log")
        link_log = directory / f"{scheme}_mm_{link}_run{number}.log"
        offsets = runs[scheme, number].statistics.offsets_ms
        local, remote = (offsets.get(which, 0.0) for which in ("Local", "Remote"))
        sender, receiver = (local, remote) if recorded["metadata"].get("sender_side") != "remote" else (remote, local)
        entered, left = (sender, receiver) if link == "datalink" else (receiver, sender)
        ours = merged(flows, link_log if link_log.exists() else None, egress_offset_ms=entered, ingress_offset_ms=left)
        assert np.array_equal(ours.opportunity_ns, theirs.opportunity_ns)
        assert ours.flows == theirs.flows
        for flow in theirs.flows:  # Packets of different flows in the same microsecond may stand in another order.
            one, other = ours.of_flow(flow), theirs.of_flow(flow)
            for name in vars(one):
                assert np.array_equal(getattr(one, name), getattr(other, name)), name
        if link == "datalink":
            assert theirs.arrival_bytes.max() == 1500, "the largest packet inside, 1464 bytes, with the tunnel's 36"


def test_raw_logs_alone_give_the_numbers_of_plot_py(small: tuple[Path, Any], tmp_path: Path) -> None:
    directory, recorded = small
    for file in (*directory.glob("*_datalink_run?.log"), *directory.glob("*_acklink_run?.log")):
        if "_mm_" not in file.name:
            file.unlink()
    for file in directory.glob("*_stats_run*.log"):  # as test.py leaves it
        head = [line for line in file.read_text().splitlines() if " at: " in line or "offset:" in line]
        file.write_text("\n".join(head) + "\n")
    read(directory, tmp_path / "out")
    same_numbers(tmp_path / "out", recorded["pantheon"])


@pytest.mark.long
def test_statistics_alone_show_a_published_directory(tmp_path: Path) -> None:
    directory, recorded = unpacked("published", tmp_path), recorded_of("published")
    assert not list(directory.glob("*_datalink_run*.log")), "an archive without packet logs"
    assert analyze([str(directory), "--out", str(tmp_path / "out")]) == 0
    results = ResultSet.load(tmp_path / "out")
    assert table(results) == recorded["pantheon"]["table"]
    assert len(results.cells) == 20
    for cell in results.cells:
        theirs = recorded["pantheon"]["perf"][cell.scheme][str(cell.run)]["all"]
        assert cell.record.total.throughput_mbps == pytest.approx(theirs["tput"], abs=5.01e-3)
        assert cell.record.total.delay_p95_ms == pytest.approx(theirs["delay"], abs=5.01e-4)
        assert cell.record.total.loss == pytest.approx(theirs["loss"], abs=5.01e-5)
    assert (tmp_path / "out" / "pantheon_summary_mean.svg").exists()
    explore = (tmp_path / "out" / "explore.html").read_text()
    assert all(row[0] in explore for row in recorded["pantheon"]["table"])
    page = (tmp_path / "out" / "pantheon_report.html").read_text()
    metadata = recorded["metadata"]
    for said in (
        "mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace",
        "Repeated the test of 4 congestion control schemes 5 times.",
        "Each test lasted for 30 seconds running 1 flow.",
        metadata["git_summary"].splitlines()[0],
        "Run 5: Statistics of Eagle of ccgym",
        *(row[0] for row in recorded["pantheon"]["table"]),
    ):
        assert said in page


@pytest.mark.parametrize("name", LARGE)
def test_of_long_runs_the_numbers_were_the_same(name: str) -> None:
    recorded = recorded_of(name)
    metadata = recorded["metadata"]
    runs = len(metadata["cc_schemes"]) * metadata["run_times"]
    for logs in ("merged", "raw"):
        ours = recorded["ours"][logs]
        assert ours["runs"] == runs
        assert ours["numbers"] == runs * 3 * (1 + metadata["flows"])
        assert ours["largest_difference"] < 1e-9
        assert ours["statistics_otherwise"] == []
    assert recorded["ours"]["raw"]["packets"] > 10_000
    assert recorded["ours"]["raw"]["packets_otherwise"] == 0
