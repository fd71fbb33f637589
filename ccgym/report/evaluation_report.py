"""The report of an evaluation: tables, figures, ``pantheon_report.html`` and ``.pdf``, ``explore.html``."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.backends import RECORDED
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.pantheon import tunnel_log_file
from ccgym.evaluation.pantheon.packet_logs import PACKED
from ccgym.evaluation.pantheon.write import run_text
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.files import atomic_write
from ccgym.invocation import command
from ccgym.report import pantheon_words as words
from ccgym.report.differences_table import EXPLANATION as DIFFERENCES_EXPLAINED
from ccgym.report.differences_table import MOST_ON_SCREEN, differences_table
from ccgym.report.evaluation_table import clock_text, evaluation_table, exact_table, explanation, markdown, run_facts
from ccgym.report.page import Block, Code, Details, Flag, Heading, Page, Picture, Text
from ccgym.report.table import counted

if TYPE_CHECKING:
    from ccgym.report.figure_cache import FigureCache

MARKDOWN_FILE: Final = "pantheon_table.md"
CSV_FILE: Final = "pantheon_table.csv"
HTML_FILE: Final = "pantheon_report.html"
PDF_FILE: Final = "pantheon_report.pdf"

REAL: Final = "no: real packets in real time; the seed sets all random draws, but not when packets arrive"
SIMULATED: Final = "(the same seed and version give the same hash, and the same packets)"
"""Notes on the results of running the same command again."""


def write_tables(results: ResultSet, directory: Path) -> None:
    """Write the table as Markdown and as CSV."""
    atomic_write(directory / MARKDOWN_FILE, markdown(results))
    atomic_write(directory / CSV_FILE, exact_table(results).csv())


def logs_text(results: ResultSet, directory: Path) -> str:
    """Return how to get missing packet logs; empty if all runs have logs, and for recorded runs."""
    logs = [directory / tunnel_log_file(cell.scheme, cell.run) for cell in results.cells]
    lacking = [log for log in logs if not log.exists()]
    if results.backend == RECORDED or not lacking:
        return ""
    whence = "another evaluation with --logs all writes"
    if not results.real or all(log.with_name(log.name + PACKED).exists() for log in lacking):
        whence = f"{command('logs')} {shlex.quote(str(directory))} writes"
    return f"{whence} the packet logs of every run, as Pantheon's own tools need them"


def build_report(
    results: ResultSet, directory: Path, jobs: int | None = None, observer: Observer | None = None, *, runs: bool = True
) -> None:
    """Draw figures and write the HTML and PDF reports into the results directory.

    A figure is not drawn again if neither its code nor its numbers have changed.

    Args:
        results: The experiment.
        directory: Its results directory.
        jobs: Number of processes that draw; all processors by default.
        observer: Gets progress.
        runs: Whether to draw figures of each run, and all figures for a paper.
    """
    from ccgym.report.figure_cache import FigureCache

    drawn = FigureCache(directory)
    try:
        _build(results, directory, jobs, observer or Silent(), drawn, runs)
    finally:
        drawn.write()


def _build(
    results: ResultSet, directory: Path, jobs: int | None, observer: Observer, drawn: FigureCache, runs: bool
) -> None:
    from ccgym.report.drawing_process import DrawingProcess
    from ccgym.report.explore import write_explore
    from ccgym.report.figure_cache import digest
    from ccgym.report.figures import figures_of
    from ccgym.report.pdf import write_pdf
    from ccgym.report.run_figures import cell_files, drawn_runs, run_inputs
    from ccgym.report.style import figure_files, write_figure

    inputs = {cell.name: digest(run_inputs(directory, cell)) for cell in results.cells if runs}
    files = {cell.name: [one.file for one in cell_files(directory, cell)] for cell in results.cells if runs}
    files |= {one.name: figure_files(directory / one.name, paper=runs) for one in figures_of("evaluation")}
    current = frozenset(name for name in inputs if drawn.is_current(name, inputs[name], files[name]))
    missing = len(inputs) - len(current)
    summary = digest(_numbers(results))
    everything = digest(summary, logs_text(results, directory), *inputs.values())
    if missing:
        observer.begin("figures", missing)
        # Closed, so that the drawing processes end with the report.
        with closing(drawn_runs(results, directory, jobs, current)) as cells:
            for cell in cells:
                if cell.name not in current:
                    drawn.note(cell.name, inputs[cell.name], files[cell.name])
                    observer.advance("figures")
    observer.begin("report", 4)
    outdated = [one for one in figures_of("evaluation") if not drawn.is_current(one.name, summary, files[one.name])]
    tasks = [partial(write_figure, one.draw, directory.absolute() / one.name, results, paper=runs) for one in outdated]
    # The last figure takes as long as the other figures and explore.html together.
    second = DrawingProcess([tasks.pop()]) if tasks and jobs != 1 else None
    try:
        for task in tasks:
            task()
        observer.advance("report")
        write_explore(results, directory)
        observer.advance("report")
        if second is not None:
            second.wait()
    finally:
        if second is not None:
            second.end()
    for one in outdated:
        drawn.note(one.name, summary, files[one.name])
    report, pdf = page(results, directory, runs=runs), directory / PDF_FILE
    drawn.renew(PDF_FILE, everything, [pdf], lambda: write_pdf(report, directory, pdf))
    observer.advance("report")
    atomic_write(directory / HTML_FILE, report.html(directory))
    observer.advance("report")


def _numbers(results: ResultSet) -> str:
    """Return all that a report shows of an experiment, except the time of the request."""
    data = results.as_dict()
    lasting = {name: value for name, value in results.provenance.items() if name not in ("started", "wall_s")}
    return json.dumps({**data, "provenance": lasting}, sort_keys=True, default=str)


def page(results: ResultSet, directory: Path, *, runs: bool = True) -> Page:
    """Return the report, in the order of Pantheon's report: path, system, versions; figures and tables; each run.

    Args:
        results: The experiment.
        directory: Where its figures are.
        runs: Whether figures of each run exist.
    """
    from ccgym.report.explore import EXPLORE_FILE
    from ccgym.report.figures import figures_of

    phrase, path = words.tested(results)
    table, published = evaluation_table(results), words.published_table(results)
    pairs = differences_table(results.differences, {one.key: one.label for one in results.styles})
    first, *others = (Picture(f"{one.name}.svg", one.title) for one in figures_of("evaluation"))
    system = [Code("\n".join(lines)) for lines in (words.system_info(results), words.git_summary(results)) if lines]
    problems: list[Block] = [
        *(Flag(f"{one.scheme}, run {one.run} failed", f"{one.error} (seed {one.seed})") for one in results.failures),
        *(
            Flag(one["subject"], f"{one['message']}.", one["level"], one["cause"], one["command"])
            for one in results.flags
        ),
    ]
    blocks: list[Block] = [
        Text("Explore the results: every run over time, any two runs side by side", link=EXPLORE_FILE),
        Text(phrase),
        *([Code(path)] if path else []),
        Text(" ".join(words.repeated(results))),
        Details("System info and Git summary", "", system),
        first,
        table,
        Text(explanation(results), "muted"),
        words.flow_table(results),
        *([Details("Published runs", results.published_source, [published])] if published else []),
        *([Heading("Look at this first"), *problems] if problems else []),
    ]
    if pairs.rows:
        shown: list[Block] = [pairs, Text(DIFFERENCES_EXPLAINED, "muted")]
        title, few = f"{counted(len(pairs.rows), 'pair')} of schemes", len(pairs.rows) <= MOST_ON_SCREEN
        blocks += [Heading("Which scheme is better?"), Details(title, "", shown, open=few)]
    blocks += [Heading("All runs"), *others]
    if not runs:
        blocks.append(
            Text(f"Each run over time is in {EXPLORE_FILE}; --figures all also writes these figures as files.", "muted")
        )
    if logs := logs_text(results, directory):
        blocks.append(Text(f"{logs[0].upper()}{logs[1:]}." if results.real else f"{logs}.", "muted"))
    for one in results.schemes:
        blocks += [Heading(one.style.label, one.style.key), Text(f"{one.summary()}.")]
        blocks += [_run(results, cell, one.style.label, directory, figures=runs) for cell in one.runs]
    again: list[tuple[str, str]] = []
    if results.parameters["seed"] is not None:
        again = [("Root seed", str(results.parameters["seed"]))]
        again += [("Repeatable", REAL) if results.real else ("Trajectory", f"{results.trajectory_hash} {SIMULATED}")]
    return Page(
        title=f"Pantheon report: {results.parameters['path_name']}",
        lead=words.generated(),
        blocks=blocks,
        provenance=results.provenance,
        made=[*again, ("Took", f"{results.wall_s:.1f} s for {counted(len(results.cells), 'run')}")],
    )


def _run(results: ResultSet, cell: CellResult, label: str, directory: Path, *, figures: bool) -> Details:
    """Return the statistics and figures of a run."""
    from ccgym.report.run_figures import cell_links, run_files

    said: list[Text | Code] = [
        Text(f"This run does not count: {cell.invalid}." if cell.invalid else "", "warning-text"),
        Text(f"Emulator-limited: {cell.limited}." if cell.limited else "", "warning-text"),
        Code(run_text(cell, time.time()).rstrip()),
        Text(clock_text(cell), "muted"),
        Text(f"Late releases: {late}." if (late := release_text(cell.record.path_report)) else "", "muted"),
    ]
    blocks: list[Block] = []
    blocks += [one for one in said if one.text]
    for link in cell_links(cell) if figures else ():
        blocks.append(Heading(words.figures_title(cell, label, link), level=3))
        blocks += [
            Picture(one.file.name, f"{label}, run {cell.run}: {one.figure.title}")
            for one in run_files(directory, cell.scheme, cell.run, link)
            if not one.paper
        ]
    return Details(words.statistics_title(cell, label), run_facts(cell), blocks, open=cell.run == 1, paper=figures)


def release_text(report: Mapping[str, Any] | None) -> str:
    """Return how late ccgym's own path released packets in a run; empty if this was not measured."""
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
