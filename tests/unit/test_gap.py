"""The gap: what is compared with what, what is beyond tolerance, what is left out; table, figure and page.

The run process is replaced by the simulator, on a path with more loss, so that there is a gap.
"""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from rich.console import Console

from ccgym import _core
from ccgym.cli.main import main as cli
from ccgym.config.declared import HOSTS
from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import ProcessOutcome
from ccgym.errors import ConfigError, PlatformError, RealPathError
from ccgym.evaluation import runner
from ccgym.evaluation.backends import real as real_backend
from ccgym.evaluation.curves import FlowCurves
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.probe import Probe
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.scheme_summary import SchemeSummary
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.request import Request
from ccgym.experiments.views.gap import Deviation, Gap, apart_by, differences, run_gap, with_host_jitter
from ccgym.report import gap_report
from ccgym.report.figures.gap_series import delay_line, gap_figure
from ccgym.report.figures.throughput import total_egress
from ccgym.report.gap_report import gap_table, page
from ccgym.report.style import house_style
from ccgym.report.table import Table
from tests.refusals import explained, refused
from tests.results_rows import document_of

PATH = NetworkPath.from_mahimahi(
    "mm-delay 10 mm-loss uplink 0.001 mm-link 12mbps.trace 12mbps.trace "
    "--uplink-queue=droptail --uplink-queue-args=packets=20",
    name="small",
)


@pytest.fixture(autouse=True)
def reality(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Backends of real packets that lose more than they should; what was run."""
    ran: list[str] = []

    def run(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        spec = json.loads(json.dumps(plan.spec))
        ran.append(f"{plan.backend} {spec['flows'][0]['scheme']} {spec['seed']}")
        spec["flows"][0]["scheme"] = spec["flows"][0]["scheme"].removeprefix("tcp:")
        for element in spec["uplink"]:
            if element["kind"] == "loss":
                element["probability"] = 0.05 if plan.backend == "mahimahi" else 0.001
        traces = {name: _core.Trace.parse(file.read_bytes(), name) for name, file in plan.traces.items()}
        started = {"lead_ms": 600 + spec["seed"] % 2, "ahead_ms": [[0, -3], [36, 34]]}
        report = {"limited": None, "traces": started if plan.backend == "mahimahi" else None}
        return ProcessOutcome(_core.simulate(json.dumps(spec), traces), report)

    monkeypatch.setattr(real_backend, "run_plan", run)
    # The probe of the empty path, itself a run, has tests of its own.
    monkeypatch.setattr(runner, "probe", lambda path, runs_on, seed: Probe(20, 1.0, 1.0))
    monkeypatch.setattr(doctor, "require", lambda name: None)
    monkeypatch.setattr(real_backend, "require_programs", lambda words: None)
    return ran


def gap(out: Path, schemes: str = "cubic,tcp:cubic", backends: str = "sim,emulated,mahimahi", runs: int = 2) -> Gap:
    spec = GapSpec.model_validate({"path": PATH, "backends": backends.split(","), "runs": runs, "duration": "2s"})
    return run_gap(spec, Request(out, tuple(parse_contenders(schemes))))


# --- Comparing -----------------------------------------------------------------------------------------------------


def test_every_scheme_on_every_backend(tmp_path: Path, reality: list[str]) -> None:
    made = gap(tmp_path)
    rows = made.compared()
    assert [(row.scheme, row.backend) for row in rows] == [
        (scheme, backend) for scheme in ("cubic", "tcp_cubic") for backend in ("sim", "emulated", "mahimahi")
    ]
    assert (made.reference, made.references) == ("mahimahi", ("sim", "mahimahi"))
    simulated, emulated, mahimahi = rows[:3]
    assert set(simulated.against) == {"mahimahi"}
    assert set(emulated.against) == {"sim", "mahimahi"}
    assert set(mahimahi.against) == {"sim"}
    # The emulated path gets the very seeds of the simulator, so this stand-in for it gives the very packets.
    assert emulated.against["sim"]["throughput_mbps"].absolute == 0
    assert not any(one.beyond for one in emulated.against["sim"].values())
    lost = mahimahi.against["sim"]["throughput_mbps"]
    assert lost.absolute < 0
    assert lost.beyond
    assert lost.relative is not None
    assert lost.relative == pytest.approx(
        -simulated.against["mahimahi"]["throughput_mbps"].absolute / simulated.throughput_mbps.mean
    )  # type: ignore[union-attr]
    assert mahimahi.against["sim"]["loss"].beyond


def test_for_the_kernels_the_simulator_runs_ours(tmp_path: Path, reality: list[str]) -> None:
    made = gap(tmp_path, "tcp:cubic,tcp:scalable", "sim,emulated", runs=1)
    simulated, emulated, missing, unavailable = made.compared()
    assert simulated.throughput_mbps is not None
    assert "ccgym's cubic" in simulated.note
    assert emulated.against["sim"]["loss"].absolute == 0, "the kernel's and ours have the same seeds"
    assert missing.throughput_mbps is None
    assert "no implementation of scalable" in missing.note
    assert "unavailable: this kernel has no scalable" in unavailable.note


def test_simulated_hosts_may_be_inexact_too(tmp_path: Path, reality: list[str]) -> None:
    exact = gap(tmp_path / "exact", "cubic", "sim,emulated", runs=1)
    spec = GapSpec.model_validate(
        {
            "path": PATH,
            "backends": ["sim", "emulated"],
            "runs": 1,
            "sim_runs": 3,
            "duration": "2s",
            "host_jitter": "0.5ms",
            "host_start": "1ms",
        }
    )
    made = run_gap(spec, Request(tmp_path / "inexact", tuple(parse_contenders("cubic"))))
    simulated, emulated = made.compared()
    assert (simulated.runs, emulated.runs) == (3, 1)
    starts = [cell.record.flows[0].start_s for cell in made.results["sim"].cells]
    assert len({0.0, *starts}) == 4
    assert max(starts) <= 0.001
    assert emulated.throughput_mbps == exact.compared()[1].throughput_mbps, "reality has its own"
    assert simulated.throughput_mbps is not None
    assert simulated.throughput_mbps.std is not None
    assert simulated.throughput_mbps.std > 0
    assert abs(emulated.against["sim"]["throughput_mbps"].relative or 1) < 0.2
    assert with_host_jitter(PATH, 0) is PATH
    (jitter,) = with_host_jitter(PATH, 500_000).chain[len(PATH.chain) :]
    assert (jitter.kind, jitter.direction) == ("jitter", "downlink")  # type: ignore[union-attr]


def test_which_host_is_closest(tmp_path: Path, reality: list[str]) -> None:
    made = gap(tmp_path, "bbr,tcp:cubic", "sim,mahimahi", runs=1)
    rows = made.host_rows()
    assert [(row.scheme, row.host) for row in rows] == [
        (scheme, host) for scheme in ("bbr", "tcp_cubic") for host in ("", *HOSTS)
    ]
    for scheme in ("bbr", "tcp_cubic"):
        those = [row for row in rows if row.scheme == scheme]
        assert [row.closest for row in those].count(True) == 1
        assert min(those, key=lambda row: row.apart).closest
        assert dict(those[0].against) == made.compared()[0 if scheme == "bbr" else 2].against["mahimahi"]
    assert len({row.apart for row in rows if row.scheme == "bbr"}) > 2, "hosts differ"
    assert [row.values["closest"] for row in gap_report.host_table(made).rows].count("closest") == 2
    assert len(made.to_json()["hosts"]) == len(rows)
    assert gap(tmp_path / "one", "cubic", "sim", runs=1).hosts == {}, "nothing to be close to"


def test_differences_in_tolerances() -> None:
    within = {
        "throughput_mbps": Deviation(1.0, 0.05, beyond=False),
        "delay_p95_ms": Deviation(-2.0, -0.1, beyond=False),
        "loss": Deviation(0.01, None, beyond=False),
    }
    assert apart_by(within) == pytest.approx(1)
    assert apart_by({**within, "delay_p95_ms": Deviation(0.0, 0.0, beyond=False)}) == pytest.approx((2 / 3) ** 0.5)
    assert apart_by({}) == 0


def test_backends_that_do_not_work_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        if name == "mahimahi":
            raise PlatformError("capability-missing", "mahimahi: iptables fails", hint="build master")

    monkeypatch.setattr(doctor, "require", refuse)
    made = gap(tmp_path, "cubic", runs=1)
    assert list(made.results) == ["sim", "emulated"]
    assert made.left_out == {"mahimahi": "mahimahi: iptables fails; build master"}
    assert made.reference == "emulated"
    assert any("left out: mahimahi" in line for line in gap_table(made).notes)
    assert not (tmp_path / "mahimahi").exists()


def test_a_backend_on_which_everything_fails_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        raise RealPathError("no-answer", "no answer", where="handshake of flow 0")

    monkeypatch.setattr(real_backend, "run_plan", fail)
    made = gap(tmp_path, "cubic", "sim,mahimahi", runs=1)
    assert list(made.results) == ["sim"]
    assert made.without_runs == {"mahimahi": "every run failed: handshake of flow 0: no answer"}
    assert any(line.startswith("nothing ran: mahimahi") for line in gap_table(made).notes)
    assert made.to_json()["without_runs"] == made.without_runs


def test_it_says_how_long_before_the_flows_traces_began(tmp_path: Path) -> None:
    made = gap(tmp_path, "cubic")
    assert [made.trace_leads(name) for name in ("sim", "emulated")] == [None, None]
    leads = made.trace_leads("mahimahi")
    assert leads is not None
    assert set(leads[:2]) <= {600, 601}
    assert leads[2] == 36
    assert document_of(tmp_path)["trace_leads_ms"] == {"mahimahi": list(leads)}
    assert sum(line.startswith("mahimahi: ") for line in gap_table(made).notes) == 1


def test_a_path_that_mahimahi_cannot_express(tmp_path: Path) -> None:
    path = NetworkPath(rate="12mbps", rtt="15.5ms", queue="20p")
    spec = GapSpec.model_validate({"path": path, "backends": ["sim", "mahimahi"], "runs": 1, "duration": "1s"})
    made = run_gap(spec, Request(tmp_path, tuple(parse_contenders("cubic"))))
    assert list(made.results) == ["sim"]
    assert "mahimahi" in made.left_out
    assert made.references == (), "nothing to compare with"


def test_wrong_backends(tmp_path: Path) -> None:
    with refused(ValidationError, "unknown-backend"):
        gap(tmp_path, backends="simm")
    with refused(ValidationError, "argument-missing"):
        GapSpec.model_validate({"path": PATH, "backends": []})
    request = Request(tmp_path, tuple(parse_contenders("cubic")), backend="emulated")
    with refused(ConfigError, "options-conflict at backend"):
        run_gap(GapSpec.model_validate({"path": PATH}), request)


def test_differences_of_nothing() -> None:
    assert differences(None, None) == {}
    empty = SchemeSummary(style=parse_contenders("cubic")[0].style, runs=(), published=None)
    assert differences(empty, empty) == {}


# --- Showing -------------------------------------------------------------------------------------------------------


def texts(table: Table) -> list[list[str]]:
    return [table.texts(row) for row in table.rows]


def printed(table: object, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table(tmp_path: Path) -> None:
    made = gap(tmp_path, "cubic", runs=1)
    table = gap_table(made)
    four = texts(table)
    assert [(row[1], row[5]) for row in four] == [
        ("sim", "mahimahi"), ("emulated", "sim"), ("", "mahimahi"), ("mahimahi", "sim"),
    ]  # fmt: skip
    assert [row.first for row in table.rows] == [True, False, False, False]
    for width in (60, 80, 160):
        shown = printed(table, width)
        assert max(map(len, shown.splitlines())) <= width
        assert all(text in shown for row in four for text in row)
    written = page(made).markdown()
    assert f"**{four[3][6]}**" in written
    tables = [lines.splitlines() for lines in written.split("\n\n") if lines.startswith("|")]
    assert all(len({line.count("|") for line in lines}) == 1 for lines in tables)
    assert len(tables) == 2
    assert [row[5] for row in texts(gap_table(gap(tmp_path, "cubic", "sim", runs=1)))] == [""]


def test_delays_as_a_line() -> None:
    flow = FlowCurves(
        ingress_mbps=np.zeros(2),
        egress_mbps=np.array([1.0, 2.0]),
        # Two cells at one instant count as one instant.
        delay_time_s=np.array([0.01, 0.01, 0.05, 0.15]),
        delay_ms=np.array([10.0, 20.0, 30.0, 40.0]),
    )
    times, delays = delay_line([flow], 0.1)
    assert times == pytest.approx([0.05, 0.15])
    assert delays == pytest.approx([(15 + 30) / 2, 40])
    assert total_egress([flow, flow]).tolist() == [2, 4]
    assert delay_line([])[0].size == total_egress([]).size == 0


def test_a_panel_per_scheme_and_a_line_per_run(tmp_path: Path) -> None:
    made = gap(tmp_path)
    with house_style():
        figure = gap_figure(made)
    assert len(figure.axes) == 4
    lines = figure.axes[0].get_lines()
    assert len(lines) == 3 * 2
    widths = sorted(line.get_linewidth() for line in lines)
    assert widths[:3] == [0.7] * 3
    assert widths[3:] == [1.9] * 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "sim (2 runs)", "emulated (2 runs)", "mahimahi (2 runs)",
    ]  # fmt: skip


def test_files(tmp_path: Path) -> None:
    made = gap(tmp_path, "cubic", "sim,emulated", runs=1)
    gap_report.write(made, tmp_path, Silent(), figures=True)
    for suffix in ("svg", "pdf", "png"):
        assert (tmp_path / f"gap_series.{suffix}").stat().st_size > 1000
    html = (tmp_path / "gap_report.html").read_text()
    assert 'data-type="image/svg+xml"' in html
    assert "http" not in html.split("</style>")[1], "it needs no network"
    assert "TCP Cubic" in html
    data = document_of(tmp_path)
    assert [row["backend"] for row in data["rows"]] == ["sim", "emulated"]
    assert data["rows"][1]["against"]["sim"]["throughput_mbps"]["beyond"] is False


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["compare", "backends", "--trace", "12mbps", "--schemes", "cubic", "--backends", "sim,emulated"]
    assert cli([*words, "--runs", "1", "--runtime", "1"]) == 0
    output = capsys.readouterr().out
    assert "beyond tolerance" in output
    assert (tmp_path / "results" / "12mbps-gap" / "gap_report.html").exists()
    assert cli([*words, "--runs", "1", "--runtime", "1", "--json", "--no-figures"]) == 0
    assert json.loads(capsys.readouterr().out)["reference"] == "emulated"


def test_the_gap_is_an_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "--experiment", "gap", "--quick", "--schemes", "cubic", "--runtime", "1", "--no-figures"]
    assert cli([*words, "--out", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "beyond tolerance" in output
    assert document_of(tmp_path)["reference"] == "mahimahi"
    assert cli([*words, "--out", str(tmp_path), "--seed", "2"]) == 2
    explained(capsys.readouterr().err, "directory-taken")


def test_the_status_says_whether_what_was_asked_for_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], reality: list[str]
) -> None:
    words = ["compare", "backends", "--trace", "12mbps", "--runs", "1", "--runtime", "1", "--no-figures", "--schemes"]
    absent = {"mahimahi"}

    def refuse(name: str) -> None:
        if name in absent:
            raise PlatformError("capability-missing", f"{name}: it is not here", hint="install it")

    def status(place: str, *more: str) -> tuple[int, str, str]:
        code = cli([*words, *more, "--out", str(tmp_path / place)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    monkeypatch.setattr(doctor, "require", refuse)
    code, out, err = status("default", "cubic")
    assert (code, err) == (0, ""), "what is not here is left out"
    assert "left out: mahimahi" in out
    code, out, _ = status("asked for", "cubic", "--backends", "sim,mahimahi")
    assert code == 1
    assert "nothing ran on mahimahi: mahimahi: it is not here; install it" in out
    code, _, err = status("unavailable", "tcp:scalable,cubic", "--backends", "sim,emulated")
    assert (code, err) == (0, ""), "one scheme of two ran"
    code, _, err = status("none", "tcp:scalable", "--backends", "sim,emulated")
    assert code == 2
    explained(err, "run-failed at --backends")
    absent.add("emulated")
    code, out, _ = status("alone", "cubic")
    assert code == 1
    assert "only sim ran" in out
    assert status("sim", "cubic", "--backends", "sim")[0] == 0

    def fail(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
        raise RealPathError("no-answer", "no answer", where="handshake of flow 0")

    absent.clear()
    monkeypatch.setattr(real_backend, "run_plan", fail)
    code, out, _ = status("broken", "cubic")
    assert code == 1
    assert "nothing ran on emulated: every run failed" in out
    assert "nothing ran on mahimahi: every run failed" in out
