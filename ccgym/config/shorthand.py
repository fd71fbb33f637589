"""A path given by rate or trace, made into a chain of elements; see :class:`ccgym.config.path.NetworkPath`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError

from ccgym.config.declared import MAX_ELEMENTS, Strict
from ccgym.config.mahimahi import OVERHEAD
from ccgym.config.models import (
    AnyElement,
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
from ccgym.config.quantities import Limit, ProbabilitySteps, RateSteps, TimeField, TimeSteps
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError
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


def chain_of(given: Mapping[str, Any]) -> list[AnyElement]:
    """Build the chain of a path, the outermost element first.

    Args:
        given: Some of :data:`KEYS`, one of ``rate`` and ``trace`` among them.

    Raises:
        ConfigError: Something is missing, contradictory or out of range.
        UnitError: A quantity that cannot be read.
    """
    try:
        read = Shorthand.model_validate(given)
    except ValidationError as error:
        raise config_error(error, Shorthand) from None
    if read.rtt is None:
        raise ConfigError(
            "argument-missing",
            "no rtt",
            expected="the round-trip propagation delay, like rtt='15ms'",
            hint="'0ms' is one",
            where="path",
        )
    if read.reverse_rate is not None and read.reverse_trace is not None:
        raise ConfigError("options-conflict", "reverse_rate and reverse_trace", expected="one of the two", where="path")
    uplink = _link(given, "", read.queue, device_packets=read.device_packets)
    downlink = None
    if read.reverse_rate is not None or read.reverse_trace is not None:
        downlink = _link(given, "reverse_", read.reverse_queue)
    elif read.reverse_queue is not None:
        raise ConfigError(
            "option-needed",
            "reverse_queue without reverse_rate",
            expected="a rate or trace of the way back",
            where="path",
        )
    jitter = [] if read.jitter is None else [read.jitter]
    loss = [] if read.loss == 0.0 else [Loss(probability=given["loss"])]
    return [*delays(read.rtt), *jitter, *read.elements, *loss, Link(uplink=uplink, downlink=downlink)]


def _link(given: Mapping[str, Any], way: str, queue: AnyQueue | None, device_packets: int = 0) -> LinkDirection:
    trace, rate = given.get(f"{way}trace"), given.get(f"{way}rate")
    overhead = given.get("overhead", 0 if trace is None else OVERHEAD)
    arguments = {"rate": rate} if trace is None else {"trace": os.fspath(trace)}
    if queue is not None:
        arguments["queue"] = queue
    try:
        return LinkDirection(**arguments, overhead=overhead, device_packets=device_packets)
    except ValidationError as error:
        raise config_error(error, LinkDirection).at("path") from None


def delays(rtt: int | tuple[tuple[int, int], ...]) -> list[Delay]:
    """The elements of a round-trip time. Half of the RTT in each direction; an odd nanosecond goes to the way back."""
    steps = rtt if isinstance(rtt, tuple) else ((0, rtt),)

    def delay(direction: Literal["both", "uplink", "downlink"], extra: int = 0) -> Delay:
        halves = [(Nanoseconds(start), Nanoseconds((time + extra) // 2)) for start, time in steps]
        return Delay.model_validate({"delay": halves, "direction": direction})

    if all(time % 2 == 0 for _, time in steps):
        return [delay("both")]
    return [delay("uplink"), delay("downlink", extra=1)]
