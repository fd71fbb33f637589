"""Short forms that users can write in place of a mapping: ``read_<union>`` reads them, given the models by kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.units import PACKET_RATE_UNITS, is_number, parse_flow_rate, parse_size, parse_time

_RTTS: Final = re.compile(r"([0-9]*\.?[0-9]+)\s*rtts?", re.IGNORECASE)


def name_alone(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read the name of a kind without parameters."""
    return {"kind": value} if isinstance(value, str) else value


def read_clock(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read a time as a fixed clock, and ``0.5 rtt`` as a clock of round trips."""
    if isinstance(value, str):
        rtts = _RTTS.fullmatch(value.strip()) if len(value) < 100 else None
        if rtts is not None:
            return {"kind": "rtt", "multiple": float(rtts.group(1))}
    if isinstance(value, str) or is_number(value):
        parse_time(value)
        return {"kind": "fixed", "interval": value}
    return value


def read_start(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read a rate, a window in packets, or the name of a kind without parameters."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text[:1].isdigit():
        if text == "rate" or text not in kinds:
            raise ConfigError(
                "unknown-kind",
                "a start of kind rate without a rate" if text == "rate" else f"unknown start {shown(value)}",
                expected=f"a rate like 3mbps, a window like 10p, or one of {', '.join(kinds)}",
                hint=did_you_mean(text, kinds) if text != "rate" else "",
            )
        return {"kind": text}
    if text.endswith(PACKET_RATE_UNITS) or not text.endswith(("p", "pkt", "pkts", "packet", "packets")):
        parse_flow_rate(text)
        return {"kind": "rate", "rate": text}
    return {"kind": "window", "packets": parse_size(text).packets}


def read_map(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read a list as a map of discrete operations."""
    if isinstance(value, (list, tuple)):
        return {"kind": "discrete", "operations": list(value)}
    return name_alone(value, kinds)


def _quantity(kind: str, key: str) -> Callable[[Any, Mapping[str, Any]], Any]:
    """Return a function that reads a quantity as the only parameter of a kind."""
    return lambda value, _: {"kind": kind, key: value} if isinstance(value, str) or is_number(value) else value


read_jitter_distribution = _quantity("uniform", "max")
"""Reads a time as the maximum of a uniform distribution."""
read_transfer_size = _quantity("constant", "bytes")
"""Reads a size as a constant size."""


def read_source(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read ``greedy`` or ``media``, or a size: a transfer of this number of bytes."""
    if value in ("greedy", "media"):
        return {"kind": value}
    return _quantity("bytes", "bytes")(value, kinds)


read_guard = read_expert = name_alone
"""Reads a guard or an expert from the name of its kind."""


def read_queue(value: Any, kinds: Mapping[str, Any]) -> Any:
    """Read a size as a droptail queue, and a name as a queue discipline with its defaults."""
    if isinstance(value, str):
        name = value.strip()
        if name[:1].isdigit() or name[:1] in "+-.":
            return {"kind": "droptail", "limit": name}
        _known_queue(name, kinds)
        needed = [key for key, field in kinds[name].model_fields.items() if field.is_required()]
        if needed:
            raise ConfigError(
                "key-missing",
                f"queue {shown(name)} without {' and '.join(needed)}",
                expected="a mapping like {kind: " + name + ", " + ", ".join(f"{key}: …" for key in needed) + "}",
                hint="write only a size, like '94p' or '1bdp', for droptail" if name == "droptail" else "",
            )
        return {"kind": name}
    if is_number(value):
        parse_size(value)  # raises: it has no unit
    if isinstance(value, dict) and isinstance(value.get("kind"), str):
        _known_queue(value["kind"], kinds)
    return value


_OTHER_QUEUES: Final = {
    **dict.fromkeys(
        ("fifo", "taildrop", "tail_drop", "drop_tail", "droptailqueue"),
        "did you mean 'droptail'? Write only a size, like '94p'",
    ),
    **dict.fromkeys(
        ("ared", "wred", "blue", "choke", "aqm"),
        "use one of codel, fq_codel, pie, red, step and dualpi2 for active queue management",
    ),
    **dict.fromkeys(("l4s", "pi2", "dualq"), "did you mean 'dualpi2'?"),
}
"""Queues of other tools, and the hints for them."""


def _known_queue(name: str, kinds: Mapping[str, Any]) -> None:
    if name not in kinds:
        expected = f"a size like '94p', '30000B' or '1bdp', or one of {', '.join(kinds)}"
        hint = _OTHER_QUEUES.get(name.casefold()) or did_you_mean(name, kinds)
        raise ConfigError("unknown-kind", f"unknown queue {shown(name)}", expected=expected, hint=hint)
