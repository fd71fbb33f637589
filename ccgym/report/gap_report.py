"""The report on a gap: the table, the figure and ``gap_report.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.backends import BACKENDS
from ccgym.evaluation.observer import Observer
from ccgym.experiments.request import Written
from ccgym.experiments.views.gap import DELAY_TOLERANCE_MS, LOSS_TOLERANCE, THROUGHPUT_TOLERANCE, Deviation, Gap
from ccgym.report.evaluation_report import write_tables
from ccgym.report.evaluation_table import LIMITED_MARK, LIMITED_NOTE
from ccgym.report.page import Block, Code, Heading, Page, Text, drawn, write_report
from ccgym.report.table import Cell, Column, Row, Table, Tone, counted, spread

if TYPE_CHECKING:
    from rich.console import RenderableType

TOLERANCES: Final = (
    f"beyond tolerance: more than {100 * THROUGHPUT_TOLERANCE:g} % of throughput, {DELAY_TOLERANCE_MS:g} ms of delay, "
    f"{100 * LOSS_TOLERANCE:g} point of loss"
)
"""Note on the colored differences."""


def _difference(found: Deviation) -> str:
    """Return a difference with its relative size: ``+1.52 (+2.1 %)``."""
    relative = "" if found.relative is None else f" ({_signed(100 * found.relative, 1)} %)"
    return _signed(found.absolute, 2) + relative


def _points(found: Deviation) -> str:
    """Return a difference in percentage points: ``−0.40 pt``."""
    return f"{_signed(100 * found.absolute, 2)} pt"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


_MEASURED: Final = (
    Column("throughput_mbps", "throughput", "Mbit/s", spread(2)),
    Column("delay_p95_ms", "95th %-ile\ndelay", "ms", spread(2)),
    Column("loss", "loss", "%", spread(2, 100)),
)

_COLUMNS: Final = (
    Column("scheme", "scheme", align="left"),
    Column("backend", "backend", align="left"),
    *_MEASURED,
    Column("against", "against", align="left"),
    Column("throughput_mbps difference", "throughput", format=_difference),
    Column("delay_p95_ms difference", "delay", format=_difference),
    Column("loss difference", "loss", format=_points),
)


def gap_table(gap: Gap) -> Table:
    """Return a row per scheme and backend, and a further row for each further backend of the comparison."""
    rows: list[Row] = []
    before = ""
    for row in gap.compared():
        others = [other for other in gap.references if other in row.against]
        for place, other in enumerate(others or [""]):
            first = row.scheme != before
            before = row.scheme
            values: dict[str, Any] = {"scheme": row.label if first else "", "backend": "", "against": other}
            if place == 0:
                values["backend"] = f"{row.backend} {LIMITED_MARK}" if row.limited else row.backend
            for column in _MEASURED:
                difference = row.against[other].get(column.name) if other else ""
                tone: Tone = "bad" if isinstance(difference, Deviation) and difference.beyond else ""
                values[f"{column.name} difference"] = Cell(difference, tone)
                values[column.name] = getattr(row, column.name) if place == 0 else ""
            rows.append(Row(values, first=first))
    return Table(_COLUMNS, rows, _notes(gap))


_HOSTS: Final = (
    Column("scheme", "scheme", align="left"),
    Column("host", "simulated with", align="left"),
    *(column for column in _COLUMNS if column.name.endswith("difference")),
    Column("apart", "apart", format=lambda value: f"{value:.2f}"),
    Column("closest", "", align="left"),
)


def host_table(gap: Gap) -> Table:
    """Return a row per scheme and host: the difference between the simulator with this host and real packets."""
    rows: list[Row] = []
    before = ""
    for row in gap.host_rows():
        first, before = row.scheme != before, row.scheme
        values: dict[str, Any] = {"scheme": row.label if first else "", "apart": row.apart}
        values["host"] = f"host {row.host}" if row.host else "no host"
        values["closest"] = "closest" if row.closest else ""
        for name, found in row.against.items():
            values[f"{name} difference"] = Cell(found, "bad" if found.beyond else "")
        rows.append(Row(values, first=first))
    note = (
        f"Differences: simulated minus {gap.reference}. Apart: their root mean square, each in units of its tolerance."
    )
    return Table(_HOSTS, rows, [note])


def _notes(gap: Gap) -> list[str]:
    rows = gap.compared()
    notes = [f"{row.label} on {row.backend}: {row.note}" for row in rows if row.note]
    if any(row.limited for row in rows):
        notes.append(LIMITED_NOTE)
    for name in gap.results:
        if (leads := gap.trace_leads(name)) is not None:
            shortest, longest, ahead = leads
            lead = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
            notes.append(
                f"{name}: its traces started {lead} ms before the flows, and are shifted so that flows get their "
                f"beginning; according to the links' logs, they are up to {ahead} ms off"
            )
    notes += [f"left out: {name} ({BACKENDS[name]}): {reason}" for name, reason in gap.left_out.items()]
    notes += [f"nothing ran: {name} ({BACKENDS[name]}): {reason}" for name, reason in gap.without_runs.items()]
    return notes


def terminal(result: Gap) -> Sequence[RenderableType]:
    """Return the table with its notes."""
    table, hosts = gap_table(result), host_table(result)
    below: list[RenderableType] = [hosts, *hosts.notes, ""] if hosts.rows else []
    return ["", table, TOLERANCES, *table.notes, "", *below]


def write(result: Gap, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the table as Markdown, and the tables of every backend; with ``figures``, also the figure and the page."""
    for name, results in result.results.items():
        write_tables(results, result.directories[name])
    return write_report(page(result), directory, "gap_report", progress, figures=figures)


def page(gap: Gap) -> Page:
    """Return the report."""
    from ccgym.report.figures import figures_of

    first = next(iter(gap.results.values()))
    asked, hosts = first.parameters, host_table(gap)
    hosted: list[Block] = [Heading("With a host"), hosts] if hosts.rows else []
    return Page(
        title=f"Gap report: {asked['path_name']}",
        lead=f"The same schemes and seeds on {counted(len(gap.results), 'backend')}, {counted(asked['runs'], 'run')} "
        f"each of {asked['runtime_s']:g} s, root seed {asked['seed']}.",
        blocks=[
            Code(first.provenance["path"]),
            gap_table(gap),
            Text(
                "Mean ± one standard deviation over the runs that count; each difference is this row minus the row of "
                f"the other backend. Red or bold: {TOLERANCES}.",
                "muted",
            ),
            *hosted,
            Heading("Over time"),
            *drawn(figures_of("gap"), gap),
            Text(
                "Run 1 is bold, other runs are thin. Throughput is per 0.5 s. Delay is the mean per 0.1 s, with "
                "propagation. The shaded region is the link's capacity.",
                "muted",
            ),
        ],
        provenance=first.provenance,
        made=[(name, f"{BACKENDS[name]}; results in {gap.directories[name]}") for name in gap.results],
    )
