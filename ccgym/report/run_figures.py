"""The figures of every run, throughput and delay, drawn by several processes.

Drawing holds the interpreter's lock, so threads would not help. A worker is a plain process: it reads its tasks from
standard input, the stored curves from the results directory, and writes a byte to standard output after each run. When
nobody reads that any more, the write fails and the worker ends. So it outlives its parent by one run at most, however
the parent ended, and there is nothing else to leave behind.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ccgym.emulation.process import environment
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.pantheon import figure_file
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.evaluation.store import curves_file, read_curves

PAPER_SUFFIX: Final = "_paper.pdf"
"""Of figures as wide as a column of a paper."""

WORTH_A_PROCESS: Final = 6
"""Below this many runs, starting workers takes longer than it saves."""

_DRAWN: Final = b"."
"""What a worker writes after each run."""


@dataclass(frozen=True)
class Task:
    """The figures of a run."""

    scheme: str
    """Key of the scheme."""
    run: int
    """Number of the run."""
    metrics: RunMetrics
    """The numbers for the legends."""


def figure_paths(directory: Path, scheme: str, run: int) -> tuple[Path, Path]:
    """Where the throughput and the delay figure of a run are."""
    return (
        directory / figure_file(scheme, run, "throughput"),
        directory / figure_file(scheme, run, "delay"),
    )


def paper_paths(directory: Path, scheme: str, run: int) -> tuple[Path, ...]:
    """Where the same figures are as a column of a paper: of the first run of a scheme, since a paper has no room."""
    if run != 1:
        return ()
    return tuple(path.with_name(f"{path.stem}{PAPER_SUFFIX}") for path in figure_paths(directory, scheme, run))


def run_inputs(directory: Path, cell: CellResult) -> bytes:
    """All that the figures of a run are made from."""
    try:
        curves = curves_file(directory, run_name(cell)).read_bytes()
    except OSError:
        curves = b""  # drawing will say what is wrong
    return repr(cell.record.metrics).encode() + curves


def draw_run(directory: Path, task: Task) -> None:
    """Draw the figures of a run."""
    from ccgym.report.delay_figure import delay_figure
    from ccgym.report.style import PAPER, house_style, save, save_compact
    from ccgym.report.throughput_figure import throughput_figure

    curves = read_curves(directory, f"{task.scheme}_run{task.run}")
    figures = (throughput_figure, delay_figure)
    with house_style():
        for draw, file in zip(figures, figure_paths(directory, task.scheme, task.run), strict=True):
            save_compact(draw(curves, task.metrics), file)
    with house_style(PAPER):
        # None but for the first run.
        for draw, file in zip(figures, paper_paths(directory, task.scheme, task.run), strict=False):
            save(draw(curves, task.metrics), file)


def drawn_runs(
    results: ResultSet, directory: Path, jobs: int | None = None, done: frozenset[str] = frozenset()
) -> Generator[CellResult, None, None]:
    """Draw the figures of all runs; each run is handed out, in order, once its figures are on disk.

    Whoever consumes the runs works beside the processes that draw. Close the generator to end them early.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Worker processes; all processors by default.
        done: Runs (``cubic_run1``) whose figures are there already.
    """
    missing = [cell for cell in results.cells if run_name(cell) not in done]
    workers = min(jobs or os.cpu_count() or 1, len(missing))
    if workers <= 1 or len(missing) < WORTH_A_PROCESS:
        for cell in results.cells:
            if run_name(cell) not in done:
                draw_run(directory, _task(cell))
            yield cell
        return
    started: list[_Worker] = []
    try:
        # In turns, so that runs become ready in their order.
        for first in range(workers):
            started.append(_Worker(directory, [_task(cell) for cell in missing[first::workers]]))
        turns = {run_name(cell): started[place % workers] for place, cell in enumerate(missing)}
        for cell in results.cells:
            worker = turns.get(run_name(cell))
            if worker is not None and not worker.drew_another():
                # It ended early: drawn here, what is wrong shows as an error of this process.
                draw_run(directory, _task(cell))
            yield cell
    finally:
        for worker in started:
            worker.end()


def run_name(cell: CellResult) -> str:
    """The run's name in files: ``cubic_run1``."""
    return f"{cell.scheme}_run{cell.run}"


def _task(cell: CellResult) -> Task:
    assert cell.record.metrics is not None
    return Task(cell.scheme, cell.run, cell.record.metrics)


class _Worker:
    """A process that draws some runs, seen from outside."""

    def __init__(self, directory: Path, tasks: Sequence[Task]) -> None:
        # A session of its own: control-C in the terminal is for us alone, and we end the process.
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import work; work()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as tasks_end:
            tasks_end.write(pickle.dumps((directory.absolute(), list(tasks))))

    def drew_another(self) -> bool:
        """Wait for its next run; False if it ended without drawing it."""
        assert self._process.stdout is not None
        return self._process.stdout.read(1) == _DRAWN

    def end(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def work() -> None:
    """What a worker does: read the tasks, draw one after the other, and say so."""
    # Nobody reads: that is the end, without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    directory, tasks = pickle.load(sys.stdin.buffer)
    for task in tasks:
        draw_run(directory, task)
        os.write(sys.stdout.fileno(), _DRAWN)
