"""Intervals of comparisons: paths and seeds are drawn again; gains; the figure of searches; rewards per decision."""

from __future__ import annotations

import numpy as np
import pytest

from ccgym.contrib.comparison import _gains, _resampled
from ccgym.evaluation.bootstrap import interval
from ccgym.report.figures.gap_search import gap_search_figure, label
from ccgym.report.style import house_style
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import evaluate, evaluation_seed, measure_scheme, no_op_actor


def test_intervals_hold_the_spread_of_paths_and_of_seeds() -> None:
    rng = np.random.default_rng(1)
    paths = 100 * rng.standard_normal(400)
    steady, torn = paths[None, :] + np.zeros((3, 1)), paths[None, :] + np.array([[-50.0], [0.0], [50.0]])
    means = _resampled({"steady": steady, "torn": torn, "better": steady + 3}, seed=1)
    wide = interval(float(steady.mean()), means["steady"])
    # The standard error of 400 draws of 100 is 5.
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * 5, rel=0.15)
    assert means["torn"].std() > 3 * means["steady"].std(), "three seeds that differ by 50"
    assert np.ptp(means["better"] - means["steady"]) < 1e-9, "all have the same paths in a draw"
    again = _resampled({"steady": steady, "torn": torn, "better": steady + 3}, seed=1)
    assert np.array_equal(again["torn"], means["torn"])


def test_gains_are_differences_on_the_same_draws() -> None:
    rng = np.random.default_rng(2)
    paths = 100 * rng.standard_normal((1, 400))
    rewards = {"uniform": paths, "better": paths + 2 + rng.standard_normal(400), "oracle": paths + 10}
    gains = _gains(rewards, _resampled(rewards, seed=1), "uniform")
    gain, closed = gains["better"]
    # The mean over 400 draws of noise of 1 is known to 0.05, however much the paths differ.
    assert gain.mean == pytest.approx(2, abs=0.15)
    assert gain.high - gain.low == pytest.approx(2 * 1.96 / 20, rel=0.15)
    assert closed == pytest.approx(gain.mean / 10)
    assert gains["uniform"] == (None, None)
    (to_oracle, none) = gains["oracle"]
    assert (to_oracle.mean, none) == (pytest.approx(10), None)


@pytest.mark.parametrize("lead", [5.0, -30.0])
def test_there_are_no_shares_of_a_gap_that_may_be_zero(lead: float) -> None:
    rng = np.random.default_rng(3)
    uniform, oracle = 100 * rng.standard_normal((2, 1, 400))
    rewards = {"uniform": uniform, "better": uniform + 1, "oracle": oracle - oracle.mean() + uniform.mean() + lead}
    gain, closed = _gains(rewards, _resampled(rewards, seed=1), "uniform")["better"]
    assert closed is None
    assert gain.low == pytest.approx(1)


def test_without_the_oracle_there_are_gains_only() -> None:
    rewards = {"uniform": np.zeros((1, 4)), "bbr": np.ones((1, 4))}
    gain, closed = _gains(rewards, _resampled(rewards, seed=1), "uniform")["bbr"]
    assert (gain.mean, gain.low, gain.high, closed) == (1.0, 1.0, 1.0, None)


def test_held_out_paths_may_be_run_in_groups() -> None:
    """Bit for bit what they give side by side; of the last group no more than asked for."""
    settings = ["environment.episode.duration=2s", "evaluation.episodes=5"]
    config = TrainConfig.load("ablations/genet_uniform", settings)
    made, seed, told = Environments(config), evaluation_seed(config), list[int]()
    whole = measure_scheme(made.baseline("bbr"), seed, 5, per_decision=True)
    env = made.baseline("bbr", 2)
    parts = evaluate(env, no_op_actor(env), seed, 5, per_decision=True, done=told.append)
    assert parts.rewards.tolist() == whole.rewards.tolist()
    assert parts.lengths.tolist() == whole.lengths.tolist()
    assert (parts.metrics, parts.terms) == (whole.metrics, whole.terms)
    assert told == [2, 2, 1]


def test_a_reward_per_decision_is_the_sum_over_the_number_of_decisions() -> None:
    settings = ["environment.episode.duration=3s", "evaluation.episodes=4"]
    whole = TrainConfig.load("ablations/genet_uniform", [*settings, "evaluation.per_decision=false"])
    made, seed = Environments(whole), evaluation_seed(whole)
    sums = measure_scheme(made.baseline("bbr"), seed, 4)
    means = measure_scheme(made.baseline("bbr"), seed, 4, per_decision=True)
    assert len(set(means.lengths)) > 1
    assert means.rewards == pytest.approx(sums.rewards / sums.lengths)
    assert sum(means.terms.values()) == pytest.approx(means.mean_reward)


def test_held_out_paths_may_be_others_than_those_of_the_training() -> None:
    stages = TrainConfig.load("ablations/genet_cl1")
    uniform = TrainConfig.load("ablations/genet_uniform")
    assert stages.environment.paths != uniform.environment.paths
    searched = TrainConfig.load("genet")
    assert stages.held_out_paths() == uniform.held_out_paths() == searched.held_out_paths()
    assert TrainConfig.load("aurora", ["evaluation.paths=77.72mbps"]).held_out_paths().summary().startswith("always")


def test_the_figure_of_searches_shows_every_number() -> None:
    rows = [
        {
            "step": str(step), "gap": str(gap), "guided": "0", "joined": str(int(gap == 30)), "loss": str(loss),
            "rate_max_mbps": str(rate), "reward_bbr": "1", "reward_policy": "0",
        }
        for step in (1000, 2000)
        for gap, loss, rate in ((-10, 0.0, 1), (30, 0.01, 100), (5, 0.0, 2))
    ]  # fmt: skip
    with house_style():
        figure = gap_search_figure({1: rows, 2: rows}, title="a title")
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_yscale() for axes in shown] == ["linear", "linear", "log"]
    tried, joined = shown[0].collections
    assert (len(tried.get_offsets()), len(joined.get_offsets())) == (8, 4)
    assert label("one_way_delay_ms") == "one way delay, ms"
