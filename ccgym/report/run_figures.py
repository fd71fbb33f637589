"""The figures of every run, drawn by several processes from the stored curves."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.pantheon import figure_file
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.report.drawing_process import DrawingProcess, Task
from ccgym.report.figures import RegisteredFigure, figures_of
from ccgym.report.style import PAPER, PAPER_SUFFIX, SCREEN, house_style, save, save_compact

WORTH_A_PROCESS: Final = 6
"""Min number of runs for worker processes: with fewer runs, starting the workers takes longer than it saves."""

DRAWN_FLOWS: Final = 60
"""Max flows in a figure of a run, the first ones: more cannot be distinguished, and take minutes to draw."""


@dataclass(frozen=True)
class RunFile:
    """A figure of a run and its file."""

    figure: RegisteredFigure
    file: Path
    paper: bool = False
    """Whether the figure is drawn as a column of a paper."""


def run_files(directory: Path, scheme: str, run: int, link: str = "datalink") -> list[RunFile]:
    """Return the figures of a run for the screen; data figures of a scheme's first run also as columns of a paper."""
    screen = [RunFile(one, directory / figure_file(scheme, run, one.name, link)) for one in figures_of("run")]
    if run != 1 or link != "datalink":
        return screen
    paper = [RunFile(one.figure, one.file.with_name(one.file.stem + PAPER_SUFFIX), paper=True) for one in screen]
    return [*screen, *paper]


def cell_files(directory: Path, cell: CellResult) -> list[RunFile]:
    """Return the figures of a run of an evaluation; none if the packets of the run are unknown."""
    return [one for link in cell_links(cell) for one in run_files(directory, cell.scheme, cell.run, link)]


def cell_links(cell: CellResult) -> dict[str, tuple[RunMetrics, str]]:
    """Return numbers and curves of the links in the figures of a run, by Pantheon's name."""
    assert cell.record.metrics is not None
    links = {"datalink": (cell.record.metrics, cell.curves)} if cell.curves else {}
    return links | ({} if cell.acklink is None else {"acklink": (cell.acklink.metrics, cell.acklink.curves)})


def run_inputs(directory: Path, cell: CellResult) -> bytes:
    """Return all inputs of the figures of a run."""
    parts = [repr(cell.record.metrics).encode()]
    for metrics, curves in cell_links(cell).values():
        # If a file is damaged, drawing raises the error.
        with suppress(OSError):
            parts += [repr(metrics).encode(), (directory / curves).read_bytes()]
    return b"".join(parts)


def draw_run(directory: Path, scheme: str, run: int, links: Mapping[str, tuple[RunMetrics, str]]) -> None:
    """Draw the figures of a run: for each of its :func:`cell_links`."""
    for link, (metrics, file) in links.items():
        curves = RunCurves.load(directory / file)
        curves = replace(curves, flows=curves.flows[:DRAWN_FLOWS])
        for one in run_files(directory, scheme, run, link):
            with house_style(PAPER if one.paper else SCREEN):
                drawn = one.figure.draw(curves, metrics)
                (save if one.paper else save_compact)(drawn, one.file)


def drawn_runs(
    results: ResultSet, directory: Path, jobs: int | None = None, done: frozenset[str] = frozenset()
) -> Generator[CellResult, None, None]:
    """Draw the figures of all runs; yield each run, in order, once its figures are on disk.

    The workers continue to draw while the caller uses a run. Close the generator to end them early.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Worker processes; all processors by default.
        done: Runs (``cubic_run1``) whose figures exist already.
    """
    missing = [cell for cell in results.cells if cell_links(cell) and cell.name not in done]
    names = {cell.name for cell in missing}
    workers = min(jobs or os.cpu_count() or 1, len(missing))
    if workers <= 1 or len(missing) < WORTH_A_PROCESS:
        for cell in results.cells:
            if cell.name in names:
                _task(directory, cell)()
            yield cell
        return
    started: list[DrawingProcess] = []
    try:
        # Runs are distributed in turn, so that they are ready in their order.
        for first in range(workers):
            started.append(DrawingProcess([_task(directory, cell) for cell in missing[first::workers]]))
        turns = {cell.name: started[place % workers] for place, cell in enumerate(missing)}
        for cell in results.cells:
            if cell.name in turns:
                turns[cell.name].wait()
            yield cell
    finally:
        for worker in started:
            worker.end()


def _task(directory: Path, cell: CellResult) -> Task:
    return partial(draw_run, directory.absolute(), cell.scheme, cell.run, cell_links(cell))
