"""What a suite is: many paths or tests, one command, one result.

A suite runs in two steps that know nothing of each other. :class:`Suite` measures and leaves a :class:`SuiteResult`,
plain data without drawing. :class:`SuiteReport` turns that into words for the terminal, tables, figures and a page; it
lives in :mod:`ccgym.report`, which :mod:`ccgym.evaluation` must not import. The registry
(:mod:`ccgym.evaluation.suites`) has a line for each suite that names both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ccgym.evaluation.backends import SIMULATED
from ccgym.schemes.registry import SchemeChoice

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class SuiteRequest:
    """What was asked for."""

    schemes: tuple[SchemeChoice, ...]
    """The schemes, checked and distinct, in the order in which they were named."""
    out: Path
    """The directory of results; the suite makes it."""
    runs: int | None = None
    """Runs per scheme and path or test; None: what the suite finds right."""
    runtime_ns: int | None = None
    """Length of a run, nanoseconds; None: what the suite finds right."""
    seed: int = 1
    """Root of every random stream."""
    backend: str = SIMULATED
    """Where packets travel: ``sim``, ``emulated`` or ``mahimahi``."""
    jobs: int | None = None
    """Runs at a time; None: as :func:`~ccgym.evaluation.runner.run_experiment` decides."""
    repeat_limited: int = 0
    """As in :func:`~ccgym.evaluation.runner.run_experiment`."""
    quick: bool = False
    """A coarse answer in a fraction of the time: fewer, shorter runs, or a subset of paths or tests."""
    command: tuple[str, ...] = ()
    """The command line, for the record."""


class SuiteProgress(Protocol):
    """Who wants to know how it goes; called from the main thread only."""

    def notice(self, text: str) -> None:
        """Something worth a line: a damaged result that is run again, a scheme that is left out."""
        ...

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """A stage begins, of ``total`` steps, ``done`` of which were done before (``"simulating"``, ``"figures"``)."""
        ...

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """Steps of a stage are done; ``note`` says which, in a few words (``"bbr · policer-12mbps-rtt20"``).

        ``kept``: they were done before, and are only counted now.
        """
        ...


class SilentProgress:
    """A :class:`SuiteProgress` that tells nobody."""

    def notice(self, text: str) -> None:
        """See :class:`SuiteProgress`."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """See :class:`SuiteProgress`."""

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        """See :class:`SuiteProgress`."""


class SuiteResult(Protocol):
    """What came out."""

    @property
    def failures(self) -> Sequence[str]:
        """Runs that ended in an error, a line each, or why nothing ran: exit status 1. Doing badly is not a failure."""
        ...

    def to_json(self) -> Mapping[str, Any]:
        """All of it as plain data: what ``--json`` prints, and what the suite has written into its directory."""
        ...


class Suite(Protocol):
    """Measures schemes on many paths or by many tests."""

    @property
    def name(self) -> str:
        """What one types: ``--suite <name>``. Results go to ``results/<name>`` by default."""
        ...

    @property
    def title(self) -> str:
        """A line for headings and ``--help``."""
        ...

    def schemes(self, *, real: bool) -> Sequence[SchemeChoice]:
        """The schemes where none are named; ``real``: whether packets will be real."""
        ...

    def run(self, request: SuiteRequest, progress: SuiteProgress) -> SuiteResult:
        """Measure what is not there yet, and write numbers (JSON, CSV) into ``request.out``, atomically.

        Every run is kept as it ends: interrupted, by an exception or by the machine, the same request goes on.

        Raises:
            CcgymError: The request makes no sense, or the directory holds the results of another one. What goes wrong
                in a single run is in :attr:`SuiteResult.failures` instead.
        """
        ...


@dataclass(frozen=True)
class Written:
    """A file for the reader."""

    title: str
    """What it is, in a word: ``report``, ``figure``, ``table``, ``results``."""
    file: Path
    """Where it is."""


_Result = TypeVar("_Result", contravariant=True)


class SuiteReport(Protocol[_Result]):
    """Shows what a suite measured."""

    def terminal(self, result: _Result) -> Sequence[RenderableType]:
        """What is printed at the end: short, the best first. Texts and rich tables, one below the other."""
        ...

    def write(self, result: _Result, directory: Path, progress: SuiteProgress, *, figures: bool) -> Sequence[Written]:
        """Write tables, and with ``figures`` the figures and the page; the most important file first.

        Args:
            result: What the suite returned.
            directory: Its directory.
            progress: Told how drawing goes.
            figures: Whether anything is drawn.
        """
        ...
