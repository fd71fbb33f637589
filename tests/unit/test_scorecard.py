"""Scorecards: scores, training paths, rankings, what is kept and what is added, figures and page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from matplotlib.text import Text

from ccgym.config.path import NetworkPath
from ccgym.errors import ResultsError
from ccgym.evaluation.bootstrap import bootstrap
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.load import load_experiment
from ccgym.experiments.request import Request
from ccgym.experiments.scorecard_spec import ScorecardSpec
from ccgym.experiments.views.path_result import CardScheme, run_score
from ccgym.experiments.views.score import SCORE_FLOOR, MeanMetrics, dominates, pareto_optimal, score
from ccgym.experiments.views.scorecard import Scorecard, run_scorecard
from ccgym.report import scorecard_report
from ccgym.report.figures.heat_map import columns_of, heat_map_figure
from ccgym.report.figures.ranking import ranking_figure
from ccgym.report.ranking_table import score_text
from ccgym.report.scorecard_report import footnotes, page
from ccgym.report.style import house_style
from ccgym.schemes.policy_card import PolicyCard
from tests.refusals import refused
from tests.results_rows import rows_of
from tests.watching import Watching

FAST, SMALL = "77.72mbps", "small-buffer-one-bdp"
FOUND = load_experiment("calibrated")
assert isinstance(FOUND, ScorecardSpec)
CALIBRATED: ScorecardSpec = FOUND
SECTIONS = {name: section.title for name, section in CALIBRATED.sections.items()}
SPEC = CALIBRATED.model_copy(
    update={
        "sections": {
            name: CALIBRATED.sections[name].model_copy(update={"paths": (path,)})
            for name, path in (("calibrated", FAST), ("small-buffers", SMALL))
        }
    }
)


def request(out: Path, schemes: str = "oracle,cubic,vegas", runs: int = 2, **changes: Any) -> Request:
    made = Request(schemes=parse_contenders(schemes), out=out, runs=runs, runtime_ns=2 * 10**9, jobs=1)
    return replace(made, **changes)


def run(out: Path, schemes: str = "oracle,cubic,vegas", runs: int = 2, **changes: Any) -> tuple[Scorecard, Watching]:
    watching = Watching()
    card = run_scorecard(SPEC, request(out, schemes, runs, **changes), watching)
    return card, watching


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scorecard, Path]:
    out = tmp_path_factory.mktemp("scorecard")
    return run(out)[0], out


def with_learners(card: Scorecard) -> Scorecard:
    """The same with a scheme that was trained on the first path, and one that does not say."""
    oracle, cubic, vegas = card.schemes
    taught = replace(cubic, learned=True, trained_on={FAST: True, SMALL: False})
    return replace(card, schemes=(oracle, taught, replace(vegas, learned=True)))


# --- The score -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("utilization", "ratio", "expected"),
    [
        (1.0, 1.0, 0.0),
        (0.5, 1.0, -1.0),
        (1.0, 2.0, -1.0),
        (0.5, 4.0, -3.0),
        (1e-9, 1.0, SCORE_FLOOR),
        (0.0, 1.0, SCORE_FLOOR),
        (None, 1.0, SCORE_FLOOR),
        (1.0, None, SCORE_FLOOR),
    ],
)
def test_score(utilization: float | None, ratio: float | None, expected: float) -> None:
    assert score(utilization, ratio) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("other", "dominated"),
    [
        (MeanMetrics(10.0, 50.0, 0.01), False),  # the same
        (MeanMetrics(9.95, 50.0, 0.01), False),  # within the margins
        (MeanMetrics(9.0, 50.0, 0.01), True),
        (MeanMetrics(10.0, 60.0, 0.01), True),
        (MeanMetrics(10.0, 50.0, 0.02), True),
        (MeanMetrics(9.95, 60.0, 0.012), True),
        (MeanMetrics(9.0, 40.0, 0.01), False),  # less, but sooner
        (MeanMetrics(9.0, 50.0, 0.0), False),  # less, but without loss
    ],
)
def test_dominance(other: MeanMetrics, dominated: bool) -> None:
    one = MeanMetrics(10.0, 50.0, 0.01)
    assert dominates(one, other) is dominated
    assert pareto_optimal([one, other, None]) == [not dominates(other, one), not dominated, False]


def test_a_bootstrap_over_paths_is_paired() -> None:
    """Paths that are hard for all make intervals wide, and leave no doubt about who is better."""
    table = [[[value], [value - 0.1]] for value in np.linspace(-8, 0, 20)]
    found = bootstrap(table, [True, True], seed=1)
    assert found.scores[0].low < found.scores[1].mean < found.scores[0].high
    assert found.first == (1.0, 0.0)
    assert found.behind[1].high == pytest.approx(-0.1)
    assert found != bootstrap(table, [True, True], seed=2)
    assert found != bootstrap(table, [True, True], seed=1, name="another")


def test_a_single_path_has_the_interval_of_its_runs() -> None:
    found = bootstrap([[[-1.0, -2.0, -3.0], [-2.0, -2.0, -2.0]]], [True, True], seed=3)
    assert (found.scores[0].low, found.scores[0].high) == pytest.approx((-3.0, -1.0), abs=0.4)
    assert (found.scores[1].low, found.scores[1].high) == (-2.0, -2.0)


# --- Paths and schemes ---------------------------------------------------------------------------------------------


def test_the_paths_are_pantheons_and_indigos() -> None:
    paths = CALIBRATED.paths
    assert len(paths) == 42
    counts = {name: len(section.paths) for name, section in CALIBRATED.sections.items()}
    assert counts == {"calibrated": 6, "policers": 6, "ack-aggregation": 2, "small-buffers": 4, "synthetic": 24}
    assert {NetworkPath.named(f"pantheon-{number}").name for number in range(1, 19)} <= paths.keys()


# --- What is measured ------------------------------------------------------------------------------------------------


def test_results_are_those_of_the_runs(made: tuple[Scorecard, Path]) -> None:
    card, out = made
    results = ResultSet.load(out / "paths" / FAST)
    cubic = next(one for one in results.schemes if one.style.key == "cubic")
    result = card.path_results[FAST, "cubic"]
    assert cubic.throughput_mbps is not None
    assert cubic.delay_p95_ms is not None
    assert result.throughput_mbps == cubic.throughput_mbps.mean
    assert result.utilization == pytest.approx(cubic.throughput_mbps.mean / 77.72, rel=0.01)
    assert result.delay_ratio == pytest.approx(cubic.delay_p95_ms.mean / 51)
    assert result.scores == tuple(run_score(cell, 51.0) for cell in cubic.runs)
    assert len(result.scores) == result.runs == result.counted == 2
    assert result.trained is None


def test_who_knows_the_path_is_shown_and_not_ranked(made: tuple[Scorecard, Path]) -> None:
    card, _ = made
    places = {place.scheme: place for place in card.rankings["all"]}
    assert [place.score.mean for place in card.rankings["all"]] == sorted(
        (place.score.mean for place in card.rankings["all"]), reverse=True
    )
    oracle = places.pop("oracle")
    assert (oracle.rank, oracle.first, oracle.wins) == (None, 0.0, 0)
    assert oracle.score.mean > max(place.score.mean for place in places.values())
    assert sorted(place.rank or 0 for place in places.values()) == [1, 2]
    assert sum(place.wins for place in places.values()) == 2
    assert not any(card.path_results[path, "oracle"].best for path in (FAST, SMALL))
    assert [group.name for group in card.groups] == ["all", "calibrated", "pathological"], "no synthetic link took part"


def test_scores_are_in_the_table(made: tuple[Scorecard, Path]) -> None:
    card, out = made
    scores: dict[tuple[str, str], list[float]] = {}
    for row in rows_of(out):
        if row["metric"] == "score":
            scores.setdefault((row["condition"], row["scheme"]), []).append(float(row["value"]))
    assert scores == {place: list(result.scores) for place, result in card.path_results.items()}


def test_a_run_that_does_not_count_scores_the_least(made: tuple[Scorecard, Path], tmp_path: Path) -> None:
    card, _ = made
    results = card.results[FAST]
    spoilt = tuple(
        replace(cell, invalid="no packet left the path") if (cell.scheme, cell.run) == ("vegas", 2) else cell
        for cell in results.cells
    )
    sick = replace(card, results={**card.results, FAST: replace(results, cells=spoilt)})
    result = sick.path_results[FAST, "vegas"]
    assert (result.runs, result.counted) == (2, 1)
    assert result.scores == (card.path_results[FAST, "vegas"].scores[0], SCORE_FLOOR)
    assert any("1 run in which next to nothing arrived" in note for note in footnotes(sick))
    assert sick.to_json()["path_results"][2]["counted"] == 1


def test_a_path_without_a_scheme_is_ranked_by_nobody(made: tuple[Scorecard, Path]) -> None:
    card, _ = made
    results = card.results[FAST]
    fewer = replace(results, cells=tuple(cell for cell in results.cells if cell.scheme != "vegas"))
    holed = replace(card, results={**card.results, FAST: fewer})
    assert holed.ranked_paths(holed.groups[0]) == (SMALL,)
    assert {place.scheme for place in holed.rankings["all"]} == {"oracle", "cubic", "vegas"}
    assert {place.scheme for place in holed.rankings["calibrated"]} == {"oracle", "cubic"}
    assert any(FAST in note and "left out" in note for note in footnotes(holed))


def test_training_paths_and_held_out_ones_are_ranked_apart(made: tuple[Scorecard, Path]) -> None:
    card = with_learners(made[0])
    groups = {group.name: group for group in card.groups}
    assert groups["train:cubic"].paths == (FAST,)
    assert groups["held-out:cubic"].paths == (SMALL,)
    assert [card.path_results[path, "cubic"].trained for path in (FAST, SMALL)] == [True, False]
    assert card.path_results[FAST, "vegas"].trained is None
    assert "training paths unknown: TCP Vegas" in footnotes(card)
    everywhere = replace(card.schemes[1], trained_on={FAST: False, SMALL: False})
    nowhere = replace(card, schemes=(card.schemes[0], everywhere, card.schemes[2]))
    assert not any(group.learners for group in nowhere.groups), "it would repeat the ranking over all paths"
    assert "trained on none of these paths: TCP Cubic" in footnotes(nowhere)


# --- What is kept ----------------------------------------------------------------------------------------------------


def test_other_lengths_and_seeds_are_another_experiment(tmp_path: Path) -> None:
    run(tmp_path, "cubic", runs=1)
    for change in ({"seed": 2}, {"runtime_ns": 3 * 10**9}):
        with refused(ResultsError, "directory-taken at paths/77.72mbps"):
            run(tmp_path, "cubic", runs=1, **change)


def test_a_policy_that_was_exported_anew_is_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretrained policy keeps its name and its seeds; its runs must not be taken for those of the next version."""
    first, _ = run(tmp_path, "aurora", runs=1)
    with monkeypatch.context() as patched:
        patched.setattr(PolicyCard, "digest", "0" * 64)
        again, watching = run(tmp_path, "aurora,cubic", runs=1)
    assert (watching.ran, watching.kept) == (4, 0)
    assert again.path_results[FAST, "aurora"].scores == first.path_results[FAST, "aurora"].scores
    _, watching = run(tmp_path, "aurora,cubic", runs=1)
    assert (watching.ran, watching.kept) == (0, 4)


# --- What is shown ---------------------------------------------------------------------------------------------------


def texts(figure: Figure) -> list[str]:
    return [found.get_text() for found in figure.findobj(Text) if found.get_text()]


def test_the_heat_map_says_it_all(made: tuple[Scorecard, Path]) -> None:
    card = with_learners(made[0])
    with house_style():
        figure = heat_map_figure(card)
    found = texts(figure)
    for words in (FAST, SMALL, "Oracle", "TCP Cubic", "TCP Vegas", "Mean of all 2 paths", SECTIONS["calibrated"]):
        assert words in found
    assert SECTIONS["synthetic"] not in found
    for result in card.path_results.values():
        assert score_text(result.score) in found
    patches = figure.axes[0].patches
    frames = [patch for patch in patches if isinstance(patch, Rectangle) and not patch.get_fill()]
    assert len(frames) == 2, "the best of each path"
    assert len([patch for patch in patches if isinstance(patch, Polygon)]) == 1, "the training path"
    assert "corner: the policy was trained on the path" in found
    columns = [one.key for one, _ in columns_of(card)]
    assert columns == ["oracle", *(place.scheme for place in card.rankings["all"] if place.rank)]


def test_a_scheme_without_a_number_has_a_dash(made: tuple[Scorecard, Path]) -> None:
    card, _ = made
    fewer = tuple(cell for cell in card.results[FAST].cells if cell.scheme != "vegas")
    holed = replace(card, results={**card.results, FAST: replace(card.results[FAST], cells=fewer)})
    with house_style():
        assert texts(heat_map_figure(holed)).count("–") == 3, "the path, its section, and all paths"


def test_the_ranking_figure_has_a_panel_per_group(made: tuple[Scorecard, Path]) -> None:
    card = with_learners(made[0])
    with house_style():
        figure = ranking_figure(card)
    assert len(figure.axes) == 3
    labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert labels[0] == "Oracle"
    assert [label[-1] for label in labels[1:]] == ["1", "2"]
    for axes, group in zip(figure.axes, ("all", "calibrated", "pathological"), strict=True):
        for line, place in zip(axes.get_lines()[::2], card.rankings[group], strict=True):
            assert list(line.get_xdata()) == [place.score.low, place.score.high]


@pytest.mark.long
def test_forty_two_paths_and_twelve_schemes_fit(made: tuple[Scorecard, Path]) -> None:
    """No name is cut off by the edge of a figure."""
    card, _ = made
    schemes = tuple(
        CardScheme(replace(card.schemes[1].style, key=f"s{number}", label=f"Scheme {number} (of-a-run)"), False)
        for number in range(12)
    )
    one = card.results[FAST]
    cells = tuple(replace(cell, scheme=look.key) for look in schemes for cell in one.cells if cell.scheme == "cubic")
    results = replace(one, styles=tuple(look.style for look in schemes), cells=cells)
    paths = tuple(replace(card.paths[0], name=name, section=section) for name, section in CALIBRATED.paths.items())
    whole = replace(card, spec=CALIBRATED, paths=paths, schemes=schemes, results={path.name: results for path in paths})
    for draw in (heat_map_figure, ranking_figure):
        with house_style():
            figure = draw(whole)
            renderer: Any = figure.canvas
            renderer.draw()
            for text in figure.findobj(Text):
                if text.get_text() and text.get_visible():
                    box = text.get_window_extent()
                    assert box.x0 >= 0, text
                    assert box.x1 <= figure.bbox.x1, text
                    assert box.y1 <= figure.bbox.y1, text


@pytest.mark.long
def test_the_page_needs_nothing_else(made: tuple[Scorecard, Path]) -> None:
    card, out = made
    written = scorecard_report.write(with_learners(card), out, Silent(), figures=True)
    assert all(file.file.exists() for file in written)
    assert written[0].file.name == "scorecard.html"
    html = written[0].file.read_text()
    assert not re.search(r'src="(?!data:)', html), "nothing is fetched"
    linked = [name for name in re.findall(r'href="([^#"]+)"', html)]
    assert all((out / name).is_file() for name in linked)
    assert linked, "figures link to their files"
    for words in ("TCP Cubic", FAST, "small-buffer-one-bdp", "Training paths of TCP Cubic", "held out", "Root seed"):
        assert words in html
    assert "Figure is missing" not in html
    assert "Figure is missing" in page(card).html(out / "elsewhere")
    assert (out / "paths" / FAST / "pantheon_table.md").exists()
    assert not list(out.glob(".*partial*"))


def test_markdown_marks_the_best_and_training_paths(made: tuple[Scorecard, Path]) -> None:
    card = with_learners(made[0])
    lines = page(card).markdown().splitlines()
    row = next(line for line in lines if line.startswith(f"| {FAST} |"))
    assert row.count("**") == 2
    assert len(re.findall(r" t(\*\*)? \|", row)) == 1
    assert any(line.startswith("| 1 | ") for line in lines)


def test_numbers_without_figures(made: tuple[Scorecard, Path], tmp_path: Path) -> None:
    card, _ = made
    (tmp_path / "paths" / FAST).mkdir(parents=True)
    (tmp_path / "paths" / SMALL).mkdir()
    written = scorecard_report.write(card, tmp_path, Silent(), figures=False)
    assert not list(tmp_path.glob("*.svg"))
    assert "report" not in [file.title for file in written]
