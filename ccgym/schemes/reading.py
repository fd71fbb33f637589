"""Parser of typed schemes: ``cubic``, ``fixed_window:cwnd=100``, ``my_cca.py:MyCCA:beta=0.7``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ccgym.errors import ConfigError, shown
from ccgym.schemes.kernel import KernelTcp
from ccgym.schemes.native import NativeScheme, PolicyScheme
from ccgym.schemes.programs import ExternalProgram
from ccgym.schemes.python_classes import PythonScheme
from ccgym.schemes.quic import QuicScheme
from ccgym.schemes.scheme import Scheme

KINDS: Final[tuple[type[Scheme], ...]] = (
    ExternalProgram, PythonScheme, KernelTcp, QuicScheme, PolicyScheme, NativeScheme,
)  # fmt: skip
"""Kinds of schemes, in the order in which they are tried for a text or a name. Add new kinds here."""


def scheme_of(name: str, params: Mapping[str, Any] | None = None) -> Scheme:
    """Return the scheme of a name, without a check."""
    kind = next(kind for kind in KINDS if kind.claims(name))
    return kind(name, {} if params is None else params)


def parse_scheme(text: str, where: str = "") -> Scheme:
    """Read ``cubic``, ``fixed_window:cwnd=100``, ``runs/mine`` or ``my_cca.py:MyCCA:beta=0.7``, and check it."""
    return read_scheme(text, where).checked(where)


def read_scheme(text: str, where: str = "") -> Scheme:
    """Read a scheme with its parameters, without a check."""
    split = (kind.parts(text.strip()) for kind in KINDS)
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
    return scheme_of(name.strip(), params)


def _value(text: str) -> Any:
    """Read a JSON number, true or false; everything else is text."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, (bool, int, float)) else text
