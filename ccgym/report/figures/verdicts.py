"""Verdicts of an experiment: schemes × tests, passed or not, with the number that decided."""

from __future__ import annotations

import re
import textwrap
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ccgym.experiments.outcome import Test, Verdict
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
"""Fill of a verdict, color of its words, and the words: verdicts are readable without color."""

COLUMN_IN: Final = 1.9
ROW_IN: Final = 0.62
NAMES_IN: Final = 3.6
"""Room for the tests' names and thresholds, inches."""
HEAD_IN: Final = 0.62
"""Room for the schemes' names, inches."""
CHARACTERS: Final = 26
"""Max characters of a line of numbers."""
HEAD_CHARACTERS: Final = 19
"""Max characters of a line above a column."""
MAX_ACROSS: Final = 8
"""Max schemes side by side. If there are more schemes than this and than tests, each scheme has a row."""


@figure(
    "overview",
    "Matrix of tests and schemes: passed or failed, with the number that decided",
    page="experiment",
)
def verdicts_figure(results: ExperimentResults) -> Figure:
    """Draw the matrix: a row per test or, for many schemes, a row per scheme. Call within ``house_style``."""
    down = len(results.styles) > max(MAX_ACROSS, len(results.tests))
    tests = [(test.title, _brief(test, 1 if down else 2)) for test in results.tests]
    schemes = [
        (style.label, f"{passed} passed" if (passed := results.passed_text(style.key)) else "")
        for style in results.styles
    ]
    across, rows = (tests, schemes) if down else (schemes, tests)
    heads = [(textwrap.fill(name, HEAD_CHARACTERS), note) for name, note in across]
    lines = max((name.count("\n") + note.count("\n") + 2 for name, note in heads), default=2)
    names_in, head_in = (NAMES_IN - 1.4, 0.19 * lines + 0.15) if down else (NAMES_IN, HEAD_IN)
    width, height = names_in + COLUMN_IN * len(across) + 0.15, head_in + ROW_IN * len(rows) + 0.15
    drawn = blank_figure(width, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for column, (name, note) in enumerate(heads):
        middle = names_in + COLUMN_IN * (column + 0.5)
        axes.text(middle, 0.12, name, ha="center", va="top", color=INK, fontsize=10, weight="bold")
        axes.text(middle, head_in - 0.07, note, ha="center", va="bottom", color=MUTED, fontsize=8, linespacing=1.1)
    for row, (name, note) in enumerate(rows):
        top = head_in + ROW_IN * row
        axes.text(0.15, top + 0.2, name, va="center", color=INK, fontsize=10, weight="bold")
        axes.text(0.15, top + 0.43, note, va="center", color=MUTED, fontsize=8, linespacing=1.1)
        for column in range(len(across)):
            scheme, test = (row, column) if down else (column, row)
            outcome = results.outcome(results.tests[test], results.styles[scheme].key)
            left = names_in + COLUMN_IN * column
            fill, color, words = LOOKS[outcome.verdict]
            axes.add_patch(Rectangle((left + 0.03, top + 0.03), COLUMN_IN - 0.06, ROW_IN - 0.06, facecolor=fill, lw=0))
            centered: dict[str, Any] = {"x": left + COLUMN_IN / 2, "ha": "center", "va": "center"}
            number = textwrap.wrap(outcome.headline or NOTHING, 39, max_lines=3 - bool(words))
            size = 10.5 * min(1.0, CHARACTERS / 1.2 / max(map(len, number)))
            axes.text(y=top + (0.24 if words else 0.31), s="\n".join(number), color=INK, fontsize=size, **centered)
            axes.text(y=top + 0.47, s=words, color=color, fontsize=9, weight="bold", **centered)
    return drawn


def _brief(test: Test, columns: int) -> str:
    """Return the thresholds of a test in lines of at most ``columns`` characters."""
    # Signs and units stay on the line of their numbers.
    together = re.sub(r"([≤≥]) |(\d) (?=%|s\b)", lambda found: f"{found[1] or found[2]}\u00a0", test.brief)
    return "\n".join(textwrap.wrap(together, columns * CHARACTERS))
