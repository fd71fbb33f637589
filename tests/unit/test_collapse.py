"""Runs that collapsed against their siblings: in published reports, and in results of ours and of Pantheon's."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

from ccgym.evaluation.collapse import collapsed
from ccgym.evaluation.flags import flags
from ccgym.evaluation.results import ResultSet
from tests.commands import analyze as main
from tests.unit import made_up_results

PUBLISHED = Path(__file__).parent / "data" / "published_runs.csv"
"""Every run of two reports of Pantheon's: Eagle's on 77.72mbps of 2019-10-22, and Muses' on a cellular link."""


def published() -> dict[tuple[str, str], list[float]]:
    runs: dict[tuple[str, str], list[float]] = {}
    for row in csv.DictReader(PUBLISHED.read_text().splitlines()):
        if row["throughput_mbps"]:
            runs.setdefault((row["report"], row["scheme"]), []).append(float(row["throughput_mbps"]))
    return runs


def test_the_published_runs_that_collapsed_are_found_and_no_others() -> None:
    found = {key: [values[place] for place in collapsed(values)] for key, values in published().items()}
    assert {key: values for key, values in found.items() if values} == {
        ("eagle_77.72mbps", "Eagle-v3"): [0.1],
        ("eagle_77.72mbps", "Synthesized-BBR"): [9.71],
        ("muses_cellular", "WebRTC media"): [0.05, 0.05],  # two of three
    }
    assert len(found) == 26


def test_runs_that_spread_are_no_collapse() -> None:
    assert collapsed([1, 2, 3.5, 6, 9, 10]) == []  # 1 is below a quarter, but half of the next one
    assert collapsed([1, 7, 8, 9, 10]) == [0]
    assert collapsed([0.0, 10.0]) == []
    assert collapsed([10, 0.1, 10]) == [1]
    assert collapsed([0, 0, 0]) == []
    assert collapsed([2.0] * 9 + [100.0]) == []  # one lucky run


def runs_of(values: list[float]) -> ResultSet:
    cells = tuple(made_up_results.cell("bbr", run, value, 55.0, 0.01) for run, value in enumerate(values, start=1))
    made = made_up_results.result_set(cells=cells, styles=made_up_results.STYLES[:1])
    return replace(made, parameters={**made.parameters, "runs": len(values)})


def test_a_collapsed_run_is_flagged_without_knowing_the_path() -> None:
    (flag,) = flags(runs_of(published()["eagle_77.72mbps", "Eagle-v3"]), None)
    assert (flag.code, flag.level, flag.subject) == ("collapsed", "warning", "TCP BBR")
    assert flag.message == "run 4 of 5 carried 0.10 Mbit/s, others up to 63.97"
    assert flag.command == "cat bbr_stats_run4.log"
    (flag,) = flags(runs_of(published()["muses_cellular", "WebRTC media"]), None)
    assert flag.message == "runs 2, 3 of 3 carried 0.05 Mbit/s and little more, others up to 2.07"


def test_a_collapsed_run_in_a_directory_of_pantheons_is_flagged(tmp_path: Path) -> None:
    for run, value in enumerate(published()["eagle_77.72mbps", "Synthesized-BBR"], start=1):
        numbers = f"Average throughput: {value:.2f} Mbit/s\n"
        numbers += "95th percentile per-packet one-way delay: 65.000 ms\nLoss rate: 2.00%\n"
        times = "Start at: 2019-10-22 18:47:00\nEnd at: 2019-10-22 18:47:30\n\n"
        text = f"{times}# Datalink statistics\n-- Total of 1 flow:\n{numbers}-- Flow 1:\n{numbers}"
        (tmp_path / f"synthesized_stats_run{run}.log").write_text(text)
    out = tmp_path / "out"
    assert main([str(tmp_path), "--out", str(out), "--no-figures"]) == 0
    (flag,) = ResultSet.load(out).flags
    assert flag["code"] == "collapsed"
    assert "run 4 of 5 carried 9.71 Mbit/s" in flag["message"]
