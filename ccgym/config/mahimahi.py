"""mahimahi's command line, read into path elements and written back.

The grammar is that of mahimahi 0.98 and its master (ravinet/mahimahi @ae477d4: ``delayshell.cc``, ``lossshell.cc``,
``onoffshell.cc``, ``intermittentshell.cc``, ``linkshell.cc``):

=====================================================  ===============================================================
``mm-delay MS``                                        whole milliseconds, both directions
``mm-loss uplink|downlink RATE``                       probability in [0, 1]
``mm-onoff uplink|downlink MEAN_ON MEAN_OFF``          seconds
``mm-intermittent uplink|downlink ON OFF``             seconds
``mm-link UP DOWN [options]``                          two traces; ``--uplink-queue``, ``--downlink-queue`` (infinite,
                                                       droptail, drophead, codel, pie), their ``-args``, ``--once``;
                                                       logs and meters are accepted and left out: they are no part of
                                                       the path
``mm-meter [options]``                                 accepted and left out: it has no effect
=====================================================  ===============================================================

The left-most tool is the outermost. Options of ``mm-link`` may stand anywhere after it, up to ``--``, as GNU getopt
permutes them. Where mahimahi silently ignores or cuts something (unknown queue arguments, decimals in them, options
that a second ``mm-link`` was meant to have), this reader refuses it and says why.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Final

from pydantic import ValidationError

from ccgym.config.elements import (
    MAHIMAHI_OVERHEAD,
    MAHIMAHI_TICK_NS,
    MAX_ELEMENTS,
    AnyElement,
    Delay,
    Direction,
    Intermittent,
    Link,
    LinkDirection,
    Loss,
    OnOff,
)
from ccgym.config.queues import AnyQueue, Drophead, Droptail, Infinite, Limit, MahimahiCodel, MahimahiPie
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.units import NS_PER_MS, NS_PER_S, Nanoseconds, format_time

TOOLS: Final = ("mm-delay", "mm-loss", "mm-onoff", "mm-intermittent", "mm-link", "mm-meter")
"""The shells that describe a path."""

MAX_LENGTH: Final = 100_000
"""Longer command lines are refused."""

_WITH_VALUE: Final = {
    "--uplink-log": "",
    "--downlink-log": "",
    "--uplink-queue": "queue",
    "--downlink-queue": "queue",
    "--uplink-queue-args": "args",
    "--downlink-queue-args": "args",
}
_FLAGS: Final = (
    "--once",
    "--meter-uplink",
    "--meter-downlink",
    "--meter-uplink-delay",
    "--meter-downlink-delay",
    "--meter-all",
)
_SHORT: Final = {"-u": "--uplink-log", "-d": "--downlink-log"}
_QUEUE_ARGUMENTS: Final = {
    "infinite": (),
    "droptail": ("packets", "bytes"),
    "drophead": ("packets", "bytes"),
    "codel": ("packets", "bytes", "target", "interval"),
    "pie": ("packets", "bytes", "qdelay_ref", "max_burst"),
}
_MAX_MS: Final = 10**10


def looks_like_mahimahi(text: str) -> bool:
    """Whether a text is meant as a mahimahi command line."""
    return text.lstrip().startswith("mm-")


def parse_mahimahi(command: str | Sequence[str]) -> tuple[AnyElement, ...]:
    """Read a chain of mahimahi shells.

    Args:
        command: The command line, quoted as for a shell, or its words.

    Returns:
        The elements, the outermost first.

    Raises:
        ConfigError: With the tool and the number of the word that cannot be.
    """
    if isinstance(command, str):
        if len(command) > MAX_LENGTH:
            raise ConfigError(f"a command line of {len(command)} characters", expected=f"at most {MAX_LENGTH}")
        try:
            words = shlex.split(command.replace("\\\r\n", " ").replace("\\\n", " "))
        except ValueError as error:
            raise ConfigError(
                f"{shown(command)}: {error}", expected="balanced quotation marks", where="mahimahi command"
            ) from None
    else:
        words = [str(word) for word in command]
    try:
        return _Reader(words).read()
    except ValidationError as error:
        raise config_error(error, Link).at("mahimahi command") from None


def format_mahimahi(elements: Sequence[AnyElement], trace_of: Callable[[LinkDirection | None], str]) -> str:
    """Write a chain of mahimahi shells; the inverse of :func:`parse_mahimahi` wherever mahimahi can say it.

    Args:
        elements: The outermost first.
        trace_of: Returns the trace to write for a direction of a link, ``None`` being an unconstrained one.

    Raises:
        ConfigError: mahimahi has no such thing.
    """
    words: list[str] = []
    for number, element in enumerate(elements, start=1):
        words += _write(element, trace_of)
        if isinstance(element, Link) and number < len(elements):
            words.append("--")  # lest it takes the options of the next one
    words = words or ["mm-meter"]  # a path of nothing: the shell without effect
    return " ".join(_quote(word) for word in words)


class _Reader:
    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.places = list(range(1, len(words) + 1))
        self.at = 0
        self.tool = ""

    def read(self) -> tuple[AnyElement, ...]:
        elements: list[AnyElement] = []
        if not self.words:
            raise ConfigError("an empty command", expected="a chain of mahimahi shells, like 'mm-delay 51'")
        while self.at < len(self.words):
            self.tool = ""
            tool = self.words[self.at]
            if tool not in TOOLS:
                raise self.unknown(tool, bool(elements))
            self.tool = tool
            self.at += 1
            if len(elements) == MAX_ELEMENTS:
                raise self.fail(f"more than {MAX_ELEMENTS} shells", f"at most {MAX_ELEMENTS}")
            if tool == "mm-link":
                elements.append(self.link())
            elif tool == "mm-meter":
                self.meter()
            else:
                elements.append(self.simple())
        return tuple(elements)

    def fail(self, found: str, expected: str, hint: str = "", *, at: int | None = None) -> ConfigError:
        """An error at a word, by default the one just read."""
        index = self.at - 1 if at is None else at
        position = self.places[index] if index < len(self.places) else "after the last"
        place = f"mahimahi command, word {position}" + (f" ({self.tool})" if self.tool else "")
        return ConfigError(found, expected=expected, hint=hint, where=place)

    def unknown(self, word: str, inside: bool) -> ConfigError:
        tail = " ".join(self.words[self.at :])
        hint = did_you_mean(word, TOOLS)
        if inside and not hint and not word.startswith("mm-"):
            return self.fail(
                f"the command {shown(tail)}",
                "a path and nothing that runs in it",
                "leave the command out: ccgym starts senders and receivers itself",
                at=self.at,
            )
        return self.fail(f"unknown tool {shown(word)}", ", ".join(TOOLS), hint, at=self.at)

    def next(self, what: str) -> str:
        if self.at >= len(self.words):
            self.at += 1
            raise self.fail("the end of the command", what)
        word = self.words[self.at]
        self.at += 1
        return word

    def simple(self) -> AnyElement:
        """A tool with positional arguments only; it does not read options."""
        if self.tool == "mm-delay":
            return Delay(delay=self.milliseconds(), tick=Nanoseconds(MAHIMAHI_TICK_NS))
        direction = self.direction()
        if self.tool == "mm-loss":
            return Loss(direction=direction, probability=self.probability())
        if self.tool == "mm-onoff":
            on, off = self.seconds("MEAN_ON"), self.seconds("MEAN_OFF")
            return OnOff(direction=direction, mean_on=on, mean_off=off)
        on, off = self.seconds("ON"), self.seconds("OFF")
        return Intermittent(direction=direction, on=on, off=off)

    def milliseconds(self) -> Nanoseconds:
        word = self.next("a delay in whole milliseconds")
        if not re.fullmatch(r"[0-9]+", word):
            number = re.match(r"[0-9.]+", word)
            hint = "mm-delay adds so much in each direction, so the RTT grows by twice as much"
            if number is not None and word.endswith("ms") and number.group().isdecimal():
                hint = f"write it without unit: mm-delay {number.group()}"
            elif number is not None:
                hint = "mahimahi knows whole milliseconds only; NetworkPath(rtt=…) takes any time"
            raise self.fail(f"the delay {shown(word)}", "whole milliseconds, like 51", hint)
        if len(word) > 10 or int(word) > _MAX_MS:
            raise self.fail(f"the delay {shown(word)}", f"at most {_MAX_MS} milliseconds")
        return Nanoseconds(int(word) * NS_PER_MS)

    def direction(self) -> Direction:
        word = self.next("uplink or downlink")
        if word == "uplink":
            return "uplink"
        if word == "downlink":
            return "downlink"
        raise self.fail(
            f"the direction {shown(word)}", "uplink or downlink", did_you_mean(word, ("uplink", "downlink"))
        )

    def probability(self) -> float:
        word = self.next("a loss rate from 0 to 1")
        value = _number(word)
        if value is None or not 0.0 <= value <= 1.0:
            per_cent = _number(word.rstrip("%"))
            hint = ""
            if per_cent is not None and 0.0 <= per_cent <= 100.0:
                hint = f"if you mean {per_cent:g} per cent, write {per_cent / 100:g}"
            raise self.fail(f"the loss rate {shown(word)}", "a fraction from 0 to 1", hint)
        return value

    def seconds(self, what: str) -> Nanoseconds:
        word = self.next(f"{what} in seconds")
        value = _number(word)
        if value is None or not 1e-9 <= value <= 1e9:
            hint = "times of this tool are in seconds, without unit" if word[-1:].isalpha() else ""
            raise self.fail(f"{what} {shown(word)}", "a number of seconds above zero", hint)
        return Nanoseconds(max(1, round(value * NS_PER_S)))

    def meter(self) -> None:
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            word = self.next("an option")
            if word == "--":
                return
            if word not in ("--meter-uplink", "--meter-downlink"):
                raise self.fail(f"unknown option {shown(word)}", "--meter-uplink or --meter-downlink")

    def link(self) -> Link:
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
                f"{len(operands)} trace{'' if len(operands) == 1 else 's'}",
                "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE",
                at=first - 1,
            )
        up, down = (self.words[index] for index in operands[:2])
        for name in (up, down):
            if name in TOOLS or not name:
                raise self.fail(f"{shown(name)} as trace", "two traces: mm-link UPLINK-TRACE DOWNLINK-TRACE", at=first)
        # What follows the traces is the inner command; getopt has taken the options out of it.
        inner = operands[2:]
        rest = [*inner, *range(len(self.words) if end is None else end, len(self.words))]
        if end is None and inner:
            strays = [i for i in range(inner[0], self.at) if self.words[i].startswith("--") and i not in inner]
            if strays and any(self.words[index] == "mm-link" for index in inner):
                raise self.fail(
                    f"the option {shown(self.words[strays[0]])} behind an inner mm-link",
                    "it before that tool, or `--` before that tool",
                    "mahimahi's outer mm-link would take the option for itself",
                    at=strays[0],
                )
        link = Link(
            uplink=self.toward("uplink", up, options),
            downlink=self.toward("downlink", down, options),
            once="--once" in options,
        )
        # Go on with what is left: the inner command without the options that mm-link has taken.
        self.words = [self.words[index] for index in rest]
        self.places = [self.places[index] for index in rest]
        self.at = 0
        return link

    def option(self, word: str, options: dict[str, str], operands: list[int]) -> None:
        name, equals, value = word.partition("=")
        if word[:2] in _SHORT and not word.startswith("--"):
            name = _SHORT[word[:2]]
            if len(word) == 2:
                self.next(f"a file name after {word}")
            return
        if name in _FLAGS:
            if equals:
                raise self.fail(f"{shown(word)}", f"{name} without a value")
            options[name] = ""
            return
        if name not in _WITH_VALUE:
            if len(operands) > 2 and self.words[operands[2]] not in TOOLS:
                self.at = operands[2]
                raise self.unknown(self.words[self.at], True)
            raise self.fail(
                f"unknown option {shown(name)}",
                ", ".join([*_WITH_VALUE, *_FLAGS]),
                did_you_mean(name, [*_WITH_VALUE, *_FLAGS]),
            )
        if not equals:
            value = self.next(f"a value after {name}")
        if _WITH_VALUE[name] and name in options:
            raise self.fail(f"{name} a second time", "each option once")
        options[name] = value

    def toward(self, direction: Direction, trace: str, options: dict[str, str]) -> LinkDirection:
        kind = options.get(f"--{direction}-queue", "infinite")
        arguments = options.get(f"--{direction}-queue-args")
        return LinkDirection(trace=trace, queue=self.queue(direction, kind, arguments), overhead=MAHIMAHI_OVERHEAD)

    def queue(self, direction: Direction, kind: str, arguments: str | None) -> AnyQueue:
        where = f"mahimahi command (mm-link --{direction}-queue)"
        if kind not in _QUEUE_ARGUMENTS:
            raise ConfigError(
                f"unknown queue {shown(kind)}",
                expected=", ".join(_QUEUE_ARGUMENTS),
                hint=did_you_mean(kind, _QUEUE_ARGUMENTS),
                where=where,
            )
        where = f"mahimahi command (mm-link --{direction}-queue-args of {kind})"
        if kind == "infinite":
            if arguments is not None:
                hint = f"did you mean --{direction}-queue=droptail?" if "packets" in arguments else ""
                raise ConfigError(
                    f"arguments {shown(arguments)}",
                    expected="none: the infinite queue takes none",
                    hint=hint,
                    where=where,
                )
            return Infinite()
        given = _queue_arguments(kind, arguments or "", where)
        limit = Limit(packets=given.get("packets"), bytes=given.get("bytes"))
        if limit.unlimited:
            raise ConfigError(
                f"{kind} without a limit",
                expected="packets=N or bytes=N",
                hint=f"write --{direction}-queue-args=packets=100",
                where=where,
            )
        if kind == "droptail":
            return Droptail(limit=limit)
        if kind == "drophead":
            return Drophead(limit=limit)
        needed = _QUEUE_ARGUMENTS[kind][2:]
        missing = [name for name in needed if name not in given]
        if missing:
            raise ConfigError(
                f"{kind} without {' and '.join(missing)}",
                expected=f"{needed[0]}=MS and {needed[1]}=MS, both above zero",
                where=where,
            )
        first, second = (f"{given[name]}ms" for name in needed)
        if kind == "codel":
            return MahimahiCodel(limit=limit, target=first, interval=second)
        return MahimahiPie(limit=limit, qdelay_ref=first, max_burst=second)


def _queue_arguments(kind: str, text: str, where: str) -> dict[str, int]:
    """Read ``name=int, name=int``. mahimahi searches for substrings and cuts decimals; here that is an error."""
    known = _QUEUE_ARGUMENTS[kind]
    given: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        name, equals, value = part.partition("=")
        if name not in known:
            hint = did_you_mean(name, known)
            everything = {argument for names in _QUEUE_ARGUMENTS.values() for argument in names}
            raise ConfigError(
                f"unknown argument {shown(name)}",
                expected=", ".join(known),
                hint=hint or f"mahimahi ignores {'it' if name in everything else 'unknown arguments'} silently",
                where=where,
            )
        if not equals or not re.fullmatch(r"[0-9]{1,12}", value):
            raise ConfigError(
                shown(part),
                expected=f"{name}=N with a whole number",
                hint="mahimahi cuts decimals" if _number(value) is not None else "",
                where=where,
            )
        if name in given:
            raise ConfigError(f"{name} a second time", expected="each argument once", where=where)
        if int(value) == 0:
            raise ConfigError(
                shown(part), expected="a number above zero", hint="mahimahi takes 0 for not given", where=where
            )
        given[name] = int(value)
    return given


def _write(element: AnyElement, trace_of: Callable[[LinkDirection | None], str]) -> list[str]:
    if isinstance(element, Delay):
        if element.direction != "both":
            raise _unspeakable(f"a delay of the {element.direction} only", "the same delay in both directions")
        if isinstance(element.delay, tuple):
            raise _unspeakable("a delay that changes", "one delay")
        if element.delay % NS_PER_MS:
            raise _unspeakable(f"a one-way delay of {format_time(element.delay)}", "whole milliseconds each way")
        return ["mm-delay", str(element.delay // NS_PER_MS)]
    if isinstance(element, Loss):
        if isinstance(element.probability, tuple):
            raise _unspeakable("a loss rate that changes", "one loss rate")
        return ["mm-loss", element.direction, _decimal(element.probability)]
    if isinstance(element, OnOff):
        if element.hold:
            raise _unspeakable("packets that are held while a path is off", "that they are dropped")
        return ["mm-onoff", element.direction, _seconds(element.mean_on), _seconds(element.mean_off)]
    if isinstance(element, Intermittent):
        return ["mm-intermittent", element.direction, _seconds(element.on), _seconds(element.off)]
    if isinstance(element, Link):
        words = ["mm-link", trace_of(element.uplink), trace_of(element.downlink)]
        for direction, link in (("uplink", element.uplink), ("downlink", element.downlink)):
            if link is not None and not isinstance(link.queue, Infinite):
                kind, arguments = _write_queue(link.queue)
                words += [f"--{direction}-queue={kind}", f"--{direction}-queue-args={arguments}"]
        return words + (["--once"] if element.once else [])
    raise _unspeakable(f"the element {element.kind}", ", ".join(TOOLS))


def _write_queue(queue: AnyQueue) -> tuple[str, str]:
    if isinstance(queue, (Droptail, Drophead)):
        more: dict[str, int] = {}
    elif isinstance(queue, MahimahiCodel):
        more = {"target": queue.target // NS_PER_MS, "interval": queue.interval // NS_PER_MS}
    elif isinstance(queue, MahimahiPie):
        more = {"qdelay_ref": queue.qdelay_ref // NS_PER_MS, "max_burst": queue.max_burst // NS_PER_MS}
    else:
        kinds = ", ".join(_QUEUE_ARGUMENTS)
        raise _unspeakable(f"the queue {queue.kind}", f"{kinds} (mahimahi's codel is called mahimahi_codel here)")
    if queue.limit.bdp is not None:
        raise _unspeakable(f"a queue of {queue.limit}", "packets or bytes")
    given = {"packets": queue.limit.packets, "bytes": queue.limit.bytes, **more}
    kind = queue.kind.removeprefix("mahimahi_")
    return kind, ",".join(f"{name}={value}" for name, value in given.items() if value is not None)


def _unspeakable(found: str, expected: str) -> ConfigError:
    return ConfigError(
        f"mahimahi cannot express {found}",
        expected=expected,
        hint="the simulator and ccgym's own shells can run this path; mahimahi's cannot",
    )


def _quote(word: str) -> str:
    return word if re.fullmatch(r"[-A-Za-z0-9_@%+=:,./]+", word) else shlex.quote(word)


def _number(text: str) -> float | None:
    """Read a decimal number as C's strtod would, without its hexadecimal, infinite and nameless ones."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", text) or len(text) > 60:
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _decimal(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(value)


def _seconds(time_ns: int) -> str:
    whole, part = divmod(time_ns, NS_PER_S)
    return f"{whole}.{part:09d}".rstrip("0") if part else str(whole)
