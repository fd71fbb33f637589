"""Schemes in Python with real packets: they send, a mistake ends the run with its line, a slow one is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccgym.config.path import NetworkPath
from ccgym.errors import RealPathError
from ccgym.evaluation import backends
from tests.refusals import refused

pytestmark = pytest.mark.real("netns")

PATH = NetworkPath(rate="6mbps", rtt="20ms", queue="40p")
AIMD = f"{Path(__file__).resolve().parents[2]}/examples/aimd.py:AIMD"
SLOW = """\
import time

class Slow:
    cwnd = 10

    def on_ack(self, ack):
        time.sleep(0.005)
"""
WRONG = """\
class Wrong:
    cwnd = 10

    def on_ack(self, ack):
        if ack.now_s > 0.5:
            self.cwnd = -1
"""


def run(scheme: str, backend: str = "emulated"):  # type: ignore[no-untyped-def]
    return backends.backend(backend).run(PATH, [scheme], 3, 1)


def test_it_sends_what_it_sends_in_the_simulator() -> None:
    real, simulated = run(AIMD).total.throughput_mbps, run(AIMD, "sim").total.throughput_mbps
    assert 0.5 < real / simulated < 2, "wide: the machine is shared"


def test_a_mistake_ends_the_run_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    with refused(RealPathError, f"scheme-answer-invalid at {file}:6: Wrong.on_ack"):
        run(f"{file}:Wrong")


def test_one_that_cannot_keep_up_says_so(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    limited = run(f"{file}:Slow").limited
    assert "Slow.py@" in limited or "uplink" in limited or "downlink" in limited
