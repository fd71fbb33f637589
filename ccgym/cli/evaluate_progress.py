"""Progress of an evaluation: a bar with an estimate on a terminal, a line or two elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.results import CellFailure, CellResult
    from ccgym.report.build import Step


class _Bar:
    """A bar that is there only on a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self.started = time.perf_counter()

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Show a bar."""
        self._tasks[what] = self._bar.add_task(what, total=total, completed=done, note="")

    def advance(self, what: str, by: int, note: str = "") -> None:
        """Move it."""
        self._bar.update(self._tasks[what], advance=by, note=note)

    def known(self, what: str) -> bool:
        """Whether it is shown already."""
        return what in self._tasks

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self.started


class SweepProgress:
    """Tells how a sweep goes; an :class:`ccgym.evaluation.runner.Observer`."""

    def __init__(self, console: Console) -> None:
        self._bar = _Bar(console)
        self._before = 0
        self._done = 0

    def __enter__(self) -> SweepProgress:
        self._bar._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar._bar.stop()
        new = self._done - self._before
        if kind is None and new:
            self._bar.console.print(f"simulated {new} run{'s' if new != 1 else ''} in {self._bar.elapsed_s:.1f} s")

    def notice(self, text: str) -> None:
        """A damaged result that is run again."""
        self._bar.console.print(f"note: {text}", style="yellow")

    def begin(self, done: int, total: int) -> None:
        """The sweep begins."""
        self._before = self._done = done
        if done:
            self._bar.console.print(f"{done} of {total} runs are there already")
        self._bar.begin("simulating", total, done)

    def cell(self, outcome: CellResult | CellFailure, done: int, total: int) -> None:
        """A run ended."""
        self._done = done
        self._bar.advance("simulating", 1, f"{outcome.scheme} run {outcome.run}")


class ReportProgress:
    """Tells how drawing goes."""

    def __init__(self, console: Console) -> None:
        self._bar = _Bar(console)

    def __enter__(self) -> ReportProgress:
        self._bar._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar._bar.stop()
        if kind is None:
            self._bar.console.print(f"drew figures and report in {self._bar.elapsed_s:.1f} s")

    def step(self, step: Step) -> None:
        """Something was drawn."""
        if not self._bar.known(step.what):
            self._bar.begin(step.what, step.total)
        self._bar.advance(step.what, step.advance)
