"""Conversion of a path's arguments to a chain of elements, or to changes of a chain: ``{named: 77.72mbps, rtt: 40ms}``.

See :class:`ccgym.config.path.NetworkPath` for the arguments.
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
"""Arguments that are a short form of a chain."""

CHANGES: Final = ("rate", "trace", "rtt", "queue", "loss", "jitter")
"""Properties of a complete path that can be changed; all but ``rtt`` change only the data direction."""

OTHER_WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(("bandwidth", "bw", "capacity", "throughput", "speed", "link_rate"), "did you mean 'rate'?"),
    **dict.fromkeys(
        ("delay", "latency", "owd", "one_way_delay", "prop_delay", "propagation_delay"),
        "did you mean 'rtt'? It is the round-trip delay, twice the delay of one direction",
    ),
    **dict.fromkeys(("base_rtt", "min_rtt", "rtt_ms", "ping"), "did you mean 'rtt'?"),
    **dict.fromkeys(("buffer", "buffer_size", "queue_size", "qlen", "qdisc", "aqm"), "did you mean 'queue'?"),
    **dict.fromkeys(("plr", "loss_rate", "packet_loss", "loss_ratio", "error_rate"), "did you mean 'loss'?"),
}
"""Arguments of other tools, and the hints for them."""


_CHAIN: Final = TypeAdapter(tuple[ElementField, ...])


def fields_of(cls: Any, data: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert the arguments of a path to its fields, which include its chain.

    Args:
        cls: :class:`~ccgym.config.path.NetworkPath`, or a subclass.
        data: Arguments of the path.

    Raises:
        ConfigError: An argument is unknown or wrong, or there are too many or too few arguments.
        UnitError: A quantity cannot be read.
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
            # As for a rate: 15 without a unit could be seconds or milliseconds.
            found, hint = f"{given[key]!r} without a unit", f"{key}='{bare}ms', or '{bare}s'"
            raise UnitError("unit-missing", found, expected="a time with its unit", hint=hint, where=key)
    if not given.get("links"):
        given.pop("links", None)
    elif "chain" in given:
        return given  # a copy of a path of several links, which has its chain already
    whole: list[str] = [key for key in ("mahimahi", "named", "chain", "links") if key in given]
    # With one of these, rate and trace are changes.
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
            raise ConfigError("too-large", count, expected=f"at most {MAX_ELEMENTS}", where="chain")
    if not changes:
        return given
    if given.get("links"):
        raise ConfigError(
            "options-conflict",
            f"{' and '.join(changes)} together with several links",
            expected="changes in the single links",
            hint="write the changes in the path of a link",
            where="path",
        )
    said = ", ".join(f"{key} {value}" for key, value in changes.items() if isinstance(value, (str, int, float)))
    # The published results are not valid for the changed path.
    kept = {key: value for key, value in given.items() if key not in ("published_results", "published_source", "title")}
    name = f"{given['name']} ({said})" if given.get("name") and said else None
    return {**kept, "chain": changed(_CHAIN.validate_python(given["chain"]), changes, way), "name": name}


def _read_links(cls: Any, given: object) -> tuple[tuple[str, Any], ...]:
    """Read several links by name: a mapping, or pairs."""
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
        given: Some of :data:`KEYS`, including ``rate`` or ``trace``.

    Raises:
        ConfigError: An argument is missing, contradictory or out of range.
        UnitError: A quantity cannot be read.
    """
    read = validate(Loaded(given), Shorthand)
    with located("path"):
        if read.rtt is None:
            raise ConfigError(
                "argument-missing",
                "no rtt",
                expected="the round-trip propagation delay, like rtt='15ms'",
                hint="write rtt='0ms' for a path without delay",
            )
        if read.reverse_rate is not None and read.reverse_trace is not None:
            raise ConfigError("options-conflict", "reverse_rate and reverse_trace", expected="one of the two")
        uplink = _link(given, "", queue=read.queue, device_packets=read.device_packets)
        downlink = None
        if read.reverse_rate is not None or read.reverse_trace is not None:
            downlink = _link(given, "reverse_", **({"queue": read.reverse_queue} if read.reverse_queue else {}))
        elif read.reverse_queue is not None:
            raise ConfigError(
                "option-needed", "reverse_queue without reverse_rate", expected="reverse_rate or reverse_trace"
            )
    link = Link(uplink=uplink, downlink=downlink)
    return [*_delays(read.rtt), *_jitter(read), *read.elements, *_loss(read, given), link]


def changed(chain: Sequence[AnyElement], changes: Mapping[str, Any], way: str) -> list[AnyElement]:
    """Return the elements of a path with some of them replaced.

    A new RTT replaces all propagation delays, a new random loss replaces all loss of data, and a new jitter replaces
    all jitter. A new rate, trace or queue applies to the slowest link.

    Args:
        chain: The elements, the outermost first.
        changes: Some of :data:`CHANGES`, in the form of a path's arguments.
        way: The argument that gave the path, for errors.

    Raises:
        ConfigError: Another property would be changed, there is no link to change, or a value is wrong.
        UnitError: A quantity cannot be read.
    """
    others = [key for key in changes if key not in CHANGES]
    if others or {"rate", "trace"} <= changes.keys():
        raise ConfigError(
            "options-conflict",
            f"{', '.join(others or ('rate', 'trace'))} together with {way}",
            expected=f"{way} alone, or with some of {', '.join(CHANGES)}, but not both rate and trace",
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
                expected="a path with a link, to change its rate or queue",
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
    """Return the delays of an RTT: half in each direction; an odd nanosecond is added to the reverse direction."""
    steps = rtt if isinstance(rtt, tuple) else ((0, rtt),)

    def delay(direction: Literal["both", "uplink", "downlink"], extra: int = 0) -> Delay:
        halves = [(Nanoseconds(start), Nanoseconds((time + extra) // 2)) for start, time in steps]
        return Delay.model_validate({"delay": halves, "direction": direction})

    if all(time % 2 == 0 for _, time in steps):
        return [delay("both")]
    return [delay("uplink"), delay("downlink", extra=1)]


def _slowest(elements: Sequence[AnyElement]) -> int | None:
    """Return the position of the slowest link of the data direction; ``None`` if there is no link."""
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
    """Replace all elements of a kind by new ones, at the position of the first old one, or else at ``place``."""

    def goes(one: AnyElement) -> bool:
        # Losses and jitter of ACKs stay.
        return isinstance(one, kind) and (isinstance(one, Delay) or one.direction != "downlink")

    at = next((index for index, one in enumerate(elements) if goes(one)), place or 0)
    before = [one for one in elements[:at] if not goes(one)]
    return [*before, *new, *(one for one in elements[at:] if not goes(one))]
