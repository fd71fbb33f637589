"""A picture of a trace: rate over time and cumulative capacity. Needs matplotlib, which nothing else here does."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from ccgym.errors import ConfigError, PlatformError
from ccgym.tracetools.inspect import TraceLike, binned_rates, opportunities_before, summarize, times_of
from ccgym.units import PACKET_BYTES

FINE_BIN_MS: Final = 100
"""Width of the thin line's bins."""
COARSE_BIN_MS: Final = 500
"""Width of the thick line's bins: Pantheon's."""


def plot_trace(trace: TraceLike, output: str | os.PathLike[str], *, title: str = "") -> None:
    """Draw a trace into a file.

    The upper half shows the rate in bins of 100 ms (thin) and 500 ms (thick) with the mean dashed, the lower half what
    the link could have delivered by then, with outages above 100 ms shaded in both.

    Args:
        trace: The trace; one period is drawn.
        output: The file; its suffix (``.png``, ``.svg``, ``.pdf``) is the format.
        title: Above the picture, usually the trace's name.

    Raises:
        ConfigError: A suffix that matplotlib cannot write.
        PlatformError: matplotlib is not installed, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlatformError(
            f"matplotlib cannot be imported ({error})",
            expected="matplotlib, which only pictures need",
            hint="pip install 'ccgym[report]'",
        ) from None
    times = times_of(trace)
    summary = summarize(times)
    figure = Figure(figsize=(12, 6), layout="constrained")
    rates, total = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    shortest = max(1, summary.period_ms // 40)
    drawn = sorted({min(FINE_BIN_MS, shortest), min(COARSE_BIN_MS, shortest)})
    for width in drawn:
        edges, mbps = binned_rates(times, width)
        rates.stairs(mbps, edges / 1e3, label=f"per {width} ms", color="#1f4e8c", lw=1.6 if width == drawn[-1] else 0.5)
    rates.axhline(
        summary.mean_rate_mbps, color="#b3261e", lw=1.0, ls="--", label=f"mean {summary.mean_rate_mbps:.4g} Mbit/s"
    )
    rates.set_ylabel("Rate (Mbit/s)")
    rates.set_ylim(bottom=0)
    grid = np.linspace(0, summary.period_ms, min(2000, summary.period_ms + 1)).astype(np.int64)
    delivered = opportunities_before(times, grid + 1) * PACKET_BYTES / 1e6
    total.plot(grid / 1e3, delivered, color="#1f4e8c", lw=1.4, drawstyle="steps-post")
    total.plot([0, summary.period_ms / 1e3], [0, delivered[-1]], color="#b3261e", lw=1.0, ls="--")
    total.set_ylabel("Delivered (MB)")
    total.set_xlabel("Time (s)")
    total.set_ylim(bottom=0)
    total.set_xlim(0, summary.period_ms / 1e3)
    signed = times.astype(np.int64)
    gaps = np.diff(signed, prepend=0)
    label = "no delivery for over 100 ms"
    for index in np.flatnonzero(gaps > 100)[:500]:
        for axes in (rates, total):
            axes.axvspan(
                (signed[index] - gaps[index]) / 1e3,
                signed[index] / 1e3,
                color="linen",
                label=label if axes is rates else "",
                zorder=0,
            )
        label = ""
    rates.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, frameon=False, borderaxespad=0.2)
    rates.set_title(title, loc="left")
    try:
        figure.savefig(output, dpi=110)
    except ValueError as error:
        raise ConfigError(f"cannot draw into {str(output)!r}: {error}", expected="a .png, .svg or .pdf file") from None
    except OSError as error:
        raise PlatformError(f"{output}: {error.strerror or error}", expected="a writable place") from None
