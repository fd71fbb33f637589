"""The runs that a directory keeps, found again by all that decided them.

``runs/<key>.json`` appears when a run ends, whole or not at all; the key is the digest of the run and of what was made
of it (:class:`~ccgym.evaluation.engine.Reduction`). So an interrupted command goes on where it stopped, further schemes
or repetitions only add to what is there, and runs of another version of ccgym or of a policy are not mixed up with
these. Arrays are in ``runs/<key>.npz``. What is damaged is noticed by checksums.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from ccgym.evaluation.directory import RUNS_DIRECTORY, Kind, lock_directory
from ccgym.evaluation.run import Run
from ccgym.files import MAX_ARRAYS_BYTES, UnreadableError, atomic_write, read_bytes, read_json

FORMAT: Final = "ccgym-kept-run"
FORMAT_VERSION: Final = 1
KEY_DIGITS: Final = 20
"""Characters of the digest in file names."""


@dataclass(frozen=True)
class StoredRun:
    """What is kept of a run."""

    digest: str
    reduction: str
    """Name and version of what made :attr:`data` of its record."""
    name: str
    """Name of the run when it was run."""
    data: Any
    """What the reduction made: plain data."""
    trajectory_hash: str
    started_epoch_s: float
    wall_s: float
    limited: str | None = None
    """Why the machine could not hold a real path's schedule; None where it could, and in simulations."""
    arrays_sha256: str | None = None
    """Checksum of the arrays; None where there are none."""


@dataclass(frozen=True)
class Damage:
    """A run whose files are there but cannot be used."""

    reason: str
    """What is wrong with them."""


class RunStore:
    """The runs of a directory. Use it as a context manager: it makes the directory and locks it.

    Args:
        directory: The results directory.
        kind: What else it holds; directories of another kind are refused.
    """

    def __init__(self, directory: Path, kind: Kind = "experiment") -> None:
        self.directory = directory
        self.runs = directory / RUNS_DIRECTORY
        self._kind: Final[Kind] = kind
        self._lock: TextIOWrapper | None = None

    def __enter__(self) -> RunStore:
        self._lock = lock_directory(self.directory, self._kind)
        for partial in [*self.directory.glob(".*.partial"), *self.runs.glob(".*.partial")]:
            partial.unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def load(self, run: Run, reduction: str) -> StoredRun | Damage | None:
        """A finished run; what is wrong with its files; or None where it is not there.

        Args:
            run: Which run.
            reduction: Name and version of what was made of it.
        """
        file = self.directory / run_file(run, reduction)
        try:
            document: dict[str, Any] = read_json(file)
            body = document["body"]
            if document["format"] != FORMAT or document["version"] != FORMAT_VERSION:
                return Damage(f"{file.name} is of another version of ccgym")
            if _checksum(json.dumps(body)) != document["sha256"]:
                return Damage(f"{file.name} does not match its checksum")
            stored = StoredRun(**body)
            if (stored.digest, stored.reduction) != (run.digest, reduction):
                return Damage(f"{file.name} is of another run")
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            return Damage(f"{file.name} {error}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            return Damage(f"{file.name} is cut off or damaged ({type(error).__name__})")
        if stored.arrays_sha256 is not None:
            arrays = file.with_suffix(".npz")
            try:
                if hashlib.sha256(read_bytes(arrays, MAX_ARRAYS_BYTES)).hexdigest() != stored.arrays_sha256:
                    return Damage(f"{arrays.name} does not match its checksum")
            except FileNotFoundError:
                return Damage(f"{arrays.name} is missing")
            except UnreadableError as error:
                return Damage(f"{arrays.name} {error}")
        return stored

    def save(self, run: Run, stored: StoredRun, arrays: bytes | None = None) -> StoredRun:
        """Keep a finished run, and return what :meth:`load` will.

        Args:
            run: Which run.
            stored: What is kept of it.
            arrays: The content of an ``.npz`` file.
        """
        file = self.directory / run_file(run, stored.reduction)
        if arrays is not None:
            atomic_write(file.with_suffix(".npz"), arrays)
        text = json.dumps({field.name: getattr(stored, field.name) for field in fields(stored)})
        document = (
            f'{{"format": "{FORMAT}", "version": {FORMAT_VERSION}, "sha256": "{_checksum(text)}", "body": {text}}}'
        )
        # The last file to appear: with it the run is complete.
        atomic_write(file, document + "\n")
        return StoredRun(**json.loads(text))


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def run_file(run: Run, reduction: str) -> str:
    """The file of a run, relative to the results directory; its arrays are next to it, with the suffix ``.npz``."""
    return f"{RUNS_DIRECTORY}/{_checksum(f'{run.digest} {reduction}')[:KEY_DIGITS]}.json"
