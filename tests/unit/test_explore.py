"""What ``explore.html`` holds: the numbers and series of the files, commands that run, and nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.errors import ResultsError
from ccgym.evaluation.results import ResultSet
from ccgym.report import explore
from ccgym.report.evaluation_table import evaluation_table
from ccgym.report.explore import PANELS, UPLOT, Commands, explore_values, page_data, run_table
from ccgym.report.page import render
from tests.commands import analyze, evaluate
from tests.refusals import refused
from tests.unit.made_up_results import cell, result_set, series, store


def read(data: dict[str, Any], run: int) -> dict[tuple[str, str, int], np.ndarray]:
    """The series of a run, as the page's script reads them."""
    values = np.frombuffer(base64.b64decode(data["values"]), dtype="<f4")
    one = data["runs"][run]
    return {
        (PANELS[panel].name, PANELS[panel].lines[line].column, flow): values[place : place + one["count"]]
        for panel, line, flow, place in one["series"]
    }


def test_the_page_has_the_series_of_the_files(tmp_path: Path) -> None:
    results = store(tmp_path, result_set(), flows=2)
    data = page_data(results, tmp_path)
    assert data["step"] == 0.1
    assert [run["name"] for run in data["runs"]] == [one.name for one in results.cells]
    found, table = read(data, 4), series(2)
    for flow in (1, 2):
        wanted = table["throughput_mbps"][table["flow"] == flow]
        assert found["throughput", "throughput_mbps", flow] == pytest.approx(wanted, rel=1e-6)
    assert found["window", "cwnd_bytes", 1] == pytest.approx(table["cwnd_bytes"][::2] / 1000, rel=1e-6), "in kB"
    assert found["throughput", "capacity_mbps", 0] == pytest.approx(77.72)
    queues = [key for key in found if key[0] == "queue"]
    assert queues == [("queue", "queue_packets", 0), ("queue", "queue_max_packets", 0)], (
        "one queue, and not one per flow"
    )
    assert not any(key[1] == "pacing_rate_mbps" for key in found), "nothing is paced"


def test_means_are_those_of_the_table(tmp_path: Path) -> None:
    results = result_set()
    data, table = page_data(results, tmp_path), evaluation_table(results)
    for scheme, row in zip(data["schemes"], table.rows):
        for place, column in enumerate(explore.METRICS[:4]):
            mean, std = scheme["numbers"][place]
            digits, scale = data["metrics"][place]["digits"], data["metrics"][place]["scale"]
            assert f"{scale * mean:.{digits}f} ± {scale * std:.{digits}f}" == table.text(row, column.name)


def test_of_a_run_without_series_there_are_numbers(tmp_path: Path) -> None:
    results = result_set(cells=(replace(result_set().cells[0], curves="", invalid="too short"),))
    data = page_data(results, tmp_path)
    assert data["runs"][0]["series"] == []
    assert data["runs"][0]["numbers"][0] == pytest.approx(72.6)
    assert data["runs"][0]["ignored"] == "too short"
    assert data["schemes"][0]["numbers"][0] is None, "no run counts"
    assert "no: too short" in run_table(results).csv()


def test_more_than_a_page_should_hold_becomes_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = store(tmp_path, result_set())
    fine = read(page_data(results, tmp_path), 0)
    monkeypatch.setattr(explore, "MAX_VALUES", 300 * len(fine) * 9 // 4)
    data = page_data(results, tmp_path)
    assert data["step"] == pytest.approx(0.4)
    coarse = read(data, 0)
    for key, merge in [
        (("throughput", "throughput_mbps", 1), np.mean),
        (("loss", "lost_packets", 1), np.sum),
        (("delay", "one_way_delay_min_ms", 1), np.min),
        (("delay", "one_way_delay_max_ms", 1), np.max),
    ]:
        assert coarse[key] == pytest.approx(merge(fine[key].reshape(-1, 4), axis=1), rel=1e-5), key


def test_unknown_values_merge_to_what_is_known() -> None:
    values = np.array([1, np.nan, np.nan, np.nan, 5, 7, 9])
    for merge, wanted in [("mean", [1, np.nan, 6]), ("sum", [1, np.nan, 12]), ("min", [1, np.nan, 5])]:
        found = explore._merged(values, 2, merge)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, wanted)


def test_damaged_series_are_an_error_with_the_file(tmp_path: Path) -> None:
    results = store(tmp_path, result_set())
    (tmp_path / "runs" / "cubic_run2.npz").write_bytes(b"cut off")
    with refused(ResultsError, "results-damaged at runs/cubic_run2.npz"):
        page_data(results, tmp_path)
    (tmp_path / "runs" / "cubic_run2.npz").unlink()
    (tmp_path / "cubic_run2.csv").write_text("time_s,flow,throughput_mbps\n0.1,1,fast\n")
    with refused(ResultsError, "results-damaged at cubic_run2.csv"):
        page_data(results, tmp_path)


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        (
            "python evaluate.py --trace 77.72mbps --schemes bbr,cubic,scream --runs 3 --out results/x --grow",
            "python evaluate.py --trace 77.72mbps --schemes cubic --runs 2",
        ),
        (
            "ccgym evaluate --mahimahi 'mm-delay 20 mm-link a b' --runs=3 --seed 4 --json --no-figures",
            "ccgym evaluate --mahimahi 'mm-delay 20 mm-link a b' --seed 4 --schemes cubic --runs 2",
        ),
        ("ccgym report analyze data", "ccgym report analyze data"),
        ("", "ccgym report analyze results/mine"),
    ],
)
def test_the_command_of_a_run(line: str, alone: str) -> None:
    results = result_set(provenance={**result_set().provenance, "command": line})
    commands = Commands.of(results, Path("results/mine"))
    assert commands.whole == (line.replace(" --no-figures", "") or alone)
    assert commands.of_run(cell("cubic", 2, 60, 66, 0)) == alone


def test_real_packets_are_not_the_same_ones_again() -> None:
    results = result_set(parameters={**result_set().parameters, "backend": "emulated"})
    commands = Commands.of(results, Path("results/mine"))
    assert commands.of_run(results.cells[0]) == commands.whole


def test_commands_on_the_page_make_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "--trace",
        "12mbps",
        "--schemes",
        "cubic,fixed_window:cwnd=9",
        "--runs",
        "2",
        "--runtime",
        "2",
        "--logs",
        "none",
    ]
    assert evaluate([*words, "--jobs", "1", "--no-figures", "--out", "all"]) == 0
    results = ResultSet.load(Path("all"))
    assert not list(Path("all").glob("*_run*")), "what Pantheon's tools read comes with --logs"
    wanted = results.cells[3]
    made = Commands.of(results, Path("all")).of_run(wanted).partition("evaluate")[2].removeprefix(".py").split()
    assert evaluate([*made, "--no-figures", "--out", "one"]) == 0
    one = ResultSet.load(Path("one"))
    assert [(cell.scheme, cell.run) for cell in one.cells] == [(wanted.scheme, 1), (wanted.scheme, 2)]
    assert one.cells[1].record.trajectory_hash == wanted.record.trajectory_hash
    # Made through the Python API, a page says how it is made again.
    again = Commands.of(replace(results, provenance={**results.provenance, "command": ""}), Path("all")).whole
    assert analyze([*again.split()[3:], "--no-figures"]) == 0


def test_the_page_names_no_other_place(tmp_path: Path) -> None:
    page = render("explore", **explore_values(store(tmp_path, result_set()), tmp_path))
    assert "default-src 'none'" in page
    assert re.findall(r'(?:src|href)="([^#"][^"]*)"', page) == []
    ours = "".join(file.read_text() for file in Path(explore.__file__).with_name("templates").glob("*.js"))
    assert not re.search(r"\bfetch\(|XMLHttpRequest|import\(|WebSocket", ours)
    assert "a path &lt;&amp;&gt;" not in page, "the path stands in the report"
    assert "Copyright (c) 2022 Leon Sorokin" in page


def test_names_of_schemes_cannot_break_out(tmp_path: Path) -> None:
    wild = replace(result_set().styles[0], label="</script><b>wild")
    page = render("explore", **explore_values(result_set(styles=(wild, *result_set().styles[1:])), tmp_path))
    assert "</script><b>" not in page


def test_the_library_is_the_one_that_is_recorded() -> None:
    recorded = UPLOT.parent.joinpath("README.md").read_text()
    sums = dict(re.findall(r"^    ([0-9a-f]{64})  uplot/(\S+)$", recorded, re.MULTILINE))
    assert {hashlib.sha256(file.read_bytes()).hexdigest(): file.name for file in UPLOT.iterdir()} == sums
    assert "</script" not in (UPLOT / "uPlot.iife.min.js").read_text()
