"""Rankings: a panel per group of paths or section, schemes from best to worst, scores with their intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.evaluation.bootstrap import Ranked
from ccgym.experiments.views.league import League
from ccgym.experiments.views.scorecard import Group, Scorecard
from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, axes_at, blank_figure, legible, text_at
from ccgym.report.table import counted, number
from ccgym.schemes.style import SchemeStyle

COLUMNS: Final = 2
WIDTH_IN: Final = 13.0
ROW_IN: Final = 0.29
HEAD_IN: Final = 0.62
"""Room of a panel for its title, inches."""
EDGES_IN: Final = 1.1
"""Room of a panel above and below its lines, inches."""
FOOT_IN: Final = 0.4
CHARACTER_IN: Final = 0.083
"""Approximate width of a character of a scheme's name, inches."""
NUMBER_IN: Final = 0.75
"""Room for the number at the end of a line, inches."""
TITLE_CHARACTERS: Final = 66
"""Max characters of a title in one line; longer titles have two lines."""


@figure("scorecard_ranking", "Mean scores with intervals, by group of paths", page="scorecard", order=2)
def ranking_figure(card: Scorecard) -> Figure:
    """Draw the panels. Call within :func:`~ccgym.report.style.house_style`."""
    return draw_rankings(
        [(title, card.rankings[group.name]) for group, title in _panels(card)],
        [one.style for one in card.schemes],
        "Mean score with 95 % bootstrap interval over paths and runs; 0 is the limit, −1 is half the power. "
        "Hollow: knows the path, and has no rank.",
    )


@figure("league_ranking", "Ratings with intervals, of all sections and of each", page="league", order=1)
def league_ranking_figure(league: League) -> Figure:
    """Draw the panels. Call within :func:`~ccgym.report.style.house_style`."""
    titles = {"all": "All sections"} | {
        one.name: f"{one.test.title} ({counted(len(one.places), 'path')})" for one in league.sections
    }
    return draw_rankings(
        [(titles[name], ranking) for name, ranking in league.rankings.items() if ranking],
        [one.style for one in league.members],
        "Interquartile mean of the rating with 95 % bootstrap interval over paths; 0 is the best that a path allows, "
        "−1 is half. Hollow: knows the path, and has no rank.",
    )


def draw_rankings(panels: Sequence[tuple[str, Sequence[Ranked]]], styles: Sequence[SchemeStyle], note: str) -> Figure:
    """Draw a panel for each ranking.

    Args:
        panels: Titles and rankings.
        styles: The schemes.
        note: Text below the panels.
    """
    rows = max(1, math.ceil(len(panels) / COLUMNS))
    lines = max((len(ranking) for _, ranking in panels), default=1)
    panel = lines * ROW_IN + EDGES_IN
    height = rows * panel + FOOT_IN
    drawn = blank_figure(WIDTH_IN, height)
    longest = max((len(one.label) for one in styles), default=0)
    left = 0.65 + CHARACTER_IN * longest
    wide = WIDTH_IN / COLUMNS - left - NUMBER_IN
    low = min((place.score.low for _, ranking in panels for place in ranking), default=-1.0)
    for index, (title, ranking) in enumerate(panels):
        row, column = divmod(index, COLUMNS)
        bottom = height - row * panel - HEAD_IN - len(ranking) * ROW_IN
        axes = axes_at(drawn, column * WIDTH_IN / COLUMNS + left, bottom, wide, len(ranking) * ROW_IN)
        axes.set_title(title, loc="left", fontsize=11, weight="bold", x=-(left - 0.25) / wide)
        _panel(axes, ranking, {one.key: legible(one.color) for one in styles}, low)
    text_at(drawn, 0.25, 0.2, note, fontsize=9.5, color=MUTED)
    return drawn


def _panels(card: Scorecard) -> list[tuple[Group, str]]:
    """Return the groups that have rankings, and their titles; groups with the same paths share a panel."""
    titles: dict[tuple[str, ...], list[Group]] = {}
    for group in card.groups:
        if card.rankings[group.name]:
            titles.setdefault(group.paths, []).append(group)
    return [(groups[0], _title(card, groups)) for groups in titles.values()]


def _title(card: Scorecard, groups: list[Group]) -> str:
    first, *others = (group.title for group in groups)
    count, of = len(card.ranked_paths(groups[0])), len(groups[0].paths)
    paths = f"{count} of {of} paths" if count != of else counted(count, "path")
    words = ", ".join([first, *(other[0].lower() + other[1:] for other in others)])
    return "\n".join(textwrap.wrap(f"{words} ({paths})", TITLE_CHARACTERS, max_lines=2, placeholder=f" … ({paths})"))


def _panel(axes: Axes, ranking: Sequence[Ranked], colors: Mapping[str, str], low: float) -> None:
    for line, place in enumerate(ranking):
        _line(axes, line, place, colors[place.scheme])
    axes.set_ylim(len(ranking) - 0.4, -0.6)
    axes.set_xlim(low - 0.04 * abs(low), 0.03 * abs(low))
    axes.set_yticks(range(len(ranking)), [_label(place) for place in ranking], fontsize=10)
    for tick, place in zip(axes.get_yticklabels(), ranking, strict=True):
        tick.set_color(MUTED if place.reference else INK)
    axes.tick_params(axis="y", length=0, pad=6)
    axes.tick_params(axis="x", labelsize=9)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)


def _label(place: Ranked) -> str:
    return place.label if place.rank is None else f"{place.label}   {place.rank}"


def _line(axes: Axes, line: int, place: Ranked, color: str) -> None:
    shown = MUTED if place.reference else INK
    axes.plot([place.score.low, place.score.high], [line, line], color=shown, linewidth=1.6, solid_capstyle="butt")
    axes.plot(
        place.score.mean, line, marker="o", markersize=7, color="white" if place.reference else color,
        markeredgecolor=shown, markeredgewidth=1.1, zorder=3,
    )  # fmt: skip
    axes.annotate(
        number(2)(place.score.mean), (1.0, line), xycoords=("axes fraction", "data"), xytext=(8, 0),
        textcoords="offset points", va="center", ha="left", fontsize=9, color=shown, annotation_clip=False,
    )  # fmt: skip
