"""Results in the form that ``ccgym evaluate`` writes: of experiments, and results with their own report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ccgym.errors import ResultsError
from ccgym.evaluation.directory import MARKERS
from ccgym.evaluation.results_file import RESULTS_FILE, read_results
from ccgym.experiments.detail import KeptRun
from ccgym.report.site.shapes import check_document


@dataclass(frozen=True)
class Stored:
    """A results directory."""

    directory: Path
    document: Mapping[str, Any]
    """Contents of ``results.json``."""

    @property
    def name(self) -> str:
        """Name of the results in files."""
        return str(self.document.get("name", self.directory.name))

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Origin of the results: command, versions, machine."""
        own: Mapping[str, Any] = self.document["provenance"]
        return own

    @property
    def title(self) -> str:
        """Title for users."""
        return str(self.provenance["path"]).partition("\n")[0]


@dataclass(frozen=True)
class StoredExperiments(Stored):
    """The results of one file of experiments: :meth:`ccgym.experiments.views.results.ExperimentResults.to_json`."""

    @property
    def schemes(self) -> Sequence[Mapping[str, Any]]:
        """The schemes with label, color and marker, in order."""
        return tuple(self.document["schemes"])

    @property
    def tests(self) -> Sequence[Mapping[str, Any]]:
        """The experiments of the file."""
        return tuple(self.document["tests"])

    def outcomes(self, test: str) -> dict[str, Mapping[str, Any]]:
        """Return the outcomes of an experiment by scheme."""
        return {one["scheme"]: one for one in self.document["outcomes"] if one["test"] == test}

    def kept(self, outcome: Mapping[str, Any], condition: str) -> KeptRun | None:
        """Return the details of a scheme's first run in a condition; None if they were not kept.

        Raises:
            ResultsError: Its file is damaged.
        """
        for run in outcome["runs"]:
            if run["condition"] == condition and run.get("kept"):
                try:
                    return KeptRun.read(self.directory / run["kept"])
                except FileNotFoundError:
                    return None
        return None


@dataclass(frozen=True)
class StoredReport(Stored):
    """Results with their own report: an evaluation, a league, a scorecard, a gap."""

    @property
    def kind(self) -> str:
        """The kind of results, in a word."""
        return str(self.document["kind"])

    @property
    def page(self) -> str:
        """File name of its page, or of its tables if it was made without a page; empty if there is neither."""
        pages = (f"{self.name}.html", "pantheon_report.html", "gap_report.html", "scorecard.html")
        names = (*pages, f"{self.name}.md", "pantheon_table.md", "gap_report.md", "scorecard.md")
        return next((name for name in names if (self.directory / name).exists()), "")

    @property
    def files(self) -> list[Path]:
        """The files of the report."""
        return sorted(one for one in self.directory.iterdir() if one.suffix in _REPORT_FILES and one.is_file())

    @property
    def ratings(self) -> Mapping[str, float]:
        """Mean ratings of a league over all its sections, without references; empty for other reports."""
        if self.kind != "league":
            return {}
        ranking: Sequence[Mapping[str, Any]] = next(iter(self.document["rankings"].values()), [])
        return {place["scheme"]: place["score"]["mean"] for place in ranking if not place["reference"]}


_REPORT_FILES: Final = frozenset({".html", ".pdf", ".svg", ".png", ".md", ".csv"})


def load_results(directory: Path) -> StoredExperiments | StoredReport:
    """Read a results directory.

    Raises:
        ResultsError: The directory contains no results, or they cannot be read.
    """
    document = read_results(directory)
    of_experiments = document["kind"] in ("experiment", "requirements")
    check_document(document, "experiments" if of_experiments else "report", directory / RESULTS_FILE)
    return (StoredExperiments if of_experiments else StoredReport)(directory, document)


def _holds_results(directory: Path) -> bool:
    return any((directory / MARKERS[kind][0]).exists() for kind in ("experiment", "evaluation"))


def find_results(given: Sequence[Path], notice: Callable[[str], object]) -> Sequence[Stored]:
    """Return the results in these directories and one level below them.

    Args:
        given: The directories. Results directly in one of them must be usable; unusable results one level below are
            left out.
        notice: Gets a line for each results directory that is left out.

    Raises:
        ResultsError: There are no results, named results cannot be used, or two results have the same name.
    """
    found: dict[str, Stored] = {}

    def add(directory: Path) -> None:
        one = load_results(directory)
        if one.name in found:
            raise ResultsError(
                "duplicate",
                f"{one.name} is given twice",
                where=str(directory),
                expected="each experiment once",
                hint=f"leave this directory out, or {found[one.name].directory}",
            )
        found[one.name] = one

    for directory in given:
        if not directory.is_dir():
            raise ResultsError(
                "results-missing", "there is no such directory", where=str(directory), expected="a results directory"
            )
        if _holds_results(directory):
            add(directory)
            continue
        for below in sorted(filter(_holds_results, directory.iterdir())):
            try:
                add(below)
            except ResultsError as error:
                notice(f"left out: {error.where}: {error.found}")
    if not found:
        raise ResultsError(
            "results-missing",
            "no results found",
            where=", ".join(map(str, given)),
            expected="directories of `ccgym evaluate` or `ccgym benchmark`",
            hint="run one first: ccgym evaluate --experiment stress_tests --quick",
        )
    return list(found.values())
