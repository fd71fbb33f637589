"""Figures of reports, by their structure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.run import parse_contenders
from ccgym.report.coordinates import coordinate_axis, coordinate_text
from ccgym.report.figures.delay import delay_figure, delay_limits
from ccgym.report.figures.mean import mean_figure
from ccgym.report.figures.summary import needs_log_axis, outward, summary_figure
from ccgym.report.figures.throughput import throughput_figure
from ccgym.report.style import MAX_LUMINANCE, PAPER, SCREEN, Medium, house_style, legible, luminance, save
from ccgym.schemes.style import SchemeStyle
from tests.unit.made_up_results import STYLES, cell, curves, metrics, numbers, result_set


def axes_of(draw: Callable[..., Figure], *given: object) -> Any:
    with house_style():
        return draw(*given).axes[0]


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_throughput_figure() -> None:
    axes = axes_of(throughput_figure, curves(2), metrics(2))
    assert "77.72" in axes.get_title(), "the capacity"
    assert [line.get_linestyle() for line in axes.get_lines()] == ["--", "-", "--", "-"]
    assert [re.findall(r"[\d.]+", text) for text in legend(axes)] == [
        ["1", "72.75"], ["2", "72.75"], ["1", "72.65"], ["2", "72.65"],
    ]  # fmt: skip
    assert any(isinstance(part, PolyCollection) for part in axes.collections), "the capacity is shaded"
    assert axes.get_ylim()[0] == 0
    # Ingress stands at the start of its bin, egress at its end with a leading 0.
    ingress, egress = axes.get_lines()[:2]
    assert (ingress.get_xdata()[0], egress.get_xdata()[0], egress.get_xdata()[-1]) == (0.0, 0.0, 30.0)
    assert egress.get_ydata()[0] == 0.0


def test_a_late_flow_is_not_drawn_before_it_starts() -> None:
    late = np.concatenate((np.zeros(20), np.full(40, 5.0)))
    part = FlowCurves(late, late, np.array([10.0]), np.array([51.0]))
    axes = axes_of(throughput_figure, RunCurves(0.5, np.empty(0), (part,)), metrics(1))
    ingress, egress = axes.get_lines()
    assert (ingress.get_xdata()[0], egress.get_xdata()[0]) == (10.0, 10.0)
    assert axes.get_title() == "", "the title says the capacity, where it is known"


def test_delay_figure() -> None:
    axes = axes_of(delay_figure, curves(2), metrics(2))
    assert axes.get_xlim() == (0, 30)
    assert sum(len(line.get_xdata()) for line in axes.get_lines()) == 1000, "every point once"
    assert [text.split()[1] for text in legend(axes)] == ["1", "2"]
    assert all("65.98" in text for text in legend(axes))
    # A flow whose packets never arrived has no delay in the legend.
    nothing, part = np.empty(0), numbers(0.0, None, 1.0)
    empty = RunCurves(0.5, nothing, (FlowCurves(np.ones(3), nothing, nothing, nothing),))
    axes = axes_of(delay_figure, empty, RunMetrics(part, {1: part}, None))
    assert not re.search(r"\d ?ms", legend(axes)[0])


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


def test_mean_figure() -> None:
    axes = axes_of(mean_figure, result_set())
    texts = {text.get_text() for text in axes.texts}
    left, right = axes.get_xlim()
    assert left > right, "the delay axis is inverted: better is to the right"
    assert axes.get_ylim()[0] == 0
    assert {"TCP BBR", "TCP Cubic", "SCReAM"} <= texts
    assert "Eagle" not in texts, "it was not evaluated"
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow] == [(65.94, 72.70)]
    assert "77.72mbps" in axes.get_title(loc="left")


@pytest.mark.parametrize("on", [SCREEN, PAPER], ids=["screen", "paper"])
@pytest.mark.parametrize("count", [4, 12, 18, 45])
def test_names_and_legends_of_any_number_of_schemes_are_whole(count: int, on: Medium) -> None:
    crowd = tuple(SchemeStyle(f"s{i}", f"Scheme number {i}", "black", "o") for i in range(count))
    cells = tuple(cell(one.key, 1, 60 + 0.5 * (i % 7), 60 + 0.3 * (i % 9), 0) for i, one in enumerate(crowd))
    results = result_set(styles=crowd, cells=cells, published={})
    for draw in (mean_figure, summary_figure):
        with house_style(on):
            figure = draw(results)
            figure.draw_without_rendering()
            renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
            axes = figure.axes[0]
            texts = [text for text in axes.texts if "Scheme" in text.get_text()]
            texts += [text for whole in figure.legends for text in whole.get_texts()]
            boxes = [Text.get_window_extent(text, renderer) for text in texts]
            boxes += [axes.title.get_window_extent(renderer), axes.xaxis.label.get_window_extent(renderer)]
            canvas = figure.bbox.padded(1)
        assert sorted(text.get_text() for text in texts) == sorted(one.label for one in crowd)
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        assert all(canvas.x0 <= one.x0 and one.x1 <= canvas.x1 and canvas.y0 <= one.y0 for one in boxes)


def test_names_cover_no_lines() -> None:
    runs = itertools.product(enumerate(STYLES), (1, 2, 3))
    wide = tuple(cell(style.key, run, 60 + 10 * place, 60 + 2 * run, 0.0) for (place, style), run in runs)
    axes = axes_of(mean_figure, result_set(cells=wide, published={}))
    renderer = axes.figure.canvas.get_renderer()
    drawn = [axes.transData.transform_path(path) for bar in axes.collections for path in bar.get_paths()]
    for text in axes.texts:
        box = Text.get_window_extent(text, renderer)
        assert not any(path.intersects_bbox(box, filled=False) for path in drawn), text.get_text()


def test_labels_are_text_and_not_formulas(tmp_path: Path) -> None:
    style = SchemeStyle("odd", r"$\bad{ _x$ $5", "gold", "o")
    axes = axes_of(mean_figure, result_set(styles=(style,), cells=(cell("odd", 1, 60, 60, 0),), published={}))
    save(axes.figure, tmp_path / "odd.svg")
    assert style.label in [text.get_text() for text in axes.texts]


def test_summary_figure_has_one_mark_per_run_and_a_legend() -> None:
    axes = axes_of(summary_figure, result_set())
    assert sum(line.get_markerfacecolor() != "white" for line in axes.get_lines()) == 9
    (whole,) = axes.figure.legends
    assert [text.get_text() for text in whole.get_texts()] == ["TCP BBR", "TCP Cubic", "SCReAM", "published"]
    # Delays far apart get a logarithmic axis.
    cells = (cell("bbr", 1, 10, 30, 0), cell("cubic", 1, 10, 900, 0))
    axes = axes_of(summary_figure, result_set(cells=cells, published={}))
    assert (axes.get_xscale(), axes.get_xlim()) == ("symlog", (1024, 16))


@pytest.mark.parametrize("draw", [summary_figure, mean_figure])
def test_an_experiment_without_a_valid_run_can_still_be_drawn(draw: Callable[..., Figure]) -> None:
    assert axes_of(draw, result_set(cells=(), published={})).get_ylim()[0] == 0


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for suffix in ("svg", "pdf", "png"):
        with house_style():
            for name in ("a", "b"):
                save(mean_figure(result_set()), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("draw", "given"),
    [
        (mean_figure, [result_set()]),
        (summary_figure, [result_set()]),
        (throughput_figure, [curves(3), metrics(3)]),
        (delay_figure, [curves(3), metrics(3)]),
    ],
)
def test_paper_figures_have_the_width_of_a_column_and_legible_text(
    draw: Callable[..., Figure], given: list[object]
) -> None:
    with house_style(PAPER):
        figure = draw(*given)
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox()
    assert min(drawn.x0, drawn.y0) >= 0, "nothing is cut off"
    assert drawn.x1 <= 3.4
    assert drawn.y1 <= figure.get_size_inches()[1]
    assert figure.get_size_inches()[0] == pytest.approx(3.4)
    assert figure.axes[0].get_title(loc="left") == figure.axes[0].get_title() == "", "the caption says it"
    texts: list[Any] = [text for text in figure.findobj(Text) if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 7
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


def test_whole_seconds_and_starts_are_named_plainly() -> None:
    assert coordinate_axis("start_ms", [0.0, 5000.0]) == ("start of the later flow (s)", 0.001)
    assert coordinate_axis("rtt_ms", [0.0, 20.0]) == ("RTT (ms)", 1.0)
    assert coordinate_text("start_ms", 5000.0).endswith(" 5 s")
