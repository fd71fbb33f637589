"""Flags of an evaluation: what is found in its numbers and its path."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ccgym.config.path import NetworkPath
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.flags import flags
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.path_facts import PathFacts, path_facts
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_numbers import FlowRecord, LinkRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.runner import run_experiment
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.evaluation.simulate import simulate
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
    throughput: float,
    delay: float,
    *,
    scheme: str = "vegas",
    capacity: float = 33.4,
    runs: int = 5,
    invalid: str | None = None,
) -> ResultSet:
    numbers = PantheonMetrics(throughput, throughput, delay, 0.01, 60.0, 10, 9)
    record = RunRecord(
        "path", 1, 60.0, "00", (), LinkRecord(capacity, throughput / capacity, 0, 0, 0.0, 0.0),
        RunMetrics(numbers, {1: numbers}, capacity),
    )  # fmt: skip
    cells = tuple(
        CellResult(scheme, run, record, invalid if run == 1 else None, 0.0, 0.1) for run in range(1, runs + 1)
    )
    return ResultSet(
        parameters={"runs": runs, "schemes": [scheme], "path_name": "path"},
        provenance={},
        styles=(SchemeStyle(scheme, scheme.title(), "black", "o"),),
        cells=cells,
    )


def codes(found: ResultSet, facts: PathFacts) -> set[str]:
    return {flag.code for flag in flags(found, facts)}


HEALTHY = replace(STUDENT, largest_gap_ms=1.0, capacity_mbps=50.0, drain_ms=15.0)


@pytest.mark.parametrize(
    ("found", "facts", "expected"),
    [
        # A student's report: Vegas on "50 Mbit/s, 10 ms" had 0.55 Mbit/s and 1,545 ms.
        (
            results(0.55, 1544.94, runs=1),
            STUDENT,
            {"starved", "delay-not-its-own", "delay-is-the-gap", "capacity-off-declared", "single-run"},
        ),
        (results(48.0, 14.0, capacity=50.0), HEALTHY, set()),
        (results(48.0, 505.0, scheme="cubic", capacity=50.0), replace(HEALTHY, drain_ms=500.0), {"delay-is-the-queue"}),
        (results(48.0, 14.0, capacity=50.0, invalid="too short"), HEALTHY, {"ignored-runs"}),
    ],
)
def test_flags(found: ResultSet, facts: PathFacts, expected: set[str]) -> None:
    assert codes(found, facts) == expected


def test_video_that_leaves_capacity_unused_is_not_starved() -> None:
    greedy = results(0.8, 14.0, capacity=50.0)
    assert codes(greedy, HEALTHY) == {"starved"}
    flow = FlowRecord("webrtc", 0, 30, 0.8, 14, 0, 0.8, 20, 20, 3, 2, 0.8, 99, 0, 0, 0, 0, 0, None, bit_rate_mbps=0.8)
    video = replace(
        greedy, cells=tuple(replace(one, record=replace(one.record, flows=(flow,))) for one in greedy.cells)
    )
    assert codes(video, HEALTHY) == set()


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


def test_a_loss_of_packets_that_still_wait_is_noted() -> None:
    # Without a queue limit Reno's slow start never ends: half of what it sent waits when the run ends.
    for queue, mean, found in [("infinite", 0.5, {"loss-is-backlog"}), ("20p", 0.03, set())]:
        path = NetworkPath(rate="12mbps", rtt="20ms", queue=queue, name="test")
        record = simulate(path, ["reno"], "2s")
        assert record.total.loss == pytest.approx(mean, rel=0.5)
        made = results(12.0, 70.0, scheme="reno", capacity=12.0, runs=2)
        made = replace(made, cells=tuple(replace(cell, record=record) for cell in made.cells))
        assert codes(made, path_facts(path, made)) == found


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
