"""Leagues: ccBench's environments, its rules by hand-worked numbers, ratings, rankings, what is kept, page, figures."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from ccgym.config import catalog
from ccgym.errors import ConfigError
from ccgym.evaluation.bootstrap import centered
from ccgym.evaluation.observer import Silent
from ccgym.evaluation.run import contenders, parse_contenders
from ccgym.experiments.expand import conditions, generator, run_seed
from ccgym.experiments.load import load_experiment
from ccgym.experiments.outcome import Test
from ccgym.experiments.plan import planned
from ccgym.experiments.request import Request
from ccgym.experiments.spec import ExperimentSet, ExperimentSpec, Games
from ccgym.experiments.views.games import (
    fair_share_rating,
    fair_share_winners,
    improvement,
    power_winners,
    whole,
    worst,
)
from ccgym.experiments.views.league import League, run_league
from ccgym.experiments.views.league_section import WEIGHTS
from ccgym.experiments.views.score import score
from ccgym.report import league_report
from ccgym.report.figures import figures_of
from ccgym.report.style import house_style
from ccgym.schemes.reading import parse_scheme
from tests.refusals import refused
from tests.watching import Watching

LEAGUE = load_experiment("league")
assert isinstance(LEAGUE, ExperimentSet)
BY_NAME = {one.name: one for one in LEAGUE.experiments}
SINGLE, CUBIC = BY_NAME["ccbench_single"], BY_NAME["ccbench_cubic"]


# --- ccBench's environments ------------------------------------------------------------------------------------------


def games_of(experiment: ExperimentSpec) -> Games:
    assert experiment.games is not None
    return experiment.games


def test_the_first_set_has_660_environments_and_2640_games() -> None:
    found = conditions(SINGLE)
    assert len(found) == 660
    assert len(found) * len(games_of(SINGLE).throughput) == 2640
    by_rate = Counter(one.written["rate"] for one in found)
    assert {rate: count // 30 for rate, count in by_rate.items()} == {
        "12mbps": 5, "24mbps": 5, "48mbps": 5, "96mbps": 4, "192mbps": 3,
    }  # fmt: skip
    changes = {(one.written["rate"], one.written["change"]) for one in found}
    assert ("96mbps", "×4") not in changes
    assert ("192mbps", "×2") not in changes


def test_the_second_set_has_125_environments_and_500_games() -> None:
    found = conditions(CUBIC)
    assert len(found) == 125
    assert len(found) * len(games_of(CUBIC).throughput) == 500


def test_rates_change_every_seven_seconds_and_buffers_are_whole_packets() -> None:
    found = {one.key: one.bounds()[0] for one in conditions(SINGLE)}
    one = found["rate=24mbps,change=×4,owd=10ms,buffer=0.5"]
    (link,) = one.path.data_links
    assert link.rate == ((0, 24_000_000), (7 * 10**9, 96_000_000), (14 * 10**9, 24_000_000), (21 * 10**9, 96_000_000))
    assert one.path.queue.limit.packets == 20  # half of 2 · 24 · 10 / 12
    assert one.path.base_rtt_ms == 20
    largest = found["rate=192mbps,change=none,owd=80ms,buffer=16"]
    assert largest.path.queue.limit.packets == 16 * 2 * 192 * 80 // 12
    windows = [(metric.begin / 1e9, metric.end / 1e9) for metric in one.metrics[:4]]  # type: ignore[attr-defined]
    assert windows == [(0, 3), (3, 10), (10, 17), (17, 24)]
    assert one.duration_ns == 24 * 10**9


def test_cubic_comes_first_and_windows_begin_with_the_scheme() -> None:
    one = conditions(CUBIC)[0].bounds()[0]
    assert [(flow["scheme"], flow.get("start")) for flow in one.flows] == [("cubic", None), ("$scheme", "5s")]
    begins = [metric.begin / 1e9 for metric in one.metrics]  # type: ignore[attr-defined]
    assert begins == [5, 35, 65, 95]
    assert one.duration_ns == 120 * 10**9


def test_drawn_paths_are_the_same_for_every_scheme_and_differ_by_run() -> None:
    test = Test(BY_NAME["genet_rl3"].model_copy(update={"draws": 3}))
    plan = planned(test, contenders(["cubic", "vegas"]), runs=None, seed=1)
    paths = {number: {one.scenario.path for one in plan if one.number == number} for number in (1, 2, 3)}
    assert all(len(own) == 1 for own in paths.values())
    assert len(set.union(*paths.values())) == 3
    seed = run_seed(1, "genet_rl3", "all", 1)
    assert conditions(BY_NAME["genet_rl3"])[0].make(generator(seed)).path in paths[1]


# --- Rules, by hand --------------------------------------------------------------------------------------------------


def test_halves_are_rounded_up_as_python_2_did() -> None:
    assert whole(np.array([0.5, 1.5, 2.5, 11.49])).tolist() == [1, 2, 3, 11]


def test_power_winners() -> None:
    """11.4² / 20.4 is 6.37 and 11.6² / 22.4 is 6.01, within 10 %; rounded, 11² / 20 is 6.05 and 12² / 22 is 6.55."""
    throughput, rtt = np.array([11.4, 11.6, 10.6]), np.array([20.4, 22.4, 20.4])
    assert power_winners(throughput, rtt, rounded=False).tolist() == [True, True, False]  # 10.6² / 20.4 is 5.51
    assert power_winners(throughput, rtt, rounded=True).tolist() == [True, True, True]  # 11² / 20 again
    assert power_winners(np.array([4.4, 4.6]), np.array([10.0, 10.0]), rounded=False).tolist() == [True, True]
    assert power_winners(np.array([4.4, 4.6]), np.array([10.0, 10.0]), rounded=True).tolist() == [False, True]


def test_nothing_arrived_never_wins() -> None:
    assert power_winners(np.array([0.0, 1.0]), np.array([np.nan, 90.0]), rounded=False).tolist() == [False, True]


def test_fair_share_winners() -> None:
    """Of 12 Mbit/s 6 are fair. 5 is nearest with 1 Mbit/s: 4.5 to 7.7 win."""
    throughput = np.array([5.0, 4.4, 4.6, 7.6, 7.8])
    fair = np.array([6.0])
    # 7.6 is 1.6 away, 5.0 is 1.0 away.
    assert fair_share_winners(throughput, fair, rounded=False).tolist() == [True, False, True, True, False]
    # Rounded, 4.4 is 4, 4.6 is 5, 7.6 and 7.8 are 8.
    assert fair_share_winners(throughput, fair, rounded=True).tolist() == [True, False, True, False, False]


def test_ratings() -> None:
    assert score(0.5, 2.0) == -2
    assert score(0.5, 2.0, weight=2.0) == -3
    assert score(0.5, 2.0, weight=0.5) == -1.5
    assert [fair_share_rating(one, 6.0) for one in (6.0, 3.0, 12.0, 0.0)] == [0, -1, -1, -10]


def test_improvement_counts_strata_the_same_and_equals_half() -> None:
    ratings = np.array([[[0.0, -1.0]], [[-1.0, -1.0]], [[-2.0, -1.0]]])
    found = improvement(ratings, np.array([0, 0, 1]))
    # First stratum: better once, equal once: 0.75. Second: never.
    assert found[0, 1] == pytest.approx(0.375)
    assert found[1, 0] == pytest.approx(0.625)
    assert np.diag(found).tolist() == [0.5, 0.5]


def test_the_worst_tenth_is_at_least_one_path() -> None:
    assert worst(np.array([[-1.0], [-3.0], [-2.0]])).tolist() == [-3.0]
    assert worst(-np.arange(20.0)[:, None]).tolist() == [-18.5]


def test_the_interquartile_mean_leaves_out_a_quarter_at_both_ends() -> None:
    values = np.array([[-9.0], [-2.0], [-1.0], [0.0]])
    assert centered(values, "interquartile").tolist() == [-1.5]
    assert centered(values, "mean").tolist() == [-3.0]
    assert centered(np.array([[1.0], [2.0], [6.0]]), "interquartile").tolist() == [3.0], "three have no quarter"


# --- A small league --------------------------------------------------------------------------------------------------

SMALL = ExperimentSet(
    title="small",
    include=("small.yaml",),
    name="league",
    experiments=(
        SINGLE.model_copy(
            update={
                "scenarios": {"slow": {"sweep": {"rate": ["12mbps"], "change": {"÷2": {"factor": 0.5}}}}},
                "sweep": {"owd": ["10ms"], "buffer": [1, 4]},
            }
        ),
        CUBIC.model_copy(update={"sweep": {"rate": ["12mbps"], "owd": ["10ms"], "buffer": [2]}}),
        BY_NAME["genet_rl3"].model_copy(update={"draws": 4, "duration": "5s"}),
    ),
)
SCHEMES = "cubic,vegas,bbr3,oracle"


def run(out: Path, schemes: str = SCHEMES, progress: Watching | None = None) -> League:
    return run_league(SMALL, Request(out=out, schemes=parse_contenders(schemes)), progress)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[League, Path]:
    out = tmp_path_factory.mktemp("league")
    return run(out), out


def test_a_league_is_what_has_games() -> None:
    assert LEAGUE.kind == "league"
    alone = load_experiment("league/prudentia")
    assert isinstance(alone, ExperimentSet)
    assert alone.kind == "league"
    stress_tests = load_experiment("stress_tests/self_inflicted_loss")
    assert isinstance(stress_tests, ExperimentSet)
    assert stress_tests.kind == "experiment"


def test_sections_hold_every_path_and_references_do_not_play(made: tuple[League, Path]) -> None:
    league, _ = made
    assert [(one.name, one.throughput.shape) for one in league.sections] == [
        ("ccbench_single", (2, 1, 4, 4)), ("ccbench_cubic", (1, 1, 4, 4)), ("genet_rl3", (4, 1, 1, 4)),
    ]  # fmt: skip
    for section in league.sections:
        rates = section.winning_rates(rounded=False)
        assert set(rates) == {"cubic", "vegas", "bbr3"}
        assert sum(rates.values()) >= 1, "every game has a winner"
        assert section.winning_rates(["vegas"], rounded=False) == {"vegas": 1.0}, "alone one wins every game"
    oracle = next(place for place in league.rankings["all"] if place.scheme == "oracle")
    assert (oracle.rank, oracle.first) == (None, 0.0)


def test_ratings_are_those_of_the_metrics(made: tuple[League, Path]) -> None:
    section = made[0].sections[0]
    place = [one.key for one in section.members].index("vegas")
    expected = [
        score(float(section.share[0, 0, window, place]), float(section.rtt[0, 0, window, place]) / 20)
        for window in range(4)
    ]
    assert section.ratings()[0, 0, place] == pytest.approx(np.mean(expected))
    assert (section.rtt[np.isfinite(section.rtt)] >= 20).all(), "one-way delay and the way back"


def test_published_rates_stand_next_to_those_among_the_same_schemes(made: tuple[League, Path]) -> None:
    league, _ = made
    rows = {row.scheme: row for row in league.published(league.sections[0])}
    assert rows["vegas"].published == 0.3864
    assert rows["bbr3"].instead == "BBR2"
    assert rows["vegas"].instead == ""
    assert league.published(league.sections[2]) == []


def test_a_published_rate_of_zero_is_a_rate(made: tuple[League, Path]) -> None:
    section = made[0].sections[0]
    assert section.games.published is not None
    given = section.games.published
    last = min(made[0].published(section), key=lambda row: row.as_published)
    name = next(name for name in given.participants if parse_scheme(name).style.key == last.scheme)
    games = section.games.model_copy(update={"published": given.model_copy(update={"rates": {name: 0.0}})})
    (first, *others) = made[0].published(replace(section, games=games))
    assert (first.scheme, first.published) == (last.scheme, 0.0)
    assert all(row.published is None for row in others)


def test_ranks_by_weight_are_permutations(made: tuple[League, Path]) -> None:
    for weight in WEIGHTS:
        assert sorted(ranks[weight] for ranks in made[0].weighted.values()) == [1, 2, 3]


def test_a_path_without_a_scheme_is_left_out_for_all(made: tuple[League, Path]) -> None:
    league, _ = made
    section = league.sections[0]
    fewer = replace(section, members=section.members[:2], missing=1)
    holed = replace(league, sections=(fewer, *league.sections[1:]))
    assert {place.scheme for place in holed.rankings["all"]} == {"cubic", "vegas"}
    notes = league_report.footnotes(holed)
    assert any("1 path left out" in note for note in notes)
    assert any("no numbers of BBRv3, Oracle" in note for note in notes)


# --- What is shown ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_page_needs_nothing_else(made: tuple[League, Path]) -> None:
    league, out = made
    written = league_report.write(league, out, Silent(), figures=True)
    assert all(one.file.exists() for one in written)
    page = (out / "league.html").read_text()
    assert not re.search(r'src="(?!data:)', page), "nothing is fetched"
    for words in ("TCP Vegas", "BBRv3 for BBR2", "Genet&#39;s RL3 paths", "Worst tenth", "weight 4"):
        assert words in page
    assert "Figure is missing" not in page
    text = (out / "league.md").read_text()
    assert "| 38.6 |" in text
    assert not list(out.glob(".*partial*"))


def test_no_name_is_cut_off(made: tuple[League, Path]) -> None:
    for one in figures_of("league"):
        with house_style():
            figure = one.draw(made[0])
            renderer: Any = figure.canvas
            renderer.draw()
            for text in figure.findobj(Text):
                if text.get_text() and text.get_visible():
                    box = text.get_window_extent()
                    assert box.x0 >= 0, (one.name, text)
                    assert box.x1 <= figure.bbox.x1, (one.name, text)
                    assert box.y1 <= figure.bbox.y1, (one.name, text)


# --- Mistakes, and what is not there ---------------------------------------------------------------------------------


def test_recordings_that_are_not_here_are_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_is_file", lambda _: False)
    monkeypatch.delenv(catalog.SEARCH_VARIABLE, raising=False)
    found = load_experiment("league")
    assert isinstance(found, ExperimentSet)
    assert "cellular" not in [one.name for one in found.experiments]
    (note,) = found.left_out
    assert "Recorded cellular links: left out" in note
    assert "mahimahi-traces" in note


def test_games_with_and_without_do_not_mix(tmp_path: Path) -> None:
    single = "title: a\npath: {rate: 1mbps, rtt: 10ms}\nmetrics: [throughput]\n"
    (tmp_path / "a.yaml").write_text(single)
    (tmp_path / "b.yaml").write_text(single + "games: {rule: fair_share, throughput: [throughput]}\n")
    (tmp_path / "both.yaml").write_text("title: both\ninclude: [a.yaml, b.yaml]\n")
    with refused(ConfigError, "unsupported at both.yaml: include"):
        load_experiment(tmp_path / "both.yaml")


@pytest.mark.parametrize(
    ("games", "words"),
    [
        ("{rule: power, throughput: [throughput]}", "wrong-count at a.yaml:4: games: games.delay"),
        ("{rule: fair_share, throughput: [thruput]}", "unknown-name at a.yaml:4: games"),
        ("{rule: best, throughput: [throughput]}", "unknown-choice at a.yaml:4: games.rule"),
    ],
)
def test_mistakes_in_games_are_told(tmp_path: Path, games: str, words: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"title: a\npath: {{rate: 1mbps, rtt: 10ms}}\nmetrics: [throughput]\ngames: {games}\n")
    with refused(ConfigError, words):
        load_experiment(file)
