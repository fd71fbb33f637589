"""One metric over another: a small mark per run, a large one for the mean of each scheme."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import chosen_metrics, metric_label, metric_scale
from ccgym.report.figures import figure
from ccgym.report.figures.plane import PlaneOptions
from ccgym.report.layout import finish, mark_style, scheme_handles
from ccgym.report.style import MUTED, blank_figure, legible

SIZE_IN: Final = (9.0, 5.2)


@figure("scatter", "two metrics of every run", page="test", options=PlaneOptions)
def scatter_figure(results: ExperimentResults, test: Test, options: PlaneOptions) -> Figure:
    """Draw the marks, and dashed lines at the thresholds."""
    y, x = chosen_metrics(test, options.y, options.x)
    averaged = not (test.ranks(x) or test.ranks(y))  # a mean over different links has no meaning
    drawn = blank_figure(*SIZE_IN)
    axes = drawn.add_subplot()
    for style, outcome in results.of_test(test):
        runs = [run.values for run in outcome.runs if None not in (run.values[x.key], run.values[y.key])]
        if not runs:
            continue
        across = metric_scale(x) * np.array([values[x.key] for values in runs], dtype=float)
        up = metric_scale(y) * np.array([values[y.key] for values in runs], dtype=float)
        axes.plot(across, up, alpha=0.45, **mark_style(style, 5, legible(style.color)))
        if averaged:
            axes.plot(across.mean(), up.mean(), zorder=4, **mark_style(style, 12))
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
    return finish(drawn, f"{test.title}: {y.label} against {x.label}", scheme_handles(results.styles, 8, line=False))
