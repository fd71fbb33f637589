"""Exceptions: every one says where, what was found, what was expected, and what to do.

All of ccgym's own exceptions derive from :class:`CcgymError`, so a caller needs one ``except``. Command-line
programs print the message on standard error and exit with status 2 (see :mod:`ccgym.cli.common`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_E = TypeVar("_E", bound="CcgymError")

MAX_SHOWN = 160
"""Max characters of foreign text in an error message."""


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` was most likely meant to be, or ``None`` if none is close.

    Case and the difference between ``-`` and ``_`` do not count.
    """

    def plain(text: str) -> str:
        return text.casefold().replace("_", "-")

    by_plain = {plain(candidate): candidate for candidate in known}
    wanted = plain(name)
    if wanted in by_plain:
        return by_plain[wanted]
    close = difflib.get_close_matches(wanted, by_plain, n=1, cutoff=0.6)
    return by_plain[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean 'x'?" for the nearest known name, else ``otherwise``."""
    close = near_miss(name, known)
    return f"did you mean {close!r}?" if close is not None else otherwise


def shown(value: object) -> str:
    """Quote a foreign value for an error message: on one line, and not longer than :data:`MAX_SHOWN` characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


class CcgymError(Exception):
    """Base of every exception that ccgym raises on purpose.

    Args:
        found: What was there, e.g. ``"'mbits'"`` or ``"trace '77mbps'"``.
        expected: What would have been right. Empty if nothing can be said.
        hint: What to do. Empty if that follows from the rest.
        where: File and line, key path or argument name. Empty if there is no such place.
    """

    def __init__(self, found: str, *, expected: str = "", hint: str = "", where: str = "") -> None:
        super().__init__(found, expected, hint, where)
        self.found = found
        self.expected = expected
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.found, self.expected, self.hint, self.where))

    def at(self: _E, where: str) -> _E:
        """Return the same error with ``where`` put in front of its place."""
        if not where or self.where == where:
            place = self.where
        elif self.where:
            place = f"{where}: {self.where}"
        else:
            place = where
        return _rebuild(type(self), self.found, self.expected, self.hint, place)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put a place in front of what errors within say of theirs: a key, a file, an option."""
    try:
        yield
    except CcgymError as error:
        raise error.at(where) from None


def _rebuild(kind: type[_E], found: str, expected: str, hint: str, where: str) -> _E:
    return kind(found, expected=expected, hint=hint, where=where)


class ConfigError(CcgymError, ValueError):
    """A configuration file, a path description or an argument is wrong."""


class UnitError(ConfigError):
    """A quantity cannot be read: no unit, an unknown unit, or out of range."""


class TraceFormatError(CcgymError, ValueError):
    """A delivery trace is not one; ``where`` is ``file:line``."""


class NotFoundError(CcgymError, LookupError):
    """A name is not known."""


class SchemeNotFoundError(NotFoundError):
    """No congestion-control scheme has that name."""


class PathNotFoundError(NotFoundError):
    """No network path, or no trace, has that name."""


class PlatformError(CcgymError, RuntimeError):
    """The machine lacks something: a program, a privilege, a package, the native module."""


class SimulationError(CcgymError, RuntimeError):
    """The simulator refused a run or could not finish it."""


class RealPathError(CcgymError, RuntimeError):
    """A run with real packets failed or stalled; ``where`` is the step in which it did."""


class ResultsError(CcgymError, ValueError):
    """Files of results are missing, incomplete or not what they claim to be."""
