"""One table, four forms: terminal, Markdown, CSV and HTML.

A :class:`Table` consists of columns and rows of values. A column has a heading, a unit and a format for its values;
a row has a value per column. All tables of ccgym are built from this class.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from ccgym.evaluation.spread import Spread

NOTHING: Final = "–"
"""Shown for a missing value."""

Tone = Literal["", "best", "good", "bad", "unknown", "muted", "reference"]
"""Emphasis of a cell or a row. Also its CSS class."""

TERMINAL_STYLES: Final[Mapping[Tone, str]] = {
    "": "", "best": "bold", "good": "green", "bad": "bold red", "unknown": "yellow", "muted": "dim",
    "reference": "italic",
}  # fmt: skip
"""Styles of tones in a terminal. Markdown writes ``best`` and ``bad`` in bold."""

_ANY_WIDTH: Final = 10_000


@dataclass(frozen=True)
class Cell:
    """A value with a tone."""

    value: Any
    """The value; the column formats it."""
    tone: Tone = ""


@dataclass(frozen=True)
class Column:
    """A column: its heading, the format of its values, and its form on narrow screens."""

    name: str
    """Key of the column's values in rows, and its heading in CSV."""
    label: str
    """Heading without the unit. It may contain line breaks for screens."""
    unit: str = ""
    """Unit, shown in parentheses."""
    format: Callable[[Any], str] = str
    """Function that formats a value. None is shown as :data:`NOTHING`; a text is not formatted."""
    align: Literal["left", "right"] = "right"
    better: Literal["max", "min", ""] = ""
    """The better direction: pages sort by it."""
    short: str = ""
    """Heading with its unit on a narrow screen."""
    group: str = ""
    """Word before the heading of columns that belong together, such as ``published``; pages show these muted."""
    under: str = ""
    """Column below which a narrow screen shows the values of this column."""
    optional: bool = False
    """Whether a screen without room for every column leaves out this column."""
    max_width: int | None = None
    """Max characters of a line of this column on a screen."""

    @property
    def heading(self) -> str:
        """The heading in one line."""
        return " ".join(self.folded.split())

    @property
    def folded(self) -> str:
        """The heading in several lines."""
        own = self.label
        if self.unit:
            own += f" ({self.unit})" if "\n" in own else f"\n({self.unit})"
        return f"{self.group}\n{own}" if self.group else own


@dataclass(frozen=True)
class Row:
    """A row: values by the names of the columns."""

    values: Mapping[str, Any]
    tone: Tone = ""
    first: bool = False
    """Whether a section begins here, with a rule above."""


@dataclass(frozen=True)
class Table:
    """Columns and rows. A rich console prints the widest form that fits."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    """Lines below the table."""
    legend: str = ""
    """Meaning of the short headings."""
    kind: str = ""
    """CSS class on pages; ``stack`` shows rows as lists on a phone."""

    def cell(self, row: Row, column: Column) -> Cell:
        """Return the value of a row in a column, with its tone."""
        value = row.values.get(column.name)
        return value if isinstance(value, Cell) else Cell(value)

    def text(self, row: Row, column: Column | str) -> str:
        """Return the text of a row in a column, with the line breaks of a screen."""
        if isinstance(column, str):
            column = next(one for one in self.columns if one.name == column)
        value = self.cell(row, column).value
        if value is None or isinstance(value, str):
            return NOTHING if value is None else value
        return column.format(value)

    def texts(self, row: Row) -> list[str]:
        """Return all texts of a row, each in one line."""
        return [" ".join(self.text(row, column).split()) for column in self.columns]

    def sort_key(self, row: Row, column: Column) -> float | None:
        """Return the number by which pages sort a cell; None if it has no number."""
        value = self.cell(row, column).value
        value = getattr(value, "mean", value)
        return float(value) if isinstance(value, (int, float)) else None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the widest form that fits the screen; if none fits, each row's name and a line per number."""
        measured = options.update(width=_ANY_WIDTH)
        for form in self._forms():
            if Measurement.get(console, measured, form).minimum <= options.max_width:
                yield form
                return
        # If the first column is a rank, which has no heading, the name is in the next column.
        titles = 1 if self.columns[0].label else 2
        for row in self.rows:
            texts = self.texts(row)
            if title := " ".join(texts[:titles]).strip():
                yield Text(title, style="bold")
            for column, text in list(zip(self.columns, texts, strict=True))[titles:]:
                if text not in ("", NOTHING):
                    tone = TERMINAL_STYLES[self.cell(row, column).tone]
                    yield Text.assemble("  ", (f"{column.heading}: ", "dim"), (text, tone))

    def _forms(self) -> Iterator[RichTable]:
        """Yield the forms of the table from the widest to the narrowest."""
        yield self._form(self.columns)
        if any(column.optional for column in self.columns):
            yield self._form([column for column in self.columns if not column.optional])
        narrow = [column for column in self.columns if not column.under]
        if len(narrow) < len(self.columns):
            yield self._form(narrow)
        if any(column.short for column in self.columns):
            yield self._form(narrow, short=True)

    def _form(self, columns: Sequence[Column], *, short: bool = False) -> RichTable:
        table = RichTable(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        if short:
            table.caption, table.caption_justify = self.legend, "left"

        def text(row: Row, column: Column) -> str:
            return self.text(row, column).replace(" ± ", "\n± ") if short else self.text(row, column)

        for column in columns:
            table.add_column(
                (column.short if short else "") or column.folded,
                justify=column.align,
                style="dim" if column.group else "",
                no_wrap=column.max_width is None,
                max_width=column.max_width,
            )
        shown = {column.name for column in columns}
        hidden = [column for column in self.columns if column.under in shown and column.name not in shown]
        for place, row in enumerate(self.rows):
            last = place + 1 < len(self.rows) and self.rows[place + 1].first
            cells = [Text(text(row, column), TERMINAL_STYLES[self.cell(row, column).tone]) for column in columns]
            table.add_row(*cells, style=TERMINAL_STYLES[row.tone], end_section=last)
            below = {c.under: self.text(row, c) for c in hidden if self.cell(row, c).value is not None}
            if below:
                title = f"  {hidden[0].group}"
                table.add_row(title, *(below.get(column.name, "") for column in columns[1:]), style="dim")
        for made in table.columns:
            if made.no_wrap:
                lines = "\n".join(map(str, (made.header, *made.cells))).split("\n")
                made.min_width = max(map(cell_len, lines))
        return table

    def markdown(self) -> str:
        """Return GitHub-flavored Markdown, without the notes."""
        lines = [
            [column.heading for column in self.columns],
            ["---" if column.align == "left" else "---:" for column in self.columns],
        ]
        for row in self.rows:
            tones = [self.cell(row, column).tone for column in self.columns]
            # Labels come from cards and external files: their HTML is escaped.
            texts = [text.replace("<", "&lt;") for text in self.texts(row)]
            lines.append([f"**{t}**" if tone in ("best", "bad") else t for t, tone in zip(texts, tones, strict=True)])
        head, rule, *rows = ["| " + " | ".join(texts) + " |" for texts in lines]
        return "\n".join([head, rule.replace(" ", ""), *rows]) + "\n"

    def csv(self) -> str:
        """Return the unformatted values under the names of the columns; None is empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([self.cell(row, column).value for column in self.columns] for row in self.rows)
        return buffer.getvalue()


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 run``, ``2 runs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def number(digits: int, scale: float = 1.0) -> Callable[[float], str]:
    """Return a format for numbers with this many digits after the decimal point and a minus sign (−)."""

    def text(value: float) -> str:
        found = f"{scale * value:.{digits}f}".replace("-", "−")
        return found.lstrip("−") if not any(digit in found for digit in "123456789") else found

    return text


def spread(digits: int, scale: float = 1.0) -> Callable[[Spread], str]:
    """Return a format for ``72.70 ± 0.32``; without the deviation if there are too few runs."""

    def text(value: Spread) -> str:
        mean = f"{scale * value.mean:.{digits}f}"
        return mean if value.std is None else f"{mean} ± {scale * value.std:.{digits}f}"

    return text
