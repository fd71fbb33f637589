"""What an adversary found: finds with everybody's numbers, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from ccgym.config.path import NetworkPath
from ccgym.evaluation.results_file import Measurement, as_document, unit_of, write_results
from ccgym.evaluation.run import Contender
from ccgym.evaluation.spread import Spread
from ccgym.experiments.adversary_search import NAME, AdversarySpec, Numbers, Searched
from ccgym.experiments.adversary_space import Candidate
from ccgym.files import atomic_write

FAR: Final = 1.0
"""The minimum gap of a find: the scheme has half of the oracle's power."""
LEAD: Final = 0.5
"""By how much a classic scheme must be better on a find for it to be fair."""
KEPT: Final = 0.8
"""Fraction of the gap that remains of a find when it is minimized, and that real packets must show to confirm it."""

CATALOG_FILE: Final = "adversary_paths.yaml"
DISTRIBUTION_FILE: Final = "adversary_distribution.yaml"
PATHS_DIRECTORY: Final = "paths"


@dataclass(frozen=True)
class SchemeOnPath:
    """A contender on a find: its runs, and means over them."""

    key: str
    label: str
    runs: tuple[Numbers, ...]
    score: Spread
    throughput_mbps: float | None
    delay_p95_ms: float | None
    loss: float | None
    utilization: float | None


@dataclass(frozen=True)
class Real:
    """A find with real packets."""

    gap: float | None
    """The gap there; None where nothing was measured."""
    note: str
    """Why not, or what is to be known of it; mostly empty."""
    confirmed: bool
    """Whether :data:`KEPT` of the simulated gap was there."""
    score: float | None = None
    """The scheme's score there."""
    oracle: float | None = None
    """The oracle's: that of a machine which is late is worse, and the gap smaller."""


@dataclass(frozen=True)
class Find:
    """A path on which a scheme is far from the oracle."""

    name: str
    scheme: str
    """Key of the scheme."""
    candidate: Candidate
    sentence: str
    path: Mapping[str, Any]
    """Arguments of :class:`~ccgym.config.path.NetworkPath`."""
    gap: Spread
    """The oracle's score less the scheme's, run by run."""
    original: Candidate
    """What the search had found."""
    original_gap: float
    trials: int
    """Candidates that were tried to minimize it."""
    measured: tuple[SchemeOnPath, ...]
    """The scheme, the oracle, then classic schemes from best to worst."""
    fair: bool
    """Whether a classic scheme does better by :data:`LEAD` or more."""
    trained: bool | None
    """Whether the scheme's training could have drawn it; None of schemes that were not learned or do not say."""
    replay: str
    """The command that runs it again."""
    real: Real | None = None
    """With real packets; None where it was not tried."""

    @property
    def own(self) -> SchemeOnPath:
        """The scheme's numbers."""
        return self.measured[0]

    @property
    def oracle(self) -> SchemeOnPath:
        """The oracle's."""
        return self.measured[1]

    @property
    def classic(self) -> SchemeOnPath:
        """Those of the best classic scheme."""
        return self.measured[2]

    def network_path(self) -> NetworkPath:
        """The path."""
        return NetworkPath(name=self.name, title=self.sentence, **self.path)


@dataclass(frozen=True)
class SchemeFinds:
    """What was found of a scheme."""

    scheme: Contender
    searched: Searched
    spent_s: float
    """Time of the runs of search, minimization and measurement."""
    finds: tuple[Find, ...]


@dataclass(frozen=True)
class AdversaryResults:
    """What was found."""

    spec: AdversarySpec = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    schemes: tuple[SchemeFinds, ...]
    failures: tuple[str, ...]
    """Runs that ended in an error."""
    unconfirmed: str = ""
    """Why finds were not tried with real packets; empty where they were, or it was not asked for."""

    @property
    def finds(self) -> tuple[Find, ...]:
        """All finds."""
        return tuple(find for one in self.schemes for find in one.finds)

    def to_json(self) -> dict[str, Any]:
        """Plain data, documented in ``docs/studies/adversary.md``."""
        return as_document({
            "kind": "adversary",
            "parameters": dict(self.parameters),
            "provenance": dict(self.provenance),
            "schemes": [
                {
                    "scheme": one.scheme.text,
                    "key": one.scheme.key,
                    "evaluations": one.searched.evaluations,
                    "search_s": round(one.searched.spent_s, 1),
                    "spent_s": round(one.spent_s, 1),
                    "history": [list(place) for place in one.searched.history],
                    "elites": [asdict(elite) | {"kind": elite.candidate.kind} for elite in one.searched.elites],
                    "finds": [asdict(find) for find in one.finds],
                }
                for one in self.schemes
            ],
            "unconfirmed": self.unconfirmed,
            "failures": list(self.failures),
        })  # fmt: skip

    def rows(self) -> Iterator[Measurement]:
        """Each run of each scheme on the finds."""
        for find in self.finds:
            for one in find.measured:
                for run, numbers in enumerate(one.runs, start=1):
                    for metric, value in vars(numbers).items():
                        yield Measurement(NAME, find.name, one.key, None, run, metric, value, unit_of(metric))


def write_finds(results: AdversaryResults, directory: Path) -> None:
    """Write the results; every find as a path; all of them as a catalog, and as a distribution."""
    (directory / PATHS_DIRECTORY).mkdir(parents=True, exist_ok=True)
    for find in results.finds:
        said = {"name": find.name, "title": find.sentence, "source": source_text(results, find)}
        text = as_yaml({**said, **find.path})
        atomic_write(directory / PATHS_DIRECTORY / f"{find.name}.yaml", text)
    entries = {
        find.name: {"title": find.sentence, "source": source_text(results, find), "path": dict(find.path)}
        for find in results.finds
    }
    atomic_write(directory / CATALOG_FILE, as_yaml({"paths": entries}))
    files = [str(directory / PATHS_DIRECTORY / f"{find.name}.yaml") for find in results.finds]
    if files:
        atomic_write(directory / DISTRIBUTION_FILE, as_yaml({"paths": {"kind": "named", "names": files}}))
    write_results(directory, results.to_json(), results.rows())


def source_text(results: AdversaryResults, find: Find) -> str:
    """Where a find is from."""
    real = find.real
    confirmed = "" if real is None or real.gap is None else f"; gap with real packets {real.gap:.1f}"
    return (
        f"ccgym adversary {find.scheme}, seed {results.parameters['seed']}: gap {find.gap.mean:.1f}, oracle's score "
        f"{find.oracle.score.mean:.2f}, {find.classic.label}'s {find.classic.score.mean:.2f}{confirmed}"
    )


def as_yaml(data: Mapping[str, Any]) -> str:
    """The data as YAML in its order, short lists in one line."""
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True))
