"""Verdicts of an experiment: schemes × tests, passed or not, with the number that decided."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.experiments.outcome import Verdict
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.figures import figure
from ccgym.report.style import BAD, GOOD, INK, MUTED, blank_figure
from ccgym.report.table import NOTHING

LOOKS: Final[dict[Verdict, tuple[str, str, str]]] = {
    "pass": ("#cfe8d5", GOOD, "✓ pass"),
    "fail": ("#f3cfc8", BAD, "✗ fail"),
    "undecided": ("#f5e6c0", "#8a6100", "~ undecided"),
    "incomplete": ("#e8e8e8", MUTED, "? incomplete"),
    "none": ("#f4f4f4", MUTED, ""),
}
"""Fill of a verdict, color of its words, and the words: verdicts do not depend on color."""

COLUMN_IN: Final = 1.9
ROW_IN: Final = 0.62
NAMES_IN: Final = 3.6
"""Room for the tests' names and what passes, inches."""
HEAD_IN: Final = 0.62
"""Room for the schemes' names, inches."""
CHARACTERS: Final = 26
"""Characters of a line of numbers."""


@figure(
    "overview",
    "Matrix of tests and schemes: passed or failed, with the number that decided",
    page="experiment",
)
def verdicts_figure(results: ExperimentResults) -> Figure:
    """Draw the matrix, tests down as in the table. Call within ``house_style``."""
    columns, rows = len(results.styles), len(results.tests)
    width, height = NAMES_IN + COLUMN_IN * columns + 0.15, HEAD_IN + ROW_IN * rows + 0.15
    drawn = blank_figure(width, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for column, style in enumerate(results.styles):
        middle = NAMES_IN + COLUMN_IN * (column + 0.5)
        axes.text(middle, 0.22, style.label, ha="center", va="center", color=INK, fontsize=11, weight="bold")
        count = f"{passed} passed" if (passed := results.passed_text(style.key)) else ""
        axes.text(middle, 0.45, count, ha="center", va="center", color=MUTED, fontsize=9)
    for row, test in enumerate(results.tests):
        top = HEAD_IN + ROW_IN * row
        # Signs and units stay with their numbers.
        together = re.sub(r"([≤≥]) |(\d) (?=%|s\b)", lambda found: f"{found[1] or found[2]}\u00a0", test.brief)
        brief = "\n".join(textwrap.wrap(together, 2 * CHARACTERS))
        axes.text(0.15, top + 0.2, test.title, va="center", color=INK, fontsize=10, weight="bold")
        axes.text(0.15, top + 0.43, brief, va="center", color=MUTED, fontsize=8, linespacing=1.1)
        for column, style in enumerate(results.styles):
            outcome = results.outcome(test, style.key)
            left = NAMES_IN + COLUMN_IN * column
            fill, color, words = LOOKS[outcome.verdict]
            axes.add_patch(Rectangle((left + 0.03, top + 0.03), COLUMN_IN - 0.06, ROW_IN - 0.06, facecolor=fill, lw=0))
            centered: dict[str, Any] = {"x": left + COLUMN_IN / 2, "ha": "center", "va": "center"}
            number = outcome.headline or NOTHING
            size = 10.5 * min(1.0, CHARACTERS / 1.2 / len(number))
            axes.text(y=top + 0.24, s=number, color=INK, fontsize=size, **centered)
            axes.text(y=top + 0.45, s=words, color=color, fontsize=9, weight="bold", **centered)
    return drawn
