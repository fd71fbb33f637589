"""A test on the real network that fails while processors are taken away is repeated, and never counts as passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_time import TRIES
from tools.stolen_time import processor_times, stolen_share

CONFTEST = """
import tests.real_time as real_time
ticks = iter(range(0, 10**6, 100))
def times():
    now = next(ticks)
    return now, now * {percent} // 100
real_time.processor_times = times
real_time.time.sleep = lambda s: None
def pytest_configure(config):
    config.addinivalue_line("markers", "real: on the network")
from tests.conftest import pytest_report_teststatus, pytest_terminal_summary
def pytest_runtest_protocol(item, nextitem):
    return real_time.run_protocol(item, nextitem)
"""
TESTS = """
import pytest
tries = []
@pytest.fixture
def fresh():
    return []
def test_it(fresh):
    fresh.append(1)
    assert fresh == [1]
    tries.append(1)
    assert len(tries) >= {needed}, "too early"
def test_fine():
    pass
"""


def run(folder: Path, percent: int, needed: int, more: str = "") -> str:
    (folder / "conftest.py").write_text(CONFTEST.format(percent=percent))
    (folder / "test_inner.py").write_text(TESTS.format(needed=needed) + more)
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)],
        cwd=folder, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(root), "CCGYM_UNDECIDED": str(folder / "tally")},
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("percent", "needed", "expected"),
    [
        (0, 1, "2 passed"),
        (20, TRIES, "2 passed"),
        (20, TRIES + 1, "1 passed, 1 undecided"),
        (0, 2, "1 failed, 1 passed"),
    ],
)
def test_only_what_the_machine_may_have_caused_is_repeated(
    tmp_path: Path, percent: int, needed: int, expected: str
) -> None:
    said = run(tmp_path, percent, needed)
    assert expected in said, said
    undecided = "undecided" in expected
    assert ("UNDECIDED: failed 3 times while 20 % of the processors' time" in said) == undecided
    assert (tmp_path / "tally").exists() == undecided


def test_a_test_that_saw_the_machine_stall_is_undecided(tmp_path: Path) -> None:
    stalls = 'def test_stalls():\n    import tests.real_time\n    tests.real_time.undecided("it stalled")\n'
    said = run(tmp_path, 0, 1, stalls)
    assert "2 passed, 1 undecided" in said, said
    assert "test_stalls: UNDECIDED: it stalled" in (tmp_path / "tally").read_text()


def test_what_was_stolen() -> None:
    assert stolen_share((0, 0), (0, 0)) == 0.0
    assert stolen_share((100, 10), (300, 20)) == 0.05
    before, after = processor_times(), processor_times()
    assert 0.0 <= stolen_share(before, after) <= 1.0
