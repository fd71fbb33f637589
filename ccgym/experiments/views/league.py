"""A league: games between schemes on paths of several kinds, and absolute ratings of each scheme.

Every experiment with ``games`` is a *section*. Its runs are as in any experiment; games, ratings and rankings are
computed from their metrics on access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ccgym.evaluation.bootstrap import Ranked, bootstrap, centered, ranked
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.results_file import as_document, write_results
from ccgym.evaluation.store import RunStore
from ccgym.experiments.request import Request
from ccgym.experiments.run import Executed, checked, execute
from ccgym.experiments.spec import ExperimentSet
from ccgym.experiments.views.games import (
    Floats,
    improvement,
)
from ccgym.experiments.views.league_section import (
    WEIGHTS,
    LeagueScheme,
    LeagueSection,
    _of,
    _section,
    _strata,
)
from ccgym.schemes.reading import parse_scheme


@dataclass(frozen=True)
class League:
    """The results of a league."""

    source: ExperimentSet = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    members: tuple[LeagueScheme, ...]
    """The schemes, in the order of the command."""
    sections: tuple[LeagueSection, ...]
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    left: int = 0
    """Number of runs that were left because time was up."""

    @property
    def name(self) -> str:
        """Name in files."""
        return self.source.name

    @cached_property
    def everywhere(self) -> tuple[LeagueScheme, ...]:
        """The schemes that have numbers in every section."""
        return tuple(one for one in self.members if all(one in section.members for section in self.sections))

    @cached_property
    def rankings(self) -> Mapping[str, tuple[Ranked, ...]]:
        """Schemes by section and for ``all``, from best to worst by the interquartile mean of the rating over paths."""
        made = {"all": self._ranking(self.everywhere, self.sections, "all")} if len(self.sections) > 1 else {}
        return made | {one.name: self._ranking(one.members, [one], one.name) for one in self.sections}

    def _ranking(
        self, members: Sequence[LeagueScheme], sections: Sequence[LeagueSection], name: str
    ) -> tuple[Ranked, ...]:
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
        """Keys from best to worst, and the probability that a scheme (row) is better than another (column)."""
        order = self.rankings[next(iter(self.rankings))]
        by_key = {one.key: one for one in self.members}
        members = [by_key[place.scheme] for place in order]
        rated = [_of(section, members) for section in self.sections]
        runs = min(one.shape[1] for one in rated)
        together = np.concatenate([one[:, :runs] for one in rated])
        return tuple(one.key for one in members), improvement(together, np.array(_strata(rated)))

    @cached_property
    def weighted(self) -> Mapping[str, Mapping[float, int]]:
        """Rank of each competitor for each of :data:`WEIGHTS`, over sections where throughput and delay count."""
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

    def published(self, section: LeagueSection) -> list[PublishedRow]:
        """Return winning rates among the schemes of the publication, next to the published winning rates."""
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
        """Return plain data, documented in ``docs/studies/league.md``."""
        keys, probabilities = self.improvements
        return as_document({
            "kind": "league",
            "name": self.name,
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
            "left": self.left,
        })  # fmt: skip

    def scores(self) -> list[dict[str, str]]:
        """Return the mean rating of each scheme, in the form of :meth:`.ExperimentResults.scores`."""
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


@dataclass(frozen=True)
class PublishedRow:
    """A scheme's published winning rate next to ccgym's, fractions."""

    scheme: str
    label: str
    instead: str
    """The published scheme that it substitutes; empty: it is the published scheme."""
    published: float | None
    """Published winning rate; None if unknown."""
    as_published: float
    """ccgym's winning rate with ccBench's rounding."""
    exact: float
    """ccgym's winning rate without rounding."""


def run_league(source: ExperimentSet, request: Request, observer: Observer | None = None) -> League:
    """Make the runs that are not in ``request.out`` yet; write the results there.

    Raises:
        CcgymError: As in :func:`~ccgym.experiments.run.execute`; or the directory cannot be used.
    """
    checked(source, request)  # before the directory is created
    with RunStore(request.out, "experiment") as store:
        ran = execute(source, request, store, observer or Silent())
        league = league_of(ran)
        write_results(request.out, league.to_json(), ran.rows())
    return league


def league_of(ran: Executed) -> League:
    """Return games and rankings from the runs."""
    members = tuple(LeagueScheme(one.style, one.knows_path) for one in ran.schemes)
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
