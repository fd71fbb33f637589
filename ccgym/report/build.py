"""Everything that is drawn and written after an evaluation."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.errors import PlatformError
from ccgym.evaluation.results import CellResult, ResultSet, atomic_write
from ccgym.report.table import csv_table, markdown_table

if TYPE_CHECKING:
    from ccgym.report.drawn import Drawn

MARKDOWN_FILE: Final = "pantheon_table.md"
CSV_FILE: Final = "pantheon_table.csv"
SUMMARY_SUFFIXES: Final = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Step:
    """Progress of the report: what is being made, how much of it has to be, and how much has been done since."""

    what: str
    total: int
    advance: int


def write_tables(results: ResultSet, directory: Path) -> None:
    """Write the table as Markdown and as CSV."""
    atomic_write(directory / MARKDOWN_FILE, markdown_table(results))
    atomic_write(directory / CSV_FILE, csv_table(results))


def require_drawing(instead: str = "") -> None:
    """Make sure that figures can be drawn, before hours are spent on what they show.

    Args:
        instead: The option that does without them, where there is one.

    Raises:
        PlatformError: matplotlib or jinja2 is not installed.
    """
    for package in ("matplotlib", "jinja2"):
        try:
            __import__(package)
        except ImportError as error:
            raise PlatformError(
                f"{package} is not installed: {error}",
                expected="the packages for figures and reports",
                hint="pip install 'ccgym[report]'" + (f", or use {instead}" if instead else ""),
            ) from error


def build_report(
    results: ResultSet, directory: Path, jobs: int | None = None, progress: Callable[[Step], None] | None = None
) -> None:
    """Draw all figures and write the HTML and PDF reports into the results directory.

    What is there already, and would be drawn from the same numbers by the same code, stays as it is.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Processes to draw with; all processors by default.
        progress: Told how it goes.
    """
    from ccgym.report.drawn import Drawn

    drawn = Drawn(directory)
    try:
        _build(results, directory, jobs, progress or (lambda _: None), drawn)
    finally:
        drawn.write()


def _build(results: ResultSet, directory: Path, jobs: int | None, tell: Callable[[Step], None], drawn: Drawn) -> None:
    from ccgym.report.drawn import digest
    from ccgym.report.html_report import HTML_FILE, html_report
    from ccgym.report.pdf_report import PDF_FILE, write_pdf
    from ccgym.report.run_figures import drawn_runs, figure_paths, paper_paths, run_inputs, run_name

    inputs = {run_name(cell): digest(run_inputs(directory, cell)) for cell in results.cells}
    files = {
        run_name(cell): [
            path for paths in (figure_paths, paper_paths) for path in paths(directory, cell.scheme, cell.run)
        ]
        for cell in results.cells
    }
    there = frozenset(name for name in inputs if drawn.is_current(name, inputs[name], files[name]))
    missing = len(inputs) - len(there)
    summary = digest(_numbers(results))
    everything = digest(summary, *inputs.values())
    pdf = directory / PDF_FILE

    def runs() -> Generator[CellResult, None, None]:
        if missing:
            tell(Step("figures", missing, 0))
        # Closed: whatever ends the report also ends the processes that draw.
        with closing(drawn_runs(results, directory, jobs, there)) as cells:
            for cell in cells:
                name = run_name(cell)
                if name not in there:
                    drawn.note(name, inputs[name], files[name])
                    tell(Step("figures", missing, 1))
                yield cell

    if missing or not drawn.is_current(PDF_FILE, everything, [pdf]):
        # The PDF takes each run's figures as they come, beside the processes that draw the next ones.
        partial = directory / f".{PDF_FILE}.partial"
        with closing(runs()) as ready:
            write_pdf(results, directory, partial, ready)
        partial.replace(pdf)
        drawn.note(PDF_FILE, everything, [pdf])
    tell(Step("report", 2, 0))
    _draw_summaries(results, directory, summary, drawn)
    tell(Step("report", 2, 1))
    atomic_write(directory / HTML_FILE, html_report(results, directory))
    tell(Step("report", 2, 1))


def _draw_summaries(results: ResultSet, directory: Path, inputs: str, drawn: Drawn) -> None:
    from ccgym.report.run_figures import PAPER_SUFFIX
    from ccgym.report.style import PAPER, SCREEN, house_style, save
    from ccgym.report.summary_figure import mean_figure, summary_figure

    for name, draw in (("pantheon_summary", summary_figure), ("pantheon_summary_mean", mean_figure)):
        screen = [directory / f"{name}{suffix}" for suffix in SUMMARY_SUFFIXES]
        paper = directory / f"{name}{PAPER_SUFFIX}"
        if drawn.is_current(name, inputs, [*screen, paper]):
            continue
        with house_style(SCREEN):
            figure = draw(results)
            for file in screen:
                save(figure, file)
        with house_style(PAPER):
            save(draw(results), paper)
        drawn.note(name, inputs, [*screen, paper])


def _numbers(results: ResultSet) -> str:
    """What a report shows of an experiment, but for the time at which it was asked for again."""
    data = results.as_dict()
    lasting = {name: value for name, value in results.provenance.items() if name not in ("started", "wall_s")}
    return json.dumps({**data, "provenance": lasting}, sort_keys=True, default=str)
