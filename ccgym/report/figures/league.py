"""Figures of a league besides its ranking: performance profiles, how often one scheme is better than another, and ranks
by the weight of throughput against delay.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.experiments.views.league import League
from ccgym.experiments.views.league_section import WEIGHTS
from ccgym.report.cells import DIVERGING, MARGIN_IN, cell_axes, draw_cell, draw_head
from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, blank_figure, finish, legible
from ccgym.report.table import counted

COLUMNS: Final = 3
WIDTH_IN: Final = 13.0
PANEL_IN: Final = 3.6
SHOWN: Final = 8
"""Schemes in color: the first of the ranking over all sections."""
LOWEST: Final = -5.0
"""Where the axis of ratings begins."""

CELL_IN: Final = 0.3
NAMES_IN: Final = 1.6
TOP_IN: Final = 0.8
LEAST_WIDTH_IN: Final = 6.2
"""Room for the title of the heat map."""

WEIGHTS_IN: Final = 9.0
ROW_IN: Final = 0.27


@figure("league_profiles", "Performance profiles: paths on which a scheme is rated at least so", page="league", order=2)
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
        # The colored ones above the gray ones.
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
        if place >= COLUMNS:  # the axes above have the numbers of their column then
            grid[place - COLUMNS].tick_params(labelbottom=True)
    legend = grid[len(league.sections)]
    for key in colored:
        style = styles[key]
        legend.plot([], [], marker=style.marker, color=legible(style.color), linewidth=1.7, label=style.label)
    for key in references:
        legend.plot([], [], color=MUTED, linestyle=":", label=f"{styles[key].label} (knows the path)")
    legend.plot([], [], color="#d5d5d5", linewidth=1.2, label="the others")
    legend.legend(loc="center left", labelcolor=INK)
    drawn.supxlabel("rating: 0 is all that a path allows, −1 half", fontsize=11)
    drawn.supylabel("paths with at least this rating (%)", fontsize=11)
    return finish(drawn, top_in=0.3)


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


@figure("league_weights", "Ranks by the weight of throughput against delay", page="league", order=4)
def weights_figure(league: League) -> Figure:
    """Draw the lines. Call within :func:`~ccgym.report.style.house_style`."""
    ranks = league.weighted
    drawn = blank_figure(WEIGHTS_IN, 1.5 + ROW_IN * len(ranks))
    axes = drawn.subplots()
    places = range(len(WEIGHTS))
    styles = {one.key: one.style for one in league.members}
    for key, own in ranks.items():
        style, line = styles[key], [own[weight] for weight in WEIGHTS]
        axes.plot(
            places, line, marker=style.marker, color=legible(style.color), linewidth=1.5, markersize=6, clip_on=False
        )  # fmt: skip
        axes.text(-0.08, line[0], f"{style.label}  {line[0]}", ha="right", va="center", fontsize=9, color=INK)
        axes.text(len(WEIGHTS) - 0.92, line[-1], f"{line[-1]}  {style.label}", va="center", fontsize=9, color=INK)
    axes.set_xlim(-1.1, len(WEIGHTS) + 0.1)
    axes.set_ylim(len(ranks) + 0.5, 0.5)
    axes.set_xticks(places, [f"{weight:g}" for weight in WEIGHTS])
    axes.set_yticks([])
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("weight w of the throughput: w · log₂(throughput / capacity) − log₂(round trip / base)")
    return finish(drawn, "Ranks, where throughput and delay count", (), 0.3)
