"""The reader of mahimahi's command line, for paths and for ``ccgym shell``.

The grammar is from mahimahi 0.98 and its master (ravinet/mahimahi @ae477d4: ``delayshell.cc``, ``lossshell.cc``,
``onoffshell.cc``, ``intermittentshell.cc``, ``linkshell.cc``):

=====================================================  ===============================================================
``mm-delay MS``                                        whole milliseconds, both directions
``mm-loss uplink|downlink RATE``                       probability in [0, 1]
``mm-onoff uplink|downlink MEAN_ON MEAN_OFF``          seconds
``mm-intermittent uplink|downlink ON OFF``             seconds
``mm-link UP DOWN [options]``                          two traces; ``--uplink-queue``, ``--downlink-queue`` (infinite,
                                                       droptail, drophead, codel, pie), their ``-args``, ``--once``;
                                                       ``--uplink-log``, ``--downlink-log``; meters have no effect
``mm-meter [options]``                                 accepted; it has no effect
=====================================================  ===============================================================

The left-most tool is the outermost. Options of ``mm-link`` can be anywhere after it, up to ``--``, because GNU getopt
permutes them. In some cases mahimahi silently ignores or cuts a word: unknown queue arguments, decimals in queue
arguments, options for a second ``mm-link``. This reader refuses such words and explains why.

``ccgym shell`` needs this module at its start, so the module imports pydantic's models only when they are built.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ccgym.config.mahimahi_queue import read_number, read_queue
from ccgym.errors import CcgymError, ConfigError, did_you_mean, near_miss, shown
from ccgym.units import NS_PER_MS, NS_PER_S, Nanoseconds, parse_rate

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

TOOLS: Final = ("mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter")
"""The shells that describe a path."""

MAX_LENGTH: Final = 100_000
"""Max characters of a command line."""

MAX_SHELLS: Final = 100
"""Max number of shells in a chain."""

TICK_NS: Final = NS_PER_MS
"""Tick of mahimahi's clock, which counts whole milliseconds."""

OVERHEAD: Final = 4
"""Bytes that mahimahi adds to the IP length of every packet: the prefix of its TUN device."""

_WAYS: Final[tuple[Direction, ...]] = ("uplink", "downlink")
_WITH_VALUE: Final = tuple(f"--{way}-{what}" for what in ("log", "queue", "queue-args") for way in _WAYS)
_METERS: Final = ("uplink", "downlink", "uplink-delay", "downlink-delay", "all")
_FLAGS: Final = ("--once", *(f"--meter-{what}" for what in _METERS))
_SHORT: Final = {"-u": "--uplink-log", "-d": "--downlink-log"}
_MAX_MS: Final = 10**10
_TRACES: Final = "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE"


@dataclass(frozen=True)
class Shell:
    """A parsed shell of mahimahi."""

    element: Mapping[str, Any] | None
    """Path element: the fields of its model in :mod:`ccgym.config.models`; ``None`` for ``mm-meter``."""
    label: str
    """Text that mahimahi writes before the prompt, such as ``[delay 51 ms] ``."""
    command_line: str
    """The command line from this shell on, quoted as in the logs of ``mm-link``."""
    logs: Mapping[Direction, str] = field(default_factory=dict)
    """Files for the logs of a link."""
    notes: tuple[str, ...] = ()
    """Notes about words without effect."""

    def native(self, direction: Direction) -> dict[str, Any] | None:
        """Return the element for the native core; ``None`` if packets of this direction are unaffected."""
        if self.element is None:
            return None
        fields = dict(self.element)
        if fields["kind"] != "link":
            return fields if fields.pop("direction", direction) == direction else None
        link = fields[direction]
        schedule: dict[str, Any] = {"kind": "trace", "name": link.get("trace"), "once": fields["once"]}
        if "rate" in link:
            schedule = {"kind": "rate", "rate": parse_rate(link["rate"])}
        return {"kind": "link", "schedule": schedule, "queue": link["queue"], "overhead": OVERHEAD, "device_packets": 0}


@dataclass(frozen=True)
class CommandLine:
    """A chain of shells, the outermost first, and the command that runs inside."""

    shells: tuple[Shell, ...]
    command: tuple[str, ...] = ()


def looks_like_mahimahi(text: str) -> bool:
    """Return whether a text looks like a mahimahi command line."""
    return text.lstrip().startswith("mm-")


def _schedule(word: str) -> dict[str, str]:
    """Read a trace or, if there is no trace with this name, a constant rate: ``24mbps``."""
    from ccgym.config.catalog import resolve_trace

    with suppress(CcgymError):
        parse_rate(word)
        try:
            resolve_trace(word)
        except CcgymError:
            return {"rate": word}
    return {"trace": word}


def parse_mahimahi(command: str | Sequence[str]) -> list[Mapping[str, Any]]:
    """Read a path.

    Args:
        command: The command line, quoted as for a shell, or its words.

    Returns:
        The elements, the outermost first, as fields of the models in :mod:`ccgym.config.models`.

    Raises:
        ConfigError: A word is invalid (the error has its tool and number); or there is a command to run in the path.
    """
    if isinstance(command, str):
        if len(command) > MAX_LENGTH:
            raise ConfigError("too-large", f"{len(command)} characters", expected=f"at most {MAX_LENGTH}")
        try:
            words = shlex.split(command.replace("\\\r\n", " ").replace("\\\n", " "))
        except ValueError as error:
            found = f"{shown(command)}: {error}"
            raise ConfigError(
                "mahimahi-syntax", found, expected="balanced quotation marks", where="mahimahi command"
            ) from None
    else:
        words = [str(word) for word in command]
    shells = _Reader(words, with_command=False).read().shells
    return [shell.element for shell in shells if shell.element is not None]


def parse_command_line(words: Sequence[str]) -> CommandLine:
    """Read a path and the command that runs in it.

    Raises:
        ConfigError: A word is invalid; the error has its tool and number.
    """
    return _Reader(list(words), with_command=True).read()


class _Reader:
    """Reads one shell after the other. A link removes its words; the inner shells are read from the other words."""

    def __init__(self, words: list[str], *, with_command: bool) -> None:
        self.words = words
        self.places = list(range(1, len(words) + 1))
        self.at = 0
        self.tool = ""
        self.with_command = with_command

    def read(self) -> CommandLine:
        shells: list[Shell] = []
        if not self.words:
            raise ConfigError(
                "mahimahi-syntax", "an empty command", expected="a chain of mahimahi shells, like 'mm-delay 51'"
            )
        while self.at < len(self.words):
            self.tool = ""
            tool = self.words[self.at]
            if tool not in TOOLS:
                self.check_command(tool, bool(shells))
                return CommandLine(tuple(shells), tuple(self.words[self.at :]))
            self.tool = tool
            if len(shells) == MAX_SHELLS:
                raise self.fail("too-large", f"more than {MAX_SHELLS} shells", f"at most {MAX_SHELLS}", at=self.at)
            rest = " ".join(quoted(word) for word in self.words[self.at :])
            self.at += 1
            if tool == "mm-link":
                shells.append(self.link(rest))
            elif tool == "mm-meter":
                self.meter()
                note = "mm-meter has no effect: ccgym draws no graphs"
                shells.append(Shell(None, "[meter] ", rest, notes=(note,)))
            else:
                shells.append(Shell(*self.simple(), rest))
                if self.words[self.at : self.at + 1] == ["--"]:
                    self.at += 1
        return CommandLine(tuple(shells))

    def fail(self, code: str, found: str, expected: str, hint: str = "", *, at: int | None = None) -> ConfigError:
        """Return an error at a word; by default, at the word just read."""
        index = self.at - 1 if at is None else at
        position = self.places[index] if index < len(self.places) else "after the last"
        place = f"mahimahi command, word {position}" + (f" ({self.tool})" if self.tool else "")
        return ConfigError(code, found, expected=expected, hint=hint, where=place)

    def unknown(self, what: str, word: str, known: Sequence[str], at: int | None = None) -> ConfigError:
        """Return an error about an unknown word."""
        return self.fail(
            "mahimahi-unknown-word", f"unknown {what} {shown(word)}", ", ".join(known), did_you_mean(word, known), at=at
        )

    def next(self, what: str) -> str:
        self.at += 1
        if self.at > len(self.words):
            raise self.fail("mahimahi-syntax", "the end of the command", what)
        return self.words[self.at - 1]

    def check_command(self, word: str, inside: bool) -> None:
        """Accept another word as the command, unless it looks like a typing error or no command is allowed."""
        # mahimahi has other programs, such as mm-webreplay, which can run in a path.
        slip = word.startswith("mm-") and near_miss(word[3:], [tool[3:] for tool in TOOLS]) is not None
        if inside and not slip and not word.startswith("-") and word:
            if self.with_command:
                return
            if not word.startswith("mm-"):
                command = f"the command {shown(' '.join(self.words[self.at :]))}"
                hint = "omit the command, because ccgym starts senders and receivers"
                raise self.fail("mahimahi-syntax", command, "a path without a command", hint, at=self.at)
        raise self.unknown("option" if word.startswith("-") else "tool", word, TOOLS, self.at)

    def simple(self) -> tuple[dict[str, Any], str]:
        """Return the element and the label of a tool that has operands but no options."""
        if self.tool == "mm-delay":
            delay = self.milliseconds()
            element = {"kind": "delay", "delay": delay, "tick": Nanoseconds(TICK_NS)}
            return element, f"[delay {delay // NS_PER_MS} ms] "
        direction = self.next("uplink or downlink")
        if direction not in _WAYS:
            raise self.unknown("direction", direction, _WAYS)
        way = direction.removesuffix("link")
        if self.tool == "mm-loss":
            element = {"kind": "loss", "direction": direction, "probability": self.probability()}
            return element, f"[loss {way}={self.words[self.at - 1]}] "
        fixed = self.tool == "mm-intermittent"
        names = ("on", "off") if fixed else ("mean_on", "mean_off")
        on, off = (self.seconds(name.upper()) for name in names)
        element = {"kind": "intermittent" if fixed else "on_off", "direction": direction, names[0]: on, names[1]: off}
        if not fixed:
            element["hold"] = False
        on_text, off_text = self.words[self.at - 2 : self.at]
        return element, f"[{self.tool.removeprefix('mm-')} ({way}) on={on_text}s off={off_text}s] "

    def milliseconds(self) -> Nanoseconds:
        word = self.next("a delay in whole milliseconds")
        if not re.fullmatch(r"[0-9]+", word):
            number = re.match(r"[0-9.]+", word)
            hint = "mm-delay adds the delay in each direction, so the RTT grows by twice the delay"
            if number is not None and word.endswith("ms") and number.group().isdecimal():
                hint = f"write it without unit: mm-delay {number.group()}"
            elif number is not None:
                hint = "write whole milliseconds for mahimahi, or use NetworkPath(rtt=…), which accepts any time"
            raise self.fail("mahimahi-value", f"the delay {shown(word)}", "whole milliseconds, like 51", hint)
        if len(word) > 10 or int(word) > _MAX_MS:
            raise self.fail("mahimahi-value", f"the delay {shown(word)}", f"at most {_MAX_MS} milliseconds")
        return Nanoseconds(int(word) * NS_PER_MS)

    def probability(self) -> float:
        word = self.next("a loss rate from 0 to 1")
        value = read_number(word)
        if value is None or not 0.0 <= value <= 1.0:
            per_cent = read_number(word.rstrip("%"))
            hint = ""
            if per_cent is not None and 0.0 <= per_cent <= 100.0:
                hint = f"if you mean {per_cent:g} per cent, write {per_cent / 100:g}"
            raise self.fail("mahimahi-value", f"the loss rate {shown(word)}", "a fraction from 0 to 1", hint)
        return value

    def seconds(self, what: str) -> Nanoseconds:
        word = self.next(f"{what} in seconds")
        value = read_number(word)
        if value is None or not 1e-9 <= value <= 1e9:
            hint = "write seconds without unit for this tool" if word[-1:].isalpha() else ""
            raise self.fail("mahimahi-value", f"{what} {shown(word)}", "a number of seconds above zero", hint)
        return Nanoseconds(max(1, round(value * NS_PER_S)))

    def meter(self) -> None:
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            word = self.next("an option")
            if word == "--":
                return
            if word not in (known := ("--meter-uplink", "--meter-downlink", "-u", "-d")):
                raise self.unknown("option", word, known)

    def link(self, command_line: str) -> Shell:
        first = self.at
        operands: list[int] = []
        options: dict[str, str] = {}
        end: int | None = None
        while self.at < len(self.words) and end is None:
            word = self.next("a trace or an option")
            if word == "--":
                end = self.at
            elif word.startswith("-") and word != "-":
                self.option(word, options, operands)
            else:
                operands.append(self.at - 1)
        if len(operands) < 2:
            raise self.fail("mahimahi-syntax", f"{len(operands)} traces", _TRACES, at=first - 1)
        traces = [self.words[index] for index in operands[:2]]
        for name in traces:
            if name in TOOLS or not name:
                raise self.fail("mahimahi-syntax", f"{shown(name)} as trace", _TRACES, at=first)
        # The inner command follows the traces; getopt has removed the options from it.
        inner = operands[2:]
        rest = [*inner, *range(len(self.words) if end is None else end, len(self.words))]
        if end is None and inner:
            strays = [i for i in range(inner[0], self.at) if self.words[i].startswith("--") and i not in inner]
            if strays and any(self.words[index] == "mm-link" for index in inner):
                stray = f"the option {shown(self.words[strays[0]])} behind an inner mm-link"
                hint = "move it; otherwise mahimahi's outer mm-link would use the option"
                raise self.fail("mahimahi-syntax", stray, "the option or `--` before that tool", hint, at=strays[0])
        element: dict[str, Any] = {"kind": "link", "once": "--once" in options}
        logs: dict[Direction, str] = {}
        for way, trace in zip(_WAYS, traces, strict=True):
            element[way] = {**_schedule(trace), "queue": read_queue(way, options), "overhead": OVERHEAD}
            log = options.get(f"--{way}-log")
            if log == "":
                where = f"mahimahi command (mm-link --{way}-log)"
                raise ConfigError(
                    "mahimahi-syntax", "an empty file name", expected="the name of a log file", where=where
                )
            if log is not None:
                logs[way] = log
        meters = [option for option in options if option.startswith("--meter")]
        notes = tuple(f"mm-link {option} has no effect: ccgym draws no graphs" for option in meters[:1])
        # Continue with the other words: the inner command without the options of mm-link.
        self.words = [self.words[index] for index in rest]
        self.places = [self.places[index] for index in rest]
        self.at = 0
        return Shell(element, "[link] ", command_line, logs, notes)

    def option(self, word: str, options: dict[str, str], operands: list[int]) -> None:
        if word[:2] in _SHORT:
            options[_SHORT[word[:2]]] = word[2:] or self.next(f"a file name after {word}")
            return
        name, equals, value = word.partition("=")
        if name in _FLAGS:
            if equals:
                raise self.fail("mahimahi-syntax", f"{shown(word)}", f"{name} without a value")
        elif name not in _WITH_VALUE:
            raise self.unknown_option(name, operands)
        elif not equals:
            value = self.next(f"a value after {name}")
        if name in options and name in _WITH_VALUE and not name.endswith("-log"):
            raise self.fail("duplicate", f"{name} a second time", "each option once")
        options[name] = value

    def unknown_option(self, name: str, operands: list[int]) -> ConfigError:
        if len(operands) < 3 or self.words[operands[2]] in TOOLS:
            return self.unknown("option", name, (*_WITH_VALUE, *_FLAGS))
        command = self.words[operands[2]]
        if not self.with_command:
            self.at = operands[2]
            self.check_command(command, True)
        found = f"the option {shown(name)} of the command {shown(command)}"
        hint = f"write: mm-link UP DOWN … -- {command} …; otherwise the option belongs to mm-link"
        return self.fail("mahimahi-syntax", found, "`--` before a command that has options", hint)


def quoted(word: str) -> str:
    """Quote every word for a POSIX shell, as ``mm-link`` does in its logs."""
    return "'" + word.replace("'", "'\\''") + "'"
