"""Progress lines, and running other programs with visible progress and errors."""

from __future__ import annotations

import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STARTED = time.monotonic()


class SetupError(Exception):
    """An error that the user must solve; the message describes the action."""


def say(message: str) -> None:
    """Print one progress line, with the time since the start."""
    print(f"setup {time.monotonic() - STARTED:6.1f} s  {message}", flush=True)


def run(command: Sequence[str], what: str, *, log: Path, env: dict[str, str] | None = None) -> None:
    """Run a program with its output in the log; print a line every 20 s, and the end of the output if it fails."""
    tail: list[str] = []

    def drain(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with log.open("a", encoding="utf-8") as sink:
            sink.write(f"\n$ {shlex.join(command)}\n")
            for line in process.stdout:
                sink.write(line)
                sink.flush()
                if line.strip():
                    tail.append(line.rstrip())
                    del tail[:-40]

    try:
        process = subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        raise SetupError(f"{what}: cannot run {command[0]}: {error}") from error
    with process:
        reader = threading.Thread(target=drain, args=(process,), daemon=True)
        reader.start()
        while True:
            try:
                status = process.wait(timeout=20)
                break
            except subprocess.TimeoutExpired:
                say(f"… {what}: {tail[-1].strip()[:90] if tail else 'running'}")
        reader.join(timeout=10)
    if status != 0:
        shown = "\n".join(f"    {line}" for line in tail[-25:])
        raise SetupError(f"{what} failed with status {status} (complete output in {log}):\n{shown}")
