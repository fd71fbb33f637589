"""One table, four forms: terminal, Markdown, CSV and HTML.

A :class:`Table` is columns and rows of values. A column knows its heading, its unit and how its values are
written; a row holds a value per column. Everything in ccgym that shows a table builds one of these.
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
"""What a cell or a row says besides its text. Also its CSS class."""

TERMINAL_STYLES: Final[Mapping[Tone, str]] = {
    "": "", "best": "bold", "good": "green", "bad": "bold red", "unknown": "yellow", "muted": "dim",
    "reference": "italic",
}  # fmt: skip
"""Tones in a terminal. Markdown writes ``best`` and ``bad`` in bold."""

_ANY_WIDTH: Final = 10_000


@dataclass(frozen=True)
class Cell:
    """A value with a tone."""

    value: Any
    """Formatted by the column."""
    tone: Tone = ""


@dataclass(frozen=True)
class Column:
    """A column: its heading, how its values are written, and what narrow screens do with it."""

    name: str
    """Key of the column's values in rows, and its heading in CSV."""
    label: str
    """Heading without the unit. May break lines where it is shown on a screen."""
    unit: str = ""
    """Unit, shown in parentheses."""
    format: Callable[[Any], str] = str
    """Writes a value. None is written as :data:`NOTHING`, a text as it is."""
    align: Literal["left", "right"] = "right"
    better: Literal["max", "min", ""] = ""
    """Which direction is better: pages sort by it."""
    short: str = ""
    """Heading with its unit on a narrow screen."""
    group: str = ""
    """Word before the heading of columns that belong together, and what pages show muted: ``published``."""
    under: str = ""
    """Column below which a narrow screen shows this one's values."""
    optional: bool = False
    """Whether a screen without room for every column leaves this one out."""
    max_width: int | None = None
    """Characters after which a screen breaks the lines of this column."""

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
    """Columns and rows. A rich console prints it as it fits."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    """Lines that belong below the table."""
    legend: str = ""
    """What the short headings mean."""
    kind: str = ""
    """CSS class on pages; ``stack`` shows rows as lists on a phone."""

    def cell(self, row: Row, column: Column) -> Cell:
        """The value of a row in a column, with its tone."""
        value = row.values.get(column.name)
        return value if isinstance(value, Cell) else Cell(value)

    def text(self, row: Row, column: Column | str) -> str:
        """The text of a row in a column. Lines break where a screen breaks them."""
        if isinstance(column, str):
            column = next(one for one in self.columns if one.name == column)
        value = self.cell(row, column).value
        if value is None or isinstance(value, str):
            return NOTHING if value is None else value
        return column.format(value)

    def texts(self, row: Row) -> list[str]:
        """All texts of a row, each in one line."""
        return [" ".join(self.text(row, column).split()) for column in self.columns]

    def sort_key(self, row: Row, column: Column) -> float | None:
        """The number by which pages sort a cell; None where it has none."""
        value = self.cell(row, column).value
        value = getattr(value, "mean", value)
        return float(value) if isinstance(value, (int, float)) else None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The widest form that fits the screen; where none does, each row's name and a line for each of its numbers."""
        measured = options.update(width=_ANY_WIDTH)
        for form in self._forms():
            if Measurement.get(console, measured, form).minimum <= options.max_width:
                yield form
                return
        # A rank has no heading; then the name is in the next column.
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
        """From the widest to the narrowest."""
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
        """GitHub-flavored Markdown, without the notes."""
        lines = [
            [column.heading for column in self.columns],
            ["---" if column.align == "left" else "---:" for column in self.columns],
        ]
        for row in self.rows:
            tones = [self.cell(row, column).tone for column in self.columns]
            # Labels come from cards and files of others: no HTML of theirs.
            texts = [text.replace("<", "&lt;") for text in self.texts(row)]
            lines.append([f"**{t}**" if tone in ("best", "bad") else t for t, tone in zip(texts, tones, strict=True)])
        head, rule, *rows = ["| " + " | ".join(texts) + " |" for texts in lines]
        return "\n".join([head, rule.replace(" ", ""), *rows]) + "\n"

    def csv(self) -> str:
        """The values as they are, under the names of the columns; None is empty."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows([self.cell(row, column).value for column in self.columns] for row in self.rows)
        return buffer.getvalue()


def counted(count: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def number(digits: int, scale: float = 1.0) -> Callable[[float], str]:
    """Formats numbers with this many digits after the point and a real minus."""

    def text(value: float) -> str:
        found = f"{scale * value:.{digits}f}".replace("-", "−")
        return found.lstrip("−") if not any(digit in found for digit in "123456789") else found

    return text


def spread(digits: int, scale: float = 1.0) -> Callable[[Spread], str]:
    """Formats ``72.70 ± 0.32``; without the deviation where runs cannot show one."""

    def text(value: Spread) -> str:
        mean = f"{scale * value.mean:.{digits}f}"
        return mean if value.std is None else f"{mean} ± {scale * value.std:.{digits}f}"

    return text
