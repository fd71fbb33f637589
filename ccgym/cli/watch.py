"""``ccgym report watch``: how far runs and trainings in another terminal are, made here or on a cluster."""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import console
from ccgym.cli.progress import clock_text
from ccgym.errors import ResultsError
from ccgym.evaluation.directory import LOCK_FILE
from ccgym.evaluation.progress_file import PROGRESS_FILE, RunProgress, State, alive

if TYPE_CHECKING:
    from rich.console import RenderableType

TURN_S: Final = 0.5
"""How often it looks."""
SILENCE_S: Final = 20.0
"""Without a terminal, seconds between two lines."""
TRAINING_FILE: Final = "config.yaml"
"""What tells the run directory of a training."""
STEPS: Final = "steps"
"""The stage of a training."""
SHOWN_RUNS: Final = 12
SHOWN_FAILURES: Final = 5


def _watch(arguments: argparse.Namespace) -> int:
    shown_on = console()
    directory, now = newest(arguments.directory)
    if arguments.once or not shown_on.is_terminal:
        shown_on.print(line(directory, now), soft_wrap=True)
        said = time.monotonic()
        while now.state == "running" and not arguments.once:
            time.sleep(TURN_S)
            now = progress_of(directory) or now
            if now.state != "running" or time.monotonic() - said >= SILENCE_S:
                said = time.monotonic()
                shown_on.print(line(directory, now), soft_wrap=True)
    else:
        from rich.live import Live

        with Live(view(directory, now), console=shown_on, refresh_per_second=4) as live:
            while now.state == "running":
                time.sleep(TURN_S)
                now = progress_of(directory) or now
                live.update(view(directory, now))
    return 1 if now.state == "interrupted" else 0


def newest(given: Path) -> tuple[Path, RunProgress]:
    """The results directory, and how far its runs are.

    Args:
        given: It, or a directory of such: then the one whose runs began last.

    Raises:
        ResultsError: Nothing is said there of any runs.
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
            "no runs have begun there",
            where=str(given),
            expected="a directory that `ccgym evaluate` or `ccgym train` writes to",
            hint="name the directory that --out or --run-dir named",
        )
    return max(known, key=lambda one: one[1].started)


def progress_of(directory: Path) -> RunProgress | None:
    """How far the runs of a directory are, or the training whose run directory it is; None where it is neither.

    Raises:
        ResultsError: What it says cannot be read.
    """
    return RunProgress.load(directory) or _training(directory)


def _training(directory: Path) -> RunProgress | None:
    """How far a training is, by its run directory: its steps are counted as runs are."""
    config, table, lock = directory / TRAINING_FILE, directory / "progress.csv", directory / LOCK_FILE
    if not config.is_file() or not (directory / "checkpoints").is_dir():
        return None
    import yaml

    try:
        total = int(yaml.safe_load(config.read_text(encoding="utf-8"))["training"]["steps"])
        rows = []
        if table.is_file():
            with table.open(encoding="utf-8", newline="") as text:
                rows = list(csv.DictReader(text))
        step = int(float(rows[-1]["step"])) if rows else 0
        pid = int(lock.read_text(encoding="utf-8"))
        updated = (table if rows else config).stat().st_mtime
        before = config.stat().st_mtime
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
    """All of it on one line."""
    parts = [f"{directory}: {now.kept + now.done} of {now.total} {_unit(now)}", _state(now)]
    if now.rate is not None:
        parts.append(_rate(now.rate, _unit(now)))
    if now.state == "running" and now.eta_s is not None:
        parts.append(f"{clock_text(now.eta_s)} left")
    if now.failed:
        parts.append(f"{now.failed} failed")
    return ", ".join(parts)


def view(directory: Path, now: RunProgress) -> RenderableType:
    """All of it for a terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = Table.grid(padding=(0, 1))
    bar.add_row(
        ProgressBar(max(1, now.total), now.kept + now.done, width=32), f"{now.kept + now.done}/{now.total}", _state(now)
    )
    facts = [f"{now.kept} were there already"] if now.kept else []
    facts += [_rate(now.rate, _unit(now))] if now.rate is not None else []
    facts += [f"{now.run_s / now.done:.2f} s each"] if now.run_s else []
    facts += [f"{clock_text(now.eta_s)} left"] if now.state == "running" and now.eta_s is not None else []
    lines: list[RenderableType] = [Text(str(directory), style="bold"), bar, Text(", ".join(facts), style="dim")]
    begun = sorted(now.running.items(), key=lambda one: one[1])
    for name, since in begun[:SHOWN_RUNS]:
        lines.append(Text(f"  {max(0.0, time.time() - since):6.1f} s  {name}"))
    if len(begun) > SHOWN_RUNS:
        lines.append(Text(f"           and {len(begun) - SHOWN_RUNS} more", style="dim"))
    lines += [Text(f"failed: {one}", style="bold red") for one in now.failures[-SHOWN_FAILURES:]]
    if now.failed > SHOWN_FAILURES:
        lines.append(Text(f"{now.failed} failed in all", style="bold red"))
    return Group(*lines)


def _state(now: RunProgress) -> str:
    if now.state == "running":
        return f"{len(now.running)} under way"
    if now.state == "ended":
        return "ended" if now.left == 0 else f"ended, {now.left} are left"
    return "interrupted: the same command goes on"


def _unit(now: RunProgress) -> str:
    return "steps" if now.what == STEPS else "runs"


def _rate(rate: float, unit: str) -> str:
    return f"{rate:.1f} {unit}/s" if rate >= 1 else f"{60 * rate:.1f} {unit}/min"


WATCH: Final = Command(
    "watch",
    "how far the runs in another terminal are",
    _watch,
    description="""\
Show how far the runs of `ccgym evaluate` or a training in another terminal are: those under way, the
rate, the time left, failures. It ends when they do; control-C ends only the watching.
""",
    examples="""\
  ccgym report watch
      the runs that began last, of all in results/
  ccgym report watch runs
      the training that began last
  ccgym report watch results/weaknesses --once
      a line, for scripts: it ends with status 0 while they run and when they ended, 1 where they were interrupted
""",
    options={
        "[DIRECTORY] = results": "a results directory, or one of such: then the one whose runs began last",
        "--once": "say it once, on one line",
    },
)
