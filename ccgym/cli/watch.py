"""``ccgym report watch``: show the progress of runs and trainings in another terminal, made here or on a cluster."""

from __future__ import annotations

import argparse
import csv
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import console, say
from ccgym.cli.progress import clock_text
from ccgym.errors import ResultsError
from ccgym.evaluation.directory import LOCK_FILE
from ccgym.evaluation.progress_file import PROGRESS_FILE, RunProgress, State, alive

if TYPE_CHECKING:
    from rich.console import RenderableType

TURN_S: Final = 0.5
"""Seconds between updates."""
SILENCE_S: Final = 20.0
"""Seconds between two lines without a terminal."""
TRAINING_FILE: Final = "config.yaml"
"""The file that identifies the run directory of a training."""
STEPS: Final = "steps"
"""The stage of a training."""
SHOWN_RUNS: Final = 12
SHOWN_FAILURES: Final = 5


def _watch(arguments: argparse.Namespace) -> int:
    from rich.live import Live

    directory, now = newest(arguments.directory)
    live = None if arguments.once or not console().is_terminal else Live(console=console(), refresh_per_second=4)
    said = 0.0
    with live or nullcontext():
        while True:
            if live is not None:
                live.update(view(directory, now))
            elif now.state != "running" or time.monotonic() - said >= SILENCE_S:
                said = time.monotonic()
                say(line(directory, now))
            if now.state != "running" or arguments.once:
                return 1 if now.state == "interrupted" else 0
            time.sleep(TURN_S)
            now = progress_of(directory) or now


def newest(given: Path) -> tuple[Path, RunProgress]:
    """Return the results directory, and the progress of its runs.

    Args:
        given: A results directory, or a folder of them; then the results directory with the newest runs.

    Raises:
        ResultsError: The directory has neither runs nor a training.
    """
    own = progress_of(given)
    if own is not None:
        return given, own
    inside = sorted({one.parent for name in (PROGRESS_FILE, TRAINING_FILE) for one in given.glob(f"*/{name}")})
    found = [(one, progress_of(one)) for one in inside]
    known = [(directory, progress) for directory, progress in found if progress is not None]
    if not known:
        raise ResultsError(
            "results-missing",
            "there are no runs in this directory",
            where=str(given),
            expected="a directory that `ccgym evaluate` or `ccgym train` writes to",
            hint="name the directory of --out or --run-dir",
        )
    return max(known, key=lambda one: one[1].started)


def progress_of(directory: Path) -> RunProgress | None:
    """Return the progress of a directory's runs or training; None if it is neither a results nor a run directory.

    Raises:
        ResultsError: The progress cannot be read.
    """
    return RunProgress.load(directory) or _training(directory)


def _training(directory: Path) -> RunProgress | None:
    """Return the progress of a training from its run directory: its steps are counted like runs."""
    config, table, lock = directory / TRAINING_FILE, directory / "progress.csv", directory / LOCK_FILE
    if not config.is_file() or not (directory / "checkpoints").is_dir():
        return None
    import yaml

    try:
        total = int(yaml.safe_load(config.read_text(encoding="utf-8"))["training"]["steps"])
        rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines())) if table.is_file() else []
        step = int(float(rows[-1]["step"])) if rows else 0
        pid = int(lock.read_text(encoding="utf-8"))
        updated, before = (table if rows else config).stat().st_mtime, config.stat().st_mtime
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ResultsError(
            "results-damaged", f"cannot be read: {error!r}", where=str(directory), expected="a run directory"
        ) from None
    done = step >= total and (directory / "final" / "model.json").is_file()
    state: State = "ended" if done else "running" if alive(pid) else "interrupted"
    running = {"training": before} if state == "running" else {}
    return RunProgress(
        STEPS, max(total, step), done=step, running=running, started=before, updated=updated, state=state, pid=pid
    )


def line(directory: Path, now: RunProgress) -> str:
    """Return the progress on one line."""
    unit = "steps" if now.what == STEPS else "runs"
    parts = [f"{directory}: {now.kept + now.done} of {now.total} {unit}"]
    if now.state == "running":
        parts.append(f"{len(now.running)} running")
    elif now.state == "ended":
        parts.append("ended" if now.left == 0 else f"ended, {now.left} left")
    else:
        parts.append("interrupted: the same command continues")
    if now.rate is not None:
        parts.append(f"{now.rate:.1f} {unit}/s" if now.rate >= 1 else f"{60 * now.rate:.1f} {unit}/min")
    if now.state == "running" and now.eta_s is not None:
        parts.append(f"{clock_text(now.eta_s)} left")
    if now.failed:
        parts.append(f"{now.failed} failed")
    return ", ".join(parts)


def view(directory: Path, now: RunProgress) -> RenderableType:
    """Return the line, the running runs, and the latest failures, for a terminal."""
    from rich.text import Text

    lines = [line(directory, now)]
    begun = sorted(now.running.items(), key=lambda one: one[1])
    lines += [f"  {max(0.0, time.time() - since):6.1f} s  {name}" for name, since in begun[:SHOWN_RUNS]]
    if len(begun) > SHOWN_RUNS:
        lines.append(f"           and {len(begun) - SHOWN_RUNS} more")
    shown = Text("\n".join(lines))
    for failure in now.failures[-SHOWN_FAILURES:]:
        shown.append(f"\nfailed: {failure}", style="bold red")
    return shown


WATCH: Final = Command(
    "watch",
    "show the progress of runs in another terminal",
    _watch,
    description="""\
Show the progress of `ccgym evaluate` or of a training in another terminal: running runs, the rate,
the remaining time, failures. It ends when they end; Ctrl-C ends only this command.
""",
    examples="""\
  ccgym report watch
      the newest runs of all directories in results/
  ccgym report watch runs
      the newest training
  ccgym report watch results/stress_tests --once
      one line, for scripts: status 0 if the runs are running or ended, 1 if they were interrupted
""",
    options={
        "[DIRECTORY] = results": "a results directory, or a folder of results directories: shows the newest runs",
        "--once": "print one line and end",
    },
)
