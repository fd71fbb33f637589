"""Evaluations over real packets on this machine: both backends, the kernel's TCP, policies, and what stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ccgym import emulation
from ccgym.config.path import NetworkPath
from ccgym.emulation import doctor, kernel_tcp, quic
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import RunProcess
from ccgym.errors import RealPathError
from ccgym.evaluation.backends import backend
from ccgym.evaluation.prepared_run import Record
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.gap_spec import GapSpec
from ccgym.experiments.request import Request
from ccgym.experiments.views.gap import run_gap
from tests.commands import evaluate as main

PATH = NetworkPath.from_mahimahi(
    "mm-delay 10 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=packets=40",
    name="small",
)

pytestmark = pytest.mark.real("netns")

RUN_PROCESS = os.fsencode(Path(emulation.__file__).resolve().with_name("__main__.py"))
"""The program of run processes."""
CCGYM = Path(sys.executable).with_name("ccgym")
"""The command."""


def processes() -> set[int]:
    """The run processes of this user, by number."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if RUN_PROCESS in words:
                found.add(int(entry.name))
    return found


def test_our_cubic_fills_the_link() -> None:
    run = backend("emulated").run(PATH, ["cubic"], 3, 1)
    assert (run.backend, run.flows[0].scheme) == ("emulated", "cubic")
    assert 8 < run.total.throughput_mbps < 12.6
    assert 10 <= run.total.delay_p95_ms < 80
    assert run.path_report["uplink_release"]["count"] > 1000
    assert run.series["flows"][0]["cwnd_bytes"].max() > 10 * 1448
    assert run.flows[0].min_rtt_ms >= 19


@pytest.mark.parametrize("scheme", ["dctcp", "prague"])
@pytest.mark.long
def test_marks_hold_the_queue_where_the_threshold_has_room_for_bursts(scheme: str) -> None:
    # Senders that wake late send in bursts: at 12 Mbit/s one of ten packets waits 10 ms. Only marks hold this queue.
    path = NetworkPath(rate="12mbps", rtt="40ms", queue={"kind": "step", "delay": "20ms"}, name="marking")
    run = backend("emulated").run(path, [scheme], 6, 1)
    assert (run.link.drops, run.flows[0].lost_packets) == (0, 0)
    assert run.total.throughput_mbps > 8
    # 60 packets fit below the threshold.
    late = run.series["flows"][0]["cwnd_bytes"][len(run.series["t_ns"]) // 2 :] / 1448
    assert late.max() < 100, "without a response slow start would go on, into a queue of 1,000 packets"


@pytest.mark.skipif("cubic" not in kernel_tcp.available(), reason="this kernel has no cubic")
def test_the_kernels_cubic_and_ours_beside_it() -> None:
    run = backend("emulated").run(PATH, ["tcp:cubic", {"scheme": "cubic", "start": "0.5s"}], 3, 1)
    assert [flow.scheme for flow in run.flows] == ["tcp:cubic", "cubic"]
    assert run.flows[0].throughput_mbps > 2
    assert 8 < run.total.throughput_mbps < 12.6
    assert run.path_report["unavailable"] == []


def test_a_policy_decides_over_real_packets() -> None:
    path = NetworkPath(rate="5mbps", rtt="40ms", queue="50p", name="aurora's")
    run = backend("emulated").run(path, ["aurora"], 3, 1)
    assert run.total.throughput_mbps > 1
    assert run.flows[0].scheme == "aurora"


def test_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["--trace", "12mbps", "--backend", "emulated", "--schemes", "cubic,tcp:cubic,tcp:nosuchthing"]
    words += ["--runs", "1", "--runtime", "2", "--out", str(out), "--no-figures"]
    assert main(words) == 0
    assert "unavailable" in capsys.readouterr().out
    results = ResultSet.load(out)
    assert [cell.scheme for cell in results.cells] == ["cubic", "tcp_cubic"]
    assert list(results.unavailable) == ["tcp_nosuchthing"]
    perf = json.loads((out / "pantheon_perf.json").read_text())
    assert perf["cubic"]["1"]["all"]["tput"] > 8
    for name in ("cubic_datalink_run1.log", "cubic_acklink_run1.log", "cubic_mm_datalink_run1.log"):
        assert (out / name).stat().st_size > 1000
    # What was measured is kept.
    assert main(words) == 0
    assert "2 of 2 runs are there already" in capsys.readouterr().out
    assert ResultSet.load(out).cells == results.cells


@pytest.mark.real("mahimahi")
def test_over_mahimahi() -> None:
    lossy = NetworkPath.from_mahimahi(
        "mm-delay 10 mm-loss uplink 0.0001 mm-link 12mbps.trace 12mbps.trace "
        "--uplink-queue=droptail --uplink-queue-args=packets=40"
    )
    run = backend("mahimahi").run(lossy, ["cubic"], 3, 1)
    assert any("seed" in note for note in run.path_report["notes"]), "nobody can seed its losses"
    assert 8 < run.total.throughput_mbps < 12.6
    assert 9 <= run.total.delay_p95_ms < 80


@pytest.mark.real("mahimahi")
def test_flows_find_mahimahis_trace_at_its_beginning(tmp_path: Path) -> None:
    """A second of 12 Mbit/s, one of 1.2, and again: opportunities per half second since the flows began."""
    trace = tmp_path / "steps.trace"
    trace.write_text("".join(f"{ms}\n" for ms in [*range(1, 1001), *range(1010, 2001, 10)]))
    path = NetworkPath.from_mahimahi(f"mm-delay 10 mm-link {trace} {trace}")
    run = backend("mahimahi").run(path, ["fixed_rate:rate_mbps=1"], 3, 1, Record(link_events=True))
    events = run.native.link_events("up")
    at = events["time_ns"][events["kind"] == ord("#")] / 1e9
    counts, _ = np.histogram(at, np.arange(0, 3.1, 0.5))
    assert counts == pytest.approx([500, 500, 50, 50, 500, 500], abs=5)
    traces = run.path_report["traces"]
    assert traces["lead_ms"] > 400
    [[uplink, downlink]] = traces["ahead_ms"]
    assert uplink == 0
    assert abs(downlink) < 100


def test_the_gap(tmp_path: Path) -> None:
    spec = GapSpec.model_validate({"path": PATH, "backends": ["sim", "emulated"], "runs": 1, "duration": "2s"})
    gap = run_gap(spec, Request(tmp_path, tuple(parse_contenders("cubic"))))
    assert gap.left_out == {}
    _, emulated = gap.compared()
    assert emulated.throughput_mbps is not None
    assert abs(emulated.against["sim"]["throughput_mbps"].relative or 0) < 0.3


def test_a_wrong_plan_is_an_explained_error() -> None:
    with RunProcess(Plan({"duration": 1, "flows": []})) as process, pytest.raises(RealPathError) as caught:
        process.wait()
    assert caught.value.where
    assert "signal" not in str(caught.value)


def test_nothing_outlives_a_killed_evaluation(tmp_path: Path) -> None:
    before = processes()
    words = [sys.executable, "-m", "ccgym.cli.main", "evaluate", "--trace", "12mbps", "--backend", "emulated"]
    words += ["--schemes", "cubic", "--runs", "1", "--runtime", "30", "--no-figures", "--out", str(tmp_path / "out")]
    root = Path(__file__).resolve().parents[2]
    evaluation = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=root, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 20
        while not processes() - before:
            assert time.monotonic() < deadline, "no run process"
            time.sleep(0.05)
        time.sleep(0.5)
    finally:
        os.kill(evaluation.pid, signal.SIGKILL)
        evaluation.wait()
    deadline = time.monotonic() + 5
    while processes() - before:
        assert time.monotonic() < deadline, "a run process is left"
        time.sleep(0.05)


def test_doctor_finds_that_it_works() -> None:
    assert doctor.obstacle("emulated", doctor.examine(measure=False)) is None


def test_the_shell_runs_a_command_behind_a_named_path(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    log = tmp_path / "data.log"
    words = ["--path", "77.72mbps", "--isolated", "--seed", "3", "--datalink-log", str(log), "--", "sh", "-c"]
    done = subprocess.run(
        [sys.executable, "-m", "ccgym.cli.main", "shell", *words, "echo $MAHIMAHI_BASE; exit 7"],
        cwd=root, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert done.stdout.count(".") == 3, "an address"
    assert log.read_text().startswith("# init timestamp:")


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C.UTF-8", "PYTHONPATH": "/nowhere", "A": "b=c"}])
def test_the_shells_command_inherits_what_was_there_and_nothing_of_ours(locale: dict[str, str]) -> None:
    given = {"PATH": "/usr/bin:/bin", "HOME": "/", **locale}
    script = (
        "env | sort; pwd; umask; nice; echo fds /proc/self/fd/*; cat /proc/self/timerslack_ns /proc/self/oom_score_adj"
    )
    plain = ["sh", "-c", f"{script}; grep -e Sig -e Cpus_allowed: -e NoNewPrivs -e ^Uid -e ^Gid /proc/self/status"]

    def lines(*words: str | Path) -> list[str]:
        done = subprocess.run([*words, *plain], env=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    got = lines(CCGYM, "shell", "--path", "12mbps", "--isolated", "--")
    ours = [line for line in got if line.startswith(("MAHIMAHI_", "PROMPT_COMMAND"))]
    assert [line for line in got if line not in ours] == lines()
    assert [line.split("=")[0] for line in ours] == ["MAHIMAHI_BASE", "MAHIMAHI_SHELL_PREFIX", "PROMPT_COMMAND"]
    assert ours[1].endswith("=[12mbps] ")


def test_a_flow_between_two_endpoints() -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "ccgym.cli.main"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    receiver = subprocess.Popen(
        [*command, "receiver", "--listen", address, "--once", "--json", "--duration", "20"],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert "listening" in receiver.stderr.readline()
        done = subprocess.run(
            [*command, "sender", "--to", address, "--scheme", "aurora", "--duration", "1", "--json"],
            cwd=root, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        sent = json.loads(done.stdout)
        assert sent["scheme"] == "aurora"
        assert sent["throughput_mbps"] > 0.1
        output, _ = receiver.communicate(timeout=20)
        assert json.loads(output)["received"]["packets"] > 0
    finally:
        receiver.kill()
        receiver.communicate()


@pytest.mark.skipif(quic.program() is None, reason="needs ccgym-quic, which `make setup` builds")
@pytest.mark.long
def test_quic_beside_ours() -> None:
    for algorithm in quic.LABELS:
        run = backend("emulated").run(PATH, [f"quic:{algorithm}"], 3, 1)
        (flow,) = run.flows
        assert flow.scheme == f"quic:{algorithm}"
        assert 8 < run.total.throughput_mbps < 12.6
        assert run.total.delay_p95_ms >= 10
        assert flow.min_rtt_ms >= 19
        assert run.series["flows"][0]["cwnd_bytes"].max() > 10 * 1500
    run = backend("emulated").run(PATH, ["quic:cubic", {"scheme": "cubic", "start": "0.5s"}], 3, 1)
    assert [flow.scheme for flow in run.flows] == ["quic:cubic", "cubic"]
    assert run.flows[0].throughput_mbps > 1
    assert run.path_report["unavailable"] == []


def test_a_path_whose_empty_delay_is_not_its_own_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "gaps.trace"
    trace.write_text("1499\n" * 2000 + "1500\n" * 2166)
    out = tmp_path / "out"
    words = ["--schemes", "cubic", "--runs", "1", "--runtime", "2", "--backend", "emulated", "--out", str(out)]
    assert main(["--trace", str(trace), *words]) == 2
    assert "on the empty path the median packet takes" in capsys.readouterr().err
    assert not out.exists()
