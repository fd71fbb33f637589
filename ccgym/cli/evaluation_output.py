"""Output of the commands with results of an evaluation: tables, report, warnings and notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ccgym.cli.common import error_console

if TYPE_CHECKING:
    from rich.console import Console

    from ccgym.evaluation.results import ResultSet
    from ccgym.evaluation.scheme_summary import CellFailure


def report(
    results: ResultSet, out: Path, shown_on: Console, *, figures: bool, jobs: int | None, runs: bool = True
) -> None:
    """Write tables, and figures and report if ``figures``; show the table, warnings and notes, and the names of files.

    Args:
        results: The results.
        out: The results directory.
        shown_on: Console for the user.
        figures: Whether to write figures and report.
        jobs: Number of processes that draw; None: one per processor.
        runs: Whether to also draw figures of each run, and all figures for a paper.
    """
    from ccgym.cli.progress import Progress
    from ccgym.report.evaluation_report import build_report, logs_text, write_tables
    from ccgym.report.evaluation_table import evaluation_table, has_published, repeatability

    write_tables(results, out)
    if figures and results.cells:
        with Progress(shown_on) as progress:
            build_report(results, out, jobs, progress, runs=runs)
    shown_on.print()
    table = evaluation_table(results)
    shown_on.print(table)
    for line in table.notes:
        shown_on.print(line, style="yellow", soft_wrap=True)
    if has_published(results):
        shown_on.print(f"published: {results.published_source}", style="dim")
    _show_differences(results, shown_on)
    # If several schemes have the same cause, it is shown once.
    causes: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for flag in results.flags:
        causes.setdefault((flag["level"], flag["code"], flag["cause"]), []).append(flag)
    for (level, code, cause), flags in causes.items():
        shown_on.print()
        for flag in flags:
            shown_on.print(f"{level}: {flag['subject']}: {flag['message']} [{code}]", style="yellow", soft_wrap=True)
        likely = f"  likely cause: {cause}\n" if cause else ""
        shown_on.print(f"{likely}  to see it: {flags[0]['command']}", soft_wrap=True)
    alike: dict[tuple[str, str], list[CellFailure]] = {}
    for failure in results.failures:
        alike.setdefault((failure.scheme, failure.error), []).append(failure)
    for (scheme, error), failures in alike.items():
        which = ", ".join(f"run {one.run} (seed {one.seed})" for one in failures)
        shown_on.print(f"\nfailed: {scheme}, {which}", style="bold red")
        shown_on.print(f"  {error}")
    if alike:
        shown_on.print("\nrun the same command again to try the failed runs again", style="bold red")
    if results.cells:
        shown_on.print(f"\n{repeatability(results)}")
    else:
        error_console().print("\nerror: nothing ran", style="bold red")
    files = [("results", "results.json"), ("", "results.csv"), ("table", "pantheon_table.md")]
    if figures and results.cells:
        files = [
            ("report", "pantheon_report.html"),
            ("", "pantheon_report.pdf"),
            ("explore", "explore.html"),
            ("figure", "pantheon_summary_mean.svg"),
            *([("", "pantheon_summary_mean_paper.pdf")] if runs else []),
            *files,
        ]
    for name, file in files:
        shown_on.print(f"{name:<9} {out / file}", soft_wrap=True)
    for line in (logs_text(results, out), size_text(out)):
        if line:
            shown_on.print(line, style="dim", soft_wrap=True)


def size_text(directory: Path) -> str:
    """Return the size of a directory's content, as a line of text."""
    sizes = [file.lstat().st_size for file in directory.rglob("*") if file.is_file()]
    return f"{sum(sizes) / 1e6:,.1f} MB in {len(sizes):,} files are in {directory}"


def _show_differences(results: ResultSet, shown_on: Console) -> None:
    """Show which schemes are better than others; for many schemes, the number of decided pairs."""
    from ccgym.report.differences_table import MOST_ON_SCREEN, differences_table, undecided_text

    found = results.differences
    if not any(one.low is not None for one in found):
        return
    shown_on.print()
    table = differences_table(found, {style.key: style.label for style in results.styles})
    if len(table.rows) > MOST_ON_SCREEN:
        shown_on.print(undecided_text(found), soft_wrap=True)
    else:
        shown_on.print(table)
