"""Curricula that add paths to a mixture by measured results: Genet's search, and paths ordered by difficulty.

::

    paths:
      kind: gap_search              # Genet: every 72,000 steps, add the path with the largest gap to BBR
      paths: genet_rl3
      every: 72000
      baseline: bbr

    paths:
      kind: gap_bins                # first the paths where Cubic is close to the oracle, the others later
      paths: genet_rl3
      bounds: [210.5, 314.7, 410, 498]

A *point* is a distribution of ``kind: ranges`` in which every range is set to one value: a mapping from the names of
:meth:`~ccgym.config.bottleneck.Ranges.ranges` to positions from 0 to 1. Changes of the rate are still drawn. The *gap*
at a point is the difference of two mean rewards per decision, computed with the agent's reward. The trainer measures
the gaps (:mod:`ccgym.training.gaps`). The curriculum only stores the results, which are part of checkpoints.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator
from typing_extensions import override

from ccgym.config.bottleneck import Ranges
from ccgym.config.declared import Strict
from ccgym.config.distributions import Mixture, Part, PathDistributionField
from ccgym.config.sampled_path import ParameterRow, PathDistribution
from ccgym.errors import ConfigError, shown

Point: TypeAlias = dict[str, float]
"""Position of each parameter in its range, from 0 to 1, by name."""


class GrowingPlan(Strict):
    """Base of both kinds: the first source of paths, and the growth of the mixture."""

    kind: str
    paths: PathDistributionField
    """Ranges from which points are drawn and on which the policy is measured."""
    weight: float = Field(default=0.3, gt=0, lt=1)
    """Share of a new part in the mixture; the shares of all other parts are multiplied by 1 − ``weight``."""

    @model_validator(mode="after")
    def _has_axes(self) -> Self:
        if not isinstance(self.paths, Ranges) or not self.paths.ranges():
            raise ConfigError("paths-unsuitable",
                self.paths.summary(), expected="a distribution of `kind: ranges` with numbers drawn from ranges",
                where="paths",
            )  # fmt: skip
        return self

    @property
    def space(self) -> Ranges:
        """The distribution as :class:`Ranges`."""
        assert isinstance(self.paths, Ranges)
        return self.paths

    @abstractmethod
    def summary(self) -> str:
        """Return one line of text."""

    def rows(self) -> list[ParameterRow]:
        """Return the drawn parameters."""
        return self.paths.rows()

    def describe(self) -> dict[str, Any]:
        """Return ``summary``: one line; ``numbers``: rows as in a distribution."""
        return {"summary": self.summary(), "numbers": self.rows()}

    def grown(self, parts: Sequence[PathDistribution]) -> PathDistribution:
        """Return the mixture of parts that were added one after the other."""
        if len(parts) == 1:
            return parts[0]
        weights = grown_weights(len(parts), self.weight)
        return Mixture(parts=tuple(Part(weight=w, paths=p) for w, p in zip(weights, parts, strict=True)))


def grown_weights(count: int, weight: float) -> list[float]:
    """Return the shares of parts that were added one after the other, each with ``weight``.

    Args:
        count: Number of parts, including the first one.
        weight: From 0 to 1.
    """
    shares = [1.0]
    for _ in range(count - 1):
        shares = [*(share * (1 - weight) for share in shares), weight]
    return shares


class GapSearch(GrowingPlan):
    """Genet: repeatedly search the point with the largest gap between a baseline's reward and the policy's; add it."""

    kind: Literal["gap_search"] = "gap_search"
    every: int = Field(default=72_000, ge=1)
    """Training steps between searches."""
    baseline: str = "bbr"
    """Scheme for the gap: its mean reward minus the policy's mean reward. ``oracle``: the gap to the optimum."""
    traces: int = Field(default=10, ge=1, le=1000)
    """Number of episodes in the mean of a gap; the baseline and the policy run the same episodes."""
    random: int = Field(default=10, ge=1, le=1000)
    """Number of random points of a search, before the model of the gap chooses points."""
    guided: int = Field(default=5, ge=0, le=1000)
    """Number of points that a Gaussian process chooses by its mean and uncertainty."""
    kappa: float = Field(default=20.0, ge=0, le=1e6)
    """Weight of the uncertainty: the search maximizes mean + kappa × standard deviation."""

    @override
    def summary(self) -> str:
        return (
            f"{self.paths.summary()}; every {self.every:,} steps, one of {self.random + self.guided} points is added: "
            f"the point with the largest gap between {self.baseline}'s reward and the policy's"
        )


class GapBins(GrowingPlan):
    """Paths that are drawn once and ordered by the gap between two schemes."""

    kind: Literal["gap_bins"] = "gap_bins"
    better: str = "oracle"
    """The better scheme. The difficulty is its mean reward minus the mean reward of ``worse``."""
    worse: str = "cubic"
    bounds: tuple[float, ...] = Field(min_length=1, max_length=100)
    """Gaps at the bounds of bins, ascending, in the unit of the reward per decision. Bins are added in this order, at
    equal intervals of the training."""
    pool: int = Field(default=256, ge=2, le=4096)
    """Number of points that are drawn and measured, in one episode each, before training begins."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        for place, (one, other) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            if one >= other:
                raise ConfigError(
                    "order-wrong",
                    f"{other:g} after {one:g}",
                    expected="strictly increasing gaps",
                    where=f"bounds[{place + 1}]",
                )
        return self

    @override
    def summary(self) -> str:
        return (
            f"{self.paths.summary()}; {self.pool} paths are added in {len(self.bounds) + 1} bins, "
            f"first the paths where {self.worse} is closest to {self.better}"
        )


@dataclass
class Searched:
    """The curriculum of a search: the ranges, and the points found so far."""

    plan: GapSearch
    points: list[Point] = field(default_factory=list)

    def distribution(self, progress: float) -> PathDistribution:
        """Return the mixture of ranges and points; it does not depend on ``progress``."""
        return self.plan.grown([self.plan.paths, *(self.plan.space.at(point) for point in self.points)])

    def level(self) -> float:
        """Return the number of added points."""
        return float(len(self.points))

    def state_dict(self) -> dict[str, Any]:
        """Return the points."""
        return {"kind": self.plan.kind, "points": [dict(point) for point in self.points]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the points; refuse the state of another curriculum."""
        (self.points,) = _of_kind(state, self.plan, [state.get("points")])


@dataclass
class Binned:
    """The curriculum of bins. Before the bins are filled, it is the distribution of the ranges."""

    plan: GapBins
    bins: list[list[Point]] = field(default_factory=list)
    """Bins with points, ordered by difficulty, the easiest first."""
    joined: int = 1
    _made: dict[int, PathDistribution] = field(default_factory=dict, repr=False)
    """Cached mixtures by number of added bins; every update of the training needs the mixture."""

    def distribution(self, progress: float) -> PathDistribution:
        """Return the mixture of the added bins. Of n bins, bin k (from 0) is added at k/n of the training."""
        if not self.bins:
            return self.plan.paths
        while self.joined < len(self.bins) and progress >= self.joined / len(self.bins):
            self.joined += 1
        if self.joined not in self._made:
            self._made[self.joined] = self.plan.grown([self._bin(points) for points in self.bins[: self.joined]])
        return self._made[self.joined]

    def _bin(self, points: Sequence[Point]) -> PathDistribution:
        return Mixture(parts=tuple(Part(paths=self.plan.space.at(point)) for point in points))

    def fill(self, points: Sequence[Point], gaps: Sequence[float]) -> None:
        """Sort measured points into the bins."""
        bins: list[list[Point]] = [[] for _ in range(len(self.plan.bounds) + 1)]
        for point, gap in zip(points, gaps, strict=True):
            bins[sum(gap >= bound for bound in self.plan.bounds)].append(point)
        self.bins = [points for points in bins if points]
        self._made.clear()

    def level(self) -> float:
        """Return the bin that was added last, counted from 0."""
        return float(self.joined - 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the bins, and the number of added bins."""
        bins = [[dict(point) for point in points] for points in self.bins]
        return {"kind": self.plan.kind, "bins": bins, "joined": self.joined}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the bins; refuse the state of another curriculum."""
        self.bins, joined = _of_kind(state, self.plan, [state.get("bins"), state.get("joined")])
        self.joined = int(joined)
        self._made.clear()


def _of_kind(state: Mapping[str, Any], plan: GapSearch | GapBins, parts: list[Any]) -> list[Any]:
    if state.get("kind") != plan.kind or None in parts:
        raise ConfigError(
            "resume-changed",
            f"the state of a curriculum of kind {shown(state.get('kind'))}",
            expected=f"a state of kind {plan.kind}",
            hint="use the configuration of the checkpoint; it has changed since",
            where="curriculum",
        )
    return parts
