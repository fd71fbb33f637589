"""Curricula that grow by gaps (:mod:`ccgym.config.grown`): a gap is the difference between the rewards of two schemes,
or of a scheme and the policy in training, on the same paths.

Rewards are the agent's, on its clock, as means per decision: so paths with short round trips, which have more
decisions, have the same weight as other paths.

The largest gap is found by Bayesian optimization. Some points are drawn at random. A Gaussian process is fitted to
their gaps, and each further point is where its upper confidence bound, mean + kappa × standard deviation, is largest
(Srinivas et al., ICML 2010).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from ccgym.config.bottleneck import Ranges
from ccgym.config.grown import Binned, GapBins, GapSearch, GrowingPlan, Point, Searched
from ccgym.config.sampled_path import PathDistribution
from ccgym.training import normalizer as normalizers
from ccgym.training.environments import Environments, passive_agent
from ccgym.training.evaluation import Actor, deterministic, evaluate, measure_scheme
from ccgym.training.logs import Table
from ccgym.training.session import Callback, Session
from ccgym.training.streams import stream_seed

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

Floats = npt.NDArray[np.float64]

CANDIDATES: Final = 4096
"""Number of points in the search for the largest bound; half of them are near the best point so far."""
NEARBY: Final = 0.1
"""Standard deviation of the points near the best point, on each axis."""
_SUFFIXES: Final = {"Mbit/s": "_mbps", "ms": "_ms", "packets": "_packets", "BDP": "_bdp"}


@dataclass(frozen=True)
class PointGap:
    """A point and its rewards."""

    point: Point
    first: float
    """Mean reward per decision of the scheme that should have the larger reward."""
    second: float
    """Mean reward per decision of the other scheme or of the policy."""
    guided: bool = False
    """Whether a Gaussian process chose the point."""

    @property
    def gap(self) -> float:
        """The first reward minus the second."""
        return self.first - self.second


def search(
    plan: GapSearch, environments: Environments, policy: Callable[[VecEnv], tuple[VecEnv, Actor]], seed: int
) -> tuple[list[PointGap], PointGap]:
    """Search for the point with the largest gap between the baseline and the policy.

    Args:
        plan: Plan of the search.
        environments: Factory of the environments for the measurements.
        policy: Function that returns, for environments, the environments as the policy sees them, and the policy.
        seed: Seed of the points and the episodes. The episodes of all points have the same random streams.

    Returns:
        All points in the order of the trials, and the best point.
    """
    names, measured = list(plan.space.ranges()), list[PointGap]()
    episodes = stream_seed(seed, "episodes")

    def gap(place: Floats) -> float:
        point = dict(zip(names, place.tolist(), strict=True))
        paths = plan.space.at(point)
        first = _scheme(environments, paths, plan.baseline, episodes, plan.traces)
        env, actor = policy(environments.of_paths(paths, plan.traces))
        second = evaluate(env, actor, episodes, per_decision=True).mean_reward
        env.close()
        measured.append(PointGap(point, first, second, guided=len(measured) >= plan.random))
        return measured[-1].gap

    points = stream_seed(seed, "points")
    _, values = maximize(gap, len(names), random=plan.random, guided=plan.guided, kappa=plan.kappa, seed=points)
    return measured, measured[int(np.argmax(values))]


def pool(plan: GapBins, environments: Environments, seed: int) -> list[PointGap]:
    """Draw the points of a plan in bins, and measure each in one episode."""
    names = list(plan.space.ranges())
    places = np.random.default_rng(stream_seed(seed, "points")).random((plan.pool, len(names)))
    points = [dict(zip(names, place.tolist(), strict=True)) for place in places]
    episodes = stream_seed(seed, "episodes")

    def reward(point: Point, scheme: str) -> float:
        return _scheme(environments, plan.space.at(point), scheme, episodes, 1)

    return [PointGap(point, reward(point, plan.better), reward(point, plan.worse)) for point in points]


def numbers(space: Ranges, point: Point) -> dict[str, float]:
    """Return a point in units, by names such as ``rate_max_mbps``: the ranges of its paths."""
    rows = [row for row in space.at(point).rows() if row["name"] in point]
    return {row["name"].replace(".", "_") + _SUFFIXES.get(row["unit"], ""): float(row["low"] or 0.0) for row in rows}


def _scheme(environments: Environments, paths: PathDistribution, scheme: str, seed: int, episodes: int) -> float:
    return measure_scheme(environments.of_paths(paths, episodes, scheme), seed, per_decision=True).mean_reward


def maximize(
    function: Callable[[Floats], float], axes: int, *, random: int, guided: int, kappa: float, seed: int
) -> tuple[list[Floats], list[float]]:
    """Try ``random`` + ``guided`` points of the unit cube.

    Args:
        function: Function of a point, a row of ``axes`` numbers from 0 to 1.
        axes: Number of axes.
        random: Number of points drawn uniformly, at least one.
        guided: Number of points chosen by the Gaussian process.
        kappa: Weight of the uncertainty; 0 only exploits.
        seed: Seed of all random draws.

    Returns:
        All points in order, and their values; the same for the same seed and function.
    """
    rng = np.random.default_rng(seed)
    places = list(rng.random((random, axes)))
    values = [function(place) for place in places]
    for _ in range(guided):
        places.append(_most_promising(np.array(places), np.array(values), kappa, rng))
        values.append(function(places[-1]))
    return places, values


def _most_promising(places: Floats, values: Floats, kappa: float, rng: np.random.Generator) -> Floats:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(1.0, (0.1, 10.0)) * Matern(0.5, (0.05, 5.0), nu=2.5) + WhiteKernel(0.01, (1e-6, 1.0))
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=int(rng.integers(2**31))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a parameter at its bound is fine
        process.fit(places, values)
    half = CANDIDATES // 2
    near = places[np.argmax(values)] + NEARBY * rng.standard_normal((half, places.shape[1]))
    candidates = np.concatenate([rng.random((half, places.shape[1])), np.clip(near, 0.0, 1.0)])
    mean, deviation = process.predict(candidates, return_std=True)
    chosen: Floats = candidates[int(np.argmax(mean + kappa * deviation))]
    return chosen


class CurriculumCallback(Callback):
    """Measures the gaps of a curriculum, and passes them to it.

    ``curriculum.csv`` has a row per measured point: its numbers, both rewards, the gap, and whether it joined the
    mixture. TensorBoard gets the gap and the numbers of each point that joined. All draws come from streams of the root
    seed, so a resumed run finds the same points.
    """

    _table: Table

    @override
    def on_start(self, training: Session) -> None:
        """Check the schemes, and fill the bins of a plan in bins."""
        plan, curriculum = training.config.environment.paths, training.rollouts.curriculum
        if not isinstance(plan, GrowingPlan):
            return
        self._table = Table(training.run.curriculum, training.step if training.resumed else None)
        for key in ("baseline",) if isinstance(plan, GapSearch) else ("better", "worse"):
            passive_agent(training.config.agent, getattr(plan, key), f"environment.paths.{key}")
        if isinstance(plan, GapBins) and isinstance(curriculum, Binned) and not curriculum.bins:
            training.display.notice(f"measuring {plan.better} and {plan.worse} at {plan.pool} points")
            measured = pool(plan, training.environments, _seed(training))
            curriculum.fill([one.point for one in measured], [one.gap for one in measured])
            for one in measured:
                self._add(training.step, plan, one, (plan.better, plan.worse), joined=True)
            training.rollouts.set_progress(0.0)
            training.begin_episodes()

    @override
    def on_update(self, training: Session, *, last: bool) -> None:
        """Search if it is time."""
        plan, curriculum = training.config.environment.paths, training.rollouts.curriculum
        if not isinstance(plan, GapSearch) or not isinstance(curriculum, Searched) or last:
            return
        if training.step // plan.every <= len(curriculum.points):
            return
        began = time.perf_counter()

        def policy(env: VecEnv) -> tuple[VecEnv, Actor]:
            return normalizers.frozen(env, training.normalizer), deterministic(training.model)

        measured, best = search(plan, training.environments, policy, _seed(training))
        curriculum.points.append(best.point)
        for one in measured:
            self._add(training.step, plan, one, (plan.baseline, "policy"), joined=one is best)
        found = numbers(plan.space, best.point)
        row = {"gap": best.gap, "gap_median": float(np.median([one.gap for one in measured]))}
        for name, value in {**row, **found}.items():
            training.model.logger.record(f"curriculum/{name}", value)
        training.model.logger.record("time/search_s", time.perf_counter() - began)
        parts = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
        training.display.notice(f"step {training.step:,}: gap {best.gap:.1f} to {plan.baseline} at {parts}")

    def _add(self, step: int, plan: GrowingPlan, one: PointGap, names: tuple[str, str], *, joined: bool) -> None:
        rewards = {f"reward_{name}": reward for name, reward in zip(names, (one.first, one.second), strict=True)}
        at = numbers(plan.space, one.point)
        self._table.add(step, {"guided": int(one.guided), **at, **rewards, "gap": one.gap, "joined": int(joined)})


def _seed(training: Session) -> int:
    return stream_seed(training.config.training.seed, f"curriculum {training.step}")
