"""What is asked of an experiment besides its YAML, and what a report leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccgym.errors import ConfigError
from ccgym.evaluation.backends import SIMULATED
from ccgym.evaluation.run import Contender, contenders
from ccgym.experiments.spec import PRETRAINED
from ccgym.schemes import policies


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    out: Path
    """The results directory; it is made where it is missing."""
    schemes: tuple[Contender, ...] | None = None
    """The tested schemes, in the order in which they were named; None: those of the experiment."""
    runs: int | None = None
    """Repetitions; None: as the experiment says."""
    runtime_ns: int | None = None
    """Length of a run, nanoseconds; None: as the experiment says."""
    seed: int = 1
    """Root of every random stream."""
    backend: str = SIMULATED
    """Where packets travel: ``sim``, ``emulated`` or ``mahimahi``."""
    jobs: int | None = None
    """Runs at a time; None: as :func:`~ccgym.evaluation.engine.measure` decides."""
    repeat_limited: int = 0
    """As in :func:`~ccgym.evaluation.engine.measure`."""
    quick: bool = False
    """A coarse answer in a fraction of the time: what the experiment's ``quick`` says."""
    command: tuple[str, ...] = ()
    """The command line, for the record."""


@dataclass(frozen=True)
class Written:
    """A file for the reader."""

    title: str
    """What it is, in a word: ``report``, ``figure``, ``table``, ``results``."""
    file: Path
    """Where it is."""


def default_schemes(listed: Sequence[Any], where: str = "schemes") -> tuple[Contender, ...]:
    """The schemes that an experiment lists, with every policy that comes with ccgym for ``pretrained``.

    Raises:
        ConfigError: The list is empty, or one of them is wrong.
        SchemeNotFoundError: No scheme has that name.
    """
    found: list[Any] = []
    for one in listed:
        found += policies.pretrained() if one == PRETRAINED else [one]
    if not found:
        raise ConfigError("no scheme", where=where, expected="at least one")
    return contenders(found, where)
