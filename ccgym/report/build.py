"""Everything that is drawn and written after an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ccgym.errors import PlatformError
from ccgym.evaluation.results import CellResult, ResultSet, atomic_write
from ccgym.report.table import csv_table, markdown_table

MARKDOWN_FILE: Final = "pantheon_table.md"
CSV_FILE: Final = "pantheon_table.csv"
SUMMARY_SUFFIXES: Final = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Step:
    """Progress of the report: what is being made, how much of it there is, and how much has been done since."""

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

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Processes to draw with; all processors by default.
        progress: Told how it goes.
    """
    from ccgym.report.html_report import HTML_FILE, html_report
    from ccgym.report.pdf_report import PDF_FILE, write_pdf
    from ccgym.report.run_figures import drawn_runs
    from ccgym.report.style import house_style, save
    from ccgym.report.summary_figure import mean_figure, summary_figure

    def tell(what: str, total: int, advance: int) -> None:
        if progress is not None:
            progress(Step(what, total, advance))

    def runs() -> Iterator[CellResult]:
        tell("figures", len(results.cells), 0)
        for cell in drawn_runs(results, directory, jobs):
            yield cell
            tell("figures", len(results.cells), 1)

    # The PDF takes each run's figures as they come, beside the processes that draw the next ones.
    partial = directory / f".{PDF_FILE}.partial"
    write_pdf(results, directory, partial, runs())
    partial.replace(directory / PDF_FILE)
    tell("report", 2, 0)
    with house_style():
        for name, figure in (("pantheon_summary", summary_figure), ("pantheon_summary_mean", mean_figure)):
            drawn = figure(results)
            for suffix in SUMMARY_SUFFIXES:
                save(drawn, directory / f"{name}{suffix}")
    tell("report", 2, 1)
    atomic_write(directory / HTML_FILE, html_report(results, directory))
    tell("report", 2, 1)
