"""The command line of evaluate.py, the descriptions of flows and schemes, and simulate()."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccgym
from ccgym.cli import evaluate as cli_evaluate
from ccgym.cli.evaluation_output import size_text
from ccgym.config.declared import HOSTS
from ccgym.config.path import NetworkPath
from ccgym.errors import CcgymError, ConfigError, PathNotFoundError, ResultsError
from ccgym.evaluation.directory import claim
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.simulate import Job, Record, simulate, simulate_many
from ccgym.evaluation.store import RunStore
from ccgym.experiments.training import outside_training
from ccgym.report.evaluation_table import evaluation_table
from ccgym.schemes.flow import FlowSpec, flow_spec
from ccgym.schemes.groups import compared_schemes
from ccgym.schemes.policies import pretrained
from ccgym.schemes.reading import parse_scheme, scheme_of
from ccgym.schemes.registry import registry
from tests.commands import evaluate as main
from tests.commands import parsed
from tests.refusals import refused

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


# --- Schemes -------------------------------------------------------------------------------------------------------


def test_values_keep_their_type() -> None:
    assert parse_scheme("cubic:beta=0.5:fast_convergence=false").params == {"beta": 0.5, "fast_convergence": False}


def test_default_schemes_leave_out_tools() -> None:
    names = [choice.title for choice in compared_schemes()]
    assert {"cubic", "reno", "bbr", "aurora"} <= set(names)
    assert not {"aimd", "fixed_window", "fixed_rate", "learned"} & set(names)
    assert set(names) <= {*registry(), *pretrained()}


# --- Flows ---------------------------------------------------------------------------------------------------------


def test_short_forms_of_flows() -> None:
    assert flow_spec("cubic") == FlowSpec(scheme="cubic")
    late = flow_spec({"scheme": "reno", "start": "5s", "source": "5MB", "rtt": "60ms"})
    assert (late.start_ns, late.rtt, late.source.kind) == (5_000_000_000, 60_000_000, "bytes")
    assert flow_spec({"scheme": "fixed_window:cwnd=5"}).params == {"cwnd": 5}
    assert flow_spec(scheme_of("fixed_window", {"cwnd": 5})).params == {"cwnd": 5}


def test_flows_survive_storage() -> None:
    for source in (
        "greedy",
        "5MB",
        {"kind": "on_off", "mean_on": "1s", "mean_off": "2s"},
        {"kind": "rate", "rate": "2mbps"},
    ):
        flow = flow_spec({"scheme": "bbr", "start": "1.5s", "stop": "9s", "extra_rtt": "3ms", "source": source})
        assert FlowSpec.model_validate(json.loads(flow.model_dump_json())) == flow


def test_native_form_of_a_flow() -> None:
    native = flow_spec({"scheme": "reno", "rtt": "60ms", "source": {"kind": "rate", "rate": "2mbps"}}).native(
        20_000_000
    )
    assert native["extra_rtt"] == 40_000_000
    assert native["source"] == {"kind": "rate", "rate": 2_000_000}
    assert json.dumps(native)


def test_hosts_by_name() -> None:
    plain = flow_spec("cubic")
    assert flow_spec({"scheme": "cubic", "host": {}}).model_dump(mode="json") == plain.model_dump(mode="json")
    assert "host" not in plain.model_dump(mode="json"), "its digest is that of the time before"
    for name, values in HOSTS.items():
        flow = flow_spec({"scheme": "cubic", "host": name})
        assert flow == flow_spec({"scheme": "cubic", "host": values})
        assert FlowSpec.model_validate(json.loads(flow.model_dump_json())) == flow
        assert "program" not in flow.model_dump_json(), "values decide, not their name"
        runs = [simulate(PATH, [{"scheme": "bbr", "host": host}], "3s", seed=1) for host in (name, values, {})]
        assert runs[0].trajectory_hash == runs[1].trajectory_hash != runs[2].trajectory_hash


@pytest.mark.parametrize(
    ("flow", "what"),
    [
        ({"scheme": "cubic", "start": True}, "quantity-malformed at flow: start"),
        ({"scheme": "cubic", "start": "5 parsec"}, "unknown-unit at flow: start"),
        ({"scheme": "cubic", "start": "-1s"}, "out-of-range at flow: start"),
        ({"scheme": "cubic", "strat": "5s"}, "unknown-key at flow: strat"),
        ({"scheme": "cubic", "start": "5s", "stop": "5s"}, "wrong-type at flow"),
        ({"scheme": "cubic", "rtt": "50ms", "extra_rtt": "10ms"}, "wrong-type at flow"),
        ({"scheme": "cubic", "source": {"kind": "burst"}}, "unknown-kind at flow: source: kind"),
        ({"scheme": "cubic", "source": "5p"}, "unit-mismatch at flow: source.bytes.bytes"),
        ({"scheme": "cubic", "source": 5000}, "unit-missing at flow: source.bytes.bytes"),
        ({"scheme": "cubic", "profile": "sctp"}, "unknown-choice at flow: profile"),
        ({"scheme": "cubic", "mss": 0}, "out-of-range at flow: mss"),
        ({"scheme": "cubic", "ack_every": "two"}, "wrong-type at flow: ack_every"),
        ({"scheme": "cubic", "host": "kernal"}, "unknown-kind at flow: host"),
        ({"scheme": "cubic", "host": {"wakeup": "5p"}}, "unknown-unit at flow: host.wakeup"),
        ({"scheme": "cubic", "host": {"batch": 0}}, "out-of-range at flow: host.batch"),
        ({"scheme": "cubic", "host": {"lazy": True}}, "unknown-key at flow: host.lazy"),
        ({"start": "5s"}, "key-missing at flow: scheme"),
        (5, "wrong-type at flow"),
    ],
)
def test_wrong_flows(
    flow: object,
    what: str,
) -> None:
    with refused(ConfigError, what):
        flow_spec(flow)


# --- simulate() ----------------------------------------------------------------------------------------------------


def test_the_public_surface() -> None:
    run = ccgym.simulate(PATH, flows=["cubic", {"scheme": "reno", "start": "1s"}], duration="4s", seed=1)
    assert isinstance(run, ccgym.RunRecord)
    first, second = run.flows
    assert first.throughput_mbps is not None
    assert second.throughput_mbps is not None
    assert first.throughput_mbps > second.throughput_mbps > 1
    assert first.delay_p95_ms is not None
    assert 10 <= first.delay_p95_ms <= 10 + 21 + 1
    assert first.mean_rtt_ms is not None
    assert 20 <= first.mean_rtt_ms <= 42
    assert first.mean_cwnd_packets is not None
    assert run.link.drops == run.counters["link"]["drops"]
    assert run.link.capacity_mbps == 12.0
    assert run.total.throughput_mbps <= 12.0 * 1.01
    assert run.series is not None
    assert set(run.ccperf().flows[0]) >= {"mean_srtt_l4", "mean_cwnd_l4"}
    assert (first.start_s, second.start_s, second.stop_s) == (0.0, 1.0, 4.0)
    assert run.curves().flows[1].egress_mbps.size == 8


def test_many_runs_do_not_depend_on_threads() -> None:
    path = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", loss=0.01)
    jobs = [Job(path, [scheme], "2s", seed) for scheme in ("cubic", "bbr") for seed in (1, 2, 3)]
    one, two = simulate_many(jobs, threads=1), simulate_many(jobs, threads=4)
    assert [run.to_json() for run in one] == [run.to_json() for run in two]
    assert [run.flows[0].scheme for run in one] == ["cubic"] * 3 + ["bbr"] * 3
    assert len({run.trajectory_hash for run in one}) == len(jobs)
    assert one[0].packets is None, "numbers only, unless asked"


def test_what_is_not_recorded_is_missing_with_a_reason() -> None:
    run = simulate(PATH, ["cubic"], "1s", record=Record(packets=False, series=0))
    assert run.flows[0].throughput_mbps is None
    assert run.flows[0].mean_rtt_ms is None
    assert run.flows[0].goodput_mbps > 1
    for ask in (lambda: run.total, run.ccperf, run.curves):
        with refused(ResultsError, "not-recorded"):
            ask()


def test_a_flow_of_limited_bytes_finishes() -> None:
    run = simulate(PATH, [{"scheme": "cubic", "source": "1MB"}], "5s")
    assert run.flows[0].completion_s == pytest.approx(1e6 * 8 / 12e6 * 1500 / 1448, rel=0.2)
    assert run.ccperf().flows[0]["flow_completion_time_l4"].value == run.flows[0].completion_s


def test_a_path_without_a_link_has_no_capacity() -> None:
    path = NetworkPath(chain=[{"kind": "delay", "delay": "10ms"}])
    run = simulate(path, ["fixed_window:cwnd=10"], "1s")
    assert run.link.capacity_mbps is None
    assert run.ccperf().link == {}
    assert run.flows[0].throughput_mbps == pytest.approx(10 * 12_000 / 20e3, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"flows": []}, "wrong-type at flows"),
        ({"flows": "cubic"}, "wrong-type at flows"),
        ({"flows": ["cubik"]}, "unknown-scheme at flows[0]"),
        ({"flows": ["cubic", {"scheme": "bbr", "start": "40s"}]}, "start-after-end at flows[1].start"),
        ({"duration": "0s"}, "out-of-range at duration"),
        ({"duration": float("nan")}, "quantity-malformed at duration"),
        ({"duration": True}, "quantity-malformed at duration"),
        ({"duration": "30 parsec"}, "unknown-unit at duration"),
        ({"record": Record(series=-1)}, "out-of-range at record.series"),
        ({"record": {"packets": False}}, "wrong-type at record"),
        ({"seed": -1}, "out-of-range at seed"),
        ({"seed": 1.5}, "out-of-range at seed"),
        ({"flows": [{"scheme": "cubic", "rtt": "10ms"}]}, "out-of-range at flows[0]"),
    ],
)
def test_wrong_arguments_of_simulate(arguments: dict[str, Any], place: str) -> None:
    with refused(CcgymError, place):
        simulate(PATH, **arguments)


@pytest.mark.parametrize("seconds", [2, 2.0, np.int64(2), np.float32(2), "2", "2000ms"])
def test_plain_numbers_are_seconds(seconds: Any) -> None:
    flows = [{"scheme": "cubic", "start": seconds / 4 if not isinstance(seconds, str) else 0.5, "extra_rtt": 0.01}]
    run = simulate(PATH, flows, seconds, record=Record(packets=False, series=0.1))
    assert run.duration_s == 2.0
    assert run.flows[0].start_s == 0.5
    assert run.series is not None
    assert run.series["t_ns"][0] == 100_000_000


def test_a_path_is_taken_by_name_wherever_a_path_is() -> None:
    named = simulate(NetworkPath.named("77.72mbps"), ["cubic"], 1, record=Record(series=0))
    assert simulate("77.72mbps", ["cubic"], 1, record=Record(series=0)) == named
    assert simulate_many([Job("77.72mbps", ["cubic"], 1)], record=Record(series=0)) == [named]
    assert Experiment("77.72mbps", parse_contenders("cubic")).path == NetworkPath.named("77.72mbps")
    shells = simulate("mm-delay 10 mm-link 12mbps.trace 12mbps.trace", ["cubic"], 1)
    assert shells.flows[0].min_rtt_ms is not None
    assert shells.flows[0].min_rtt_ms >= 20.0
    with refused(PathNotFoundError, "unknown-path"):
        simulate("77.72mbp", ["cubic"], 1)


# --- Experiments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"runs": 0}, "out-of-range at runs"),
        ({"flows": 0}, "out-of-range at flows"),
        ({"seed": -1}, "out-of-range at seed"),
        ({"runtime_ns": 0}, "out-of-range at runtime"),
        ({"runtime_ns": 25 * 3600 * 10**9}, "out-of-range at runtime"),
        ({"flows": 3, "interval_ns": 15 * 10**9}, "start-after-end at interval"),
        ({"interval_ns": -1}, "start-after-end at interval"),
        ({"schemes": ()}, "argument-missing at schemes"),
        ({"schemes": (scheme_of("cubic"), scheme_of("cubic"))}, "duplicate at schemes"),
        ({"schemes": (scheme_of("nope"),)}, "unknown-scheme at schemes"),
    ],
)
def test_impossible_experiments(change: dict[str, Any], place: str) -> None:
    fields: dict[str, Any] = {"path": PATH, "schemes": (scheme_of("cubic"),), **change}
    with refused(CcgymError, place):
        Experiment(**fields)


def test_flows_that_begin_late_do_so_by_the_seed_of_their_run() -> None:
    made = Experiment(path=PATH, schemes=(scheme_of("cubic"),), flows=2, interval_ns=10**9, late_start_ns=10**6)
    starts, again = ([[flow.start_ns for flow in run.contender.flows] for run in made.planned()] for _ in range(2))
    assert starts == again
    late = [start - place * 10**9 for run in starts for place, start in enumerate(run)]
    assert len(set(late)) == len(late) == 10
    assert all(0 <= ns <= 10**6 for ns in late)
    assert made.parameters() != replace(made, late_start_ns=0).parameters()


# --- The command line ----------------------------------------------------------------------------------------------


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
    runs = sorted((directory / "runs").iterdir())
    assert len(runs) == 5, "cubic's is that of before"
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
    assert f"{size / 1e6:,.1f} MB" in size_text(directory)
    before, after = ([cell.record.total.delay_p95_ms for cell in one.cells] for one in found)
    assert [one == other for one, other in zip(before, after)] == [False, True, False]
    if out:
        assert main([*words[:-1], "3", *out, "--no-figures"]) == 2, "another experiment is refused as before"


def test_paths_outside_of_a_training_are_told_before_anything_runs() -> None:
    def told(path: str, schemes: str) -> int:
        return len(outside_training(NetworkPath.from_any(path), parse_contenders(schemes)))

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


# --- Where results go ----------------------------------------------------------------------------------------------


def directory_of(*words: str) -> str:
    """The directory that an evaluation would take, which is then its own."""
    arguments = parsed("evaluate", ["--trace", "12mbps", *words])
    arguments.backend = cli_evaluate._backend(arguments)
    made = cli_evaluate._experiment(arguments, NetworkPath.from_any("12mbps"))
    out = cli_evaluate._directory(arguments, made)
    with RunStore(out, "evaluation"):
        claim(out, made.parameters())
    return str(out)


def test_the_directory_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bbr = ("--schemes", "bbr")
    assert directory_of(*bbr) == "results/12mbps"
    assert directory_of(*bbr, "--runtime", "10", "--flows", "3") == "results/12mbps-10s-3flows"
    assert directory_of(*bbr, "--runtime", "10", "--flows", "3") == "results/12mbps-10s-3flows", "the same again"
    assert directory_of(*bbr, "--interval", "2.5", "--seed", "7") == "results/12mbps-2.5s-apart-seed7"
    assert directory_of("--schemes", "cubic,copa", "--runs", "1") == "results/12mbps-cubic+copa-1run"
    assert directory_of("--schemes", "fixed_window:cwnd=5,bbr") == "results/12mbps-2schemes"
    assert directory_of(*bbr) == "results/12mbps"
    other = directory_of("--schemes", "fixed_window:cwnd=6,bbr")
    assert re.fullmatch(r"results/12mbps-[0-9a-f]{8}", other), "its name was taken"
