"""Runs between two machines, which are two network namespaces here, with an emulated path between them.

This machine is `near`, behind the path; the other one is outside of it, and has another monotonic clock. The clock of
the day is the same at both, so the true offset is 0 and the true delays are those of the path. A script stands for SSH.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ccgym.emulation import kernel_tcp
from ccgym.evaluation.pantheon.logs import read_log
from ccgym.evaluation.results import ResultSet
from ccgym.report.pantheon_words import repeated

pytestmark = pytest.mark.real("root", "tun", "netns", "nsenter")

ROOT = Path(__file__).resolve().parents[2]
LATER_S = 100_000
"""By so much the monotonic clock of the other machine is ahead."""
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
}
NEAR_MS = 3.0
"""A full packet takes a millisecond over the link; threads of a busy machine, a time server's among them, add to it."""


@dataclass(frozen=True)
class Machines:
    """Two machines."""

    near: list[str]
    """What runs a command on the one behind the path."""
    outside: str
    """Address of the other one."""
    folder: Path

    def ssh(self, machine: str) -> str:
        """What stands for SSH, to a machine: ``near`` or ``outside``."""
        enter = self.near if machine == "near" else ["nsenter", f"--net=/proc/{os.getpid()}/ns/net"]
        later = f"unshare --time --fork --kill-child --monotonic {LATER_S} --boottime {LATER_S}"
        file = self.folder / f"ssh-{machine}"
        file.write_text(
            f'#!/bin/sh\n[ "$1" = -G ] && {{ echo hostname {self.outside}; exit; }}\nshift\n'
            f'exec {shlex.join(enter)} {later} -- sh -c "$*"\n'
        )
        file.chmod(0o755)
        return str(file)

    def evaluate(self, out: Path, *options: str, here: Sequence[str] | None = None, ssh: str = "") -> ResultSet:
        """Evaluate from the machine that `here` enters, by default the one behind the path."""
        words = [*(self.near if here is None else here), *evaluate_words(ssh or self.ssh("outside"), out), *options]
        done = subprocess.run(words, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return ResultSet.load(out)


def evaluate_words(ssh: str, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "ccgym.cli.main", "evaluate", "--remote", "far", "--ssh", ssh),
        *("--runs", "1", "--runtime", "3", "--no-figures", "--logs", "all", "--out", str(out)),
    ]


def innermost(pid: int) -> int:
    """The last descendant of a process; in its own namespace it has another number."""
    # Any thread of a process may have started the next one.
    while children := [
        one for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]:
        pid = int(children[-1])
    return pid


@contextmanager
def machines(folder: Path, up_ms: float, down_ms: float) -> Iterator[Machines]:
    """Two machines, with these delays from the near one to the other, and back."""
    link = {"rate": "12mbps", "queue": "40p"}
    chain = [
        {"kind": "delay", "delay": f"{up_ms}ms", "direction": "uplink"},
        {"kind": "delay", "delay": f"{down_ms}ms", "direction": "downlink"},
        {"kind": "link", "uplink": link, "downlink": link},
    ]
    file = folder / "between.yaml"
    file.write_text(json.dumps({"chain": chain}))
    shell = [sys.executable, "-m", "ccgym.cli.main", "shell", "--path", str(file), "--"]
    with subprocess.Popen(
        [*shell, "sh", "-c", "echo $MAHIMAHI_BASE; exec sleep 600"],
        env=ENVIRONMENT, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            outside = process.stdout.readline().strip()
            yield Machines(["nsenter", f"--net=/proc/{innermost(process.pid)}/ns/net"], outside, folder)
        finally:
            process.terminate()


@contextmanager
def time_server(enter: Sequence[str], ahead_s: float) -> Iterator[None]:
    """A time server at 127.0.0.1 of a machine."""
    words = [*enter, sys.executable, str(ROOT / "tests" / "time_server.py"), "127.0.0.1:123", str(ahead_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline() != "listening\n":
                pytest.skip("needs UDP port 123, which another time server has")
            yield
        finally:
            process.kill()


def least_ms(out: Path, scheme: str = "cubic", link: str = "datalink") -> float:
    """The smallest one-way delay of a log, ms."""
    return float(read_log(out / f"{scheme}_{link}_run1.log").delay_ns.min()) / 1e6


@pytest.mark.long
def test_a_symmetric_path_and_another_clock(tmp_path: Path) -> None:
    schemes = ["cubic", "aurora", *(["tcp:cubic"] if kernel_tcp.why_unavailable("cubic") is None else [])]
    with machines(tmp_path, 20, 20) as two:
        results = two.evaluate(tmp_path / "out", "--schemes", ",".join(schemes))
    assert len(results.cells) == len(schemes)
    for cell in results.cells:
        assert cell.invalid is None
        clocks = cell.record.path_report["clocks"]
        assert clocks["applied"] == "in-band"
        assert abs(clocks["offset_ms"]) < 2
        assert 19 < clocks["bound_ms"] < 26
        assert abs(clocks["drift_ppm"]) < 200
    cubic, _, *kernel = results.cells
    for cell in (cubic, *kernel):
        assert 9 < cell.record.total.throughput_mbps < 12
        assert 20 < least_ms(tmp_path / "out", cell.scheme) < 24
    assert cubic.record.flows[0].min_rtt_ms > 40
    assert (cubic.record.link.capacity_mbps, cubic.record.link.utilization) == (None, None)


@pytest.mark.long
def test_an_asymmetric_path_needs_a_time_server(tmp_path: Path) -> None:
    with machines(tmp_path, 10, 50) as two, ExitStack() as servers:
        alone = two.evaluate(tmp_path / "alone", "--schemes", "cubic")
        for enter in (two.near, []):
            servers.enter_context(time_server(enter, 0.0))
        asked = two.evaluate(tmp_path / "asked", "--schemes", "cubic", "--ntp-addr", "127.0.0.1")
    # From the packets alone nothing tells that one way is shorter: half of the difference is on each.
    assert 10 + 20 < least_ms(tmp_path / "alone") < 10 + 20 + 4
    assert not any("NTP" in sentence for sentence in repeated(alone))
    assert abs(least_ms(tmp_path / "asked") - 10) < NEAR_MS
    assert abs(least_ms(tmp_path / "asked", link="acklink") - 50) < NEAR_MS
    assert "NTP offsets were measured against 127.0.0.1" in repeated(asked)[-1]
    assert "Local clock offset: " in (tmp_path / "asked" / "cubic_stats_run1.log").read_text()


@pytest.mark.long
def test_a_time_server_that_contradicts_the_packets_is_not_believed(tmp_path: Path) -> None:
    with machines(tmp_path, 10, 10) as two, time_server(two.near, 0.0), time_server([], 0.5):
        results = two.evaluate(tmp_path / "out", "--schemes", "cubic", "--ntp-addr", "127.0.0.1")
    (cell,) = results.cells
    assert cell.record.path_report["clocks"]["applied"] == "in-band"
    assert cell.record.path_report["notes"]
    assert 10 < least_ms(tmp_path / "out") < 14
    assert "clock offset" not in (tmp_path / "out" / "cubic_stats_run1.log").read_text()


@pytest.mark.long
def test_data_from_there_and_the_tunnel_from_there(tmp_path: Path) -> None:
    # Here is outside of the path now: the other machine is behind it, sends, and connects.
    with machines(tmp_path, 20, 20) as two:
        words = ["--schemes", "cubic,bbr", "--sender", "remote", "--tunnel-server", "local"]
        words += ["--local-addr", two.outside]
        results = two.evaluate(tmp_path / "out", *words, here=[], ssh=two.ssh("near"))
    assert results.provenance["path"] == "far (remote) → local host (local)"
    for cell in results.cells:
        assert 9 < cell.record.total.throughput_mbps < 12
        assert 20 < least_ms(tmp_path / "out", cell.scheme) < 24


@pytest.mark.long
def test_a_firewall_between_is_named(tmp_path: Path) -> None:
    with machines(tmp_path, 1, 1) as two:
        words = [*two.near, *evaluate_words(two.ssh("outside"), tmp_path / "out"), "--schemes", "cubic"]
        words += ["--remote-addr", "203.0.113.1"]  # no machine has this address
        done = subprocess.run(words, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "firewall" in done.stdout + done.stderr


def test_nothing_is_left_at_either_machine(tmp_path: Path) -> None:
    mark = f"CCGYM_TEST={tmp_path}"

    def left() -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue
        return found

    with machines(tmp_path, 1, 1) as two:
        words = [*two.near, *evaluate_words(two.ssh("outside"), tmp_path / "out"), "--schemes", "cubic"]
        environment = {**ENVIRONMENT, "CCGYM_TEST": str(tmp_path)}
        with subprocess.Popen(
            [*words, "--runtime", "60"], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as evaluation:
            deadline = time.monotonic() + 30
            while sum("emulation/__main__.py" in one for one in left()) < 2:
                assert time.monotonic() < deadline, left()
                time.sleep(0.1)
            time.sleep(1)
            os.kill(evaluation.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while left():
        assert time.monotonic() < deadline, left()
        time.sleep(0.1)
