"""Rates of flows: in bits per second, or in full packets of 1500 bytes per second as papers on agents count.

A bare number is refused: ``40`` could be either.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from ccgym.errors import UnitError, shown
from ccgym.units import MAX_RATE_BPS, PACKET_BITS, format_rate, parse_rate

PACKET_RATE_UNITS: Final = ("packets/s", "packet/s", "pkt/s", "pkts/s", "p/s", "pps")
"""Spellings of packets per second."""

_PACKET_RATE: Final = re.compile(
    r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)\s*(?:"
    + "|".join(re.escape(unit) for unit in PACKET_RATE_UNITS)
    + r")\s*"
)
_MAX_TEXT: Final = 100


def parse_flow_rate(value: str | int | float) -> int:
    """Read a rate such as ``"3mbps"`` or ``"40 packets/s"`` (of 1500 bytes).

    Returns:
        Bits per second, a positive integer.

    Raises:
        UnitError: No unit, an unknown one, or out of range.
    """
    if isinstance(value, str) and len(value) <= _MAX_TEXT:
        match = _PACKET_RATE.fullmatch(value)
        if match is not None:
            rate = round(Fraction(match.group(1)) * PACKET_BITS)
            if not 1 <= rate <= MAX_RATE_BPS:
                raise UnitError(f"{shown(value)} is no rate", expected=f"1bps to {MAX_RATE_BPS}bps")
            return rate
    try:
        return parse_rate(value)
    except UnitError as error:
        expected = f"{error.expected}, or packets/s" if error.expected else ""
        raise UnitError(error.found, expected=expected, hint=error.hint, where=error.where) from None


FlowRateField = Annotated[
    int,
    BeforeValidator(parse_flow_rate),
    Field(ge=1, le=MAX_RATE_BPS),
    PlainSerializer(format_rate),
    WithJsonSchema({"type": "string", "examples": ["3mbps", "40 packets/s"]}),
]
"""Bits per second, from ``"3mbps"`` or ``"40 packets/s"``."""
