"""Field types for pydantic models: they take text with units and hold integers in base units.

A model is written back with units, so ``Model.model_validate(model.model_dump())`` gives the same model. What varies
over time is given as steps: a list of pairs of time and value, the first at ``0s``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from ccgym.errors import ConfigError, shown
from ccgym.units import (
    NS_PER_MS,
    Size,
    format_probability,
    format_rate,
    format_size,
    format_time,
    parse_positive_time,
    parse_probability,
    parse_rate,
    parse_size,
    parse_time,
)

_T = TypeVar("_T", int, float)

Steps: TypeAlias = "tuple[tuple[int, _T], ...]"
"""Piecewise constant values: pairs of start in nanoseconds and value, the first start 0, strictly increasing."""

MAX_STEPS: Final = 100_000
"""More steps are refused."""


def parse_steps(value: object, parse: Callable[[Any], _T]) -> _T | tuple[tuple[int, _T], ...]:
    """Read one value, or steps ``[("0s", value), ("3.75s", value), …]``; one step alone is one value.

    Raises:
        UnitError: A value or time that cannot be read.
        ConfigError: No pairs, or times out of order.
    """
    if isinstance(value, Mapping) or not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return parse(value)
    items = list(value)
    if not 1 <= len(items) <= MAX_STEPS:
        raise ConfigError(f"{len(items)} steps", expected=f"1 to {MAX_STEPS} pairs of time and value")
    steps: list[tuple[int, _T]] = []
    for position, item in enumerate(items):
        if not isinstance(item, (list, tuple)) or len(item) != 2:
            raise ConfigError(
                f"step {position + 1} is {shown(item)}",
                expected="a pair of time and value, like ['3.75s', '256mbps']",
            )
        start = parse_time(item[0])
        if start != 0 and not steps:
            raise ConfigError(f"a first step at {format_time(start)}", expected="a first step at 0s")
        if steps and start <= steps[-1][0]:
            raise ConfigError(
                f"a step at {format_time(start)} after one at {format_time(steps[-1][0])}",
                expected="strictly increasing times",
            )
        steps.append((start, parse(item[1])))
    return steps[0][1] if len(steps) == 1 else tuple(steps)


def format_steps(value: _T | tuple[tuple[int, _T], ...], write: Callable[[_T], str]) -> str | list[list[str]]:
    """The inverse of :func:`parse_steps`."""
    if isinstance(value, tuple):
        return [[format_time(start), write(part)] for start, part in value]
    return write(value)


def _bytes(value: Any) -> int:
    size = parse_size(value)
    if size.bytes is None:
        raise ConfigError(f"{shown(value)} is not in bytes", expected="a number of bytes, like '5MB'")
    return size.bytes


def _whole_milliseconds(value: Any) -> int:
    time_ns = parse_positive_time(value)
    if time_ns % NS_PER_MS:
        raise ConfigError(
            f"a time of {format_time(time_ns)}", expected="whole milliseconds above zero, as mahimahi counts"
        )
    return time_ns


def _schema(*examples: object, plain: bool = False) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "number"] if plain else "string", "examples": list(examples)})


def _steps_schema(*examples: object) -> WithJsonSchema:
    pair = {"type": "array", "minItems": 2, "maxItems": 2}
    return WithJsonSchema({"anyOf": [{"type": ["string", "number"], "examples": list(examples)},
                                     {"type": "array", "items": pair}]})  # fmt: skip


RateField = Annotated[int, BeforeValidator(parse_rate), PlainSerializer(format_rate), _schema("77.72mbps")]
"""Bits per second, from ``"77.72mbps"``."""
TimeField = Annotated[int, BeforeValidator(parse_time), PlainSerializer(format_time), _schema("51ms", plain=True)]
"""Nanoseconds, from ``"51ms"`` or plain seconds; may be zero."""
PeriodField = Annotated[
    int, BeforeValidator(parse_positive_time), PlainSerializer(format_time), _schema("0.5s", plain=True)
]
"""Nanoseconds above zero, from ``"0.5s"`` or plain seconds."""
MillisecondsField = Annotated[int, BeforeValidator(_whole_milliseconds), PlainSerializer(format_time), _schema("20ms")]
"""Nanoseconds, a whole number of milliseconds above zero, as mahimahi counts, from ``"20ms"``."""
BytesField = Annotated[
    int, BeforeValidator(_bytes), PlainSerializer(lambda value: format_size(Size(bytes=value))), _schema("5MB")
]
"""Bytes, from ``"5MB"``."""
ProbabilityField = Annotated[
    float, BeforeValidator(parse_probability), PlainSerializer(format_probability), _schema("1%")
]
"""A float from 0 to 1, from ``"1%"`` or ``0.01``."""
RateSteps = Annotated[
    int | tuple[tuple[int, int], ...],
    BeforeValidator(lambda value: parse_steps(value, parse_rate)),
    PlainSerializer(lambda value: format_steps(value, format_rate)),
    _steps_schema("77.72mbps"),
]
"""A rate, or rates in steps."""
TimeSteps = Annotated[
    int | tuple[tuple[int, int], ...],
    BeforeValidator(lambda value: parse_steps(value, parse_time)),
    PlainSerializer(lambda value: format_steps(value, format_time)),
    _steps_schema("51ms"),
]
"""A time, or times in steps."""
ProbabilitySteps = Annotated[
    float | tuple[tuple[int, float], ...],
    BeforeValidator(lambda value: parse_steps(value, parse_probability)),
    PlainSerializer(lambda value: format_steps(value, format_probability)),
    _steps_schema("1%", 0.01),
]
"""A probability, or probabilities in steps."""
