"""Figures of experiments are whole, with as many schemes as ccgym has."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from matplotlib.figure import Figure

from ccgym.experiments.views.results import ExperimentResults
from ccgym.report import style
from ccgym.report.figures import all_figures, chosen_figure, figures_of
from ccgym.schemes import policies
from ccgym.schemes.registry import registry
from tests.unit.test_experiment_report import BY_NAME, invented

TESTED = [name for name in (*registry(), *policies.pretrained()) if name not in ("learned", "fixed_window")]


@pytest.fixture(scope="module")
def results() -> ExperimentResults:
    return invented(",".join(TESTED))


def check(figure: Figure) -> None:
    """Nothing is cut off, and no entry of a legend or label of an axis covers another one."""
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) >= -0.02
    assert drawn.x1 <= width + 0.02
    assert drawn.y1 <= height + 0.02
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    for texts in (
        [text for whole in figure.legends for text in whole.get_texts()],
        *(
            [one for one in axes.get_xticklabels() if not one.get_rotation()]
            for axes in figure.axes
            if axes.get_visible() and axes.xaxis.get_visible()
        ),
    ):
        boxes = [text.get_window_extent(renderer) for text in texts if text.get_text() and text.get_visible()]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("name", [one.name for one in figures_of("test")])
@pytest.mark.parametrize("test", ["bandwidth_sweep", "decision_latency", "responsiveness"])
def test_figures_of_tests_are_whole(results: ExperimentResults, test: str, name: str) -> None:
    with style.house_style():
        figure = chosen_figure(name).draw(results, BY_NAME[test])
        check(figure)
    titles = [figure.get_suptitle(), *(text.get_text() for text in figure.texts)]
    assert any(one.startswith(BY_NAME[test].title) and ":" in one for one in titles), "says what is shown"


def test_the_overview_is_whole(results: ExperimentResults) -> None:
    with style.house_style():
        check(all_figures()["overview"].draw(results))
