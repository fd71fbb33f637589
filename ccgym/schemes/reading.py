"""Schemes as one types them: ``cubic``, ``fixed_window:cwnd=100``, ``my_cca.py:MyCCA:beta=0.7``."""

from __future__ import annotations

import json
from typing import Any

from ccgym.errors import ConfigError, shown
from ccgym.schemes.choice import SchemeChoice
from ccgym.schemes.origins import ORIGINS, check


def parse_scheme(text: str, where: str = "") -> SchemeChoice:
    """Read ``cubic``, ``fixed_window:cwnd=100``, ``runs/mine`` or ``my_cca.py:MyCCA:beta=0.7``, and check it."""
    return check(read_scheme(text, where), where)


def read_scheme(text: str, where: str = "") -> SchemeChoice:
    """Read a scheme with its parameters, whether or not there is such a scheme."""
    split = (origin.parts(text.strip()) for origin in ORIGINS)
    name, *settings = next(parts for parts in split if parts is not None)
    params: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(
                "text-malformed",
                f"{shown(setting)} is not a parameter of a scheme",
                expected="NAME:PARAMETER=VALUE, as in fixed_window:cwnd=100",
                where=where,
            )
        if key.strip() in params:
            raise ConfigError("duplicate", f"parameter {shown(key.strip())} is given twice", where=where)
        params[key.strip()] = _value(value.strip())
    return SchemeChoice(name.strip(), params)


def _value(text: str) -> Any:
    """A JSON number, true, false or null; anything else is text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, (bool, int, float)) else text
