"""Curricula whose mixture of paths grows by what is measured: Genet's search, and paths ordered by difficulty.

::

    paths:
      kind: gap_search              # Genet: every 72,000 steps the paths where the policy loses most to BBR join
      paths: genet_rl3
      every: 72000
      baseline: bbr

    paths:
      kind: gap_bins                # paths where Cubic comes close to the oracle first, the others later
      paths: genet_rl3
      bounds: [210.5, 314.7, 410, 498]

A *point* is a distribution of ``kind: ranges`` in which every range is set to one value: a mapping from the names of
:meth:`~ccgym.config.bottleneck.Ranges.ranges` to places from 0 to 1. How the rate changes is still drawn. The *gap* at
a point is a difference of two mean rewards per decision, by the agent's own reward. The trainer measures it
(:mod:`ccgym.training.gaps`), and tells the curriculum, which stays data: what it was told goes into checkpoints.
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
"""Where in its range each number lies, from 0 to 1, by name."""


class GrowingPlan(Strict):
    """What both kinds have in common: where paths come from at first, and how the mixture grows."""

    kind: str
    paths: PathDistributionField
    """Ranges that points are taken from, and that the policy is measured on."""
    weight: float = Field(default=0.3, gt=0, lt=1)
    """Share of the mixture that what joins gets; the shares of all others shrink by as much."""

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
        """The distribution, of the one kind that it can be."""
        assert isinstance(self.paths, Ranges)
        return self.paths

    @abstractmethod
    def summary(self) -> str:
        """One line of text."""

    def rows(self) -> list[ParameterRow]:
        """The numbers that are drawn."""
        return self.paths.rows()

    def describe(self) -> dict[str, Any]:
        """``summary``: one line; ``numbers``: rows as a distribution has them."""
        return {"summary": self.summary(), "numbers": self.rows()}

    def grown(self, parts: Sequence[PathDistribution]) -> PathDistribution:
        """The mixture of parts that joined one after the other."""
        if len(parts) == 1:
            return parts[0]
        weights = grown_weights(len(parts), self.weight)
        return Mixture(parts=tuple(Part(weight=w, paths=p) for w, p in zip(weights, parts, strict=True)))


def grown_weights(count: int, weight: float) -> list[float]:
    """The shares of parts that joined one after the other: each with ``weight``, by which the others shrink.

    Args:
        count: How many, the first one included.
        weight: From 0 to 1.
    """
    shares = [1.0]
    for _ in range(count - 1):
        shares = [*(share * (1 - weight) for share in shares), weight]
    return shares


class GapSearch(GrowingPlan):
    """Genet: points where a baseline's reward most exceeds the policy's are searched for repeatedly, and join."""

    kind: Literal["gap_search"] = "gap_search"
    every: int = Field(default=72_000, ge=1)
    """Training steps between searches."""
    baseline: str = "bbr"
    """Scheme whose mean reward, minus the policy's, is to be large. ``oracle`` is the gap to the optimum."""
    traces: int = Field(default=10, ge=1, le=1000)
    """Episodes that a gap is the mean of, the same for both."""
    random: int = Field(default=10, ge=1, le=1000)
    """Points of a search that are drawn at random, before any is chosen by the model of the gap."""
    guided: int = Field(default=5, ge=0, le=1000)
    """Points where mean and uncertainty of a Gaussian process promise most."""
    kappa: float = Field(default=20.0, ge=0, le=1e6)
    """Weight of the uncertainty: what is maximized is mean + kappa × standard deviation."""

    @override
    def summary(self) -> str:
        return (
            f"{self.paths.summary()}; every {self.every:,} steps the one of {self.random + self.guided} points joins "
            f"where {self.baseline}'s reward most exceeds the policy's"
        )


class GapBins(GrowingPlan):
    """Paths drawn once, and ordered by how much better one scheme is than another there."""

    kind: Literal["gap_bins"] = "gap_bins"
    better: str = "oracle"
    """Scheme whose mean reward, minus that of ``worse``, is the difficulty."""
    worse: str = "cubic"
    bounds: tuple[float, ...] = Field(min_length=1, max_length=100)
    """Gaps between bins, ascending, in the reward's unit per decision. Bins join in this order, evenly over the
    training."""
    pool: int = Field(default=256, ge=2, le=4096)
    """Points that are drawn and measured, in one episode each, before training begins."""

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
            f"{self.paths.summary()}; {self.pool} of them join in {len(self.bounds) + 1} bins, "
            f"those first where {self.worse} is closest to {self.better}"
        )


@dataclass
class Searched:
    """The curriculum of a search: the ranges, and the points found so far."""

    plan: GapSearch
    points: list[Point] = field(default_factory=list)

    def distribution(self, progress: float) -> PathDistribution:
        """The mixture of ranges and points, whatever the progress."""
        return self.plan.grown([self.plan.paths, *(self.plan.space.at(point) for point in self.points)])

    def level(self) -> float:
        """How many points joined."""
        return float(len(self.points))

    def state_dict(self) -> dict[str, Any]:
        """The points."""
        return {"kind": self.plan.kind, "points": [dict(point) for point in self.points]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over points; refuse the state of another curriculum."""
        (self.points,) = _of_kind(state, self.plan, [state.get("points")])


@dataclass
class Binned:
    """The curriculum of bins: before they are filled, the ranges themselves."""

    plan: GapBins
    bins: list[list[Point]] = field(default_factory=list)
    """By difficulty, the easiest first; only those with points."""
    joined: int = 1
    _made: dict[int, PathDistribution] = field(default_factory=dict, repr=False)
    """Mixtures by how many bins joined: they are asked for after every update."""

    def distribution(self, progress: float) -> PathDistribution:
        """The mixture of the bins that joined; the last joins before the last share of the training."""
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
        """Put measured points into the bins."""
        bins: list[list[Point]] = [[] for _ in range(len(self.plan.bounds) + 1)]
        for point, gap in zip(points, gaps, strict=True):
            bins[sum(gap >= bound for bound in self.plan.bounds)].append(point)
        self.bins = [points for points in bins if points]
        self._made.clear()

    def level(self) -> float:
        """The bin that joined last, counted from 0."""
        return float(self.joined - 1)

    def state_dict(self) -> dict[str, Any]:
        """The bins, and how many joined."""
        bins = [[dict(point) for point in points] for points in self.bins]
        return {"kind": self.plan.kind, "bins": bins, "joined": self.joined}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over bins; refuse the state of another curriculum."""
        self.bins, joined = _of_kind(state, self.plan, [state.get("bins"), state.get("joined")])
        self.joined = int(joined)
        self._made.clear()


def _of_kind(state: Mapping[str, Any], plan: GapSearch | GapBins, parts: list[Any]) -> list[Any]:
    if state.get("kind") != plan.kind or None in parts:
        raise ConfigError(
            "resume-changed",
            f"the state of a curriculum of kind {shown(state.get('kind'))}",
            expected=f"one of kind {plan.kind}",
            hint="the configuration has changed since the checkpoint",
            where="curriculum",
        )
    return parts
