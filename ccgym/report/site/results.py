"""Results of experiments, as ``ccgym evaluate --experiment`` left them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccgym.errors import ResultsError
from ccgym.evaluation.directory import FORMAT as MANIFEST_FORMAT
from ccgym.evaluation.directory import MARKERS
from ccgym.experiments.detail import KeptRun
from ccgym.experiments.results import FORMAT, FORMAT_VERSION
from ccgym.files import UnreadableError, read_json


@dataclass(frozen=True)
class StoredExperiments:
    """The results of one file of experiments."""

    directory: Path
    document: Mapping[str, Any]
    """What :meth:`ccgym.experiments.results.ExperimentResults.to_json` made."""

    @classmethod
    def load(cls, directory: Path) -> StoredExperiments:
        """Read a results directory.

        Raises:
            ResultsError: It holds no results of experiments, or they cannot be read.
        """
        expected = "a directory that `ccgym evaluate --experiment` filled"
        if not (directory / MARKERS["experiment"][0]).exists():
            raise ResultsError("no results of experiments are there", where=str(directory), expected=expected)
        others = []
        for file in sorted(directory.glob("*.json")):
            try:
                document = read_json(file)
            except (UnreadableError, OSError) as error:
                raise ResultsError(f"the file cannot be read: {error}", where=str(file), expected=expected) from None
            found = document.get("format") if isinstance(document, dict) else None
            if found == FORMAT and document.get("version") != FORMAT_VERSION:
                raise ResultsError(
                    f"version {document.get('version')} of the format",
                    where=str(file),
                    expected=f"version {FORMAT_VERSION}",
                    hint="run the same command again with this version of ccgym",
                )
            if found == FORMAT:
                return cls(directory, document)
            if found is not None and found != MANIFEST_FORMAT:
                others.append(file.name)
        if others:
            raise ResultsError(
                f"{', '.join(others)}: a league, which has a page of its own", where=str(directory), expected=expected
            )
        raise ResultsError(
            "the experiment has not ended: there are runs, but no results",
            where=str(directory),
            expected=expected,
            hint="run the same command again: it goes on where it stopped",
        )

    @property
    def name(self) -> str:
        """Name in files."""
        return str(self.document["experiment"])

    @property
    def title(self) -> str:
        """Name for people."""
        title = str(self.document["provenance"]["path"])
        return title[:1].upper() + title[1:]

    @property
    def schemes(self) -> Sequence[Mapping[str, Any]]:
        """The schemes with label, color and marker, in order."""
        return tuple(self.document["schemes"])

    @property
    def tests(self) -> Sequence[Mapping[str, Any]]:
        """The experiments of the file."""
        return tuple(self.document["tests"])

    def outcomes(self, test: str) -> dict[str, Mapping[str, Any]]:
        """The outcomes of an experiment by scheme."""
        return {one["scheme"]: one for one in self.document["outcomes"] if one["test"] == test}

    def kept(self, outcome: Mapping[str, Any], condition: str) -> KeptRun | None:
        """The first run of a scheme in a condition, in detail; None where nothing is kept of it.

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


def find_results(given: Sequence[Path], notice: Callable[[str], object]) -> list[StoredExperiments]:
    """The results in these directories and one level below them.

    Args:
        given: The directories. One that holds results itself has to be usable; of those below another one, what is not
            is left out.
        notice: Gets a line for each that is left out.

    Raises:
        ResultsError: There is none, one that was named cannot be used, or two have one name.
    """
    marker = MARKERS["experiment"][0]
    found: dict[str, StoredExperiments] = {}

    def add(directory: Path) -> None:
        one = StoredExperiments.load(directory)
        if one.name in found:
            raise ResultsError(
                f"experiment {one.name} is there twice",
                where=str(directory),
                expected="each experiment once",
                hint=f"leave this directory out, or {found[one.name].directory}",
            )
        found[one.name] = one

    for directory in given:
        if not directory.is_dir():
            raise ResultsError("there is no such directory", where=str(directory), expected="a results directory")
        if (directory / marker).exists():
            add(directory)
            continue
        for below in sorted(one.parent for one in directory.glob(f"*/{marker}")):
            try:
                add(below)
            except ResultsError as error:
                notice(f"left out: {error.where}: {error.found}")
    if not found:
        raise ResultsError(
            "no results of experiments are there",
            where=", ".join(map(str, given)),
            expected="directories of `ccgym evaluate --experiment NAME`",
            hint="run one first: ccgym evaluate --experiment weaknesses --quick",
        )
    return list(found.values())
