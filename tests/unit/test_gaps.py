"""Gaps are what evaluations of their own find; Bayesian optimization finds the largest value of known functions."""

from __future__ import annotations

import numpy as np
import pytest

from ccgym.config.grown import GapBins, GapSearch
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import evaluate, no_op_actor
from ccgym.training.gaps import Floats, PointGap, maximize, numbers, pool, search
from ccgym.training.streams import stream_seed

SETTINGS = (
    "environment.episode.duration=2s", "environment.paths.paths=genet_rl1", "environment.paths.traces=2",
    "environment.paths.random=3", "environment.paths.guided=1", "training.simulator_threads=1",
)  # fmt: skip


def searched(seed: int) -> tuple[TrainConfig, list[PointGap], PointGap]:
    """A search against a policy that keeps its first rate."""
    config = TrainConfig.load("genet", SETTINGS)
    plan = config.environment.paths
    assert isinstance(plan, GapSearch)
    measured, best = search(plan, Environments(config), lambda env: (env, no_op_actor(env)), seed)
    return config, measured, best


def test_a_search_measures_what_evaluations_find() -> None:
    config, measured, best = searched(1)
    assert [one.guided for one in measured] == [False, False, False, True]
    assert best.gap == max(one.gap for one in measured)
    plan, environments = config.environment.paths, Environments(config)
    assert isinstance(plan, GapSearch)
    paths, seed = plan.space.at(best.point), stream_seed(1, "episodes")
    policy, scheme = environments.of_paths(paths, 2), environments.of_paths(paths, 2, "bbr")
    assert evaluate(policy, no_op_actor(policy), seed, per_decision=True).mean_reward == best.second
    assert evaluate(scheme, no_op_actor(scheme), seed, per_decision=True).mean_reward == best.first
    assert best.first != best.second


def test_a_search_repeats_itself() -> None:
    assert searched(1)[1] == searched(1)[1]
    assert searched(2)[1] != searched(1)[1]


def test_a_pool_is_measured_point_by_point() -> None:
    config = TrainConfig.load("ablations/genet_cl2", ["environment.episode.duration=2s", "environment.paths.pool=4"])
    plan = config.environment.paths
    assert isinstance(plan, GapBins)
    measured = pool(plan, Environments(config), 5)
    assert measured == pool(plan, Environments(config), 5)
    assert len({tuple(one.point.values()) for one in measured}) == 4


def test_points_are_shown_in_units() -> None:
    config = TrainConfig.load("genet")
    plan = config.environment.paths
    assert isinstance(plan, GapSearch)
    shown = numbers(plan.space, dict.fromkeys(plan.space.ranges(), 0.5))
    assert shown == {
        "rate_max_mbps": pytest.approx(3.1623, rel=1e-4), "rate_every_ms": 7500, "one_way_delay_ms": 101,
        "queue_bdp": pytest.approx(1.6), "loss": pytest.approx(0.0007071, rel=1e-3),
    }  # fmt: skip


# --- Bayesian optimization --------------------------------------------------------------------------------------------

TOP = np.array([0.8, 0.2, 0.5])


def hill(place: Floats) -> float:
    """At most 0, at ``TOP``."""
    return -float(((place - TOP) ** 2).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_top_of_a_hill_is_found(seed: int) -> None:
    places, values = maximize(hill, 3, random=8, guided=10, kappa=0.5, seed=seed)
    assert len(places) == len(values) == 18
    best = int(np.argmax(values))
    assert best >= 8, "the process chose it"
    assert np.abs(places[best] - TOP).max() < 0.05
    rng = np.random.default_rng(seed)
    assert values[best] > max(hill(place) for place in rng.random((1000, 3))) / 2, "1000 random points do worse"


def test_it_looks_through_noise() -> None:
    noise = np.random.default_rng(7)
    places, _ = maximize(
        lambda place: hill(place) + 0.02 * noise.standard_normal(), 3, random=10, guided=15, kappa=1, seed=1
    )
    assert max(hill(place) for place in places[10:]) > -0.02


def test_much_uncertainty_explores() -> None:
    """With a large kappa the guided points lie far from each other; with none they gather at the best one."""

    def spread(kappa: float) -> float:
        places, _ = maximize(hill, 3, random=5, guided=8, kappa=kappa, seed=1)
        return float(np.std(places[5:], axis=0).mean())

    assert spread(20.0) > 3 * spread(0.0)


def test_the_same_seed_gives_the_same_points() -> None:
    one, other, third = (np.array(maximize(hill, 3, random=4, guided=3, kappa=20, seed=seed)[0]) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, other)
    assert (one != third).any()
    assert ((one >= 0) & (one <= 1)).all()


def test_a_flat_function_does_no_harm() -> None:
    assert maximize(lambda place: 1.0, 2, random=3, guided=2, kappa=20, seed=1)[1] == [1.0] * 5
