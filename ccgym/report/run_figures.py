"""The two figures of every run, drawn by several processes.

Drawing holds the interpreter's lock, so threads would not help. The workers read the stored curves themselves: nothing
but names travels between processes.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.pantheon import figure_file
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.evaluation.store import read_curves

CHUNK = 4
"""Runs handed to a worker at a time: enough to hide the hand-over, few enough for an even end."""

WORTH_A_PROCESS = 6
"""Below this many runs, starting workers takes longer than it saves."""

Task = tuple[str, int, RunMetrics]
"""Scheme, run, and the numbers for the legends."""


def figure_paths(directory: Path, scheme: str, run: int) -> tuple[Path, Path]:
    """Where the throughput and the delay figure of a run are."""
    return (
        directory / figure_file(scheme, run, "throughput"),
        directory / figure_file(scheme, run, "delay"),
    )


def draw_runs(directory: Path, tasks: Sequence[Task]) -> None:
    """Draw both figures of some runs."""
    from ccgym.report.delay_figure import delay_figure
    from ccgym.report.style import house_style, save_compact
    from ccgym.report.throughput_figure import throughput_figure

    with house_style():
        for scheme, run, metrics in tasks:
            curves = read_curves(directory, f"{scheme}_run{run}")
            throughput, delay = figure_paths(directory, scheme, run)
            save_compact(throughput_figure(curves, metrics), throughput)
            save_compact(delay_figure(curves, metrics), delay)


def drawn_runs(results: ResultSet, directory: Path, jobs: int | None = None) -> Iterator[CellResult]:
    """Draw the figures of all runs; each run is handed out, in order, once its figures are on disk.

    Whoever consumes the runs works beside the processes that draw.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Worker processes; all processors by default.
    """
    cells = results.cells
    chunks = [cells[start : start + CHUNK] for start in range(0, len(cells), CHUNK)]
    workers = min(jobs or os.cpu_count() or 1, len(chunks))
    if workers <= 1 or len(cells) < WORTH_A_PROCESS:
        for cell in cells:
            draw_runs(directory, [_task(cell)])
            yield cell
        return
    # A fresh interpreter per worker: a forked one would inherit locks of the simulator's threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        futures = [pool.submit(draw_runs, directory, [_task(cell) for cell in chunk]) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                future.result()
            except BrokenProcessPool:
                # Workers start by importing the caller's script. Where that cannot be (a script without a main guard,
                # or fed through standard input), this process draws.
                draw_runs(directory, [_task(cell) for cell in chunk])
            yield from chunk


def _task(cell: CellResult) -> Task:
    assert cell.record.metrics is not None
    return cell.scheme, cell.run, cell.record.metrics
