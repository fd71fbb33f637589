"""Learning curves: fraction of the oracle's reward over training, one thin line per seed, and their median."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.figures import figure
from ccgym.report.style import INK, MUTED, legible, new_figure
from ccgym.schemes.style import SchemeStyle

Floats = npt.NDArray[np.float64]

WIDTH_IN: Final = 8.0

HEIGHT_IN: Final = 4.6

TOP: Final = 105.0
"""Upper end of the vertical axis, percent; higher if a curve exceeds it."""

BOTTOM: Final = 0.0
"""Lower end, percent. Schemes below it are in the legend with their numbers."""

_TIMES_S: Final = (5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
"""Distances of the marks on the upper axis, seconds."""

_MARKS: Final = 7
"""Max number of marks on the upper axis."""


@dataclass(frozen=True)
class Curve:
    """The evaluations of one seed."""

    seed: int
    """The seed."""
    steps: Floats
    """Decisions since the start of training, ascending."""
    fractions: Floats
    """Fraction of the oracle's reward at each of the steps."""
    wall_s: Floats
    """Seconds since the start of training, at each of the steps."""


@figure("learning_curves", "learning curves of several seeds", page="command")
def curve_figure(
    curves: Sequence[Curve],
    baselines: Mapping[str, float],
    styles: Mapping[str, SchemeStyle],
    *,
    title: str = "",
    color: str = "chocolate",
    fraction: float = 0.8,
) -> Figure:
    """Draw the fraction of the oracle's reward over training, a thin line per seed, and their median. Call within
    :func:`ccgym.report.style.house_style`.

    Args:
        curves: One curve per seed. The median is over the steps that all curves have.
        baselines: Fraction of the oracle's reward by scheme.
        styles: Plot styles of the schemes in ``baselines``.
        title: Title of the figure.
        color: Color of the curves.
        fraction: Fraction of the oracle's reward to mark.
    """
    drawn, axes = new_figure(WIDTH_IN, HEIGHT_IN)
    for index, curve in enumerate(curves):
        label = f"each of {len(curves)} seeds" if index == 0 else None
        axes.plot(curve.steps / 1e6, 100 * curve.fractions, color=color, linewidth=0.8, alpha=0.75, label=label)
    steps, middle, wall = medians(curves)
    if len(curves) > 1:
        inside = np.stack([curve.fractions[np.isin(curve.steps, steps)] for curve in curves])
        low, high = 100 * inside.min(axis=0), 100 * inside.max(axis=0)
        axes.fill_between(steps / 1e6, low, high, color=color, alpha=0.2, linewidth=0, label="min to max")
        axes.plot(steps / 1e6, 100 * middle, color=color, linewidth=2.6, label="median")
    axes.set_xlim(0, max(float(curve.steps[-1]) for curve in curves) / 1e6)
    axes.set_ylim(BOTTOM, max(TOP, 103 * max(float(curve.fractions.max()) for curve in curves)))
    _baselines(axes, baselines, styles)
    _mark_fraction(axes, fraction, curves)
    axes.set_xlabel("million decisions")
    axes.set_ylabel("% of the oracle's reward")
    _time_axis(axes, steps, wall)
    axes.legend(loc="lower right", ncols=2, fontsize=10, frameon=True, facecolor="white", edgecolor="none")
    if title:
        drawn.suptitle(title, fontsize=12, color=INK)
    drawn.set_layout_engine("constrained")
    return drawn


def medians(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats]:
    """Return the steps that all curves have, with the medians of the fraction of the oracle's reward and of time."""
    steps = curves[0].steps
    for curve in curves[1:]:
        steps = np.intersect1d(steps, curve.steps)
    places = [np.isin(curve.steps, steps) for curve in curves]
    fractions = np.median([curve.fractions[place] for curve, place in zip(curves, places, strict=True)], axis=0)
    wall = np.median([curve.wall_s[place] for curve, place in zip(curves, places, strict=True)], axis=0)
    return steps, fractions, wall


def _baselines(axes: Axes, baselines: Mapping[str, float], styles: Mapping[str, SchemeStyle]) -> None:
    """Draw a horizontal line per scheme; a scheme below the axis is only in the legend, with its number."""
    axes.axhline(100, color=MUTED, linewidth=1.0, label="oracle")
    for name, fraction in baselines.items():
        label, color = f"{styles[name].label} ({100 * fraction:.0f} %)".replace("-", "−"), legible(styles[name].color)
        low, high = axes.get_ylim()
        if low <= 100 * fraction <= high:
            axes.axhline(100 * fraction, color=color, linewidth=1.6, linestyle="--", label=label)
        else:
            axes.plot([], [], color=color, linewidth=1.6, linestyle="--", label=f"{label}, below the axis")


def _mark_fraction(axes: Axes, fraction: float, curves: Sequence[Curve]) -> None:
    """Mark the fraction with a line, and the times when the seeds first reached it."""
    axes.axhline(100 * fraction, color=INK, linewidth=1.0, linestyle=":")
    axes.annotate(
        f"{100 * fraction:.0f} %{_when(fraction, curves)}",
        (1, 100 * fraction),
        (-4, -4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=10,
        color=INK,
    )


def _when(fraction: float, curves: Sequence[Curve]) -> str:
    crossings = [np.flatnonzero(curve.fractions >= fraction) for curve in curves]
    times = [curve.wall_s[found[0]] for curve, found in zip(curves, crossings, strict=True) if found.size]
    if not times:
        return ""
    who = f"all {len(curves)} seeds" if len(times) == len(curves) else f"{len(times)} of {len(curves)} seeds"
    first, last = f"{min(times):.0f}", f"{max(times):.0f}"
    return f": {who} after {first if first == last else f'{first} to {last}'} s"


def _time_axis(axes: Axes, steps: Floats, wall: Floats) -> None:
    """Add an upper axis in seconds: the median time of the seeds at each step."""
    if wall.size < 2 or wall[-1] <= 0:
        return
    apart = next((time for time in _TIMES_S if wall[-1] / time <= _MARKS), math.ceil(wall[-1] / _MARKS))
    times = np.arange(0, wall[-1] + 1e-9, apart)
    above = axes.twiny()
    above.set_xlim(axes.get_xlim())
    above.grid(visible=False)
    above.spines["top"].set_visible(True)
    above.set_xticks(np.interp(times, wall, steps) / 1e6, [f"{time:.0f}" for time in times])
    above.set_xlabel("seconds of training, evaluations included (median)", fontsize=10, color=MUTED)
    above.tick_params(labelsize=10, colors=MUTED)
