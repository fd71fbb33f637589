"""mahimahi's command line: its one reader, for paths and for ``ccgym shell``.

The grammar is that of mahimahi 0.98 and its master (ravinet/mahimahi @ae477d4: ``delayshell.cc``, ``lossshell.cc``,
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

The left-most tool is the outermost. Options of ``mm-link`` may stand anywhere after it, up to ``--``, as GNU getopt
permutes them. Where mahimahi silently ignores or cuts something (unknown queue arguments, decimals in them, options
that a second ``mm-link`` was meant to have), this reader refuses it and says why.

``ccgym shell`` needs this module before anything else runs: it imports pydantic's models only where they are built.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ccgym.errors import CcgymError, ConfigError, did_you_mean, near_miss, shown
from ccgym.units import NS_PER_MS, NS_PER_S, Nanoseconds, parse_rate

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

TOOLS: Final = ("mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter")
"""The shells that describe a path."""

MAX_LENGTH: Final = 100_000
"""Longer command lines are refused."""

MAX_SHELLS: Final = 100
"""Longer chains of shells are refused."""

QUEUE_ARGUMENTS: Final = {
    "infinite": (),
    "droptail": ("packets", "bytes"),
    "drophead": ("packets", "bytes"),
    "codel": ("packets", "bytes", "target", "interval"),
    "pie": ("packets", "bytes", "qdelay_ref", "max_burst"),
}
"""The queues of ``mm-link`` and their arguments; from the third on they are required, in milliseconds."""

TICK_NS: Final = NS_PER_MS
"""mahimahi's clock counts whole milliseconds."""

OVERHEAD: Final = 4
"""Bytes that mahimahi charges per packet in addition to its IP length: the prefix of its TUN device."""

_WAYS: Final = ("uplink", "downlink")
_WITH_VALUE: Final = tuple(f"--{way}-{what}" for what in ("log", "queue", "queue-args") for way in _WAYS)
_METERS: Final = ("uplink", "downlink", "uplink-delay", "downlink-delay", "all")
_FLAGS: Final = ("--once", *(f"--meter-{what}" for what in _METERS))
_SHORT: Final = {"-u": "--uplink-log", "-d": "--downlink-log"}
_MAX_MS: Final = 10**10


@dataclass(frozen=True)
class Shell:
    """One of mahimahi's shells, read."""

    element: Mapping[str, Any] | None
    """Its path element: the fields of its model in :mod:`ccgym.config.models`; None for ``mm-meter``."""
    label: str
    """What mahimahi puts before the prompt, such as ``[delay 51 ms] ``."""
    command_line: str
    """The command line from this shell on, quoted as ``mm-link`` quotes it in its logs."""
    logs: Mapping[Direction, str] = field(default_factory=dict)
    """Files for the logs of a link."""
    notes: tuple[str, ...] = ()
    """What has no effect here."""

    def native(self, direction: Direction) -> dict[str, Any] | None:
        """The element as the native core takes it; None where packets of this direction pass untouched."""
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
    """A chain of shells, the outermost first, and the command that runs in them."""

    shells: tuple[Shell, ...]
    command: tuple[str, ...] = ()


def looks_like_mahimahi(text: str) -> bool:
    """Whether a text is meant as a mahimahi command line."""
    return text.lstrip().startswith("mm-")


def _schedule(word: str) -> dict[str, str]:
    """A trace or, where there is none of that name, a constant rate: ``24mbps``."""
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
        The elements, the outermost first: the fields of the models in :mod:`ccgym.config.models`.

    Raises:
        ConfigError: With the tool and the number of the word that cannot be; or a command runs in the path.
    """
    if isinstance(command, str):
        if len(command) > MAX_LENGTH:
            raise ConfigError(
                "too-large", f"a command line of {len(command)} characters", expected=f"at most {MAX_LENGTH}"
            )
        try:
            words = shlex.split(command.replace("\\\r\n", " ").replace("\\\n", " "))
        except ValueError as error:
            raise ConfigError(
                "mahimahi-syntax",
                f"{shown(command)}: {error}",
                expected="balanced quotation marks",
                where="mahimahi command",
            ) from None
    else:
        words = [str(word) for word in command]
    shells = _Reader(words, with_command=False).read().shells
    return [shell.element for shell in shells if shell.element is not None]


def parse_command_line(words: Sequence[str]) -> CommandLine:
    """Read a path and the command that runs in it.

    Raises:
        ConfigError: With the tool and the number of the word that cannot be.
    """
    return _Reader(list(words), with_command=True).read()


class _Reader:
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
                note = "mm-meter draws no graphs here: it has no effect"
                shells.append(Shell(None, "[meter] ", rest, notes=(note,)))
            else:
                shells.append(Shell(*self.simple(), rest))
                if self.words[self.at : self.at + 1] == ["--"]:
                    self.at += 1
        return CommandLine(tuple(shells))

    def fail(self, code: str, found: str, expected: str, hint: str = "", *, at: int | None = None) -> ConfigError:
        """An error at a word, by default the one just read."""
        index = self.at - 1 if at is None else at
        position = self.places[index] if index < len(self.places) else "after the last"
        place = f"mahimahi command, word {position}" + (f" ({self.tool})" if self.tool else "")
        return ConfigError(code, found, expected=expected, hint=hint, where=place)

    def check_command(self, word: str, inside: bool) -> None:
        """What is not a tool is the command, unless it looks like a slip, or nothing may run in the path."""
        hint = did_you_mean(word, TOOLS)
        # mahimahi has programs that are not of a path, as mm-webreplay; they may run in one.
        slip = word.startswith("mm-") and near_miss(word[3:], [tool[3:] for tool in TOOLS]) is not None
        if inside and not slip and not word.startswith("-") and word:
            if self.with_command:
                return
            if not word.startswith("mm-"):
                raise self.fail(
                    "mahimahi-syntax",
                    f"the command {shown(' '.join(self.words[self.at :]))}",
                    "a path and nothing that runs in it",
                    "leave the command out: ccgym starts senders and receivers itself",
                    at=self.at,
                )
        what = "option" if word.startswith("-") else "tool"
        more = "a further tool, or the command to run; tools are " if inside and self.with_command else ""
        raise self.fail(
            "mahimahi-unknown-word", f"unknown {what} {shown(word)}", more + ", ".join(TOOLS), hint, at=self.at
        )

    def next(self, what: str) -> str:
        if self.at >= len(self.words):
            self.at += 1
            raise self.fail("mahimahi-syntax", "the end of the command", what)
        word = self.words[self.at]
        self.at += 1
        return word

    def simple(self) -> tuple[dict[str, Any], str]:
        """The element and the label of a tool with operands only; it does not read options."""
        if self.tool == "mm-delay":
            delay = self.milliseconds()
            element = {"kind": "delay", "delay": delay, "tick": Nanoseconds(TICK_NS)}
            return element, f"[delay {delay // NS_PER_MS} ms] "
        direction = self.direction()
        way = "up" if direction == "uplink" else "down"
        if self.tool == "mm-loss":
            probability = self.probability()
            label = f"[loss {way}={self.words[self.at - 1]}] "
            return {"kind": "loss", "direction": direction, "probability": probability}, label
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
            hint = "mm-delay adds it in each direction, so the RTT grows by twice as much"
            if number is not None and word.endswith("ms") and number.group().isdecimal():
                hint = f"write it without unit: mm-delay {number.group()}"
            elif number is not None:
                hint = "mahimahi knows whole milliseconds only; NetworkPath(rtt=…) takes any time"
            raise self.fail("mahimahi-value", f"the delay {shown(word)}", "whole milliseconds, like 51", hint)
        if len(word) > 10 or int(word) > _MAX_MS:
            raise self.fail("mahimahi-value", f"the delay {shown(word)}", f"at most {_MAX_MS} milliseconds")
        return Nanoseconds(int(word) * NS_PER_MS)

    def direction(self) -> Direction:
        word = self.next("uplink or downlink")
        if word == "uplink":
            return "uplink"
        if word == "downlink":
            return "downlink"
        raise self.fail(
            "mahimahi-unknown-word", f"the direction {shown(word)}", "uplink or downlink", did_you_mean(word, _WAYS)
        )

    def probability(self) -> float:
        word = self.next("a loss rate from 0 to 1")
        value = _number(word)
        if value is None or not 0.0 <= value <= 1.0:
            per_cent = _number(word.rstrip("%"))
            hint = ""
            if per_cent is not None and 0.0 <= per_cent <= 100.0:
                hint = f"if you mean {per_cent:g} per cent, write {per_cent / 100:g}"
            raise self.fail("mahimahi-value", f"the loss rate {shown(word)}", "a fraction from 0 to 1", hint)
        return value

    def seconds(self, what: str) -> Nanoseconds:
        word = self.next(f"{what} in seconds")
        value = _number(word)
        if value is None or not 1e-9 <= value <= 1e9:
            hint = "times of this tool are in seconds, without unit" if word[-1:].isalpha() else ""
            raise self.fail("mahimahi-value", f"{what} {shown(word)}", "a number of seconds above zero", hint)
        return Nanoseconds(max(1, round(value * NS_PER_S)))

    def meter(self) -> None:
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            word = self.next("an option")
            if word == "--":
                return
            if word not in ("--meter-uplink", "--meter-downlink", "-u", "-d"):
                raise self.fail(
                    "mahimahi-unknown-word", f"unknown option {shown(word)}", "--meter-uplink or --meter-downlink"
                )

    def link(self, command_line: str) -> Shell:
        first = self.at
        operands: list[int] = []
        options: dict[str, str] = {}
        end: int | None = None
        while self.at < len(self.words):
            word = self.next("a trace or an option")
            if word == "--":
                end = self.at
                break
            if word.startswith("-") and word != "-":
                self.option(word, options, operands)
            else:
                operands.append(self.at - 1)
        if len(operands) < 2:
            self.at = len(self.words) if end is None else end
            raise self.fail(
                "mahimahi-syntax",
                f"{len(operands)} trace{'' if len(operands) == 1 else 's'}",
                "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE",
                at=first - 1,
            )
        up, down = (self.words[index] for index in operands[:2])
        for name in (up, down):
            if name in TOOLS or not name:
                raise self.fail(
                    "mahimahi-syntax",
                    f"{shown(name)} as trace",
                    "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE",
                    at=first,
                )
        # What follows the traces is the inner command; getopt has taken the options out of it.
        inner = operands[2:]
        rest = [*inner, *range(len(self.words) if end is None else end, len(self.words))]
        if end is None and inner:
            strays = [i for i in range(inner[0], self.at) if self.words[i].startswith("--") and i not in inner]
            if strays and any(self.words[index] == "mm-link" for index in inner):
                raise self.fail(
                    "mahimahi-syntax",
                    f"the option {shown(self.words[strays[0]])} behind an inner mm-link",
                    "it before that tool, or `--` before that tool",
                    "mahimahi's outer mm-link would take the option for itself",
                    at=strays[0],
                )
        element = {
            "kind": "link",
            "uplink": {**_schedule(up), "queue": self.queue("uplink", options), "overhead": OVERHEAD},
            "downlink": {**_schedule(down), "queue": self.queue("downlink", options), "overhead": OVERHEAD},
            "once": "--once" in options,
        }
        logs: dict[Direction, str] = {}
        directions: tuple[Direction, ...] = ("uplink", "downlink")
        for direction in directions:
            log = options.get(f"--{direction}-log")
            if log == "":
                where = f"mahimahi command (mm-link --{direction}-log)"
                raise ConfigError(
                    "mahimahi-syntax", "an empty file name", expected="the name of a log file", where=where
                )
            if log is not None:
                logs[direction] = log
        meters = [option for option in options if option.startswith("--meter")]
        notes = tuple(f"mm-link {option}: graphs are not drawn here; it has no effect" for option in meters[:1])
        # Go on with what is left: the inner command without the options that mm-link has taken.
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
            options[name] = ""
            return
        if name not in _WITH_VALUE:
            raise self.unknown_option(name, operands)
        if not equals:
            value = self.next(f"a value after {name}")
        if name in options and not name.endswith("-log"):
            raise self.fail("duplicate", f"{name} a second time", "each option once")
        options[name] = value

    def unknown_option(self, name: str, operands: list[int]) -> ConfigError:
        known = [*_WITH_VALUE, *_FLAGS]
        if len(operands) > 2 and self.words[operands[2]] not in TOOLS:
            command = self.words[operands[2]]
            if not self.with_command:
                self.at = operands[2]
                self.check_command(command, True)
            return self.fail(
                "mahimahi-syntax",
                f"the option {shown(name)} of the command {shown(command)}",
                "`--` before a command that has options",
                f"write: mm-link UP DOWN … -- {command} …; mahimahi too would take the option for its own",
            )
        return self.fail(
            "mahimahi-unknown-word", f"unknown option {shown(name)}", ", ".join(known), did_you_mean(name, known)
        )

    def queue(self, direction: Direction, options: Mapping[str, str]) -> dict[str, Any]:
        kind = options.get(f"--{direction}-queue", "infinite")
        arguments = options.get(f"--{direction}-queue-args")
        where = f"mahimahi command (mm-link --{direction}-queue)"
        if kind not in QUEUE_ARGUMENTS:
            raise ConfigError(
                "mahimahi-unknown-word",
                f"unknown queue {shown(kind)}",
                expected=", ".join(QUEUE_ARGUMENTS),
                hint=did_you_mean(kind, QUEUE_ARGUMENTS),
                where=where,
            )
        where = f"mahimahi command (mm-link --{direction}-queue-args of {kind})"
        if kind == "infinite":
            if arguments is not None:
                hint = f"did you mean --{direction}-queue=droptail?" if "packets" in arguments else ""
                raise ConfigError(
                    "mahimahi-syntax",
                    f"arguments {shown(arguments)}",
                    expected="none: the infinite queue takes none",
                    hint=hint,
                    where=where,
                )
            return {"kind": "infinite"}
        given = _queue_arguments(kind, arguments or "", where)
        limit = {name: given[name] for name in ("packets", "bytes") if name in given}
        if not limit:
            raise ConfigError(
                "mahimahi-syntax",
                f"{kind} without a limit",
                expected="packets=N or bytes=N",
                hint=f"write --{direction}-queue-args=packets=100",
                where=where,
            )
        needed = QUEUE_ARGUMENTS[kind][2:]
        missing = [name for name in needed if name not in given]
        if missing:
            raise ConfigError(
                "mahimahi-syntax",
                f"{kind} without {' and '.join(missing)}",
                expected=f"{needed[0]}=MS and {needed[1]}=MS, both above zero",
                where=where,
            )
        times = {name: Nanoseconds(given[name] * NS_PER_MS) for name in needed}
        return {"kind": f"mahimahi_{kind}" if times else kind, "limit": limit, **times}


def _queue_arguments(kind: str, text: str, where: str) -> dict[str, int]:
    """Read ``name=int, name=int``. mahimahi searches for substrings and cuts decimals; here that is an error."""
    known = QUEUE_ARGUMENTS[kind]
    given: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        name, equals, value = part.partition("=")
        if name not in known:
            hint = did_you_mean(name, known)
            everything = {argument for names in QUEUE_ARGUMENTS.values() for argument in names}
            raise ConfigError(
                "mahimahi-unknown-word",
                f"unknown argument {shown(name)}",
                expected=", ".join(known),
                hint=hint or f"mahimahi ignores {'it' if name in everything else 'unknown arguments'} silently",
                where=where,
            )
        if not equals or not re.fullmatch(r"[0-9]{1,12}", value):
            raise ConfigError(
                "mahimahi-value",
                shown(part),
                expected=f"{name}=N with a whole number",
                hint="mahimahi cuts decimals" if _number(value) is not None else "",
                where=where,
            )
        if name in given:
            raise ConfigError("duplicate", f"{name} a second time", expected="each argument once", where=where)
        if int(value) == 0:
            raise ConfigError(
                "mahimahi-value",
                shown(part),
                expected="a number above zero",
                hint="mahimahi takes 0 for not given",
                where=where,
            )
        given[name] = int(value)
    return given


def quoted(word: str) -> str:
    """Quote a word for a POSIX shell, always, as ``mm-link`` does in its logs."""
    return "'" + word.replace("'", "'\\''") + "'"


def _number(text: str) -> float | None:
    """Read a decimal number as C's strtod would, without its hexadecimal, infinite and nameless ones."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", text) or len(text) > 60:
        return None
    value = float(text)
    return value if math.isfinite(value) else None
