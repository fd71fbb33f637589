"""Running experiments: what is kept and resumed, failures, verdicts, matrices, the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.backends.real import RealPath
from ccgym.evaluation.backends.simulated import Simulated
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_record import RunRecord
from ccgym.experiments.criterion_spec import CriterionSpec
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import METRICS, Metric
from ccgym.experiments.metrics.ccperf import Ccperf
from ccgym.experiments.outcome import Test
from ccgym.experiments.request import Request
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec
from ccgym.experiments.views.results import ExperimentResults
from ccgym.experiments.views.verdicts import run_experiments
from ccgym.report import experiment_report, style
from ccgym.report.experiment_report import figures_of_test
from ccgym.report.figures import chosen_figure
from tests.commands import evaluate
from tests.refusals import refused
from tests.results_rows import document_of
from tests.watching import Watching

QUICK = load_experiment("weaknesses", quick=True)
assert isinstance(QUICK, ExperimentSet)
TESTS = tuple(Test(one) for one in QUICK.experiments)
BY_NAME = {test.name: test for test in TESTS}


# --- Resume, damage, failures, errors ------------------------------------------------------------------------------


SMALL = BY_NAME["self_inflicted_loss"].spec.model_copy(
    update={"sweep": {"rate": ["10mbps"], "owd": ["20ms"], "buffer": ["0.1bdp", "0.2bdp", "0.5bdp", "1bdp"]}}
)
"""An experiment that takes no time: four conditions."""
CHANGING = BY_NAME["responsiveness"].spec


def set_of(*experiments: ExperimentSpec) -> ExperimentSet:
    return ExperimentSet(title="small", include=("small.yaml",), name="small", experiments=experiments)


def run(
    directory: Path, schemes: str, experiment: ExperimentSpec = SMALL, progress: Watching | None = None, **request: Any
) -> ExperimentResults:
    chosen = {"quick": True, "jobs": 1, "runs": 1, **request}
    made = Request(schemes=parse_contenders(schemes), out=directory, **chosen)
    return run_experiments(set_of(experiment), made, progress)


def numbers(results: ExperimentResults) -> Any:
    return results.to_json()["outcomes"]


HARM = ExperimentSpec.model_validate(
    {
        "name": "harm",
        "title": "Harm",
        "path": {"rate": "12mbps", "rtt": "20ms", "queue": "1bdp"},
        "flows": [{"scheme": "reno"}, {"scheme": "$scheme", "start": "1s"}],
        "duration": "10s",
        "metrics": {
            "share": {"flows": [2]},
            "harm": {"in": "throughput", "flows": [1]},
            "delay": {"metric": "harm", "in": "delay", "flows": [1]},
        },
        "criteria": [
            {"schemes": ["fixed_window:cwnd=2"], "metric": "share", "max": 0.2},
            {"schemes": ["bbr"], "metric": "share", "min": 0.3},
        ],
        "figures": [{"matrix": {"middle": 0.5}}, {"matrix": {"metric": "harm"}}],
    }
)
"""A flow of Reno meets the tested scheme."""


def test_harm_compares_with_the_flow_alone_which_runs_once(tmp_path: Path) -> None:
    progress = Watching()
    results = run(tmp_path, "fixed_window:cwnd=2,fixed_rate:rate_mbps=11", HARM, progress)
    assert (progress.begun, progress.ran) == ([3], 3), "Reno alone is the same for both"
    small, large = (dict[str, Any](outcome.runs[0].values) for _, outcome in results.of_test(results.tests[0]))
    assert small["share"] == pytest.approx(0.05, abs=0.03)
    assert small["harm"] == pytest.approx(small["share"], abs=0.03), "Reno loses what the other takes"
    assert large["harm"] > 0.7
    assert 0 <= small["delay"] < 0.2
    again = Watching()
    third = run(tmp_path, "fixed_window:cwnd=2,reno", HARM, again)
    assert (again.ran, again.kept) == (1, 2)
    assert third.outcomes["harm", "reno"].runs[0].values["harm"] == pytest.approx(0.5, abs=0.25)


def test_without_the_flow_alone_a_run_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_where(monkeypatch, lambda _, flows: len(flows) == 1, SimulationError("run-failed", "broken"))
    results = run(tmp_path, "bbr", HARM)
    assert results.outcomes["harm", "bbr"].verdict == "incomplete"
    assert len(results.failures) == 1
    assert "flow 1 alone" in results.failures[0]


def test_a_matrix_shows_every_condition(tmp_path: Path) -> None:
    schemes = "fixed_window:cwnd=2,reno"
    sweep = {"start": ["0s", "1s"], "buffer": ["0.5bdp", "2bdp"]}
    changes = {
        "sweep": sweep,
        "path": {**HARM.path, "queue": "$buffer"},
        "flows": [{"scheme": "reno"}, {"scheme": "$scheme", "start": "$start"}],
        "figures": ({"matrix": {"columns": ["start", "buffer"], "middle": 0.5}}, {"matrix": {"columns": ["buffer"]}}),
    }
    results = run(tmp_path, schemes, HARM.model_copy(update=changes))
    (test,) = results.tests
    chosen = figures_of_test(results, test)
    assert list(chosen) == ["small_harm", "small_harm_matrix"]
    with style.house_style():
        whole, means = ([text.get_text() for text in one.draw(results, test).axes[0].texts] for one in chosen.values())
    outcome = results.outcomes["harm", "reno"]
    shares = [100 * one.metrics["share"].mean for one in outcome.conditions]
    row = whole.index(next(one.label for one in results.styles if one.key == "reno"))
    assert whole[row + 1 : row + 5] == [f"{shares[place]:.0f}" for place in (0, 2, 1, 3)], "the buffer varies fastest"
    row = means.index(next(one.label for one in results.styles if one.key == "reno"))
    assert means[row + 1 : row + 3] == [f"{np.mean(shares[begin : begin + 2]):.0f}" for begin in (0, 2)]
    wrong = chosen_figure({"matrix": {"columns": ["bufer"]}})
    with style.house_style(), refused(ConfigError, "unknown-name at matrix.columns"):
        wrong.draw(results, test)


def test_what_is_measured_differently_is_run_again(tmp_path: Path) -> None:
    run(tmp_path, "cubic")
    later = {key: {**options, "from": "20s"} for key, options in SMALL.metrics.items()}
    progress = Watching()
    run(tmp_path, "cubic", SMALL.model_copy(update={"metrics": later}), progress)
    assert (progress.ran, progress.kept) == (4, 0)
    progress = Watching()
    run(tmp_path, "cubic", SMALL.model_copy(update={"criteria": (), "title": "Another"}), progress)
    assert (progress.ran, progress.kept) == (0, 4), "what is made of the numbers does not matter"


@pytest.mark.parametrize(("name", "kind"), [("mean_srtt_l4", Ccperf), ("utilization", METRICS["utilization"])])
def test_runs_are_made_again_when_a_metric_means_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Metric]
) -> None:
    bare = SMALL.model_copy(update={"metrics": {name: {}}, "criteria": (), "figures": ()})
    run(tmp_path, "cubic", bare)
    monkeypatch.setattr(kind, "version", kind.version + 1)
    progress = Watching()
    run(tmp_path, "cubic", bare, progress)
    assert (progress.ran, progress.kept) == (4, 0)


def failing_where(monkeypatch: pytest.MonkeyPatch, chosen: Any, error: Exception) -> None:
    whole = Simulated.run

    def fail(self: Any, path: Any, flows: Any, *rest: Any) -> Any:
        if chosen(path, flows):
            raise error
        return whole(self, path, flows, *rest)

    monkeypatch.setattr(Simulated, "run", fail)


def test_a_failed_run_leaves_its_experiment_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_where(
        monkeypatch,
        lambda path, flows: flows[0].scheme == "cubic" and path.queue.limit.bdp == 0.2,
        SimulationError("run-failed", "out of luck"),
    )
    results = run(tmp_path, "cubic,reno")
    (failure,) = results.failures
    assert "self_inflicted_loss · cubic · rate=10mbps,owd=20ms,buffer=0.2bdp · run 1, seed " in failure
    assert "out of luck" in failure
    assert results.outcome(results.tests[0], "cubic").verdict == "incomplete"
    assert results.outcome(results.tests[0], "reno").verdict == "pass"
    monkeypatch.undo()
    assert run(tmp_path, "cubic,reno").outcome(results.tests[0], "cubic").verdict == "pass"


def test_a_baseline_that_failed_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_where(monkeypatch, lambda _, flows: flows[0].scheme == "cubic", RuntimeError("a bug"))
    results = run(tmp_path, "reno", CHANGING)
    assert [one.key for one in results.styles] == ["reno"], "the baseline is not among the tested schemes"
    assert results.outcome(results.tests[0], "reno").verdict == "incomplete"
    assert results.failures
    assert all("RuntimeError: a bug" in failure for failure in results.failures)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"backend": "simulated"}, "unknown-backend at backend"),
        ({"runtime_ns": 10**9}, "options-conflict at runtime"),
        ({"runs": 10_001}, "out-of-range at runs"),
    ],
)
def test_requests_that_make_no_sense(tmp_path: Path, request_: dict[str, Any], message: str) -> None:
    with refused(ConfigError, message):
        run(tmp_path, "cubic", **request_)
    assert not any(tmp_path.iterdir())


def test_real_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def on_a_busy_machine(self: RealPath, path: Any, flows: Any, *arguments: Any) -> RunRecord:
        ran.append(flows[0].scheme)
        record = Simulated().run(path, [flows[0].model_copy(update={"scheme": "cubic"})], *arguments)
        return replace(record, backend=self.name, path_report={"limited": "late" if len(ran) == 2 else None})

    monkeypatch.setattr(RealPath, "run", on_a_busy_machine)
    monkeypatch.setattr(RealPath, "require", lambda *_: None)
    monkeypatch.setattr(
        RealPath, "why_unavailable", lambda _, choice: "not in this kernel" if choice.name == "tcp:bbr" else None
    )
    results = run(tmp_path, "cubic,tcp:cubic,tcp:bbr", backend="emulated")
    assert sorted(ran) == ["cubic"] * 4 + ["tcp:cubic"] * 4
    assert (results.parameters["backend"], results.provenance["backend"]) == ("emulated", "emulated")
    assert results.failures == ()
    missing, late = sorted(results.notes)
    assert late.startswith("emulator-limited: self_inflicted_loss · tcp_cubic")
    assert missing == "TCP BBR (kernel) cannot run here: not in this kernel"
    assert results.outcome(results.tests[0], "tcp_bbr").verdict == "incomplete"
    shown = experiment_report.terminal(results)
    assert all(note in shown for note in results.notes)
    assert "real packets over the emulated path" in experiment_report.page(results).lead
    again = run(tmp_path, "cubic,tcp:cubic,tcp:bbr", backend="emulated", repeat_limited=1)
    assert (len(ran), again.notes) == (9, (missing,)), "only the limited run is made again"


def test_criteria_for_some_schemes(tmp_path: Path) -> None:
    criteria = [one.model_copy(update={"schemes": ("copa",)}) for one in SMALL.criteria]
    results = run(tmp_path, "reno,copa:delta=0.4", SMALL.model_copy(update={"criteria": tuple(criteria)}))
    without, judged = (outcome for _, outcome in results.of_test(results.tests[0]))
    assert (without.verdict, without.criteria, results.passed_text("reno")) == ("none", (), "")
    of_all = run(tmp_path, "copa:delta=0.4").outcome(results.tests[0], judged.scheme)
    assert judged.criteria == of_all.criteria != ()
    assert (judged.verdict, results.passed_text(judged.scheme)) == (of_all.verdict, "0 of 1")


def test_schemes_that_cannot_be_simulated(tmp_path: Path) -> None:
    with refused(ConfigError, "scheme-unsuitable at schemes"):
        run(tmp_path, "tcp:cubic")


def test_training_ranges_on_disk(tmp_path: Path) -> None:
    run(tmp_path, "aurora,cubic", runs=2)
    document = document_of(tmp_path)
    assert [one["trained_on"] for one in document["schemes"]] == ["1.2–6 Mbit/s, 50–500 ms one way", None]
    assert [{one["inside"] for one in outcome["conditions"]} for outcome in document["outcomes"]] == [{False}, {None}]


def test_of_an_experiment_for_learned_policies_others_have_no_verdict(tmp_path: Path) -> None:
    only = SMALL.model_copy(update={"learned_only": True, "criteria": (CriterionSpec(metric="loss", max=1.0),)})
    results = run(tmp_path, "cubic,aurora", only)
    verdicts = [results.outcome(results.tests[0], key).verdict for key in ("cubic", "aurora")]
    assert verdicts == ["none", "pass"]
    assert results.passed_text("cubic") == ""
    assert not results.outcome(results.tests[0], "cubic").runs


def test_no_video_call_over_tcp(tmp_path: Path) -> None:
    only = SMALL.model_copy(update={"flows": [{"scheme": "$scheme", "profile": "tcp"}]})
    results = run(tmp_path, "cubic,scream", only)
    assert not results.failures
    runs = [len(results.outcome(results.tests[0], key).runs) for key in ("cubic", "scream")]
    assert runs[0] > 0
    assert runs[1] == 0


def test_cubic_is_as_responsive_as_cubic(tmp_path: Path) -> None:
    results = run(tmp_path, "cubic", CHANGING)
    outcome = results.outcome(results.tests[0], "cubic")
    assert outcome.verdict == "pass"
    assert all(one.margin == 0 for one in outcome.criteria)
    assert len(outcome.runs) == 5
    series = outcome.series()["drawn"]
    assert len(series["t_s"]) == len(series["rate_mbps"]) == 300
    # Not bin by bin: what was in flight arrives after the capacity fell.
    assert 0.3 * sum(series["capacity_mbps"]) < sum(series["rate_mbps"]) <= sum(series["capacity_mbps"])


def test_several_flows_can_be_one_contender(tmp_path: Path) -> None:
    mixed = run(tmp_path, "bbr+cubic@5s,cubic", SMALL.model_copy(update={"schemes": ("cubic",)}))
    assert [one.label for one in mixed.styles] == ["TCP BBR + TCP Cubic from 5s", "TCP Cubic"]
    assert not mixed.failures
    assert mixed.outcome(mixed.tests[0], mixed.styles[0].key).runs


def test_a_metric_without_a_number_meets_no_criterion(tmp_path: Path) -> None:
    whole = {
        **SMALL.model_dump(), "metrics": {"delay_p95": {}}, "criteria": [{"metric": "delay_p95", "max": 1e6}],
        "flows": [{"scheme": "$scheme", "start": "39.999s"}],
    }  # fmt: skip
    results = run(tmp_path, "cubic", ExperimentSpec.model_validate(whole))
    outcome = results.outcome(results.tests[0], "cubic")
    assert {value for one in outcome.runs for value in one.values.values()} == {None}
    assert outcome.verdict == "fail"
    assert document_of(tmp_path)["outcomes"][0]["criteria"][0]["value"] is None


# --- The report ----------------------------------------------------------------------------------------------------


def test_all_against_all_in_a_few_seconds(tmp_path: Path) -> None:
    found = load_experiment("coexistence", quick=True)
    assert isinstance(found, ExperimentSet)
    request = Request(tmp_path, parse_contenders("cubic,ledbat,quic"), quick=True)
    results = run_experiments(found, request)
    assert not results.failures
    (test,) = results.tests
    assert [results.outcome(test, key).verdict for key in ("cubic", "ledbat", "quic")] == ["none", "pass", "pass"]
    for outcome in (results.outcome(test, key) for key in ("cubic", "ledbat", "quic")):
        for run in outcome.runs:
            values = dict[str, Any](run.values)
            assert 0 <= values["share"] + values["other_share"] <= 1.001, "the link carries no more"
            assert all(0 <= values[key] <= 1 for key in ("throughput_harm", "delay_harm", "loss_harm"))


def test_absolute_numbers_are_not_averaged_over_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(
        """
title: links
question: q
setting: s
schemes: [cubic]
path: {rate: $rate, rtt: 40ms, queue: 1bdp}
sweep: {rate: [1mbps, 50mbps]}
flows: [{scheme: $scheme}]
duration: 4s
runs: 1
metrics: {goodput: {metric: goodput}, utilization: {metric: utilization}}
"""
    )
    assert evaluate(["--experiment", str(file), "--out", str(tmp_path / "out"), "--no-figures"]) == 0
    (outcome,) = document_of(tmp_path / "out")["outcomes"]
    goodputs = [one["metrics"]["goodput"]["mean"] for one in outcome["conditions"]]
    assert f"{min(goodputs):.2f} Mbit/s to {max(goodputs):.2f} Mbit/s" in outcome["headline"]
    mean = 100 * sum(one["metrics"]["utilization"]["mean"] for one in outcome["conditions"]) / 2
    assert f"{mean:.1f}" in outcome["headline"]
    printed = capsys.readouterr().out
    assert all(f"{one:.2f}" in printed for one in goodputs)
