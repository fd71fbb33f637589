"""One run in one figure: throughput above, one-way delay below. Behind :meth:`RunRecord.plot`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ccgym.report.figures import figure_path, require_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.evaluation.run_record import RunRecord


def plot_run(run: RunRecord, file: str | os.PathLike[str] | None = None) -> Figure:
    """Draw throughput and one-way delay of a run over time; see :meth:`RunRecord.plot`.

    The upper axes show Mbit/s that entered (dashed) and left the path (solid) in bins of 500 ms, with the capacity
    shaded; the lower ones the one-way delay of each packet, in ms, at the time at which it left the path.
    """
    target = None if file is None else figure_path(file, "file")
    require_drawing("matplotlib.figure", instead="to_csv()")
    from ccgym.report.figures.delay import draw_delay
    from ccgym.report.figures.throughput import draw_throughput
    from ccgym.report.style import blank_figure, house_style, save

    curves = run.curves()
    assert run.metrics is not None
    with house_style():
        figure = blank_figure(10.0, 7.0)
        figure.set_layout_engine("constrained")
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
            save(figure, target)
    return figure
