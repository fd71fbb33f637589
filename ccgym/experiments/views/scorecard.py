"""A scorecard: schemes on many paths, a score for each, and rankings over groups of paths.

Every path is an evaluation in its own directory, ``paths/<name>``. Everything else is computed from their results on
access.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

from ccgym.config.path import NetworkPath
from ccgym.evaluation.bootstrap import Ranked, bootstrap, ranked
from ccgym.evaluation.engine import RUNNING, SIMULATING
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.results_file import Measurement, as_document, write_results
from ccgym.evaluation.run import Contender, contenders
from ccgym.experiments.comparison import Counting, run_evaluation
from ccgym.experiments.request import Request
from ccgym.experiments.scorecard_spec import ScorecardSpec
from ccgym.experiments.training import Training
from ccgym.experiments.views.path_result import (
    CardPath,
    CardScheme,
    PathResult,
    _path_result,
    means_of,
    run_score,
)
from ccgym.experiments.views.score import pareto_optimal

PATHS_DIRECTORY: Final = "paths"


@dataclass(frozen=True)
class RankedScheme(Ranked):
    """A scheme in the ranking of a group."""

    wins: int
    """Number of paths on which the scheme has the best score of the competitors."""
    pareto_optimal: int
    """Number of paths on which no competitor dominates the scheme."""
    utilization: float | None
    delay_ratio: float | None
    """Geometric mean of the normalized delay."""
    loss: float | None
    """Mean loss, a fraction."""


@dataclass(frozen=True)
class Group:
    """Paths that are ranked together."""

    name: str
    title: str
    paths: tuple[str, ...]
    learners: tuple[str, ...] = ()
    """Keys of the learned schemes with this training; empty for groups that do not depend on a training."""
    trained: bool = False
    """Whether these learned schemes were trained on the paths of the group; otherwise the paths are held out."""


@dataclass(frozen=True)
class Scorecard:
    """The results of a scorecard."""

    spec: ScorecardSpec = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    """Origin of the results: command, versions, machine, time."""
    paths: tuple[CardPath, ...]
    """The paths, section by section."""
    schemes: tuple[CardScheme, ...]
    """The schemes, in the order of the command."""
    results: Mapping[str, ResultSet] = field(repr=False)

    @property
    def sections(self) -> Mapping[str, str]:
        """Titles of the sections, by name."""
        return {name: section.title for name, section in self.spec.sections.items()}

    @property
    def failures(self) -> tuple[str, ...]:
        """Runs that ended in an error; or that this machine can run none of the schemes."""
        if self.results and not any(results.cells or results.failures for results in self.results.values()):
            return tuple(f"nothing ran: {key} is unavailable: {why}" for key, why in self.unavailable.items())
        return tuple(
            f"{path}: {failure.scheme}, run {failure.run}, seed {failure.seed}: {failure.error}"
            for path, results in self.results.items()
            for failure in results.failures
        )

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Schemes that could not run on this machine, by key, with reasons."""
        return {key: why for results in self.results.values() for key, why in results.unavailable.items()}

    @cached_property
    def path_results(self) -> Mapping[tuple[str, str], PathResult]:
        """Results by path and scheme."""
        return {(result.path, result.scheme): result for path in self.paths for result in self._of_path(path)}

    def _of_path(self, path: CardPath) -> list[PathResult]:
        summaries = {summary.style.key: summary for summary in self.results[path.name].schemes}
        competitors = [one for one in self.schemes if not one.reference]
        means_of_all = [means_of(summaries[one.key]) for one in competitors]
        free = {one.key for one, good in zip(competitors, pareto_optimal(means_of_all), strict=True) if good}
        scores = {
            one.key: tuple(run_score(cell, path.one_way_delay_ms) for cell in summaries[one.key].runs)
            for one in self.schemes
        }
        means = {one.key: statistics.fmean(scores[one.key]) for one in competitors if scores[one.key]}
        top = max(means.values(), default=0.0)
        return [
            _path_result(path, one, summaries[one.key], scores[one.key], one.key in free, means.get(one.key) == top)
            for one in self.schemes
        ]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the YAML; then, for each different training, its paths and the held-out paths."""
        made = [
            Group(name, group.title, tuple(path.name for path in self.paths if path.section in group.sections))
            for name, group in self.spec.groups.items()
        ]
        made = [group for group in made if group.paths]
        splits: dict[tuple[str, ...], list[CardScheme]] = {}
        for one in self.schemes:
            if one.trained_on is not None:
                seen = tuple(path.name for path in self.paths if one.trained_on[path.name])
                splits.setdefault(seen, []).append(one)
        for seen, learners in splits.items():
            unseen = tuple(path.name for path in self.paths if path.name not in seen)
            if not seen or not unseen:  # the same as the ranking over all paths
                continue
            names = ", ".join(one.style.label for one in learners)
            keys = tuple(one.key for one in learners)
            made.append(Group(f"train:{'+'.join(keys)}", f"Training paths of {names}", seen, keys, trained=True))
            made.append(Group(f"held-out:{'+'.join(keys)}", f"Held out from {names}", unseen, keys))
        return tuple(made)

    @cached_property
    def rankings(self) -> Mapping[str, tuple[RankedScheme, ...]]:
        """Schemes by group, from best to worst; references are at the place of their score."""
        return {group.name: self._ranking(group) for group in self.groups}

    def _ranking(self, group: Group) -> tuple[RankedScheme, ...]:
        path_results = self.path_results
        taking_part, paths = self._compared(group)
        if not paths or not taking_part:
            return ()
        resampled = bootstrap(
            [[path_results[path, one.key].scores for one in taking_part] for path in paths],
            [not one.reference for one in taking_part],
            int(self.parameters["seed"]),
            group.name,
        )
        ranking = []
        for place in ranked(resampled, [(one.key, one.style.label, one.reference) for one in taking_part]):
            mine = [path_results[path, place.scheme] for path in paths]
            ranking.append(
                RankedScheme(
                    **vars(place),
                    wins=sum(result.best for result in mine),
                    pareto_optimal=sum(result.pareto_optimal for result in mine),
                    utilization=_mean([result.utilization for result in mine]),
                    delay_ratio=_mean([result.delay_ratio for result in mine], geometric=True),
                    loss=_mean([result.loss for result in mine]),
                )
            )
        return tuple(ranking)

    def ranked_paths(self, group: Group) -> tuple[str, ...]:
        """Return the paths in the ranking of a group: paths on which every scheme in the ranking has a number."""
        return self._compared(group)[1]

    def _compared(self, group: Group) -> tuple[list[CardScheme], tuple[str, ...]]:
        """Return the schemes and the paths of a ranking."""
        scored = {place for place, result in self.path_results.items() if result.scores}
        schemes = [one for one in self.schemes if any((path, one.key) in scored for path in group.paths)]
        # A path on which a scheme has no number would favor or penalize it: the path is left out for all schemes.
        return schemes, tuple(path for path in group.paths if all((path, one.key) in scored for one in schemes))

    def to_json(self) -> dict[str, Any]:
        """Return plain data, documented in ``docs/studies/scorecard.md``."""
        return as_document({
            "kind": "scorecard",
            "name": self.spec.name,
            "parameters": dict(self.parameters),
            "provenance": dict(self.provenance),
            "trajectory_hashes": {name: results.trajectory_hash for name, results in self.results.items()},
            "schemes": [
                {
                    "key": one.key,
                    "label": one.style.label,
                    "reference": one.reference,
                    "learned": one.learned,
                    "trained_on": None
                    if one.trained_on is None
                    else [path.name for path in self.paths if one.trained_on[path.name]],
                }
                for one in self.schemes
            ],
            "paths": [asdict(path) for path in self.paths],
            "path_results": [{**asdict(result), "score": result.score} for result in self.path_results.values()],
            "groups": [
                {**asdict(group), "ranking": [asdict(place) for place in self.rankings[group.name]]}
                for group in self.groups
            ],
            "failures": list(self.failures),
            "unavailable": dict(self.unavailable),
        })  # fmt: skip

    def rows(self) -> Iterator[Measurement]:
        """Yield the measurements on each path, and the score of each run."""
        for name, results in self.results.items():
            yield from results.rows(self.spec.name, name)
        for (path, scheme), result in self.path_results.items():
            cells = [cell for cell in self.results[path].cells if cell.scheme == scheme]
            for cell, value in zip(cells, result.scores, strict=True):
                yield Measurement(self.spec.name, path, scheme, None, cell.run, "score", value, "")


def _mean(values: Sequence[float | None], *, geometric: bool = False) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return statistics.geometric_mean(known) if geometric else statistics.fmean(known)


def run_scorecard(spec: ScorecardSpec, request: Request, observer: Observer | None = None) -> Scorecard:
    """Make the missing runs; write the results.

    Raises:
        CcgymError: A directory contains another experiment's results, or the backend cannot run these paths here.
    """
    observer = observer or Silent()
    started = time.time()
    schemes = request.schemes or contenders(spec.schemes, "schemes")
    evaluations = {name: spec.evaluation(NetworkPath.named(name), schemes, request) for name in spec.paths}
    first = next(iter(evaluations.values()))
    total = sum(len(one.planned()) for one in evaluations.values())
    counting = Counting(observer, RUNNING if first.real else SIMULATING, total)
    results = {
        name: run_evaluation(one, request.out / PATHS_DIRECTORY / name, request, counting, name)
        for name, one in evaluations.items()
    }
    parameters = {
        "experiment": spec.name,
        "ccgym": first.parameters()["ccgym"],
        "schemes": [one.text for one in schemes],
        "policies": first.parameters().get("policies", {}),
        "runs": first.runs,
        "runtime_s": first.runtime_ns / 1e9,
        "seed": first.seed,
        "backend": first.backend,
    }
    made = provenance(spec.title, request.command, started, time.time() - started, request.backend)
    card = Scorecard(
        spec=spec,
        parameters=parameters,
        provenance={**made, "run_s": round(sum(one.wall_s for one in results.values()), 3)},
        paths=tuple(
            CardPath(name, spec.paths[name], one.path.title, one.path.one_way_delay_ms, one.path.mean_rate_mbps)
            for name, one in evaluations.items()
        ),
        schemes=tuple(_card_scheme(one, spec) for one in schemes),
        results=results,
    )
    write_results(request.out, card.to_json(), card.rows())
    return card


def _card_scheme(one: Contender, spec: ScorecardSpec) -> CardScheme:
    training = None if one.choice is None else Training.of(one.choice)
    return CardScheme(
        style=one.style,
        reference=one.knows_path,
        trained_on=None if training is None else {name: training.draws(NetworkPath.named(name)) for name in spec.paths},
        learned=any(choice.policy for choice in one.choices),
    )
