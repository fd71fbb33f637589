"""The store of runs in a results directory. Runs are found by the digest of all parameters that decide them.

A run is one file. It is written completely when the run ends, or not at all. Its key is the digest of the run and of
its reduction (:class:`~ccgym.evaluation.engine.Reduction`). So an interrupted command continues where it stopped,
further schemes or repetitions add runs, and runs of other versions of ccgym or of a policy are not mixed.
Checksums detect damaged files.

``runs/<key>.json`` is a run with plain data only. A run with arrays is ``runs/<key>.npz``, which numpy reads: the
arrays, the same document as ``run.json``, and the SHA-256 of all earlier bytes as the archive's comment. The previous
version kept the document of such a run in a file next to its arrays; both forms can be read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from ccgym.evaluation.directory import RUNS_DIRECTORY, Kind, lock_directory
from ccgym.evaluation.kept_arrays import DAMAGED, LEVEL
from ccgym.evaluation.run import Run
from ccgym.files import (
    MAX_ARRAYS_BYTES,
    MAX_JSON_BYTES,
    UnreadableError,
    atomic_write,
    parse_json,
    read_bytes,
    read_json,
)

FORMAT: Final = "ccgym-kept-run"
FORMAT_VERSION: Final = 1
KEY_DIGITS: Final = 20
"""Number of characters of the digest in file names."""
_DOCUMENT: Final = "run.json"
"""Name of a run's document in an archive of arrays."""
_SUM_CHARACTERS: Final = 64
"""Length of a SHA-256 as text."""


@dataclass(frozen=True)
class StoredRun:
    """The kept data of a run."""

    digest: str
    reduction: str
    """Name and version of the reduction that computed :attr:`data`."""
    name: str
    """Name of the run when it was run."""
    data: Any
    """Plain data from the reduction."""
    trajectory_hash: str
    started_epoch_s: float
    wall_s: float
    limited: str | None = None
    """Reason why the machine could not hold a real path's schedule; None if it could, and in simulations."""
    arrays_sha256: str | None = None
    """Checksum of the arrays; None if there are none."""


@dataclass(frozen=True)
class Damage:
    """A run whose files exist but cannot be used."""

    reason: str
    """Reason why the files cannot be used."""


class RunStore:
    """The runs of a directory. Use it as a context manager: it creates the directory and locks it.

    Args:
        directory: The results directory.
        kind: Kind of results in it; directories of another kind are refused.
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
        """Return a finished run; :class:`Damage` if its files cannot be used; or None if there is no such run.

        Args:
            run: The run.
            reduction: Name and version of its reduction.
        """
        file = self.directory / run_file(run, reduction)
        try:
            stored = read_run(file)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            return Damage(str(error))
        if (stored.digest, stored.reduction) != (run.digest, reduction):
            return Damage(f"{file.stem} belongs to another run")
        return stored

    def save(self, run: Run, stored: StoredRun, arrays: bytes | None = None) -> StoredRun:
        """Save a finished run, and return it as :meth:`load` would.

        Args:
            run: The run.
            stored: Its data.
            arrays: The content of an ``.npz`` file.
        """
        file = self.directory / run_file(run, stored.reduction)
        text = json.dumps({field.name: getattr(stored, field.name) for field in fields(stored)})
        document = (
            f'{{"format": "{FORMAT}", "version": {FORMAT_VERSION}, "sha256": "{_sum(text.encode())}", "body": {text}}}'
        )
        if arrays is None:
            atomic_write(file, document + "\n")
        else:
            content = BytesIO(arrays)
            with ZipFile(content, "a", ZIP_DEFLATED, compresslevel=LEVEL) as archive:
                archive.writestr(_DOCUMENT, document + "\n")
                archive.comment = b"." * _SUM_CHARACTERS
            whole = content.getvalue()[:-_SUM_CHARACTERS]
            atomic_write(file.with_suffix(".npz"), whole + hashlib.sha256(whole).hexdigest().encode())
            file.unlink(missing_ok=True)  # the file of the previous version
        return StoredRun(**json.loads(text))


def read_run(file: Path) -> StoredRun:
    """Read a kept run from a file, ``.json`` or ``.npz``, and check its checksums.

    Raises:
        FileNotFoundError: The file does not exist.
        UnreadableError: The run is damaged; the error names the file and the reason.
    """
    arrays, content = file.with_suffix(".npz"), None
    try:
        content = read_bytes(arrays, MAX_ARRAYS_BYTES)
    except FileNotFoundError:
        pass
    except UnreadableError as error:
        raise UnreadableError(f"{arrays.name} {error}") from None
    whole = content is not None and _sum(content[:-_SUM_CHARACTERS]).encode() == content[-_SUM_CHARACTERS:]
    file = arrays if whole else file.with_suffix(".json")
    try:
        if whole:
            assert content is not None
            with ZipFile(BytesIO(content)) as archive, archive.open(_DOCUMENT) as member:
                document = parse_json(member.read(MAX_JSON_BYTES))
        else:
            document = read_json(file)
        if document["format"] != FORMAT or document["version"] != FORMAT_VERSION:
            raise UnreadableError("is from another version of ccgym")
        if _sum(json.dumps(document["body"]).encode()) != document["sha256"]:
            raise UnreadableError("does not match its checksum")
        stored = StoredRun(**document["body"])
    except FileNotFoundError:
        if content is None:
            raise
        raise UnreadableError(f"{arrays.name} does not match its checksum") from None
    except UnreadableError as error:
        raise UnreadableError(f"{file.name} {error}") from None
    except DAMAGED as error:
        raise UnreadableError(f"{file.name} is cut off or damaged ({type(error).__name__})") from None
    if stored.arrays_sha256 is not None and not whole and (content is None or _sum(content) != stored.arrays_sha256):
        raise UnreadableError(f"{arrays.name} {'is missing' if content is None else 'does not match its checksum'}")
    return stored


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def run_file(run: Run, reduction: str, *, arrays: bool = False) -> str:
    """Return the file of a run, relative to the results directory."""
    key = _sum(f"{run.digest} {reduction}".encode())[:KEY_DIGITS]
    return f"{RUNS_DIRECTORY}/{key}{'.npz' if arrays else '.json'}"
