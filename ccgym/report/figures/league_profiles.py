"""Performance profiles of a league: the fraction of paths on which each scheme has at least a given rating."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.experiments.views.league import League
from ccgym.report.figures import figure
from ccgym.report.layout import finish
from ccgym.report.style import INK, MUTED, blank_figure, legible
from ccgym.report.table import counted

COLUMNS: Final = 3

WIDTH_IN: Final = 13.0

PANEL_IN: Final = 3.6

SHOWN: Final = 8
"""Number of schemes in color: the first schemes of the ranking over all sections."""

LOWEST: Final = -5.0
"""Lower end of the axis of ratings."""


@figure("league_profiles", "Performance profiles: paths with at least a given rating", page="league", order=2)
def profiles_figure(league: League) -> Figure:
    """Draw a panel per section. Call within :func:`~ccgym.report.style.house_style`."""
    ranking = next(iter(league.rankings.values()))
    colored = [place.scheme for place in ranking if not place.reference][:SHOWN]
    styles = {one.key: one.style for one in league.members}
    references = [one.key for one in league.members if one.reference]
    rows = math.ceil((len(league.sections) + 1) / COLUMNS)
    drawn = blank_figure(WIDTH_IN, rows * PANEL_IN)
    grid = drawn.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True).ravel()
    at = np.linspace(LOWEST, 0.0, 201)
    for axes, section in zip(grid, league.sections, strict=False):
        rated = section.ratings().mean(axis=1)
        axes.set_title(f"{section.test.title} ({counted(len(section.places), 'path')})", fontsize=11)
        # Colored lines are above gray lines.
        for place, one in sorted(enumerate(section.members), key=lambda pair: pair[1].key in colored):
            reached = [100 * float(np.mean(rated[:, place] >= level)) for level in at]
            style = styles[one.key]
            if one.key in references:
                axes.plot(at, reached, color=MUTED, linewidth=1.4, linestyle=":")
            elif one.key in colored:
                axes.plot(at, reached, color=legible(style.color), linewidth=1.7)
                marks = at.searchsorted(np.linspace(LOWEST, 0, 9)[1:-1] + 0.03 * colored.index(one.key))
                axes.plot(
                    at[marks], np.array(reached)[marks], style.marker, color=legible(style.color), markersize=5
                )  # fmt: skip
            else:
                axes.plot(at, reached, color="#d5d5d5", linewidth=0.8, zorder=1)
        axes.set_xlim(LOWEST, 0)
        axes.set_ylim(0, 100)
    for place, axes in enumerate(grid[len(league.sections) :], start=len(league.sections)):
        axes.axis("off")
        if place >= COLUMNS:  # then the axes above have the numbers of their column
            grid[place - COLUMNS].tick_params(labelbottom=True)
    legend = grid[len(league.sections)]
    for key in colored:
        style = styles[key]
        legend.plot([], [], marker=style.marker, color=legible(style.color), linewidth=1.7, label=style.label)
    for key in references:
        legend.plot([], [], color=MUTED, linestyle=":", label=f"{styles[key].label} (knows the path)")
    legend.plot([], [], color="#d5d5d5", linewidth=1.2, label="the others")
    legend.legend(loc="center left", labelcolor=INK)
    drawn.supxlabel("rating: 0 is the best that a path allows, −1 is half", fontsize=11)
    drawn.supylabel("paths with at least this rating (%)", fontsize=11)
    return finish(drawn, top_in=0.3)
