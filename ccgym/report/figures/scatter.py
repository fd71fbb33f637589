"""One metric over another: a small mark per run, a large one for the mean of each scheme."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure
from pydantic import BaseModel, ConfigDict

from ccgym.evaluation.weaknesses.base import Measure, Weakness
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.report.figures import figure
from ccgym.report.style import MUTED, add_title, blank_figure, lay_out, legible, scheme_legend

SIZE_IN: Final = (9.0, 5.2)
"""Width and height of the figure, inches."""


class ScatterOptions(BaseModel):
    """Options of the figure ``scatter``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    x: str = ""
    """What is along the horizontal axis; by default the second metric of the test."""
    y: str = ""
    """What is along the vertical axis; by default the test's first metric."""


@figure("scatter", "two metrics of every run", page="test", options=ScatterOptions)
def scatter_figure(results: WeaknessResults, test: Weakness, options: ScatterOptions) -> Figure:
    """Draw the marks, and dashed lines at the thresholds."""
    y = test.by_key(options.y) if options.y else test.measures[0]
    x = test.by_key(options.x) if options.x else test.measures[min(1, len(test.measures) - 1)]
    drawn = blank_figure(*SIZE_IN)
    axes = drawn.add_subplot()
    for style, outcome in results.of_test(test):
        if not outcome.runs:
            continue
        across = _scale(x) * np.array([run.values[x.key] for run in outcome.runs])
        up = _scale(y) * np.array([run.values[y.key] for run in outcome.runs])
        color = legible(style.color)
        axes.plot(across, up, style.marker, color=color, markersize=3.5, alpha=0.3, markeredgewidth=0)
        axes.plot(
            across.mean(), up.mean(), style.marker, color=color, markersize=11, markeredgecolor="white",
            markeredgewidth=1.2, zorder=4,
        )  # fmt: skip
    criteria = {one.measure: one for _, outcome in results.of_test(test) for one in outcome.criteria}
    for measure, draw in ((y, axes.axhline), (x, axes.axvline)):
        for bound in (criteria[measure.key].low, criteria[measure.key].high) if measure.key in criteria else ():
            if bound is not None:
                draw(_scale(measure) * bound, color=MUTED, linewidth=1.0, linestyle="--")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0, top=103 if y.unit == "%" else None)
    axes.set_xlabel(_label(x))
    axes.set_ylabel(_label(y))
    axes.set_title("small: every run; large: means; dashed: thresholds", fontsize=10.5, color=MUTED, loc="left")
    add_title(drawn, test.title)
    scheme_legend(drawn, results.styles)
    lay_out(drawn)
    return drawn


def _scale(measure: Measure) -> float:
    return 100.0 if measure.unit == "%" else 1.0


def _label(measure: Measure) -> str:
    return f"{measure.label} ({measure.unit})" if measure.unit else measure.label
