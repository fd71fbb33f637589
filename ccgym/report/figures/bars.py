"""Bars of one metric with marks of a second metric above them: a panel per condition, a bar per scheme."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import chosen_metrics, coordinates_text, metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.layout import finish, label_places, wrapped
from ccgym.report.style import INK, blank_figure, legible

PANEL_IN: Final = (4.3, 3.6)

ACROSS: Final = 3

NAME_IN: Final = 0.3
"""Min width of a bar with its slanted name, inches."""


class BarsOptions(Options):
    """Options of the figure ``bars``."""

    bars: str = ""
    """Metric of the bars; by default the test's first."""
    line: str = ""
    """Metric of the marks; by default the test's second."""


@figure("bars", "a metric as bars with another as marks, by condition", page="test", options=BarsOptions)
def bars_figure(results: ExperimentResults, test: Test, options: BarsOptions) -> Figure:
    """Draw means over the runs; both axes begin at 0."""
    bars, line = chosen_metrics(test, options.bars, options.line)
    found = results.of_test(test)
    conditions = found[0][1].conditions if found else ()
    wide = max(PANEL_IN[0], 1.4 + NAME_IN * len(found))
    across = max(1, min(int(ACROSS * PANEL_IN[0] / wide), len(conditions)))
    down = max(1, -(-len(conditions) // across))
    drawn = blank_figure(wide * across + 0.6, PANEL_IN[1] * down + 0.9)
    grid = list(drawn.subplots(down, across, squeeze=False).flat)
    for axes, condition in zip(grid, conditions, strict=False):
        own = [next(one for one in outcome.conditions if one.key == condition.key) for _, outcome in found]
        places = range(len(found))
        heights = [metric_scale(bars) * one.metrics[bars.key].mean if one.metrics.get(bars.key) else 0 for one in own]
        axes.bar(places, heights, color=[legible(style.color) for style, _ in found], width=0.62, alpha=0.85)
        above = axes.twinx()
        points = [
            (place, metric_scale(line) * spread.mean)
            for place, one in enumerate(own)
            if (spread := one.metrics.get(line.key)) is not None
        ]
        if points:
            dots = zip(*points, strict=True)
            above.plot(*dots, "o", color=INK, markersize=7, markeredgecolor="white", clip_on=False)
        above.grid(visible=False)
        above.set_ylim(bottom=0)
        above.set_ylabel(metric_label(line), color=INK)
        label_places(axes, [style.label for style, _ in found], wide - 1.4)
        axes.set_xlim(-0.6, len(found) - 0.4)
        axes.set_axisbelow(True)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(metric_label(bars))
        axes.set_title(wrapped(coordinates_text(condition.at), wide - 1.4, 11), fontsize=11)
    for axes in grid[len(conditions) :]:
        axes.set_visible(False)
    return finish(drawn, f"{test.title}: {bars.label} (bars) and {line.label} (dots)")
