"""Which experiment a directory belongs to: what one wrote is never mixed with what another would have measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ccgym import __version__
from ccgym.errors import ResultsError
from ccgym.evaluation.directory import MARKERS, differences, refuse_other_kinds
from ccgym.evaluation.run import digest
from ccgym.experiments.request import Request
from ccgym.files import atomic_write, read_json

MANIFEST_FILE: Final = MARKERS["experiment"][0]
FORMAT: Final = "ccgym-experiment-manifest"
FORMAT_VERSION: Final = 1


def identity(name: str, request: Request) -> dict[str, Any]:
    """What must be the same for runs to be used again. Schemes and the number of runs need not: runs are kept one by
    one, and depend on neither.

    Args:
        name: The experiment.
        request: What was asked of it.
    """
    return {
        "experiment": name,
        "ccgym": __version__,
        "seed": request.seed,
        "runtime_s": None if request.runtime_ns is None else request.runtime_ns / 1e9,
        "quick": request.quick,
        "backend": request.backend,
    }


def held_by(directory: Path) -> dict[str, Any] | None:
    """The identity of the experiment that has a directory; None where there is none; empty where it cannot be read."""
    try:
        document = read_json(directory / MANIFEST_FILE)
        found = document["parameters"] if document["format"] == FORMAT and document["version"] == FORMAT_VERSION else {}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def default_directory(name: str, request: Request) -> Path:
    """``results/<experiment>``; with what differs from the usual where another experiment has that.

    Args:
        name: The experiment.
        request: What is asked of it; its ``out`` does not matter.
    """
    mine = identity(name, request)
    words = [name, *(["quick"] if request.quick else [])]
    words += [request.backend] if request.backend != "sim" else []
    plain = Path("results", "-".join(words))
    if held_by(plain) in (None, mine) and not (plain / MARKERS["evaluation"][0]).exists():
        return plain
    return plain.with_name(f"{plain.name}-{digest(mine)[:8]}")


def claim(name: str, request: Request) -> None:
    """Make the directory this experiment's.

    Raises:
        ResultsError: It is another one's, or cannot be written.
    """
    refuse_other_kinds(request.out, "experiment")
    mine, there = identity(name, request), held_by(request.out)
    if there is not None and there != mine:
        differing = "; ".join(differences(there, mine)[:6]) if there else "results of something else"
        raise ResultsError(
            f"the directory holds the results of a different evaluation ({differing})",
            where=str(request.out),
            expected="an empty directory, or one that the same experiment filled; schemes and runs may differ",
            hint="choose another directory with --out, or delete this one",
        )
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        document = {"format": FORMAT, "version": FORMAT_VERSION, "parameters": mine}
        atomic_write(request.out / MANIFEST_FILE, json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise ResultsError(
            f"the directory cannot be written: {error.strerror}",
            where=str(request.out),
            expected="a directory that exists or can be made",
            hint="choose another one with --out",
        ) from error
