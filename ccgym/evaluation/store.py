"""A results directory: what is already there, and how new results get in.

Every file is written under another name and then renamed, so that a sweep may be killed at any instant: the next one
with the same parameters goes on where it stopped. ``ccgym_manifest.json`` says whose directory it is; a run is
complete when ``cells/<scheme>_run<k>.json`` is there, matches its checksum, and so do the files it lists.

A store that may *grow* also takes an experiment with other schemes or another number of runs: a run depends on neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from ccgym.errors import ResultsError
from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.experiment import Cell, Experiment, differences, parameters_hash
from ccgym.evaluation.lock import CELLS_DIRECTORY, MARKERS, lock_directory
from ccgym.evaluation.results import CellResult, atomic_write
from ccgym.files import UnreadableError, read_json

MANIFEST_FILE: Final = MARKERS["evaluation"][0]
FORMAT: Final = "ccgym-manifest"
CELL_FORMAT: Final = "ccgym-cell"
FORMAT_VERSION: Final = 1
GROWING: Final = ("schemes", "policies", "runs")
"""Parameters in which an experiment may differ from the one that a growing store holds."""


@dataclass(frozen=True)
class Damage:
    """A run whose files are there but cannot be used."""

    cell: str
    """Name of the run."""
    reason: str
    """What is wrong with them."""


class ResultStore:
    """The results directory of one experiment. Use it as a context manager: it holds a lock.

    Args:
        directory: The directory.
        experiment: Whose it is.
        grow: Whether it may have been that of an experiment with other schemes or runs; those are kept.
    """

    def __init__(self, directory: Path, experiment: Experiment, *, grow: bool = False) -> None:
        self.directory = directory
        self.cells = directory / CELLS_DIRECTORY
        self._experiment = experiment
        self._grow = grow
        self._lock: TextIOWrapper | None = None

    def __enter__(self) -> ResultStore:
        self._lock = lock_directory(self.directory, "evaluation")
        try:
            self._claim()
            for partial in [*self.directory.glob(".*.partial"), *self.cells.glob(".*.partial")]:
                partial.unlink(missing_ok=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _claim(self) -> None:
        """Write the manifest, or make sure that the one there is this experiment's."""
        manifest = self.directory / MANIFEST_FILE
        parameters = json.loads(json.dumps(self._experiment.parameters()))
        if not manifest.exists():
            if any(self.cells.iterdir()):
                raise self._foreign("there are results, but no manifest that says whose", [])
            self._write_manifest(parameters, {})
            return
        try:
            there = read_json(manifest)
            known = there["format"] == FORMAT and there["version"] == FORMAT_VERSION
            old, digest = there["parameters"], there["hash"]
        except UnreadableError as error:
            raise self._foreign(f"{MANIFEST_FILE} {error}", []) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._foreign(f"{MANIFEST_FILE} is damaged: {error!r}", []) from error
        if not known or parameters_hash(old) != digest:
            raise self._foreign(f"{MANIFEST_FILE} is damaged, or of another version of ccgym", [])
        if digest == parameters_hash(parameters):
            return
        if not self._grow or _fixed(old) != _fixed(parameters):
            raise self._foreign(
                "the directory holds the results of a different experiment", differences(old, parameters)
            )
        versions: dict[str, str] = there.get("policies", old.get("policies", {}))
        self._forget_other_versions(versions, parameters)
        self._write_manifest(parameters, versions)

    def _write_manifest(self, parameters: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        """Write the manifest; it remembers the versions of all policies that have runs here, asked for or not."""
        known = {**versions, **parameters.get("policies", {})}
        document = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "hash": parameters_hash(parameters),
            "parameters": parameters,
            **({"policies": known} if known else {}),
        }
        atomic_write(self.directory / MANIFEST_FILE, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    def _forget_other_versions(self, versions: Mapping[str, str], parameters: Mapping[str, Any]) -> None:
        """Remove the runs of policies that have another version now: they have the same names, and the same seeds."""
        for key, digest in parameters.get("policies", {}).items():
            if versions.get(key, digest) != digest:
                for cell in self.cells.glob(f"{key}_run*.json"):
                    cell.unlink(missing_ok=True)

    def _foreign(self, found: str, different: list[str]) -> ResultsError:
        shown = "; ".join(different[:6]) + ("; …" if len(different) > 6 else "")
        return ResultsError(
            f"{found} ({shown})" if shown else found,
            where=str(self.directory),
            expected="an empty directory, or one that the same command filled",
            hint="choose another directory with --out, or delete this one",
        )

    def series_file(self, cell: Cell) -> Path:
        """The CSV of a run over time."""
        return self.directory / f"{cell.name}.csv"

    def _cell_file(self, cell: Cell) -> Path:
        return self.cells / f"{cell.name}.json"

    def _curves_file(self, cell: Cell) -> Path:
        return self.cells / f"{cell.name}.npz"

    def write(self, cell: Cell, result: CellResult, curves: RunCurves, logs: Iterable[str]) -> None:
        """Store a finished run; ``logs`` are the names of its packet logs, already written."""
        packed = curves.to_bytes()
        atomic_write(self._curves_file(cell), packed)
        body = {
            "seed": cell.seed,
            "result": result.as_dict(),
            "curves_sha256": hashlib.sha256(packed).hexdigest(),
            "log_files": {name: _fingerprint(self.directory / name) for name in logs},
        }
        text = json.dumps(body)
        document = {
            "format": CELL_FORMAT,
            "version": FORMAT_VERSION,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "body": body,
        }
        # The last file to appear: with it the run is complete.
        atomic_write(self._cell_file(cell), json.dumps(document))

    def read(self, cell: Cell, *, with_logs: bool) -> CellResult | Damage | None:
        """A finished run; what is wrong with its files; or None where it has not been run.

        Args:
            cell: which run.
            with_logs: whether its packet logs are wanted, too; without them it counts as not run.
        """
        file = self._cell_file(cell)
        try:
            document: dict[str, Any] = read_json(file)
            body = document["body"]
            if document["format"] != CELL_FORMAT or document["version"] != FORMAT_VERSION:
                return Damage(cell.name, f"{file.name} is of another version of ccgym")
            if hashlib.sha256(json.dumps(body).encode()).hexdigest() != document["sha256"]:
                return Damage(cell.name, f"{file.name} does not match its checksum")
            if body["seed"] != cell.seed:
                return Damage(cell.name, f"{file.name} was run with another seed")
            result = CellResult.from_dict(body["result"])
            # Earlier versions stored no checksums: their logs count as not written.
            logs: dict[str, dict[str, Any]] = body.get("log_files", {})
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            return Damage(cell.name, f"{file.name} {error}")
        except (OSError, ValueError, KeyError, TypeError, ResultsError) as error:
            return Damage(cell.name, f"{file.name} is cut off or damaged ({type(error).__name__})")
        curves = self._curves_file(cell)
        try:
            if hashlib.sha256(curves.read_bytes()).hexdigest() != body["curves_sha256"]:
                return Damage(cell.name, f"{curves.name} does not match its checksum")
        except OSError:
            return Damage(cell.name, f"{curves.name} is missing")
        if with_logs:
            if not logs:
                return None
            for name, known in logs.items():
                wrong = _what_is_wrong(self.directory / name, known)
                if wrong is not None:
                    return Damage(cell.name, f"{name} {wrong}")
        return result

    def last_end(self) -> float:
        """When the last of the runs that are here ended, seconds since the epoch; 0 where there is none."""
        end = 0.0
        for file in self.cells.glob("*.json"):
            # What is damaged is reported, and run again, where it is asked for.
            with suppress(OSError, UnreadableError, KeyError, TypeError):
                result = read_json(file)["body"]["result"]
                end = max(end, result["started_epoch_s"] + result["record"]["duration_s"])
        return end

    def curves(self, cell: str) -> RunCurves:
        """The curves of a finished run, by the run's name (``cubic_run1``)."""
        return read_curves(self.directory, cell)


def _fingerprint(log: Path) -> dict[str, Any]:
    """By what a packet log is known again."""
    stat = log.stat()
    return {"bytes": stat.st_size, "changed_ns": stat.st_ctime_ns, "sha256": _sha256(log)}


def _what_is_wrong(log: Path, known: Mapping[str, Any]) -> str | None:
    """What is wrong with a packet log, or None.

    A log whose change time is still that of its fingerprint is not read again, since a gigabyte of logs takes seconds:
    the kernel sets this time on every write, and lets nobody set it back. Of a copy it is another, so its bytes decide.
    """
    try:
        stat = log.stat()
        if stat.st_size != known["bytes"]:
            return "is cut off or was edited"
        if stat.st_ctime_ns != known["changed_ns"] and _sha256(log) != known["sha256"]:
            return "was edited"
    except OSError:
        return "is missing"
    return None


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _fixed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name not in GROWING}


def holder(directory: Path) -> str | None:
    """Hash of the parameters of the experiment that a directory holds; None where it holds none."""
    try:
        return str(read_json(directory / MANIFEST_FILE)["hash"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return "unknown"


def held_parameters(directory: Path) -> dict[str, Any]:
    """Parameters of the experiment that a directory holds; empty where they cannot be read."""
    try:
        return dict(json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))["parameters"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def curves_file(directory: Path, cell: str) -> Path:
    """Where the curves of a run are, by the run's name (``cubic_run1``), in a results directory."""
    return directory / CELLS_DIRECTORY / f"{cell}.npz"


def read_curves(directory: Path, cell: str) -> RunCurves:
    """The curves of a finished run, by the run's name (``cubic_run1``), from a results directory."""
    file = curves_file(directory, cell)
    try:
        return RunCurves.from_bytes(file.read_bytes())
    except (OSError, ValueError, KeyError) as error:
        raise ResultsError(
            f"the curves of {cell} cannot be read: {error!r}",
            where=str(file),
            expected="what `ccgym evaluate` wrote",
            hint="run the same evaluation again: it notices, and runs this one anew",
        ) from error
