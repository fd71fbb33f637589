"""Measuring gaps: how much more one scheme earns than another, or than the policy in training, on the same paths.

Rewards are the agent's own, on its own clock, as means per decision: paths of short round trips, which have more
decisions, count no more than others. Curricula grow by them (:mod:`ccgym.config.grown`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ccgym.config.bottleneck import Ranges
from ccgym.config.grown import GapBins, GapSearch, Point
from ccgym.config.sampled_path import PathDistribution
from ccgym.training.bayesian import Floats, best_of, maximize
from ccgym.training.evaluation import Actor, evaluate, measure_scheme
from ccgym.training.streams import stream_seed

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from ccgym.training.environments import Environments

_SUFFIXES: Final = {"Mbit/s": "_mbps", "ms": "_ms", "packets": "_packets", "BDP": "_bdp"}


@dataclass(frozen=True)
class Measured:
    """A point and what was earned there."""

    point: Point
    first: float
    """Mean reward per decision of the scheme that should earn more."""
    second: float
    """That of the other scheme or of the policy."""
    guided: bool = False
    """Whether a Gaussian process chose the point."""

    @property
    def gap(self) -> float:
        """The first minus the second."""
        return self.first - self.second


def search(
    plan: GapSearch,
    environments: Environments,
    policy: Callable[[VecEnv], tuple[VecEnv, Actor]],
    seed: int,
) -> tuple[list[Measured], Measured]:
    """Look for the point of the largest gap between the baseline and the policy.

    Args:
        plan: What is searched, and how.
        environments: Where points are measured.
        policy: Gives, for environments, those that the policy sees and the policy.
        seed: Decides the points and the episodes. All points have episodes of the same random streams.

    Returns:
        All points in the order in which they were tried, and the best one.
    """
    names, measured = list(plan.space.ranges()), list[Measured]()
    episodes = stream_seed(seed, "episodes")

    def gap(place: Floats) -> float:
        point = dict(zip(names, place.tolist(), strict=True))
        paths = plan.space.at(point)
        first = _scheme(environments, paths, plan.baseline, episodes, plan.traces)
        env, actor = policy(environments.of_paths(paths, plan.traces))
        second = evaluate(env, actor, episodes, per_decision=True).mean_reward
        env.close()
        measured.append(Measured(point, first, second, guided=len(measured) >= plan.random))
        return measured[-1].gap

    trials = maximize(
        gap, len(names), random=plan.random, guided=plan.guided, kappa=plan.kappa, seed=stream_seed(seed, "points")
    )
    return measured, measured[trials.index(best_of(trials))]


def pool(plan: GapBins, environments: Environments, seed: int) -> list[Measured]:
    """Draw the points of a plan in bins, and measure each in one episode."""
    names = list(plan.space.ranges())
    places = np.random.default_rng(stream_seed(seed, "points")).random((plan.pool, len(names)))
    points = [dict(zip(names, place.tolist(), strict=True)) for place in places]
    episodes = stream_seed(seed, "episodes")

    def reward(point: Point, scheme: str) -> float:
        return _scheme(environments, plan.space.at(point), scheme, episodes, 1)

    return [Measured(point, reward(point, plan.better), reward(point, plan.worse)) for point in points]


def numbers(space: Ranges, point: Point) -> dict[str, float]:
    """A point in units, by names like ``rate_max_mbps``: what its paths have in common."""
    rows = [row for row in space.at(point).rows() if row["name"] in point]
    return {row["name"].replace(".", "_") + _SUFFIXES.get(row["unit"], ""): float(row["low"] or 0.0) for row in rows}


def _scheme(environments: Environments, paths: PathDistribution, scheme: str, seed: int, episodes: int) -> float:
    return measure_scheme(environments.of_paths(paths, episodes, scheme), seed, per_decision=True).mean_reward
