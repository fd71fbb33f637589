"""Verdicts of an experiment: schemes × tests, passed or not, with the number that decided."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.experiments.results import ExperimentResults, Verdict
from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, blank_figure
from ccgym.report.table import NOTHING

FILLS: Final[dict[Verdict, str]] = {"pass": "#cfe8d5", "fail": "#f3cfc8", "incomplete": "#e8e8e8", "none": "#f4f4f4"}
EDGES: Final[dict[Verdict, str]] = {"pass": "#2a7a45", "fail": "#b3261e", "incomplete": "#6b6b6b", "none": "#6b6b6b"}
"""Color of its verdict."""
MARKS: Final[dict[Verdict, str]] = {"pass": "✓ pass", "fail": "✗ fail", "incomplete": "? incomplete", "none": ""}
"""Verdicts in words, so that they do not depend on color."""

COLUMN_IN: Final = 1.66
ROW_IN: Final = 0.62
NAMES_IN: Final = 1.9
"""Room for the schemes' names, inches."""
HEAD_IN: Final = 1.05
"""Room for the tests' names, inches."""
CHARACTERS: Final = 19
"""Characters of a line in the head."""


@figure(
    "overview",
    "Matrix of schemes and tests: passed or failed, with the number that decided",
    page="experiment",
)
def verdicts_figure(results: ExperimentResults) -> Figure:
    """Draw the matrix. Call within ``house_style``."""
    columns, rows = len(results.tests), len(results.styles)
    width, height = NAMES_IN + COLUMN_IN * columns + 0.15, HEAD_IN + ROW_IN * rows + 0.15
    drawn = blank_figure(width, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for column, test in enumerate(results.tests):
        middle = NAMES_IN + COLUMN_IN * (column + 0.5)
        title = "\n".join(textwrap.wrap(test.title, CHARACTERS))
        # Signs and units stay with their numbers.
        together = re.sub(r"([≤≥]) |(\d) (?=%|s\b)", lambda found: f"{found[1] or found[2]}\u00a0", test.brief)
        brief = "\n".join(textwrap.wrap(together, CHARACTERS + 5))
        axes.text(middle, 0.1, title, ha="center", va="top", weight="bold", color=INK, fontsize=10, linespacing=1.1)
        axes.text(middle, HEAD_IN - 0.06, brief, ha="center", va="bottom", color=MUTED, fontsize=8, linespacing=1.1)
    for row, style in enumerate(results.styles):
        top = HEAD_IN + ROW_IN * row
        axes.text(0.15, top + 0.24, style.label, va="center", color=INK, fontsize=11, weight="bold")
        count = f"{passed} passed" if (passed := results.passed_text(style.key)) else ""
        axes.text(0.15, top + 0.45, count, va="center", color=MUTED, fontsize=9)
        for column, test in enumerate(results.tests):
            outcome = results.outcome(test, style.key)
            left = NAMES_IN + COLUMN_IN * column
            color = FILLS[outcome.verdict]
            axes.add_patch(Rectangle((left + 0.03, top + 0.03), COLUMN_IN - 0.06, ROW_IN - 0.06, facecolor=color, lw=0))
            centered: dict[str, Any] = {"x": left + COLUMN_IN / 2, "ha": "center", "va": "center"}
            axes.text(y=top + 0.24, s=outcome.headline or NOTHING, color=INK, fontsize=10.5, **centered)
            mark, color = MARKS[outcome.verdict], EDGES[outcome.verdict]
            axes.text(y=top + 0.45, s=mark, color=color, fontsize=9, weight="bold", **centered)
    return drawn
