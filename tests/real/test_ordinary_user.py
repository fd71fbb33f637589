"""Real paths without root: everything in a user namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534

pytestmark = pytest.mark.real("root", "setpriv")


@pytest.fixture
def as_nobody(tmp_path: Path) -> list[str]:
    """The beginning of a command line that is carried out by a user who owns nothing."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder not in (Path("/"), Path("/tmp")):
            folder.chmod(folder.stat().st_mode | 0o055)
    # This interpreter may lie where only root can read; that, and nothing else, is allowed beyond an ordinary user.
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = ["setpriv", *user, *reading, "env", f"HOME={home}"]
    tried = subprocess.run(
        [*command, sys.executable, "-c", "import ccgym._core"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    if tried.returncode:
        pytest.skip(f"user {NOBODY} cannot reach this ccgym: {tried.stderr.strip()[-200:]}")
    made = subprocess.run([*command, "unshare", "--user", "--net", "true"], capture_output=True, text=True, timeout=60)
    if made.returncode:
        pytest.skip(f"no user namespaces for ordinary users here: {made.stderr.strip()}")
    return command


def test_an_evaluation_without_root(as_nobody: list[str], tmp_path: Path) -> None:
    """Kernel TCP, ours, and a program of others where it is there, over the emulated path."""
    schemes = ["tcp:cubic", "cubic", *(["program:iperf3"] if shutil.which("iperf3") else [])]
    out = tmp_path / "home" / "results"
    done = subprocess.run(
        [
            *as_nobody, sys.executable, "evaluate.py", "--mahimahi", "mm-delay 10 mm-link 12mbps 12mbps",
            "--backend", "emulated", "--schemes", ",".join(schemes), "--runs", "1", "--runtime", "2",
            "--no-figures", "--logs", "none", "--out", str(out),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    results = json.loads((out / "results.json").read_text())
    assert results["parameters"]["backend"] == "emulated"
    performance = json.loads((out / "pantheon_perf.json").read_text())
    for scheme in schemes:
        assert 8 < performance[scheme.replace(":", "_")]["1"]["all"]["tput"] < 12.5, scheme


def test_the_shell_without_root(as_nobody: list[str]) -> None:
    """The exit status is the command's, and the command finds the other end's address."""
    done = subprocess.run(
        [
            *as_nobody, sys.executable, "-m", "ccgym.cli.main", "shell", "--", "mm-delay", "5", "--",
            "sh", "-c", "echo base $MAHIMAHI_BASE; exit 7",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("base 1"), done.stdout
