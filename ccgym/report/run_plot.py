"""One run in one figure: throughput above, one-way delay below. Behind :meth:`RunRecord.plot`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.errors import ConfigError, PlatformError, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.evaluation.run_record import RunRecord

SUFFIXES: Final = (".png", ".svg", ".pdf")
"""Formats of the file."""
SIZE_IN: Final = (10.0, 7.0)
"""Width and height of the figure, inches."""


def plot_run(run: RunRecord, file: str | os.PathLike[str] | None = None) -> Figure:
    """Draw throughput and one-way delay of a run over time; see :meth:`RunRecord.plot`.

    The upper axes show Mbit/s that entered (dashed) and left the path (solid) in bins of 500 ms, with the capacity
    shaded; the lower ones the one-way delay of each packet, in ms, at the time at which it left the path.
    """
    target = None if file is None else Path(file)
    if target is not None and target.suffix not in SUFFIXES:
        raise ConfigError(
            shown(target.name),
            where="file",
            expected=f"a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
        )
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlatformError(
            f"matplotlib cannot be imported ({error})",
            expected="matplotlib, which only pictures need",
            hint="pip install 'ccgym[report]'; to_csv() does without",
        ) from None
    from ccgym.report.figures.delay import draw_delay
    from ccgym.report.figures.throughput import draw_throughput
    from ccgym.report.style import DPI, house_style, save

    curves = run.curves()
    assert run.metrics is not None
    with house_style():
        figure = Figure(figsize=SIZE_IN, dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        above, below = figure.subplots(2, 1, sharex=True)
        lines = draw_throughput(above, curves, run.metrics)
        dots = draw_delay(below, curves, run.metrics)
        for line in (*lines, *dots):
            _, number, rest = str(line.get_label()).split(" ", 2)
            line.set_label(f"{number} {run.flows[int(number) - 1].scheme} {rest}")
        above.set_xlabel("")
        above.legend(handles=lines, ncols=2, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.08))
        below.legend(handles=dots, ncols=3, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16))
        if target is not None:
            try:
                save(figure, target)
            except OSError as error:
                raise PlatformError(
                    f"cannot be written: {error.strerror}", where=str(target), expected="a file in a folder that exists"
                ) from None
    return figure
