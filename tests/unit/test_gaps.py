"""Gaps are what evaluations of their own find, in the same episodes at all points; a search repeats itself."""

from __future__ import annotations

import pytest

from ccgym.config.grown import GapBins, GapSearch
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments
from ccgym.training.evaluation import evaluate, idle
from ccgym.training.gaps import Measured, numbers, pool, search
from ccgym.training.streams import stream_seed

SETTINGS = (
    "environment.episode.duration=2s", "environment.paths.paths=genet_rl1", "environment.paths.traces=2",
    "environment.paths.random=3", "environment.paths.guided=1", "training.simulator_threads=1",
)  # fmt: skip


def searched(seed: int) -> tuple[TrainConfig, list[Measured], Measured]:
    """A search against a policy that keeps its first rate."""
    config = TrainConfig.load("genet", SETTINGS)
    plan = config.environment.paths
    assert isinstance(plan, GapSearch)
    measured, best = search(plan, Environments(config), lambda env: (env, idle(env)), seed)
    return config, measured, best


def test_a_search_measures_what_evaluations_find() -> None:
    config, measured, best = searched(1)
    assert [one.guided for one in measured] == [False, False, False, True]
    assert best.gap == max(one.gap for one in measured)
    plan, environments = config.environment.paths, Environments(config)
    assert isinstance(plan, GapSearch)
    paths, seed = plan.space.at(best.point), stream_seed(1, "episodes")
    policy, scheme = environments.of_paths(paths, 2), environments.of_paths(paths, 2, "bbr")
    assert evaluate(policy, idle(policy), seed, per_decision=True).mean_reward == best.second
    assert evaluate(scheme, idle(scheme), seed, per_decision=True).mean_reward == best.first
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
