"""One metric over another: a small mark per run, a large one for the mean of each scheme."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.style import MUTED, add_title, blank_figure, lay_out, legible, scheme_legend

SIZE_IN: Final = (9.0, 5.2)


class ScatterOptions(Options):
    """Options of the figure ``scatter``."""

    x: str = ""
    """Metric along the horizontal axis; by default the test's second."""
    y: str = ""
    """Metric along the vertical axis; by default the test's first."""


@figure("scatter", "two metrics of every run", page="test", options=ScatterOptions)
def scatter_figure(results: ExperimentResults, test: Test, options: ScatterOptions) -> Figure:
    """Draw the marks, and dashed lines at the thresholds."""
    y = test.by_key(options.y) if options.y else test.metrics[0]
    x = test.by_key(options.x) if options.x else test.metrics[min(1, len(test.metrics) - 1)]
    averaged = not (test.ranks(x) or test.ranks(y))  # different links have no common mean
    drawn = blank_figure(*SIZE_IN)
    axes = drawn.add_subplot()
    for style, outcome in results.of_test(test):
        runs = [run.values for run in outcome.runs if None not in (run.values[x.key], run.values[y.key])]
        if not runs:
            continue
        across = metric_scale(x) * np.array([values[x.key] for values in runs], dtype=float)
        up = metric_scale(y) * np.array([values[y.key] for values in runs], dtype=float)
        color = legible(style.color)
        axes.plot(across, up, style.marker, color=color, markersize=5, alpha=0.45, markeredgewidth=0)
        if averaged:
            axes.plot(
                across.mean(), up.mean(), style.marker, color=color, markersize=13, markeredgecolor="white",
                markeredgewidth=1.2, zorder=4,
            )  # fmt: skip
    criteria = {one.metric: one for _, outcome in results.of_test(test) for one in outcome.criteria}
    for metric, draw in ((y, axes.axhline), (x, axes.axvline)):
        for bound in (criteria[metric.key].min, criteria[metric.key].max) if metric.key in criteria else ():
            if bound is not None:
                draw(metric_scale(metric) * bound, color=MUTED, linewidth=1.0, linestyle="--")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0, top=103 if y.unit == "%" else None)
    axes.set_xlabel(metric_label(x))
    axes.set_ylabel(metric_label(y))
    marks = "small: every run; large: means" if averaged else "every run"
    axes.set_title(f"{marks}; dashed: thresholds", fontsize=10.5, color=MUTED, loc="left")
    add_title(drawn, test.title)
    scheme_legend(drawn, results.styles)
    lay_out(drawn)
    return drawn
