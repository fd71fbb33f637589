"""Results directories: each has one kind of results, of one experiment, and one process at a time writes to it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ccgym import files
from ccgym.errors import ResultsError
from ccgym.files import UnreadableError, atomic_write, read_json

RUNS_DIRECTORY: Final = "runs"
LOCK_FILE: Final = ".ccgym_lock"

Kind: TypeAlias = Literal["evaluation", "experiment", "training"]

MARKERS: Final[Mapping[Kind, tuple[str, str]]] = {
    "evaluation": ("ccgym_manifest.json", "the results of an evaluation"),
    "experiment": ("ccgym_experiment.json", "the results of an experiment"),
    "training": ("seeds.json", "a training run"),
}
"""By kind: the file that identifies a directory of this kind, and a description of the content."""

MANIFEST_FILE: Final = MARKERS["evaluation"][0]
FORMAT: Final = "ccgym-manifest"
FORMAT_VERSION: Final = 2


def refuse_other_kinds(directory: Path, kind: Kind, option: str = "--out") -> None:
    """Raise :class:`ResultsError` if a directory contains another kind of results; ``option`` gave the directory."""
    for other, (file, what) in MARKERS.items():
        if other != kind and (directory / file).exists():
            raise ResultsError(
                "directory-taken",
                f"the directory contains {what}",
                where=str(directory),
                expected=f"an empty directory, or one that contains {MARKERS[kind][1]}",
                hint=f"choose another directory with {option}",
            )


def lock_directory(directory: Path, kind: Kind, inside: str = RUNS_DIRECTORY, option: str = "--out") -> TextIOWrapper:
    """Create a results directory and its inner directory, if they do not exist, and lock it for this process.

    Args:
        directory: The results directory.
        kind: Kind of results for it.
        inside: Name of the inner directory.
        option: The option that gave the directory, for errors.

    Returns:
        The lock file: closing it, or the end of the process, releases the lock.

    Raises:
        ResultsError: The directory contains something else, cannot be written, or is in use.
    """
    refuse_other_kinds(directory, kind, option)
    with _writing(directory, option):
        (directory / inside).mkdir(parents=True, exist_ok=True)
        lock = (directory / LOCK_FILE).open("a+", encoding="utf-8")
    try:
        files.lock(lock)
    except OSError:
        lock.seek(0)
        holder = lock.read(32).strip()
        lock.close()
        raise ResultsError(
            "directory-locked",
            f"another process{f' ({holder})' if holder else ''} is writing to this directory",
            where=str(directory),
            expected="one process at a time",
            hint=f"wait for that process, end it, or choose another directory with {option}",
        ) from None
    # Incomplete files of a killed process; because of the lock, no other process writes here.
    for folder in (directory, directory / inside):
        for partial in folder.glob(".*.partial"):
            if partial.is_file():
                partial.unlink(missing_ok=True)
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


@contextmanager
def _writing(directory: Path, option: str = "--out") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(
            "file-unwritable",
            f"the directory cannot be written: {error.strerror}",
            where=str(directory),
            expected="a directory that exists or can be created",
            hint=f"choose another one with {option}",
        ) from error


def claim(
    directory: Path, parameters: Mapping[str, Any], kind: Kind = "evaluation", may_differ: Collection[str] = ()
) -> None:
    """Write the manifest of an evaluation or experiment, or check that the existing one has the same parameters.

    Args:
        directory: The results directory; created if it does not exist.
        parameters: The identity of the results, as plain data.
        kind: Kind of results in the directory.
        may_differ: Names of parameters that may differ.

    Raises:
        ResultsError: The directory contains something else, or cannot be written.
    """
    refuse_other_kinds(directory, kind)
    file = directory / MARKERS[kind][0]
    runs = directory / RUNS_DIRECTORY
    new = json.loads(json.dumps(parameters))
    if file.exists():
        old = _manifest(file)
        fixed = [{name: value for name, value in one.items() if name not in may_differ} for one in (old, new)]
        if fixed[0] != fixed[1]:
            different = differences(old, new)
            found = "; ".join(different[:6]) + ("; …" if len(different) > 6 else "")
            raise _foreign(directory, f"the directory contains the results of a different experiment ({found})")
        if old == new:
            return
    elif runs.is_dir() and any(runs.iterdir()):
        raise _foreign(directory, "there are results, but no manifest that identifies their experiment")
    document = {"format": FORMAT, "version": FORMAT_VERSION, "parameters": new}
    with _writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        atomic_write(file, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def held_parameters(directory: Path, kind: Kind = "evaluation") -> dict[str, Any] | None:
    """Return the parameters in a directory's manifest; None without a manifest; empty if it cannot be read."""
    file = directory / MARKERS[kind][0]
    try:
        return _manifest(file) if file.exists() else None
    except ResultsError:
        return {}


def _manifest(file: Path) -> dict[str, Any]:
    try:
        document = read_json(file)
        known = document["format"] == FORMAT and document["version"] == FORMAT_VERSION
        if not known or not isinstance(document["parameters"], dict):
            raise _foreign(file.parent, f"{file.name} is damaged, or from another version of ccgym")
        return dict(document["parameters"])
    except UnreadableError as error:
        raise _foreign(file.parent, f"{file.name} {error}") from None
    except (OSError, KeyError, TypeError) as error:
        raise _foreign(file.parent, f"{file.name} is damaged: {error!r}") from error


def _foreign(directory: Path, found: str) -> ResultsError:
    return ResultsError(
        "directory-taken",
        found,
        where=str(directory),
        expected="an empty directory, or one from the same command",
        hint="choose another directory with --out, or delete this one",
    )


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return the differences between two parameter sets, one line per place: ``runs: 5 there, 10 here``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines = []
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{place}.{key}" if place else str(key)
            if key not in old or key not in new:
                lines.append(f"{inner}: only {'here' if key in new else 'there'}")
            else:
                lines += differences(old[key], new[key], inner)
        return lines
    return [] if old == new else [f"{place}: {_short(old)} there, {_short(new)} here"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"
