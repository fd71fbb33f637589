"""The report on a document's requirements, row by row: tables, a page (``NAME.html``) and Markdown for citation."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.observer import Observer
from ccgym.experiments.criteria import Criterion
from ccgym.experiments.outcome import WORST_FIRST, Outcome, Test
from ccgym.experiments.request import Written
from ccgym.experiments.spec import Row as Requirement
from ccgym.experiments.views.results import ExperimentResults
from ccgym.invocation import command
from ccgym.report.experiment_report import (
    TONES,
    WORDS,
    criterion_text,
    interval_text,
    range_text,
    remarks,
    test_blocks,
    threshold_text,
    trained,
)
from ccgym.report.page import Block, Facts, Heading, Page, Text, experiments_page, write_report
from ccgym.report.table import NOTHING, Cell, Column, Row, Table, counted
from ccgym.schemes.style import SchemeStyle

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH: Final = 26
"""Max characters of a line in the table."""
NOT_TESTED: Final = "not tested yet"
BY_AUTHOR: Final = "for the author"
EXPLAINED: Final = (
    "A threshold is passed or failed if the whole 95 % interval of the mean over repetitions is on one side of it; "
    "otherwise it is undecided. If the threshold is measured, too, the interval is of the difference between runs with "
    "the same number. The worst threshold decides an experiment, and is shown; the worst experiment decides a row. "
    "With one repetition there is no interval, and the mean decides. With many thresholds, some verdicts are wrong by "
    "chance: of twenty intervals, on average one does not contain the true mean."
)
CONFIRMED_EXPLAINED: Final = (
    "Single runs of the sample above, repeated over an emulated path with real packets and real clocks. A number "
    "agrees if it is in the range of the simulated runs, or if its distance from this range is at most a tenth of "
    "their mean or of a threshold, the larger one."
)


def terminal(result: ExperimentResults) -> Sequence[RenderableType]:
    """Return the table, and a line on what was run."""
    confirmed = confirmed_table(result)
    sample: list[RenderableType] = [confirmed, _agreement(result), ""] if confirmed.rows else []
    rest = open_table(result)
    below: list[RenderableType] = [rest, ""] if rest.rows else []
    shown = ["", summary_table(result, replay=False), "", *below, *sample]
    return [*shown, *_counts(result), *trained(result), *result.notes, ""]


def write(result: ExperimentResults, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the report as Markdown; with ``figures``, also the figures and the page."""
    return write_report(page(result), directory, result.name, progress, figures=figures)


def tests_of(results: ExperimentResults, row: Requirement) -> list[Test]:
    """Return the experiments of a row, in its order."""
    known = {test.name: test for test in results.tests}
    return [known[name] for name in row.names if name in known]


def decisive(outcome: Outcome) -> Criterion | None:
    """Return the criterion that decided: the worst verdict and, among equal verdicts, the smallest margin."""
    ranks = {verdict: place for place, verdict in enumerate(WORST_FIRST)}
    return min(outcome.criteria, key=lambda one: (ranks[one.verdict], one.margin), default=None)


def replay(results: ExperimentResults, style: SchemeStyle, row: Requirement, test: Test | None = None) -> str:
    """Return the command that runs a row again; for documents other than RFC 9743, one experiment of the row."""
    asked = results.parameters
    texts = dict(zip((one.key for one in results.styles), asked["schemes"], strict=True))
    if results.name == "rfc9743":
        words = [*command("rfc9743").split(), texts[style.key], "--only", row.section]
    else:
        files = {name: file.removesuffix(".yaml") for name, file in zip(row.names, row.tests, strict=True)}
        names = [files[test.name]] if test is not None else list(files.values())[:1]
        words = [*command("evaluate").split(), "--experiment", *names, "--schemes", texts[style.key]]
    words += ["--quick"] if asked["quick"] else []
    words += ["--runs", str(asked["runs"])] if asked["runs"] else []
    words += ["--seed", str(asked["seed"])] if asked["seed"] != 1 else []
    return shlex.join(words)


def summary_table(results: ExperimentResults, *, replay: bool = True) -> Table:
    """Return a line per experiment of each row, with the threshold that decided; a note if there is no experiment."""
    several = len(results.styles) > 1
    columns = [
        Column("section", "section", align="left"),
        Column("row", "requirement", align="left"),
        Column("level", "level", align="left"),
        *([Column("scheme", "scheme", align="left")] if several else []),
        Column("verdict", "verdict", align="left"),
        Column("test", "experiment", align="left", max_width=WIDTH),
        Column("measure", "measure", align="left", max_width=WIDTH),
        Column("threshold", "threshold"),
        Column("found", "mean\n(95 % interval)"),
        *([Column("replay", "again", align="left")] if replay else []),
    ]
    return Table(columns, list(_lines(results)), kind="stack")


def _lines(results: ExperimentResults) -> Iterator[Row]:
    for row in results.source.rows:
        lines = [_line(results, style, row, test) for style in results.styles for test in tests_of(results, row)]
        if not lines:
            lines = [{"verdict": Cell(NOT_TESTED, "unknown") if row.missing else Cell(BY_AUTHOR, "muted")}]
        in_part = f"{row.title} (in part)" if row.tests and row.missing else row.title
        head = {"section": row.section, "row": _wrapped(in_part), "level": row.level}
        for place, values in enumerate(lines):
            yield Row({**head, **values}, first=place == 0)


def open_table(results: ExperimentResults) -> Table:
    """Return the requirements that are not tested, and those that no experiment can test."""
    columns = [
        Column("section", "section", align="left"),
        Column("row", "requirement", align="left"),
        Column("status", "", align="left"),
        Column("what", "what", align="left", max_width=2 * WIDTH),
    ]
    rows = []
    for row in results.source.rows:
        head = {"section": row.section, "row": row.title}
        if row.missing:
            status = f"{'in part ' if row.tests else ''}{NOT_TESTED}"
            rows.append(Row({**head, "status": status, "what": _wrapped(f"needs {row.missing}", 2 * WIDTH)}))
        if row.author:
            rows.append(Row({**head, "status": BY_AUTHOR, "what": _wrapped(row.author, 2 * WIDTH)}))
    return Table(columns, rows, kind="stack")


def _line(results: ExperimentResults, style: SchemeStyle, row: Requirement, test: Test) -> dict[str, Any]:
    outcome = results.outcome(test, style.key)
    one = decisive(outcome)
    shown: dict[str, Any] = {
        "scheme": style.label,
        "test": _wrapped(test.title),
        "verdict": Cell(WORDS[outcome.verdict] or NOTHING, TONES[outcome.verdict]),
        "replay": _wrapped(replay(results, style, row, test)),
    }
    if one is None:
        return shown
    metric = test.by_key(one.metric)
    interval = interval_text(metric, one)
    return shown | {
        "measure": _wrapped(criterion_text(metric, one)),
        "threshold": threshold_text(metric, one),
        "found": f"{metric.show(one.value)}\n({interval})" if interval else metric.show(one.value),
    }


def _wrapped(text: str, width: int = WIDTH) -> str:
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))


def confirmed_table(results: ExperimentResults) -> Table:
    """Return the numbers of the sample with real packets."""
    titles = {test.name: test for test in results.tests}
    columns = [
        Column("test", "experiment", align="left", max_width=WIDTH),
        Column("condition", "condition", align="left", max_width=WIDTH),
        Column("metric", "metric", align="left", max_width=WIDTH),
        Column("simulated", "simulated"),
        Column("real", "real packets"),
        Column("agrees", ""),
    ]
    rows = []
    for one in results.confirmed:
        metric = titles[one.test].by_key(one.metric)
        rows.append(
            Row(
                {
                    "test": titles[one.test].title,
                    "condition": one.condition,
                    "metric": metric.label,
                    "simulated": range_text(metric, one.simulated),
                    "real": metric.show(one.real),
                    "agrees": Cell("agrees", "good") if one.agrees else Cell("differs", "bad"),
                }
            )
        )
    return Table(columns, rows, kind="stack")


def _agreement(results: ExperimentResults) -> str:
    agree = sum(one.agrees for one in results.confirmed)
    runs = len({(one.test, one.scheme, one.condition) for one in results.confirmed})
    return f"real packets: {agree} of {counted(len(results.confirmed), 'number')} agree, of {counted(runs, 'run')}"


def _counts(results: ExperimentResults) -> list[str]:
    """Return the number of rows with each verdict, a line per scheme."""
    lines = []
    for style in results.styles:
        verdicts = [results.row_verdict(row, style.key) for row in results.source.rows if row.tests]
        parts = [f"{count} {word}" for word in WORST_FIRST[::-1] if (count := verdicts.count(word))]
        missing = sum(not row.tests and bool(row.missing) for row in results.source.rows)
        author = sum(not row.tests and not row.missing for row in results.source.rows)
        parts += [f"{missing} not tested yet"] if missing else []
        parts += [f"{author} for the author alone"] if author else []
        partly = sum(bool(row.tests and row.missing) for row in results.source.rows)
        partial = f" ({partly} of the tested ones are tested in part)" if partly else ""
        found = ", ".join(parts) or "no criteria apply"
        lines.append(f"{style.label}: of {counted(len(results.source.rows), 'row')} {found}{partial}.")
    return lines


def _described(results: ExperimentResults) -> str:
    """Return the schemes as the user wrote them, with the version of ccgym."""
    asked = ", ".join(results.parameters["schemes"])
    policies = results.provenance["policies"]
    digests = [f"{key} {str(value)[:12]}" for one in policies.values() for key, value in one.items() if "sha" in key]
    made = f" ({', '.join(digests)})" if digests else ""
    return f"{asked}{made} of ccgym {results.provenance['versions']['ccgym']}:"


def page(results: ExperimentResults) -> Page:
    """Return the report: the table, open requirements, the sample, then a section per row."""
    rest = open_table(results)
    still: list[Block] = [Heading("Not tested yet, or for the author to write", "open"), rest] if rest.rows else []
    blocks: list[Block] = [
        *map(Text, _counts(results)),
        Text(f"{EXPLAINED} {results.source.note}".strip(), "muted"),
        summary_table(results),
        *still,
        *remarks(results),
    ]
    if results.confirmed:
        said = f"{CONFIRMED_EXPLAINED} {_agreement(results)}."
        blocks += [Heading("A sample with real packets", "confirmed"), Text(said), confirmed_table(results)]
    for row in results.source.rows:
        tests = tests_of(results, row)
        blocks += [
            Heading(f"{row.section} {row.title}", row.section, row.section),
            Text(row.asks if row.level == NOTHING else f"{row.asks} {row.level}."),
            Facts(
                [
                    ("Thresholds", row.reason),
                    ("Not tested yet", f"needs {row.missing}" if row.missing else ""),
                    ("For the author", row.author),
                    ("Again", replay(results, results.styles[0], row) if tests else ""),
                ]
            ),
        ]
        for test in tests:
            blocks += [Heading(test.title, level=3), *test_blocks(results, test)]
    asked = f"{counted(len(results.source.rows), 'row')}, {counted(len(results.tests), 'experiment')}, {results.extent}"
    title = f"{results.source.title}: {', '.join(style.label for style in results.styles)}"
    return experiments_page(results, title, f"{_described(results)} {asked}", blocks, says_file=False, wide=True)
