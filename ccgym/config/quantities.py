"""Field types for pydantic models: they read text with units and store integers in base units.

A model is written with units again, so ``Model.model_validate(model.model_dump())`` returns the same model. Values that
change over time are given as steps: a list of pairs of time and value, the first at ``0s``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ccgym.errors import ConfigError, shown
from ccgym.units import (
    NS_PER_MS,
    Size,
    format_probability,
    format_rate,
    format_size,
    format_time,
    is_number,
    parse_flow_rate,
    parse_positive_time,
    parse_probability,
    parse_rate,
    parse_size,
    parse_time,
)

_T = TypeVar("_T", int, float)

MAX_STEPS: Final = 100_000
"""Max number of steps."""


def parse_steps(value: object, parse: Callable[[Any], _T]) -> _T | tuple[tuple[int, _T], ...]:
    """Read one value, or steps ``[("0s", value), ("3.75s", value), …]``; a single step becomes one value.

    Raises:
        UnitError: A value or time cannot be read.
        ConfigError: The items are not pairs, or the times are not in order.
    """
    if isinstance(value, Mapping) or not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        return parse(value)
    items = list(value)
    if not 1 <= len(items) <= MAX_STEPS:
        raise ConfigError("wrong-count", f"{len(items)} steps", expected=f"1 to {MAX_STEPS} pairs of time and value")
    steps: list[tuple[int, _T]] = []
    for position, item in enumerate(items):
        if not isinstance(item, (list, tuple)) or len(item) != 2:
            raise ConfigError(
                "wrong-type",
                f"step {position + 1} is {shown(item)}",
                expected="a pair of time and value, like ['3.75s', '256mbps']",
            )
        start = parse_time(item[0])
        if start != 0 and not steps:
            raise ConfigError("order-wrong", f"a first step at {format_time(start)}", expected="a first step at 0s")
        if steps and start <= steps[-1][0]:
            raise ConfigError(
                "order-wrong",
                f"a step at {format_time(start)} after a step at {format_time(steps[-1][0])}",
                expected="strictly increasing times",
            )
        steps.append((start, parse(item[1])))
    return steps[0][1] if len(steps) == 1 else tuple(steps)


def format_steps(value: _T | tuple[tuple[int, _T], ...], write: Callable[[_T], str]) -> str | list[list[str]]:
    """Write a value or steps as text; the inverse of :func:`parse_steps`."""
    if isinstance(value, tuple):
        return [[format_time(start), write(part)] for start, part in value]
    return write(value)


def _bytes(value: Any) -> int:
    size = parse_size(value)
    if size.bytes is None:
        raise ConfigError("unit-mismatch", f"{shown(value)} is not in bytes", expected="a number of bytes, like '5MB'")
    return size.bytes


def _whole_milliseconds(value: Any) -> int:
    time_ns = parse_positive_time(value)
    if time_ns % NS_PER_MS:
        raise ConfigError(
            "out-of-range",
            f"a time of {format_time(time_ns)}",
            expected="whole milliseconds above zero, as in mahimahi",
        )
    return time_ns


@dataclass(frozen=True)
class Quantity:
    """Metadata of a field that is read from text with a unit and written in the same form."""

    parse: Callable[[Any], Any]
    write: Callable[[Any], str]
    example: str
    numbers: bool = False
    """Whether plain numbers are also accepted."""
    steps: bool = False
    """Whether steps are accepted."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        read = partial(parse_steps, parse=self.parse) if self.steps else self.parse
        write = partial(format_steps, write=self.write) if self.steps else self.write
        written = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_plain_validator_function(read, serialization=written)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        types = ["string", "number"] if self.numbers or self.steps else "string"
        one = {"type": types, "examples": [self.example]}
        pair = {"type": "array", "minItems": 2, "maxItems": 2}
        return {"anyOf": [one, {"type": "array", "items": pair}]} if self.steps else one


RateField = Annotated[int, Quantity(parse_rate, format_rate, "77.72mbps")]
"""Bits per second, from ``"77.72mbps"``."""
FlowRateField = Annotated[int, Quantity(parse_flow_rate, format_rate, "3mbps")]
"""Bits per second, from ``"3mbps"`` or ``"40 packets/s"``. A plain number is refused: its unit is not clear."""
TimeField = Annotated[int, Quantity(parse_time, format_time, "51ms", numbers=True)]
"""Nanoseconds, from ``"51ms"`` or plain seconds; may be zero."""
PeriodField = Annotated[int, Quantity(parse_positive_time, format_time, "0.5s", numbers=True)]
"""Nanoseconds above zero, from ``"0.5s"`` or plain seconds."""
MillisecondsField = Annotated[int, Quantity(_whole_milliseconds, format_time, "20ms")]
"""Nanoseconds: a whole number of milliseconds above zero, as in mahimahi, from ``"20ms"``."""
BytesField = Annotated[int, Quantity(_bytes, lambda value: format_size(Size(bytes=value)), "5MB")]
"""Bytes, from ``"5MB"``."""
ProbabilityField = Annotated[float, Quantity(parse_probability, format_probability, "1%", numbers=True)]
"""A float from 0 to 1, from ``"1%"`` or ``0.01``."""
RateSteps = Annotated[int | tuple[tuple[int, int], ...], Quantity(parse_rate, format_rate, "77.72mbps", steps=True)]
"""A rate, or rates in steps."""
TimeSteps = Annotated[int | tuple[tuple[int, int], ...], Quantity(parse_time, format_time, "51ms", steps=True)]
"""A time, or times in steps."""
ProbabilitySteps = Annotated[
    float | tuple[tuple[int, float], ...], Quantity(parse_probability, format_probability, "1%", steps=True)
]
"""A probability, or probabilities in steps."""


class Limit(BaseModel):
    """Limit of a queue: ``"94p"``, ``"30000B"``, ``"1.5bdp"`` or a mapping.

    All given limits apply together. If none is given, the queue has no limit. A limit in bandwidth-delay products is
    converted to packets of 1500 bytes, rounded up, when the path is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    packets: int | None = Field(default=None, ge=1, le=2**32, description="Packets.")
    bytes: int | None = Field(default=None, ge=1, le=2**48, description="Wire bytes: IP length and the link's overhead "
                              "per packet (4 with mahimahi).")  # fmt: skip
    bdp: float | None = Field(default=None, gt=0, le=1e6, description="Bandwidth-delay products of the path.")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"type": "string", "examples": ["94p", "30000B", "1.5bdp"]}]}

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str) or is_number(value):
            size = parse_size(value)
            return {"packets": size.packets, "bytes": size.bytes, "bdp": size.bdp}
        return value

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> Any:
        given = {name: size for name, size in write(self).items() if size is not None}
        return str(self) if len(given) == 1 else given

    @property
    def unlimited(self) -> bool:
        """Whether no limit is given."""
        return self.packets is None and self.bytes is None and self.bdp is None

    def in_packets(self, bdp_packets: Fraction) -> Limit:
        """Return a copy with packets in place of bandwidth-delay products.

        Args:
            bdp_packets: Bandwidth-delay product of the path, in packets of 1500 bytes.

        Raises:
            ConfigError: The limit is in bandwidth-delay products, but the path has no delay.
        """
        if self.bdp is None:
            return self
        if bdp_packets <= 0:
            raise ConfigError(
                "path-without-delay",
                f"a queue of {self.bdp:g} bandwidth-delay products on a path without delay",
                expected="a path with an RTT, or a queue in packets or bytes like '100p'",
            )
        product = max(1, math.ceil(Fraction(repr(self.bdp)) * bdp_packets))
        return Limit(packets=product if self.packets is None else min(self.packets, product), bytes=self.bytes)

    def __str__(self) -> str:
        sizes = (Size(packets=self.packets), Size(bytes=self.bytes), Size(bdp=self.bdp))
        return " and ".join(format_size(size) for size in sizes if size != Size()) or "unlimited"
