"""Flags after a run: what is suspicious about its numbers, why, and the command that shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccgym.cli import evaluate as cli_evaluate
from ccgym.cli.evaluation_output import size_text
from ccgym.config.path import NetworkPath
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.flags import flags
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.path_facts import PathFacts, path_facts
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_numbers import FlowRecord, LinkRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.runner import run_experiment
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.evaluation.simulate import simulate
from ccgym.report.evaluation_table import evaluation_table
from ccgym.schemes.style import SchemeStyle
from tests.commands import evaluate as main

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


STUDENT = PathFacts(
    name="50mbps_10ms",
    capacity_mbps=33.4,
    one_way_delay_ms=10.0,
    base_rtt_ms=20.0,
    random_loss=0.0,
    drain_ms=None,
    largest_gap_ms=1500.0,
    trace="50mbps_10ms.trace",
    declared_mbps=50.0,
    options="--trace 50mbps_10ms.trace",
)


def results(
    throughput: float, delay: float, *, scheme: str = "vegas", capacity: float = 33.4, runs: int = 5, name: str = "path"
) -> ResultSet:
    numbers = PantheonMetrics(throughput, throughput, delay, 0.01, 60.0, 10, 9)
    record = RunRecord(
        "path", 1, 60.0, "00", (), LinkRecord(capacity, throughput / capacity, 0, 0, 0.0, 0.0),
        RunMetrics(numbers, {1: numbers}, capacity),
    )  # fmt: skip
    cells = tuple(CellResult(scheme, run, record, None, 0.0, 0.1) for run in range(1, runs + 1))
    return ResultSet(
        parameters={"runs": runs, "schemes": [scheme], "path_name": name},
        provenance={},
        styles=(SchemeStyle(scheme, scheme.title(), "black", "o"),),
        cells=cells,
    )


def codes(found: ResultSet, facts: PathFacts) -> set[str]:
    return {flag.code for flag in flags(found, facts)}


def test_the_student_report_would_have_been_flagged() -> None:
    # A student's report: Vegas on "50 Mbit/s, 10 ms" had 0.55 Mbit/s and 1,545 ms.
    found = codes(results(0.55, 1544.94, runs=1), STUDENT)
    assert found == {"starved", "delay-not-its-own", "delay-is-the-gap", "capacity-off-declared", "single-run"}


def test_a_healthy_result_has_no_flags() -> None:
    facts = replace(STUDENT, largest_gap_ms=1.0, capacity_mbps=50.0, drain_ms=15.0)
    assert codes(results(48.0, 14.0, capacity=50.0), facts) == set()


def test_video_that_leaves_capacity_unused_is_not_starved() -> None:
    facts = replace(STUDENT, largest_gap_ms=1.0, capacity_mbps=50.0, drain_ms=15.0)
    greedy = results(0.8, 14.0, capacity=50.0)
    assert codes(greedy, facts) == {"starved"}
    flow = FlowRecord("webrtc", 0, 30, 0.8, 14, 0, 0.8, 20, 20, 3, 2, 0.8, 99, 0, 0, 0, 0, 0, None, bit_rate_mbps=0.8)
    video = replace(
        greedy, cells=tuple(replace(one, record=replace(one.record, flows=(flow,))) for one in greedy.cells)
    )
    assert codes(video, facts) == set()


def test_what_starves_a_scheme_is_not_guessed() -> None:
    facts = replace(STUDENT, largest_gap_ms=None, capacity_mbps=77.0, declared_mbps=None, random_loss=0.0006)
    for lossy, varied in (
        (facts, "--sweep loss=0,0.0006"),
        (replace(facts, random_loss=0), "--sweep runtime=60s,300s"),
    ):
        for scheme in ("cubic", "ledbat", "sprout"):
            (found,) = flags(results(10.0, 60.0, scheme=scheme, capacity=77.0), lossy)
            assert (found.code, found.cause) == ("starved", "")
            assert found.command.endswith(varied)


@pytest.mark.parametrize(
    ("scheme", "runtime", "varied"),
    [
        ("ledbat", 30, "--sweep loss=0,0.0006"),
        ("aurora", 5, "--sweep runtime=5s,25s"),
        ("fixed_window:cwnd=20", 5, ""),
        ("ledbat", 100, ""),  # too long to be tried
    ],
)
def test_a_cause_that_another_run_confirms_is_named(scheme: str, runtime: int, varied: str, tmp_path: Path) -> None:
    made = run_experiment(Experiment("77.72mbps", [scheme], runs=1, runtime_ns=runtime * 10**9), tmp_path)
    (flag,) = [flag for flag in made.flags if flag["code"] == "starved"]
    assert bool(flag["cause"]) == bool(varied)
    assert flag["command"].endswith(varied)


@pytest.mark.parametrize("out", [["--out", "here"], []])
def test_an_edited_class_runs_again_alone(out: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--trace", "12mbps", "--schemes", "my.py:Slow,cubic,my.py:Slow+cubic", "--runs", "1", "--runtime", "2"]
    found = []
    for window in (2, 4):
        Path("my.py").write_text(f"class Slow:\n    cwnd = {window}\n    def on_ack(self, ack):\n        pass\n")
        assert main([*words, *out, "--no-figures", "--logs", "none"]) == 0
        (directory,) = [Path("here")] if out else Path("results").iterdir()
        found.append(ResultSet.load(directory))
    runs = sorted((directory / "runs").glob("*.json"))
    assert len(runs) == 5, "cubic's is that of before"
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    assert f"{size / 1e6:,.1f} MB" in size_text(directory)
    before, after = ([cell.record.total.delay_p95_ms for cell in one.cells] for one in found)
    assert [one == other for one, other in zip(before, after)] == [False, True, False]
    if out:
        assert main([*words[:-1], "3", *out, "--no-figures"]) == 2, "another experiment is refused as before"


def test_paths_outside_of_a_training_are_told_before_anything_runs() -> None:
    def told(path: str, schemes: str) -> int:
        made = Experiment(NetworkPath.from_any(path), parse_contenders(schemes), runs=1)
        return len(cli_evaluate._trained(made))

    assert told("77.72mbps", "aurora,cubic") == 1
    assert told("mm-delay 75 mm-link 3mbps 3mbps", "aurora,cubic") == 0
    assert told("77.72mbps", "cubic,bbr") == 0


def test_several_flows_have_a_row_each_and_unequal_shares_a_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.py").write_text("class Slow:\n    cwnd = 2\n    def on_ack(self, ack):\n        self.cwnd = 2\n")
    path = tmp_path / "path.yaml"
    path.write_text("{rate: 12mbps, rtt: 40ms, queue: 40p}\n")
    schemes = f"{tmp_path}/my.py:Slow+cubic,cubic+cubic,cubic"
    options = ["--trace", str(path), "--runs", "2", "--runtime", "5", "--no-figures", "--schemes", schemes]
    assert main([*options, "--out", str(tmp_path / "out")]) == 0
    made = ResultSet.load(tmp_path / "out")
    mixed, same, alone = made.schemes
    rows = evaluation_table(made).rows
    assert len(rows) == 7
    slow, fast = (one.throughput_mbps.mean for one in mixed.flows if one.throughput_mbps)
    assert [row.values["throughput_mbps"].mean for row in rows[1:3]] == [slow, fast]
    assert fast > 5 * slow
    assert mixed.jain is not None
    assert mixed.jain.mean == pytest.approx((slow + fast) ** 2 / (2 * (slow**2 + fast**2)), rel=0.05)
    assert rows[0].values["jain"] == mixed.jain
    assert alone.jain is None
    assert [flag["subject"] for flag in made.flags if flag["code"] == "unfair-shares"] == [mixed.style.label]
    assert same.jain is not None
    assert same.jain.mean > 0.8


def test_a_full_deep_queue_is_noted() -> None:
    facts = replace(STUDENT, largest_gap_ms=1.0, capacity_mbps=50.0, drain_ms=500.0)
    assert codes(results(48.0, 505.0, scheme="cubic", capacity=50.0), facts) == {"delay-is-the-queue"}


def test_a_loss_of_packets_that_still_wait_is_noted() -> None:
    # Without a queue limit Reno's slow start never ends: half of what it sent waits when the run ends.
    for queue, mean, found in [("infinite", 0.5, {"loss-is-backlog"}), ("20p", 0.03, set())]:
        path = NetworkPath(rate="12mbps", rtt="20ms", queue=queue, name="test")
        record = simulate(path, ["reno"], "2s")
        assert record.total.loss == pytest.approx(mean, rel=0.5)
        made = results(12.0, 70.0, scheme="reno", capacity=12.0, runs=2)
        made = replace(made, cells=tuple(replace(cell, record=record) for cell in made.cells))
        assert codes(made, path_facts(path, made)) == found


def test_every_flag_names_cause_and_command() -> None:
    for flag in flags(results(0.55, 1544.94, runs=1), STUDENT):
        assert bool(flag.cause) == (flag.code != "starved")
        assert flag.command
        assert flag.subject


def test_a_shared_cause_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--trace", "77.72mbps", "--runs", "2", "--runtime", "5", "--no-figures", "--out", str(tmp_path)]
    assert main([*options, "--schemes", "reno,dctcp"]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"^warning: .* \[starved\]$", printed, re.MULTILINE)) == 2
    assert printed.count("to see it: ") == 1


@pytest.mark.parametrize(
    ("path", "options", "declared"),
    [
        (NetworkPath.named("77.72mbps"), "--trace 77.72mbps", 77.72),
        (NetworkPath.named("2.64mbps-poisson"), "--trace 2.64mbps-poisson", None),  # its slow beginning is known
        (NetworkPath.from_mahimahi("mm-delay 5 mm-link 12mbps.trace 12mbps.trace", name="x"),
         "--mahimahi 'mm-delay 5 mm-link 12mbps.trace 12mbps.trace'", 12.0),
    ],
)  # fmt: skip
def test_flags_know_how_to_get_the_path_again(path: NetworkPath, options: str, declared: float | None) -> None:
    facts = path_facts(path, results(10.0, 20.0))
    assert facts.options == options
    assert facts.declared_mbps == declared


def test_ignored_runs_are_flagged() -> None:
    made = results(48.0, 14.0, capacity=50.0)
    cells = (replace(made.cells[0], invalid="too short"), *made.cells[1:])
    facts = replace(STUDENT, largest_gap_ms=1.0, capacity_mbps=50.0)
    assert codes(replace(made, cells=cells), facts) == {"ignored-runs"}


def test_ccperf_means_are_plain_numbers() -> None:
    run = simulate(PATH, ["cubic"], "2s")
    assert all(isinstance(metric.value, (float, type(None))) for metric in run.ccperf().flows[0].values())
    assert not any(isinstance(value, np.generic) for value in vars(run.flows[0]).values())
