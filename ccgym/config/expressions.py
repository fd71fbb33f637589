"""Values in the models of agents: amounts with units, signals and their functions, operations, bounds."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator

from ccgym.errors import ConfigError, UnitError, shown
from ccgym.units import NS_PER_S, PACKET_RATE_UNITS, parse_flow_rate, parse_probability, parse_size, parse_time

FUNCTIONS: Final = ("mean", "min", "max", "std", "sum", "previous", "rtts_ago")
"""Functions of a signal's latest intervals."""

_EXPRESSION: Final = re.compile(r"([a-z]\w{0,63})(?:\(\s*([a-z]\w{0,63})\s*,\s*([0-9]{1,6})\s*\))?")
_OPERATION: Final = re.compile(r"([*/+-])\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_SIGNS: Final = {"×": "*", "x": "*", "÷": "/", "−": "-", ":": "/"}


def read_amount(value: Any) -> float:
    """Read a constant: a number in the signal's unit, or a quantity (times to s, rates to bit/s, sizes to packets).

    Raises:
        UnitError: The text is not a quantity.
        ConfigError: The value is not a finite number.
    """
    if isinstance(value, str):
        text = value.strip()
        unit = text.lstrip("+-0123456789.eE ")
        if unit == "%":
            return parse_probability(text)
        sign, magnitude = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
        if unit in PACKET_RATE_UNITS or "bit" in unit or unit.casefold().endswith(("bps", "b/s")):
            return sign * float(parse_flow_rate(magnitude))
        if unit in ("p", "pkt", "pkts", "packet", "packets"):
            return sign * float(parse_size(magnitude).packets or 0)
        try:
            return sign * (parse_time(magnitude) / NS_PER_S)
        except UnitError as error:
            raise UnitError(error.code,
                error.found, expected="a number in the unit of the signal, or a quantity like 200ms, 10mbps or 50p",
                hint=error.hint,
            ) from None  # fmt: skip
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError("wrong-type", shown(value), expected="a number, or a quantity like 200ms, 10mbps or 50p")
    return float(value)


def read_expression(value: Any) -> str:
    """Read ``SIGNAL`` or ``FUNCTION(SIGNAL, n)``, with spaces as the core writes them. Raises ConfigError."""
    match = _EXPRESSION.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= 200 else None
    if match is None:
        raise ConfigError(
            "text-malformed",
            shown(value),
            expected=f"a signal like mean_rtt, or FUNCTION(signal, n) with {', '.join(FUNCTIONS)}",
        )
    outer, inner, count = match.groups()
    return outer if inner is None else f"{outer}({inner}, {int(count)})"


def read_operand(value: Any) -> float | str:
    """Read a constant or an expression."""
    if isinstance(value, str) and value.strip()[:1].isalpha():
        return read_expression(value)
    return read_amount(value)


def read_operation(value: Any) -> str:
    """Read ``"/2"``, ``"*1.25"``, ``"+10"``, ``"-10"``; ``×``, ``÷`` and plain numbers (``+10``) are accepted, too.

    Raises:
        ConfigError: The value is none of these, or its factor is zero.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        value = f"{'-' if value < 0 else '+'}{abs(value):.12g}"  # YAML reads +10 as a number
    match = None
    if isinstance(value, str) and 0 < len(value) <= 100:
        text = value.strip()
        match = _OPERATION.fullmatch(_SIGNS.get(text[:1], text[:1]) + text[1:])
    if match is None:
        raise ConfigError(
            "text-malformed",
            shown(value),
            expected="an operation: '/2', '*1.25', '+10' or '-10'",
            hint="quote '*2' in YAML",
        )
    sign, amount = match.groups()
    if sign in "*/" and float(amount) == 0.0:
        raise ConfigError("out-of-range", shown(value), expected="a factor above zero")
    return f"{sign}{amount}"


def _read_bounds(value: Any) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ConfigError("wrong-type", shown(value), expected="two bounds, like [0, 4]")
    low, high = (read_amount(end) for end in value)
    if low >= high:
        raise ConfigError("order-wrong", f"[{low:g}, {high:g}]", expected="the smaller bound first")
    return low, high


ExpressionField: TypeAlias = Annotated[str, BeforeValidator(read_expression)]
"""``SIGNAL`` or ``FUNCTION(SIGNAL, n)``."""
OperandField: TypeAlias = Annotated[float | str, BeforeValidator(read_operand, json_schema_input_type=str | float)]
"""A number in the unit of the signal, a quantity, or an expression."""
BoundsField: TypeAlias = Annotated[
    tuple[float, float], BeforeValidator(_read_bounds, json_schema_input_type=list[str | float])
]
"""Two finite numbers or quantities, the smaller first."""
OperationField: TypeAlias = Annotated[str, BeforeValidator(read_operation, json_schema_input_type=str | float)]
"""One operation on the current value."""
