"""Probability of improvement in a league: how often one scheme is better than another, as a heat map."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.experiments.views.league import League
from ccgym.report.figures import figure
from ccgym.report.figures.matrix import DIVERGING
from ccgym.report.style import INK, MUTED, axes_at, blank_figure, color_bar_at, luminance, text_at

CELL_IN: Final = 0.3
NAMES_IN: Final = 1.6
TOP_IN: Final = 0.8
MARGIN_IN: Final = 0.2
LEAST_WIDTH_IN: Final = 6.2
"""Room for the title."""


@figure("league_improvement", "Probability that one scheme is better than another", page="league", order=3)
def improvement_figure(league: League) -> Figure:
    """Draw the heat map. Call within :func:`~ccgym.report.style.house_style`."""
    keys, probability = league.improvements
    labels = {one.key: one.style.label for one in league.members}
    side = len(keys) * CELL_IN
    width = max(LEAST_WIDTH_IN, 2 * MARGIN_IN + NAMES_IN + side)
    drawn = blank_figure(width, TOP_IN + NAMES_IN + side + MARGIN_IN)
    axes = axes_at(drawn, MARGIN_IN + NAMES_IN, MARGIN_IN, side, side)
    axes.set_xlim(0, len(keys))
    axes.set_ylim(len(keys), 0)
    axes.axis("off")
    for row, one in enumerate(keys):
        axes.text(-0.25, row + 0.52, labels[one], ha="right", va="center", fontsize=9.5, color=INK)
        axes.text(
            row + 0.55, -0.25, labels[one], ha="center", va="bottom", rotation=90, fontsize=9.5, color=INK,
            clip_on=False,
        )  # fmt: skip
        for column in range(len(keys)):
            if column == row:
                continue
            value = float(probability[row, column])
            color = DIVERGING(1 - value)
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white", linewidth=1.0))
            ink = INK if luminance(*color[:3]) > 0.3 else "white"
            text = f"{100 * value:.0f}"
            axes.text(column + 0.5, row + 0.53, text, ha="center", va="center", fontsize=7.5, color=ink)
    top = float(drawn.get_size_inches()[1])
    text_at(
        drawn, MARGIN_IN, top - 0.25, "Paths on which the scheme of the row is better (%)", fontsize=13, weight="bold"
    )
    color_bar_at(drawn, MARGIN_IN, top - 0.6, 1.9, 0.13, DIVERGING.reversed(), {0.0: "0", 0.5: "50", 1.0: "100"})
    note = "over all sections, each counting the same; order of the ranking"
    text_at(drawn, MARGIN_IN + 2.1, top - 0.54, note, fontsize=8.5, color=MUTED)
    return drawn
