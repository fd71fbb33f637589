"""Figure of the weakness test of start-up recovery: what every run made of its link."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ccgym.evaluation.weaknesses import startup_recovery
from ccgym.evaluation.weaknesses.base import Weakness
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.report.style import DPI, INK, legible

TITLES: Final = {"reported": "77.72 Mbit/s, 51 ms one way, 94 packets", "drawn": "paths drawn"}
"""What the conditions are."""
FAIL_COLOR: Final = "#f7e0dc"
"""Fill of what fails."""
SPREAD: Final = 0.3
"""Height over which the marks of a scheme are strewn, of the distance between schemes."""


def starts_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """A panel per condition, a row per scheme, a mark per run. Call within ``house_style``."""
    height = 0.5 * len(results.styles) + 1.7
    figure = Figure(figsize=(12.0, height), dpi=DPI)
    FigureCanvasAgg(figure)
    grid = figure.subplots(1, len(TITLES), sharey=True, squeeze=False)[0]
    for axes, (key, title) in zip(grid, TITLES.items(), strict=True):
        axes.set_title(title, fontsize=11)
        axes.axvspan(0, 100 * startup_recovery.COLLAPSED, color=FAIL_COLOR, linewidth=0, zorder=0)
        for place, (style, outcome) in enumerate(results.of_test(test)):
            used = [100 * run.values["utilization"] for run in outcome.runs if run.condition == key]
            # Strewn by rank, not at random: the figure is the same every time.
            offsets = SPREAD * ((np.arange(len(used)) * 0.618) % 1.0 - 0.5)
            axes.plot(
                used, place + offsets, style.marker, color=legible(style.color), markersize=5, alpha=0.55,
                markeredgewidth=0, clip_on=False,
            )  # fmt: skip
            below = sum(value < 100 * startup_recovery.COLLAPSED for value in used)
            axes.text(
                1.01, place, f"{below} of {len(used)}", transform=axes.get_yaxis_transform(), va="center", fontsize=10,
                color="#b3261e" if below else INK,
            )  # fmt: skip
        axes.set_xlim(0, 100)
        axes.set_xlabel("utilization of the whole run (%)")
        axes.grid(visible=False, axis="y")
    grid[0].set_yticks(range(len(results.styles)), [style.label for style in results.styles])
    grid[0].set_ylim(len(results.styles) - 0.5, -0.5)
    figure.suptitle(
        f"{test.title}: shaded and counted on the right, collapsed runs", x=0.012, y=1 - 0.12 / height,
        ha="left", va="top", color=INK, weight="bold",
    )  # fmt: skip
    figure.subplots_adjust(left=0.115, right=0.945, bottom=0.62 / height, top=1 - 0.78 / height, wspace=0.2)
    return figure
