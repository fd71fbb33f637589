"""Show the progress of long work: a bar with an estimate on a terminal, otherwise a line every 20 s."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.progress import TimeRemainingColumn as SpeedColumn
from rich.text import Text

SILENCE_S: Final = 20.0
"""Seconds between two lines without a terminal."""

if TYPE_CHECKING:
    from rich.console import Console


class _RealTimeColumn(ProgressColumn):
    """Remaining time of runs in real time: known from the beginning, and counted down between updates."""

    def __init__(self, run_s: float, at_a_time: int) -> None:
        super().__init__()
        self._run_s = run_s
        self._at_a_time = at_a_time
        self._completed = -1.0
        self._since = time.monotonic()

    def render(self, task: Task) -> Text:
        """Return the text, like ``12:30``; ``--:--`` before the first run."""
        if task.total is None:
            return Text("--:--", style="progress.remaining")
        if task.completed != self._completed:
            self._completed, self._since = task.completed, time.monotonic()
        turns = math.ceil((task.total - task.completed) / self._at_a_time)
        left = max(turns * self._run_s - (time.monotonic() - self._since), (turns - 1) * self._run_s, 0.0)
        return Text(clock_text(left), style="progress.remaining")


def clock_text(seconds: float) -> str:
    """Return seconds as text, like ``2:05`` or ``1:02:05``."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress:
    """Shows progress; an :class:`~ccgym.evaluation.observer.Observer`. Use it as a context manager.

    Args:
        console: The console to write to.
        run_s: Length of a run in real time, seconds; None for simulated runs.
        at_a_time: Number of such runs at the same time.
    """

    def __init__(self, console: Console, run_s: float | None = None, at_a_time: int = 1) -> None:
        self._console = console
        self._run_s = run_s
        self._at_a_time = at_a_time
        left = SpeedColumn(compact=True, elapsed_when_finished=True)
        self._bar = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            left if run_s is None else _RealTimeColumn(run_s, at_a_time),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar.stop()
        if kind is None:
            for what, stage in self._stages.items():
                kept = f", {stage.kept} were there already" if stage.kept else ""
                if stage.done or stage.kept:
                    self._console.print(f"{what}: {stage.done} in {stage.elapsed_s:.1f} s{kept}")

    def notice(self, text: str) -> None:
        """Show a message for the user."""
        self._console.print(f"note: {text}", style="yellow", soft_wrap=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Begin a stage."""
        self._stages[what] = _Stage(self._bar.add_task(what, total=total, completed=done, note=""), total, kept=done)
        if done:
            self._console.print(f"{done} of {total} runs are there already")
        if self._run_s is not None and done < total:
            left = -(-(total - done) // self._at_a_time) * self._run_s
            self._console.print(f"in real time: {clock_text(left)}, and a little for setting up each run")

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Count finished steps."""
        stage = self._stages[what]
        stage.kept += by if kept else 0
        stage.done += 0 if kept else by
        stage.until = time.perf_counter()
        self._bar.update(stage.task, advance=by, note=note)
        silent = self._run_s is None and stage.until - stage.told <= SILENCE_S
        if not silent and not self._console.is_terminal:
            stage.told = stage.until
            of = f": {note}" if self._run_s is not None else ""
            self._console.print(f"  {what}: {stage.done + stage.kept} of {stage.total}{of}", style="dim")


@dataclass
class _Stage:
    """Progress of a stage."""

    task: TaskID
    total: int
    done: int = 0
    kept: int = 0
    since: float = field(default_factory=time.perf_counter)
    until: float = field(default_factory=time.perf_counter)
    told: float = field(default_factory=time.perf_counter)

    @property
    def elapsed_s(self) -> float:
        """Seconds from its beginning to its last step."""
        return self.until - self.since
