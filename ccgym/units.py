"""Quantities with units: ``"77.72mbps"``, ``"51ms"``, ``"94p"``, ``"1.5bdp"``, ``"0.06%"``.

Inside ccgym a rate is an integer in bits per second, a time an integer in nanoseconds, a size an integer in bytes or
packets, a probability a float. A plain number is accepted as a time in seconds. It is refused as a rate or a size,
because its unit is not clear: 50 could be Mbit/s or bytes per second. Prefixes are decimal for rates (1 Mbit = 10⁶ bit,
as in Pantheon's and ccperf's reports) and for sizes (1 kB = 1000 B); ``KiB`` and ``MiB`` are binary.

Parsing is exact: decimal text is parsed with :class:`fractions.Fraction`, never with binary floating point. A result
that is not a whole number of the base unit is rounded half to even.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Final, TypeAlias, TypeGuard

from ccgym.errors import UnitError, did_you_mean, shown

NS_PER_S: Final = 1_000_000_000
"""Nanoseconds in a second."""
NS_PER_MS: Final = 1_000_000
"""Nanoseconds in a millisecond."""
PACKET_BYTES: Final = 1500
"""Bytes of a full IP packet. Queues and bandwidth-delay products are counted in packets of this size."""
PACKET_BITS: Final = 8 * PACKET_BYTES
"""Bits of a full IP packet. One line of a delivery trace delivers this number of bits."""
MAX_NS: Final = 2**63 - 1
"""Longest time that the native core accepts: 292 years."""
MAX_RATE_BPS: Final = 10**15
"""Highest rate accepted: 1 Pbit/s."""

MAX_LENGTH: Final = 1000
"""Max characters of a quantity."""

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

_RATE_UNITS: Final[dict[str, int]] = {
    **{f"{prefix}{unit}": factor
       for prefix, factor in (("", 1), ("k", 10**3), ("m", 10**6), ("g", 10**9))
       for unit in ("bps", "bit/s", "bits/s", "b/s")},
    **{f"{prefix}bit": factor for prefix, factor in (("", 1), ("k", 10**3), ("m", 10**6), ("g", 10**9))},
}  # fmt: skip
PACKET_RATE_UNITS: Final = ("packets/s", "packet/s", "pkt/s", "pkts/s", "p/s", "pps")
"""Spellings of packets per second."""
_TIME_UNITS: Final[dict[str, int]] = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "min": 60 * 10**9,
}
_BYTE_UNITS: Final[dict[str, int]] = {
    "B": 1,
    "bytes": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_PACKET_UNITS: Final = frozenset({"p", "pkt", "pkts", "packet", "packets"})


TimeLike: TypeAlias = "str | float"
"""A time as the user writes it: ``"51ms"``, or a plain number of seconds."""


class Nanoseconds(int):
    """A time in ccgym's code that is already in nanoseconds; :func:`parse_time` does not convert it."""


@dataclass(frozen=True, order=True)
class Size:
    """A buffer size in exactly one of three measures; the other two are ``None``."""

    packets: int | None = None
    """Packets."""
    bytes: int | None = None
    """Bytes."""
    bdp: float | None = None
    """Multiples of the path's bandwidth-delay product."""

    def __str__(self) -> str:
        return format_size(self)


def _split(text: str, what: str, example: str) -> tuple[Fraction, str]:
    """Split "12.5 mbps" into its exact number and its unit."""
    stripped = text.strip()
    match = _NUMBER.match(stripped) if len(stripped) <= MAX_LENGTH else None
    if match is None:
        raise UnitError(
            "quantity-malformed", f"{shown(text)} is not a {what}", expected=f"a number and a unit, like {example}"
        )
    # `strip` allows "12 mbps"; with a comma as decimal separator, the unit would be ",5mbps".
    unit = stripped[match.end() :].strip()
    if unit.startswith((",", ".", "_")):
        raise UnitError(
            "quantity-malformed",
            f"{shown(text)} is not a {what}",
            expected=f"a number and a unit, like {example}",
            hint="write a decimal point, and no separators between digits",
        )
    return Fraction(match.group()), unit


def _refuse_bare(value: object, what: str, units: str, examples: str) -> UnitError:
    return UnitError(
        "unit-missing",
        f"{shown(value)} has no unit",
        expected=f"a {what} with its unit ({units}), like {examples}",
        hint="write a string in Python and in YAML; only times can be plain numbers (seconds)",
    )


def _whole(value: Fraction, text: object, what: str, limit: int, limit_text: str = "") -> int:
    if value < 0:
        raise UnitError("out-of-range", f"{shown(text)} is negative", expected=f"a {what} of zero or more")
    if value > limit:
        raise UnitError(
            "out-of-range", f"{shown(text)} is too large", expected=f"a {what} of up to {limit_text or limit}"
        )
    return round(value)


def _nanoseconds(value: Fraction, text: object) -> int:
    return _whole(value, text, "time", MAX_NS, f"{MAX_NS // NS_PER_S} s; plain numbers are seconds")


_RATE_WORDS: Final = ("rate", "bps, kbps, mbps or gbps", "'77.72mbps', '100kbps' or '1gbps'")
_SIZE_WORDS: Final = ("size", "p, B, kB, MB, KiB, MiB or bdp", "'94p' (packets), '30000B' (bytes) or '1.5bdp'")


def parse_flow_rate(value: str | int | float) -> int:
    """Read a rate like :func:`parse_rate`, or in packets of 1500 bytes per second, such as ``"40 packets/s"``."""
    return parse_rate(value, packets=True)


def parse_rate(value: str | int | float, *, packets: bool = False) -> int:
    """Read a rate such as ``"77.72mbps"``, ``"32 Mbit/s"``, ``"1gbps"`` or ``"100kbps"``.

    Args:
        value: Number and unit. Units are case-insensitive except for the ``B`` of bytes, which is refused.
        packets: Whether packets per second are accepted.

    Returns:
        Bits per second, a positive integer up to 10¹⁵.

    Raises:
        UnitError: No unit, an unknown unit, bytes instead of bits, zero, negative, or out of range.
    """
    what, units, examples = _RATE_WORDS
    also = ", or packets/s" if packets else ""
    if not isinstance(value, str):
        raise _refuse_bare(value, what, units + also, examples)
    number, unit = _split(value, "rate", "'77.72mbps'")
    if not unit:
        raise _refuse_bare(value, what, units + also, examples)
    if re.fullmatch(r"[kKmMgG]?i?B(?:ps|/s|yte/s|ytes/s)?|.*bytes?(?:/s|ps)", unit):
        prefix = unit[0] if unit[0] in "kKmMgG" else ""
        as_bytes, as_bits = (f"'{_plain(n)}{prefix.casefold()}bps'" for n in (8 * number, number))
        raise UnitError(
            "unit-ambiguous",
            f"{shown(value)} is in bytes (B), but rates are in bits (b)",
            expected="a rate in bits per second, like '77.72mbps'",
            hint=f"if you mean bytes, write {as_bytes}; if you mean bits, write {as_bits}",
        )
    factor = _RATE_UNITS.get(unit.casefold())
    if packets and unit in PACKET_RATE_UNITS:
        factor = PACKET_BITS
    if factor is None:
        raise UnitError(
            "unknown-unit",
            f"{shown(value)} has the unknown rate unit {shown(unit)}",
            expected="bps, kbps, mbps or gbps (also bit/s, kbit/s, Mbit/s, Gbit/s)" + also,
            hint=did_you_mean(unit, ("bps", "kbps", "mbps", "gbps", "kbit/s", "mbit/s", "gbit/s")),
        )
    rate = _whole(number * factor, value, "rate in bit/s", MAX_RATE_BPS)
    if rate == 0:
        raise UnitError("out-of-range", f"{shown(value)} is not a link rate", expected="1bps or more")
    return rate


def parse_time(value: TimeLike) -> int:
    """Read a time such as ``"51ms"``, ``"0.5s"``, ``"200us"`` or ``"2min"``; a plain number is in seconds.

    Args:
        value: Text with or without a unit, a real number of Python or numpy, or :class:`Nanoseconds`.

    Returns:
        Nanoseconds, from 0 to 2⁶³−1.

    Raises:
        UnitError: Not a number, not finite, an unknown unit, negative, or out of range.
    """
    if isinstance(value, Nanoseconds):
        return _nanoseconds(Fraction(int(value)), value)
    if not isinstance(value, str):
        return _nanoseconds(_seconds(value) * NS_PER_S, value)
    number, unit = _split(value, "time", "'51ms'")
    if not unit:
        return _nanoseconds(number * NS_PER_S, value)
    factor = _TIME_UNITS.get(unit)
    if factor is None and unit in ("S", "Ms", "MS", "mS", "Us", "US", "uS", "NS", "Sec", "SEC", "Min", "MIN"):
        factor = _TIME_UNITS[unit.casefold()]
    if factor is None:
        words = {"seconds": "s", "second": "s", "secs": "s", "milliseconds": "ms", "msec": "ms", "msecs": "ms",
                 "m": "min", "minutes": "min", "minute": "min", "usec": "us", "h": "min"}  # fmt: skip
        meant = words.get(unit.casefold())
        raise UnitError(
            "unknown-unit",
            f"{shown(value)} has the unknown time unit {shown(unit)}",
            expected="ns, us, ms, s or min",
            hint=f"did you mean {meant!r}?" if meant else did_you_mean(unit, ("ns", "us", "ms", "s", "min")),
        )
    return _nanoseconds(number * factor, value)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is a real number of Python or numpy, and not a bool."""
    return not isinstance(value, bool) and isinstance(value, Real)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether the type of ``value`` is an integer type of Python or numpy, and not bool."""
    return not isinstance(value, bool) and isinstance(value, Integral)


def _seconds(value: object) -> Fraction:
    """Return a plain number exactly as it is printed: 0.1 is a tenth."""
    if is_whole(value):
        return Fraction(int(value))
    if is_number(value) and math.isfinite(value):
        return Fraction(str(value))
    raise UnitError(
        "quantity-malformed",
        f"{shown(value)} is not a time",
        expected="seconds as a number, or a time with its unit, like '51ms' or '0.5s'",
    )


def parse_positive_time(value: TimeLike) -> int:
    """Read a duration like :func:`parse_time`; zero is refused."""
    time = parse_time(value)
    if time == 0:
        raise UnitError("out-of-range", f"{shown(value)} is not a duration", expected="a time above zero")
    return time


def parse_size(value: str | int | float) -> Size:
    """Read a buffer size such as ``"94p"``, ``"30000B"``, ``"64kB"`` or ``"1.5bdp"``.

    Returns:
        Packets (a positive whole number), bytes (also positive), or multiples of the BDP (positive).

    Raises:
        UnitError: No unit, an unknown unit, zero, negative, or a fraction of a packet.
    """
    if not isinstance(value, str):
        raise _refuse_bare(value, *_SIZE_WORDS)
    number, unit = _split(value, "size", "'94p'")
    if not unit:
        raise _refuse_bare(value, *_SIZE_WORDS)
    expected = f"a size above zero, like {_SIZE_WORDS[2]}"
    if number <= 0:
        raise UnitError("out-of-range", f"{shown(value)} is not a size", expected=expected)
    if unit.casefold() in _PACKET_UNITS:
        if number.denominator != 1:
            raise UnitError(
                "quantity-malformed",
                f"{shown(value)} is not a whole number of packets",
                expected="a whole number, like '94p'",
            )
        return Size(packets=_whole(number, value, "number of packets", 2**32))
    if unit.casefold() == "bdp":
        if number > 10**6:
            raise UnitError("out-of-range", f"{shown(value)} is too large", expected="up to 1000000bdp")
        return Size(bdp=float(number))
    factor = _BYTE_UNITS.get(unit)
    if factor is None:
        hint = did_you_mean(unit, ("p", "pkt", "packets", "bdp", *_BYTE_UNITS))
        if unit.casefold() in ("b", "kb", "mb", "gb", "kbit", "mbit", "bit", "bits"):
            hint = "write bytes with a capital B, as in '30000B' and '64kB'; buffers are not given in bits"
        raise UnitError(
            "unknown-unit",
            f"{shown(value)} has the unknown size unit {shown(unit)}",
            expected="p (packets), B, kB, MB, KiB, MiB (bytes) or bdp (bandwidth-delay products)",
            hint=hint,
        )
    size = _whole(number * factor, value, "number of bytes", 2**48)
    if size == 0:
        raise UnitError("out-of-range", f"{shown(value)} is not a size", expected=expected)
    return Size(bytes=size)


def parse_probability(value: str | int | float) -> float:
    """Read a probability such as ``0.01``, ``"0.01"`` or ``"1%"``.

    The integer ``1`` is refused, because it could mean one per cent. ``1.0`` and ``"100%"`` are a probability of one.

    Returns:
        A float from 0 to 1.

    Raises:
        UnitError: Not a number, the integer 1, or outside 0…1 (a number above 1 was probably meant in per cent).
    """
    expected = "a fraction from 0 to 1, or per cent like '1%'"
    if isinstance(value, str):
        number, unit = _split(value, "probability", "'1%' or 0.01")
        if unit not in ("", "%"):
            raise UnitError("unknown-unit", f"{shown(value)} has the unknown unit {shown(unit)}", expected=expected)
        probability = float(number / 100 if unit == "%" else number)
    elif is_number(value):
        probability = float(value)
    else:
        raise UnitError("out-of-range", f"{shown(value)} is not a probability", expected=expected)
    if probability == 1.0 and (is_whole(value) or (isinstance(value, str) and value.strip() == "1")):
        raise UnitError(
            "unit-ambiguous",
            f"{shown(value)} could mean 1% or 100%",
            expected=expected,
            hint="write '1%' for one in a hundred, '100%' or 1.0 for always",
        )
    if not 0.0 <= probability <= 1.0:
        hint = ""
        if not str(value).strip().endswith("%"):
            hint = f"if you mean {probability:g} per cent, write '{probability:g}%'" if 1 < probability <= 100 else ""
        raise UnitError("out-of-range", f"{shown(value)} is not a probability", expected=expected, hint=hint)
    return probability


def _plain(value: Fraction) -> str:
    """Write a number without an exponent and trailing zeros; exactly, if its decimals end."""
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return repr(float(value))
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = abs(int(value * 10**digits))
    sign = "-" if value < 0 else ""
    whole, part = divmod(scaled, 10**digits)
    return f"{sign}{whole}.{part:0{digits}d}" if digits else f"{sign}{whole}"


def format_rate(bps: int) -> str:
    """Write bits per second in the form that :func:`parse_rate` reads: ``77720000`` → ``"77.72mbps"``."""
    for unit, factor in (("gbps", 10**9), ("mbps", 10**6), ("kbps", 10**3)):
        # 77.72 Mbit/s, not 0.07772 Gbit/s; Gbit/s only from 1 Gbit/s and if the number is short.
        if bps >= factor and (unit != "gbps" or bps % 10**6 == 0):
            return f"{_plain(Fraction(bps, factor))}{unit}"
    return f"{bps}bps"


def format_time(ns: int) -> str:
    """Write nanoseconds in the form that :func:`parse_time` reads: ``51000000`` → ``"51ms"``."""
    if ns == 0:
        return "0s"
    for unit, factor in (("s", NS_PER_S), ("ms", NS_PER_MS), ("us", 10**3)):
        if ns >= factor:
            return f"{_plain(Fraction(ns, factor))}{unit}"
    return f"{ns}ns"


def format_size(size: Size) -> str:
    """Write a size in the form that :func:`parse_size` reads: ``"94p"``, ``"30000B"``, ``"1.5bdp"``."""
    if size.packets is not None:
        return f"{size.packets}p"
    if size.bytes is not None:
        return f"{size.bytes}B"
    if size.bdp is not None:
        return f"{_plain(Fraction(repr(size.bdp)))}bdp"
    raise UnitError("exactly-one", "a size without a measure", expected="packets, bytes or bdp")


def format_probability(probability: float) -> str:
    """Write a probability in per cent, in the form that :func:`parse_probability` reads: ``0.0006`` → ``"0.06%"``."""
    return f"{_plain(Fraction(repr(probability)) * 100)}%"
