"""A path given by rate or trace, made into a chain of elements; see :class:`ccgym.config.path.NetworkPath`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from typing_extensions import TypedDict

from ccgym.config.declared import MAHIMAHI_OVERHEAD, MAX_ELEMENTS, kinds_of, read_queue
from ccgym.config.models import (
    AnyQueue,
    Delay,
    Droptail,
    ElementField,
    Jitter,
    Link,
    LinkDirection,
    Loss,
    QueueField,
)
from ccgym.config.quantities import Limit, ProbabilitySteps, RateSteps, TimeField, TimeSteps, parse_steps
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError, shown
from ccgym.units import Nanoseconds, parse_probability, parse_rate, parse_time

_T = TypeVar("_T", int, float)


class Shorthand(TypedDict, total=False):
    """A path with one bottleneck, without its chain; see :class:`~ccgym.config.path.NetworkPath`."""

    rate: RateSteps
    trace: str
    rtt: TimeSteps
    queue: QueueField
    loss: ProbabilitySteps
    jitter: TimeField | dict[str, Any]
    reverse_rate: RateSteps
    reverse_trace: str
    reverse_queue: QueueField
    elements: list[ElementField]
    overhead: int
    device_packets: int


KEYS: Final = tuple(Shorthand.__annotations__)
"""Arguments that are short for a chain."""

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


def chain_of(given: Mapping[str, Any]) -> list[Any]:
    """Build the chain of a path that was given by ``rate`` or ``trace``.

    Args:
        given: Some of :data:`KEYS`, one of ``rate`` and ``trace`` among them.

    Returns:
        The elements, the outermost first; those of ``elements`` as they were given, for the model to read.

    Raises:
        ConfigError: Something is missing, contradictory or out of range.
        UnitError: A quantity that cannot be read.
    """
    if "rtt" not in given:
        raise ConfigError(
            "no rtt", expected="the round-trip propagation delay, like rtt='15ms'", hint="'0ms' is one", where="path"
        )
    uplink = _link_of(given, "rate", "trace", "queue", Droptail(limit=Limit(bdp=1.0)))
    downlink = None
    if "reverse_rate" in given or "reverse_trace" in given:
        if "reverse_rate" in given and "reverse_trace" in given:
            raise ConfigError("reverse_rate and reverse_trace", expected="one of the two", where="path")
        downlink = _link_of(given, "reverse_rate", "reverse_trace", "reverse_queue", None)
    elif "reverse_queue" in given:
        raise ConfigError(
            "reverse_queue without reverse_rate", expected="a rate or trace of the way back", where="path"
        )
    chain: list[Any] = [*_delays(_read(given, "rtt", parse_time))]
    if "jitter" in given:
        jitter = given["jitter"]
        try:
            chain.append(Jitter.model_validate(jitter if isinstance(jitter, Mapping) else {"distribution": jitter}))
        except ValidationError as error:
            raise config_error(error, Jitter).at("jitter") from None
    elements = given.get("elements", ())
    if isinstance(elements, (str, bytes, Mapping)) or not isinstance(elements, Iterable):
        raise ConfigError(shown(elements), expected="a list of elements", where="elements")
    elements = list(islice(elements, MAX_ELEMENTS + 1))
    if len(elements) > MAX_ELEMENTS:
        raise ConfigError(f"more than {MAX_ELEMENTS} elements", expected=f"{MAX_ELEMENTS} or fewer", where="elements")
    chain += elements
    loss = _read(given, "loss", parse_probability) if "loss" in given else 0.0
    if loss != 0.0:
        chain.append(Loss(probability=given["loss"]))
    chain.append(Link(uplink=uplink, downlink=downlink))
    return chain


def _link_of(given: Mapping[str, Any], rate: str, trace: str, queue: str, default: AnyQueue | None) -> LinkDirection:
    arguments: dict[str, Any] = {}
    if trace in given:
        reference = given[trace]
        if not isinstance(reference, (str, os.PathLike)):
            raise ConfigError(f"{trace}={shown(reference)}", expected="a name or a file", where="path")
        arguments["trace"] = os.fspath(reference)
    else:
        _read(given, rate, parse_rate)
        arguments["rate"] = given[rate]
    chosen = given.get(queue, default)
    if chosen is not None:
        try:
            arguments["queue"] = read_queue(chosen, kinds_of(AnyQueue))
        except ConfigError as error:
            raise error.at(queue) from None
    arguments["overhead"] = given.get("overhead", MAHIMAHI_OVERHEAD if trace in given else 0)
    if rate == "rate":
        arguments["device_packets"] = given.get("device_packets", 0)
    try:
        return LinkDirection(**arguments)
    except ValidationError as error:
        raise config_error(error, LinkDirection).at("path") from None


def _read(given: Mapping[str, Any], key: str, parse: Callable[[Any], _T]) -> _T | tuple[tuple[int, _T], ...]:
    try:
        return parse_steps(given[key], parse)
    except ConfigError as error:
        raise error.at(key) from None


def _delays(rtt: int | tuple[tuple[int, int], ...]) -> list[Delay]:
    """Half of the RTT in each direction; an odd nanosecond goes to the way back."""

    def delay(direction: str, part: Callable[[int], int]) -> Delay:
        value = (
            [(Nanoseconds(start), Nanoseconds(part(time))) for start, time in rtt]
            if isinstance(rtt, tuple)
            else Nanoseconds(part(rtt))
        )
        return Delay.model_validate({"delay": value, "direction": direction})

    times = [time for _, time in rtt] if isinstance(rtt, tuple) else [rtt]
    if all(time % 2 == 0 for time in times):
        return [delay("both", lambda time: time // 2)]
    return [delay("uplink", lambda time: time // 2), delay("downlink", lambda time: time - time // 2)]
