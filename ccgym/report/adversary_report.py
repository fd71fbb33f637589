"""The report on paths that an adversary found: tables, a figure per find, and ``adversary.html``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.observer import Observer
from ccgym.experiments.adversary_finds import (
    CATALOG_FILE,
    DISTRIBUTION_FILE,
    FAR,
    KEPT,
    LEAD,
    PATHS_DIRECTORY,
    AdversaryResults,
    Find,
    SchemeFinds,
    SchemeOnPath,
)
from ccgym.experiments.adversary_search import ORACLE
from ccgym.experiments.request import Written
from ccgym.report.page import Block, Code, Heading, Page, Picture, Text, write_report
from ccgym.report.table import Cell, Column, Row, Table, Tone, counted, number, spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

EXPLANATION: Final = (
    "gap: the oracle's score minus the scheme's score, as a power of two; 1 means half of the oracle's throughput, or "
    "twice its delay"
)

_FINDS: Final = (
    Column("scheme", "scheme", align="left"),
    Column("name", "path", align="left"),
    Column("sentence", "what it consists of", align="left", max_width=44),
    Column("gap", "gap", "", spread(2), better="min"),
    Column("oracle", "oracle's\nscore", "", number(2)),
    Column("classic", "best classic's\nscore", align="left"),
    Column("utilization", "throughput\n/ capacity", "", number(2)),
    Column("delay", "95th %-ile\ndelay", "ms", number(1)),
    Column("base", "propagation\ndelay", "ms", number(1)),
    Column("loss", "loss", "%", number(2, 100)),
    Column("real", "gap, real\npackets", align="left"),
)

_MEASURED: Final = (
    Column("label", "scheme", align="left"),
    Column("score", "score", "", spread(2), better="max"),
    Column("throughput_mbps", "throughput", "Mbit/s", number(2)),
    Column("utilization", "throughput / capacity", "", number(3)),
    Column("delay_p95_ms", "95th %-ile delay", "ms", number(1)),
    Column("loss", "loss", "%", number(2, 100)),
)


def finds_table(results: AdversaryResults) -> Table:
    """Return a row per find, and a row with a note for a scheme without finds."""
    rows: list[Row] = []
    for one in results.schemes:
        if not one.finds:
            best = max((elite.gap for elite in one.searched.elites), default=None)
            said = "nothing" if best is None else f"no confirmed path; the largest gap of a single run was {best:.1f}"
            rows.append(Row({"scheme": one.scheme.label, "name": "", "sentence": said}, "muted", first=True))
        rows += [_find_row(find, one.scheme.label if not place else "") for place, find in enumerate(one.finds)]
    return Table(_FINDS, rows, _notes(results))


def _find_row(find: Find, label: str) -> Row:
    own = find.own
    values: dict[str, Any] = {
        "scheme": label,
        "name": find.name,
        "sentence": find.sentence,
        "gap": Cell(find.gap, "bad"),
        "oracle": find.oracle.score.mean,
        "classic": f"{find.classic.label} {number(2)(find.classic.score.mean)}",
        "utilization": own.utilization,
        "delay": own.delay_p95_ms,
        "base": find.network_path().one_way_delay_ms,
        "loss": own.loss,
        "real": _real(find),
    }
    return Row(values, first=bool(label))


def _real(find: Find) -> Cell:
    if find.real is None:
        return Cell("not tried", "muted")
    if find.real.gap is None:
        return Cell("NOT RUN", "unknown")
    if find.real.note:
        return Cell(f"{find.real.gap:.2f}, undecided", "unknown")
    tone: Tone = "good" if find.real.confirmed else "bad"
    return Cell(f"{find.real.gap:.2f}{'' if find.real.confirmed else ', not confirmed'}", tone)


def _notes(results: AdversaryResults) -> list[str]:
    notes = []
    if results.unconfirmed:
        notes.append(f"NOT CONFIRMED WITH REAL PACKETS: {results.unconfirmed}")
    notes += [
        f"{find.name} with real packets: {find.real.note}"
        for find in results.finds
        if find.real is not None and find.real.gap is not None and find.real.note
    ]
    unfair = [find.name for find in results.finds if not find.fair]
    if unfair:
        notes.append(f"paths on which no classic scheme is better by at least {LEAD:g}: {', '.join(unfair)}")
    trained = [find.name for find in results.finds if find.trained]
    if trained:
        notes.append(f"paths inside the scheme's training range: {', '.join(trained)}")
    return notes


def measured_table(find: Find) -> Table:
    """Return the numbers of all schemes on a find."""

    def tone(one: SchemeOnPath) -> Tone:
        return "reference" if one.key == ORACLE else "best" if one is find.classic else ""

    return Table(
        _MEASURED,
        [Row({column.name: getattr(one, column.name) for column in _MEASURED}, tone(one)) for one in find.measured],
    )


def searched_line(one: SchemeFinds) -> str:
    """Return ``TCP Cubic: 912 candidates, searched for 180 s; 240 s with minimization and measurement``."""
    return (
        f"{one.scheme.label}: {counted(one.searched.evaluations, 'candidate')}, searched for "
        f"{one.searched.spent_s:.0f} s; {one.spent_s:.0f} s with minimization and measurement"
    )


def terminal(result: AdversaryResults) -> Sequence[RenderableType]:
    """Return the finds, and the command that runs each of them again."""
    table = finds_table(result)
    lines: list[RenderableType] = ["", table, EXPLANATION, *table.notes, ""]
    lines += [searched_line(one) for one in result.schemes]
    lines += ["", *(f"again  {find.replay}" for find in result.finds), ""]
    return lines


def write(result: AdversaryResults, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the table as Markdown; with ``figures``, also a figure per find and the page."""
    files = [
        Written("paths", directory / PATHS_DIRECTORY),
        Written("catalog", directory / CATALOG_FILE),
    ]
    files += [Written("distribution", directory / DISTRIBUTION_FILE)] if result.finds else []
    return write_report(page(result, directory), directory, "adversary", progress, figures=figures, files=files)


def page(results: AdversaryResults, directory: Path) -> Page:
    """Return the report. Its figures are drawn from repeated runs."""
    asked = results.parameters
    blocks: list[Block] = [
        finds_table(results),
        Text(
            f"{EXPLANATION[0].upper()}{EXPLANATION[1:]}. Each path is minimized: it is the simplest nearby path that "
            f"keeps {100 * KEPT:g} % of the gap, and a gap of at least {FAR:g}.",
            "muted",
        ),
    ]
    for one in results.schemes:
        for find in one.finds:
            original = find.original.sentence(int(1e9 * asked["runtime_s"]))
            blocks += [
                Heading(find.name, find.name),
                Text(f"{find.sentence}."),
                Picture(
                    f"{find.name}.svg", f"{find.scheme} and the oracle", partial(_draw, results, one, find, directory)
                ),
                measured_table(find),
                Text(
                    f"Minimized in {counted(find.trials, 'trial')} from a gap of {find.original_gap:.2f}: {original}.",
                    "muted",
                ),
                Code(find.replay),
            ]
    return Page(
        title=f"Adversary: {', '.join(asked['schemes'])}",
        lead="Paths on which a scheme scores far below the oracle, although the oracle scores well. Runs of "
        f"{asked['runtime_s']:g} s, {counted(asked['runs'], 'run')} of every scheme on each path, root seed "
        f"{asked['seed']}.",
        blocks=blocks,
        provenance=results.provenance,
        made=[("Search", searched_line(one)) for one in results.schemes],
    )


def _draw(results: AdversaryResults, one: SchemeFinds, find: Find, directory: Path) -> Figure:
    """Draw the first run of the scheme and of the oracle on a find."""
    from ccgym.evaluation.engine import Reduction, measure
    from ccgym.evaluation.run import contender
    from ccgym.experiments.request import Request
    from ccgym.report.figures.portrait import Column as Drawn
    from ccgym.report.figures.portrait import portrait_figure

    path, oracle = find.network_path(), contender(ORACLE)
    request = Request(out=directory, seed=int(results.parameters["seed"]))
    runs = results.spec.evaluation(path, (one.scheme, oracle), request, runs=1).planned()
    records = [each.data for each in measure(runs, reduce=Reduction("record", 1, lambda run, record: record))]
    return portrait_figure([one.scheme.style, oracle.style], [Drawn(path, records)])
