"""A point per scheme and condition in the plane of two metrics, the best at the top right.

The horizontal axis is inverted, as in Pantheon's summary: less delay is to the right. Each axis is logarithmic if the
conditions' values differ by more than a factor of ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import FillStyleType

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import chosen_metrics, coordinates_text, metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.layout import finish, scheme_handles
from ccgym.report.style import MUTED, PLAIN, blank_figure, legible

PLANE_IN: Final = (9.0, 5.4)

LOG_FACTOR: Final = 10.0

FILLS: Final[tuple[FillStyleType, ...]] = ("full", "none", "left", "right", "top", "bottom")
"""How the marks of the conditions are filled, in order."""


class PlaneOptions(Options):
    """Options of the figures ``scatter`` and ``plane``."""

    x: str = ""
    """Metric along the horizontal axis, by default the test's second metric. In ``plane``, less is better."""
    y: str = ""
    """Metric along the vertical axis, by default the test's first metric. In ``plane``, more is better."""


@figure("plane", "two metrics of every scheme under every condition", page="test", options=PlaneOptions)
def plane_figure(results: ExperimentResults, test: Test, options: PlaneOptions) -> Figure:
    """Draw means over the runs, the best at the top right: the horizontal axis is inverted, as in Pantheon's summary.
    An axis is logarithmic if the conditions' values differ by more than a factor of :data:`LOG_FACTOR`."""
    y, x = chosen_metrics(test, options.y, options.x)
    drawn = blank_figure(*PLANE_IN)
    axes = drawn.add_subplot()
    found = results.of_test(test)
    conditions = found[0][1].conditions if found else ()
    across, up = [], []
    for style, outcome in found:
        for condition, fill in zip(outcome.conditions, FILLS, strict=False):
            delay, rate = condition.metrics.get(x.key), condition.metrics.get(y.key)
            if delay is None or rate is None:
                continue
            across.append(metric_scale(x) * delay.mean)
            up.append(metric_scale(y) * rate.mean)
            color = legible(style.color)
            axes.plot(
                across[-1], up[-1], style.marker, color=color, markersize=12, fillstyle=fill, markeredgecolor=color,
                markeredgewidth=1.4, markerfacecoloralt="white", clip_on=False,
            )  # fmt: skip
    _scale(axes, "x", across)
    _scale(axes, "y", up)
    axes.invert_xaxis()
    axes.set_xlabel(metric_label(x))
    axes.set_ylabel(metric_label(y))
    axes.annotate("better ↗", (0.995, 0.985), xycoords="axes fraction", ha="right", va="top", color=MUTED)
    extra = [
        Line2D([], [], linestyle="", marker="o", color=MUTED, fillstyle=fill, markerfacecoloralt="white", markersize=8,
               label=coordinates_text(one.at))
        for one, fill in zip(conditions, FILLS, strict=False)
        if len(conditions) > 1
    ]  # fmt: skip
    return finish(
        drawn, f"{test.title}: {y.label} against {x.label}", [*scheme_handles(results.styles, 8, line=False), *extra]
    )


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    positive = [value for value in values if value > 0]
    if positive and len(positive) == len(values) and max(positive) > LOG_FACTOR * min(positive):
        getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(0.7 * min(positive), 1.4 * max(positive))
        getattr(axes, f"{which}axis").set_major_formatter(PLAIN)
    else:
        getattr(axes, f"set_{which}lim")(0, 1.1 * max(values, default=1.0))
