"""A league: schemes against each other on paths of several kinds, in games, and how good each is by itself.

Every experiment with ``games`` is a *section*. Its runs are those of any experiment; the games, ratings and rankings
are computed from their metrics anew whenever they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.bootstrap import Ranked, bootstrap, centered, ranked
from ccgym.evaluation.engine import Observer, Silent
from ccgym.evaluation.frames import rows_to_csv
from ccgym.evaluation.run import Contender
from ccgym.evaluation.store import RunStore
from ccgym.experiments.games import (
    Floats,
    fair_share_rating,
    fair_share_winners,
    improvement,
    power_winners,
    worst,
)
from ccgym.experiments.request import Request
from ccgym.experiments.results import RunResult, Test
from ccgym.experiments.run import Executed, PlannedRun, checked, execute
from ccgym.experiments.score import score
from ccgym.experiments.spec import ExperimentSet, Games
from ccgym.files import atomic_write
from ccgym.schemes.reading import parse_scheme
from ccgym.schemes.style import SchemeStyle

FORMAT: Final = "ccgym-league"
FORMAT_VERSION: Final = 1
WEIGHTS: Final = (0.5, 1.0, 2.0, 4.0)
"""Weights of the throughput against the delay that ranks are shown for; 1 is that of the rating, 2 that of ccBench."""
RATING_WEIGHT: Final = 1.0


@dataclass(frozen=True)
class Member:
    """A scheme of a league."""

    style: SchemeStyle
    reference: bool
    """Whether it knows the path: then it shows what is possible, and takes no part in games."""

    @property
    def key(self) -> str:
        """Its name in files."""
        return self.style.key


@dataclass(frozen=True)
class Place:
    """A path of a section."""

    condition: str
    """Key of its condition."""
    run: int
    """Number of the first run over it: where paths are drawn, each run has its own."""
    base_rtt_ms: float
    rate_mbps: float
    """Mean rate of the bottleneck."""
    flows: int


@dataclass(frozen=True)
class Section:
    """A section of a league, measured. The axes of arrays are path, run, window and scheme."""

    test: Test
    games: Games
    members: tuple[Member, ...]
    """The schemes that have numbers here."""
    places: tuple[Place, ...]
    """The paths on which all of them have."""
    missing: int
    """Paths that are left out, since a scheme has no number there."""
    throughput: Floats
    """Mbit/s."""
    rtt: Floats
    """Mean one-way delay and the way back, ms; NaN where nothing arrived; empty of ``fair_share``."""
    share: Floats
    """Part of the capacity that was used; empty of ``fair_share``."""

    @property
    def name(self) -> str:
        """Name in files."""
        return self.test.name

    @property
    def competitors(self) -> list[str]:
        """Keys of the schemes that take part in games."""
        return [one.key for one in self.members if not one.reference]

    def ratings(self, weight: float = RATING_WEIGHT) -> Floats:
        """By path, run and scheme: the mean over the windows.

        Args:
            weight: Of the throughput; it has no meaning for ``fair_share``.
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
        """Part of the games that each scheme wins.

        Args:
            among: Keys of those who take part; by default all competitors.
            rounded: Whether throughput and delay are rounded first, as ccBench has it.
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
        """Games of each scheme."""
        return int(np.prod(self.throughput.shape[:3]))

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """By scheme: the mean and the worst tenth of the rating, and means of what it is made of."""
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


@dataclass(frozen=True)
class League:
    """What was measured."""

    source: ExperimentSet = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    members: tuple[Member, ...]
    """The schemes, in the order in which they were named."""
    sections: tuple[Section, ...]
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    left: int = 0
    """How many runs were left because time was up."""

    @property
    def name(self) -> str:
        """Name in files."""
        return self.source.name

    @cached_property
    def everywhere(self) -> tuple[Member, ...]:
        """The schemes that have numbers in every section."""
        return tuple(one for one in self.members if all(one in section.members for section in self.sections))

    @cached_property
    def rankings(self) -> Mapping[str, tuple[Ranked, ...]]:
        """By section, and ``all``: from best to worst by the interquartile mean of the rating over paths."""
        made = {"all": self._ranking(self.everywhere, self.sections, "all")} if len(self.sections) > 1 else {}
        return made | {one.name: self._ranking(one.members, [one], one.name) for one in self.sections}

    def _ranking(self, members: Sequence[Member], sections: Sequence[Section], name: str) -> tuple[Ranked, ...]:
        rated = [_of(section, members) for section in sections]
        if not members or not any(one.size for one in rated):
            return ()
        resampled = bootstrap(
            [path.T.tolist() for one in rated for path in one],
            [not one.reference for one in members],
            int(self.parameters["seed"]),
            f"{self.name} {name}",
            center="interquartile",
            strata=_strata(rated),
        )
        return tuple(ranked(resampled, [(one.key, one.style.label, one.reference) for one in members]))

    @cached_property
    def improvements(self) -> tuple[tuple[str, ...], Floats]:
        """Keys from best to worst, and the probability that one (row) is better than another (column)."""
        order = self.rankings[next(iter(self.rankings))]
        by_key = {one.key: one for one in self.members}
        members = [by_key[place.scheme] for place in order]
        rated = [_of(section, members) for section in self.sections]
        runs = min(one.shape[1] for one in rated)
        together = np.concatenate([one[:, :runs] for one in rated])
        return tuple(one.key for one in members), improvement(together, np.array(_strata(rated)))

    @cached_property
    def weighted(self) -> Mapping[str, Mapping[float, int]]:
        """By competitor: its rank for each of :data:`WEIGHTS`, in the sections where throughput and delay count."""
        sections = [one for one in self.sections if one.games.rule == "power"]
        members = [one for one in self.everywhere if not one.reference]
        ranks: dict[str, dict[float, int]] = {one.key: {} for one in members}
        if not sections:
            return {}
        for weight in WEIGHTS:
            centers = np.mean(
                [centered(_of(one, members, weight).mean(axis=1), "interquartile") for one in sections], axis=0
            )
            for rank, place in enumerate(np.argsort(-centers, kind="stable"), start=1):
                ranks[members[place].key][weight] = rank
        return ranks

    def published(self, section: Section) -> list[PublishedRow]:
        """The winning rates among those who took part in what was published, next to the published ones."""
        given = section.games.published
        if given is None:
            return []
        keys = {parse_scheme(name, "published").style.key: name for name in given.participants}
        labels = {one.key: one.style.label for one in section.members}
        both = [section.winning_rates(list(keys), rounded=rounded) for rounded in (True, False)]
        rows = [
            PublishedRow(
                key, labels[key], given.instead.get(keys[key], ""), given.rates.get(keys[key]), rate, both[1][key]
            )
            for key, rate in both[0].items()
        ]
        return sorted(rows, key=lambda row: (-(-1.0 if row.published is None else row.published), -row.as_published))

    def to_json(self) -> dict[str, Any]:
        """Plain data, documented in ``docs/league.md``."""
        keys, probabilities = self.improvements
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "experiment": self.name,
            "parameters": dict(self.parameters),
            "provenance": dict(self.provenance),
            "schemes": [{"key": one.key, "label": one.style.label, "reference": one.reference} for one in self.members],
            "rankings": {name: [asdict(place) for place in places] for name, places in self.rankings.items()},
            "sections": [
                {
                    "name": one.name,
                    "title": one.test.title,
                    "rule": one.games.rule,
                    "paths": len(one.places),
                    "left_out": one.missing,
                    "games": one.game_count,
                    "winning_rates": one.winning_rates(rounded=True),
                    "winning_rates_exact": one.winning_rates(rounded=False),
                    "published": [asdict(row) for row in self.published(one)],
                    "means": one.means,
                }
                for one in self.sections
            ],
            "weights": {key: {f"{weight:g}": rank for weight, rank in ranks.items()}
                        for key, ranks in self.weighted.items()},
            "improvement": {"schemes": list(keys), "probability": probabilities.round(4).tolist()},
            "failures": list(self.failures),
            "notes": list(self.notes),
        }  # fmt: skip

    def scores(self) -> list[dict[str, str]]:
        """What each scheme came to, as :meth:`ccgym.experiments.results.ExperimentResults.scores`: its mean rating."""
        return [
            {
                "experiment": section.name,
                "scheme": place.scheme,
                "verdict": "none",
                "quantity": "rating",
                "numbers": f"{place.score.mean:.2f}",
            }
            for section in self.sections
            for place in self.rankings[section.name]
        ]

    def ranking_csv(self) -> str:
        """A row per section (``all`` for all of them) and scheme."""
        rows = []
        by_name = {one.name: one for one in self.sections}
        for name, places in self.rankings.items():
            section = by_name.get(name)
            rates = [{}, {}] if section is None else [section.winning_rates(rounded=r) for r in (True, False)]
            for place in places:
                means = {} if section is None else section.means[place.scheme]
                rows.append(
                    {
                        "section": name,
                        "rank": place.rank,
                        "scheme": place.scheme,
                        "label": place.label,
                        **place.score.columns("rating"),
                        **place.behind.columns("behind"),
                        "first": place.first,
                        "winning_rate": rates[0].get(place.scheme),
                        "winning_rate_exact": rates[1].get(place.scheme),
                        **{name: means.get(name) for name in ("mean", "worst", "share", "delay_ratio")},
                        **{
                            f"rank_weight_{weight:g}": rank
                            for weight, rank in self.weighted.get(place.scheme, dict.fromkeys(WEIGHTS)).items()
                            if section is None
                        },
                    }
                )
        return rows_to_csv(rows)

    def games_csv(self) -> str:
        """A row per section, path, run, window and scheme."""
        rows = []
        for section in self.sections:
            power = section.games.rule == "power"
            for index in np.ndindex(*section.throughput.shape):
                path, run, window, scheme = index
                rows.append(
                    {
                        "section": section.name,
                        "condition": section.places[path].condition,
                        "run": section.places[path].run + run,
                        "window": window + 1,
                        "scheme": section.members[scheme].key,
                        "throughput_mbps": f"{section.throughput[index]:.6g}",
                        "rtt_ms": f"{section.rtt[index]:.6g}" if power else None,
                        "share": f"{section.share[index]:.6g}" if power else None,
                    }
                )
        return rows_to_csv(rows)


@dataclass(frozen=True)
class PublishedRow:
    """A scheme's published winning rate next to ours, fractions."""

    scheme: str
    label: str
    instead: str
    """The published scheme that it stands in for; empty: it is the published one."""
    published: float | None
    """None where it is not known."""
    as_published: float
    """Ours, with ccBench's rounding."""
    exact: float
    """Ours, without."""


def run_league(source: ExperimentSet, request: Request, observer: Observer | None = None) -> League:
    """Run what is not in ``request.out`` yet; write ``NAME.json``, ``NAME.csv`` and ``NAME_games.csv`` there.

    Raises:
        CcgymError: As :func:`~ccgym.experiments.run.execute`; or the directory cannot be used.
    """
    checked(source, request)  # before the directory is made
    with RunStore(request.out, "experiment") as store:
        league = league_of(execute(source, request, store, observer or Silent()))
        document = json.dumps(league.to_json(), ensure_ascii=False, indent=1)
        atomic_write(request.out / f"{source.name}.json", document + "\n")
        atomic_write(request.out / f"{source.name}.csv", league.ranking_csv())
        atomic_write(request.out / f"{source.name}_games.csv", league.games_csv())
    return league


def league_of(ran: Executed) -> League:
    """Games and rankings from the runs."""
    members = tuple(Member(one.style, one.knows_path) for one in ran.schemes)
    sections = [_section(test, members, ran.plans[test.name], ran.ran(test), ran.schemes) for test in ran.tests]
    return League(
        source=ran.source,
        parameters=ran.parameters,
        provenance=ran.provenance,
        members=members,
        sections=tuple(one for one in sections if one.members and one.places),
        failures=ran.failures,
        notes=ran.notes,
        left=ran.left,
    )


def _section(
    test: Test,
    members: Sequence[Member],
    plan: Sequence[PlannedRun],
    runs: Mapping[str, Sequence[RunResult]],
    schemes: Sequence[Contender],
) -> Section:
    games = test.spec.games
    assert games is not None
    values = {(key, one.condition, one.run): one.values for key, own in runs.items() for one in own}
    taking_part = tuple(one for one in members if runs.get(one.key))
    # Repetitions over the same path belong together; where paths are drawn, each run has a path of its own.
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
        Place(
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
    return Section(
        test=test,
        games=games,
        members=taking_part,
        places=places,
        missing=len(numbers) - len(complete),
        throughput=table(games.throughput),
        rtt=table(games.delay) + back[:, None, None, None] if power else nothing,
        share=table(games.share) if power else nothing,
    )


def _of(section: Section, members: Sequence[Member], weight: float = RATING_WEIGHT) -> Floats:
    """The ratings of these schemes, by path, run and scheme."""
    places = [section.members.index(one) for one in members]
    return section.ratings(weight)[..., places]


def _strata(rated: Sequence[Floats]) -> list[int]:
    return [kind for kind, one in enumerate(rated) for _ in range(len(one))]
