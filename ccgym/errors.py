"""Exceptions: every one has a code, and says where, what was found, what was expected, and what to do.

All of ccgym's own exceptions derive from :class:`CcgymError`, so a caller needs one ``except``. Command-line
programs print the message on standard error and exit with status 2 (see :mod:`ccgym.cli.common`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

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


CODES: Final = {
    "action-not-finite": "An action is NaN or infinite.",
    "action-out-of-range": "An action is outside the bounds of the action space.",
    "action-shape": "Actions are missing, or their shape is not that of the action space.",
    "agent-invalid": "The native core does not accept the agent.",
    "agent-unsuitable": "An algorithm or a command cannot work with the actions of this agent.",
    "argument-missing": "A value that the command or the function needs is not given.",
    "backend-unsuitable": "A backend or an algorithm cannot do what is asked for; another one can.",
    "call-order": "A method was called before or after the time when it has a meaning, such as step() before reset().",
    "capability-missing": "The machine lacks a privilege, a device, or a feature of the kernel.",
    "card-invalid": "The card of a policy cannot be read, or says too little.",
    "card-missing": "A network has no card in its folder.",
    "checkpoint-damaged": "A checkpoint cannot be read.",
    "circular": "Values need one another.",
    "cluster-unreachable": "No Ray cluster answers.",
    "command-line": "The command line has an option or an argument that the command does not take, or lacks one.",
    "description-invalid": "The description of a path or of flows has a value that is not possible.",
    "directory-locked": "Another process writes to the directory.",
    "directory-taken": "The directory holds the results of something else.",
    "duplicate": "Something is given twice that may be given once.",
    "exactly-one": "Exactly one of several options or keys must be given.",
    "file-malformed": "The content of a file is not what it should be.",
    "file-unreadable": "A file is missing, or cannot be read.",
    "file-unwritable": "A file or a directory cannot be written.",
    "folder-missing": "A folder does not exist.",
    "installation-broken": "A part of ccgym itself is missing, such as the native module.",
    "key-missing": "A necessary key is not given.",
    "learning-diverged": "The weights of a policy have become infinite or NaN.",
    "log-malformed": "A packet log is damaged, or does not fit to its other half.",
    "mahimahi-inexpressible": "mahimahi has no shell that does what the path does.",
    "mahimahi-syntax": "A mahimahi command line is incomplete, or a word is in a wrong place.",
    "mahimahi-unknown-word": "mahimahi has no such tool, option or argument.",
    "mahimahi-value": "An operand of a mahimahi tool is not a number in its range.",
    "memory-exceeded": "A run needs more memory than it may have.",
    "name-invalid": "A name or a label has characters that it may not have.",
    "name-taken": "The name belongs to something else.",
    "network-unreadable": "A file of a network or of its statistics cannot be read.",
    "no-answer": "A program, a machine or a flow did not answer in time.",
    "no-expert": "The agent declares no expert.",
    "not-a-mapping": "A document or a value has no keys.",
    "not-divisible": "A number must divide another one, and does not.",
    "not-recorded": "The results hold no packets or no series.",
    "not-utf8": "A text is not UTF-8.",
    "option-needed": "An option or a key works only together with another one.",
    "options-conflict": "Options, keys or arguments exclude each other.",
    "order-wrong": "Bounds, times or steps are not in increasing order.",
    "out-of-range": "A number is outside its bounds.",
    "package-missing": "A package is not installed.",
    "parameter-invalid": "A scheme refuses the value of a parameter.",
    "path-blocked": "Packets do not come through the empty path in time.",
    "path-without-delay": "A size in bandwidth-delay products needs a path with delay.",
    "path-without-link": "The path has no link, so nothing limits the rate.",
    "paths-unsuitable": "Paths of this kind cannot be used here.",
    "policy-ambiguous": "A run directory has several exported policies.",
    "policy-changed": "The file of a policy is not the one that its card describes, or has changed.",
    "policy-differs": "An exported policy does not do what the trained one does.",
    "policy-missing": "No policy is named, exported or loaded.",
    "policy-stale": "A policy was exported from an older checkpoint than the one that is there.",
    "policy-unreadable": "The file of a policy cannot be read or used.",
    "policy-unsuitable": "A command cannot work with a policy or network of this kind.",
    "policy-version": "A policy or its card has another version than this ccgym has.",
    "program-failed": "A program of others ended with an error.",
    "program-missing": "A program is not installed.",
    "program-unstartable": "A program cannot be started.",
    "protocol-error": "A process or another machine sent what cannot be understood.",
    "quantity-malformed": "A text is not a number with a unit.",
    "receiver-refuses": "The receiver does not take the flow.",
    "remote-unreachable": "The other machine cannot be reached.",
    "results-damaged": "A file of results cannot be read.",
    "results-missing": "No results are in the directory.",
    "results-unfinished": "The run has not come far enough to have results.",
    "results-version": "The results have the format of another version.",
    "resume-changed": "What is resumed is not the same run: its configuration, its software or its state has changed.",
    "run-abandoned": "The run was stopped from outside.",
    "run-failed": "A run ended with an error.",
    "run-missing": "The directory holds no training run.",
    "run-stalled": "A run did not go on.",
    "runs-differ": "Training runs differ in more than they may.",
    "scheme-answer-invalid": "A scheme in Python decided on a window or a rate that is not possible.",
    "scheme-raised": "A scheme in Python raised an exception.",
    "scheme-unavailable": "The scheme exists, but not on this machine.",
    "scheme-unimportable": "The file of a scheme in Python cannot be imported.",
    "scheme-unsuitable": "The scheme cannot run here.",
    "several-learners": "Several flows that learn are more than this can do.",
    "shape-mismatch": "A network or its statistics have other sizes than the agent.",
    "simulation-refused": "The simulator does not accept the run.",
    "socket-failed": "The socket to a sender cannot be made or used.",
    "start-after-end": "A flow would start after the end of the run.",
    "system-call-failed": "The operating system refuses a step, such as opening a socket.",
    "text-malformed": "A text does not have the form that is asked for, such as KEY=VALUE.",
    "too-large": "A file, a text or a list is larger than allowed.",
    "trace-checksum": "A generated trace does not have its checksum.",
    "trace-empty": "A trace delivers nothing after 0 ms.",
    "trace-malformed": "A line or an array is not one of a trace.",
    "trace-not-installed": "A recorded trace is in a package that is not installed.",
    "trace-too-long": "A trace has more time, bytes or packets than allowed.",
    "trace-unsorted": "Times of a trace decrease.",
    "unit-ambiguous": "A quantity can mean two things, such as bytes or bits.",
    "unit-mismatch": "Units do not fit to each other, or to their place.",
    "unit-missing": "A quantity has no unit.",
    "unknown-argument": "A function has no such argument or option.",
    "unknown-backend": "No backend has that name.",
    "unknown-choice": "The value is none of those that are possible.",
    "unknown-class": "The file has no such class, or the class handles no event.",
    "unknown-configuration": "No configuration has that name.",
    "unknown-device": "The machine has no such device.",
    "unknown-figure": "No figure has that name.",
    "unknown-key": "A mapping has a key that it does not take.",
    "unknown-kind": "No element, queue, distribution or the like is of that kind.",
    "unknown-metric": "No metric has that name.",
    "unknown-name": "A name is not among those that are defined here.",
    "unknown-parameter": "A scheme has no such parameter.",
    "unknown-path": "No path has that name.",
    "unknown-policy": "No policy has that name.",
    "unknown-scheme": "No scheme has that name.",
    "unknown-suffix": "The ending of a file name names no format.",
    "unknown-trace": "No trace has that name.",
    "unknown-unit": "A quantity has a unit that does not exist.",
    "unsupported": "ccgym does not do this on purpose; the hint says what to do instead.",
    "version-mismatch": "Two machines or processes run different versions of ccgym.",
    "wrong-count": "A list has too few or too many items.",
    "wrong-type": "A value is of another type than it should be.",
    "yaml-ambiguous": "A bare word or number of YAML could be read in two ways.",
    "yaml-feature": "The file uses a feature of YAML, or a second extends, that is not taken.",
    "yaml-syntax": "The text is not YAML.",
}
"""What each code of an error means."""


def known_code(said: object, otherwise: str) -> str:
    """A code that another process sent, or of a native exception; ``otherwise`` if :data:`CODES` does not have it."""
    code = getattr(said, "code", said)
    return code if isinstance(code, str) and code in CODES else otherwise


class CcgymError(Exception):
    """Base of every exception that ccgym raises on purpose.

    Args:
        code: What is wrong, one of :data:`CODES`: what callers and tests tell errors apart by.
        found: What was there, e.g. ``"'mbits'"`` or ``"trace '77mbps'"``.
        expected: What would have been right. Empty if nothing can be said.
        hint: What to do. Empty if that follows from the rest.
        where: File and line, key path or argument name. Empty if there is no such place.
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
        """Return the same error with ``where`` put in front of its place."""
        if not where or self.where == where:
            place = self.where
        elif self.where:
            place = f"{where}: {self.where}"
        else:
            place = where
        return _rebuild(type(self), self.code, self.found, self.expected, self.hint, place)


def explained(kind: type[_E], error: Exception, otherwise: str, *, where: str = "") -> _E:
    """What the native core refused, as one of our exceptions, with ``where`` in front of its place.

    The parts of the native one are its attributes. ``otherwise`` is the code if it names none of :data:`CODES`.
    """
    place, found, expected, hint = (str(getattr(error, name, "")) for name in ("place", "found", "expected", "hint"))
    code = known_code(error, otherwise)
    return kind(code, found or str(error), expected=expected, hint=hint, where=place).at(where)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put a place in front of what errors within say of theirs: a key, a file, an option."""
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
