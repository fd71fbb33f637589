"""The report of an evaluation: tables, figures, ``pantheon_report.html`` and ``.pdf``, ``explore.html``."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.engine import Observer, Silent
from ccgym.evaluation.pantheon.write import run_text
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.files import atomic_write
from ccgym.report.differences_table import EXPLANATION as DIFFERENCES_EXPLAINED
from ccgym.report.differences_table import differences_table
from ccgym.report.evaluation_table import (
    clock_text,
    evaluation_table,
    exact_table,
    explanation,
    markdown,
    run_facts,
)
from ccgym.report.pantheon_words import (
    figures_title,
    flow_table,
    generated,
    git_summary,
    published_table,
    repeated,
    statistics_title,
    system_info,
    tested,
)

if TYPE_CHECKING:
    from ccgym.report.drawn import Drawn

MARKDOWN_FILE: Final = "pantheon_table.md"
CSV_FILE: Final = "pantheon_table.csv"
HTML_FILE: Final = "pantheon_report.html"
PDF_FILE: Final = "pantheon_report.pdf"


def write_tables(results: ResultSet, directory: Path) -> None:
    """Write the table as Markdown and as CSV."""
    atomic_write(directory / MARKDOWN_FILE, markdown(results))
    atomic_write(directory / CSV_FILE, exact_table(results).csv())


def build_report(
    results: ResultSet, directory: Path, jobs: int | None = None, observer: Observer | None = None
) -> None:
    """Draw all figures and write the HTML and PDF reports into the results directory.

    Figures that the same code would draw from the same numbers again stay as they are.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Processes to draw with; all processors by default.
        observer: Is told how it goes.
    """
    from ccgym.report.drawn import Drawn

    drawn = Drawn(directory)
    try:
        _build(results, directory, jobs, observer or Silent(), drawn)
    finally:
        drawn.write()


def _build(results: ResultSet, directory: Path, jobs: int | None, observer: Observer, drawn: Drawn) -> None:
    from ccgym.report.drawn import digest
    from ccgym.report.explore import write_explore
    from ccgym.report.page import write_page
    from ccgym.report.pdf import write_pdf
    from ccgym.report.run_figures import cell_files, drawn_runs, run_inputs

    inputs = {cell.name: digest(run_inputs(directory, cell)) for cell in results.cells}
    files = {cell.name: [one.file for one in cell_files(directory, cell)] for cell in results.cells}
    current = frozenset(name for name in inputs if drawn.is_current(name, inputs[name], files[name]))
    missing = len(inputs) - len(current)
    summary = digest(_numbers(results))
    everything = digest(summary, *inputs.values())
    pdf = directory / PDF_FILE

    def runs() -> Generator[CellResult, None, None]:
        if missing:
            observer.begin("figures", missing)
        # Closed: when the report ends, so do the processes that draw.
        with closing(drawn_runs(results, directory, jobs, current)) as cells:
            for cell in cells:
                name = cell.name
                if name not in current:
                    drawn.note(name, inputs[name], files[name])
                    observer.advance("figures")
                yield cell

    if missing or not drawn.is_current(PDF_FILE, everything, [pdf]):
        # The PDF takes each run's figures as they come, while other processes draw the next ones.
        partial = directory / f".{PDF_FILE}.partial"
        with closing(runs()) as ready:
            write_pdf(results, directory, partial, ready)
        partial.replace(pdf)
        drawn.note(PDF_FILE, everything, [pdf])
    observer.begin("report", 3)
    _draw_summaries(results, directory, summary, drawn)
    observer.advance("report")
    write_page(directory / HTML_FILE, "evaluation", page_values(results, directory))
    observer.advance("report")
    write_explore(results, directory)
    observer.advance("report")


def _draw_summaries(results: ResultSet, directory: Path, inputs: str, drawn: Drawn) -> None:
    from ccgym.report.figures import figures_of
    from ccgym.report.style import figure_files, write_figure

    for one in figures_of("evaluation"):
        files = figure_files(directory / one.name, paper=True)
        if not drawn.is_current(one.name, inputs, files):
            write_figure(one.draw, directory / one.name, results, paper=True)
            drawn.note(one.name, inputs, files)


def _numbers(results: ResultSet) -> str:
    """All that a report shows of an experiment, except when it was asked for."""
    data = results.as_dict()
    lasting = {name: value for name, value in results.provenance.items() if name not in ("started", "wall_s")}
    return json.dumps({**data, "provenance": lasting}, sort_keys=True, default=str)


def page_values(results: ResultSet, directory: Path) -> dict[str, Any]:
    """What the template ``evaluation`` needs.

    Args:
        results: The experiment.
        directory: Where its figures are; the page says of missing ones that they are.
    """
    from ccgym.report.figures import figures_of
    from ccgym.report.page import Picture
    from ccgym.report.run_figures import cell_links, run_files

    now = time.time()

    def run(cell: CellResult, label: str) -> dict[str, Any]:
        assert cell.record.metrics is not None
        return {
            "cell": cell,
            "facts": run_facts(cell),
            "releases": release_text(cell.record.path_report),
            "clocks": clock_text(cell),
            "title": statistics_title(cell, label),
            "statistics": run_text(cell, now).rstrip(),
            "links": [
                (
                    figures_title(cell, label, link),
                    [
                        Picture.of(one.file, f"{label}, run {cell.run}: {one.figure.title}")
                        for one in run_files(directory, cell.scheme, cell.run, link)
                        if not one.paper
                    ],
                )
                for link in cell_links(cell)
            ],
        }

    return {
        "results": results,
        "parameters": results.parameters,
        "provenance": results.provenance,
        "tested": tested(results),
        "generated": generated(),
        "repeated": repeated(results),
        "system": system_info(results),
        "git": git_summary(results),
        "published_runs": published_table(results),
        "flow_table": flow_table(results),
        "table": evaluation_table(results),
        "differences": differences_table(results.differences, {one.key: one.label for one in results.styles}),
        "differences_explained": DIFFERENCES_EXPLAINED,
        "explanation": explanation(results),
        "sections": [(summary.style.key, summary.style.label) for summary in results.schemes],
        "figures": [Picture.of(directory / f"{one.name}.svg", one.title) for one in figures_of("evaluation")],
        "schemes": [
            (summary, [run(cell, summary.style.label) for cell in summary.runs]) for summary in results.schemes
        ],
    }


def release_text(report: Mapping[str, Any] | None) -> str:
    """How late our own path released packets in a run; empty where that was not measured."""
    parts = []
    for name, key in (("data", "uplink_release"), ("acknowledgements", "downlink_release")):
        release = (report or {}).get(key)
        if release and release["count"]:
            median, high, largest = (release[f"{which}_ns"] / 1e6 for which in ("p50", "p99", "max"))
            parts.append(
                f"{name} {median:.3f} ms (median), {high:.3f} ms (99th percentile), {largest:.2f} ms (largest)"
            )
    drops = (report or {}).get("device_drops", 0)
    if drops:
        parts.append(f"{drops} packets dropped by devices")
    return "; ".join(parts)
