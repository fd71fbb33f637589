"""Backends: one description of a run for all of them, and what evaluations make of real ones.

The run process is replaced by the simulator here, which takes the same specification and leaves the same result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ccgym import _core
from ccgym.cli.progress import clock_text
from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor, kernel_tcp
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import ProcessOutcome
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation import engine, runner
from ccgym.evaluation.backends import BACKENDS, backend, check_name, is_real
from ccgym.evaluation.backends import real as real_backend
from ccgym.evaluation.directory import differences
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.prepared_run import Record, prepare
from ccgym.evaluation.probe import Probe
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.runner import run_experiment
from ccgym.evaluation.simulate import simulate
from ccgym.report.evaluation_report import page, write_tables
from ccgym.report.evaluation_table import LIMITED_MARK, evaluation_table, exact_table, markdown
from tests.commands import evaluate as main
from tests.refusals import explained, refused
from tests.watching import Watching

PATH = NetworkPath.from_mahimahi(
    "mm-delay 10 mm-loss uplink 0.01 mm-link 12mbps.trace 12mbps.trace "
    "--uplink-queue=droptail --uplink-queue-args=packets=20",
    name="small",
)


class StandIn:
    """Stands for run processes: simulates what they get."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.report: dict[str, Any] = {
            "uplink_release": {"count": 10, "p50_ns": 20_000, "p99_ns": 150_000, "max_ns": 1_000_000},
            "downlink_release": None,
            "device_drops": 0,
            "limited": None,
            "unavailable": [],
            "notes": [],
            "started_epoch_ms": 1.7e12,
        }
        self.fails: Callable[[Plan], str | None] = lambda plan: None
        self.required: list[str] = []

    def run(self, plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        self.plans.append(plan)
        failure = self.fails(plan)
        if failure:
            raise RealPathError("run-failed", failure, where="a step")
        spec = json.loads(json.dumps(plan.spec))
        for flow in spec["flows"]:
            flow["scheme"] = flow["scheme"].removeprefix("tcp:")
        traces = {name: _core.Trace.parse(file.read_bytes(), name) for name, file in plan.traces.items()}
        result = _core.simulate(json.dumps(spec), traces)
        return ProcessOutcome(result, {"backend": plan.backend, **self.report})


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand = StandIn()
    monkeypatch.setattr(real_backend, "run_plan", stand.run)
    # The probe of the empty path, itself a run, has tests of its own.
    monkeypatch.setattr(runner, "probe", lambda path, runs_on, seed: Probe(20, 1.0, 1.0))
    monkeypatch.setattr(doctor, "require", stand.required.append)
    monkeypatch.setattr(kernel_tcp, "available", lambda: ("reno", "bbr", "cubic"))
    monkeypatch.setattr(
        kernel_tcp, "why_unavailable", lambda name: None if name in ("bbr", "cubic") else f"no {name} here"
    )
    return stand


def experiment(schemes: str = "cubic,tcp:cubic", **changes: Any) -> Experiment:
    fields: dict[str, Any] = {
        "path": PATH,
        "schemes": parse_contenders(schemes),
        "runs": 2,
        "runtime_ns": 10**9,
        "backend": "emulated",
    }
    return Experiment(**{**fields, **changes})


# --- Names ---------------------------------------------------------------------------------------------------------


def test_backends_by_name() -> None:
    assert [backend(name).name for name in BACKENDS] == ["sim", "emulated", "mahimahi", "remote"]
    assert [is_real(name) for name in BACKENDS] == [False, True, True, True]
    with refused(ConfigError, "unknown-backend at --backend"):
        check_name("emulatd", "--backend")
    with refused(ConfigError, "unknown-backend at backend"):
        experiment(backend="simulated")


# --- One run -------------------------------------------------------------------------------------------------------


def test_the_simulator_is_a_backend() -> None:
    ours = backend("sim").run(PATH, ["cubic"], 1, 7, Record())
    assert ours.to_json() == simulate(PATH, ["cubic"], "1s", 7).to_json()
    assert (ours.backend, ours.path_report) == ("sim", None)


def test_a_real_run_is_told_what_the_simulator_is_told(stand_in: StandIn) -> None:
    run = backend("emulated").run(PATH, ["cubic", {"scheme": "tcp:bbr", "start": "0.2s"}], 1, 7)
    (plan,) = stand_in.plans
    assert plan.spec == prepare(PATH, ["cubic", {"scheme": "tcp:bbr", "start": 0.2}], 1, 7).document
    assert plan.backend == "emulated"
    assert [flow.scheme for flow in run.flows] == ["cubic", "tcp:bbr"]
    assert (run.backend, run.seed) == ("emulated", 7)
    assert run.path_report["uplink_release"]["p99_ns"] == 150_000
    assert RunRecord.from_json(run.to_json()).as_dict() == run.as_dict()


def test_learned_policies_come_as_files(stand_in: StandIn) -> None:
    real = real_backend.RealPath("emulated")
    plan = real.plan(prepare(PATH, ["aurora", "cubic"], "1s"))
    ((key, files),) = plan.policies.items()
    assert key.startswith("aurora@")
    assert files.onnx.is_file()
    assert files.card.is_file()


def test_mahimahi_gets_shells_with_real_files(stand_in: StandIn) -> None:
    run = backend("mahimahi").run(PATH, ["cubic"], 1, 1)
    delay, loss, link = stand_in.plans[0].mahimahi
    assert (delay, loss) == (("mm-delay", "10"), ("mm-loss", "uplink", "0.01"))
    assert link[0] == "mm-link"
    assert all(Path(word).is_file() for word in link[1:3])
    assert run.backend == "mahimahi"


def test_a_damaged_trace_in_the_cache_is_made_again(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path))
    rates = NetworkPath.from_mahimahi("mm-delay 5 mm-link 77.72mbps.trace 12mbps.trace", name="made of a rule")
    constant = NetworkPath(rate="3mbps", rtt="20ms", queue="20p")
    files = [*real_backend.trace_files(rates.trace_names()).values()]
    files += [
        Path(word) for shell in real_backend.mahimahi_shells(constant, 10**9) for word in shell if ".trace" in word
    ]
    cached = {file: file.read_bytes() for file in files if file.is_relative_to(tmp_path)}
    assert len(cached) > 1
    for damage in (b"1000\n", None):
        for file in cached:
            file.unlink() if damage is None else file.write_bytes(damage)
        backend("emulated").run(rates, ["cubic"], 1, 1)
        backend("mahimahi").run(constant, ["cubic"], 1, 1)
        assert {file: file.read_bytes() for file in cached} == cached


def test_mahimahi_that_is_not_installed(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(PlatformError, "program-missing at backend mahimahi"):
        backend("mahimahi").require(PATH, 10**9)
    backend("emulated").require(PATH, 10**9)
    assert stand_in.required == ["emulated"]


def test_records_of_before_are_simulations() -> None:
    old = simulate(PATH, ["cubic"], "1s").as_dict()
    del old["backend"], old["path_report"]
    assert RunRecord.from_dict(old).backend == "sim"


# --- Experiments ---------------------------------------------------------------------------------------------------


def test_the_backend_is_part_of_what_an_experiment_is() -> None:
    simulated = experiment("cubic", backend="sim")
    assert "backend" not in simulated.parameters(), "directories of before are still theirs"
    assert differences(simulated.parameters(), experiment("cubic").parameters()) == ["backend: only here"]


def test_an_evaluation_over_real_packets(stand_in: StandIn, tmp_path: Path) -> None:
    made = experiment()
    results = run_experiment(made, tmp_path, logs="first")
    assert [(cell.scheme, cell.run) for cell in results.cells] == [
        ("cubic", 1), ("cubic", 2), ("tcp_cubic", 1), ("tcp_cubic", 2),
    ]  # fmt: skip
    assert results.backend == "emulated"
    assert results.real
    assert results.provenance["backend"] == "emulated"
    assert results.cells[0].started_epoch_s == 1.7e9
    assert ResultSet.load(str(tmp_path)).as_dict() == results.as_dict()
    assert (tmp_path / "tcp_cubic_stats_run1.log").exists()
    # A second time, nothing is run: finished runs are kept, though they would not come out the same.
    stand_in.required.clear()
    assert run_experiment(made, tmp_path).as_dict()["cells"] == results.as_dict()["cells"]
    assert len(stand_in.plans) == 4
    assert stand_in.required == [], "only where there is something to run"


def test_runs_go_one_at_a_time(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way, most = 0, 0
    lock = threading.Lock()
    run = stand_in.run

    def counted(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        try:
            return run(plan, halt)
        finally:
            with lock:
                under_way -= 1

    monkeypatch.setattr(real_backend, "run_plan", counted)
    run_experiment(experiment(), tmp_path)
    assert most == 1


def test_an_interruption_halts_the_run_that_is_under_way(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    halted: list[bool] = []

    def long_run(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        if len(stand_in.plans) == 1:
            halted.append(halt.wait(10))
            raise RealPathError("run-abandoned", "given up")
        return StandIn.run(stand_in, plan, halt)

    monkeypatch.setattr(real_backend, "run_plan", long_run)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(experiment(), tmp_path, observer=Watching(stop_after=1))
    assert halted in ([], [True])


def test_logs_that_nobody_asked_for_do_not_repeat_a_real_run(stand_in: StandIn, tmp_path: Path) -> None:
    made = experiment("cubic", runs=1)
    before = run_experiment(made, tmp_path, logs="none")
    watching = Watching()
    after = run_experiment(made, tmp_path, logs="all", observer=watching)
    assert before.as_dict()["cells"] == after.as_dict()["cells"]
    assert len(stand_in.plans) == 1
    assert "kept without packet logs" in watching.notices[0]


# --- What the machine could not do ---------------------------------------------------------------------------------


def test_a_limited_machine_is_flagged_and_marked(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.report["limited"] = "2.1 % of packets left more than 1 ms late"
    results = run_experiment(experiment(), tmp_path)
    flags = [flag for flag in results.flags if flag["code"] == "emulator-limited"]
    assert [flag["subject"] for flag in flags] == ["TCP Cubic", "TCP Cubic (kernel)"]
    assert flags[0]["level"] == "warning"
    assert "2.1 %" in flags[0]["message"]
    assert flags[0]["command"].startswith("ccgym doctor")
    table = evaluation_table(results)
    assert [table.text(row, "scheme") for row in table.rows] == [
        f"TCP Cubic {LIMITED_MARK}",
        f"TCP Cubic (kernel) {LIMITED_MARK}",
    ]
    assert "emulator-limited" in table.notes[0]
    assert f"| TCP Cubic {LIMITED_MARK} |" in markdown(results)
    assert results.as_dict()["summary"][0]["limited_runs"] == 2
    shown = page(results, tmp_path).html(tmp_path)
    assert "Emulator-limited: 2.1 % of packets" in shown
    assert "Tested over the emulated path, with real packets" in shown
    assert "99th percentile" in shown


def test_limited_runs_are_repeated_until_one_is_not(stand_in: StandIn, tmp_path: Path) -> None:
    late = "2.1 % of packets left more than 1 ms late"

    def busy(tries: int) -> Callable[[Plan], str | None]:
        def set_report(plan: Plan) -> None:
            stand_in.report["limited"] = late if len(stand_in.plans) <= tries else None

        return set_report

    stand_in.fails = busy(2)
    results = run_experiment(experiment("cubic", runs=1), tmp_path / "a", repeat_limited=3)
    assert len(stand_in.plans) == 3
    report = results.cells[0].record.path_report
    assert (report["limited"], report["repeats"]) == (None, 2)
    assert [flag["message"] for flag in results.flags if flag["code"] == "path-note"] == [engine.REPEATED]

    # Never held: the last one stays, marked; later it is tried again, if that is wanted.
    stand_in.plans.clear()
    stand_in.fails = busy(100)
    results = run_experiment(experiment("cubic", runs=1), tmp_path / "b", repeat_limited=1)
    assert (len(stand_in.plans), results.cells[0].limited) == (2, late)
    results = run_experiment(experiment("cubic", runs=1), tmp_path / "b")
    assert (len(stand_in.plans), results.cells[0].limited) == (2, late)
    stand_in.fails = busy(0)
    results = run_experiment(experiment("cubic", runs=1), tmp_path / "b", repeat_limited=1)
    assert (len(stand_in.plans), results.cells[0].limited) == (3, None)
    # One that was held is not run again.
    run_experiment(experiment("cubic", runs=1), tmp_path / "b", repeat_limited=1)
    assert len(stand_in.plans) == 3


def test_what_is_unavailable_has_a_row_and_is_no_failure(stand_in: StandIn, tmp_path: Path) -> None:
    results = run_experiment(experiment("tcp:cubic,tcp:vegas"), tmp_path)
    assert results.unavailable == {"tcp_vegas": "no vegas here"}
    assert results.failures == ()
    assert [cell.scheme for cell in results.cells] == ["tcp_cubic", "tcp_cubic"]
    table = evaluation_table(results)
    assert table.text(table.rows[1], "runs") == "unavailable"
    assert table.notes == ["TCP Vegas (kernel): unavailable: no vegas here"]
    assert "unavailable: no vegas here" in page(results, tmp_path).html(tmp_path)
    assert "no vegas here" in exact_table(results).csv()
    write_tables(results, tmp_path)
    assert ResultSet.load(tmp_path).unavailable == results.unavailable


def test_what_proves_unavailable_in_the_run_is_none_either(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.report["unavailable"] = [[0, 'this kernel has no congestion control "cubic"']]
    results = run_experiment(experiment("tcp:cubic"), tmp_path)
    assert (results.cells, results.failures) == ((), ())
    assert "no congestion control" in results.unavailable["tcp_cubic"]
    assert list((tmp_path / "runs").iterdir()) == []


def test_notes_are_shown(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_backend, "require_programs", lambda words: None)
    stand_in.report["notes"] = ["a seed does not repeat the losses"]
    results = run_experiment(experiment("cubic", backend="mahimahi"), tmp_path)
    (note,) = [flag for flag in results.flags if flag["code"] == "path-note"]
    assert note["message"] == "a seed does not repeat the losses"
    assert note["cause"] == "2 of 2 runs report it"
    assert note["level"] == "note"


# --- The command line ----------------------------------------------------------------------------------------------


def test_the_command_line(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--trace", "12mbps", "--backend", "emulated", "--schemes", "tcp:cubic,cubic,tcp:vegas", "--runs", "1"]
    assert main([*words, "--runtime", "1", "--no-figures", "--jobs", "2"]) == 0
    output = capsys.readouterr().out
    assert (tmp_path / "results" / "12mbps-emulated" / "results.json").exists()
    assert "emulated: real packets over ccgym's emulated path" in output
    assert "in real time: 0:01, and a little" in output, "two of three can be run, both at a time"
    assert "2 runs at a time share" in output
    assert "running: 2 in" in output
    assert "unavailable" in output
    assert "the same command gives other packets" in output
    assert "trajectory" not in output


def test_a_machine_that_cannot_is_an_explained_mistake(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> None:
        raise PlatformError("capability-missing", "rights: none", where=f"backend {name}", hint="be root")

    monkeypatch.setattr(doctor, "require", refuse)
    monkeypatch.chdir(tmp_path)
    assert main(["--trace", "12mbps", "--backend", "emulated", "--schemes", "cubic", "--no-figures"]) == 2
    explained(capsys.readouterr().err, "capability-missing at backend emulated")
    assert list(tmp_path.iterdir()) == []


def test_nothing_ran(stand_in: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--trace", "12mbps", "--backend", "emulated", "--schemes", "tcp:vegas", "--runs", "1", "--out"]
    assert main([*words, str(tmp_path / "out"), "--runtime", "1", "--no-figures"]) == 1
    shown = capsys.readouterr()
    assert "error: nothing ran" in shown.err
    assert "unavailable: no vegas here" in shown.out
    assert "one run per scheme" not in shown.out
    assert "the same command" not in shown.out
    assert stand_in.plans == []
    words = ["--experiment", "calibrated", "--quick", "--backend", "emulated", "--schemes", "tcp:vegas", "--no-figures"]
    assert main([*words, "--out", str(tmp_path / "card")]) == 1
    assert "nothing ran: tcp_vegas is unavailable: no vegas here" in capsys.readouterr().out


def test_times_for_people() -> None:
    assert [clock_text(seconds) for seconds in (0, 59.2, 125, 3725)] == ["0:00", "1:00", "2:05", "1:02:05"]
