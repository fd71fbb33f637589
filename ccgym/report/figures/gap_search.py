"""Results of the searches for gaps over training: the gap, and each parameter of the path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.coordinates import coordinate_parts
from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, PLAIN, blank_figure

PANEL_IN: Final = (3.1, 2.6)

COLUMNS: Final = 3

SKEW: Final = 10.0
"""Parameters whose largest value is more than this many times the median are drawn on a logarithmic axis."""

NOT_AXES: Final = ("step", "guided", "joined", "gap")
"""Columns that are no parameter of the path; columns that begin with ``reward_`` are none, either."""

Rows = Sequence[Mapping[str, str]]
"""Rows of ``curriculum.csv``."""


@figure("gap_search", "results of the searches for gaps during training", page="command")
def gap_search_figure(searches: Mapping[int, Rows], *, title: str = "", color: str = "sienna") -> Figure:
    """Draw the results of the searches of several seeds: the gap, and each parameter of the path. Call within
    :func:`ccgym.report.style.house_style`.

    Args:
        searches: The rows of ``curriculum.csv`` by seed, at least one row each.
        title: Title of the figure.
        color: Color of the points that joined the mixture; other points are gray.
    """
    first = next(iter(searches.values()))[0]
    names = [name for name in first if name not in NOT_AXES and not name.startswith("reward_")]
    height = math.ceil((len(names) + 1) / COLUMNS)
    drawn = blank_figure(PANEL_IN[0] * COLUMNS, PANEL_IN[1] * height)
    panels: list[Axes] = list(drawn.subplots(height, COLUMNS, sharex=True, squeeze=False).flat)
    for panel, name in zip(panels, ["gap", *names], strict=False):
        tried = [(row, float(row[name])) for rows in searches.values() for row in rows]
        _scatter(panel, [pair for pair in tried if pair[0]["joined"] == "0"], MUTED, 6, 0.45, "tried")
        _scatter(panel, [pair for pair in tried if pair[0]["joined"] == "1"], color, 26, 0.9, "joined")
        positive = [value for _, value in tried if value > 0]
        if name != "gap" and positive and max(positive) >= SKEW * median(positive):
            # Zero, such as no loss, has no logarithm.
            if len(positive) < len(tried):
                panel.set_yscale("symlog", linthresh=min(positive))
            else:
                panel.set_yscale("log")
            panel.yaxis.set_major_formatter(PLAIN)
        panel.set_title(label(name), fontsize=10, color=INK)
        panel.tick_params(labelsize=8)
    panels[0].axhline(0, color=INK, linewidth=0.8)
    panels[0].legend(fontsize=8, loc="lower right")
    for panel in panels[len(names) + 1 :]:
        panel.set_axis_off()
    drawn.supxlabel("million decisions", fontsize=10)
    if title:
        drawn.suptitle(title, fontsize=12, color=INK)
    drawn.set_layout_engine("constrained")
    return drawn


def label(name: str) -> str:
    """Return a column's label: ``one_way_delay_ms`` becomes *one way delay, ms*."""
    return "gap, reward per decision" if name == "gap" else ", ".join(filter(None, coordinate_parts(name)))


def _scatter(
    panel: Axes, found: Sequence[tuple[Mapping[str, str], float]], color: str, size: float, alpha: float, name: str
) -> None:
    steps = [float(row["step"]) / 1e6 for row, _ in found]
    panel.scatter(steps, [value for _, value in found], s=size, color=color, alpha=alpha, linewidth=0, label=name)
