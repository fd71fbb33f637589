"""Progress of an evaluation: a bar with an estimate on a terminal, a line or two elsewhere."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as SpeedColumn
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.runner import Outcome
    from ccgym.report.evaluation_report import Step


class _RealTimeColumn(ProgressColumn):
    """Time left of runs that each take as long as they last: known from the beginning, counted down in between."""

    def __init__(self, run_s: float, at_a_time: int) -> None:
        super().__init__()
        self._run_s = run_s
        self._at_a_time = at_a_time
        self._completed = -1.0
        self._since = time.monotonic()

    def render(self, task: Task) -> Text:
        """``12:30``; ``--:--`` before there is anything to do."""
        if task.total is None:
            return Text("--:--", style="progress.remaining")
        if task.completed != self._completed:
            self._completed, self._since = task.completed, time.monotonic()
        turns = math.ceil((task.total - task.completed) / self._at_a_time)
        left = max(turns * self._run_s - (time.monotonic() - self._since), (turns - 1) * self._run_s, 0.0)
        return Text(clock_text(left), style="progress.remaining")


def clock_text(seconds: float) -> str:
    """``2:05`` or ``1:02:05``."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Bar:
    """A bar that is there only on a terminal."""

    def __init__(self, console: Console, left: ProgressColumn | None = None) -> None:
        self.console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=32),
            MofNCompleteColumn(),
            left or SpeedColumn(compact=True, elapsed_when_finished=True),
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
    """Tells how a sweep goes; an :class:`ccgym.evaluation.runner.Observer`.

    Args:
        console: Where.
        run_s: Length of a run where it passes in real time, seconds; None where it is simulated.
        at_a_time: How many such runs go on at a time.
    """

    def __init__(self, console: Console, run_s: float | None = None, at_a_time: int = 1) -> None:
        self._real = run_s is not None
        self._run_s = run_s or 0.0
        self._at_a_time = at_a_time
        self._bar = _Bar(console, None if run_s is None else _RealTimeColumn(run_s, at_a_time))
        self._what = "running" if self._real else "simulating"
        self._before = 0
        self._done = 0

    def __enter__(self) -> SweepProgress:
        self._bar._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar._bar.stop()
        new = self._done - self._before
        if kind is None and new:
            did = "ran" if self._real else "simulated"
            self._bar.console.print(f"{did} {new} run{'s' if new != 1 else ''} in {self._bar.elapsed_s:.1f} s")

    def notice(self, text: str) -> None:
        """A damaged result that is run again."""
        self._bar.console.print(f"note: {text}", style="yellow")

    def begin(self, done: int, total: int) -> None:
        """The sweep begins."""
        self._before = self._done = done
        if done:
            self._bar.console.print(f"{done} of {total} runs are there already")
        if self._real and done < total:
            left = -(-(total - done) // self._at_a_time) * self._run_s
            self._bar.console.print(f"in real time: {clock_text(left)}, and a little for setting up each run")
        self._bar.begin(self._what, total, done)

    def cell(self, outcome: Outcome, done: int, total: int) -> None:
        """A run ended."""
        self._done = done
        self._bar.advance(self._what, 1, f"{outcome.scheme} run {outcome.run}")
        if self._real and not self._bar.console.is_terminal:
            # Without a bar, minutes would pass without a word.
            self._bar.console.print(f"  {done} of {total}: {outcome.scheme} run {outcome.run}", style="dim")


class SuiteBars:
    """Tells how a suite goes; a :class:`~ccgym.evaluation.suites.protocol.SuiteProgress`.

    Without a terminal there is a line every so often: a suite takes minutes, with real packets hours.
    """

    SILENCE_S: ClassVar[float] = 20.0
    """Seconds without a line, at least."""

    def __init__(self, console: Console) -> None:
        self._bar = _Bar(console)
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> SuiteBars:
        self._bar._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._bar._bar.stop()
        if kind is None:
            for what, stage in self._stages.items():
                kept = f", {stage.kept} were there already" if stage.kept else ""
                if stage.done or stage.kept:
                    self._bar.console.print(f"{what}: {stage.done} in {stage.elapsed_s:.1f} s{kept}")

    def notice(self, text: str) -> None:
        """Something worth a line."""
        self._bar.console.print(f"note: {text}", style="yellow", soft_wrap=True)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """A stage begins."""
        self._stages[what] = _Stage(total, kept=done)
        self._bar.begin(what, total, done)

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Steps are done."""
        stage = self._stages[what]
        stage.kept += by if kept else 0
        stage.done += 0 if kept else by
        stage.until = time.perf_counter()
        self._bar.advance(what, by, note)
        if stage.until - stage.told > self.SILENCE_S and not self._bar.console.is_terminal:
            stage.told = stage.until
            self._bar.console.print(f"  {what}: {stage.done + stage.kept} of {stage.total}", style="dim")


@dataclass
class _Stage:
    """How far a stage of a suite is."""

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
            what = "figures and report" if self._bar.known("figures") else "report (figures are there already)"
            self._bar.console.print(f"drew {what} in {self._bar.elapsed_s:.1f} s")

    def step(self, step: Step) -> None:
        """Something was drawn."""
        if not self._bar.known(step.what):
            self._bar.begin(step.what, step.total)
        self._bar.advance(step.what, step.advance)
