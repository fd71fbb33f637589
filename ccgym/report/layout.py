"""Parts around and on the axes of figures: titles, margins, marks of schemes, legends that fit.

Call all of it within :func:`~ccgym.report.style.house_style`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from ccgym.report.style import COLUMN_AXES_IN, INK, legible, medium
from ccgym.schemes.style import SchemeStyle

LEGEND_ROW: Final = 1.55
"""Height of a legend's row, in font sizes."""

MARK_SCALE: Final = {"*": 1.55, **dict.fromkeys("^<>vphH", 1.1), "D": 0.85, "s": 0.95}
"""Relative size per marker, so that all markers look equally large."""


def text_widths(texts: Sequence[str], size_pt: float, weight: str = "normal") -> list[float]:
    """Return the widths of lines of text, inches."""
    font = FontProperties(family=rcParams["font.family"], size=size_pt, weight=weight)
    return [_paper().get_text_width_height_descent(text, font, ismath=False)[0] / 72 for text in texts]


@cache
def _paper() -> Any:
    """Return a canvas on which text is measured."""
    canvas: Any = FigureCanvasAgg(Figure(dpi=72))
    return canvas.get_renderer()


def add_title(figure: Figure, text: str) -> None:
    """Write a title into the upper left corner."""
    width, height = figure.get_size_inches()
    place: dict[str, Any] = {"x": 0.15 / width, "y": 1 - 0.12 / height, "ha": "left", "va": "top"}
    figure.suptitle(text, color=INK, weight="bold", fontsize=rcParams["axes.titlesize"], **place)


def set_margins(figure: Figure, left: float, right: float, top: float, bottom: float, axes_in: float = 4.6) -> None:
    """Leave room around the axes, in multiples of the text's size. The axes keep their height, ``axes_in`` inches or on
    paper :data:`COLUMN_AXES_IN`; the figure grows."""
    unit = medium().text_pt / 72
    width = figure.get_size_inches()[0] / unit
    height = (COLUMN_AXES_IN if medium().column else axes_in) / unit + top + bottom
    figure.set_size_inches(width * unit, height * unit)
    figure.subplots_adjust(left=left / width, right=1 - right / width, top=1 - top / height, bottom=bottom / height)


def hide_unused(grid: npt.NDArray[Any], used: int, label: str = "") -> None:
    """Hide the panels after the first ``used``; the lowest panel of each column has the numbers and ``label``."""
    for place, axes in enumerate(grid.flat):
        axes.set_visible(place < used)
        if place < used <= place + grid.shape[1]:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(label)


def label_places(axes: Axes, labels: Sequence[str], room_in: float) -> None:
    """Write words below the places 0, 1, …; slanted if they have no room side by side."""
    size = rcParams["xtick.labelsize"]
    slanted = max(text_widths(labels, size), default=0.0) > 0.95 * room_in / max(1, len(labels))
    style: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(len(labels)), labels, **style)


def mark_style(style: SchemeStyle, size: float, edge: str = "white", hollow: bool = False) -> dict[str, Any]:
    """Return the style of a scheme's mark, for ``axes.plot`` and legends; all markers look equally large.

    Args:
        style: Style of the scheme.
        size: Diameter, points.
        edge: Color of the outline of filled marks.
        hollow: Whether marks are white inside.
    """
    color = legible(style.color)
    line = style.marker in "1234+x|_"
    return {
        "linestyle": "", "marker": style.marker, "markersize": size * MARK_SCALE.get(style.marker, 1.0),
        "markerfacecolor": "white" if hollow else color, "markeredgecolor": color if line or hollow else edge,
        "markeredgewidth": 1.3 if line or hollow else 0.6,
    }  # fmt: skip


def scheme_handles(styles: Iterable[SchemeStyle], size: float = 6, *, line: bool = True) -> list[Line2D]:
    """Return the legend entries of schemes."""
    return [
        Line2D(
            [], [], label=style.label, color=legible(style.color), linewidth=1.8,
            **{**mark_style(style, size, legible(style.color)), **({"linestyle": "-"} if line else {})},
        )
        for style in styles
    ]  # fmt: skip


def _handle_em(handles: Sequence[Line2D]) -> float:
    """Return the length of a legend's handles, in font sizes."""
    return 2.0 if any(one.get_linestyle() != "None" for one in handles) else 1.0


def legend_rows(handles: Sequence[Line2D], room_in: float, size_pt: float) -> int:
    """Return the number of rows of a legend that fits into a width."""
    beside = (_handle_em(handles) + 2.0) * size_pt / 72  # handle, and space around it
    widths = [width + beside for width in text_widths([str(one.get_label()) for one in handles], size_pt)]
    fitting = (
        columns
        for columns in range(len(handles), 1, -1)
        if sum(max(part) for part in np.array_split(widths, columns)) <= room_in
    )
    return -(-len(handles) // next(fitting, 1))


def draw_legend(figure: Figure, handles: Sequence[Line2D], rows: int, size_pt: float, **place: Any) -> None:
    """Draw a legend of the whole figure."""
    figure.legend(
        handles=list(handles), ncols=-(-len(handles) // rows), fontsize=size_pt, columnspacing=1.4, handletextpad=0.5,
        handlelength=_handle_em(handles), borderpad=0, borderaxespad=0, labelspacing=0.5, **place,
    )  # fmt: skip


def finish(figure: Figure, title: str = "", handles: Sequence[Line2D] = (), top_in: float | None = None) -> Figure:
    """Write the title and the legend below it; arrange the axes below, once for all formats.

    Args:
        figure: The figure with its axes. It grows if title or legend need more than a line.
        title: Title of the figure.
        handles: Entries of the legend.
        top_in: Room for one line of title and one line of legend, inches; by default 0.5, with a legend 0.82.
    """
    width, height = figure.get_size_inches()
    size = rcParams["axes.titlesize"]
    title = "\n".join(wrapped(line, width - 0.3, size, "bold") for line in title.splitlines())
    lines = title.count("\n") + 1
    rows = legend_rows(handles, width - 0.3, 10) if handles else 0
    more = 0.21 * (lines - 1) + LEGEND_ROW * 10 / 72 * max(0, rows - 1)
    figure.set_size_inches(width, height + more)
    height += more
    if top_in is None:
        top_in = 0.82 if handles else 0.5
    add_title(figure, title)
    if handles:
        below = 0.2 + 0.21 * lines
        draw_legend(figure, handles, rows, 10, loc="upper left", bbox_to_anchor=(0.15 / width, 1 - below / height))
    ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - (top_in + more) / height)).execute(figure)
    return figure


def wrapped(text: str, room_in: float, size_pt: float, weight: str = "normal") -> str:
    """Return a text with line breaks, so that it fits into a width."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_widths([longer], size_pt, weight)[0] <= room_in:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)
