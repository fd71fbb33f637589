"""``ccgym watch``: how runs and trainings go, here or on a cluster, from what they leave in their directories.

Evaluations and experiments keep a small file (:mod:`ccgym.cli.progress_file`); of a training the run directory is read.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.common import STATUS_FAILED_RUN, HelpFormatter, console
from ccgym.cli.progress import clock_text
from ccgym.errors import ResultsError
from ccgym.evaluation.directory import LOCK_FILE, PROGRESS_FILE
from ccgym.files import UnreadableError, read_json

if TYPE_CHECKING:
    from rich.console import RenderableType

PLACES: Final = ("results", "runs")
"""Where work is looked for, without a directory."""
DEEP: Final = 3
"""Levels of directories that are looked through."""
SILENT_S: Final = 30.0
"""Seconds after which a process on another machine that wrote nothing is taken for dead."""
NAMED: Final = 8
"""Running runs, and failures, that are shown."""
TRAINING_CONFIG: Final = "config.yaml"
TRAINING_ROWS: Final = "progress.csv"

_DESCRIPTION: Final = """\
Show how work goes: running cells, how many are done, rates, time left, failures. DIRECTORY is a results
directory of `ccgym evaluate`, a run directory of `ccgym train`, or one that holds such. On a terminal the
picture is renewed until all work there has ended; otherwise one line per directory says how it is now.
"""

_EXAMPLES: Final = """\
examples:
  ccgym watch                       all that runs below ./results and ./runs
  ccgym watch results/calibrated    one experiment, wherever its runs are made
  ccgym watch runs                  the trainings of several seeds
  ccgym watch results | cat         one line each, and no waiting

exit status: 0 running, or done; 1 something failed, or was killed; 2 there is nothing to watch
"""


@dataclass(frozen=True)
class Stage:
    """A part of some work."""

    name: str
    done: int
    total: int
    per_s: float
    kept: int = 0

    @property
    def text(self) -> str:
        """``simulating 40/100, 12.5/s, 0:05 left``."""
        words = [f"{self.name} {self.done:,}/{self.total:,}"]
        words += [f"{self.kept:,} were there"] if self.kept else []
        if self.per_s > 0:
            words.append(f"{self.per_s:.3g}/s")
            if self.done < self.total:
                words.append(f"{clock_text((self.total - self.done) / self.per_s)} left")
        return ", ".join(words)


@dataclass(frozen=True)
class State:
    """How the work on one directory goes."""

    directory: Path
    state: str
    """``running``, ``done``, ``interrupted``, ``failed``, ``killed``."""
    elapsed_s: float
    stages: Sequence[Stage]
    running: Sequence[tuple[str, float]] = ()
    """Names, and seconds since they began."""
    running_count: int = 0
    failures: Sequence[str] = ()
    failed: int = 0
    notes: Sequence[str] = field(default=())

    @property
    def line(self) -> str:
        """All of it in a line."""
        words = [f"{self.directory}: {self.state} after {clock_text(self.elapsed_s)}"]
        words += [stage.text for stage in self.stages]
        words += [f"{self.running_count} running"] if self.state == "running" and self.running_count else []
        words += [f"{self.failed} failed"] if self.failed else []
        return "; ".join([*words, *self.notes])

    @property
    def bad(self) -> bool:
        """Whether something went wrong."""
        return self.failed > 0 or self.state in ("failed", "killed")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``ccgym watch``."""
    made = commands.add_parser(
        "watch",
        help="running cells, rates, time left and failures of runs and trainings",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=HelpFormatter,
    )
    made.add_argument("directory", nargs="?", type=Path, metavar="DIRECTORY", help="default: ./results and ./runs")
    made.set_defaults(run=_watch)


def _watch(arguments: argparse.Namespace) -> int:
    def look() -> list[State]:
        return states(arguments.directory)

    return show(look)


def show(look: Callable[[], list[State]], every_s: float = 1.0) -> int:
    """Show what ``look`` finds, on a terminal until nothing is running, and return the exit status.

    Args:
        look: How it is now.
        every_s: Seconds between two looks.
    """
    seen = look()
    if console().is_terminal:
        from rich.live import Live

        with Live(_picture(seen), console=console(), auto_refresh=False) as live:
            while any(one.state == "running" for one in seen):
                time.sleep(every_s)
                seen = look()
                live.update(_picture(seen), refresh=True)
    else:
        for one in seen:
            console().print(one.line, soft_wrap=True)
    return STATUS_FAILED_RUN if any(one.bad for one in seen) else 0


def states(directory: Path | None) -> list[State]:
    """How the work goes in a directory, and below it: what runs, or else what ended last.

    Raises:
        ResultsError: There is none.
    """
    roots = [Path(place) for place in PLACES] if directory is None else [directory]
    found = [state for root in roots for state in _below(root, DEEP)]
    if not found:
        given = " and ".join(f"./{root}" if directory is None else str(root) for root in roots)
        missing = directory is not None and not directory.is_dir()
        raise ResultsError(
            "no such directory" if missing else "nothing that could be watched",
            where=given,
            expected="a directory of `ccgym evaluate` or `ccgym train`, or one that holds such",
            hint="work that has just been started shows after a second",
        )
    running = [one for _, one in found if one.state == "running"]
    return running or [max(found, key=lambda pair: pair[0])[1]] if directory is None else [one for _, one in found]


def _below(directory: Path, levels: int) -> list[tuple[float, State]]:
    """States with when they were written."""
    own = _of_runs(directory) or _of_training(directory)
    if own is not None:
        return [own]
    if levels == 0:
        return []
    try:
        inside = sorted(one for one in directory.iterdir() if one.is_dir() and not one.name.startswith("."))
    except OSError:
        return []
    return [state for one in inside for state in _below(one, levels - 1)]


def _of_runs(directory: Path) -> tuple[float, State] | None:
    try:
        content: dict[str, Any] = read_json(directory / PROGRESS_FILE)
        written, state = float(content["written"]), str(content["state"])
        if state == "running" and not _alive(content["host"], int(content["pid"]), written):
            state = "killed"
        return written, State(
            directory=directory,
            state=state,
            elapsed_s=written - float(content["started"]),
            stages=[Stage(**one) for one in content["stages"]],
            running=[(str(name), float(since)) for name, since in content["running"]],
            running_count=int(content["running_count"]),
            failures=[str(one) for one in content["failures"]],
            failed=int(content["failed"]),
            notes=("the same command goes on",) if state in ("killed", "interrupted") else (),
        )
    except FileNotFoundError:
        return None
    except (UnreadableError, OSError, KeyError, TypeError, ValueError) as error:
        raise ResultsError(
            f"it is damaged, or of another version of ccgym: {error}",
            where=str(directory / PROGRESS_FILE),
            expected="what `ccgym evaluate` writes",
            hint="delete the file: nothing depends on it",
        ) from None


def _of_training(directory: Path) -> tuple[float, State] | None:
    config, rows = directory / TRAINING_CONFIG, directory / TRAINING_ROWS
    if not config.is_file() or not (directory / "checkpoints").is_dir():
        return None
    import yaml

    try:
        total = int(yaml.safe_load(config.read_text(encoding="utf-8"))["training"]["steps"])
        last, written = _last_rows(rows)
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ResultsError(
            f"cannot be read: {error}", where=str(directory), expected="what `ccgym train` wrote"
        ) from None
    step = int(float(last.get("step", 0)))
    holder = _holder(directory)
    done = (directory / "final" / "model.json").is_file() and step >= total
    alive = holder is not None and _process(holder)
    per_s = float(last.get("sys/steps_per_second") or 0.0)
    return written, State(
        directory=directory,
        state="done" if done else "running" if alive else "stopped",
        elapsed_s=max(0.0, written - config.stat().st_mtime),
        stages=[Stage("steps", step, max(total, step), per_s)],
        running=[("training", time.time() - written)] if alive and not done else (),
        running_count=int(alive and not done),
        notes=() if done or alive else (f"--resume {directory} continues it",),
    )


def _last_rows(file: Path) -> tuple[dict[str, str], float]:
    """The last row of a training's progress, empty before the first; and when it was written."""
    if not file.is_file():
        return {}, file.parent.stat().st_mtime
    last: dict[str, str] = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            last = row
    return last, file.stat().st_mtime


def _holder(directory: Path) -> int | None:
    """The process that wrote into the lock of a directory."""
    try:
        return int((directory / LOCK_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _alive(host: str, pid: int, written: float) -> bool:
    """Whether a process lives: here that is known, elsewhere it shows by what it writes."""
    return _process(pid) if host == platform.node() else time.time() - written < SILENT_S


def _process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _picture(seen: Sequence[State]) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = []
    styles = {"running": "cyan", "done": "green"}
    for one in seen:
        parts.append(
            Text.assemble(
                (str(one.directory), "bold"),
                "  ",
                (one.state, styles.get(one.state, "bold red")),
                f"  {clock_text(one.elapsed_s)}",
                *(f"  {note}" for note in one.notes),
            )
        )
        bars = Table.grid(padding=(0, 1))
        for stage in one.stages:
            bars.add_row(Text("  "), ProgressBar(total=max(stage.total, 1), completed=stage.done, width=32), stage.text)
        parts.append(bars)
        for name, since in one.running[:NAMED] if one.state == "running" else ():
            parts.append(Text(f"   · {name}  {since:.0f} s", style="dim", no_wrap=True, overflow="ellipsis"))
        if one.state == "running" and one.running_count > NAMED:
            parts.append(Text(f"   · and {one.running_count - NAMED} more", style="dim"))
        for failure in one.failures[-NAMED:]:
            parts.append(Text(f"   failed: {failure}", style="red", no_wrap=True, overflow="ellipsis"))
        if one.failed > NAMED:
            parts.append(Text(f"   {one.failed} failed", style="red"))
    return Group(*parts)
