"""A sweep that is killed again and again ends complete: nothing half-written, no finished run made again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccgym.evaluation.store import read_run
from tests.results_rows import document_of


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """The finished runs: the inode of each file, and when it was written."""
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in (out / "runs").glob("[!.]*")}


@pytest.mark.parametrize(
    ("conditions", "kills", "seed"),
    [(4, 1, 1), pytest.param(20, 10, 2, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_a_killed_sweep_ends_complete(conditions: int, kills: int, seed: int, tmp_path: Path) -> None:
    out, total, rng = tmp_path / "out", conditions * 2 * 5, random.Random(seed)
    values = ",".join(f"{10 + 5 * place}ms" for place in range(conditions))
    # Each run takes long enough, one after the other, that a kill comes in the middle on a fast machine, too.
    command = [
        sys.executable,
        "-m",
        "ccgym",
        "evaluate",
        "--trace",
        "100.42mbps",
        "--sweep",
        f"rtt={values}",
        "--jobs",
        "1",
    ]
    command += ["--schemes", "cubic,bbr", "--runs", "5", "--runtime", "30", "--no-figures", "--out", str(out)]
    kept: dict[str, tuple[int, int]] = {}
    for left in range(kills, 0, -1):
        goal = len(kept) + rng.randint(1, max(1, (total - len(kept)) // (left + 1)))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not (out / "runs").exists() or len(finished(out)) < goal):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was over before it was killed"
        now = finished(out)
        assert now.items() >= kept.items(), "a finished run was written again"
        assert all(read_run(out / "runs" / name) for name in now)
        kept = now
    assert len(kept) < total
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} were there already" in done.stdout
    now = finished(out)
    assert now.items() >= kept.items()
    assert len(now) == total
    assert all(read_run(out / "runs" / name) for name in now)
    assert not list(out.rglob("*.partial"))
    document = document_of(out)
    assert document["kind"] == "experiment"
    assert [len(one["runs"]) for one in document["outcomes"]] == [total // 2] * 2
    assert document["left"] == 0
    assert not document["failures"]
