"""Tables on a terminal, whatever its width: numbers are never cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

NOTHING: Final = "–"
"""Where there is no number."""

_ANY_WIDTH: Final = 10_000


def plain_table() -> Table:
    """An empty table in the style of all of ours."""
    return Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)


class FittingTable:
    """The first of several forms of a table that fits the screen; where none does, a list of its numbers.

    Args:
        forms: Tables of the same numbers, the widest first. Columns of numbers must not wrap.
    """

    def __init__(self, *forms: Table) -> None:
        self._forms = forms
        for column in (column for form in forms for column in form.columns if column.no_wrap):
            texts = [_text(column.header), *(_text(cell) for cell in column.cells)]
            column.min_width = max(text.cell_len for whole in texts for text in whole.split())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Called by rich when it is printed."""
        for form in self._forms:
            if Measurement.get(console, options.update(width=_ANY_WIDTH), form).minimum <= options.max_width:
                yield form
                return
        yield from listed(self._forms[0])


def listed(table: Table) -> Sequence[Text]:
    """A table as a list: each row's name, and under it its numbers with their headings, a line each."""
    columns = [(_line(column.header), [_text(cell) for cell in column.cells]) for column in table.columns]
    # A rank has no heading; then the name is in the next column.
    titles = 1 if columns[0][0] else 2
    lines: list[Text] = []
    for row in range(table.row_count):
        title = " ".join(_line(cells[row]) for _, cells in columns[:titles]).strip()
        if title:
            lines.append(Text(title, style="bold"))
        for heading, cells in columns[titles:]:
            if cells[row].plain not in ("", NOTHING):
                lines.append(Text.assemble("  ", (f"{heading}: ", "dim"), *_joined(cells[row])))
    return lines


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _line(cell: object) -> str:
    return " ".join(_text(cell).plain.split())


def _joined(text: Text) -> list[Text]:
    """The lines of a cell in one."""
    return [part for line in text.split() for part in (Text(" "), line)][1:]
