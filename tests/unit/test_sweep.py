"""--sweep, --budget and --retries: what varies, what is compared, what is left when time is up."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, PlatformError
from ccgym.evaluation import engine
from ccgym.evaluation.backends import simulated
from ccgym.evaluation.budget import Budget
from ccgym.evaluation.engine import Reduction, measure
from ccgym.evaluation.flags import BACKLOG_LOSS
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import Run, contender, parse_contenders
from ccgym.evaluation.run_record import RunRecord
from ccgym.experiments.expand import Scenario, generator
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics.base import Better
from ccgym.experiments.outcome import Test
from ccgym.experiments.request import Request
from ccgym.experiments.sweep import parse_sweeps, swept_path, with_sweeps
from ccgym.experiments.views.results import ranks
from ccgym.experiments.views.verdicts import run_experiments
from ccgym.report.figures.sweep import SweepOptions, SweepRow, sweep_figure
from tests.commands import evaluate as main
from tests.refusals import explained, refused
from tests.results_rows import document_of, rows_of

SHELLS = "mm-delay $owd mm-link 12mbps.trace 12mbps.trace"


def scenarios(path: str | None, *sweeps: str, **options: Any) -> dict[str, Scenario]:
    made = swept_path(path, parse_sweeps(sweeps), name="x", schemes=["cubic"], **options)
    return {one.key: one.make(generator(1)) for one in Test(made.experiments[0]).conditions}


# --- What varies ---------------------------------------------------------------------------------------------------


def test_every_combination_is_a_condition() -> None:
    found = scenarios("77.72mbps", "rtt=20ms,40ms", "loss=0,1%")
    assert list(found) == ["rtt=20ms,loss=0", "rtt=40ms,loss=0", "rtt=20ms,loss=1%", "rtt=40ms,loss=1%"]
    assert [(one.path.base_rtt_ms, round(one.path.loss, 6)) for one in found.values()] == [
        (20, 0), (40, 0), (20, 0.01), (40, 0.01),
    ]  # fmt: skip
    named = NetworkPath.named("77.72mbps")
    assert all(one.path.data_links[0].queue == named.data_links[0].queue for one in found.values())


def test_values_of_several_units_are_words() -> None:
    made = swept_path("77.72mbps", parse_sweeps(["queue=codel,94p", "rtt=20ms,0.1s"]), name="x", schemes=["cubic"])
    test = Test(made.experiments[0])
    assert [one.at for one in test.conditions][::3] == [
        {"queue": "codel", "rtt_ms": 20}, {"queue": "94p", "rtt_ms": 100},
    ]  # fmt: skip
    assert test.figures[0]["sweep"]["x"] == "queue"


def test_what_a_command_line_has_as_a_name_varies() -> None:
    found = scenarios(SHELLS, "owd=10,20")
    assert [one.path.base_rtt_ms for one in found.values()] == [20, 40]
    assert found["owd=10"].path.chain == NetworkPath.from_mahimahi(SHELLS.replace("$owd", "10")).chain


def test_a_yaml_file_a_trace_and_paths_vary(tmp_path: Path) -> None:
    file = tmp_path / "room.yaml"
    file.write_text("{rate: 6mbps, rtt: $(2 * owd), queue: 1bdp}\n")
    found = scenarios(str(file), "owd=10ms,15ms", "rate=6mbps,12mbps")
    assert found["owd=15ms,rate=12mbps"].path.chain == NetworkPath(rate="12mbps", rtt="30ms", queue="1bdp").chain
    found = scenarios("12mbps.trace", "queue=10p,20p", "trace=12mbps,77.72mbps")
    assert found["queue=20p,trace=77.72mbps"].path.mean_rate_mbps == pytest.approx(77.72, rel=1e-3)
    found = scenarios(None, "path=12mbps,77.72mbps", "rtt=10ms,20ms")
    assert [one.path.base_rtt_ms for one in found.values()] == [10, 20, 10, 20]
    assert [round(one.path.mean_rate_mbps) for one in found.values()] == [12, 12, 78, 78]


def test_runtime_and_interval_vary() -> None:
    found = scenarios("12mbps", "runtime=2s,3s", "interval=0s,500ms", flows=3)
    one = found["runtime=3s,interval=500ms"]
    assert one.duration_ns == 3 * 10**9
    starts = [flow.start_ns for flow in one.flows_of(contender("cubic").flows)]
    assert starts == [0, 500_000_000, 1_000_000_000]


def test_an_experiment_with_other_values() -> None:
    source = load_experiment("stress_tests/self_inflicted_loss")
    name = "buffer"
    changed = with_sweeps(source, {name: ["1bdp", "2bdp"], "duration": ["5s"]})  # type: ignore[arg-type]
    assert {str(one.written[name]) for one in Test(changed.experiments[0]).conditions} == {"1bdp", "2bdp"}
    assert Test(changed.experiments[0]).conditions[0].make(generator(1)).duration_ns == 5 * 10**9
    assert changed.experiments[0].name == source.experiments[0].name  # type: ignore[union-attr]
    with refused(ConfigError, "unknown-name at --sweep"):
        with_sweeps(source, {name[:-1]: [1]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "./wrong.trace"], "[all-lines-equal]"),
        (["--trace", "./text.trace"], "trace-malformed at text.trace:1"),
        (["--trace", "wrong.trace", "--sweep", "rtt=20ms,40ms"], "[all-lines-equal]"),
        (["--trace", "12mbps", "--sweep", "trace=12mbps.trace,wrong.trace"], "[all-lines-equal]"),
        (["--sweep", "path=12mbps,wrong.trace"], "[all-lines-equal]"),
        (["--experiment", "wrong.yaml"], "[all-lines-equal]"),
        (["--trace", "12mbps", "--sweep", "trace=12mbps.trace,text.trace"], "trace-malformed at text.trace:1"),
        (["--trace", "12mbps", "--sweep", "queue=1000B"], "[queue-too-small]"),
        (["--trace", "77.72mbps", "--sweep", "rtt=20ms,fast"], "quantity-malformed at --sweep: path: rtt"),
        (["--trace", "77.72mbps", "--sweep", "loss=0%,200%"], "out-of-range at --sweep: path: loss"),
    ],
)
def test_a_wrong_trace_or_value_ends_in_one_error_before_anything_runs(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.trace").write_text("1500\n" * 20)
    Path("text.trace").write_text("one\n")
    Path("wrong.yaml").write_text(
        "title: Wrong\npath: {trace: wrong.trace, rtt: 40ms}\nflows: [{scheme: $scheme}]\n"
        "duration: 1s\nschemes: [cubic]\nmetrics: {throughput: {}}\n"
    )
    before = sorted(tmp_path.iterdir())
    assert main([*words, "--schemes", "cubic", "--runs", "1"]) == 2
    error = capsys.readouterr().err
    if said.startswith("["):  # what the detector found
        assert said in error
    else:
        explained(error, said)
    assert sorted(tmp_path.iterdir()) == before


def test_a_sweep_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--trace", "12mbps", "--sweep", "rtt=20ms,40ms", "--schemes", "cubic,fixed_window:cwnd=5"]
    words += ["--runtime", "2", "--no-figures"]
    assert main([*words, "--runs", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    out = tmp_path / "results" / "12mbps-rtt"
    rows = document_of(out)["differences"]
    assert len(document["differences"]) == len(rows) == 3 * 4, "over all conditions and at each, four metrics"
    verdicts = {(one["condition"], one["quantity"]): one["verdict"] for one in rows}
    assert verdicts["", "throughput_rank"] == verdicts["rtt=40ms", "throughput"] == "better"
    assert verdicts["rtt=20ms", "delay_p95"] == "worse"
    assert main([*words, "--runs", "3"]) == 0
    said = capsys.readouterr().out
    assert "8 were there already" in said
    assert re.search(r"TCP Cubic .*\n− ", said)


# --- Time is up ----------------------------------------------------------------------------------------------------


def runs_of(count: int, schemes: str = "cubic,bbr") -> list[Run]:
    path = NetworkPath(rate="12mbps", rtt="20ms", name="test")
    return [
        Run(path, one, 10**8, number, name=f"{one.key}_run{number}", number=number)
        for number in range(1, count + 1)
        for one in parse_contenders(schemes)
    ]


REDUCTION = Reduction("nothing", 1, lambda run, record: {})


class Clock:
    """A clock that every run of a simulation moves by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    real = engine.make

    def slow(*arguments: Any) -> engine.Made:
        made.now += 1.0
        return replace(real(*arguments), took_s=1.0)

    monkeypatch.setattr(engine, "make", slow)
    return made


@pytest.mark.parametrize(("seconds", "done"), [(0.5, 2), (3.9, 2), (4.0, 4), (7.0, 6), (100.0, 20)])
def test_what_is_there_is_balanced(seconds: float, done: int, clock: Clock) -> None:
    budget = Budget(seconds, lambda run: run.number, clock)
    outcomes = measure(runs_of(10), reduce=REDUCTION, jobs=1, budget=budget)
    ran = [one.run for one in outcomes if not one.left]
    assert len(ran) == done
    assert len(set(Counter(run.contender.key for run in ran).values())) == 1
    assert all(one.stored is None and one.error is None for one in outcomes if one.left)


def test_the_next_call_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trace", "12mbps", "--schemes", "cubic,bbr", "--runs", "3", "--runtime", "1", "--no-figures"]
    words += ["--out", str(tmp_path), "--logs", "none", "--jobs", "1"]
    states = []
    for _ in range(3):
        states.append(main([*words, "--budget", "1ns"]))
        results = ResultSet.load(tmp_path)
        assert [len(one.runs) for one in results.schemes] == [len(states)] * 2
        assert results.left == 6 - 2 * len(states)
        assert any(flag["code"] == "time-was-up" for flag in results.flags) == (results.left > 0)
    assert states == [3, 3, 0]
    assert "4 of 6 runs not started" in capsys.readouterr().out
    complete = document_of(tmp_path)
    assert main([*words[:-4], "--out", str(tmp_path / "at once"), "--logs", "none"]) == 0
    at_once = document_of(tmp_path / "at once")
    assert complete["trajectory_hash"] == at_once["trajectory_hash"]
    assert complete["differences"] == at_once["differences"]


def test_an_unfinished_sweep_has_whole_conditions(tmp_path: Path) -> None:
    source = swept_path(
        "12mbps", parse_sweeps(["rtt=10ms,20ms,30ms,40ms,50ms,60ms"]), name="x", schemes=["cubic", "bbr"], runs=2,
        runtime_ns=10**8,
    )  # fmt: skip
    request = Request(out=tmp_path, budget_s=1e-9, jobs=1)
    before: set[str] = set()
    for call in range(1, 13):
        results = run_experiments(source, request)
        ran = Counter((run.condition, run.run) for one in results.outcomes.values() for run in one.runs)
        assert set(ran.values()) == {2}, "every scheme"
        assert len(ran) == call
        assert results.left == 24 - 2 * call
        assert any(note.startswith("time was up") for note in results.notes) == (call < 12)
        if call == 6:
            before = {run.trajectory for one in results.outcomes.values() for run in one.runs}
            assert {number for _, number in ran} == {1}, "the first repetition is complete"
    assert before <= {run.trajectory for one in results.outcomes.values() for run in one.runs}


# --- Failures ------------------------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Make the first runs of the simulator fail; what comes back counts all."""
    real, calls = simulated.Simulated.run, []

    def run(self: Any, *arguments: Any) -> RunRecord:
        calls.append(1)
        if len(calls) <= times:
            raise PlatformError("capability-missing", "the wires burn")
        return real(self, *arguments)

    monkeypatch.setattr(simulated.Simulated, "run", run)
    return calls


@pytest.mark.parametrize(
    ("real", "retries", "error", "calls"), [(True, 2, None, 3), (True, 1, "burn", 2), (False, 5, "burn", 1)]
)
def test_only_real_packets_are_tried_again(
    real: bool, retries: int, error: str | None, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = failing(monkeypatch, 2)
    monkeypatch.setattr(Run, "real", property(lambda self: real))
    (outcome,) = measure(runs_of(1, "cubic"), reduce=REDUCTION, retries=retries)
    assert (outcome.error is None) == (error is None)
    assert len(made) == calls


def test_identical_runs_are_marked_in_every_condition(tmp_path: Path) -> None:
    path = tmp_path / "path.yaml"
    path.write_text("{rate: 12mbps, rtt: 40ms, queue: 40p}\n")
    words = ["--trace", str(path), "--schemes", "cubic", "--sweep", "loss=0%,1%", "--runs", "3", "--runtime", "2"]
    assert main([*words, "--no-figures", "--out", str(tmp_path / "out")]) == 0
    rows = [line for line in next((tmp_path / "out").glob("*.md")).read_text().splitlines() if "Cubic" in line]
    (same, differ) = (row for row in rows if row.count("|") > 5)
    assert "±" not in same
    assert "3 =" in same
    assert "±" in differ
    assert "3 =" not in differ


def test_runs_that_differ_in_what_was_on_its_way_at_the_end_are_not_identical(tmp_path: Path) -> None:
    swept = parse_sweeps(["rate=1mbps", "rtt=20ms"])
    source = swept_path("12mbps", swept, name="x", schemes=["bbr"], runs=3, runtime_ns=5 * 10**9)
    (outcome,) = run_experiments(source, Request(out=tmp_path)).outcomes.values()
    assert len({run.trajectory for run in outcome.runs}) == 1
    assert len({run.values["loss"] for run in outcome.runs}) > 1
    assert [one.identical for one in outcome.conditions] == [False]


def test_loss_that_is_backlog_is_noted_as_in_evaluations(tmp_path: Path) -> None:
    path = tmp_path / "path.yaml"
    path.write_text("{rate: 2mbps, rtt: 20ms}\n")
    words = ["--trace", str(path), "--schemes", "cubic", "--sweep", "queue=infinite,20p", "--runtime", "3"]
    assert main([*words, "--runs", "1", "--no-figures", "--out", str(tmp_path / "out")]) == 0
    document = document_of(tmp_path / "out")
    losses = {one["key"]: one["metrics"]["loss"]["mean"] for one in document["outcomes"][0]["conditions"]}
    assert min(losses.values()) > BACKLOG_LOSS
    (note,) = (note for note in document["notes"] if note.startswith("loss-is-backlog"))
    assert "queue=infinite" in note  # the other one dropped packets


def test_across_links_rates_and_delays_are_ranked_and_never_averaged(tmp_path: Path) -> None:
    words = ["--trace", "12mbps", "--schemes", "cubic,vegas", "--sweep", "rate=1mbps,50mbps", "--sweep", "rtt=20ms"]
    assert main([*words, "--runtime", "3", "--runs", "2", "--no-figures", "--out", str(tmp_path)]) == 0
    document = document_of(tmp_path)
    overall = {one["scheme"]: one["overall"] for one in document["outcomes"]}
    assert overall["cubic"].keys() == {"throughput", "delay_p95", "loss", "utilization"}
    assert {scheme: one["delay_p95"]["mean"] for scheme, one in overall.items()} == {"cubic": 2, "vegas": 1}
    assert {(row["metric"], row["unit"]) for row in rows_of(tmp_path)} == {
        ("throughput", "Mbit/s"), ("delay_p95", "ms"), ("loss", "fraction"), ("utilization", "fraction"),
    }  # fmt: skip
    compared = document["differences"]
    over_all = {row["quantity"] for row in compared if not row["condition"]}
    assert over_all == {"throughput_rank", "delay_p95_rank", "loss", "utilization"}
    assert {row["quantity"] for row in compared if row["condition"]} == overall["cubic"].keys()
    text = next(tmp_path.glob("*.md")).read_text()
    assert len(re.findall(r"rank \d", text)) == 4, "two schemes, two metrics"


def test_conditions_of_one_link_keep_their_means(tmp_path: Path) -> None:
    words = ["--trace", "12mbps", "--schemes", "cubic,vegas", "--sweep", "queue=20p,40p", "--sweep", "rtt=20ms"]
    assert main([*words, "--runtime", "3", "--runs", "1", "--no-figures", "--out", str(tmp_path)]) == 0
    document = document_of(tmp_path)
    quantities = {row["quantity"] for row in document["differences"]}
    assert quantities == {"throughput", "delay_p95", "loss", "utilization"}
    assert not any(one["overall"] for one in document["outcomes"])


@pytest.mark.parametrize(
    ("better", "values", "expected"),
    [
        ("higher", {"a": 3.0, "b": 5.0, "c": 1.0}, {"a": 2, "b": 1, "c": 3}),
        ("lower", {"a": 3.0, "b": 5.0, "c": 3.0}, {"a": 1.5, "b": 3, "c": 1.5}),
        ("one", {"a": 0.5, "b": 1.4}, {"a": 2, "b": 1}),
    ],
)
def test_ranks(better: Better, values: dict[str, float], expected: dict[str, float]) -> None:
    assert ranks(better, values) == expected


def test_a_figure_averages_ratios_only_over_links_that_it_does_not_tell_apart(tmp_path: Path) -> None:
    swept = parse_sweeps(["rtt=20ms,40ms", "rate=1mbps,50mbps"])
    source = swept_path("12mbps", swept, name="x", schemes=["cubic"], runs=1, runtime_ns=10**9)
    results = run_experiments(source, Request(out=tmp_path))
    rows = (SweepRow(metric="throughput"), SweepRow(metric="utilization"))
    drawn = sweep_figure(results, results.tests[0], SweepOptions(x="rtt_ms", rows=rows))
    assert [np.size(axes.lines[0].get_xdata()) for axes in drawn.axes] == [0, 2]
    together = sweep_figure(results, results.tests[0], SweepOptions(x="rtt_ms", columns="rate_mbps", rows=rows))
    assert [np.size(axes.lines[0].get_xdata()) for axes in together.axes] == [2, 2, 2, 2]
