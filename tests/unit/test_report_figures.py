"""Figures of reports, by their structure."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.run import parse_contenders
from ccgym.report.figures.run import delay_figure, delay_limits, throughput_figure
from ccgym.report.figures.summary import mean_figure, needs_log_axis, outward, summary_figure
from ccgym.report.style import MAX_LUMINANCE, PAPER, house_style, legible, luminance, save
from ccgym.schemes.style import SchemeStyle
from tests.unit.made_up_results import STYLES, cell, curves, metrics, numbers, result_set


def test_throughput_figure() -> None:
    with house_style():
        figure = throughput_figure(curves(2), metrics(2))
    axes = figure.axes[0]
    assert "77.72" in axes.get_title(), "the capacity"
    assert [line.get_linestyle() for line in axes.get_lines()] == ["--", "-", "--", "-"]
    legend = axes.get_legend()
    assert legend is not None
    assert [re.findall(r"[\d.]+", text.get_text()) for text in legend.get_texts()] == [
        ["1", "72.75"], ["2", "72.75"], ["1", "72.65"], ["2", "72.65"],
    ]  # fmt: skip
    assert any(isinstance(part, PolyCollection) for part in axes.collections), "the capacity is shaded"
    assert tuple(figure.get_size_inches()) == (12, 6)
    assert axes.get_ylim()[0] == 0
    # Ingress stands at the start of its bin, egress at its end with a leading 0.
    ingress, egress = axes.get_lines()[:2]
    assert (ingress.get_xdata()[0], egress.get_xdata()[0], egress.get_xdata()[-1]) == (0.0, 0.0, 30.0)
    assert egress.get_ydata()[0] == 0.0


def test_a_late_flow_is_not_drawn_before_it_starts() -> None:
    late = np.concatenate((np.zeros(20), np.full(40, 5.0)))
    part = FlowCurves(late, late, np.array([10.0]), np.array([51.0]))
    with house_style():
        figure = throughput_figure(RunCurves(0.5, np.empty(0), (part,)), metrics(1))
    ingress, egress = figure.axes[0].get_lines()
    assert (ingress.get_xdata()[0], egress.get_xdata()[0]) == (10.0, 10.0)
    assert figure.axes[0].get_title() == "", "without a capacity there is no title about it"


def test_delay_figure() -> None:
    with house_style():
        figure = delay_figure(curves(2), metrics(2))
    axes = figure.axes[0]
    assert axes.get_xlim() == (0, 30)
    assert sum(len(line.get_xdata()) for line in axes.get_lines()) == 1000, "every point once"
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text().split()[1] for text in legend.get_texts()] == ["1", "2"]
    assert all("65.98" in text.get_text() for text in legend.get_texts())


def test_a_flow_of_which_nothing_arrived_has_no_delay() -> None:
    nothing = np.empty(0)
    part = numbers(0.0, None, 1.0)
    with house_style():
        figure = delay_figure(
            RunCurves(0.5, nothing, (FlowCurves(np.ones(3), nothing, nothing, nothing),)),
            RunMetrics(part, {1: part}, None),
        )
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert not re.search(r"\d ?ms", legend.get_texts()[0].get_text())


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [(51.0, 66.0, (49.68, 67.32)), (1.0, 66.0, (0.0, 69.3)), (math.inf, 0.0, (0.0, 1.0)), (5.0, 5.0, (4.9, 5.1))],
)
def test_the_delay_axis_shows_the_queue(low: float, high: float, limits: tuple[float, float]) -> None:
    assert delay_limits(low, high) == pytest.approx(limits)


@pytest.mark.parametrize(
    ("value", "up", "expected"),
    [(5, True, 8), (5, False, 4), (8, True, 8), (8, False, 8), (-5, True, -4), (-5, False, -8), (0, True, 0)],
)
def test_outward(value: float, up: bool, expected: float) -> None:
    assert outward(value, up=up) == expected


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (52, 66, False),  # 32 … 128: a factor of 4, not more
        (52, 130, True),  # 32 … 256
        (0, 7, True),  # 0 … 8
        (0, 3.9, False),  # 0 … 4
        (-2, 2, True),
        (-1, 2, False),
    ],
)
def test_log_axis_rule(low: float, high: float, log: bool) -> None:
    assert needs_log_axis(low, high) is log


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]  # type: ignore[attr-defined]


def test_mean_figure() -> None:
    with house_style():
        figure = mean_figure(result_set())
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    assert left > right, "the delay axis is inverted: better is to the right"
    assert axes.get_ylim()[0] == 0
    assert {"TCP BBR", "TCP Cubic", "SCReAM"} <= set(texts(figure))
    assert "Eagle" not in texts(figure), "it was not evaluated"
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow] == [(65.94, 72.70)]
    assert "77.72mbps" in axes.get_title(loc="left")


def test_names_cover_neither_marks_nor_each_other() -> None:
    crowd = tuple(SchemeStyle(f"s{i}", f"Scheme number {i}", "black", "o") for i in range(8))
    cells = tuple(cell(style.key, 1, 60 + 0.5 * i, 60 + 0.3 * i, 0) for i, style in enumerate(crowd))
    with house_style():
        figure = mean_figure(result_set(styles=crowd, cells=cells, published={}))
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts if "Scheme" in text.get_text()]
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert not box.overlaps(other)


def test_names_stay_off_error_bars_and_lines() -> None:
    results = result_set()
    wide = tuple(
        cell(one.scheme, one.run, 60 + 10 * STYLES.index(style), 60 + 2 * one.run, 0.0)
        for style in STYLES
        for one in results.cells
        if one.scheme == style.key
    )
    with house_style():
        figure = mean_figure(result_set(cells=wide, published={}))
    axes = figure.axes[0]
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    bars = [path for bar in axes.collections for path in bar.get_paths()]
    drawn = [axes.transData.transform_path(path) for path in bars]
    for text in axes.texts:
        box = Text.get_window_extent(text, renderer)
        assert not any(path.intersects_bbox(box, filled=False) for path in drawn), text.get_text()


def test_labels_are_text_and_not_formulas(tmp_path: Path) -> None:
    style = SchemeStyle("odd", r"$\bad{ _x$ $5", "gold", "o")
    with house_style():
        figure = mean_figure(result_set(styles=(style,), cells=(cell("odd", 1, 60, 60, 0),), published={}))
        save(figure, tmp_path / "odd.svg")
    assert style.label in texts(figure)


def test_summary_figure_has_one_mark_per_run_and_a_legend() -> None:
    with house_style():
        figure = summary_figure(result_set())
    axes = figure.axes[0]
    solid = [line for line in axes.get_lines() if line.get_markerfacecolor() != "white"]
    assert len(solid) == 9
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["TCP BBR", "TCP Cubic", "SCReAM", "published"]


def test_widely_spread_delays_get_a_log_axis() -> None:
    cells = (cell("bbr", 1, 10, 30, 0), cell("cubic", 1, 10, 900, 0))
    with house_style():
        figure = summary_figure(result_set(cells=cells, published={}))
    axes = figure.axes[0]
    assert axes.get_xscale() == "symlog"
    assert axes.get_xlim() == (1024, 16)


def test_an_experiment_without_a_valid_run_can_still_be_drawn() -> None:
    with house_style():
        for draw in (summary_figure, mean_figure):
            assert draw(result_set(cells=(), published={})).axes[0].get_ylim()[0] == 0


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for suffix in ("svg", "pdf", "png"):
        with house_style():
            for name in ("a", "b"):
                save(mean_figure(result_set()), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_paper_figures_have_the_width_of_a_column_and_legible_text() -> None:
    for draw in (
        lambda: mean_figure(result_set()),
        lambda: summary_figure(result_set()),
        lambda: throughput_figure(curves(3), metrics(3)),
        lambda: delay_figure(curves(3), metrics(3)),
    ):
        with house_style(PAPER):
            figure = draw()
            figure.draw_without_rendering()
            drawn = figure.get_tightbbox()
        assert drawn.x0 >= 0
        assert drawn.x1 <= 3.4
        assert drawn.y0 >= 0, "nothing is cut off"
        assert drawn.y1 <= figure.get_size_inches()[1]
        assert figure.get_size_inches()[0] == pytest.approx(3.4)
        assert figure.axes[0].get_title(loc="left") == figure.axes[0].get_title() == "", "the caption says it"
        sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
        assert min(sizes) >= 7
        assert figure.axes[0].xaxis.label.get_fontsize() == 8


def test_every_scheme_has_a_color_that_shows_on_white() -> None:
    choices = [
        *parse_contenders("reno,cubic,vegas,bbr,copa,synthesized_bbr,oracle,aurora,eagle,eagle_v1,eagle_v2,indigo")
    ]
    choices += parse_contenders("tcp:bbr,tcp:cubic,tcp:reno,tcp:vegas,tcp:dctcp")
    pale = [one.style.label for one in choices if luminance(*to_rgb(one.style.color)) > MAX_LUMINANCE]
    assert not pale
    assert len({(one.style.color, one.style.marker) for one in choices}) == len(choices)
    assert len({one.style.color for one in choices[:12]}) == 12, "each of ours has a color of its own"


@pytest.mark.parametrize("color", ["gold", "white", "#ffeeff", "silver", "lime"])
def test_pale_colors_are_drawn_darker(color: str) -> None:
    assert luminance(*to_rgb(legible(color))) <= MAX_LUMINANCE
