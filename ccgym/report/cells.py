"""Parts of all heat maps: axes of equal cells, a colored cell with its number, and a head with the color scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from ccgym.report.style import INK, MUTED, axes_at, color_bar_at, luminance, text_at

MARGIN_IN: Final = 0.2

DIVERGING: Final = LinearSegmentedColormap.from_list(
    "ccgym-parting", ["#17627f", "#4493a1", "#a9cfcd", "#f7f4ee", "#f0c39b", "#cf6a47", "#9c2f22"]
)
"""Two hues that meet in the middle."""

MIDDLE: Final[dict[str, Any]] = {"ha": "center", "va": "center"}


def cell_axes(
    figure: Figure, left: float, columns: float, rows: float, cell_in: tuple[float, float], bottom: float = MARGIN_IN
) -> Axes:
    """Add axes of ``columns`` times ``rows`` cells, counted from the upper left; left and bottom edge in inches."""
    axes = axes_at(figure, left, bottom, columns * cell_in[0], rows * cell_in[1])
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.axis("off")
    return axes


def draw_cell(
    axes: Axes, left: float, top: float, color: tuple[float, float, float, float], text: str, **style: Any
) -> str:
    """Draw a colored cell with its number; return the color of the number, which is legible on the cell."""
    ink = INK if luminance(*color[:3]) > 0.3 else "white"
    axes.add_patch(Rectangle((left, top), 1, 1, facecolor=color, edgecolor="white", linewidth=1.0))
    axes.text(left + 0.5, top + 0.53, text, color=ink, zorder=4, **{"fontsize": 8.5, **MIDDLE, **style})
    return ink


def draw_corner(axes: Axes, right: float, top: float, size: tuple[float, float], ink: str) -> None:
    """Draw a mark in the upper right corner of a cell."""
    corner = [(right - size[0], top), (right, top), (right, top + size[1])]
    axes.add_patch(Polygon(corner, closed=True, facecolor=ink, linewidth=0, zorder=5))


def draw_head(figure: Figure, title: str, colors: Colormap, ticks: Mapping[float, str], note: str) -> None:
    """Draw title, color scale and a note above the cells."""
    top = float(figure.get_size_inches()[1])
    text_at(figure, MARGIN_IN, top - 0.25, title, fontsize=13, weight="bold", color=INK)
    color_bar_at(figure, MARGIN_IN, top - 0.6, 1.9, 0.13, colors, ticks)
    text_at(figure, MARGIN_IN + 2.1, top - 0.54, note, fontsize=8.5, color=MUTED)
