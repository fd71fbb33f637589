"""The table of an evaluation: one row per scheme, for the terminal, as Markdown and as CSV.

Numbers are means over the runs that count, ± one sample standard deviation. Those that Pantheon's table has, too, are
averaged as there, from the rounded numbers of the statistics files, so that every digit agrees. The CSV has exact ones.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from rich.table import Table

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.results import PublishedPoint, ResultSet, SchemeSummary, Spread
from ccgym.report.terminal import NOTHING, FittingTable, plain_table

COLUMNS = ("throughput_mbps", "delay_p95_ms", "loss", "utilization")
"""The measured columns, in order."""

TITLES = {
    "throughput_mbps": "throughput (Mbit/s)",
    "delay_p95_ms": "95th %-ile delay (ms)",
    "loss": "loss (%)",
    "utilization": "utilization (%)",
}
"""Their headings."""

SHORT_TITLES = {"throughput_mbps": "Mbit/s", "delay_p95_ms": "p95 ms", "loss": "loss %", "utilization": "used %"}
"""Their headings on a narrow screen: throughput, 95th-percentile one-way delay, loss, utilization."""

DIGITS = {"throughput_mbps": 2, "delay_p95_ms": 2, "loss": 2, "utilization": 1}
"""Digits after the point."""

PERCENT = frozenset({"loss", "utilization"})
"""Columns that are fractions inside and per cent on the page."""

PUBLISHED_COLUMNS = ("throughput_mbps", "delay_p95_ms", "loss")
"""The columns that reports publish."""

LIMITED_MARK = "‡"
"""Behind schemes whose numbers are partly the machine's own."""

IDENTICAL_MARK = "="
"""Behind the number of runs that were the same packets."""


@dataclass(frozen=True)
class Row:
    """One row as text."""

    label: str
    """The scheme."""
    runs: str
    """Runs that count, of how many."""
    cells: dict[str, str]
    """Mean ± deviation per column."""
    published: dict[str, str]
    """Published mean per column; empty texts where there is none."""
    unavailable: str = ""
    """Why there are no numbers: this machine cannot run the scheme. Empty where it can."""
    limited: bool = False
    """Whether the machine could not hold a real path's schedule in some of its runs."""
    identical: bool = False
    """Whether all runs were the same packets."""

    @property
    def marked(self) -> str:
        """The scheme, with the mark that the footnote explains."""
        return f"{self.label} {LIMITED_MARK}" if self.limited else self.label


def _scaled(name: str, value: float) -> float:
    return 100 * value if name in PERCENT else value


def format_spread(name: str, spread: Spread | None) -> str:
    """``72.70 ± 0.32``; without the deviation where runs cannot show one."""
    return _format(spread, DIGITS[name], 100 if name in PERCENT else 1)


def _format(spread: Spread | None, digits: int, factor: int) -> str:
    if spread is None:
        return NOTHING
    text = f"{factor * spread.mean:.{digits}f}"
    return text if spread.std is None else f"{text} ± {factor * spread.std:.{digits}f}"


def _cell(summary: SchemeSummary, name: str) -> str:
    if name in PUBLISHED_COLUMNS:
        return _format(summary.as_printed(name), DIGITS[name], 1)
    return format_spread(name, getattr(summary, name))


def _published(point: PublishedPoint | None) -> dict[str, str]:
    if point is None:
        return dict.fromkeys(PUBLISHED_COLUMNS, "")
    return {name: f"{_scaled(name, getattr(point, name)):.{DIGITS[name]}f}" for name in PUBLISHED_COLUMNS}


def _row(summary: SchemeSummary) -> Row:
    valid, total = len(summary.valid_runs), len(summary.runs)
    return Row(
        label=summary.style.label,
        runs=(str(valid) if valid == total else f"{valid} of {total}")
        + (f" {IDENTICAL_MARK}" if summary.identical_runs else ""),
        cells={name: _cell(summary, name) for name in COLUMNS},
        published=_published(summary.published),
        unavailable="" if summary.unavailable is None else f"unavailable: {summary.unavailable}",
        limited=bool(summary.limited_runs),
        identical=summary.identical_runs,
    )


def footnotes(results: ResultSet, *, unavailable: bool = True) -> list[str]:
    """What belongs below the table: what the mark means, and why rows have no numbers.

    Args:
        results: The experiment.
        unavailable: Whether to say the latter here, because the table itself does not.
    """
    lines = []
    if any(row.limited for row in rows(results)):
        lines.append(
            f"{LIMITED_MARK} emulator-limited: the machine could not hold the path's schedule in some of these runs"
        )
    if any(row.identical for row in rows(results)):
        runs = int(results.parameters["runs"])
        lines.append(
            f"{IDENTICAL_MARK} {runs} runs, identical packets: nothing random on this path, so one run says as much"
        )
    if unavailable:
        lines += [f"{row.label}: {row.unavailable}" for row in rows(results) if row.unavailable]
    return lines


def repeatability(results: ResultSet) -> str:
    """In a line, what may be expected of the same command again."""
    if results.real:
        return "real packets in real time: the same command gives other packets; finished runs are kept as they are"
    return f"trajectory {results.trajectory_hash}  (same command, same version: same hash)"


def rows(results: ResultSet) -> list[Row]:
    """A row for each scheme that was evaluated."""
    return [_row(summary) for summary in results.schemes]


def has_published(results: ResultSet) -> bool:
    """Whether anything was published for the schemes that were evaluated."""
    return any(summary.published is not None for summary in results.schemes)


def headings(results: ResultSet) -> list[str]:
    """The headings of the text forms."""
    names = ["scheme", "runs", *(TITLES[name] for name in COLUMNS)]
    if has_published(results):
        names += [f"published {TITLES[name]}" for name in PUBLISHED_COLUMNS]
    return names


def _texts(row: Row, with_published: bool) -> list[str]:
    texts = [row.marked, "unavailable" if row.unavailable else row.runs, *(row.cells[name] for name in COLUMNS)]
    if with_published:
        texts += [row.published[name] or NOTHING for name in PUBLISHED_COLUMNS]
    return texts


def folded(heading: str) -> str:
    """A heading on two or three lines: what was published, the quantity, its unit."""
    for before, after in (("published ", "published\n"), (" delay (", "\ndelay ("), ("throughput (", "throughput\n(")):
        heading = heading.replace(before, after)
    return heading.replace("loss (", "loss\n(").replace("utilization (", "utilization\n(")


def terminal_table(results: ResultSet) -> FittingTable:
    """For a rich console: ours and the published means, in the form that the screen has room for."""
    return FittingTable(_wide_table(results), _narrow_table(results), _narrow_table(results, fold=True))


def _wide_table(results: ResultSet) -> Table:
    """The published means beside ours."""
    table = plain_table()
    for place, name in enumerate(headings(results)):
        published = name.startswith("published ")
        table.add_column(
            folded(name),
            justify="left" if place == 0 else "right",
            style="dim" if published else "",
            no_wrap=True,
        )
    for row in rows(results):
        table.add_row(*_texts(row, has_published(results)))
    return table


def _narrow_table(results: ResultSet, *, fold: bool = False) -> Table:
    """The published means below ours.

    Args:
        results: The experiment.
        fold: Whether headings are short and deviations stand below their means, too.
    """
    table = plain_table()
    if fold:
        table.caption = "p95: 95th percentile of the one-way delay; used: share of the capacity"
        table.caption_justify = "left"
    table.add_column("scheme", no_wrap=True)
    for name in ("runs", *((SHORT_TITLES if fold else TITLES)[name] for name in COLUMNS)):
        table.add_column(name if fold else folded(name), justify="right", no_wrap=True)
    for row in rows(results):
        cells = [row.cells[name] for name in COLUMNS]
        if fold:
            cells = [cell.replace(" ± ", "\n± ") for cell in cells]
        # Why a scheme has no numbers is said below the table.
        table.add_row(row.marked, NOTHING if row.unavailable else row.runs, *cells)
        if any(row.published.values()):
            published = [row.published.get(name, "") for name in COLUMNS]
            table.add_row("  published", "", *published, style="dim")
    return table


def caption(results: ResultSet) -> str:
    """Path, runs, seed, command and the source of what was published: what a table needs away from its report."""
    parameters = results.parameters
    runs, flows = int(parameters["runs"]), int(parameters["flows"])
    what = f"`{parameters['path_name']}`, {runs} run{'s' if runs != 1 else ''} of {parameters['runtime_s']:g} s"
    what += f" with {flows} flows" if flows != 1 else ""
    place = PLACES[results.backend]
    command = results.provenance.get("command")
    parts = [f"{what}, seed {parameters['seed']}, {place}{f': `{command}`' if command else ''}."]
    if has_published(results):
        parts.append(f"Published: {results.published_source}.")
    return " ".join(parts)


def markdown_table(results: ResultSet) -> str:
    """GitHub-flavoured Markdown, with a caption below: it can stand in a README as it is."""
    names = headings(results)
    lines = ["| " + " | ".join(names) + " |", "|---" + "|---:" * (len(names) - 1) + "|"]
    lines += ["| " + " | ".join(_texts(row, has_published(results))) + " |" for row in rows(results)]
    lines += ["", "  \n".join([caption(results), *footnotes(results)])]
    return "\n".join(lines) + "\n"


def csv_table(results: ResultSet) -> str:
    """Exact numbers with units in the column names; loss and utilization are fractions."""
    fields = ["scheme", "label", "runs", "valid_runs", "identical_runs"]
    if results.real:
        fields += ["limited_runs", "unavailable"]
    for name in COLUMNS:
        fields += [f"{name}_mean", f"{name}_std"]
    fields += [f"published_{name}" for name in PUBLISHED_COLUMNS]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fields, lineterminator="\n")
    writer.writeheader()
    for summary in results.schemes:
        record: dict[str, object] = {
            "scheme": summary.style.key,
            "label": summary.style.label,
            "runs": len(summary.runs),
            "valid_runs": len(summary.valid_runs),
            "identical_runs": summary.identical_runs,
        }
        if results.real:
            record |= {"limited_runs": len(summary.limited_runs), "unavailable": summary.unavailable or ""}
        for name in COLUMNS:
            spread: Spread | None = getattr(summary, name)
            if spread is not None:
                record[f"{name}_mean"] = spread.mean
                record[f"{name}_std"] = "" if spread.std is None else spread.std
        if summary.published is not None:
            record.update({f"published_{name}": getattr(summary.published, name) for name in PUBLISHED_COLUMNS})
        writer.writerow(record)
    return buffer.getvalue()
