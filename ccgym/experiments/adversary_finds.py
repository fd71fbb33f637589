"""Finds of an adversary with the numbers of all schemes, and their files."""

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
"""Min lead of a classic scheme over the scheme on a find, in score, for the find to be fair."""
KEPT: Final = 0.8
"""Min fraction of the gap that remains after minimization, and that real packets must show to confirm a find."""

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
    """The gap with real packets; None if it was not measured."""
    note: str
    """Why there is no gap, or a remark on it; usually empty."""
    confirmed: bool
    """Whether the gap was at least :data:`KEPT` times the simulated gap."""
    score: float | None = None
    """The scheme's score with real packets."""
    oracle: float | None = None
    """The oracle's score with real packets: on a slow machine it is worse, and the gap is smaller."""


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
    """The oracle's score minus the scheme's score, run by run."""
    original: Candidate
    """The path that the search found, before minimization."""
    original_gap: float
    trials: int
    """Number of candidates in the minimization."""
    measured: tuple[SchemeOnPath, ...]
    """The scheme, the oracle, then classic schemes from best to worst."""
    fair: bool
    """Whether a classic scheme is better by at least :data:`LEAD`."""
    trained: bool | None
    """Whether the scheme's training could have drawn the path; None if the scheme is not learned or it is unknown."""
    replay: str
    """The command that runs the find again."""
    real: Real | None = None
    """Results with real packets; None if they were not tried."""

    @property
    def own(self) -> SchemeOnPath:
        """The scheme's numbers."""
        return self.measured[0]

    @property
    def oracle(self) -> SchemeOnPath:
        """The oracle's numbers."""
        return self.measured[1]

    @property
    def classic(self) -> SchemeOnPath:
        """The numbers of the best classic scheme."""
        return self.measured[2]

    def network_path(self) -> NetworkPath:
        """Return the path."""
        return NetworkPath(name=self.name, title=self.sentence, **self.path)


@dataclass(frozen=True)
class SchemeFinds:
    """The search for one scheme, and its finds."""

    scheme: Contender
    searched: Searched
    spent_s: float
    """Time of the runs of search, minimization and measurement, seconds."""
    finds: tuple[Find, ...]


@dataclass(frozen=True)
class AdversaryResults:
    """The finds for all schemes."""

    spec: AdversarySpec = field(repr=False)
    parameters: Mapping[str, Any]
    provenance: Mapping[str, Any]
    schemes: tuple[SchemeFinds, ...]
    failures: tuple[str, ...]
    """Runs that ended in an error."""
    unconfirmed: str = ""
    """Why finds were not tried with real packets; empty if they were, or if this was not requested."""

    @property
    def finds(self) -> tuple[Find, ...]:
        """All finds."""
        return tuple(find for one in self.schemes for find in one.finds)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, documented in ``docs/studies/adversary.md``."""
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
        """Yield each run of each scheme on the finds."""
        for find in self.finds:
            for one in find.measured:
                for run, numbers in enumerate(one.runs, start=1):
                    for metric, value in vars(numbers).items():
                        yield Measurement(NAME, find.name, one.key, None, run, metric, value, unit_of(metric))


def write_finds(results: AdversaryResults, directory: Path) -> None:
    """Write the results, every find as a path, and all finds as a catalog and as a distribution."""
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
    """Return the origin of a find as text."""
    real = find.real
    confirmed = "" if real is None or real.gap is None else f"; gap with real packets {real.gap:.1f}"
    return (
        f"ccgym adversary {find.scheme}, seed {results.parameters['seed']}: gap {find.gap.mean:.1f}, oracle's score "
        f"{find.oracle.score.mean:.2f}, {find.classic.label}'s {find.classic.score.mean:.2f}{confirmed}"
    )


def as_yaml(data: Mapping[str, Any]) -> str:
    """Return the data as YAML in its order, with short lists in one line."""
    return str(yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=118, allow_unicode=True))
