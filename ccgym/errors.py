"""Exceptions. Each has a code, and states where the error is, what was found, what was expected, and what to do.

All exceptions of ccgym derive from :class:`CcgymError`, so a caller needs only one ``except``. Command-line
programs print the message to standard error and exit with status 2 (see :mod:`ccgym.cli.common`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_E = TypeVar("_E", bound="CcgymError")

MAX_SHOWN = 160
"""Max characters of a quoted value in an error message."""


def near_miss(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to ``name``, or ``None`` if no known name is similar.

    The comparison ignores case and the difference between ``-`` and ``_``.
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
    """Return "did you mean 'x'?" for the most similar known name, else ``otherwise``."""
    close = near_miss(name, known)
    return f"did you mean {close!r}?" if close is not None else otherwise


def shown(value: object) -> str:
    """Quote a value of the user for an error message: one line of at most :data:`MAX_SHOWN` characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        text = f"a huge {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


CODES: Final = {
    "action-not-finite": "An action is NaN or infinite.",
    "action-out-of-range": "An action is outside the bounds of the action space.",
    "action-shape": "Actions are missing, or their shape differs from the shape of the action space.",
    "agent-invalid": "The native core does not accept the agent.",
    "agent-unsuitable": "An algorithm or a command cannot work with the actions of this agent.",
    "argument-missing": "A value that the command or the function needs is not given.",
    "backend-unsuitable": "This backend or algorithm does not support the request. Another one does.",
    "call-order": "A method was called too early or too late, such as step() before reset().",
    "capability-missing": "The machine lacks a privilege, a device, or a feature of the kernel.",
    "card-invalid": "The card of a policy cannot be read, or is incomplete.",
    "card-missing": "The folder of a network contains no card.",
    "checkpoint-damaged": "A checkpoint cannot be read.",
    "circular": "Values depend on each other.",
    "cluster-unreachable": "No Ray cluster answers.",
    "command-line": "The command line has an unknown option or argument, or a necessary one is missing.",
    "description-invalid": "The description of a path or of flows has an invalid value.",
    "directory-locked": "Another process writes to the directory.",
    "directory-taken": "The directory contains the results of another run.",
    "duplicate": "Something is given twice but is allowed only once.",
    "exactly-one": "Exactly one of several options or keys must be given.",
    "file-malformed": "The content of a file does not have the required form.",
    "file-unreadable": "A file is missing, or cannot be read.",
    "file-unwritable": "A file or a directory cannot be written.",
    "folder-missing": "A folder does not exist.",
    "installation-broken": "A part of ccgym itself is missing, such as the native module.",
    "key-missing": "A necessary key is not given.",
    "learning-diverged": "The weights of a policy have become infinite or NaN.",
    "log-malformed": "A packet log is damaged, or does not match the log of the other side.",
    "mahimahi-inexpressible": "No mahimahi shell can emulate the path.",
    "mahimahi-syntax": "A mahimahi command line is incomplete, or a word is in the wrong place.",
    "mahimahi-unknown-word": "mahimahi has no such tool, option or argument.",
    "mahimahi-value": "An operand of a mahimahi tool is not a number in the allowed range.",
    "memory-exceeded": "A run needs more memory than the limit.",
    "name-invalid": "A name or a label has characters that are not allowed.",
    "name-taken": "The name is already used.",
    "network-unreadable": "The file of a network or of its statistics cannot be read.",
    "no-answer": "A program, a machine or a flow did not answer in time.",
    "no-expert": "The agent declares no expert.",
    "not-a-mapping": "A document or a value has no keys.",
    "not-divisible": "A number is not a multiple of another one, but must be.",
    "not-recorded": "The results contain no packets or no series.",
    "not-utf8": "A text is not UTF-8.",
    "option-needed": "An option or a key works only together with another one.",
    "options-conflict": "Options, keys or arguments exclude each other.",
    "order-wrong": "Bounds, times or steps are not in increasing order.",
    "out-of-range": "A number is outside its bounds.",
    "package-missing": "A package is not installed.",
    "parameter-invalid": "A scheme does not accept the value of a parameter.",
    "path-blocked": "Packets do not arrive in time through the empty path.",
    "path-without-delay": "A size in bandwidth-delay products needs a path with delay.",
    "path-without-link": "The path has no link, so nothing limits the rate.",
    "paths-unsuitable": "Paths of this kind cannot be used here.",
    "policy-ambiguous": "A run directory has several exported policies.",
    "policy-changed": "The file of a policy has changed, or its card describes another file.",
    "policy-differs": "An exported policy does not act like the trained policy.",
    "policy-missing": "No policy is named, exported or loaded.",
    "policy-stale": "A policy was exported from an older checkpoint than the latest one.",
    "policy-unreadable": "The file of a policy cannot be read or used.",
    "policy-unsuitable": "A command does not support a policy or network of this kind.",
    "policy-version": "A policy or its card has a version that this ccgym does not support.",
    "program-failed": "An external program ended with an error.",
    "program-missing": "A program is not installed.",
    "program-unstartable": "A program cannot be started.",
    "protocol-error": "A process or another machine sent an invalid message.",
    "quantity-malformed": "A text is not a number with a unit.",
    "receiver-refuses": "The receiver does not accept the flow.",
    "remote-unreachable": "The other machine cannot be reached.",
    "results-damaged": "A file of results cannot be read.",
    "results-missing": "The directory contains no results.",
    "results-unfinished": "The run has no results yet.",
    "results-version": "The results have the format of another version.",
    "resume-changed": "The run cannot be resumed: its configuration, its software or its state has changed.",
    "run-abandoned": "The run was stopped from outside.",
    "run-failed": "A run ended with an error.",
    "run-missing": "The directory contains no training run.",
    "run-stalled": "A run made no progress.",
    "runs-differ": "Training runs differ in more than is allowed.",
    "scheme-answer-invalid": "A scheme in Python set an invalid window or rate.",
    "scheme-raised": "A scheme in Python raised an exception.",
    "scheme-unavailable": "The scheme exists, but not on this machine.",
    "scheme-unimportable": "The file of a scheme in Python cannot be imported.",
    "scheme-unsuitable": "The scheme cannot run here.",
    "several-learners": "Only one learning flow is supported here.",
    "shape-mismatch": "The sizes of a network or of its statistics differ from the sizes of the agent.",
    "simulation-refused": "The simulator does not accept the run.",
    "socket-failed": "The socket to a sender cannot be created or used.",
    "start-after-end": "A flow would start after the end of the run.",
    "system-call-failed": "A call to the operating system failed, such as opening a socket.",
    "text-malformed": "A text does not have the required form, such as KEY=VALUE.",
    "too-large": "A file, a text or a list is larger than allowed.",
    "trace-checksum": "The checksum of a generated trace is wrong.",
    "trace-empty": "A trace delivers nothing after 0 ms.",
    "trace-malformed": "A line or an array is not valid in a trace.",
    "trace-not-installed": "A recorded trace is in a package that is not installed.",
    "trace-too-long": "The duration, bytes or packets of a trace exceed the limit.",
    "trace-unsorted": "The times of a trace decrease.",
    "unit-ambiguous": "A quantity has two possible meanings, such as bytes or bits.",
    "unit-mismatch": "Units do not match each other, or the quantity needs another unit.",
    "unit-missing": "A quantity has no unit.",
    "unknown-argument": "A function has no such argument or option.",
    "unknown-backend": "No backend has that name.",
    "unknown-choice": "The value is not one of the allowed values.",
    "unknown-class": "The file contains no such class, or the class handles no event.",
    "unknown-configuration": "No configuration has that name.",
    "unknown-device": "The machine has no such device.",
    "unknown-figure": "No figure has that name.",
    "unknown-key": "A mapping has an unknown key.",
    "unknown-kind": "No element, queue, distribution or similar object is of that kind.",
    "unknown-metric": "No metric has that name.",
    "unknown-name": "A name is not defined here.",
    "unknown-parameter": "A scheme has no such parameter.",
    "unknown-path": "No path has that name.",
    "unknown-policy": "No policy has that name.",
    "unknown-scheme": "No scheme has that name.",
    "unknown-suffix": "The suffix of a file name does not belong to a known format.",
    "unknown-trace": "No trace has that name.",
    "unknown-unit": "A quantity has a unit that does not exist.",
    "unsupported": "ccgym deliberately does not support this. The hint states what to do instead.",
    "version-mismatch": "Two machines or processes run different versions of ccgym.",
    "wrong-count": "A list has too few or too many items.",
    "wrong-type": "A value has the wrong type.",
    "yaml-ambiguous": "An unquoted word or number in YAML has two possible meanings.",
    "yaml-feature": "The file uses a YAML feature that is not supported, or `extends` in a file that is extended.",
    "yaml-syntax": "The text is not YAML.",
}
"""Meaning of each error code."""


def known_code(said: object, otherwise: str) -> str:
    """Return a code from another process or a native exception; ``otherwise`` if :data:`CODES` does not contain it."""
    code = getattr(said, "code", said)
    return code if isinstance(code, str) and code in CODES else otherwise


class CcgymError(Exception):
    """Base of every exception that ccgym raises on purpose.

    Args:
        code: Kind of the error, one of :data:`CODES`. Callers and tests use it to distinguish errors.
        found: What was found, e.g. ``"'mbits'"`` or ``"trace '77mbps'"``.
        expected: What was expected. Empty if unknown.
        hint: What to do. Empty if this is clear from the other parts.
        where: File and line, key path or argument name. Empty if the error has no place.
    """

    def __init__(self, code: str, found: str, *, expected: str = "", hint: str = "", where: str = "") -> None:
        assert code in CODES, code
        super().__init__(code, found, expected, hint, where)
        self.code = code
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
        return (_rebuild, (type(self), self.code, self.found, self.expected, self.hint, self.where))

    def at(self: _E, where: str) -> _E:
        """Return a copy of this error with ``where`` in front of its place."""
        if not where or self.where == where:
            place = self.where
        elif self.where:
            place = f"{where}: {self.where}"
        else:
            place = where
        return _rebuild(type(self), self.code, self.found, self.expected, self.hint, place)


def explained(kind: type[_E], error: Exception, otherwise: str, *, where: str = "") -> _E:
    """Convert an exception of the native core to ``kind``, with ``where`` in front of its place.

    The parts come from the attributes of ``error``. ``otherwise`` is the code if ``error`` has none of :data:`CODES`.
    """
    place, found, expected, hint = (str(getattr(error, name, "")) for name in ("place", "found", "expected", "hint"))
    code = known_code(error, otherwise)
    return kind(code, found or str(error), expected=expected, hint=hint, where=place).at(where)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put ``where`` (a key, a file, an option) in front of the place of every error that is raised in the block."""
    try:
        yield
    except CcgymError as error:
        raise error.at(where) from None


def _rebuild(kind: type[_E], code: str, found: str, expected: str, hint: str, where: str) -> _E:
    return kind(code, found, expected=expected, hint=hint, where=where)


class ConfigError(CcgymError, ValueError):
    """A configuration file, a path description or an argument is wrong."""


class UnitError(ConfigError):
    """A quantity cannot be read: no unit, an unknown unit, or out of range."""


class TraceFormatError(CcgymError, ValueError):
    """A delivery trace is invalid; ``where`` is ``file:line``."""


class NotFoundError(CcgymError, LookupError):
    """A name is not known."""


class SchemeNotFoundError(NotFoundError):
    """No congestion-control scheme has that name."""


class PathNotFoundError(NotFoundError):
    """No network path, or no trace, has that name."""


class PlatformError(CcgymError, RuntimeError):
    """The machine lacks something: a program, a privilege, a package, the native module."""


class SimulationError(CcgymError, RuntimeError):
    """The simulator did not accept a run or could not finish it."""


class RealPathError(CcgymError, RuntimeError):
    """A run with real packets failed or stalled; ``where`` is the step that failed."""


class ResultsError(CcgymError, ValueError):
    """Files of results are missing, incomplete or invalid."""
