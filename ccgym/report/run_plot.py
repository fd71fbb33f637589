"""A run, and the results of an evaluation, in one figure: code of their methods ``plot``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ccgym.report.figures import figure_path, require_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ccgym.evaluation.results import ResultSet
    from ccgym.evaluation.run_record import RunRecord


def plot_run(run: RunRecord, file: str | os.PathLike[str] | None = None) -> Figure:
    """Draw throughput and one-way delay of a run over time; see :meth:`RunRecord.plot`.

    The upper axes show the rate out of the path in Mbit/s, in bins of 500 ms, with the capacity shaded. The lower axes
    show the one-way delay of each packet, in ms, at the time when it left the path.
    """
    target = None if file is None else figure_path(file, "file")
    require_drawing("matplotlib.figure", instead="to_csv()")
    from matplotlib.lines import Line2D

    from ccgym.report.figures.delay import draw_delay
    from ccgym.report.figures.throughput import draw_throughput
    from ccgym.report.layout import finish
    from ccgym.report.style import blank_figure, flow_color, house_style, save

    curves = run.curves()
    assert run.metrics is not None
    with house_style():
        figure = blank_figure(10.0, 7.0)
        above, below = figure.subplots(2, 1, sharex=True)
        draw_throughput(above, curves, run.metrics, ingress=False)
        draw_delay(below, curves, run.metrics)
        capacity = above.get_title()
        above.set(title="", xlabel="")
        handles = [
            Line2D([], [], color=flow_color(place), linewidth=1.8, label=f"{place + 1} {flow.scheme}: {flow.summary()}")
            for place, flow in enumerate(run.flows)
        ]
        schemes = ", ".join(dict.fromkeys(flow.scheme for flow in run.flows))
        title = f"{schemes} over {run.path_title}: {run.title}\n{capacity}".strip()
        finish(figure, title, handles)
        if target is not None:
            save(figure, target)
    return figure


def plot_results(results: ResultSet, file: str | os.PathLike[str] | None = None) -> Figure:
    """Draw mean throughput against mean one-way delay of every scheme; see :meth:`ResultSet.plot`."""
    target = None if file is None else figure_path(file, "file")
    require_drawing("matplotlib.figure", instead="to_csv()")
    from ccgym.report.figures.mean import mean_figure
    from ccgym.report.style import house_style, save

    with house_style():
        figure = mean_figure(results)
        if target is not None:
            save(figure, target)
    return figure
