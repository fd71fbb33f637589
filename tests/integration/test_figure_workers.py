"""The processes that draw figures end with the evaluation that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RUNS = 60
"""So many that an evaluation is still drawing when it is ended."""


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def lives(pid: int) -> bool:
    """Whether a process still does something; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(what: Callable[[], bool]) -> None:
    """Wait; if it never comes, the limit of every test ends this one."""
    while not what():
        time.sleep(0.02)


def drawing(directory: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """An evaluation that draws, in a process group of its own, and the processes that draw for it."""
    words = ["--trace", "12mbps", "--schemes", "cubic", "--runs", f"{RUNS}", "--runtime", "2", "--figures", "all"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ccgym.cli.main", "evaluate", *words, "--jobs", "2", "--out", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell that runs tests in the background has control-C ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: process.poll() is not None or any(directory.glob("*_delay_run*.png")))
    assert process.poll() is None, process.communicate()[0]
    return process, children(process.pid)


@pytest.mark.parametrize(
    "end",
    [
        lambda process: os.kill(process.pid, signal.SIGKILL),
        lambda process: os.kill(process.pid, signal.SIGTERM),
        lambda process: os.killpg(process.pid, signal.SIGKILL),
        lambda process: os.killpg(process.pid, signal.SIGINT),
    ],
    ids=["killed", "terminated", "the group killed", "control-C"],
)
@pytest.mark.long
def test_workers_end_with_their_parent(tmp_path: Path, end: Callable[[subprocess.Popen[str]], None]) -> None:
    process, workers = drawing(tmp_path)
    assert len(workers) == 2
    assert all(lives(worker) for worker in workers)
    for pid in (process.pid, *workers):
        assert "/dev/shm/" not in Path(f"/proc/{pid}/maps").read_text(), "nothing that outlives a process"
    end(process)
    text, _ = process.communicate()
    until(lambda: not any(lives(worker) for worker in workers))
    assert "Traceback" not in text
    done = len(list(tmp_path.glob("*_delay_run*.png")))
    assert done < RUNS, "it was ended before it was done"
    if process.returncode == 130:
        assert "the same command continues from here" in text
