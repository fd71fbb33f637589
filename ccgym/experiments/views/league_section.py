"""Results of a league's section: games, winning rates, ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.run import Contender
from ccgym.experiments.outcome import RunResult, Test
from ccgym.experiments.plan import PlannedRun
from ccgym.experiments.spec import Games
from ccgym.experiments.views.games import (
    Floats,
    fair_share_rating,
    fair_share_winners,
    power_winners,
    worst,
)
from ccgym.experiments.views.score import score
from ccgym.schemes.style import SchemeStyle

WEIGHTS: Final = (0.5, 1.0, 2.0, 4.0)
"""Weights of throughput against delay in tables of ranks; 1 is the weight of the rating, 2 the weight of ccBench."""


RATING_WEIGHT: Final = 1.0


@dataclass(frozen=True)
class LeagueScheme:
    """A scheme of a league."""

    style: SchemeStyle
    reference: bool
    """Whether the scheme has the path's parameters: it then shows what is possible, and is not in the games."""

    @property
    def key(self) -> str:
        """Name of the scheme in files."""
        return self.style.key


@dataclass(frozen=True)
class LeaguePath:
    """A path of a section."""

    condition: str
    """Key of its condition."""
    run: int
    """Number of the first run over the path: if paths are drawn, each run has its own path."""
    base_rtt_ms: float
    rate_mbps: float
    """Mean rate of the bottleneck, Mbit/s."""
    flows: int


@dataclass(frozen=True)
class LeagueSection:
    """Results of a league's section. The axes of arrays are path, run, window and scheme."""

    test: Test
    games: Games
    members: tuple[LeagueScheme, ...]
    """The schemes that have numbers in this section."""
    places: tuple[LeaguePath, ...]
    """The paths on which all of these schemes have numbers."""
    missing: int
    """Number of paths that are left out, since a scheme has no number there."""
    throughput: Floats
    """Throughput, Mbit/s."""
    rtt: Floats
    """Mean one-way delay plus the delay of the way back, ms; NaN if nothing arrived; empty for ``fair_share``."""
    share: Floats
    """Used fraction of the capacity; empty for ``fair_share``."""

    @property
    def name(self) -> str:
        """Name in files."""
        return self.test.name

    @property
    def competitors(self) -> list[str]:
        """Keys of the schemes that take part in games."""
        return [one.key for one in self.members if not one.reference]

    def ratings(self, weight: float = RATING_WEIGHT) -> Floats:
        """Return the mean rating over the windows, by path, run and scheme.

        Args:
            weight: Weight of the throughput; without meaning for ``fair_share``.
        """
        if self.games.rule == "fair_share":
            fair = self._fair()
            rated = np.vectorize(fair_share_rating, otypes=[float])(self.throughput, fair)
        else:
            base = np.array([place.base_rtt_ms for place in self.places])[:, None, None, None]
            arrived = np.isfinite(self.rtt)
            share = np.where(arrived, self.share, 0.0)
            rated = np.vectorize(score, otypes=[float])(share, np.where(arrived, self.rtt, base) / base, weight)
        return np.asarray(rated.mean(axis=2))

    def _fair(self) -> Floats:
        return np.array([place.rate_mbps / place.flows for place in self.places])[:, None, None, None]

    def winning_rates(self, among: Sequence[str] | None = None, *, rounded: bool) -> dict[str, float]:
        """Return the fraction of games that each scheme wins.

        Args:
            among: Keys of the schemes that take part; by default all competitors.
            rounded: Whether throughput and delay are rounded first, as in ccBench.
        """
        keys = [one for one in self.competitors if among is None or one in among]
        columns = [place for place, one in enumerate(self.members) if one.key in keys]
        throughput = self.throughput[..., columns]
        if not throughput.size:
            return {}
        if self.games.rule == "fair_share":
            won = fair_share_winners(throughput, self._fair(), rounded=rounded)
        else:
            won = power_winners(throughput, self.rtt[..., columns], rounded=rounded)
        rates = won.mean(axis=(0, 1, 2))
        return dict(zip(keys, map(float, rates), strict=True))

    @property
    def game_count(self) -> int:
        """Number of games of each scheme."""
        return int(np.prod(self.throughput.shape[:3]))

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """By scheme: mean and worst tenth of the rating, and means of the quantities in the rating."""
        rated = self.ratings().mean(axis=1)
        tenth = worst(rated)
        found = {}
        for place, one in enumerate(self.members):
            own = {"mean": float(rated[:, place].mean()), "worst": float(tenth[place])}
            if self.games.rule == "power":
                base = np.array([place.base_rtt_ms for place in self.places])[:, None, None]
                with np.errstate(invalid="ignore"):
                    ratio = np.log2(self.rtt[..., place] / base)
                own["share"] = float(self.share[..., place].mean())
                own["delay_ratio"] = float(2 ** np.nanmean(ratio)) if np.isfinite(ratio).any() else float("nan")
            else:
                own["share"] = float((self.throughput[..., place] / self._fair()[..., 0]).mean())
            found[one.key] = own
        return found


def _section(
    test: Test,
    members: Sequence[LeagueScheme],
    plan: Sequence[PlannedRun],
    runs: Mapping[str, Sequence[RunResult]],
    schemes: Sequence[Contender],
) -> LeagueSection:
    games = test.spec.games
    assert games is not None
    values = {(key, one.condition, one.run): one.values for key, own in runs.items() for one in own}
    taking_part = tuple(one for one in members if runs.get(one.key))
    # Repetitions over the same path belong together; if paths are drawn, each run has its own path.
    numbers: dict[tuple[str, Any], list[int]] = {}
    first: dict[tuple[str, Any], PlannedRun] = {}
    for one in plan:
        if one.tested.key == schemes[0].key:
            path = (one.condition.key, one.scenario.path)
            numbers.setdefault(path, []).append(one.number)
            first.setdefault(path, one)
    complete = {
        path: own
        for path, own in numbers.items()
        if all((one.key, path[0], number) in values for one in taking_part for number in own)
    }

    def table(keys: Sequence[str]) -> npt.NDArray[np.float64]:
        found = [
            [
                [[values[one.key, path[0], number][key] for one in taking_part] for key in keys]
                for number in complete[path]
            ]
            for path in complete
        ]
        return np.array(found, dtype=np.float64)

    places = tuple(
        LeaguePath(
            condition=path[0],
            run=own[0],
            base_rtt_ms=first[path].scenario.path.base_rtt_ms,
            rate_mbps=first[path].scenario.path.mean_rate_mbps,
            flows=len(first[path].scenario.flows),
        )
        for path, own in complete.items()
    )
    back = np.array(
        [first[path].scenario.path.base_rtt_ms - first[path].scenario.path.one_way_delay_ms for path in complete]
    )
    power = games.rule == "power" and bool(complete)
    nothing = np.empty((0, 0, 0, 0))
    return LeagueSection(
        test=test,
        games=games,
        members=taking_part,
        places=places,
        missing=len(numbers) - len(complete),
        throughput=table(games.throughput),
        rtt=table(games.delay) + back[:, None, None, None] if power else nothing,
        share=table(games.share) if power else nothing,
    )


def _of(section: LeagueSection, members: Sequence[LeagueScheme], weight: float = RATING_WEIGHT) -> Floats:
    """Return the ratings of these schemes, by path, run and scheme."""
    places = [section.members.index(one) for one in members]
    return section.ratings(weight)[..., places]


def _strata(rated: Sequence[Floats]) -> list[int]:
    return [kind for kind, one in enumerate(rated) for _ in range(len(one))]
