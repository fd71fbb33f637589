"""The report on a gap: the table for the terminal and as Markdown, the figure in three formats, and an HTML page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.text import Text

from ccgym.evaluation.backends import BACKENDS
from ccgym.evaluation.gap import (
    DELAY_TOLERANCE_MS,
    LOSS_TOLERANCE,
    THROUGHPUT_TOLERANCE,
    Difference,
    Gap,
    GapRow,
)
from ccgym.evaluation.results import atomic_write
from ccgym.report.table import LIMITED_MARK, format_spread
from ccgym.report.terminal import NOTHING, FittingTable, plain_table

QUANTITIES: Final = ("throughput_mbps", "delay_p95_ms", "loss")
"""What is compared, in order."""

HEADINGS: Final = {
    "throughput_mbps": "throughput (Mbit/s)",
    "delay_p95_ms": "95th %-ile delay (ms)",
    "loss": "loss (%)",
}
"""Headings of the measured columns."""

DIFFERENCE_HEADINGS: Final = {"throughput_mbps": "throughput", "delay_p95_ms": "delay", "loss": "loss"}
"""Headings of the differences."""

HTML_FILE: Final = "gap_report.html"
MARKDOWN_FILE: Final = "gap_table.md"
FIGURE_NAME: Final = "gap_series"
FIGURE_SUFFIXES: Final = (".svg", ".pdf", ".png")

TOLERANCES: Final = (
    f"beyond tolerance: more than {100 * THROUGHPUT_TOLERANCE:g} % of throughput, {DELAY_TOLERANCE_MS:g} ms of delay, "
    f"{100 * LOSS_TOLERANCE:g} point of loss"
)
"""What is colored."""


@dataclass(frozen=True)
class Cell:
    """A difference as text."""

    text: str
    """Absolute, and relative where that means something."""
    beyond: bool
    """Whether it is beyond the tolerance."""


def difference_text(quantity: str, difference: Difference | None) -> Cell:
    """``+1.52 Mbit/s (+2.1 %)``, or a dash."""
    if difference is None:
        return Cell(NOTHING, beyond=False)
    if quantity == "loss":
        return Cell(_signed(100 * difference.absolute, 2) + " pt", difference.beyond)
    share = "" if difference.relative is None else f" ({_signed(100 * difference.relative, 1)} %)"
    return Cell(_signed(difference.absolute, 2) + share, difference.beyond)


def _signed(value: float, digits: int) -> str:
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−")


@dataclass(frozen=True)
class Line:
    """One line of the table: a scheme on a backend, against another backend."""

    first: bool
    """Whether a scheme begins here."""
    label: str
    """The scheme; empty in its further lines."""
    backend: str
    """The backend; empty in its further lines."""
    measured: list[str]
    """What was measured; empty texts in further lines."""
    against: str
    """The backend that is compared with; empty where there is none."""
    differences: list[Cell]
    """How far from it."""

    @property
    def texts(self) -> list[str]:
        """All cells as text."""
        return [self.label, self.backend, *self.measured, self.against, *(cell.text for cell in self.differences)]


def headings() -> list[str]:
    """The headings of the lines."""
    return ["scheme", "backend", *HEADINGS.values(), "against", *DIFFERENCE_HEADINGS.values()]


def lines(gap: Gap) -> list[Line]:
    """A line for each scheme on each backend, and a further one for each further backend that it is compared with."""
    made: list[Line] = []
    before = ""
    for row in gap.rows():
        numbers = [format_spread(quantity, getattr(row, quantity)) for quantity in QUANTITIES]
        found = [(other, row.against[other]) for other in gap.references if other in row.against]
        for place, (other, differences) in enumerate(found or [("", {})]):
            first = row.scheme != before
            made.append(
                Line(
                    first=first,
                    label=row.label if first else "",
                    backend=_backend(row) if place == 0 else "",
                    measured=numbers if place == 0 else [""] * len(numbers),
                    against=other,
                    differences=[difference_text(quantity, differences.get(quantity)) for quantity in QUANTITIES]
                    if other
                    else [Cell("", beyond=False)] * len(QUANTITIES),
                )
            )
            before = row.scheme
    return made


def terminal_table(gap: Gap) -> FittingTable:
    """For a rich console; what is beyond tolerance is red."""
    table = plain_table()
    for name in headings():
        left = name in ("scheme", "backend", "against")
        table.add_column(name.replace(" (", "\n("), justify="left" if left else "right", no_wrap=True)
    made = lines(gap)
    for place, line in enumerate(made):
        end = place + 1 == len(made) or made[place + 1].first
        colored = [Text(cell.text, style="bold red" if cell.beyond else "") for cell in line.differences]
        table.add_row(line.label, line.backend, *line.measured, line.against, *colored, end_section=end)
    return FittingTable(table)


def _backend(row: GapRow) -> str:
    return f"{row.backend} {LIMITED_MARK}" if row.limited else row.backend


def footnotes(gap: Gap) -> list[str]:
    """What belongs below the table."""
    rows = gap.rows()
    lines = [f"{row.label} on {row.backend}: {row.note}" for row in rows if row.note]
    if any(row.limited for row in rows):
        lines.append(
            f"{LIMITED_MARK} emulator-limited: the machine could not hold the path's schedule in some of these runs"
        )
    lines += [f"left out: {name} ({BACKENDS[name]}): {reason}" for name, reason in gap.left_out.items()]
    lines += [f"nothing ran: {name} ({BACKENDS[name]}): {reason}" for name, reason in gap.without_runs.items()]
    return lines


def markdown_table(gap: Gap) -> str:
    """GitHub-flavoured Markdown; what is beyond tolerance is bold."""
    names = headings()
    text = ["| " + " | ".join(names) + " |", "|" + "---|" * 2 + "---:|" * 3 + "---|" + "---:|" * 3]
    for line in lines(gap):
        differences = [f"**{cell.text}**" if cell.beyond else cell.text for cell in line.differences]
        text.append("| " + " | ".join([line.label, line.backend, *line.measured, line.against, *differences]) + " |")
    notes = [f"Bold: {TOLERANCES}.", *footnotes(gap)]
    return "\n".join([*text, "", "  \n".join(notes)]) + "\n"


def write_gap_tables(gap: Gap, directory: Path) -> None:
    """Write the table as Markdown."""
    atomic_write(directory / MARKDOWN_FILE, markdown_table(gap))


def build_gap_report(gap: Gap, directory: Path) -> None:
    """Draw the figure and write the HTML page."""
    from ccgym.report.gap_figure import gap_figure
    from ccgym.report.style import house_style, save

    with house_style():
        figure = gap_figure(gap)
        for suffix in FIGURE_SUFFIXES:
            save(figure, directory / f"{FIGURE_NAME}{suffix}")
    atomic_write(directory / HTML_FILE, html_page(gap, directory))


def html_page(gap: Gap, directory: Path) -> str:
    """The page, with the figure inside.

    Args:
        gap: What was measured.
        directory: Where its figure is.
    """
    from jinja2 import Environment, StrictUndefined

    from ccgym.report.html_report import PICTURE, STYLE, Picture

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    first = next(iter(gap.results.values()))
    return environment.from_string(PICTURE + _TEMPLATE).render(
        gap=gap,
        parameters=first.parameters,
        provenance=first.provenance,
        style=STYLE,
        headings=headings(),
        lines=lines(gap),
        footnotes=footnotes(gap),
        tolerances=TOLERANCES,
        backends={name: BACKENDS[name] for name in gap.results},
        figure=Picture.of(
            directory / f"{FIGURE_NAME}.svg",
            "Throughput and one-way delay over time, one row per scheme, one color per backend",
        ),
    )


_TEMPLATE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gap report: {{ parameters.path_name }}</title>
<style>{{ style | safe }}
td:nth-child(2), th:nth-child(2), td:nth-child(6), th:nth-child(6) { text-align: left; }
td.beyond { color: #b3261e; font-weight: 600; }
tr.first td { border-top: 1px solid #bbb; }
body { max-width: 1180px; }
</style>
</head>
<body>
<h1>Gap report: {{ parameters.path_name }}</h1>
<p class="lead">The same schemes and seeds on {{ gap.results | length }} backend{{ "s" if gap.results | length != 1 }},
{{ parameters.runs }} run{{ "s" if parameters.runs != 1 }} each of {{ "%g" % parameters.runtime_s }} s,
root seed {{ parameters.seed }}.</p>
<pre>{{ provenance.path }}</pre>

<div class="scroll">
<table>
<thead><tr>{% for name in headings %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in lines %}
<tr{% if line.first %} class="first"{% endif %}>
<td>{{ line.label }}</td><td>{{ line.backend }}</td>
{% for text in line.measured %}<td>{{ text }}</td>{% endfor %}
<td>{{ line.against }}</td>
{% for cell in line.differences %}<td{% if cell.beyond %} class="beyond"{% endif %}>{{ cell.text }}</td>{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
<p class="muted">Mean ± one standard deviation over the runs that count; each difference is this row less the other
backend's. Red: {{ tolerances }}.</p>
{% for line in footnotes %}
<p class="warning-text">{{ line }}</p>
{% endfor %}

<h2>Over time</h2>
{{ picture(figure) }}
<p class="muted">Run 1 is bold, the others thin. Throughput per 0.5 s; delay is the mean per 0.1 s, propagation
included. The shaded region is the link's capacity.</p>

<h2>How this was made</h2>
<dl>
{% if provenance.command %}<dt>Command</dt><dd><code>{{ provenance.command }}</code></dd>{% endif %}
{% for name, what in backends.items() %}
<dt>{{ name }}</dt><dd>{{ what }}; results in <code>{{ gap.directories[name] }}</code></dd>
{% endfor %}
<dt>Versions</dt><dd>
{% for name, version in provenance.versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}
</dd>
<dt>System</dt><dd>{{ provenance.system }}</dd>
</dl>
</body>
</html>
"""
