"""The report on the weakness tests: tables, an overview and a figure per test in three formats, an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.evaluation.results import atomic_write
from ccgym.evaluation.suites.protocol import SuiteProgress, Written
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.evaluation.weaknesses.suite import CSV_FILE, RESULTS_FILE
from ccgym.report.weakness_tables import markdown_table, terminal_table

if TYPE_CHECKING:
    from rich.console import RenderableType

HTML_FILE: Final = "weaknesses.html"
MARKDOWN_FILE: Final = "weaknesses.md"
OVERVIEW: Final = "weakness_overview"
FIGURE_SUFFIXES: Final = (".svg", ".pdf", ".png")
STAGE: Final = "figures"


class WeaknessReport:
    """Shows the results; a :class:`~ccgym.evaluation.suites.protocol.SuiteReport`."""

    def terminal(self, result: WeaknessResults) -> Sequence[RenderableType]:
        """The table of verdicts, and what was run."""
        lines: list[RenderableType] = ["", terminal_table(result), ""]
        lines += [f"{test.title}: {test.question} Passes: {test.brief}." for test in result.tests]
        for style in result.styles:
            if style.key in result.trained_on:
                lines.append(f"{style.label} was trained on {result.trained_on[style.key]}")
        return [*lines, f"{result.extent}", ""]

    def write(
        self, result: WeaknessResults, directory: Path, progress: SuiteProgress, *, figures: bool
    ) -> Sequence[Written]:
        """Write the table as Markdown; with ``figures`` the overview, a figure per test, and the page."""
        atomic_write(directory / MARKDOWN_FILE, markdown_table(result))
        files = [
            Written("table", directory / MARKDOWN_FILE),
            Written("results", directory / RESULTS_FILE),
            Written("", directory / CSV_FILE),
        ]
        if not figures:
            return files
        from ccgym.report.style import house_style, save
        from ccgym.report.weakness_figures import FIGURES
        from ccgym.report.weakness_overview import overview_figure
        from ccgym.report.weakness_page import weakness_page

        progress.begin(STAGE, len(result.tests) + 2)
        with house_style():
            overview = overview_figure(result)
            for suffix in FIGURE_SUFFIXES:
                save(overview, directory / f"{OVERVIEW}{suffix}")
            progress.advance(STAGE, 1, "overview")
            for test in result.tests:
                drawn = FIGURES[test.name](result, test)
                for suffix in FIGURE_SUFFIXES:
                    save(drawn, directory / f"weakness_{test.name}{suffix}")
                progress.advance(STAGE, 1, test.title)
        atomic_write(directory / HTML_FILE, weakness_page(result, directory))
        progress.advance(STAGE, 1, "page")
        return [
            Written("report", directory / HTML_FILE),
            Written("figure", directory / f"{OVERVIEW}.svg"),
            *files,
        ]


REPORT: Final = WeaknessReport()
"""The report of the suite ``weaknesses``."""
