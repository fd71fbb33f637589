"""Ranks by the weight of throughput against delay: a line per scheme from weight to weight."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from ccgym.experiments.views.league import League
from ccgym.experiments.views.league_section import WEIGHTS
from ccgym.report.figures import figure
from ccgym.report.layout import finish
from ccgym.report.style import INK, blank_figure, legible

WEIGHTS_IN: Final = 9.0

ROW_IN: Final = 0.27


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
