"""The queues of mahimahi's ``mm-link``, read from its options."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ccgym.errors import ConfigError, did_you_mean, located, shown
from ccgym.units import NS_PER_MS, Nanoseconds

if TYPE_CHECKING:
    from ccgym.config.declared import Direction

QUEUE_ARGUMENTS: Final = {
    "infinite": (),
    "droptail": ("packets", "bytes"),
    "drophead": ("packets", "bytes"),
    "codel": ("packets", "bytes", "target", "interval"),
    "pie": ("packets", "bytes", "qdelay_ref", "max_burst"),
}
"""Queues of ``mm-link`` and their arguments. Arguments from the third on are required and in milliseconds."""


def read_queue(direction: Direction, options: Mapping[str, str]) -> dict[str, Any]:
    """Read the queue of one direction of a link. Raises :class:`ConfigError`."""
    kind = options.get(f"--{direction}-queue", "infinite")
    arguments = options.get(f"--{direction}-queue-args")
    with located(f"mahimahi command (mm-link --{direction}-queue)"):
        if kind not in QUEUE_ARGUMENTS:
            hint = did_you_mean(kind, QUEUE_ARGUMENTS)
            raise ConfigError(
                "mahimahi-unknown-word", f"unknown queue {shown(kind)}", expected=", ".join(QUEUE_ARGUMENTS), hint=hint
            )
    with located(f"mahimahi command (mm-link --{direction}-queue-args of {kind})"):
        if kind == "infinite":
            if arguments is not None:
                hint = f"did you mean --{direction}-queue=droptail?" if "packets" in arguments else ""
                none = "no arguments for the infinite queue"
                raise ConfigError("mahimahi-syntax", f"arguments {shown(arguments)}", expected=none, hint=hint)
            return {"kind": "infinite"}
        given = _queue_arguments(kind, arguments or "")
        limit = {name: given[name] for name in ("packets", "bytes") if name in given}
        if not limit:
            hint = f"write --{direction}-queue-args=packets=100"
            raise ConfigError("mahimahi-syntax", f"{kind} without a limit", expected="packets=N or bytes=N", hint=hint)
        needed = QUEUE_ARGUMENTS[kind][2:]
        if missing := [name for name in needed if name not in given]:
            both = f"{needed[0]}=MS and {needed[1]}=MS, both above zero"
            raise ConfigError("mahimahi-syntax", f"{kind} without {' and '.join(missing)}", expected=both)
    times = {name: Nanoseconds(given[name] * NS_PER_MS) for name in needed}
    return {"kind": f"mahimahi_{kind}" if times else kind, "limit": limit, **times}


def _queue_arguments(kind: str, text: str) -> dict[str, int]:
    """Read ``name=int, name=int``. mahimahi searches for substrings and cuts decimals; this reader refuses both."""
    known = QUEUE_ARGUMENTS[kind]
    given: dict[str, int] = {}
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        name, equals, value = part.partition("=")
        if name not in known:
            hint = did_you_mean(name, known, "remove it; mahimahi would silently ignore it")
            raise ConfigError(
                "mahimahi-unknown-word", f"unknown argument {shown(name)}", expected=", ".join(known), hint=hint
            )
        if not equals or not re.fullmatch(r"[0-9]{1,12}", value):
            hint = "write a whole number; mahimahi cuts decimals" if read_number(value) is not None else ""
            raise ConfigError("mahimahi-value", shown(part), expected=f"{name}=N with a whole number", hint=hint)
        if name in given:
            raise ConfigError("duplicate", f"{name} a second time", expected="each argument once")
        if int(value) == 0:
            hint = "in mahimahi, 0 means that the argument is missing"
            raise ConfigError("mahimahi-value", shown(part), expected="a number above zero", hint=hint)
        given[name] = int(value)
    return given


def read_number(text: str) -> float | None:
    """Read a decimal number like C's strtod, but no hexadecimal numbers, infinity or NaN."""
    if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", text) or len(text) > 60:
        return None
    value = float(text)
    return value if math.isfinite(value) else None
