"""The arguments of a path, made into a chain of elements or into changes of one: ``{named: 77.72mbps, rtt: 40ms}``.

:class:`ccgym.config.path.NetworkPath` says what they mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, TypeAdapter

from ccgym.config.capacity import mean_rate
from ccgym.config.declared import MAX_ELEMENTS, Strict
from ccgym.config.mahimahi import OVERHEAD, parse_mahimahi
from ccgym.config.models import (
    AnyElement,
    Delay,
    Droptail,
    ElementField,
    Jitter,
    Link,
    LinkDirection,
    Loss,
    QueueField,
)
from ccgym.config.quantities import Limit, ProbabilitySteps, RateSteps, TimeField, TimeSteps
from ccgym.config.yaml_loader import Loaded, validate
from ccgym.errors import ConfigError, UnitError, did_you_mean, located, shown
from ccgym.units import Nanoseconds


def _read_jitter(value: Any) -> Any:
    return value if isinstance(value, (Jitter, Mapping)) else {"distribution": value}


_Trace = Annotated[str, BeforeValidator(lambda value: os.fspath(value) if isinstance(value, os.PathLike) else value)]
_Jitter = Annotated[Jitter, BeforeValidator(_read_jitter, json_schema_input_type=TimeField | dict[str, Any])]


class Shorthand(Strict):
    """A path with one bottleneck, without its chain; see :class:`~ccgym.config.path.NetworkPath`."""

    rate: RateSteps | None = None
    trace: _Trace | None = None
    rtt: TimeSteps | None = None
    queue: QueueField = Droptail(limit=Limit(bdp=1.0))
    loss: ProbabilitySteps = 0.0
    jitter: _Jitter | None = None
    reverse_rate: RateSteps | None = None
    reverse_trace: _Trace | None = None
    reverse_queue: QueueField | None = None
    elements: tuple[ElementField, ...] = Field(default=(), max_length=MAX_ELEMENTS)
    overhead: int | None = None
    device_packets: int = 0


KEYS: Final = tuple(Shorthand.model_fields)
"""Arguments that are short for a chain."""

CHANGES: Final = ("rate", "trace", "rtt", "queue", "loss", "jitter")
"""What of a whole path can be changed, all of the data direction but the round-trip time."""

OTHER_WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(("bandwidth", "bw", "capacity", "throughput", "speed", "link_rate"), "did you mean 'rate'?"),
    **dict.fromkeys(
        ("delay", "latency", "owd", "one_way_delay", "prop_delay", "propagation_delay"),
        "did you mean 'rtt'? It is the whole round trip, twice the delay of one direction",
    ),
    **dict.fromkeys(("base_rtt", "min_rtt", "rtt_ms", "ping"), "did you mean 'rtt'?"),
    **dict.fromkeys(("buffer", "buffer_size", "queue_size", "qlen", "qdisc", "aqm"), "did you mean 'queue'?"),
    **dict.fromkeys(("plr", "loss_rate", "packet_loss", "loss_ratio", "error_rate"), "did you mean 'loss'?"),
}
"""Arguments that other tools have, and what to say about them."""


_CHAIN: Final = TypeAdapter(tuple[ElementField, ...])


def fields_of(cls: Any, data: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a path, its chain among them, of what users write.

    Args:
        cls: :class:`~ccgym.config.path.NetworkPath`, or a class of it.
        data: Its arguments.

    Raises:
        ConfigError: An unknown or a wrong argument, or too many or too few of them.
        UnitError: A quantity that cannot be read.
    """
    for key in data:
        if key not in cls.ACCEPTED_KEYS:
            raise ConfigError(
                "unknown-key",
                f"unknown argument {shown(key)}",
                expected=", ".join(cls.ACCEPTED_KEYS),
                hint=OTHER_WORDS.get(str(key).casefold()) or did_you_mean(str(key), cls.ACCEPTED_KEYS),
                where="path",
            )
    given = {key: value for key, value in data.items() if value is not None}
    for key in ("rtt", "jitter"):
        bare = str(given.get(key)) if type(given.get(key)) in (int, float, str) else ""
        if re.fullmatch(r"[0-9.]+(e-?[0-9]+)?", bare) and bare.strip("0."):
            # A rate without a unit is refused, too: 15 is as likely meant to be milliseconds.
            found, hint = f"{given[key]!r} without a unit", f"{key}='{bare}ms', or '{bare}s'"
            raise UnitError("unit-missing", found, expected="a time with its unit", hint=hint, where=key)
    if not given.get("links"):
        given.pop("links", None)
    elif "chain" in given:
        return given  # a path of several links that was compiled before: a copy
    whole: list[str] = [key for key in ("mahimahi", "named", "chain", "links") if key in given]
    # Next to one of these, rate and trace are changes of it.
    ways = whole or [key for key in ("rate", "trace") if key in given]
    if len(ways) != 1:
        nothing = "a path without rate, trace, mahimahi, named, chain or links"
        raise ConfigError(
            "exactly-one",
            f"{' and '.join(ways)} together" if ways else nothing,
            expected="exactly one of rate, trace, mahimahi, named, chain and links",
            hint="" if ways else "for example rate='32mbps', rtt='15ms'",
            where="path",
        )
    (way,) = ways
    changes = {key: given.pop(key) for key in KEYS if key in given}
    if not whole:
        return {**given, "chain": chain_of(changes)}
    if way in ("mahimahi", "named") and not isinstance(given[way], str):
        raise ConfigError("wrong-type", f"{way}={shown(given[way])}", expected="a text", where="path")
    if way == "mahimahi":
        given["chain"] = parse_mahimahi(given.pop("mahimahi"))
    elif way == "named":
        known = cls.named(given.pop("named"))
        given = {**{name: getattr(known, name) for name in cls.model_fields}, **given}
    elif way == "links":
        given["links"] = links = _read_links(cls, given["links"])
        given["chain"] = [element for _, link in reversed(links) for element in link.chain]
    elif isinstance(given["chain"], Iterable):
        given["chain"] = chain = tuple(given["chain"])
        if len(chain) > MAX_ELEMENTS:
            count = f"{len(chain)} elements"
            raise ConfigError("too-large", count, expected=f"{MAX_ELEMENTS} or fewer", where="chain")
    if not changes:
        return given
    if given.get("links"):
        raise ConfigError(
            "options-conflict",
            f"{' and '.join(changes)} next to several links",
            expected="changes of the links themselves",
            hint="write them into the path of a link",
            where="path",
        )
    said = ", ".join(f"{key} {value}" for key, value in changes.items() if isinstance(value, (str, int, float)))
    # What was published of the path is not of this one.
    kept = {key: value for key, value in given.items() if key not in ("published_results", "published_source", "title")}
    name = f"{given['name']} ({said})" if given.get("name") and said else None
    return {**kept, "chain": changed(_CHAIN.validate_python(given["chain"]), changes, way), "name": name}


def _read_links(cls: Any, given: object) -> tuple[tuple[str, Any], ...]:
    """Several links by name: a mapping, or pairs."""
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, tuple) or not all(isinstance(name, str) for name, _ in pairs):
        hint = "write links={'first': {'rate': '10mbps', 'rtt': '10ms'}, 'second': ...}"
        raise ConfigError("wrong-type", shown(given), where="links", expected="paths by name", hint=hint)
    read = []
    for name, link in pairs:
        with located(f"links.{name}"):
            path = cls.from_any(link)
            if not name or ":" in name or path.links:
                found = "a path of several links" if path.links else f"the name {shown(name)}"
                raise ConfigError("name-invalid", found, expected="one link, with a name without a colon")
        read.append((name, path))
    return tuple(read)


def chain_of(given: Mapping[str, Any]) -> list[AnyElement]:
    """Build the chain of a path, the outermost element first.

    Args:
        given: Some of :data:`KEYS`, one of ``rate`` and ``trace`` among them.

    Raises:
        ConfigError: Something is missing, contradictory or out of range.
        UnitError: A quantity that cannot be read.
    """
    read = validate(Loaded(given), Shorthand)
    with located("path"):
        if read.rtt is None:
            raise ConfigError(
                "argument-missing",
                "no rtt",
                expected="the round-trip propagation delay, like rtt='15ms'",
                hint="'0ms' is one",
            )
        if read.reverse_rate is not None and read.reverse_trace is not None:
            raise ConfigError("options-conflict", "reverse_rate and reverse_trace", expected="one of the two")
        uplink = _link(given, "", queue=read.queue, device_packets=read.device_packets)
        downlink = None
        if read.reverse_rate is not None or read.reverse_trace is not None:
            downlink = _link(given, "reverse_", **({"queue": read.reverse_queue} if read.reverse_queue else {}))
        elif read.reverse_queue is not None:
            raise ConfigError(
                "option-needed", "reverse_queue without reverse_rate", expected="a rate or trace of the way back"
            )
    link = Link(uplink=uplink, downlink=downlink)
    return [*_delays(read.rtt), *_jitter(read), *read.elements, *_loss(read, given), link]


def changed(chain: Sequence[AnyElement], changes: Mapping[str, Any], way: str) -> list[AnyElement]:
    """The elements of a path with some of them replaced.

    A new round-trip time takes the place of all propagation delays, random loss that of all loss of data, jitter that
    of all jitter; rate, trace and queue become those of the slowest link.

    Args:
        chain: The elements, the outermost first.
        changes: Some of :data:`CHANGES`, as a path without a chain has them.
        way: What the path was given by, for errors.

    Raises:
        ConfigError: Something else is to be changed, there is no link to change, or a value is wrong.
        UnitError: A quantity that cannot be read.
    """
    others = [key for key in changes if key not in CHANGES]
    if others or {"rate", "trace"} <= changes.keys():
        raise ConfigError(
            "options-conflict",
            f"{', '.join(others or ('rate', 'trace'))} together with {way}",
            expected=f"{way} alone, or with some of {', '.join(CHANGES)}, and of rate and trace one",
            where="path",
        )
    read = validate(Loaded(changes), Shorthand)
    elements = list(chain)
    if read.rtt is not None:
        ticks = [one.tick for one in elements if isinstance(one, Delay)]
        new = [one.model_copy(update={"tick": ticks[0]}) if ticks else one for one in _delays(read.rtt)]
        elements = _replaced(elements, Delay, new, 0)
    if "jitter" in changes:
        elements = _replaced(elements, Jitter, _jitter(read), _slowest(elements))
    if "loss" in changes:
        elements = _replaced(elements, Loss, _loss(read, changes), _slowest(elements))
    if changes.keys() & {"rate", "trace", "queue"}:
        place = _slowest(elements)
        link = elements[place] if place is not None else None
        if place is None or not isinstance(link, Link) or link.uplink is None:
            raise ConfigError(
                "path-without-link",
                "a path without a link",
                where="path",
                expected="a link, whose rate and queue can change",
            )
        schedule = {key: changes[key] for key in ("rate", "trace") if key in changes}
        kept = link.uplink.model_dump(exclude_none=True, exclude={"rate", "trace"} if schedule else set())
        queue = {"queue": read.queue} if "queue" in changes else {}
        uplink = validate(Loaded({**kept, **schedule, **queue}), LinkDirection)
        elements[place] = link.model_copy(update={"uplink": uplink})
    return elements


def _link(given: Mapping[str, Any], way: str, **more: Any) -> LinkDirection:
    trace, rate = given.get(f"{way}trace"), given.get(f"{way}rate")
    schedule = {"rate": rate} if trace is None else {"trace": os.fspath(trace)}
    overhead = given.get("overhead", 0 if trace is None else OVERHEAD)
    return validate(Loaded({**schedule, "overhead": overhead, **more}), LinkDirection)


def _jitter(read: Shorthand) -> list[Jitter]:
    return [] if read.jitter is None else [read.jitter]


def _loss(read: Shorthand, given: Mapping[str, Any]) -> list[Loss]:
    return [] if read.loss == 0.0 else [Loss(probability=given["loss"])]


def _delays(rtt: int | tuple[tuple[int, int], ...]) -> list[Delay]:
    """The elements of a round-trip time. Half of the RTT in each direction; an odd nanosecond goes to the way back."""
    steps = rtt if isinstance(rtt, tuple) else ((0, rtt),)

    def delay(direction: Literal["both", "uplink", "downlink"], extra: int = 0) -> Delay:
        halves = [(Nanoseconds(start), Nanoseconds((time + extra) // 2)) for start, time in steps]
        return Delay.model_validate({"delay": halves, "direction": direction})

    if all(time % 2 == 0 for _, time in steps):
        return [delay("both")]
    return [delay("uplink"), delay("downlink", extra=1)]


def _slowest(elements: Sequence[AnyElement]) -> int | None:
    """The position of the slowest link of the data direction; None without one."""
    links = {
        place: one.uplink for place, one in enumerate(elements) if isinstance(one, Link) and one.uplink is not None
    }
    return min(links, key=lambda place: mean_rate(links[place]), default=None)


def _replaced(
    elements: Sequence[AnyElement],
    kind: type[Delay] | type[Loss] | type[Jitter],
    new: Sequence[AnyElement],
    place: int | None,
) -> list[AnyElement]:
    """The elements with new ones where the first of a kind was, or at a place, and none of that kind besides."""

    def goes(one: AnyElement) -> bool:
        # Losses and jitter of acknowledgements stay.
        return isinstance(one, kind) and (isinstance(one, Delay) or one.direction != "downlink")

    at = next((index for index, one in enumerate(elements) if goes(one)), place or 0)
    before = [one for one in elements[:at] if not goes(one)]
    return [*before, *new, *(one for one in elements[at:] if not goes(one))]
