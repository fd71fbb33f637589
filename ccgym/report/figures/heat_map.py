"""The heat map of a scorecard: a row per path, a column per scheme, colored by score, the number inside.

Rows are in the sections of the suite, each section below its mean. Columns go from the best scheme to the worst;
schemes that know the path are separate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.experiments.views.path_result import CardScheme, PathResult
from ccgym.experiments.views.scorecard import Scorecard
from ccgym.report.cells import MARGIN_IN, MIDDLE, cell_axes, draw_cell, draw_corner
from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, blank_figure, color_bar_at, text_at
from ccgym.report.table import NOTHING, number

WORST: Final = -4.0
"""All scores at or below this value have the same color: a sixteenth of the power."""
COLORS: Final = LinearSegmentedColormap.from_list(
    "ccgym-score",
    ["#9c2f22", "#c9583c", "#e59a6f", "#f5d3ae", "#f6efe2", "#cfe2dc", "#8fc0bf", "#4493a1", "#17627f"],
)
"""Colors from the worst score to zero."""

CELL_W_IN: Final = 0.66
CELL_H_IN: Final = 0.235
LABELS_IN: Final = 3.25
"""Room for the names of the paths, inches."""
HEAD_IN: Final = 1.75
"""Min room for title and scale, inches; long names of schemes need more."""
FOOT_IN: Final = 0.2
SLANT: Final = 38.0
"""Angle of the schemes' names, degrees."""
CHARACTER_IN: Final = 0.09
"""Approximate width of a character of the schemes' names, inches."""
GAP: Final = 0.55
"""Space between sections, rows."""
APART: Final = 0.3
"""Space between schemes that know the path and other schemes, columns."""


class _Row(NamedTuple):
    """A row: a path, or the mean of a section."""

    label: str
    facts: str
    top: float
    paths: tuple[str, ...]
    mean: bool


@figure("scorecard_heat_map", "Heat map of scores: paths down, schemes across", page="scorecard", order=1)
def heat_map_figure(card: Scorecard) -> Figure:
    """Draw the map. Call within :func:`~ccgym.report.style.house_style`."""
    columns = columns_of(card)
    rows = list(_rows(card))
    height_rows = rows[-1].top + 1 if rows else 1.0
    right = columns[-1][1] + 1 if columns else 1.0
    longest = CHARACTER_IN * max((len(one.style.label) for one, _ in columns), default=0)
    head = max(HEAD_IN, math.sin(math.radians(SLANT)) * longest + 0.4)
    width = MARGIN_IN + LABELS_IN + right * CELL_W_IN + math.cos(math.radians(SLANT)) * longest
    height = head + height_rows * CELL_H_IN + FOOT_IN
    drawn = blank_figure(width, height)
    axes = cell_axes(drawn, MARGIN_IN + LABELS_IN, right, height_rows, (CELL_W_IN, CELL_H_IN), FOOT_IN)
    for row in rows:
        _name(axes, row)
        for one, left in columns:
            _cell(axes, row, left, [card.path_results[path, one.key] for path in row.paths])
    for one, left in columns:
        axes.text(
            left + 0.42, -0.35, one.style.label, rotation=SLANT, rotation_mode="anchor", ha="left", va="bottom",
            fontsize=10, color=MUTED if one.reference else INK, style="italic" if one.reference else "normal",
        )  # fmt: skip
    _scale(drawn, card, height)
    return drawn


def columns_of(card: Scorecard) -> list[tuple[CardScheme, float]]:
    """Return the schemes from left to right with their left edge: schemes that know the path, then by rank."""
    by_key = {one.key: one for one in card.schemes}
    ranked = [by_key[place.scheme] for place in card.rankings[card.groups[0].name]] if card.groups else []
    # A scheme without numbers is not in the ranking, and has no column.
    references = [one for one in ranked if one.reference]
    others = [one for one in ranked if not one.reference]
    apart = APART if references and others else 0.0
    return [
        *((one, float(place)) for place, one in enumerate(references)),
        *((one, len(references) + apart + place) for place, one in enumerate(others)),
    ]


def _rows(card: Scorecard) -> Iterator[_Row]:
    everything = tuple(path.name for path in card.paths)
    top = 0.0
    yield _Row(f"Mean of all {len(everything)} paths", "", top, everything, mean=True)
    for section, title in card.sections.items():
        members = [path for path in card.paths if path.section == section]
        if not members:
            continue
        top += 1 + GAP
        yield _Row(title, "", top, tuple(path.name for path in members), mean=True)
        for path in members:
            top += 1
            yield _Row(path.name, path.facts, top, (path.name,), mean=False)


def _name(axes: Axes, row: _Row) -> None:
    middle = row.top + 0.52
    if row.mean:
        axes.text(-0.15, middle, row.label, ha="right", va="center", fontsize=9.5, weight="bold", color=INK)
        return
    axes.text(-0.15 - 1.62 / CELL_W_IN, middle, row.label, ha="right", va="center", fontsize=8.5, color=INK)
    axes.text(-0.15, middle, row.facts, ha="right", va="center", fontsize=8.5, color=MUTED)


def _cell(axes: Axes, row: _Row, left: float, path_results: Sequence[PathResult]) -> None:
    scores = [result.score for result in path_results if result.score is not None]
    if not scores or len(scores) < len(path_results):
        axes.text(left + 0.5, row.top + 0.52, NOTHING, fontsize=8.5, color=MUTED, **MIDDLE)
        return
    value = float(np.mean(scores))
    color = COLORS(Normalize(WORST, 0.0, clip=True)(value))
    best = not row.mean and path_results[0].best
    ink = draw_cell(axes, left, row.top, color, number(2)(value), weight="bold" if row.mean or best else "normal")
    if best:
        frame = Rectangle((left + 0.03, row.top + 0.07), 0.94, 0.86, fill=False, edgecolor=INK, linewidth=1.1, zorder=3)
        axes.add_patch(frame)
    if not row.mean and path_results[0].trained:
        draw_corner(axes, left + (0.97 if best else 1.0), row.top + (0.07 if best else 0.03), (0.15, 0.36), ink)


def _scale(figure: Figure, card: Scorecard, height: float) -> None:
    """Draw title, color scale and the meaning of the marks above the names of the paths."""
    left, top = MARGIN_IN, height - 0.28
    text_at(figure, left, top, "Score by path and scheme", fontsize=14, weight="bold", color=INK)
    ticks = dict(zip((0.0, 0.25, 0.5, 0.75, 1.0), ("≤ −4", "−3", "−2", "−1", "0"), strict=True))
    color_bar_at(figure, left, top - 0.42, 2.4, 0.14, COLORS, ticks)
    lines = ["0: the physical limit;  −1: half the power", "frame: the best that does not know the path"]
    if any(result.trained for result in card.path_results.values()):
        lines.append("corner: the policy was trained on the path")
    for place, line in enumerate(lines):
        text_at(figure, left, top - 0.8 - 0.18 * place, line, fontsize=8.5, color=MUTED)
