"""Probability of improvement in a league: how often one scheme is better than another, as a heat map."""

from __future__ import annotations

from typing import Any, Final

from matplotlib.figure import Figure

from ccgym.experiments.views.league import League
from ccgym.report.cells import DIVERGING, MARGIN_IN, cell_axes, draw_cell, draw_head
from ccgym.report.figures import figure
from ccgym.report.style import INK, blank_figure

CELL_IN: Final = 0.3

NAMES_IN: Final = 1.6

TOP_IN: Final = 0.8

LEAST_WIDTH_IN: Final = 6.2
"""Room for the title of the heat map."""


@figure("league_improvement", "Probability that one scheme is better than another", page="league", order=3)
def improvement_figure(league: League) -> Figure:
    """Draw the heat map. Call within :func:`~ccgym.report.style.house_style`."""
    keys, probability = league.improvements
    labels = {one.key: one.style.label for one in league.members}
    side = len(keys) * CELL_IN
    width = max(LEAST_WIDTH_IN, 2 * MARGIN_IN + NAMES_IN + side)
    drawn = blank_figure(width, TOP_IN + NAMES_IN + side + MARGIN_IN)
    axes = cell_axes(drawn, MARGIN_IN + NAMES_IN, len(keys), len(keys), (CELL_IN, CELL_IN))
    name: dict[str, Any] = {"fontsize": 9.5, "color": INK, "clip_on": False}
    for row, one in enumerate(keys):
        axes.text(-0.25, row + 0.52, labels[one], ha="right", va="center", **name)
        axes.text(row + 0.55, -0.25, labels[one], ha="center", va="bottom", rotation=90, **name)
        for column in range(len(keys)):
            if column != row:
                value = float(probability[row, column])
                draw_cell(axes, column, row, DIVERGING(1 - value), f"{100 * value:.0f}", fontsize=7.5)
    draw_head(
        drawn, "Paths on which the scheme of the row is better (%)", DIVERGING.reversed(),
        {0.0: "0", 0.5: "50", 1.0: "100"}, "over all sections, each counting the same; order of the ranking",
    )  # fmt: skip
    return drawn
