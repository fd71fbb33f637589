"""A metric of every run: a panel per condition, a row per scheme, a mark per run; low values are counted."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import coordinates_text, metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.layout import finish, hide_unused, mark_style, wrapped
from ccgym.report.style import BAD, FAIL_COLOR, INK, blank_figure, legible

WIDTH_IN: Final = 12.0
ACROSS: Final = 3
"""Number of panels side by side."""
SPREAD: Final = 0.3
"""Height over which the marks of a scheme are spread, as a fraction of the distance between schemes."""


class StripOptions(Options):
    """Options of the figure ``strip``."""

    metric: str = ""
    """Metric that is drawn; by default the test's first metric."""
    min: float | None = None
    """Values below this limit are shaded and counted."""


@figure("strip", "a metric of every run", page="test", options=StripOptions)
def strip_figure(results: ExperimentResults, test: Test, options: StripOptions) -> Figure:
    """Draw the panels."""
    metric = test.by_key(options.metric) if options.metric else test.metrics[0]
    scale = metric_scale(metric)
    conditions = results.of_test(test)[0][1].conditions if results.styles else ()
    across = max(1, min(ACROSS, len(conditions)))
    down = max(1, -(-len(conditions) // across))
    drawn = blank_figure(WIDTH_IN, down * max(2.5, 0.5 * len(results.styles) + 1.2) + 0.5)
    grid = drawn.subplots(down, across, sharey=True, squeeze=False)
    hide_unused(grid, len(conditions))
    for axes, condition in zip(grid.flat, conditions, strict=False):
        axes.set_title(wrapped(coordinates_text(condition.at), WIDTH_IN / across - 1.2, 11), fontsize=11)
        if options.min is not None:
            axes.axvspan(0, scale * options.min, color=FAIL_COLOR, linewidth=0, zorder=0)
        for place, (style, outcome) in enumerate(results.of_test(test)):
            found = [
                value
                for run in outcome.runs
                if run.condition == condition.key and (value := run.values[metric.key]) is not None
            ]
            if not found:
                continue
            # Spread by rank, not at random: the figure is the same every time.
            offsets = SPREAD * ((np.arange(len(found)) * 0.618) % 1.0 - 0.5)
            axes.plot(
                [scale * value for value in found], place + offsets, alpha=0.55, clip_on=False,
                **mark_style(style, 5, legible(style.color)),
            )  # fmt: skip
            if options.min is not None:
                below = sum(value < options.min for value in found)
                axes.annotate(
                    f"{below} of {len(found)}", (1.0, place), (6, 0), xycoords=axes.get_yaxis_transform(),
                    textcoords="offset points", va="center", fontsize=10, color=BAD if below else INK,
                )  # fmt: skip
        axes.set_xlim(0, 100 if metric.unit == "%" else None)
        axes.set_xlabel(metric_label(metric))
        axes.grid(visible=False, axis="y")
    grid[0, 0].set_yticks(range(len(results.styles)), [style.label for style in results.styles])
    grid[0, 0].set_ylim(len(results.styles) - 0.5, -0.5)
    title = f"{test.title}: {metric.label} of every run"
    if options.min is not None:
        title += f"; shaded and counted on the right, below {scale * options.min:g} {metric.unit}".rstrip()
    return finish(drawn, title, (), 0.5)
